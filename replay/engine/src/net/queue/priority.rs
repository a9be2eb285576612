//! Strict priority: a packet enters service only if no packet of a higher class waits. Each class is a drop-tail queue;
//! the packet in service is not interrupted.
//!
//! Does not depend on the meaning of the classes. Read RFC 2474 §3 (DSCP) and RFC 3246 §2 (why the highest class must
//! be policed).

use super::scheduled::Waiting;
use crate::config::PriorityConfig;
use crate::sim::ring::Ring;

/// Strict priority.
pub struct Priority {
    limit_pkts: usize,
    /// Class of each DSCP.
    class_of: [u8; 64],
    classes: Vec<Ring<Waiting>>,
}

impl Priority {
    /// Empty queues.
    pub fn new(config: &PriorityConfig) -> Self {
        let rest = config.classes.len() as u8;
        let mut class_of = [rest; 64];
        for (number, class) in config.classes.iter().enumerate() {
            for &dscp in class {
                class_of[usize::from(dscp) % 64] = number as u8;
            }
        }
        Self {
            limit_pkts: config.limit_pkts as usize,
            class_of,
            classes: vec![Ring::default(); config.classes.len() + 1],
        }
    }

    /// Adds a packet. Returns it if its class is full.
    pub fn push(&mut self, packet: Waiting) -> Option<Waiting> {
        let class = self.class_of[usize::from(packet.dscp) % 64];
        let queue = &mut self.classes[usize::from(class)];
        if queue.len() >= self.limit_pkts {
            return Some(packet);
        }
        queue.push_back(packet);
        None
    }

    /// The oldest packet of the highest class that has one.
    pub fn pop(&mut self) -> Option<Waiting> {
        self.classes.iter_mut().find_map(Ring::pop_front)
    }

    /// The packets in the queue.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> + '_ {
        self.classes.iter().flat_map(Ring::iter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(leg: u16, dscp: u8) -> Waiting {
        Waiting {
            leg,
            dscp,
            ..Waiting::default()
        }
    }

    fn queue(classes: &[&[u8]], limit_pkts: u32) -> Priority {
        Priority::new(&PriorityConfig {
            classes: classes.iter().map(|class| class.to_vec()).collect(),
            limit_pkts,
        })
    }

    #[test]
    fn a_lower_class_waits_as_long_as_a_higher_one_has_packets() {
        let mut queue = queue(&[&[46], &[34, 36]], 100);
        // Numbered in order of arrival: best effort, AF41, EF, …
        for (number, dscp) in [0, 34, 46, 0, 36, 46].into_iter().enumerate() {
            assert!(queue.push(packet(number as u16, dscp)).is_none());
        }
        let mut order: Vec<u16> = (0..2).filter_map(|_| queue.pop()).map(|p| p.leg).collect();
        // One more packet of the highest class arrives.
        queue.push(packet(6, 46));
        order.extend(std::iter::from_fn(|| queue.pop()).map(|packet| packet.leg));
        assert_eq!(order, [2, 5, 6, 1, 4, 0, 3]);
    }

    #[test]
    fn each_class_has_its_own_limit() {
        let mut queue = queue(&[&[46]], 2);
        for dscp in [0, 0, 46] {
            assert!(queue.push(packet(0, dscp)).is_none());
        }
        assert_eq!(queue.push(packet(9, 10)), Some(packet(9, 10)));
        assert!(queue.push(packet(9, 46)).is_none());
        assert_eq!(queue.push(packet(9, 46)), Some(packet(9, 46)));
        assert_eq!(queue.iter().count(), 4);
    }
}

//! Deficit round robin: flows take turns, each turn adds a quantum of octets to the deficit counter, and what is left
//! of it is kept for the next turn while the flow has packets. Flows share the link by octets, whatever the size of
//! their packets.
//!
//! Does not depend on TCP: a flow is the number of a connection. Read M. Shreedhar and G. Varghese, "Efficient Fair
//! Queuing Using Deficit Round-Robin", IEEE/ACM ToN 4(3), 1996 (SV96 below), §III.

use super::scheduled::Waiting;
use crate::config::DrrConfig;
use crate::sim::ring::Ring;

/// One flow's queue.
#[derive(Clone, Default)]
struct Flow {
    packets: Ring<Waiting>,
    bytes: u64,
    deficit_bytes: u64,
    /// Whether it is in the round.
    active: bool,
}

/// Deficit round robin.
pub struct Drr {
    quantum_bytes: u64,
    limit_pkts: usize,
    flows: Vec<Flow>,
    /// Flows with packets, in the order of their turns.
    round: Ring<u16>,
    /// Whether the first flow of the round has received its quantum for this turn.
    credited: bool,
    waiting_pkts: usize,
}

impl Drr {
    /// An empty queue.
    pub fn new(config: &DrrConfig) -> Self {
        Self {
            quantum_bytes: u64::from(config.quantum_bytes),
            limit_pkts: config.limit_pkts as usize,
            flows: Vec::new(),
            round: Ring::default(),
            credited: false,
            waiting_pkts: 0,
        }
    }

    /// Adds a packet. If the queue is full, the longest queue loses its newest packet (SV96 §III, buffer stealing).
    /// Returns that packet, or the new one.
    pub fn push(&mut self, packet: Waiting) -> Option<Waiting> {
        let number = usize::from(packet.leg);
        if number >= self.flows.len() {
            self.flows.resize(number + 1, Flow::default());
        }
        let mut stolen = None;
        if self.waiting_pkts >= self.limit_pkts {
            stolen = self.steal(number, u64::from(packet.ip_bytes));
            if stolen.is_none() {
                return Some(packet);
            }
        }
        let flow = &mut self.flows[number];
        flow.bytes += u64::from(packet.ip_bytes);
        flow.packets.push_back(packet);
        self.waiting_pkts += 1;
        if !std::mem::replace(&mut flow.active, true) {
            self.round.push_back(packet.leg);
        }
        stolen
    }

    /// Takes a packet from the longest queue, unless that would be queue `own` with `own_bytes` more.
    fn steal(&mut self, own: usize, own_bytes: u64) -> Option<Waiting> {
        let lengths = self.flows.iter().map(|flow| flow.bytes).enumerate();
        let (longest, bytes) = lengths.rev().max_by_key(|&(_, bytes)| bytes)?;
        if self.flows[own].bytes + own_bytes >= bytes {
            return None;
        }
        let flow = &mut self.flows[longest];
        let packet = flow.packets.pop_back()?;
        flow.bytes -= u64::from(packet.ip_bytes);
        self.waiting_pkts -= 1;
        Some(packet)
    }

    /// The next packet of the flow whose turn it is (SV96 §III, figure 3).
    pub fn pop(&mut self) -> Option<Waiting> {
        loop {
            let number = *self.round.front()?;
            let flow = &mut self.flows[usize::from(number)];
            if !std::mem::replace(&mut self.credited, true) {
                flow.deficit_bytes += self.quantum_bytes;
            }
            let size = flow
                .packets
                .front()
                .map(|packet| u64::from(packet.ip_bytes));
            if let Some(size) = size.filter(|&size| size <= flow.deficit_bytes) {
                flow.deficit_bytes -= size;
                flow.bytes -= size;
                self.waiting_pkts -= 1;
                return flow.packets.pop_front();
            }
            // The turn is over. A flow without packets leaves the round and loses its deficit.
            self.round.pop_front();
            self.credited = false;
            if size.is_some() {
                self.round.push_back(number);
            } else {
                (flow.deficit_bytes, flow.active) = (0, false);
            }
        }
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.waiting_pkts == 0
    }

    /// The packets in the queue.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> + '_ {
        self.flows.iter().flat_map(|flow| flow.packets.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(leg: u16, ip_bytes: u16) -> Waiting {
        Waiting {
            leg,
            ip_bytes,
            ..Waiting::default()
        }
    }

    fn queue(quantum_bytes: u32, limit_pkts: u32) -> Drr {
        Drr::new(&DrrConfig {
            quantum_bytes,
            limit_pkts,
        })
    }

    #[test]
    fn turns_go_as_in_the_paper() {
        // SV96, figures 3 and 4: quantum 500; the first queue has 200 750 20, the second 500 500, …
        let mut drr = queue(500, 100);
        for (leg, sizes) in [
            (0, &[200, 750, 20][..]),
            (1, &[500, 500]),
            (2, &[200, 600, 100]),
            (3, &[50, 700, 180]),
        ] {
            for &size in sizes {
                assert!(drr.push(packet(leg, size)).is_none());
            }
        }
        let order: Vec<_> = std::iter::from_fn(|| drr.pop())
            .map(|packet| (packet.leg, packet.ip_bytes))
            .collect();
        let expected = [
            // First round: 500 each; 300, 0, 300 and 450 are left.
            (0, 200),
            (1, 500),
            (2, 200),
            (3, 50),
            // Second round: 800, 500, 800 and 950.
            (0, 750),
            (0, 20),
            (1, 500),
            (2, 600),
            (2, 100),
            (3, 700),
            (3, 180),
        ];
        assert_eq!(order, expected);
        assert!(drr.flows.iter().all(|flow| flow.deficit_bytes == 0));
    }

    #[test]
    fn flows_share_by_octets_whatever_their_packet_size() {
        let mut drr = queue(1500, 10_000);
        for _ in 0..4000 {
            drr.push(packet(0, 1500));
            drr.push(packet(1, 300));
            drr.push(packet(2, 576));
        }
        let mut sent = [0_u64; 3];
        while sent.iter().sum::<u64>() < 2_400_000 {
            let packet = drr.pop().expect("there are more");
            sent[usize::from(packet.leg)] += u64::from(packet.ip_bytes);
        }
        let (min, max) = (sent.iter().min(), sent.iter().max());
        // SV96, theorem 2: the difference is never more than a quantum and a packet.
        assert!(
            max.zip(min).is_some_and(|(max, min)| max - min <= 3000),
            "{sent:?}"
        );
    }

    #[test]
    fn a_full_queue_drops_from_the_longest_flow() {
        let mut drr = queue(1500, 4);
        for size in [1500, 1500, 1400] {
            assert!(drr.push(packet(0, size)).is_none());
        }
        assert!(drr.push(packet(1, 100)).is_none());
        assert_eq!(drr.push(packet(1, 100)), Some(packet(0, 1400)));
        // The flow that would be longest loses its own packet.
        assert_eq!(drr.push(packet(0, 10)), Some(packet(0, 10)));
        assert_eq!(drr.push(packet(2, 3000)), Some(packet(2, 3000)));
        assert_eq!(drr.iter().count(), 4);
        assert_eq!(queue(1500, 0).push(packet(0, 1)), Some(packet(0, 1)));
    }

    #[test]
    fn a_flow_that_loses_its_last_packet_leaves_the_round() {
        let mut drr = queue(1500, 1);
        drr.push(packet(0, 1500));
        assert_eq!(drr.push(packet(1, 100)), Some(packet(0, 1500)));
        assert_eq!(drr.pop(), Some(packet(1, 100)));
        assert_eq!(drr.pop(), None);
        assert!(drr.flows.iter().all(|flow| !flow.active));
        drr.push(packet(0, 1500));
        assert_eq!(drr.pop(), Some(packet(0, 1500)));
    }
}

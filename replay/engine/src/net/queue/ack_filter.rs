//! ACK filtering: a drop-tail queue from which an arriving ACK removes those waiting of its connection that it covers.
//!
//! Does not depend on when a packet is served. Read RFC 3449 §5.2.1 and Balakrishnan, Padmanabhan and Katz 1997 §3.2
//! first. Duplicate ACKs stay, which report losses, and ACKs with SACK blocks, a flag or a payload.

use std::collections::HashMap;
use std::ops::Range;

use super::scheduled::{Dropped, Waiting};
use crate::config::AckFilterConfig;
use crate::net::link::DropCause;
use crate::sim::ring::Ring;

/// The queue.
pub struct AckFilter {
    limit_pkts: usize,
    limit_bytes: u64,
    /// Connections whose ACKs are filtered.
    legs: Vec<Range<u16>>,
    waiting: Ring<Waiting>,
    waiting_bytes: u64,
    /// Of each connection: the octet that its last ACK awaited.
    last_ack: HashMap<u16, u64>,
}

impl AckFilter {
    /// An empty queue.
    pub fn new(config: &AckFilterConfig) -> Self {
        let packets = config.queue.packets();
        Self {
            limit_pkts: packets.map_or(usize::MAX, |pkts| pkts as usize),
            limit_bytes: config.queue.limit_bytes.unwrap_or(u64::MAX),
            legs: config.legs.clone(),
            waiting: Ring::default(),
            waiting_bytes: 0,
            last_ack: HashMap::new(),
        }
    }

    /// Notes an arriving packet. Returns it as it waits: a duplicate ACK stays.
    fn note(&mut self, packet: Waiting) -> Waiting {
        let filtered = self.legs.iter().any(|legs| legs.contains(&packet.leg));
        let Some(ack) = packet.ack.filter(|_| filtered) else {
            return Waiting {
                ack: None,
                ..packet
            };
        };
        let before = self.last_ack.insert(packet.leg, ack);
        Waiting {
            is_plain_ack: packet.is_plain_ack && before != Some(ack),
            ..packet
        }
    }

    /// A packet enters service at once.
    pub fn pass_by(&mut self, packet: Waiting) {
        self.note(packet);
    }

    /// Adds a packet, and removes what it covers. Returns it if there is no space.
    pub fn push(&mut self, packet: Waiting, dropped: &mut Dropped) -> Option<Waiting> {
        let packet = self.note(packet);
        if let Some(ack) = packet.ack {
            let covered = |other: &Waiting| {
                other.is_plain_ack
                    && other.leg == packet.leg
                    && other.ack.is_some_and(|own| own < ack)
            };
            let before = dropped.len();
            let covered: Vec<Waiting> = self
                .waiting
                .iter()
                .filter(|other| covered(other))
                .copied()
                .collect();
            dropped.extend(
                covered
                    .iter()
                    .map(|other| (other.handle, DropCause::Filtered)),
            );
            if dropped.len() > before {
                let kept: Vec<Waiting> = self
                    .waiting
                    .iter()
                    .filter(|other| !covered.contains(other))
                    .copied()
                    .collect();
                self.waiting = Ring::default();
                for other in kept {
                    self.waiting.push_back(other);
                }
                let bytes = covered.iter().map(|other| u64::from(other.ip_bytes));
                self.waiting_bytes -= bytes.sum::<u64>();
            }
        }
        let bytes = self.waiting_bytes + u64::from(packet.ip_bytes);
        if self.waiting.len() >= self.limit_pkts || bytes > self.limit_bytes {
            return Some(packet);
        }
        self.waiting_bytes = bytes;
        self.waiting.push_back(packet);
        None
    }

    /// The oldest packet.
    pub fn pop(&mut self) -> Option<Waiting> {
        let packet = self.waiting.pop_front()?;
        self.waiting_bytes -= u64::from(packet.ip_bytes);
        Some(packet)
    }

    /// The packets in the queue.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> + '_ {
        self.waiting.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DropTailConfig;

    fn queue(limit_pkts: u32) -> AckFilter {
        AckFilter::new(&AckFilterConfig {
            queue: DropTailConfig {
                limit_pkts: Some(limit_pkts),
                limit_bytes: None,
            },
            legs: std::iter::once(3..5).collect(),
        })
    }

    fn ack(leg: u16, ack: u64) -> Waiting {
        Waiting {
            leg,
            ack: Some(ack),
            is_plain_ack: true,
            ip_bytes: 52,
            ..Waiting::default()
        }
    }

    fn left(queue: &AckFilter) -> Vec<(u16, Option<u64>)> {
        queue
            .iter()
            .map(|packet| (packet.leg, packet.ack))
            .collect()
    }

    #[test]
    fn a_newer_ack_of_the_connection_removes_those_that_it_covers() {
        let (mut queue, mut dropped) = (queue(10), Dropped::new());
        for packet in [
            ack(3, 100),
            ack(4, 100),
            ack(3, 200),
            ack(7, 100),
            ack(7, 200),
            ack(3, 300),
        ] {
            assert_eq!(queue.push(packet, &mut dropped), None);
        }
        assert_eq!(
            left(&queue),
            [(4, Some(100)), (7, None), (7, None), (3, Some(300))]
        );
        assert_eq!(dropped.len(), 2);
        assert!(
            dropped
                .iter()
                .all(|(_, cause)| *cause == DropCause::Filtered)
        );
    }

    #[test]
    fn duplicates_and_blocks_stay_and_space_is_made_before_the_limit_is_looked_at() {
        let (mut queue, mut dropped) = (queue(4), Dropped::new());
        let sack = Waiting {
            is_plain_ack: false,
            ..ack(3, 200)
        };
        for packet in [
            ack(3, 100),
            ack(3, 100),
            sack,
            ack(3, 250),
            ack(3, 300),
            ack(3, 400),
        ] {
            assert_eq!(queue.push(packet, &mut dropped), None);
        }
        // The first 100, the 250 and the 300 are covered; the second 100 is a duplicate ACK.
        assert_eq!(
            left(&queue),
            [(3, Some(100)), (3, Some(200)), (3, Some(400))]
        );
        assert_eq!(queue.push(ack(9, 1), &mut dropped), None);
        assert!(queue.push(ack(9, 2), &mut dropped).is_some());
        assert_eq!(queue.pop().and_then(|packet| packet.ack), Some(100));
    }
}

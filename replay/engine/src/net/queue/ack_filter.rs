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
    connections: HashMap<u16, Connection>,
}

/// What the queue knows of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// The octet that its last ACK awaited.
    last_ack: Option<u64>,
    /// Its ACKs that wait and may be removed.
    removable: u32,
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
            connections: HashMap::new(),
        }
    }

    /// A packet as it waits, if it does: a duplicate ACK stays.
    fn seen(&self, packet: Waiting) -> Waiting {
        let filtered = self.legs.iter().any(|legs| legs.contains(&packet.leg));
        let ack = packet.ack.filter(|_| filtered);
        let before = self.of(packet.leg).last_ack;
        Waiting {
            ack,
            is_plain_ack: packet.is_plain_ack && ack.is_some() && before != ack,
            ..packet
        }
    }

    fn of(&self, leg: u16) -> Connection {
        self.connections.get(&leg).copied().unwrap_or_default()
    }

    /// A packet enters service at once.
    pub fn pass_by(&mut self, packet: Waiting) {
        if let ack @ Some(_) = self.seen(packet).ack {
            self.connections.entry(packet.leg).or_default().last_ack = ack;
        }
    }

    /// Adds a packet, and removes what it covers. Returns it if there is no space: then nothing changes.
    pub fn push(&mut self, packet: Waiting, dropped: &mut Dropped) -> Option<Waiting> {
        let packet = self.seen(packet);
        let (pkts, bytes) = self.covered(&packet);
        let waiting_bytes = self.waiting_bytes - bytes + u64::from(packet.ip_bytes);
        if self.waiting.len() - pkts >= self.limit_pkts || waiting_bytes > self.limit_bytes {
            return Some(packet);
        }
        if pkts > 0 {
            self.remove_covered(&packet, dropped);
        }
        if packet.ack.is_some() {
            let connection = self.connections.entry(packet.leg).or_default();
            connection.last_ack = packet.ack;
            connection.removable -= pkts as u32;
            connection.removable += u32::from(packet.is_plain_ack);
        }
        self.waiting_bytes = waiting_bytes;
        self.waiting.push_back(packet);
        None
    }

    /// Number of waiting packets that `newest` covers, and their octets.
    fn covered(&self, newest: &Waiting) -> (usize, u64) {
        if newest.ack.is_none() || self.of(newest.leg).removable == 0 {
            return (0, 0);
        }
        let covered = self.waiting.iter().filter(|other| covers(newest, other));
        covered.fold((0, 0), |(pkts, bytes), other| {
            (pkts + 1, bytes + u64::from(other.ip_bytes))
        })
    }

    /// Each packet that stays goes once around the ring.
    fn remove_covered(&mut self, newest: &Waiting, dropped: &mut Dropped) {
        for _ in 0..self.waiting.len() {
            let Some(other) = self.waiting.pop_front() else {
                return;
            };
            if covers(newest, &other) {
                dropped.push((other.handle, DropCause::Filtered));
            } else {
                self.waiting.push_back(other);
            }
        }
    }

    /// The oldest packet.
    pub fn pop(&mut self) -> Option<Waiting> {
        let packet = self.waiting.pop_front()?;
        self.waiting_bytes -= u64::from(packet.ip_bytes);
        if packet.is_plain_ack {
            let connection = self.connections.entry(packet.leg).or_default();
            connection.removable -= 1;
        }
        Some(packet)
    }

    /// The packets in the queue.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> + '_ {
        self.waiting.iter()
    }
}

/// Whether `newest` says all that `other` does.
fn covers(newest: &Waiting, other: &Waiting) -> bool {
    other.is_plain_ack && other.leg == newest.leg && other.ack < newest.ack
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

    #[test]
    fn an_ack_for_which_there_is_no_space_removes_and_says_nothing() {
        let (mut queue, mut dropped) = (queue(10), Dropped::new());
        queue.limit_bytes = 150;
        for packet in [ack(3, 100), ack(9, 1)] {
            assert_eq!(queue.push(packet, &mut dropped), None);
        }
        let large = Waiting {
            is_plain_ack: false,
            ip_bytes: 100,
            ..ack(3, 200)
        };
        assert!(queue.push(large, &mut dropped).is_some());
        assert_eq!(left(&queue), [(3, Some(100)), (9, None)]);
        // Nobody has seen 200: this one is no duplicate ACK, and the next one covers it.
        for packet in [ack(3, 200), ack(3, 300)] {
            assert_eq!(queue.push(packet, &mut dropped), None);
        }
        assert_eq!(left(&queue), [(9, None), (3, Some(300))]);
        assert_eq!((dropped.len(), queue.of(3).removable), (2, 1));
        while queue.pop().is_some() {}
        assert_eq!((queue.waiting_bytes, queue.of(3).removable), (0, 0));
    }
}

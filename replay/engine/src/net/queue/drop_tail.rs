//! Drop-tail: an arriving packet is dropped if the queue is full. The limit is in packets, on the fast path of nearly
//! all packets, or in octets.
//!
//! Does not depend on when a packet is served.

use super::backlog::Backlog;
use super::{Arrival, Verdict};
use crate::net::link::DropCause;
use crate::sim::time::Nanos;

/// Drop-tail in packets.
///
/// With a limit of L, there is space for one more packet when the departure before the latest L ones is past. The ring
/// has the latest L + 1 departures; the next packet replaces the oldest one.
pub struct DropTail {
    /// Ends of service, fewer than L + 1 at first: the ring grows while its oldest entry is not past.
    departures: Vec<Nanos>,
    /// Index of the oldest entry.
    oldest: usize,
    /// L + 1.
    max_len: usize,
}

/// Initial size of the ring.
const INITIAL_LEN: usize = 16;

impl DropTail {
    /// An empty queue with a limit of `limit_pkts`.
    pub fn new(limit_pkts: u32) -> Self {
        let max_len = limit_pkts as usize + 1;
        Self {
            departures: vec![0; max_len.min(INITIAL_LEN)],
            oldest: 0,
            max_len,
        }
    }

    /// Adds at `now` a packet whose service ends at `departure`, if there is space without growing the ring. Returns
    /// whether it did.
    #[inline]
    pub fn joins_fast(&mut self, now: Nanos, departure: Nanos) -> bool {
        let ring = self.departures.as_mut_slice();
        let Some(oldest) = ring.get_mut(self.oldest) else {
            return false;
        };
        if *oldest > now {
            return false;
        }
        *oldest = departure;
        let next = self.oldest + 1;
        self.oldest = if next == ring.len() { 0 } else { next };
        true
    }

    /// Whether there is space for one more packet at `now`; the packet in service does not count.
    pub fn has_space(&mut self, now: Nanos) -> bool {
        self.departures[self.oldest] <= now || self.grow()
    }

    /// Adds a packet whose service ends at `departure`; there must be space.
    pub fn join(&mut self, departure: Nanos) {
        self.departures[self.oldest] = departure;
        self.oldest = (self.oldest + 1) % self.departures.len();
    }

    /// Grows the ring, if the limit allows it.
    #[cold]
    fn grow(&mut self) -> bool {
        let len = self.departures.len();
        if len == self.max_len {
            return false;
        }
        let mut departures = vec![0; len.min(self.max_len - len)];
        departures.extend_from_slice(&self.departures[self.oldest..]);
        departures.extend_from_slice(&self.departures[..self.oldest]);
        self.departures = departures;
        self.oldest = 0;
        true
    }
}

/// Drop-tail in octets.
pub struct ByteLimit {
    limit_bytes: u64,
}

impl ByteLimit {
    /// A limit of `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes }
    }

    /// Whether a packet is admitted: it is served immediately, or there is space.
    pub fn judge(&self, backlog: &Backlog, arrival: &Arrival) -> Verdict {
        let fits = backlog.waiting_bytes() + u64::from(arrival.ip_bytes) <= self.limit_bytes;
        if fits || !backlog.is_busy() {
            Verdict::Admit
        } else {
            Verdict::Refuse(DropCause::Queue)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(ip_bytes: u32) -> Arrival {
        Arrival {
            now: 0,
            busy_until: 0,
            ip_bytes,
            ect: false,
        }
    }

    #[test]
    fn the_octets_in_the_queue_stay_within_the_limit() {
        let limit = ByteLimit::new(3000);
        let mut backlog = Backlog::default();
        // Idle: even a packet larger than the limit is served immediately.
        assert_eq!(limit.judge(&backlog, &arrival(4000)), Verdict::Admit);
        backlog.join(4000, 10);
        for (bytes, departure) in [(1500, 20), (1400, 30)] {
            assert_eq!(limit.judge(&backlog, &arrival(bytes)), Verdict::Admit);
            backlog.join(bytes, departure);
        }
        assert_eq!(backlog.waiting_bytes(), 2900);
        let full = Verdict::Refuse(DropCause::Queue);
        assert_eq!(limit.judge(&backlog, &arrival(101)), full);
        assert_eq!(limit.judge(&backlog, &arrival(100)), Verdict::Admit);
        // At 10 the first packet of the queue enters service.
        backlog.leave(10);
        assert_eq!(backlog.waiting_bytes(), 1400);
        assert_eq!(limit.judge(&backlog, &arrival(1600)), Verdict::Admit);
        assert_eq!(limit.judge(&backlog, &arrival(1601)), full);
    }

    #[test]
    fn with_a_limit_of_zero_one_packet_is_served() {
        let mut queue = DropTail::new(0);
        assert!(queue.has_space(0));
        queue.join(12);
        assert!(!queue.has_space(11));
        assert!(queue.has_space(12));
    }
}

//! Drop-tail: what comes joins the end of the queue unless the queue is full. In packets (the path that nearly all
//! packets of all runs take, hence the shortest) or in octets.
//!
//! Does not depend on when a packet is served.

use super::backlog::Backlog;
use super::{Arrival, Verdict};
use crate::net::link::DropCause;
use crate::sim::time::Nanos;

/// Drop-tail in packets.
///
/// With a limit of L, one more fits when the departure before the last L ones is past: of the latest L + 1 departures,
/// in a ring, the oldest decides, and the packet that joins takes its place.
pub struct DropTail {
    /// Ends of service, at first fewer than L + 1: the ring grows while its oldest one is not past.
    departures: Vec<Nanos>,
    /// Place of the oldest.
    oldest: usize,
    /// L + 1.
    max: usize,
}

/// Places of a new ring.
const FEW: usize = 16;

impl DropTail {
    /// An empty queue in which `limit_pkts` may wait.
    pub fn new(limit_pkts: u32) -> Self {
        let max = limit_pkts as usize + 1;
        Self {
            departures: vec![0; max.min(FEW)],
            oldest: 0,
            max,
        }
    }

    /// A packet joins at `now` whose service ends at `departure`, if it surely fits, without a look at whether the ring
    /// may grow. Says whether it did.
    #[inline]
    pub fn joins_fast(&mut self, now: Nanos, departure: Nanos) -> bool {
        let places = self.departures.as_mut_slice();
        let Some(oldest) = places.get_mut(self.oldest) else {
            return false;
        };
        if *oldest > now {
            return false;
        }
        *oldest = departure;
        let next = self.oldest + 1;
        self.oldest = if next == places.len() { 0 } else { next };
        true
    }

    /// Whether one more fits at `now`; the packet in service does not count.
    pub fn has_room(&mut self, now: Nanos) -> bool {
        self.departures[self.oldest] <= now || self.grow()
    }

    /// A packet joins, for which there is room, whose service ends at `departure`.
    pub fn join(&mut self, departure: Nanos) {
        self.departures[self.oldest] = departure;
        self.oldest = (self.oldest + 1) % self.departures.len();
    }

    /// Makes places for more departures, if the limit allows any.
    #[cold]
    fn grow(&mut self) -> bool {
        let few = self.departures.len();
        if few == self.max {
            return false;
        }
        let mut departures = vec![0; few.min(self.max - few)];
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
    /// At most `limit_bytes` may wait.
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes }
    }

    /// Whether a packet may join: it is served at once, or fits.
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
    fn octets_that_wait_stay_within_the_limit_to_the_octet() {
        let limit = ByteLimit::new(3000);
        let mut backlog = Backlog::default();
        // Idle: even what is larger than the limit is served at once.
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
        // At 10 the first of those that wait goes into service.
        backlog.leave(10);
        assert_eq!(backlog.waiting_bytes(), 1400);
        assert_eq!(limit.judge(&backlog, &arrival(1600)), Verdict::Admit);
        assert_eq!(limit.judge(&backlog, &arrival(1601)), full);
    }

    #[test]
    fn a_queue_for_no_packet_still_serves_one() {
        let mut queue = DropTail::new(0);
        assert!(queue.has_room(0));
        queue.join(12);
        assert!(!queue.has_room(11));
        assert!(queue.has_room(12));
    }
}

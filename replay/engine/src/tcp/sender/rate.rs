//! Delivery rates (draft-cheng-iccrg-delivery-rate-estimation-02, as in Linux): the state noted with each segment when it
//! is sent, and the rate sample of its ACK. Only for controllers that model the path.
//!
//! Does not depend on what a controller makes of a rate.

use crate::cc::{LostSegment, RateSample};
use crate::sim::time::Nanos;
use crate::tcp::scoreboard::Latest;

/// What a segment knew when it was last sent (draft §3.2).
#[derive(Clone, Copy, Debug, Default)]
struct Transmission {
    /// Segments delivered by then, …
    delivered: u64,
    /// … when the last of them was, …
    delivered_at: Nanos,
    /// … and when the newest of them had been sent.
    first_sent_at: Nanos,
    app_limited: bool,
    /// Segments in the network, itself included, and ever marked lost.
    flight: u32,
    lost_total: u64,
    /// Segments delivered by then whose acknowledgement echoed a congestion mark.
    marked: u64,
}

/// The scoreboard's counts when a segment is sent, the segment included.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    /// Segments outstanding.
    pub outstanding: u32,
    /// Segments in the network.
    pub flight: u32,
    /// Segments ever marked lost.
    pub lost_total: u64,
}

/// State of one connection. Segment `number` keeps its transmission in slot `number & mask`.
#[derive(Clone, Debug)]
pub struct RateSampler {
    slots: Vec<Transmission>,
    delivered: u64,
    delivered_at: Nanos,
    first_sent_at: Nanos,
    marked: u64,
    /// Segments that are sent count as limited by the application until more than this have been delivered; 0: they do not.
    app_limited_until: u64,
}

impl RateSampler {
    /// A connection that has delivered its SYN.
    pub fn new() -> Self {
        Self {
            slots: vec![Transmission::default(); 64],
            delivered: 1,
            delivered_at: 0,
            first_sent_at: 0,
            marked: 0,
            app_limited_until: 1,
        }
    }

    /// Segments delivered, the SYN included.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether the application had nothing to send, and that still shows.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    /// Draft §3.4: nothing is left to send while `flight` segments are in the network.
    #[inline]
    pub fn limit_by_application(&mut self, flight: u32) {
        self.app_limited_until = self.delivered + u64::from(flight);
    }

    /// The acknowledgement of `delivered` segments, which `on_ack` is about to take, echoes a congestion mark.
    pub fn note_marked(&mut self, delivered: u32) {
        self.marked += u64::from(delivered);
    }

    /// What a controller learns about segment `number`, just marked lost as the `lost_total`-th.
    pub fn lost_segment(&self, number: u64, lost_total: u64) -> LostSegment {
        let sent = self.slots[number as usize & (self.slots.len() - 1)];
        LostSegment {
            tx_in_flight: sent.flight,
            lost: lost_total.saturating_sub(sent.lost_total),
            app_limited: sent.app_limited,
            delivered_total: self.delivered,
        }
    }

    /// Draft §3.2: segment `number` leaves now, into `network`; `first` is the first outstanding one.
    #[inline]
    pub fn on_send(&mut self, number: u64, first: u64, network: Network, now: Nanos) {
        if (number - first) as usize >= self.slots.len() {
            return self.on_send_beyond(number, first, network, now);
        }
        if network.outstanding == 1 {
            // Nothing was in flight: the intervals begin here.
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        let mask = self.slots.len() - 1;
        self.slots[number as usize & mask] = Transmission {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.is_app_limited(),
            flight: network.flight,
            lost_total: network.lost_total,
            marked: self.marked,
        };
    }

    /// The same after making room.
    #[cold]
    #[inline(never)]
    fn on_send_beyond(&mut self, number: u64, first: u64, network: Network, now: Nanos) {
        self.double(number, first);
        self.on_send(number, first, network, now);
    }

    fn double(&mut self, number: u64, first: u64) {
        let old = self.slots.len();
        let mut slots = vec![Transmission::default(); 2 * old];
        for kept in first..number {
            slots[kept as usize & (2 * old - 1)] = self.slots[kept as usize & (old - 1)];
        }
        self.slots = slots;
    }

    /// Draft §3.3: an ACK delivers `delivered` segments, the newest of them `newest`. There is no sample above one flight per
    /// `min_rtt`.
    #[inline(always)]
    pub fn on_ack(
        &mut self,
        now: Nanos,
        delivered: u32,
        newest: Option<Latest>,
        min_rtt: Option<Nanos>,
    ) -> Option<RateSample> {
        self.delivered += u64::from(delivered);
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if delivered > 0 {
            self.delivered_at = now;
        }
        let newest = newest?;
        let sent = &self.slots[newest.number as usize & (self.slots.len() - 1)];
        self.first_sent_at = newest.sent_at;
        let send_interval = newest.sent_at.saturating_sub(sent.first_sent_at);
        let ack_interval = now.saturating_sub(sent.delivered_at);
        let interval = send_interval.max(ack_interval);
        if interval == 0 || min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - sent.delivered,
            interval,
            prior_delivered: sent.delivered,
            app_limited: sent.app_limited,
            tx_in_flight: sent.flight,
            prior_lost: sent.lost_total,
            marked: self.marked - sent.marked,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    const MS: Nanos = MILLISECOND;

    fn network(outstanding: u32) -> Network {
        Network {
            outstanding,
            flight: outstanding,
            lost_total: 0,
        }
    }

    fn newest(number: u64, sent_ms: u64) -> Latest {
        let sent_at = sent_ms * MS;
        Latest {
            sent_at,
            end: 1 + number,
            number,
            retransmission: false,
        }
    }

    /// A sampler that has sent segments 0, 1, … at `sent_ms`.
    fn sender(sent_ms: &[u64]) -> RateSampler {
        let mut rates = RateSampler::new();
        for (number, &at) in sent_ms.iter().enumerate() {
            rates.on_send(number as u64, 0, network(number as u32 + 1), at * MS);
        }
        rates
    }

    #[test]
    fn the_rate_is_what_was_delivered_since_the_newest_was_sent() {
        let mut rates = sender(&[0, 10, 20, 30]);
        let first = rates.on_ack(100 * MS, 1, Some(newest(0, 0)), None);
        let expected = RateSample {
            delivered: 1,
            interval: 100 * MS,
            prior_delivered: 1,
            app_limited: true,
            tx_in_flight: 1,
            ..RateSample::default()
        };
        assert_eq!(first, Some(expected));
        rates.on_send(4, 1, network(4), 100 * MS);
        rates.on_ack(110 * MS, 1, Some(newest(1, 10)), None);
        rates.on_ack(130 * MS, 2, Some(newest(3, 30)), None);
        let last = rates.on_ack(200 * MS, 1, Some(newest(4, 100)), None);
        let expected = RateSample {
            delivered: 4,
            interval: 100 * MS,
            prior_delivered: 2,
            app_limited: false,
            tx_in_flight: 4,
            ..RateSample::default()
        };
        assert_eq!(last, Some(expected));
    }

    #[test]
    fn acks_that_come_at_once_do_not_outrun_the_sending() {
        let mut rates = sender(&[0, 50, 100, 150]);
        rates.on_ack(200 * MS, 1, Some(newest(0, 0)), None);
        // Three ACKs in one: sent over 150 ms, acknowledged in 200 since the first left.
        let sample = rates.on_ack(200 * MS, 3, Some(newest(3, 150)), None);
        assert_eq!(
            sample.map(|s| (s.delivered, s.interval)),
            Some((4, 200 * MS))
        );
        let mut rates = sender(&[0]);
        rates.on_ack(100 * MS, 1, Some(newest(0, 0)), None);
        rates.on_send(1, 1, network(1), 300 * MS);
        rates.on_send(2, 1, network(2), 400 * MS);
        let sample = rates.on_ack(390 * MS, 1, Some(newest(2, 400)), None);
        assert_eq!(
            sample.map(|s| s.interval),
            Some(100 * MS),
            "the send interval is the longer one"
        );
    }

    #[test]
    fn a_rate_above_a_flight_per_least_rtt_is_none() {
        let sample = |min| sender(&[0]).on_ack(100 * MS, 1, Some(newest(0, 0)), Some(min * MS));
        assert!(sample(101).is_none());
        assert!(sample(100).is_some());
        assert!(sender(&[0]).on_ack(100 * MS, 0, None, None).is_none());
    }

    #[test]
    fn application_limits_show_until_what_was_in_flight_is_delivered() {
        let mut rates = sender(&[0, 1]);
        rates.limit_by_application(2);
        rates.on_send(2, 0, network(3), 2 * MS);
        rates.on_ack(100 * MS, 2, Some(newest(1, 1)), None);
        assert!(
            rates.is_app_limited(),
            "three delivered, SYN and two: up to here"
        );
        rates.on_send(3, 2, network(2), 101 * MS);
        let limited = rates.on_ack(102 * MS, 1, Some(newest(2, 2)), None);
        assert!(limited.is_some_and(|sample| sample.app_limited));
        assert!(!rates.is_app_limited());
        rates.on_send(4, 3, network(2), 103 * MS);
        let free = rates.on_ack(203 * MS, 2, Some(newest(4, 103)), None);
        assert!(free.is_some_and(|sample| !sample.app_limited));
    }

    #[test]
    fn segments_keep_what_they_knew_when_the_ring_grows() {
        let mut rates = sender(&[0]);
        rates.on_ack(10 * MS, 1, Some(newest(0, 0)), None);
        for number in 1..200 {
            rates.on_send(number, 1, network(number as u32), 20 * MS);
        }
        rates.on_ack(30 * MS, 1, Some(newest(1, 20)), None);
        let sample = rates.on_ack(40 * MS, 1, Some(newest(2, 20)), None);
        assert_eq!(
            sample.map(|s| (s.delivered, s.interval)),
            Some((2, 20 * MS))
        );
    }

    #[test]
    fn a_segment_remembers_what_was_in_flight_lost_and_marked() {
        let mut rates = sender(&[0, 1, 2]);
        rates.note_marked(1);
        rates.on_ack(100 * MS, 1, Some(newest(0, 0)), None);
        let later = Network {
            outstanding: 3,
            flight: 2,
            lost_total: 5,
        };
        rates.on_send(3, 1, later, 100 * MS);
        rates.note_marked(2);
        let before = rates.on_ack(110 * MS, 2, Some(newest(2, 2)), None);
        assert_eq!(
            before.map(|s| (s.tx_in_flight, s.prior_lost, s.marked)),
            Some((3, 0, 3))
        );
        let after = rates.on_ack(200 * MS, 1, Some(newest(3, 100)), None);
        assert_eq!(
            after.map(|s| (s.tx_in_flight, s.prior_lost, s.marked)),
            Some((2, 5, 2)),
            "one mark had come before it left"
        );
        let lost = rates.lost_segment(3, 7);
        let expected = LostSegment {
            tx_in_flight: 2,
            lost: 2,
            app_limited: false,
            delivered_total: 5,
        };
        assert_eq!(lost, expected);
    }
}

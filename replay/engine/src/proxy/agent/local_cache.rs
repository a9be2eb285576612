//! Segments that an agent keeps until the receiver acknowledges them, with the round-trip time and the timer of the way
//! between the two.
//!
//! Does not depend on what the agent does with acknowledgements. Read RFC 6298 §2 and Balakrishnan et al. 1995 §3 first.

use std::collections::VecDeque;
use std::ops::Range;

use crate::sim::time::{MILLISECOND, NEVER, Nanos, SECOND};
use crate::tcp::segment::Segment;

/// ns-3's and ns-2's snoop module (`SNOOP_MIN_TIMO`): minimum of the local timeout.
const MIN_TIMEOUT: Nanos = 100 * MILLISECOND;
/// Timeout before the first sample (RFC 6298 §2.1).
const INITIAL_TIMEOUT: Nanos = SECOND;
/// RFC 6298 §2.5.
const MAX_TIMEOUT: Nanos = 60 * SECOND;

/// RFC 9293 §3.8.3: the least time after which a host gives up.
const R2: Nanos = 100 * SECOND;

/// A segment that is kept.
#[derive(Clone, Copy, Debug)]
pub struct Cached {
    /// The segment as it came.
    pub segment: Segment,
    sent_at: Nanos,
    /// It has left more than once: its acknowledgement is no sample.
    again: bool,
    /// It was lost before it came here, and the sender has sent it again.
    pub by_sender: bool,
}

/// The segments that are kept, in the order of the stream.
#[derive(Debug)]
pub struct LocalCache {
    segments: VecDeque<Cached>,
    capacity_bytes: u64,
    stored_bytes: u64,
    srtt: Option<(Nanos, Nanos)>,
    backoff: u32,
    /// When the timer of the oldest segment was set.
    armed_at: Nanos,
    /// When a segment was acknowledged, or came into the empty cache.
    progress_at: Nanos,
}

impl LocalCache {
    /// An empty cache.
    pub fn new(capacity_bytes: u64) -> Self {
        Self {
            segments: VecDeque::new(),
            capacity_bytes,
            stored_bytes: 0,
            srtt: None,
            backoff: 0,
            armed_at: 0,
            progress_at: 0,
        }
    }

    /// Octets that are kept.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// Number of segments that are kept.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// The oldest segment.
    pub fn first(&self) -> Option<&Cached> {
        self.segments.front()
    }

    /// The oldest segment, if it holds `octet`.
    pub fn first_with(&self, octet: u64) -> Option<&Cached> {
        self.first()
            .filter(|first| (first.segment.seq..first.segment.end()).contains(&octet))
    }

    /// Octet after the last one that is kept.
    pub fn end(&self) -> u64 {
        self.segments.back().map_or(0, |last| last.segment.end())
    }

    /// Whether a segment that begins at `seq` is kept.
    pub fn holds(&self, seq: u64) -> bool {
        let at = self.segments.partition_point(|kept| kept.segment.seq < seq);
        self.segments
            .get(at)
            .is_some_and(|kept| kept.segment.seq == seq)
    }

    /// Keeps a segment that leaves now, unless there is no room or it is kept already. Returns whether it is kept.
    ///
    /// A sender may send again what it sent in small segments as a larger one: then the larger one is kept.
    pub fn insert(&mut self, segment: &Segment, by_sender: bool, now: Nanos) -> bool {
        let at = self
            .segments
            .partition_point(|kept| kept.segment.seq < segment.seq);
        let same = (self.segments.get_mut(at)).filter(|kept| kept.segment.seq == segment.seq);
        let smaller = match same {
            Some(kept) if kept.segment.payload_bytes >= segment.payload_bytes => {
                (kept.again, kept.sent_at) = (true, now);
                return true;
            }
            same => same.map(|kept| kept.by_sender),
        };
        let covered = self.covered(at, segment);
        let freed: u64 = (self.segments.range(covered.clone()))
            .map(|kept| u64::from(kept.segment.payload_bytes))
            .sum();
        let stored_bytes = self.stored_bytes - freed + u64::from(segment.payload_bytes);
        if stored_bytes > self.capacity_bytes {
            return false;
        }
        if self.segments.is_empty() {
            (self.armed_at, self.progress_at) = (now, now);
        }
        self.segments.drain(covered);
        let cached = Cached {
            segment: *segment,
            sent_at: now,
            again: by_sender || smaller.is_some(),
            by_sender: smaller.unwrap_or(by_sender),
        };
        self.segments.insert(at, cached);
        self.stored_bytes = stored_bytes;
        true
    }

    /// Indices from `at` on of the segments that `segment` covers.
    fn covered(&self, at: usize, segment: &Segment) -> Range<usize> {
        let covered = (self.segments.range(at..))
            .take_while(|kept| kept.segment.end() <= segment.end())
            .count();
        at..at + covered
    }

    /// The receiver has all octets below `ack`.
    pub fn acknowledge(&mut self, ack: u64, now: Nanos) {
        let mut newest = None;
        while let Some(first) = self
            .segments
            .front()
            .filter(|first| first.segment.end() <= ack)
        {
            self.stored_bytes -= u64::from(first.segment.payload_bytes);
            newest = Some(*first);
            self.segments.pop_front();
        }
        let Some(newest) = newest else {
            return;
        };
        if !newest.again {
            self.sample(now - newest.sent_at);
        }
        self.backoff = 0;
        (self.armed_at, self.progress_at) = (now, now);
    }

    /// RFC 6298 §2.2 and §2.3.
    fn sample(&mut self, rtt: Nanos) {
        self.srtt = Some(self.srtt.map_or((rtt, rtt / 2), |(srtt, rttvar)| {
            ((7 * srtt + rtt) / 8, (3 * rttvar + srtt.abs_diff(rtt)) / 4)
        }));
    }

    fn timeout(&self) -> Nanos {
        let timeout = self.srtt.map_or(INITIAL_TIMEOUT, |(srtt, rttvar)| {
            (srtt + 4 * rttvar).max(MIN_TIMEOUT)
        });
        (timeout << self.backoff.min(16)).min(MAX_TIMEOUT)
    }

    /// When the oldest segment is to be sent again.
    pub fn deadline(&self) -> Nanos {
        if self.segments.is_empty() {
            NEVER
        } else {
            self.armed_at + self.timeout()
        }
    }

    /// The timer has fired.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Whether nothing that is kept has been acknowledged for as long as a host tries (R2).
    pub fn is_hopeless(&self, now: Nanos) -> bool {
        now - self.progress_at >= R2
    }

    /// The oldest segment leaves again now.
    pub fn take_again(&mut self, now: Nanos) -> Option<Segment> {
        let first = self.segments.front_mut()?;
        (first.again, first.sent_at) = (true, now);
        self.armed_at = now;
        Some(first.segment)
    }

    /// All that is kept is lost.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.stored_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::segment::Direction;

    fn segment(seq: u64, payload_bytes: u16) -> Segment {
        Segment {
            seq,
            payload_bytes,
            ..Segment::new(0, Direction::Forward)
        }
    }

    #[test]
    fn a_larger_segment_takes_the_place_of_the_small_one_that_begins_where_it_does() {
        let mut cache = LocalCache::new(1500);
        assert!(cache.insert(&segment(1, 400), false, 0));
        assert!(cache.insert(&segment(1, 1000), false, 5));
        // The small one again, and one that is too large.
        assert!(cache.insert(&segment(1, 400), false, 6));
        assert!(!cache.insert(&segment(1, 1501), false, 7));
        assert_eq!(
            (cache.len(), cache.stored_bytes(), cache.end()),
            (1, 1000, 1001)
        );
        cache.acknowledge(401, 8);
        assert!(cache.first_with(401).is_some() && cache.first_with(1001).is_none());
        cache.acknowledge(1001, 9);
        assert_eq!((cache.len(), cache.stored_bytes()), (0, 0));
    }

    #[test]
    fn a_larger_segment_takes_the_place_of_all_that_it_covers() {
        let mut cache = LocalCache::new(1400);
        for seq in [1, 401, 801] {
            assert!(cache.insert(&segment(seq, 400), false, 0));
        }
        // It covers two of the three, which gives room for it.
        assert!(cache.insert(&segment(1, 1000), false, 1));
        assert_eq!(
            (cache.len(), cache.stored_bytes(), cache.end()),
            (2, 1400, 1201)
        );
        assert!(!cache.holds(401) && cache.holds(801));
        assert!(cache.insert(&segment(1, 1200), false, 2));
        assert_eq!(
            (cache.len(), cache.stored_bytes(), cache.end()),
            (1, 1200, 1201)
        );
    }
}

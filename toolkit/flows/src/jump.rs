//! Without SACK: what a jump of the cumulative ACK says about the segments below it.
//!
//! A receiver answers each segment that arrives out of order with a duplicate ACK (RFC 5681 §4.2). When the hole below
//! is filled, the ACK jumps over these segments: they had arrived before, so what was sent of them after the segment
//! that filled the hole is spurious. Where a retransmission of them could have arrived by then, too, as after a
//! timeout, the ACK does not show which did.
//!
//! Duplicate ACKs that no retransmission of older octets can have caused show that segments wait above the oldest
//! outstanding one, so this one is missing. If the ACK of it covers fewer segments than wait, the next hole follows
//! (RFC 6582 §3.2: a partial ACK), so the segment was lost, not reordered. On a path that became shorter, originals that
//! others overtook fill holes one by one, too, so an ACK that comes sooner than the RTT allows leaves it open.
//!
//! With timestamps, the ACK also names what filled the hole (RFC 7323 §4.3). What fills a gap is acknowledged at once
//! (RFC 5681 §4.2), so what was sent later than that, with a later timestamp, was not what arrived.

use crate::scoreboard::{Arrival, Transmission};

/// Maximum number of segments that an ACK covers if none of them filled a gap: it is sent at least for every second
/// segment (RFC 5681 §4.2).
///
/// Deviation: a receiver that merges segments before TCP processes them (GRO, LRO) acknowledges all of them at once.
/// Such an ACK counts as one that fills a gap if a duplicate ACK came before it that no segment above a gap caused.
const MAX_DELAYED_SEGMENTS: i64 = 2;

/// The segments that wait at the receiver for a hole to be filled, counted by duplicate ACKs.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct QueuedSegments {
    count: u32,
    /// Spurious retransmissions that will cause duplicate ACKs too, and the record of the last one.
    expected_duplicates: u32,
    last_spurious: u64,
    /// Retransmissions that may cause duplicate ACKs, and the record of the last one.
    possible_duplicates: u32,
    last_possible: u64,
    /// Duplicate ACKs counted in `count` that these may have caused.
    doubtful: u32,
}

impl QueuedSegments {
    /// Processes a duplicate ACK.
    pub fn on_dup_ack(&mut self) {
        if self.expected_duplicates > 0 {
            self.expected_duplicates -= 1;
        } else {
            self.count = self.count.saturating_add(1);
            if self.possible_duplicates > 0 {
                self.possible_duplicates -= 1;
                self.doubtful += 1;
            }
        }
    }

    /// Starts to process an ACK of `segments_n` more segments that echoes `ts_ecr`, after `dup_acks` duplicates of the
    /// one before. What was sent after `recent_ns` is not what it acknowledges.
    pub fn jump(
        &mut self,
        ts_ecr: Option<u32>,
        recent_ns: i64,
        segments_n: i64,
        dup_acks: u32,
    ) -> Jump<'_> {
        let waiting = self.count.saturating_sub(self.doubtful);
        Jump {
            ts_ecr,
            recent_ns,
            repairs: segments_n <= i64::from(waiting),
            fills_gap: waiting > 0 || (dup_acks > 0 && segments_n > MAX_DELAYED_SEGMENTS),
            filled_by: None,
            queued: self,
        }
    }

    /// Processes the end of a flight: nothing is outstanding, so that no segment waits. Spurious retransmissions may
    /// still be on their way.
    pub fn end_flight(&mut self) {
        (self.count, self.doubtful) = (0, 0);
    }
}

/// The ranges that one ACK acknowledges, in the order of sequence numbers.
#[derive(Debug)]
pub struct Jump<'a> {
    queued: &'a mut QueuedSegments,
    ts_ecr: Option<u32>,
    recent_ns: i64,
    /// The first range was missing, and the next hole follows.
    repairs: bool,
    /// Segments above the first range waited.
    fills_gap: bool,
    filled_by: Option<Transmission>,
}

/// How a range arrived.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Arrived {
    /// In order: it moved the left edge of the receiver's window, or it fills a hole.
    InOrder,
    /// A retransmission of it filled a hole: this many transmissions before were lost.
    Repaired(u32),
    /// A partial ACK acknowledges it (RFC 6582 §3.2), so that the original was lost, if what waited above is counted
    /// rightly.
    Partial,
    /// Out of order, before this transmission filled the hole below.
    Before(Transmission),
    /// Out of order, and whether the original or a retransmission did is not shown.
    Unclear,
}

impl Arrived {
    /// Notes that `lost` transmissions of a range that arrived in order were lost.
    pub fn set_lost(&mut self, lost: u32) {
        match self {
            Self::InOrder | Self::Partial => *self = Self::Repaired(lost),
            Self::Repaired(known) => *known = lost.max(*known),
            Self::Before(_) | Self::Unclear => {}
        }
    }
}

impl Jump<'_> {
    /// Processes the next range.
    pub fn range(&mut self, arrival: &Arrival<'_>) -> Arrived {
        let Some(filled_by) = self.filled_by else {
            self.filled_by = Some(arrival.last);
            let repaired = self.repairs && arrival.retransmissions_n > 0;
            self.expect(arrival, repaired);
            return if repaired {
                Arrived::Partial
            } else {
                Arrived::InOrder
            };
        };
        // RFC 7323 §4.3: the echo is that of the last segment in order, so it names a later one if an ACK was lost.
        let own_echo = self.ts_ecr.is_some()
            && arrival.last.ts_val == self.ts_ecr
            && filled_by.ts_val != self.ts_ecr;
        let waited = self.waited(arrival, &filled_by);
        if own_echo || (self.queued.count == 0 && !waited) {
            self.filled_by = Some(arrival.last);
            self.expect(arrival, false);
            return Arrived::InOrder;
        }
        self.queued.count = self.queued.count.saturating_sub(1);
        if !waited
            && arrival
                .first_retransmission
                .is_some_and(|first| first.t_ns <= self.recent_ns)
        {
            self.expect(arrival, false);
            return Arrived::Unclear;
        }
        if arrival.range.retransmissions.is_some() {
            self.queued.expected_duplicates += 1;
            self.queued.last_spurious = arrival.last.record;
        }
        Arrived::Before(filled_by)
    }

    /// Whether the ACK shows that a range had arrived before it was retransmitted: it echoes what filled the gap below,
    /// and that was sent earlier.
    fn waited(&self, arrival: &Arrival<'_>, filled_by: &Transmission) -> bool {
        let sent_later = |first: Transmission| {
            first.record > filled_by.record && first.ts_val != filled_by.ts_val
        };
        self.fills_gap
            && self.ts_ecr.is_some()
            && self.ts_ecr == filled_by.ts_val
            && arrival.first_retransmission.is_some_and(sent_later)
    }

    /// Counts the retransmissions of a range that may still arrive, or have arrived, as duplicates.
    fn expect(&mut self, arrival: &Arrival<'_>, repaired: bool) {
        let queued = &mut *self.queued;
        if arrival.retransmissions_n > 0 {
            let duplicates = arrival.retransmissions_n - u32::from(repaired);
            queued.possible_duplicates = queued.possible_duplicates.saturating_add(duplicates);
            queued.last_possible = arrival.last.record;
        } else if arrival.last.record > queued.last_possible {
            // It was sent after them, so they have arrived or were lost.
            queued.possible_duplicates = 0;
        }
    }
}

impl Drop for Jump<'_> {
    /// A segment sent after the last spurious retransmission was delivered, so that one has arrived or was lost.
    fn drop(&mut self) {
        if self
            .filled_by
            .is_some_and(|filled_by| filled_by.record > self.queued.last_spurious)
        {
            self.queued.expected_duplicates = 0;
        }
    }
}

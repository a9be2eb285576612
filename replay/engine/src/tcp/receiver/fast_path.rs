//! The receiver's fast path: data in order while the reassembly queue is empty.
//!
//! It replaces the slow path (`receive_any`) under a stated condition and leaves the same state. Where the condition does not
//! hold it changes nothing and returns false.

#![allow(
    clippy::inline_always,
    reason = "the short way is taken from one place, for nearly every segment; a hint is not heard"
)]

use super::ack_policy::InOrder;
use super::{Owed, Receiver, Space};
use crate::config::{Profile, StackParams};
use crate::sim::time::Nanos;
use crate::tcp::segment::{Segment, flags};

/// The way that ordinary segments take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FastPath {
    /// The short one, where its condition holds.
    Allowed,
    /// The short one, where its condition holds, but for dummy segments.
    ExceptProbes,
    /// Always the long one.
    Never,
}

impl FastPath {
    /// The short one where a segment in order means nothing but that its octets are there: no FIN, no marks, no reader that
    /// lags, no word of slow start, nothing that Linux does besides. That the window does not grow is for the caller to see.
    pub fn of(params: &StackParams, space: &Space) -> Self {
        let lags = matches!(
            space,
            Space::Application {
                octets_per_ns: Some(_),
                ..
            }
        );
        let plain = !lags
            && !params.close
            && !params.ecn
            && !params.delayed_ack_after_slow_start
            && params.profile != Profile::Linux;
        match (plain, params.low_priority_probes) {
            (true, None) => Self::Allowed,
            (true, Some(_)) => Self::ExceptProbes,
            (false, _) => Self::Never,
        }
    }

    #[inline(always)]
    fn may_take(self, segment: &Segment) -> bool {
        match self {
            Self::Allowed => true,
            Self::ExceptProbes => !segment.has(flags::DUMMY),
            Self::Never => false,
        }
    }
}

impl Receiver {
    /// The short way of nearly every segment: data in order while nothing is held. Leaves the
    /// state that `receive_any` would leave; where the condition does not hold it does nothing and says so.
    #[inline(always)]
    pub(super) fn receive_fast(&mut self, segment: &Segment, now: Nanos) -> bool {
        let end = segment.end();
        let in_order = segment.seq == self.rcv_nxt && end > segment.seq && end <= self.edge;
        if !in_order
            || !self.fast_path.may_take(segment)
            || !self.established
            || !self.held.is_empty()
        {
            return false;
        }
        self.counters.data_segments_in += 1;
        // RFC 7323 §4.3.
        if segment.seq <= self.last_ack_sent {
            self.ts_recent = segment.ts_val;
        }
        self.policy.note_arrival(self.window(), now);
        self.rcv_nxt = end;
        let unacknowledged = end - self.last_ack_sent;
        if self.policy.is_prompt(unacknowledged)
            || self.is_due_fast(unacknowledged, segment.ts_ecr, now)
        {
            self.owed = Owed::Acknowledgement;
        }
        true
    }

    /// Whether a segment that echoes `echo` is acknowledged now, by the policy's whole rule.
    #[inline(never)]
    fn is_due_fast(&mut self, unacknowledged: u64, echo: u32, now: Nanos) -> bool {
        let arrival = InOrder {
            unacknowledged,
            rcv_nxt: self.rcv_nxt,
            fills_gap: false,
            gap_left: false,
            edge_moves: true,
            // Asked for under the linux profile alone.
            pushed_and_read: false,
            slow_start: false,
            echo,
        };
        self.policy.in_order(&arrival, now)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::cc::ParamValues;
    use crate::cc::catalogue::Variant;
    use crate::config::StackOverrides;
    use crate::sim::time::MILLISECOND;
    use crate::tcp::segment::Direction;

    const SMSS: u64 = 1000;

    fn receiver(variant: Variant, delayed_ack: bool, buffer_bytes: u64) -> Receiver {
        let overrides = StackOverrides {
            handshake: Some(false),
            smss_bytes: Some(SMSS as u32),
            delayed_ack: Some(delayed_ack),
            dsack: Some(true),
            quickack_segments: Some(3),
            ..StackOverrides::default()
        };
        let space = Space::Application {
            buffer_bytes,
            octets_per_ns: None,
        };
        let params = StackParams::resolve(Profile::Rfc, &overrides);
        Receiver::new(0, &variant.fix(&params, &ParamValues::new()), space)
    }

    /// What `receiver` makes of segments with these numbers, lengths and flags, one every 30 ms: what it sends, and itself.
    fn outcome(receiver: &mut Receiver, segments: &[(u64, u16, u8)]) -> String {
        let mut out = String::new();
        let mut slot = Segment::new(0, Direction::Reverse);
        let mut next = 1;
        for (i, &(ahead, len, flags)) in segments.iter().enumerate() {
            let now = (i as u64 + 1) * 30 * MILLISECOND;
            if receiver.next_deadline() <= now {
                receiver.on_deadline(now);
            }
            // Mostly the next one; sometimes one further on, or an old one.
            let seq = match ahead {
                0..=11 => next,
                12..=14 => next + (ahead - 11) * SMSS,
                _ => next.saturating_sub(SMSS).max(1),
            };
            let segment = Segment {
                seq,
                payload_bytes: len,
                ts_val: i as u32,
                flags,
                ..Segment::new(0, Direction::Forward)
            };
            receiver.receive(&segment, now);
            while receiver.transmit(now, &mut slot) {
                let blocks: Vec<_> = slot.sack_blocks().collect();
                write!(
                    out,
                    "{} {} {} {} {blocks:?} ",
                    slot.ack, slot.wnd_bytes, slot.ts_ecr, slot.flags
                )
                .expect("writes to a string");
            }
            next = receiver.rcv_nxt();
        }
        (receiver.fast_path, receiver.steady_window) = (FastPath::Never, None);
        out + &format!("{receiver:?}")
    }

    proptest! {
        #[test]
        fn the_short_way_leaves_what_the_long_one_leaves(
            (variant, fast_path) in prop::sample::select(vec![
                (Variant::Newreno, FastPath::Allowed),
                (Variant::Peach, FastPath::ExceptProbes),
            ]),
            delayed_ack: bool,
            buffer_bytes in prop::sample::select(vec![3_000_u64, 100_000]),
            segments in prop::collection::vec((
                0_u64..17,
                prop::sample::select(vec![1000_u16, 1000, 400, 0]),
                prop::sample::select(vec![flags::ACK, flags::ACK, flags::ACK, flags::ACK | flags::DUMMY]),
            ), 1..80),
        ) {
            let mut segments = segments;
            if fast_path == FastPath::Allowed {
                // Who expects no dummy segments is sent none.
                for (_, _, flags) in &mut segments {
                    *flags = flags::ACK;
                }
            }
            let mut plain = receiver(variant, delayed_ack, buffer_bytes);
            let mut long = receiver(variant, delayed_ack, buffer_bytes);
            prop_assert_eq!(plain.fast_path, fast_path);
            (long.fast_path, long.steady_window) = (FastPath::Never, None);
            prop_assert_eq!(outcome(&mut plain, &segments), outcome(&mut long, &segments));
        }
    }
}

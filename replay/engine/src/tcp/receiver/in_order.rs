//! Data in order, the usual case. A segment that is the next one expected, on a connection in its usual state, skips the
//! checks for all other segments (`admits`).

use super::ack_policy::InOrder;
use super::{Owed, Receiver};
use crate::sim::time::Nanos;
use crate::tcp::segment::{Segment, flags};

impl Receiver {
    /// Takes a segment.
    #[inline(always)]
    pub fn receive(&mut self, segment: &Segment, now: Nanos) {
        if self.is_next(segment) || self.admits(segment, now) {
            self.note_data(segment);
            self.take_in_order(segment, now);
        }
    }

    /// Whether it is data in order and nothing else, while the reassembly queue is empty.
    #[inline(always)]
    fn is_next(&self, segment: &Segment) -> bool {
        self.skips_steps
            && segment.seq == self.rcv_nxt
            && segment.payload_bytes > 0
            && segment.end() <= self.edge
            && segment.flags & (flags::CONTROL | flags::DUMMY) == 0
            && self.reassembly.is_empty()
    }

    /// Whether a segment in order means nothing but that its octets are there, and an acknowledgement nothing else: the
    /// connection is established and has no end yet, there are no marks, and what has arrived has been read.
    pub(super) fn may_skip_steps(&self) -> bool {
        let begun_and_open =
            self.established && !self.ending.is_known() && !self.ending.was_reset();
        begun_and_open && !self.ecn && self.reads_at_once
    }

    /// Counts a segment with data, and keeps its timestamp: RFC 7323 §4.3, that of the segment that the last ACK awaited.
    #[inline(always)]
    pub(super) fn note_data(&mut self, segment: &Segment) {
        self.counters.data_segments_in += u64::from(segment.payload_bytes > 0);
        if segment.seq <= self.last_ack_sent {
            self.ts_recent = segment.ts_val;
        }
    }

    /// The same of one that is not the next one expected, and may be old.
    pub(super) fn note_data_out_of_order(&mut self, segment: &Segment) {
        let echoed = self.ts_recent;
        self.note_data(segment);
        if self.policy.refuses_old_timestamps() && segment.seq_end() < self.last_ack_sent {
            self.ts_recent = echoed;
        }
    }

    #[inline(always)]
    pub(super) fn take_in_order(&mut self, segment: &Segment, now: Nanos) {
        self.policy.note_arrival(self.window(), now);
        // Before it is read, with what it will release: as Linux accounts for it.
        self.grow_window(segment, u64::from(segment.payload_bytes));
        self.rcv_nxt = segment.seq_end();
        let fills_gap = !self.reassembly.is_empty();
        if fills_gap {
            self.rcv_nxt = self.reassembly.advance(self.rcv_nxt);
        }
        self.edge = self.edge.max(self.rcv_nxt);
        if self.params.receive_buffer_max_bytes.is_some() {
            self.tune_buffer(segment, now);
        }
        let unacknowledged = self.rcv_nxt - self.last_ack_sent;
        if self.reassembly.is_empty() && self.reads_at_once && self.policy.is_prompt(unacknowledged)
            || self.is_due(segment, fills_gap, now)
            || self.has_fin()
        {
            self.owed = Owed::Acknowledgement;
            if fills_gap && self.reads_at_once {
                self.filled_bytes = self.rcv_nxt - segment.seq;
            }
        }
    }

    /// Whether a segment that has been taken in order is acknowledged now.
    #[inline(never)]
    fn is_due(&mut self, segment: &Segment, fills_gap: bool, now: Nanos) -> bool {
        let partial = u32::from(segment.payload_bytes) < self.params.smss_bytes;
        let arrival = InOrder {
            unacknowledged: self.rcv_nxt - self.last_ack_sent,
            rcv_nxt: self.rcv_nxt,
            fills_gap,
            gap_left: !self.reassembly.is_empty(),
            edge_moves: self.reads_at_once && self.reassembly.is_empty()
                || self.edge_moves(self.rcv_nxt - segment.seq),
            pushed: segment.has(flags::PSH) || partial,
            read: self.unread() == 0,
            slow_start: segment.slow_start,
            echo: segment.ts_ecr,
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
    use crate::config::{Profile, StackOverrides, StackParams};
    use crate::sim::time::MILLISECOND;
    use crate::tcp::receiver::Space;
    use crate::tcp::segment::Direction;

    const SMSS: u64 = 1000;

    fn receiver(
        variant: Variant,
        profile: Profile,
        delayed_ack: bool,
        buffer_bytes: u64,
    ) -> Receiver {
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
        let params = StackParams::resolve(profile, &overrides);
        Receiver::new(0, &variant.fix(&params, &ParamValues::new()), space)
    }

    #[test]
    fn data_for_a_connection_that_was_reset_are_answered_with_a_reset_and_not_kept() {
        let mut receiver = receiver(Variant::Newreno, Profile::Rfc, false, 100_000);
        let data = Segment {
            seq: 1,
            payload_bytes: SMSS as u16,
            ..Segment::new(0, Direction::Forward)
        };
        receiver.abort();
        for now in [10, 20] {
            let mut slot = data;
            assert!(receiver.transmit(now, &mut slot) && slot.has(flags::RST));
            assert!(!receiver.transmit(now, &mut slot));
            receiver.receive(&data, now);
        }
        assert_eq!(
            (receiver.rcv_nxt(), receiver.counters().data_segments_in),
            (1, 0)
        );
        let mut answer = data;
        assert!(receiver.transmit(20, &mut answer));
        receiver.receive(&answer, 30);
        assert!(
            !receiver.transmit(30, &mut answer),
            "no reset answers a reset"
        );
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
        receiver.skips_steps = false;
        out + &format!("{receiver:?}")
    }

    #[test]
    fn linux_echoes_no_timestamp_of_a_segment_that_ends_before_the_last_ack() {
        let echoes = |profile, old: u64| {
            let mut receiver = receiver(Variant::Newreno, profile, false, 100_000);
            let mut take = |number: u64, ts_val| {
                let segment = Segment {
                    seq: 1 + number * SMSS,
                    payload_bytes: SMSS as u16,
                    ts_val,
                    ..Segment::new(0, Direction::Forward)
                };
                let mut slot = Segment::new(0, Direction::Reverse);
                receiver.receive(&segment, MILLISECOND);
                assert!(receiver.transmit(MILLISECOND, &mut slot));
                slot.ts_ecr
            };
            let new = (0..3).map(|number| take(number, 1 + number as u32)).last();
            assert_eq!(new, Some(3));
            take(old, 9)
        };
        let first_and_last = |profile| [echoes(profile, 0), echoes(profile, 2)];
        assert_eq!(first_and_last(Profile::Rfc), [9, 9]);
        assert_eq!(first_and_last(Profile::Linux), [3, 9]);
        assert_eq!(first_and_last(Profile::Ns2), [9, 9]);
    }

    proptest! {
        #[test]
        fn steps_are_skipped_only_where_they_would_do_nothing(
            (variant, profile) in prop::sample::select(vec![
                (Variant::Newreno, Profile::Rfc),
                (Variant::Peach, Profile::Rfc),
                (Variant::LinuxReno, Profile::Linux),
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
            if variant != Variant::Peach {
                // Only TCP-Peach has dummy segments.
                for (_, _, flags) in &mut segments {
                    *flags = flags::ACK;
                }
            }
            let mut fast = receiver(variant, profile, delayed_ack, buffer_bytes);
            let mut slow = receiver(variant, profile, delayed_ack, buffer_bytes);
            prop_assert!(fast.skips_steps);
            slow.skips_steps = false;
            prop_assert_eq!(outcome(&mut fast, &segments), outcome(&mut slow, &segments));
        }
    }
}

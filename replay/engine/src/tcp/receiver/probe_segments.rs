//! Low-priority probe segments at the receiver: each is answered at once, by a segment of the same priority that acknowledges
//! nothing new; the ACKs of data continue as if it had not arrived.
//!
//! Does not depend on what an answer is used for. Read `docs/variants/peach.md` first.

use super::Receiver;
use crate::sim::time::Nanos;
use crate::tcp::segment::{Segment, flags};

impl Receiver {
    /// Takes a dummy segment, and the octets that it carries where they are missing.
    ///
    /// Deviation: the paper's receiver discards a dummy; here it takes the copy of a lost segment as a retransmission.
    pub(super) fn take_low_priority_probe(&mut self, segment: &Segment, now: Nanos) {
        self.note_data_out_of_order(segment);
        self.probe_answers = (self.probe_answers.0 + 1, segment.dscp);
        self.catch_up(now);
        let fits = segment.end() <= self.edge;
        if segment.seq == self.rcv_nxt && fits {
            self.take_in_order(segment, now);
        } else if segment.seq > self.rcv_nxt
            && fits
            && !self.reassembly.holds(segment.seq, segment.end())
        {
            self.take_out_of_order(segment, now);
        } else {
            self.counters.duplicates_in += 1;
        }
    }

    /// Writes the answer to a dummy segment into a slot, if one is due; returns whether one is.
    #[inline]
    pub(super) fn answer_low_priority_probe(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        let (due, dscp) = self.probe_answers;
        if due == 0 {
            return false;
        }
        self.probe_answers.0 = due - 1;
        self.write_bare(now, slot);
        slot.flags |= flags::DUMMY;
        slot.dscp = dscp;
        self.counters.acks_out += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::ParamValues;
    use crate::cc::catalogue::Variant;
    use crate::config::{Profile, StackOverrides, StackParams};
    use crate::sim::time::MILLISECOND;
    use crate::tcp::receiver::Space;
    use crate::tcp::segment::Direction;

    const SMSS: u64 = 1000;

    fn receiver() -> Receiver {
        let overrides = StackOverrides {
            handshake: Some(false),
            smss_bytes: Some(SMSS as u32),
            ..StackOverrides::default()
        };
        let params = StackParams::resolve(Profile::Rfc, &overrides);
        let params = Variant::Peach.fix(&params, &ParamValues::new());
        let space = Space::Application {
            buffer_bytes: 100_000,
            octets_per_ns: None,
        };
        Receiver::new(0, &params, space)
    }

    fn segment(number: u64, flags: u8) -> Segment {
        Segment {
            seq: 1 + SMSS * number,
            payload_bytes: SMSS as u16,
            flags,
            dscp: if flags & flags::DUMMY == 0 { 0 } else { 8 },
            ..Segment::new(0, Direction::Forward)
        }
    }

    /// What it sends now: ACKs by what they await, answers with their code point.
    fn sent(receiver: &mut Receiver, now: Nanos) -> Vec<(u64, bool, u8)> {
        let mut slot = Segment::new(0, Direction::Reverse);
        let mut out = Vec::new();
        while receiver.transmit(now, &mut slot) {
            out.push(((slot.ack - 1) / SMSS, slot.has(flags::DUMMY), slot.dscp));
        }
        out
    }

    #[test]
    fn each_is_answered_by_its_own_priority_and_a_delayed_ack_waits_on() {
        let mut receiver = receiver();
        receiver.receive(&segment(0, flags::ACK), 0);
        assert_eq!(sent(&mut receiver, 0), []);
        let dummy = segment(0, flags::ACK | flags::DUMMY);
        receiver.receive(&dummy, MILLISECOND);
        receiver.receive(&dummy, MILLISECOND);
        assert_eq!(
            sent(&mut receiver, MILLISECOND),
            [(1, true, 8), (1, true, 8)]
        );
        assert_eq!(receiver.counters().duplicates_in, 2);
        // The data's own ACK keeps its time.
        assert_eq!(receiver.next_deadline(), 200 * MILLISECOND);
        receiver.on_deadline(200 * MILLISECOND);
        assert_eq!(sent(&mut receiver, 200 * MILLISECOND), [(1, false, 0)]);
    }

    #[test]
    fn octets_that_are_missing_are_taken_in_order_and_beyond_a_hole_once() {
        let mut receiver = receiver();
        receiver.receive(&segment(2, flags::ACK | flags::DUMMY), 0);
        assert_eq!(receiver.out_of_order_octets(), SMSS);
        // A duplicate ACK reports the hole.
        assert_eq!(sent(&mut receiver, 0), [(0, false, 0), (0, true, 8)]);
        receiver.receive(&segment(2, flags::ACK | flags::DUMMY), 0);
        assert_eq!(sent(&mut receiver, 0), [(0, true, 8)]);
        let first = Segment {
            ts_val: 7,
            ..segment(0, flags::ACK | flags::DUMMY)
        };
        receiver.receive(&first, 0);
        assert_eq!((receiver.rcv_nxt(), receiver.ts_recent), (1 + SMSS, 7));
        receiver.receive(&segment(1, flags::ACK), 0);
        assert_eq!(receiver.rcv_nxt(), 1 + 3 * SMSS);
    }
}

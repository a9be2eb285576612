//! The ACK that a sender receives: duplicate ACKs, DSACKs, and one that reports nothing new.

use super::Sender;
use crate::cause::DUP_THRESH;
use crate::loss::{DeliveringAck, Dsack};
use crate::ordering::is_older;
use crate::rows::{Edges, Vantage};
use crate::scoreboard::{Delivery, State};

/// An ACK that the sender receives.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedAck<'a> {
    /// Time.
    pub t_ns: i64,
    /// Record.
    pub record: u64,
    /// SEG.ACK, unwrapped.
    pub seg_ack: i64,
    /// SACK blocks.
    pub sack: &'a Edges,
    /// Timestamp echo reply.
    pub ts_ecr: Option<u32>,
    /// IPv4 identification.
    pub ip_id: Option<u16>,
    /// Window, scaled; `None` if the scale is unknown.
    pub wnd_bytes: Option<i64>,
    /// Window field.
    pub window: u16,
    /// No payload, SYN or FIN.
    pub pure: bool,
    /// SACK is in use on the connection.
    pub sack_in_use: bool,
}

/// Annotations of an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckNote {
    /// Duplicate ACK.
    pub dup_ack: bool,
    /// It has a DSACK block.
    pub dsack: bool,
    /// RTT sample.
    pub rtt_ns: Option<i64>,
}

impl ReceivedAck<'_> {
    /// The DSACK block: the first block if it is below the cumulative acknowledgement or within the second block (RFC
    /// 2883 §4).
    pub fn dsack_block(&self) -> Option<(i64, i64)> {
        let mut blocks = self.sack.blocks();
        let (left, right) = blocks.next()?;
        let contains = |outer: (i64, i64)| outer.0 <= left && right <= outer.1;
        (right <= self.seg_ack || blocks.next().is_some_and(contains)).then_some((left, right))
    }
}

impl Sender {
    /// `ack` as the loss detector uses it.
    pub(super) fn delivering_ack(&self, ack: &ReceivedAck<'_>) -> DeliveringAck {
        DeliveringAck {
            t_ns: ack.t_ns,
            record: ack.record,
            previous_ns: self.last_ack_ns,
            min_rtt_ns: self.rtt.min_ns(),
            missing_acks: self.ack_ids.missing(),
            ids_skipped_before: self.ack_ids.skipped_before(),
            missed_ns: self.ack_ids.missed_ns(),
            flight: (self.board.snd_una(), self.board.snd_nxt()),
            sack: ack.sack_in_use,
            echoes_first: false,
            block: None,
        }
    }

    /// Processes the DSACK block of `ack`.
    pub(super) fn on_dsack(&mut self, ack: &ReceivedAck<'_>, (left, right): (i64, i64)) {
        let (record, t_ns, ts_ecr) = (ack.record, ack.t_ns, ack.ts_ecr);
        self.losses.on_dsack(&Dsack {
            left,
            right,
            record,
            t_ns,
            ts_ecr,
        });
        let segments_n = self.board.segments_in(right - left).max(1) as u32;
        self.undo.on_dsack(right, segments_n);
    }

    /// Processes the SACK blocks of `ack`, but for a DSACK block: those that report octets again. An ACK that was
    /// overtaken does so as well; only IDs of ACKs show that it was not. Returns whether there is one.
    pub(super) fn on_sack_again(&mut self, ack: &ReceivedAck<'_>, dsack: bool) -> bool {
        let mut again = false;
        if self.losses.is_idle() || !self.ack_ids.is_newest(ack.ip_id) {
            return again;
        }
        let (record, t_ns, ts_ecr) = (ack.record, ack.t_ns, None);
        for (left, right) in ack.sack.blocks().skip(usize::from(dsack)) {
            again |= self.losses.on_sack(&Dsack {
                left,
                right,
                record,
                t_ns,
                ts_ecr,
            });
        }
        again
    }

    /// Whether `ack` is a duplicate ACK. `repeated`: it repeats SND.UNA, with data outstanding.
    pub(super) fn is_dup_ack(
        &self,
        ack: &ReceivedAck<'_>,
        delivery: &Delivery,
        repeated: bool,
    ) -> bool {
        if ack.sack_in_use {
            // RFC 6675 §2
            return delivery.acked_bytes == 0 && delivery.sacked_bytes > 0;
        }
        // RFC 5681 §2
        ack.pure && repeated && self.last_window == Some(ack.window)
    }

    /// Samples the RTT at `now_ns`, and returns the sample.
    pub(super) fn sample_rtt(&mut self, now_ns: i64, delivery: &Delivery) -> Option<i64> {
        let rtt_ns = now_ns - delivery.sample_sent_ns?;
        self.rtt.sample(rtt_ns, self.board.round());
        (rtt_ns >= 0).then_some(rtt_ns)
    }

    /// Counts a duplicate ACK at `now_ns`.
    pub(super) fn on_dup_ack(&mut self, now_ns: i64) {
        self.dup_acks += 1;
        if self.dup_acks == DUP_THRESH {
            self.dup_thresh_ns = now_ns;
        }
        self.dup_acks_in += 1;
        if !self.sack_in_use {
            self.end_f_rto();
        }
        self.dup_acked_bytes += self.board.smss_bytes();
        self.queued.on_dup_ack();
    }

    /// Processes an ACK that reports nothing new. With SACK, a segment that arrives changes the ACK, or the receiver
    /// discards it because its timestamp is older than that of the segment which moved the left edge of the window
    /// last, and answers (RFC 7323 §5.3, R1). So a retransmission overtook it, on a path that became shorter.
    ///
    /// A receiver that does not report duplicates (RFC 2883) answers them with such ACKs, too, so a segment counts as
    /// discarded only if the receiver has reported one by the time of the decision. Below RCV.NXT, it reports what was
    /// overtaken. Else, and where the ACK of another segment hides the answer, the fate of what was overtaken is
    /// undecided.
    ///
    /// Segments on one path arrive in order, so it is the oldest one that can have arrived now: after all that were
    /// overtaken and arrived, even if none of them was retransmitted. No update of the window
    /// is smaller than a segment (RFC 9293 §3.8.6.2.2).
    pub(super) fn on_empty_ack(&mut self, ack: &ReceivedAck<'_>) {
        let wider = ack
            .wnd_bytes
            .zip(self.snd_wnd_bytes)
            .map(|(new, old)| new - old);
        let updates_window = wider.is_none_or(|bytes| bytes >= self.board.smss_bytes());
        let possible = ack.pure && ack.sack_in_use && self.vantage == Vantage::Sender;
        let (Some(ts_ecr), Some(longest_ns)) = (ack.ts_ecr, self.rtt.max_ns()) else {
            return;
        };
        if !possible || updates_window {
            return;
        }
        let older = self
            .board
            .outstanding()
            .take_while(|range| range.first.ts_val.is_some_and(|val| is_older(val, ts_ecr)));
        let (losses, overtaken) = (&self.losses, self.losses.overtaken());
        // A retransmission may have arrived before it, and be reported in a SACK block.
        let discarded = older.into_iter().find(|range| {
            (range.state == State::Outstanding || losses.awaits_original(range.start))
                && ack.t_ns - range.first.t_ns <= longest_ns
                && range.first.record > overtaken.record
                && !losses.discards.is_answered(range.start)
        });
        if let Some(start) = discarded.map(|range| range.start) {
            let flight = (self.board.snd_una(), self.board.snd_nxt());
            self.losses.answer_original(start, ack.record);
            self.losses
                .discards
                .overtake(start, ack.record, ts_ecr, flight);
        }
    }
}

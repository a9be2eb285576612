//! What an ACK delivers: the ranges that leave the scoreboard, and what they show about the transmission that arrived.

use super::{ReceivedAck, Sender};
use crate::cause::{CaState, F_RTO_ACKS};
use crate::jump::Arrived;
use crate::loss::{DeliveringAck, LossDetector};
use crate::ordering::is_older;
use crate::rows::Vantage;
use crate::scoreboard::{Arrival, Delivery, Transmission};

/// When the retransmissions were sent that one ACK delivers, in ns: one that it echoes, one that repaired a hole, and one
/// that may have.
#[derive(Clone, Copy, Default)]
struct Resent {
    echoed: Option<i64>,
    repaired: Option<i64>,
    maybe_repaired: Option<i64>,
}

/// The ranges that one ACK delivers.
struct Delivered<'a> {
    losses: &'a mut LossDetector,
    /// The last sent transmission that was delivered.
    newest: &'a mut Transmission,
    by: DeliveringAck,
    /// Time until the losses among them are decided.
    wait_ns: i64,
    /// Minimum age of the transmission that arrived.
    min_age_ns: i64,
    retransmit_ts: Option<u32>,
    /// Recovery point of a timeout that F-RTO examines; `i64::MIN` if there is none.
    f_rto_point: i64,
    resent: Resent,
    /// Time of the transmission that was delivered last.
    rack_sent_ns: Option<i64>,
    /// The recovery, or the timeout, is spurious.
    undo: bool,
    f_rto: bool,
}

impl<'a> Delivered<'a> {
    fn new(losses: &'a mut LossDetector, newest: &'a mut Transmission, by: DeliveringAck) -> Self {
        Self {
            losses,
            newest,
            by,
            wait_ns: 0,
            min_age_ns: 0,
            retransmit_ts: None,
            f_rto_point: i64::MIN,
            resent: Resent::default(),
            rack_sent_ns: None,
            undo: false,
            f_rto: false,
        }
    }

    /// Processes a range, which `arrived` so. The ACK echoes `ts_ecr` of it.
    #[inline]
    fn push(&mut self, arrival: Arrival<'_>, ts_ecr: Option<u32>, arrived: &Arrived) {
        let range = arrival.range;
        let last = match arrived {
            Arrived::InOrder | Arrived::Repaired(_) | Arrived::Partial => arrival.last,
            Arrived::Before(_) | Arrived::Unclear => range.first,
        };
        let retransmitted = range.retransmissions.is_some();
        let again = arrival.first_retransmission.and_then(|first| first.ts_val);
        self.by.echoes_first = ts_ecr.is_some() && ts_ecr == range.first.ts_val && ts_ecr != again;
        let ts_ecr = ts_ecr.filter(|_| retransmitted);
        let echo_precedes = |ts_val: Option<u32>| {
            ts_ecr
                .zip(ts_val)
                .is_some_and(|(ecr, val)| is_older(ecr, val))
        };
        // RFC 8985 §6.2 step 2: a retransmission did not arrive if it is younger than the minimum RTT or than the
        // timestamp echoed.
        let echoed = ts_ecr.is_some() && ts_ecr == last.ts_val && ts_ecr != range.first.ts_val;
        let repaired = matches!(arrived, Arrived::Repaired(_));
        let too_young =
            retransmitted && !echoed && !repaired && self.by.t_ns - last.t_ns < self.min_age_ns;
        if !too_young && !echo_precedes(last.ts_val) && range.captured() {
            self.rack_sent_ns = Some(last.t_ns);
            if last.record > self.newest.record {
                *self.newest = last;
            }
        }
        if echoed {
            self.resent.echoed = Some(last.t_ns);
            self.losses.note_arrived(&last);
        }
        if *arrived == Arrived::Repaired(arrival.retransmissions_n) {
            self.resent.repaired = Some(last.t_ns);
        } else if *arrived == Arrived::Partial
            && arrival.retransmissions_n == 1
            && !echo_precedes(last.ts_val)
        {
            self.resent.maybe_repaired = Some(last.t_ns);
        }
        // RFC 5682 §3.1 step 3.b: data sent before the timeout and never retransmitted arrived.
        self.f_rto |= !retransmitted && range.captured() && range.end <= self.f_rto_point;
        // RFC 4015 §3.2: the segment that arrived was sent before its first retransmission and before the recovery.
        self.undo |= echo_precedes(self.retransmit_ts)
            && echo_precedes(arrival.first_retransmission.and_then(|first| first.ts_val));
        self.losses
            .on_delivered(range, self.by, ts_ecr, arrived, self.wait_ns);
    }
}

impl Sender {
    /// Updates the scoreboard with the ACK and its SACK blocks, except a DSACK block.
    pub(super) fn update_scoreboard(&mut self, ack: &ReceivedAck<'_>, dsack: bool) -> Delivery {
        let (before, by) = (self.board.snd_una(), self.delivering_ack(ack));
        let rto_ns = self.rtt.rto_ns().saturating_add(self.upstream_rtt_ns());
        let min_age_ns = self.rtt.min_ns().unwrap_or(0) / 10 * 9;
        let (delivered, reordering_ns) = (self.newest_delivered, self.path_srtt_ns());
        let f_rto_point = self.f_rto_point(ack.sack_in_use);
        let mut repeated = (self.vantage == Vantage::Receiver).then_some(&mut self.repeated);
        let segments_n = (ack.seg_ack - before) / self.board.smss_bytes().max(1);
        let recent_ns = ack.t_ns - min_age_ns;
        let dup_acks = self.dup_acks;
        let mut jump = (!ack.sack_in_use).then(|| {
            self.queued
                .jump(ack.ts_ecr, recent_ns, segments_n, dup_acks)
        });
        let mut ranges = Delivered {
            wait_ns: rto_ns.saturating_mul(2),
            min_age_ns,
            retransmit_ts: self.retransmit_ts,
            f_rto_point,
            ..Delivered::new(&mut self.losses, &mut self.newest_delivered, by)
        };
        let mut delivery = self.board.acknowledge(ack.seg_ack, |arrival| {
            // RFC 7323 §4.3: the ACK echoes the segment that advanced the left edge, so only the first range counts.
            let first = arrival.range.start <= before && arrival.range.captured();
            let mut arrived = jump
                .as_mut()
                .map_or(Arrived::InOrder, |jump| jump.range(&arrival));
            // The ACK before named the first range as missing, although a segment sent later had arrived.
            let lost = if first && arrival.retransmissions_n > 0 {
                arrival.sent_before(&delivered, reordering_ns)
            } else {
                0
            };
            if let Some(repeated) = repeated.as_mut() {
                repeated.add_all(&arrival);
            }
            if lost > 0 {
                arrived.set_lost(lost);
            }
            ranges.push(arrival, ack.ts_ecr.filter(|_| first), &arrived);
        });
        drop(jump);
        let acknowledged_ns = ranges.rack_sent_ns;
        for (left, right) in ack.sack.blocks().skip(usize::from(dsack)) {
            ranges.by.block = Some((left, right));
            self.board.sack(left, right, &mut delivery, |arrival| {
                if let Some(repeated) = repeated.as_mut() {
                    repeated.add_all(&arrival);
                }
                ranges.push(arrival, None, &Arrived::InOrder);
            });
        }
        let (undo, f_rto) = (ranges.undo, ranges.f_rto);
        let resent = ranges.resent;
        if let Some(sent_ns) = acknowledged_ns.or(ranges.rack_sent_ns) {
            self.rack_rtt_ns = ack.t_ns - sent_ns;
        }
        delivery.undo = f_rto || (undo && self.may_undo());
        if delivery.acked_bytes + delivery.sacked_bytes > 0 {
            self.count_f_rto_ack();
        }
        self.sample_retransmissions(ack, &delivery, &resent);
        delivery
    }

    /// Whether a timestamp that shows a retransmission to be spurious ends the recovery: fast recovery continues while
    /// other retransmissions are outstanding.
    fn may_undo(&self) -> bool {
        matches!(self.ca_state, CaState::Loss { .. }) || self.board.retrans_out_bytes() == 0
    }

    /// Ends F-RTO with a duplicate ACK without SACK, once the sender has sent new data: it repeats what was in flight
    /// (RFC 5682 §3.1 step 3a).
    ///
    /// Deviation: a duplicate ACK before that ends nothing, as in Linux; by step 2a, it does.
    pub(super) fn end_f_rto(&mut self) {
        if let CaState::Loss { f_rto_acks, .. } = &mut self.ca_state
            && (1..F_RTO_ACKS).contains(f_rto_acks)
        {
            *f_rto_acks = 0;
            self.f_rto_ended_at = Some(self.board.snd_una());
        }
    }

    /// Counts an ACK that delivers data, which F-RTO examines.
    fn count_f_rto_ack(&mut self) {
        if let CaState::Loss { f_rto_acks, .. } = &mut self.ca_state {
            *f_rto_acks = f_rto_acks.saturating_sub(1);
        }
    }

    /// Recovery point of a timeout that F-RTO still examines, with SACK (RFC 5682 §3.1); `i64::MIN` if there is none.
    fn f_rto_point(&self, sack: bool) -> i64 {
        match self.ca_state {
            CaState::Loss {
                recovery_point,
                f_rto_acks: 1..,
                ..
            } if sack => recovery_point,
            _ => i64::MIN,
        }
    }

    /// Samples the RTT of retransmissions that `ack` delivered.
    fn sample_retransmissions(
        &mut self,
        ack: &ReceivedAck<'_>,
        delivery: &Delivery,
        resent: &Resent,
    ) {
        if let (None, Some(sent_ns)) = (delivery.sample_sent_ns, resent.echoed) {
            // RFC 7323 §4: the echo names the transmission, so it may be a retransmission.
            self.rtt.sample(ack.t_ns - sent_ns, self.board.round());
        }
        if let Some(sent_ns) = resent.repaired {
            self.rtt.shorten(ack.t_ns - sent_ns);
        }
        if let Some(sent_ns) = resent.maybe_repaired {
            self.rtt.may_shorten(ack.t_ns - sent_ns);
        }
    }
}

//! The short way of most ACKs: they leave the rate, the least round-trip time and the phase as they are, so that what
//! follows from these stands.
//!
//! Stands in for the long way (`follow`) where its condition holds, and leaves the same state behind, to the bit; where the
//! condition does not hold it does nothing and says so. Must not know a rule that the long way does not have.

use super::aggregation::MOST_EXTRA;
use super::{Bbr, Mode, fixed};
use crate::controller::evidence::{AckEvidence, Repair};

/// What follows from the model as the long way left it, in a phase of the cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    bw: u64,
    /// Window of the model without room for aggregated ACKs, and that room at most.
    product: u64,
    most_room: u64,
}

impl Bbr {
    /// The next ACK takes the long way.
    #[cfg(test)]
    pub(in crate::controller) fn forget_standing(&mut self) {
        self.standing = None;
    }

    /// What stands after an ACK that took the long way; none where the next one has to take it too.
    pub(super) fn stand(&self) -> Option<Standing> {
        let steady = matches!(self.mode, Mode::ProbeBw { .. })
            && self.repair == Repair::None
            && self.full_pipe.reached
            && self.params.aggregation
            && !self.conserving
            && !self.idle_restart
            && !self.long_term.is_in_use()
            && !self.output.pacer.lacks_rtt();
        let bw = self.model_bw();
        steady.then(|| Standing {
            bw,
            product: self.bdp(bw, self.gains.cwnd),
            most_room: fixed::delivered_in(bw, MOST_EXTRA),
        })
    }

    /// Takes an ACK within a round and a phase that has left the rate as it was, and shows no loss and no lesser round-trip
    /// time.
    #[inline]
    pub(super) fn take_quietly(&mut self, ack: &AckEvidence) -> bool {
        let (Some(standing), Mode::ProbeBw { since, .. }) = (self.standing, self.mode) else {
            return false;
        };
        let tells_nothing = ack.delivered > 0
            && ack.rate.is_some()
            && !self.round.starts
            && ack.repair == Repair::None
            && ack.newly_lost == 0
            && !self.long_term.is_in_use()
            && self.bw.value() == standing.bw
            && !self.min_rtt_is_old(ack)
            && !self.lessens_min_rtt(ack);
        if !tells_nothing || self.phase_is_over(since, ack) {
            return false;
        }
        self.update_aggregation(ack);
        let room = self.aggregation.extra_acked().min(standing.most_room);
        let target = self.with_bursts(standing.product + room);
        let window = self.output.cwnd.max(1) + u64::from(ack.delivered);
        self.output.cwnd = window.min(target).max(self.params.least_cwnd.into());
        true
    }
}

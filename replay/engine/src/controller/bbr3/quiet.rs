//! The short way of most ACKs: they tell the model nothing new, so that what follows from it stands.
//!
//! Stands in for the long way (`learn`) where its condition holds, and leaves the same state behind, to the bit; where the
//! condition does not hold it does nothing and says so. Must not know a rule that the long way does not have.

use super::bounds::UNBOUND;
use super::cycle::Phase;
use super::{Bbr3, Mode};
use crate::controller::bbr::aggregation::MOST_EXTRA;
use crate::controller::bbr::fixed::{self, UNIT};
use crate::controller::evidence::{AckEvidence, RateSample, Repair};

/// What follows from the model as the long way left it, for ACKs in a phase that ends with a round or by the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Cruising: whether the next probe is due is asked at every ACK.
    cruises: bool,
    /// Rate from which on the search for the full pipe begins anew.
    enough: u64,
    bw: u64,
    /// Window of the model without room for aggregated ACKs, and that room at most.
    product: u64,
    most_room: u64,
    /// Bounds of the window.
    least: u64,
    cap: u64,
    /// Segments more while probing.
    extra: u64,
    /// Flight at the model's rate.
    flight: u64,
}

impl Bbr3 {
    /// The next ACK takes the long way.
    #[cfg(test)]
    pub(in crate::controller) fn forget_standing(&mut self) {
        self.standing = None;
    }

    /// What stands after an ACK that took the long way; none where the next one has to take it too.
    pub(super) fn stand(&self, ack: &AckEvidence) -> Option<Standing> {
        let Mode::ProbeBw(phase) = self.mode else {
            return None;
        };
        let sample = ack.rate.as_ref()?;
        let calm = ack.repair == Repair::None && ack.lost_total <= sample.prior_lost;
        let known = self.full_pipe.reached
            && self.params.aggregation
            && !self.marks.eligible
            && !self.output.pacer.lacks_rtt()
            && self.least_rtt.is_settled();
        // A probe ends with the search, and raises a bound.
        let searches = !self.full_pipe.now;
        let steady = match phase {
            Phase::Down => false,
            Phase::Cruise | Phase::Refill => true,
            Phase::Up => searches && self.bounds.inflight_hi == UNBOUND,
        };
        if !(calm && known && steady) {
            return None;
        }
        let bw = self.bw();
        Some(Standing {
            cruises: phase == Phase::Cruise,
            enough: if searches {
                self.full_pipe.enough
            } else {
                u64::MAX
            },
            bw,
            product: self.bdp(bw, self.gains.cwnd),
            most_room: fixed::delivered_in(bw, MOST_EXTRA),
            least: self.least_budget(),
            cap: self.cap(),
            extra: self.probe_room(),
            flight: self.inflight(bw, UNIT),
        })
    }

    /// Takes an ACK that shows a rate of `bw`, no greater than those before it, within a round, and no loss, mark or lesser
    /// round-trip time.
    #[inline]
    pub(super) fn take_quietly(&mut self, ack: &AckEvidence, bw: u64) -> bool {
        let (Some(standing), Some(sample)) = (&self.standing, &ack.rate) else {
            return false;
        };
        let standing = *standing;
        if !self.tells_nothing(ack, sample) || bw > self.max_bw[1] || bw >= standing.enough {
            return false;
        }
        let target = standing.flight.min(self.output.cwnd);
        if standing.cruises && self.cycle.is_due(ack.now, &self.params, target) {
            return false;
        }
        (self.now, self.delivered) = (ack.now, ack.delivered_total);
        self.lost_total = ack.lost_total;
        self.app_limited = false;
        (self.round.starts, self.signals.round_starts) = (false, false);
        self.signals.note_delivery(bw, sample.delivered);
        let (acked, cwnd) = (u64::from(ack.delivered), self.output.cwnd);
        self.aggregation
            .update(ack.now, acked, standing.bw, None, cwnd);
        let room = self.aggregation.extra_acked().min(standing.most_room);
        let target = (standing.product + room).max(standing.least) + standing.extra;
        let window = (cwnd + acked).min(target).max(self.least_cwnd());
        self.output.cwnd = window.min(standing.cap);
        true
    }

    #[inline]
    fn tells_nothing(&self, ack: &AckEvidence, sample: &RateSample) -> bool {
        ack.delivered > 0
            && !sample.app_limited
            && sample.prior_delivered < self.round.end
            && self.signals.is_within_round(sample)
            && ack.repair == Repair::None
            && ack.newly_lost == 0
            && ack.lost_total <= sample.prior_lost
            && sample.marked == 0
            && !ack.ecn_echo
            && u64::from(sample.tx_in_flight) <= self.bounds.inflight_hi
            && self.least_rtt.is_told_nothing(ack)
    }
}

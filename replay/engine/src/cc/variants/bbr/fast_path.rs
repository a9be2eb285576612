//! BBR's fast path: an ACK that leaves the bandwidth, min_rtt and the phase unchanged needs no new output.
//!
//! It replaces the slow path (`learn`) under a stated condition and leaves the same state, to the bit. Where the condition
//! does not hold it changes nothing and returns false.

use super::aggregation::MAX_EXTRA;
use super::long_term::Counts;
use super::max_filter::MaxFilter;
use super::{Bbr, Mode, fixed};
use crate::cc::evidence::{AckEvidence, RateSample, Repair};
use crate::sim::time::{NEVER, Nanos};

/// What follows from the model as the long way left it, in a phase of the cycle, and which ACKs leave it standing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Those up to this time, …
    until: Nanos,
    /// … of segments that left before so many had been delivered, …
    round_end: u64,
    /// … that show no lesser round-trip time, …
    min_rtt: Nanos,
    /// … whether the application may have limited it, …
    may_be_limited: bool,
    /// … and, unless the phase ends by the clock alone, since when it lasts.
    since: Option<Nanos>,
    /// The rate, and up to which one the filter of rates need not hear of another; none where it has to of each.
    bw: u64,
    ignored_bw: Option<u64>,
    /// Window of the model without room for aggregated ACKs, and that room at most.
    product: u64,
    max_room: u64,
}

impl Standing {
    #[inline]
    fn is_unaffected(&self, ack: &AckEvidence, sample: &RateSample) -> bool {
        ack.delivered > 0
            && ack.now <= self.until
            && sample.prior_delivered < self.round_end
            && ack.repair == Repair::None
            && ack.newly_lost == 0
            && (self.may_be_limited || !sample.app_limited)
            && ack.rtt.is_none_or(|rtt| rtt >= self.min_rtt)
    }

    #[inline]
    fn ignores(&self, sample: &RateSample) -> bool {
        let is_within = |max| fixed::is_within(max, sample.delivered, sample.interval);
        self.ignored_bw.is_some_and(is_within)
    }
}

impl Bbr {
    /// The next ACK takes the long way.
    #[cfg(test)]
    pub(in crate::cc) fn forget_standing(&mut self) {
        self.standing = None;
    }

    /// What stands after an ACK that took the long way; none where the next one has to take it too.
    pub(super) fn stand(&self) -> Option<Standing> {
        let Mode::ProbeBw { since, .. } = self.mode else {
            return None;
        };
        let steady = self.repair == Repair::None
            && self.full_pipe.reached
            && self.params.aggregation
            && !self.conserving
            && !self.idle_restart
            && !self.long_term.is_in_use()
            && !self.output.pacer.lacks_rtt();
        if !steady {
            return None;
        }
        let min_rtt = self.min_rtt.value?;
        let cruises = self.pacing_gain() == fixed::UNIT;
        let phase_end = if cruises { since + min_rtt } else { NEVER };
        let bw = self.model_bw();
        Some(Standing {
            until: phase_end.min(self.min_rtt.seen_at + self.min_rtt_window),
            round_end: self.round.end,
            min_rtt,
            may_be_limited: self.long_term.waits_on(false),
            since: (!cruises).then_some(since),
            bw,
            ignored_bw: self
                .bw
                .ignores(self.params.bw_window_rounds.into(), self.round.count),
            product: self.bdp(bw, self.gains.cwnd),
            max_room: fixed::delivered_in(bw, MAX_EXTRA),
        })
    }

    /// Takes an ACK that tells the model nothing new; says whether it is one. The pace stands, only the window moves.
    #[allow(
        clippy::inline_always,
        reason = "so that nobody gathers the evidence that it does not ask for; a hint is not heard"
    )]
    #[inline(always)]
    pub(in crate::cc) fn on_steady_ack(&mut self, ack: &AckEvidence) -> bool {
        let (Some(standing), Some(sample)) = (&self.standing, &ack.rate) else {
            return false;
        };
        if !standing.is_unaffected(ack, sample) {
            return false;
        }
        let rates = (!standing.ignores(sample)).then(|| self.rates_with(*sample));
        if rates.is_some_and(|rates| rates.value() != standing.bw) {
            return false;
        }
        let flight = (ack.prior_flight, ack.paced_for());
        let is_over = |since| self.phase_is_over(ack.now.saturating_sub(since), false, flight);
        if standing.since.is_some_and(is_over) {
            return false;
        }
        self.counts = Counts {
            delivered_at: ack.now,
            delivered: ack.delivered_total,
            lost: ack.lost_total,
        };
        self.round.starts = false;
        let (acked, cwnd) = (u64::from(ack.delivered), self.output.cwnd);
        self.aggregation
            .update(ack.now, acked, standing.bw, None, cwnd);
        let room = self.aggregation.extra_acked().min(standing.max_room);
        let target = self.with_bursts(standing.product + room);
        let window = cwnd.max(1) + acked;
        self.output.cwnd = window.min(target).max(self.params.min_cwnd.into());
        if let Some(rates) = rates {
            self.take_rates(rates);
        }
        true
    }

    /// What the filter of rates ignored it may not ignore now.
    #[inline(never)]
    fn take_rates(&mut self, rates: MaxFilter) {
        self.bw = rates;
        if let Some(standing) = &mut self.standing {
            standing.ignored_bw = None;
        }
    }
}

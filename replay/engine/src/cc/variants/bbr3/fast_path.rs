//! BBRv3's fast path: an ACK that leaves the model unchanged needs no new output.
//!
//! It replaces the slow path (`learn`) under a stated condition and leaves the same state, to the bit. Where the condition
//! does not hold it changes nothing and returns false.

use super::data_volume::UNLIMITED;
use super::probe_bw_cycle::Phase;
use super::{Bbr3, Mode};
use crate::cc::evidence::{AckEvidence, RateSample, Repair};
use crate::cc::variants::bbr::aggregation::MAX_EXTRA;
use crate::cc::variants::bbr::fixed;
use crate::cc::variants::bbr::fixed::UNIT;
use crate::sim::time::{NEVER, Nanos};

/// What follows from the model as the long way left it, and which ACKs leave it standing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Those up to this time, …
    until: Nanos,
    /// … of segments that left before so many had been delivered, and with no more in flight, …
    round_end: u64,
    max_flight: u64,
    /// … that show no greater rate (one that the application limited is asked for less) …
    max_bw: u64,
    max_limited_bw: u64,
    /// … and no lesser round-trip time …
    min_rtt: Nanos,
    /// … while more than this is in flight, and where a queue is drained more than this when the next segment leaves.
    small_flight: u64,
    drained: Option<u64>,
    /// The next probe is due in a window no greater than this.
    due_cwnd: u64,
    bw: u64,
    /// Window of the model without room for aggregated ACKs, and that room at most.
    product: u64,
    max_room: u64,
    /// DataVolume of the window.
    min: u64,
    cap: u64,
    /// Segments more while probing.
    extra: u64,
}

impl Standing {
    #[inline]
    fn is_unaffected(&self, ack: &AckEvidence, sample: &RateSample) -> bool {
        let max_bw = if sample.app_limited {
            self.max_limited_bw
        } else {
            self.max_bw
        };
        ack.delivered > 0
            && ack.now <= self.until
            && sample.prior_delivered < self.round_end
            && ack.repair == Repair::None
            && ack.newly_lost == 0
            && ack.lost_total <= sample.prior_lost
            && sample.marked == 0
            && !ack.ecn_echo
            && u64::from(sample.tx_in_flight) <= self.max_flight
            && u64::from(ack.flight) > self.small_flight
            && ack.rtt.is_none_or(|rtt| rtt >= self.min_rtt)
            && fixed::is_within_rounded_up(max_bw, sample.delivered, sample.interval)
    }
}

impl Bbr3 {
    /// The next ACK takes the long way.
    #[cfg(test)]
    pub(in crate::cc) fn forget_standing(&mut self) {
        self.standing = None;
    }

    /// What stands after an ACK that took the long way; none where the next one has to take it too.
    pub(super) fn stand(&self, ack: &AckEvidence) -> Option<Standing> {
        let sample = ack.rate.as_ref()?;
        let fast_path_until = ack.repair == Repair::None && ack.lost_total <= sample.prior_lost;
        let known = self.full_pipe.reached
            && self.params.aggregation
            && !self.ecn.eligible
            && !self.output.pacer.lacks_rtt()
            && self.min_rtt.is_settled();
        if !(fast_path_until && known) {
            return None;
        }
        let (bw, max) = (self.bw(), self.max_bw());
        let enough = if self.full_pipe.now {
            u64::MAX
        } else {
            self.full_pipe.enough
        };
        let seen = self.signals.bw;
        let standing = Standing {
            until: self.min_rtt.unchanged_until(),
            round_end: self.round.end.min(self.signals.round_end()),
            max_flight: self.data_volume.inflight_hi,
            max_bw: seen.min(self.max_bw[1]).min(enough.saturating_sub(1)),
            max_limited_bw: seen.min(self.max_bw[1].max(max.saturating_sub(1))),
            min_rtt: self.min_rtt.probe_min_rtt(),
            small_flight: 0,
            drained: None,
            due_cwnd: 0,
            bw,
            product: self.bdp(bw, self.gains.cwnd),
            max_room: fixed::delivered_in(bw, MAX_EXTRA),
            min: self.min_budget(),
            cap: self.cap(),
            extra: self.probe_allowance(),
        };
        self.stand_in_mode(standing)
    }

    /// What of it stands in the mode, and until what ends that.
    fn stand_in_mode(&self, standing: Standing) -> Option<Standing> {
        match self.mode {
            Mode::Startup | Mode::Drain => None,
            Mode::ProbeBw(Phase::Refill) => Some(standing),
            // A probe ends with the search, and raises a bound.
            Mode::ProbeBw(Phase::Up) => {
                let searches = !self.full_pipe.now;
                (searches && self.data_volume.inflight_hi == UNLIMITED).then_some(standing)
            }
            Mode::ProbeBw(Phase::Cruise) => self.stand_until_due(standing),
            Mode::ProbeBw(Phase::Down) => self.stand_until_due(Standing {
                drained: Some(self.drained_flight()),
                ..standing
            }),
            Mode::ProbeRtt { until, round_done } => {
                let small = self.probe_rtt_cwnd();
                let over = until.filter(|_| round_done);
                Some(Standing {
                    until: standing.until.min(over.unwrap_or(NEVER)),
                    small_flight: if until.is_none() { small } else { 0 },
                    cap: standing.cap.min(small),
                    ..standing
                })
            }
        }
    }

    /// By the clock, or by rounds: see [`ProbeBwCycle::is_due`](super::probe_bw_cycle::ProbeBwCycle::is_due).
    fn stand_until_due(&self, standing: Standing) -> Option<Standing> {
        let (due_at, rounds) = (self.cycle.due_at(), u64::from(self.cycle.rounds));
        let max = self.inflight(standing.bw, UNIT);
        let waits = rounds < max.min(self.params.probe_max_rounds.into());
        waits.then(|| Standing {
            until: standing.until.min(due_at),
            due_cwnd: rounds,
            ..standing
        })
    }

    /// Takes an ACK that tells the model nothing new; says whether it is one. Pace and bounds stand, only the window moves.
    #[allow(
        clippy::inline_always,
        reason = "so that nobody gathers the evidence that it does not ask for; a hint is not heard"
    )]
    #[inline(always)]
    pub(in crate::cc) fn on_steady_ack(&mut self, ack: &AckEvidence) -> bool {
        let (Some(standing), Some(sample)) = (&self.standing, &ack.rate) else {
            return false;
        };
        if !standing.is_unaffected(ack, sample) || self.output.cwnd <= standing.due_cwnd {
            return false;
        }
        let flight = (ack.prior_flight, ack.paced_for());
        let is_drained = |drained| self.flight_when_sent(flight) <= drained;
        if standing.drained.is_some_and(is_drained) {
            return false;
        }
        (self.now, self.delivered) = (ack.now, ack.delivered_total);
        self.lost_total = ack.lost_total;
        self.app_limited = sample.app_limited;
        (self.round.starts, self.signals.round_starts) = (false, false);
        self.signals.inflight = self.signals.inflight.max(sample.delivered);
        let (acked, cwnd) = (u64::from(ack.delivered), self.output.cwnd);
        self.aggregation
            .update(ack.now, acked, standing.bw, None, cwnd);
        let room = self.aggregation.extra_acked().min(standing.max_room);
        let target = (standing.product + room).max(standing.min) + standing.extra;
        let min_cwnd = u64::from(self.params.min_cwnd);
        let window = (cwnd + acked).min(target).max(min_cwnd);
        self.output.cwnd = window.min(standing.cap);
        true
    }
}

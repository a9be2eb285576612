//! What the model comes to: gains, the product and its bursts, the pacing rate and the window.
//!
//! Must not know how the model is learned. Read draft-ietf-ccwg-bbr §5.6 first.

use super::bounds::UNBOUND;
use super::cycle::Phase;
use super::{Bbr3, Mode};
use crate::controller::bbr::aggregation::MOST_EXTRA;
use crate::controller::bbr::fixed::{self, UNIT};
use crate::controller::evidence::{AckEvidence, Repair};
use crate::time::Nanos;

/// Room beyond the target that a probe needs where the product is small.
const PROBE_ROOM: u64 = 2;
/// STARTUP opens to twice the initial window whatever the model says.
const STARTUP_WINDOWS: u64 = 2;

impl Bbr3 {
    pub(super) fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => self.params.startup_pacing_gain.into(),
            Mode::Drain => self.params.drain_gain.into(),
            Mode::ProbeBw(Phase::Up) => fixed::gain(self.params.up_pacing_gain),
            Mode::ProbeBw(Phase::Down) => fixed::gain(self.params.down_pacing_gain),
            Mode::ProbeBw(Phase::Cruise | Phase::Refill) | Mode::ProbeRtt { .. } => UNIT,
        }
    }

    pub(super) fn cwnd_gain(&self) -> u64 {
        let gain = match self.mode {
            Mode::Startup | Mode::Drain => self.params.startup_cwnd_gain,
            Mode::ProbeBw(Phase::Up) => self.params.cwnd_gain + self.params.up_cwnd_gain,
            Mode::ProbeBw(_) => self.params.cwnd_gain,
            Mode::ProbeRtt { .. } => return UNIT,
        };
        fixed::gain(gain)
    }

    /// Whether losses are those of a search for more: they bound no rate then (draft §5.5.10.3).
    pub(super) fn is_probing(&self) -> bool {
        matches!(
            self.mode,
            Mode::Startup | Mode::ProbeBw(Phase::Refill | Phase::Up)
        )
    }

    fn burst_goal(&self) -> u64 {
        self.pacer.burst_goal_on(self.least_rtt.min_rtt())
    }

    pub(super) fn bdp(&self, bw: u64, gain: u64) -> u64 {
        match self.least_rtt.min_rtt() {
            Some(least) => fixed::bdp(bw, least, gain),
            None => self.initial_window,
        }
    }

    /// Three bursts at least, whatever the product (draft §5.6.4.2).
    fn with_budget(&self, segments: u64) -> u64 {
        let budget = segments.max(3 * self.burst_goal()).max(self.least_cwnd());
        let probing = self.mode == Mode::ProbeBw(Phase::Up);
        budget + if probing { PROBE_ROOM } else { 0 }
    }

    pub(super) fn inflight(&self, bw: u64, gain: u64) -> u64 {
        self.with_budget(self.bdp(bw, gain))
    }

    /// What should be in flight: the product, unless losses have cut the window.
    pub(super) fn target_inflight(&self) -> u64 {
        self.inflight(self.bw(), UNIT).min(self.cwnd)
    }

    /// What will be in flight when pacing lets the next segment leave.
    pub(super) fn flight_when_sent(&self, flight: u32, ack: &AckEvidence) -> u64 {
        let wait = ack.paced_until.saturating_sub(ack.now);
        let own = if self.pacing_gain() > UNIT {
            self.burst_goal()
        } else {
            0
        };
        fixed::left_after(u64::from(flight) + own, self.bw(), wait)
    }

    pub(super) fn set_pacing(&mut self, srtt: Option<Nanos>) {
        if self.pacer.lacks_rtt() && srtt.is_some() {
            self.begin_pacing(srtt);
        }
        self.apply_pacing(self.pacing_gain());
    }

    /// Until the pipe is full the rate only rises.
    pub(super) fn apply_pacing(&mut self, gain: u64) {
        let bw = self.bw();
        self.pacer.set(bw, gain, self.full_pipe.reached);
    }

    /// Draft §5.6.4.6. A round of losses is answered by the bounds alone, a timeout by beginning from one segment.
    pub(super) fn set_cwnd(&mut self, ack: &AckEvidence) {
        if self.repair == Repair::Loss && ack.repair != Repair::Loss {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        let acked = u64::from(ack.delivered);
        if acked > 0 {
            let product = self.bdp(self.bw(), self.cwnd_gain());
            let target = self.with_budget(product + self.aggregation_room());
            if self.full_pipe.reached {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || self.cwnd < STARTUP_WINDOWS * self.initial_window {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(self.least_cwnd());
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
    }

    fn aggregation_room(&self) -> u64 {
        let most = fixed::delivered_in(self.bw(), MOST_EXTRA);
        self.aggregation.extra_acked().min(most)
    }

    /// Draft §5.6.4.7. Deviation: as Linux, DRAIN is not held to the upper bound.
    pub(super) fn bound_cwnd(&mut self) {
        let cap = match self.mode {
            Mode::ProbeBw(Phase::Cruise) | Mode::ProbeRtt { .. } => {
                self.upper_bound_with_headroom()
            }
            Mode::ProbeBw(_) => self.bounds.inflight_hi,
            Mode::Startup | Mode::Drain => UNBOUND,
        };
        let cap = cap.min(self.bounds.inflight_lo).max(self.least_cwnd());
        self.cwnd = self.cwnd.min(cap);
    }
}

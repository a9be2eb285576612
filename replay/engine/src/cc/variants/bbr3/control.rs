//! What the model comes to: gains, the product and its bursts, the pacing rate and the window.
//!
//! Does not depend on how the model is learned. Read draft-ietf-ccwg-bbr §5.6 first.

use super::data_volume::UNLIMITED;
use super::probe_bw_cycle::Phase;
use super::{Bbr3, Bbr3Params, Gains, Mode};
use crate::cc::evidence::{AckEvidence, RecoveryPhase};
use crate::cc::variants::bbr::aggregation::MAX_EXTRA;
use crate::cc::variants::bbr::fixed;
use crate::cc::variants::bbr::fixed::UNIT;
use crate::sim::time::{NEVER, Nanos};

/// Room beyond the target that a probe needs where the product is small.
const PROBE_ROOM: u64 = 2;
/// STARTUP opens to twice the initial window whatever the model says.
const STARTUP_WINDOWS: u64 = 2;

/// Draft §5.6.1.
pub(super) fn gains(mode: Mode, params: &Bbr3Params) -> Gains {
    let pacing = match mode {
        Mode::Startup => params.startup_pacing_gain.into(),
        Mode::Drain => params.drain_gain.into(),
        Mode::ProbeBw(Phase::Up) => fixed::gain(params.up_pacing_gain),
        Mode::ProbeBw(Phase::Down) => fixed::gain(params.down_pacing_gain),
        Mode::ProbeBw(Phase::Cruise | Phase::Refill) | Mode::ProbeRtt { .. } => UNIT,
    };
    let cwnd = match mode {
        Mode::Startup | Mode::Drain => fixed::gain(params.startup_cwnd_gain),
        Mode::ProbeBw(Phase::Up) => fixed::gain(params.cwnd_gain + params.up_cwnd_gain),
        Mode::ProbeBw(_) => fixed::gain(params.cwnd_gain),
        Mode::ProbeRtt { .. } => UNIT,
    };
    Gains { pacing, cwnd }
}

impl Bbr3 {
    /// Whether losses are those of a search for more: they bound no rate then (draft §5.5.10.3).
    pub(super) fn is_probing(&self) -> bool {
        matches!(
            self.mode,
            Mode::Startup | Mode::ProbeBw(Phase::Refill | Phase::Up)
        )
    }

    fn burst_goal(&self) -> u64 {
        self.output.pacer.burst_goal_on(self.min_rtt.value())
    }

    pub(super) fn bdp(&self, bw: u64, gain: u64) -> u64 {
        match self.min_rtt.value() {
            NEVER => self.initial_window,
            min => fixed::bdp(bw, min, gain),
        }
    }

    /// Three bursts at least, whatever the product (draft §5.6.4.2).
    fn with_budget(&self, segments: u64) -> u64 {
        segments.max(self.min_budget()) + self.probe_allowance()
    }

    pub(super) fn min_budget(&self) -> u64 {
        (3 * self.burst_goal()).max(self.min_cwnd())
    }

    pub(super) fn probe_allowance(&self) -> u64 {
        if matches!(self.mode, Mode::ProbeBw(Phase::Up)) {
            PROBE_ROOM
        } else {
            0
        }
    }

    pub(super) fn inflight(&self, bw: u64, gain: u64) -> u64 {
        self.with_budget(self.bdp(bw, gain))
    }

    /// What should be in flight: the product, unless losses have cut the window.
    #[inline]
    pub(super) fn target_inflight(&self) -> u64 {
        self.inflight(self.bw(), UNIT).min(self.output.cwnd)
    }

    /// What will be in flight when pacing lets the next segment leave, after a wait.
    #[inline]
    pub(super) fn flight_when_sent(&self, (flight, wait): (u32, Nanos)) -> u64 {
        let own = if self.gains.pacing > UNIT {
            self.burst_goal()
        } else {
            0
        };
        fixed::left_after(u64::from(flight) + own, self.bw(), wait)
    }

    /// Returns whether the pace is another one.
    pub(super) fn set_pacing(&mut self, srtt: Option<Nanos>) -> bool {
        let begins = self.output.pacer.lacks_rtt() && srtt.is_some();
        if begins {
            self.begin_pacing(srtt);
        }
        self.apply_pacing(self.gains.pacing) || begins
    }

    /// The same; until the pipe is full the rate only rises.
    pub(super) fn apply_pacing(&mut self, gain: u64) -> bool {
        let bw = self.bw();
        self.output.pacer.set(bw, gain, self.full_pipe.reached)
    }

    /// Draft §5.6.4.6. A round of losses is answered by the bounds alone, a timeout by beginning from one segment.
    pub(super) fn set_cwnd(&mut self, ack: &AckEvidence) {
        if self.recovery_phase == RecoveryPhase::Loss && ack.recovery_phase != RecoveryPhase::Loss {
            self.output.restore_cwnd();
        }
        let acked = u64::from(ack.delivered);
        if acked > 0 {
            let product = self.bdp(self.bw(), self.gains.cwnd);
            let target = self.with_budget(product + self.aggregation_allowance());
            if self.full_pipe.reached {
                self.output.cwnd = (self.output.cwnd + acked).min(target);
            } else if self.output.cwnd < target
                || self.output.cwnd < STARTUP_WINDOWS * self.initial_window
            {
                self.output.cwnd += acked;
            }
            self.output.cwnd = self.output.cwnd.max(self.min_cwnd());
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.output.cwnd = self.output.cwnd.min(self.probe_rtt_cwnd());
        }
    }

    fn aggregation_allowance(&self) -> u64 {
        let max = fixed::delivered_in(self.bw(), MAX_EXTRA);
        self.aggregation.extra_acked().min(max)
    }

    /// Draft §5.6.4.7. Deviation: as Linux, DRAIN does not respect the upper bound.
    pub(super) fn bound_cwnd(&mut self) {
        self.output.cwnd = self.output.cwnd.min(self.cap());
    }

    pub(super) fn cap(&self) -> u64 {
        let cap = match self.mode {
            Mode::ProbeBw(Phase::Cruise) | Mode::ProbeRtt { .. } => {
                self.inflight_hi_with_headroom()
            }
            Mode::ProbeBw(_) => self.data_volume.inflight_hi,
            Mode::Startup | Mode::Drain => UNLIMITED,
        };
        cap.min(self.data_volume.inflight_lo).max(self.min_cwnd())
    }
}

//! What BBR has in flight, or wants to have: the bandwidth-delay product times a gain, with allowance for bursts and aggregated
//! ACKs.
//!
//! Does not depend on when a mode begins or ends.

use super::aggregation::MAX_EXTRA;
use super::fixed::UNIT;
use super::{Bbr, INITIAL_WINDOW, Mode, fixed};
use crate::cc::evidence::AckEvidence;

impl Bbr {
    /// What will be in flight, of `flight` now, when pacing lets the next segment leave.
    #[inline(always)]
    pub(super) fn flight_when_sent(&self, flight: u32, ack: &AckEvidence) -> u64 {
        let own = if self.pacing_gain() > UNIT {
            self.output.pacer.burst_goal()
        } else {
            0
        };
        fixed::left_after(u64::from(flight) + own, self.model_bw(), ack.paced_for())
    }

    /// Segments to have in flight for a gain, with allowance for bursts at both ends.
    pub(super) fn inflight(&self, gain: u64) -> u64 {
        self.with_bursts(self.bdp(self.bw.value(), gain))
    }

    fn bdp(&self, bw: u64, gain: u64) -> u64 {
        match self.min_rtt.value {
            Some(min) => fixed::bdp(bw, min, gain),
            None => INITIAL_WINDOW,
        }
    }

    /// With three bursts more, an even number, and room to probe.
    fn with_bursts(&self, segments: u64) -> u64 {
        let even = (self.output.pacer.with_bursts(segments) + 1) & !1;
        let probing = matches!(self.mode, Mode::ProbeBw { phase: 0, .. });
        even + if probing { 2 } else { 0 }
    }

    /// The window that the model allows.
    pub(super) fn target(&self) -> u64 {
        let product = self.bdp(self.model_bw(), self.gains.cwnd);
        self.with_bursts(product + self.aggregation_allowance())
    }

    fn aggregation_allowance(&self) -> u64 {
        if !self.full_pipe.reached {
            return 0;
        }
        let max = fixed::delivered_in(self.model_bw(), MAX_EXTRA);
        self.aggregation.extra_acked().min(max)
    }
}

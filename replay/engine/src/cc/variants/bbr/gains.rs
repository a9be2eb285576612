//! Gains of a mode: how much faster than the path it sends, and how many products it has in flight; for version 1 what they
//! are.
//!
//! Does not depend on when a mode begins.

use super::fixed;
use super::fixed::UNIT;
use super::probe_bw_phase::DRAINING_PHASE;
use super::{BbrParams, Mode};

/// The gains of a mode, in 256ths.
#[derive(Clone, Copy, Debug)]
pub struct Gains {
    /// Of the rate.
    pub pacing: u64,
    /// Of the window.
    pub cwnd: u64,
}

impl Gains {
    /// Those of `mode` in version 1.
    pub(super) fn of(mode: Mode, params: &BbrParams) -> Self {
        match mode {
            Mode::Startup => Self::of_startup(params.high_gain, params),
            Mode::Drain => Self::of_startup(params.drain_gain, params),
            Mode::ProbeBw { phase, .. } => Self {
                pacing: cycle_gain(phase, params),
                cwnd: fixed::gain(params.cwnd_gain),
            },
            Mode::ProbeRtt { .. } => Self {
                pacing: UNIT,
                cwnd: UNIT,
            },
        }
    }

    /// DRAIN keeps the window of STARTUP.
    fn of_startup(pacing: u32, params: &BbrParams) -> Self {
        Self {
            pacing: pacing.into(),
            cwnd: params.high_gain.into(),
        }
    }
}

/// A cycle probes for a phase, drains what that has queued in the next, and cruises in the others.
fn cycle_gain(phase: u8, params: &BbrParams) -> u64 {
    let probe = fixed::gain(params.probe_gain);
    match phase {
        0 => probe,
        DRAINING_PHASE => (2 * UNIT).saturating_sub(probe),
        _ => UNIT,
    }
}

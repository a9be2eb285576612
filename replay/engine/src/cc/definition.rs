//! The definition of a variant: name and source, parameters, what it fixes of the stack, and the parts of its
//! controller.
//!
//! Does not depend on which variants there are. Each has a page, `docs/variants/<name>.md`.

use hindflight_kernels::StreamRng;

use super::decrease::{Decrease, Factor, OfIncrease};
use super::increase::Increase;
use super::params::{ParamSpec, ParamValues};
use super::variants::reno::Reno;
use super::windowed::{WindowPacing, Windowed};
use super::{Controller, HALF};
use crate::config::{Profile, SlowStartKind, StackParams};

/// A variant. [`Definition::BASE`] has what most of them share.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Name in scenarios.
    pub name: &'static str,
    /// Names in other systems: they are suggested, but not accepted.
    pub other_names: &'static [&'static str],
    /// Family.
    pub family: &'static str,
    /// Summary, one line.
    pub summary: &'static str,
    /// Where it is defined, as `RFC 9438`.
    pub source: &'static str,
    /// Year of that source.
    pub year: u16,
    /// Its parameters.
    pub params: &'static [ParamSpec],
    /// Whether it has them under this profile.
    pub has_params: fn(Profile) -> bool,
    /// Pairs of parameters; the first one must be less than the second.
    pub ordered: fn(&ParamValues) -> Vec<Ordered>,
    /// Stack parameters that it determines.
    pub fix: fn(&mut StackParams, &ParamValues),
    /// ns-2 runs it as a module of Linux, under TCP/Linux: under profile `ns2` it recovers as that does, unless the
    /// scenario says otherwise; the others as Sack1, unless they determine their recovery.
    pub ns2_module: bool,
    /// Whether it needs a forecast of outages, which no captured stack had; without one it is like its base.
    pub needs_forecast: bool,
    /// Exit of slow start unless the scenario chooses one.
    pub slow_start: fn(Profile) -> SlowStartKind,
    /// Whether it uses the stack's initial ssthresh, with these parameters.
    pub uses_ssthresh: fn(&ParamValues) -> bool,
    /// Whether it determines the rule and the limits of the retransmission timer.
    pub fixes_rto: bool,
    /// Its pacing, whatever the stack does.
    pub pacing: fn(&ParamValues) -> Option<WindowPacing>,
    /// The parts of its controller; the random stream is for its random decisions.
    pub parts: fn(&StackParams, &ParamValues, StreamRng) -> ControllerParts,
}

impl Definition {
    /// The windows of RFC 5681, without parameters, with the stack of the profile.
    pub const BASE: Self = Self {
        name: "",
        other_names: &[],
        family: "",
        summary: "",
        source: "",
        year: 0,
        params: &[],
        has_params: |_| true,
        ordered: |_| Vec::new(),
        fix: |_, _| {},
        ns2_module: false,
        needs_forecast: false,
        slow_start: |_| SlowStartKind::Standard,
        uses_ssthresh: |_| true,
        fixes_rto: false,
        pacing: |_| None,
        parts: |stack, _, _| ControllerParts::halved(Reno::default(), stack.profile),
    };
}

/// The lower and the upper parameter, each with its value.
pub type Ordered = [(&'static str, f64); 2];

/// The parts of a controller.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one per connection, taken apart immediately"
)]
pub enum ControllerParts {
    /// An increase rule and a decrease rule, with the stack's slow start.
    Rules(Increase, Decrease),
    /// A window with its own slow start; the stack may pace it.
    Window(Windowed),
    /// A complete controller.
    Whole(Controller),
}

impl ControllerParts {
    /// An increase rule that also determines the decrease.
    pub fn own(increase: impl Into<Increase>) -> Self {
        Self::Rules(increase.into(), OfIncrease.into())
    }

    /// An increase rule whose window is halved; the profile decides what is halved.
    pub fn halved(increase: impl Into<Increase>, profile: Profile) -> Self {
        Self::Rules(increase.into(), Factor::of(HALF, profile).into())
    }

    /// Reno's increase with this decrease rule.
    pub fn over_reno(decrease: impl Into<Decrease>) -> Self {
        Self::Rules(Reno::default().into(), decrease.into())
    }
}

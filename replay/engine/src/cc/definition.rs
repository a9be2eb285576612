//! What a variant says of itself: its name and its source, its parameters, what it fixes of the stack, and what its
//! controller is made of.
//!
//! Does not depend on which variants there are. Each has its page `docs/variants/<name>.md`.

use hindflight_kernels::StreamRng;

use super::decrease::{Decrease, Factor, OfIncrease};
use super::increase::Increase;
use super::params::{ParamSpec, ParamValues};
use super::variants::reno::Reno;
use super::windowed::{WindowPacing, Windowed};
use super::{Controller, HALF};
use crate::config::{Profile, SlowStartKind, StackParams};

/// A variant. What most have alike stands in [`Definition::BASE`].
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Name in scenarios.
    pub name: &'static str,
    /// What it is called elsewhere: suggested where it is asked for, never taken.
    pub other_names: &'static [&'static str],
    /// Family.
    pub family: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it is defined, as `RFC 9438`.
    pub source: &'static str,
    /// Year of that source.
    pub year: u16,
    /// Its own parameters.
    pub params: &'static [ParamSpec],
    /// Whether it has them under this profile.
    pub has_params: fn(Profile) -> bool,
    /// Pairs of parameters of which the first must be less than the second.
    pub ordered: fn(&ParamValues) -> Vec<Ordered>,
    /// What it fixes of the stack.
    pub fix: fn(&mut StackParams, &ParamValues),
    /// Whether it is nothing special without a forecast of outages, which no stack that was captured had.
    pub needs_forecast: bool,
    /// How its slow start ends where the scenario does not say.
    pub slow_start: fn(Profile) -> SlowStartKind,
    /// How it paces, whatever the stack does.
    pub pacing: fn(&ParamValues) -> Option<WindowPacing>,
    /// What its controller is made of; the draws decide what it leaves to chance.
    pub parts: fn(&StackParams, &ParamValues, StreamRng) -> ControllerParts,
}

impl Definition {
    /// RFC 5681's windows, no parameters, and nothing that the stack does not say.
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
        needs_forecast: false,
        slow_start: |_| SlowStartKind::Standard,
        pacing: |_| None,
        parts: |stack, _, _| ControllerParts::halved(Reno::default(), stack.profile),
    };
}

/// The lower and the upper parameter, each with its value.
pub type Ordered = [(&'static str, f64); 2];

/// What a controller is made of.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one per connection, taken apart as soon as it is made"
)]
pub enum ControllerParts {
    /// A growth and a reduction, behind a slow start of the stack's kind.
    Rules(Increase, Decrease),
    /// A window that knows no slow start of the usual kind; the stack may pace it.
    Window(Windowed),
    /// All of it.
    Whole(Controller),
}

impl ControllerParts {
    /// A growth that says itself what a loss costs.
    pub fn own(increase: impl Into<Increase>) -> Self {
        Self::Rules(increase.into(), OfIncrease.into())
    }

    /// A growth which a loss costs half, of what the profile's stack halves.
    pub fn halved(increase: impl Into<Increase>, profile: Profile) -> Self {
        Self::Rules(increase.into(), Factor::of(HALF, profile).into())
    }

    /// Reno's growth over a reduction of its own.
    pub fn over_reno(decrease: impl Into<Decrease>) -> Self {
        Self::Rules(Reno::default().into(), decrease.into())
    }
}

//! The variants whose windows are RFC 5681's: they differ in loss detection and loss recovery.
//!
//! Does not depend on recovery itself: each names the sender's part. Read RFC 5681 §3 first.

use hindflight_kernels::StreamRng;

use super::ns2_linux_reno::Ns2LinuxReno;
use super::ns2_reno::{Ns2Half, Ns2Reno};
use super::reno::Reno;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::ParamValues;
use crate::config::{Profile, RecoveryKind, StackParams};
use crate::sim::time::{MILLISECOND, Nanos};

/// Goff et al. 2000 §3.1 ask for a round trip's warning; this is one over a geostationary satellite.
const FREEZE_WARNING: Nanos = 500 * MILLISECOND;

/// RFC 5681 with its own fast recovery.
pub const RENO: Definition = Definition {
    name: "reno",
    family: "loss",
    summary: "slow start, congestion avoidance, fast recovery without SACK (RFC 5681)",
    source: "RFC 5681",
    year: 2009,
    fix: |stack, _| stack.recovery = RecoveryKind::Reno,
    parts: windows,
    ..Definition::BASE
};

/// RFC 6582.
pub const NEWRENO: Definition = Definition {
    name: "newreno",
    family: "loss",
    summary: "Reno that retransmits on partial ACKs, without SACK (RFC 6582)",
    source: "RFC 6582",
    year: 2012,
    fix: |stack, _| stack.recovery = RecoveryKind::Newreno,
    parts: windows,
    ..Definition::BASE
};

/// RFC 6675.
pub const SACK: Definition = Definition {
    name: "sack",
    other_names: &["newreno-sack", "reno-sack", "sack1"],
    family: "loss",
    summary: "Reno's windows with SACK-based recovery (RFC 6675)",
    source: "RFC 6675",
    year: 2012,
    fix: |stack, _| stack.recovery = RecoveryKind::Sack,
    parts: windows,
    ..Definition::BASE
};

/// The profile's recovery.
pub const LINUX_RENO: Definition = Definition {
    name: "linux-reno",
    other_names: &["reno-linux"],
    family: "loss",
    summary: "Reno's windows with the recovery of the stack profile",
    source: "RFC 5681",
    year: 2009,
    ns2_module: true,
    parts: windows,
    ..Definition::BASE
};

/// Freeze-TCP: its receiver acts, not its window.
pub const FREEZE_TCP: Definition = Definition {
    name: "freeze-tcp",
    other_names: &["freeze"],
    family: "loss",
    summary: "Reno's windows; the receiver closes its window before an outage and opens it with three ACKs",
    source: "Goff et al. 2000",
    year: 2000,
    fix: |stack, _| {
        stack.freeze_warning_ns.get_or_insert(FREEZE_WARNING);
    },
    needs_forecast: true,
    parts: windows,
    ..Definition::BASE
};

/// RFC 5681's windows; under the profile `ns2` those of its agents.
fn windows(stack: &StackParams, _: &ParamValues, _: StreamRng) -> ControllerParts {
    match stack.profile {
        Profile::Ns2 if stack.runs_ns2_module() => {
            ControllerParts::halved(Ns2LinuxReno::new(stack.smss_bytes), stack.profile)
        }
        Profile::Ns2 => ControllerParts::Rules(Ns2Reno.into(), Ns2Half.into()),
        Profile::Rfc | Profile::Linux => ControllerParts::halved(Reno::default(), stack.profile),
    }
}

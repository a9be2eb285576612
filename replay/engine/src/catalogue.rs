//! The catalogue of variants: one exhaustive match from a name to its parts.
//!
//! Must not know how the parts work. Each variant has its page `docs/variants/<name>.md`.

use crate::config::{Profile, RecoveryKind, SlowStartKind, StackParams};
use crate::controller::{
    Controller, Cubic, CubicParams, Growth, LinuxCubic, Reduction, ReductionBasis, Reno, SlowStart,
};

/// A TCP variant by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// RFC 5681 with its own fast recovery.
    Reno,
    /// RFC 6582.
    Newreno,
    /// Reno's windows with RFC 6675.
    Sack,
    /// Reno's windows with the profile's recovery.
    LinuxReno,
    /// RFC 9438 with the profile's recovery.
    Cubic,
}

/// What the catalogue says of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariantInfo {
    /// The variant.
    pub variant: Variant,
    /// Name in scenarios.
    pub name: &'static str,
    /// Family.
    pub family: &'static str,
    /// One line.
    pub summary: &'static str,
}

const fn info(
    variant: Variant,
    name: &'static str,
    family: &'static str,
    summary: &'static str,
) -> VariantInfo {
    VariantInfo {
        variant,
        name,
        family,
        summary,
    }
}

/// Every variant, in the order in which they are listed.
pub const VARIANTS: &[VariantInfo] = &[
    info(
        Variant::Reno,
        "reno",
        "loss",
        "slow start, congestion avoidance, fast recovery without SACK (RFC 5681)",
    ),
    info(
        Variant::Newreno,
        "newreno",
        "loss",
        "Reno that answers partial ACKs, without SACK (RFC 6582)",
    ),
    info(
        Variant::Sack,
        "sack",
        "loss",
        "Reno's windows with SACK-based recovery (RFC 6675)",
    ),
    info(
        Variant::LinuxReno,
        "linux-reno",
        "loss",
        "Reno's windows with the recovery of the stack profile",
    ),
    info(
        Variant::Cubic,
        "cubic",
        "loss",
        "cubic growth with the recovery of the stack profile (RFC 9438)",
    ),
];

impl Variant {
    /// The variant called `name`; else the nearest name.
    ///
    /// # Errors
    /// The name that is nearest to an unknown one.
    pub fn from_name(name: &str) -> Result<Self, &'static str> {
        let nearest = |info: &&VariantInfo| edit_distance(name, info.name);
        match VARIANTS.iter().find(|info| info.name == name) {
            Some(info) => Ok(info.variant),
            None => Err(VARIANTS
                .iter()
                .min_by_key(nearest)
                .map_or("", |info| info.name)),
        }
    }

    /// The parameters with what the variant itself fixes.
    pub fn fix(self, params: &StackParams) -> StackParams {
        let recovery = match self {
            Self::Reno => RecoveryKind::Reno,
            Self::Newreno => RecoveryKind::Newreno,
            Self::Sack => RecoveryKind::Sack,
            Self::LinuxReno | Self::Cubic => params.recovery,
        };
        StackParams {
            recovery,
            ..*params
        }
    }

    /// The variant's controller under `params`.
    pub fn controller(self, params: &StackParams) -> Controller {
        let linux = params.profile == Profile::Linux;
        let basis = if linux {
            ReductionBasis::Cwnd
        } else {
            ReductionBasis::FlightSize
        };
        let (growth, beta) = match self {
            Self::Reno | Self::Newreno | Self::Sack | Self::LinuxReno => {
                (Growth::Reno(Reno::default()), RENO_BETA)
            }
            Self::Cubic if linux => (Growth::LinuxCubic(LinuxCubic::default()), LinuxCubic::BETA),
            Self::Cubic => {
                let cubic = CubicParams::default();
                (Growth::Cubic(Cubic::new(cubic)), cubic.beta)
            }
        };
        let ssthresh = params
            .initial_ssthresh_pkts
            .map_or(f64::INFINITY, f64::from);
        let initial_window = f64::from(params.initial_window_pkts);
        Controller::new(
            initial_window,
            ssthresh,
            self.slow_start(params),
            growth,
            Reduction { beta, basis },
        )
    }

    fn slow_start(self, params: &StackParams) -> SlowStart {
        let natural = match self {
            Self::Cubic if params.profile == Profile::Linux => SlowStartKind::Hystart,
            _ => SlowStartKind::Standard,
        };
        match params.slow_start.unwrap_or(natural) {
            SlowStartKind::Standard => SlowStart::standard(params.slow_start_limit_pkts),
            SlowStartKind::Hystart => SlowStart::hystart(params.slow_start_limit_pkts),
            SlowStartKind::Hystartpp => SlowStart::hystartpp(params.slow_start_limit_pkts),
        }
    }
}

/// RFC 5681 §3.1 equation 4.
const RENO_BETA: f64 = 0.5;

/// Levenshtein's distance, for the nearest name.
pub(crate) fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_found_and_a_slip_suggests_the_nearest() {
        for info in VARIANTS {
            assert_eq!(Variant::from_name(info.name), Ok(info.variant));
        }
        assert_eq!(Variant::from_name("qbic"), Err("cubic"));
        assert_eq!(Variant::from_name("new-reno"), Err("newreno"));
    }

    #[test]
    fn edit_distance_by_hand() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("sack", "sack"), 0);
    }
}

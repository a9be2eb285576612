//! The catalogue of variants: one exhaustive match from a name to its parts.
//!
//! Must not know how the parts work. Each variant has its page `docs/variants/<name>.md`.

use hindflight_kernels::StreamRng;

use crate::config::{Profile, RecoveryKind, SlowStartKind, StackParams};
use crate::controller::{
    Bbr, BbrParams, Controller, Cubic, CubicParams, Factor, Growth, Held, LinuxCubic, ParamSpec,
    ParamValues, ReductionBasis, Reno, SlowStart, Window, WindowPacing, Windowed,
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
    /// BBR version 1, as Linux.
    Bbr,
}

/// What the catalogue says of a variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VariantInfo {
    /// The variant.
    pub variant: Variant,
    /// Name in scenarios.
    pub name: &'static str,
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
}

/// Every variant, in the order in which they are listed.
pub const VARIANTS: &[VariantInfo] = &[
    VariantInfo {
        variant: Variant::Reno,
        name: "reno",
        family: "loss",
        summary: "slow start, congestion avoidance, fast recovery without SACK (RFC 5681)",
        source: "RFC 5681",
        year: 2009,
        params: &[],
    },
    VariantInfo {
        variant: Variant::Newreno,
        name: "newreno",
        family: "loss",
        summary: "Reno that answers partial ACKs, without SACK (RFC 6582)",
        source: "RFC 6582",
        year: 2012,
        params: &[],
    },
    VariantInfo {
        variant: Variant::Sack,
        name: "sack",
        family: "loss",
        summary: "Reno's windows with SACK-based recovery (RFC 6675)",
        source: "RFC 6675",
        year: 2012,
        params: &[],
    },
    VariantInfo {
        variant: Variant::LinuxReno,
        name: "linux-reno",
        family: "loss",
        summary: "Reno's windows with the recovery of the stack profile",
        source: "RFC 5681",
        year: 2009,
        params: &[],
    },
    VariantInfo {
        variant: Variant::Cubic,
        name: "cubic",
        family: "loss",
        summary: "cubic growth with the recovery of the stack profile (RFC 9438)",
        source: "RFC 9438",
        year: 2023,
        params: CubicParams::SPECS,
    },
    VariantInfo {
        variant: Variant::Bbr,
        name: "bbr",
        family: "model",
        summary: "paces by a model of the path: greatest delivery rate, least round-trip time (BBR v1, as Linux)",
        source: "Cardwell et al., ACM Queue 14-5",
        year: 2016,
        params: BbrParams::SPECS,
    },
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
            Self::LinuxReno | Self::Cubic | Self::Bbr => params.recovery,
        };
        StackParams {
            recovery,
            ..*params
        }
    }

    /// Its own parameters under `profile`.
    pub fn specs(self, profile: Profile) -> &'static [ParamSpec] {
        match self {
            // Linux's constants are what the profile promises.
            Self::Cubic if profile == Profile::Linux => &[],
            _ => self.info().params,
        }
    }

    /// What the catalogue says of it.
    pub fn info(self) -> &'static VariantInfo {
        let own = VARIANTS.iter().find(|info| info.variant == self);
        own.unwrap_or(&VARIANTS[0])
    }

    /// The variant's controller under the stack's `params`, with a scenario's `values` for its own parameters;
    /// `draws` decides what it leaves to chance.
    pub fn controller(
        self,
        params: &StackParams,
        values: &ParamValues,
        draws: StreamRng,
    ) -> Controller {
        if let Some(pkts) = params.fixed_window_pkts {
            return Held::windowed(pkts).into();
        }
        let linux = params.profile == Profile::Linux;
        let basis = if linux {
            ReductionBasis::Cwnd
        } else {
            ReductionBasis::FlightSize
        };
        let (growth, beta) = match self {
            Self::Bbr => {
                let bbr = BbrParams::default().with(values);
                return Bbr::new(bbr, params.initial_window_pkts, params.smss_bytes, draws).into();
            }
            Self::Reno | Self::Newreno | Self::Sack | Self::LinuxReno => {
                (Growth::from(Reno::default()), RENO_BETA)
            }
            Self::Cubic if linux => (Growth::from(LinuxCubic::default()), LinuxCubic::BETA),
            Self::Cubic => {
                let cubic = CubicParams::default().with(values);
                (Growth::from(Cubic::new(cubic)), cubic.beta)
            }
        };
        let ssthresh = params.initial_ssthresh_pkts;
        let window = Window {
            cwnd: f64::from(params.initial_window_pkts),
            ssthresh: ssthresh.map_or(f64::INFINITY, f64::from),
        };
        let reduction = Factor { beta, basis };
        Windowed::new(window, self.slow_start(params), growth, reduction)
            .paced(params.pacing.then_some(WindowPacing::LINUX))
            .into()
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
            assert_eq!(info.variant.info(), info);
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

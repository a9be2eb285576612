//! The catalogue of variants: one exhaustive match from a name to its parts.
//!
//! Must not know how the parts work. Each variant has its page `docs/variants/<name>.md`.

use hindflight_kernels::StreamRng;

use crate::config::{Profile, RecoveryKind, RtoRule, SlowStartKind, StackParams};
#[allow(
    clippy::wildcard_imports,
    reason = "the catalogue names every one of them"
)]
use crate::controller::*;
use crate::time::{MILLISECOND, Nanos};

mod list;

pub use list::VARIANTS;

/// A TCP variant by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// RFC 5681 with its own fast recovery.
    Reno,
    /// RFC 6582.
    Newreno,
    /// Reno's windows with RFC 6675.
    Sack,
    /// Forward acknowledgement, 1996.
    Fack,
    /// Adaptive fast start, 2012.
    Afstart,
    /// Reno's windows, which outages do not cost, 2000.
    FreezeTcp,
    /// Reno's windows with the profile's recovery.
    LinuxReno,
    /// RFC 9438 with the profile's recovery.
    Cubic,
    /// BBR version 1, as Linux.
    Bbr,
    /// BBR version 3, as Linux's branch of it.
    Bbr3,
    /// Westwood+, 2004 and Linux.
    WestwoodPlus,
    /// Westwood, 2001.
    WestwoodBwe,
    /// Westwood with the adaptive bandwidth share estimate, 2002.
    WestwoodAbse,
    /// Hybla.
    Hybla,
    /// Compound TCP.
    Compound,
    /// Adaptive ssthresh reviser over another growth.
    Asran,
    /// Vegas.
    Vegas,
    /// RFC 3649.
    Highspeed,
    /// BIC.
    Bic,
    /// TCP Illinois.
    Illinois,
    /// H-TCP.
    Htcp,
    /// YeAH.
    Yeah,
    /// Scalable TCP.
    Scalable,
    /// Veno.
    Veno,
    /// RFC 6817.
    Ledbat,
    /// AeroTCP.
    Aerotcp,
    /// CCSDS 714.0-B.
    ScpsTp,
    /// TCP-Peach and TCP-Peach+.
    Peach,
    /// Super TCP.
    Supertcp,
    /// A user's own, by the name behind [`EXTERNAL`].
    External,
}

/// Before the name of a user's controller.
pub const EXTERNAL: &str = "external:";

/// What the catalogue says of a user's controller: nothing.
const EXTERNAL_INFO: VariantInfo = VariantInfo {
    variant: Variant::External,
    name: "external",
    family: "user",
    summary: "a user's own",
    source: "",
    year: 0,
    params: &[],
};

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

impl Variant {
    /// The variant called `name`; else the nearest name.
    ///
    /// # Errors
    /// The name that is nearest to an unknown one.
    pub fn from_name(name: &str) -> Result<Self, &'static str> {
        if name.starts_with(EXTERNAL) {
            return Ok(Self::External);
        }
        let nearest = |info: &&VariantInfo| edit_distance(name, info.name);
        match VARIANTS.iter().find(|info| info.name == name) {
            Some(info) => Ok(info.variant),
            None => Err(VARIANTS
                .iter()
                .min_by_key(nearest)
                .map_or("", |info| info.name)),
        }
    }

    /// The parameters with what the variant itself fixes, with a scenario's `values` for its own.
    pub fn fix(self, params: &StackParams, values: &ParamValues) -> StackParams {
        let recovery = match self {
            Self::Reno => RecoveryKind::Reno,
            Self::Newreno => RecoveryKind::Newreno,
            Self::Sack => RecoveryKind::Sack,
            Self::Fack => RecoveryKind::Fack,
            Self::Aerotcp => RecoveryKind::Aerotcp,
            Self::ScpsTp => RecoveryKind::Snack,
            Self::Supertcp => RecoveryKind::Supertcp,
            _ => params.recovery,
        };
        let fine = self == Self::Aerotcp;
        let warning = self.needs_forecast().then_some(FREEZE_WARNING);
        let dummies = (self == Self::Peach).then(|| PeachParams::of(values).dummy_segments());
        let acks_per_round_trip =
            (self == Self::ScpsTp).then(|| ScpsTpParams::of(values).acks_per_round_trip);
        StackParams {
            acks_per_round_trip,
            dummies,
            recovery,
            freeze_warning_ns: params.freeze_warning_ns.or(warning),
            rto_rule: if fine {
                RtoRule::Rfc6298
            } else {
                params.rto_rule
            },
            min_rto_ns: if fine {
                AEROTCP_TICK
            } else {
                params.min_rto_ns
            },
            clock_granularity_ns: if fine {
                AEROTCP_TICK
            } else {
                params.clock_granularity_ns
            },
            ..*params
        }
    }

    /// Whether it is nothing special without a forecast of outages, which no stack that was captured had.
    pub fn needs_forecast(self) -> bool {
        self == Self::FreezeTcp
    }

    /// Its own parameters under `profile`.
    pub fn specs(self, profile: Profile) -> &'static [ParamSpec] {
        match self {
            // Linux's constants are what the profile promises.
            Self::Cubic if profile == Profile::Linux => &[],
            _ => self.info().params,
        }
    }

    /// The profiles under which it has its own parameters; none of them where it has no parameters.
    pub fn profiles(self) -> Vec<&'static str> {
        let having = |profile: &Profile| !self.specs(*profile).is_empty();
        let profiles = Profile::ALL.into_iter().filter(having);
        profiles.map(Profile::name).collect()
    }

    /// The first two of its parameters that contradict each other under `values`: lower one, upper one. Each alone is
    /// within its range.
    pub fn contradiction(self, values: &ParamValues) -> Option<(&'static str, &'static str)> {
        let ordered: Vec<(&'static str, f64, &'static str, f64)> = match self {
            Self::Highspeed => {
                let p = HighspeedParams::of(values);
                vec![("low_window", p.low_window, "high_window", p.high_window)]
            }
            Self::Vegas => {
                let p = VegasParams::of(values);
                vec![("alpha", p.alpha, "beta", p.beta)]
            }
            Self::ScpsTp => {
                let p = ScpsTpParams::of(values);
                vec![("alpha", p.alpha, "beta", p.beta)]
            }
            Self::Illinois => {
                let p = IllinoisParams::of(values);
                vec![
                    ("alpha_min", p.alpha_min, "alpha_max", p.alpha_max),
                    ("beta_min", p.beta_min, "beta_max", p.beta_max),
                ]
            }
            _ => Vec::new(),
        };
        ordered
            .into_iter()
            .find(|(_, lower, _, upper)| lower >= upper)
            .map(|(lower, _, upper, _)| (lower, upper))
    }

    /// What the catalogue says of it.
    pub fn info(self) -> &'static VariantInfo {
        let own = VARIANTS.iter().find(|info| info.variant == self);
        own.unwrap_or(&EXTERNAL_INFO)
    }

    /// The variant's controller under the stack's `params`, with a scenario's `values` for its own parameters;
    /// `draws` decides what it leaves to chance.
    pub fn controller(
        self,
        params: &StackParams,
        values: &ParamValues,
        draws: StreamRng,
    ) -> Controller {
        let pacing = self.pacing(params, values);
        if let Some(pkts) = params.fixed_window_pkts {
            return Held::windowed(pkts).paced(pacing).into();
        }
        let (profile, start) = (params.profile, initial_window(params));
        let packet_bytes = params.smss_bytes + params.header_bytes;
        let share = |(growth, beta): (Growth, f64)| (growth, Factor::of(beta, profile).into());
        let halved = |growth: Growth| share((growth, HALF));
        let (growth, reduction) = match self {
            Self::Bbr => return bbr(params, BbrParams::of(values), draws),
            Self::Bbr3 => return bbr3(params, Bbr3Params::of(values), draws),
            Self::Aerotcp => {
                return AerotcpParams::of(values)
                    .windowed(packet_bytes)
                    .paced(pacing)
                    .into();
            }
            Self::Supertcp => {
                return SupertcpParams::of(values)
                    .windowed(packet_bytes)
                    .paced(pacing)
                    .into();
            }
            Self::ScpsTp => return ScpsTpParams::of(values).windowed(start, params).into(),
            Self::Peach => return Peach::windowed(start.cwnd, params).paced(pacing).into(),
            // A user's own is made elsewhere (`Externals`): here stands what it would be without a rule of its own.
            Self::Reno
            | Self::Newreno
            | Self::Sack
            | Self::LinuxReno
            | Self::FreezeTcp
            | Self::External => plain_reno(self, profile),
            Self::Cubic => share(cubic(profile, values)),
            Self::Fack => reno(Fack::new(FackParams::of(values), profile)),
            Self::Asran => asran(profile, AsranParams::of(values)),
            Self::WestwoodPlus => reno(Westwood::new(WestwoodParams::of(values))),
            Self::WestwoodBwe => reno(WestwoodBwe::new(WestwoodBweParams::of(values))),
            Self::WestwoodAbse => reno(WestwoodAbse::new(WestwoodAbseParams::of(values))),
            Self::Hybla => halved(Hybla::new(HyblaParams::of(values)).into()),
            Self::Afstart => halved(Afstart::new(AfstartParams::of(values)).into()),
            Self::Vegas => halved(Vegas::new(VegasParams::of(values)).into()),
            Self::Ledbat => halved(Ledbat::new(LedbatParams::of(values)).into()),
            Self::Bic => own(Bic::new(BicParams::of(values))),
            Self::Compound => own(Compound::new(CompoundParams::of(values))),
            Self::Highspeed => own(Highspeed::new(HighspeedParams::of(values))),
            Self::Htcp => own(Htcp::new(HtcpParams::of(values))),
            Self::Illinois => own(Illinois::new(IllinoisParams::of(values))),
            Self::Scalable => own(Scalable::new(ScalableParams::of(values))),
            Self::Veno => own(Veno::new(VenoParams::of(values))),
            Self::Yeah => own(Yeah::new(YeahParams::of(values))),
        };
        let windowed = Windowed::new(start, self.slow_start(params), growth, reduction);
        windowed.paced(pacing).into()
    }

    fn pacing(self, params: &StackParams, values: &ParamValues) -> Option<WindowPacing> {
        let spaced = self == Self::Hybla && HyblaParams::of(values).spacing;
        if spaced {
            return Some(WindowPacing::SPACED);
        }
        params.pacing.then_some(WindowPacing::LINUX)
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

/// Where a connection starts.
pub fn initial_window(params: &StackParams) -> Window {
    let ssthresh = params.initial_ssthresh_pkts;
    Window {
        cwnd: f64::from(params.initial_window_pkts),
        ssthresh: ssthresh.map_or(f64::INFINITY, f64::from),
    }
}

fn bbr(params: &StackParams, own: BbrParams, draws: StreamRng) -> Controller {
    Bbr::new(own, params.initial_window_pkts, params.smss_bytes, draws).into()
}

fn bbr3(params: &StackParams, own: Bbr3Params, draws: StreamRng) -> Controller {
    Bbr3::new(own, params.initial_window_pkts, params.smss_bytes, draws).into()
}

/// RFC 5681's windows; under the profile `ns2` those of its agents, which a user's own does not have.
fn plain_reno(variant: Variant, profile: Profile) -> (Growth, Reduction) {
    if profile == Profile::Ns2 && variant != Variant::External {
        return (Ns2Reno.into(), Ns2Half.into());
    }
    let reduction = Factor::of(HALF, profile);
    (Reno::default().into(), reduction.into())
}

/// Reno's growth over a reduction of its own.
fn reno(reduction: impl Into<Reduction>) -> (Growth, Reduction) {
    (Reno::default().into(), reduction.into())
}

/// ASRAN over the base that its parameters name, with the base's defaults.
fn asran(profile: Profile, params: AsranParams) -> (Growth, Reduction) {
    let (growth, beta) = match params.base {
        AsranBase::Newreno => (Reno::default().into(), HALF),
        AsranBase::Cubic => cubic(profile, &ParamValues::new()),
    };
    (growth, Asran::new(params, beta).into())
}

/// A growth that says itself what a loss costs.
fn own(growth: impl Into<Growth>) -> (Growth, Reduction) {
    (growth.into(), OfGrowth.into())
}

/// CUBIC's growth under `profile`, and what it keeps of its window.
fn cubic(profile: Profile, values: &ParamValues) -> (Growth, f64) {
    if profile == Profile::Linux {
        return (LinuxCubic::default().into(), LinuxCubic::BETA);
    }
    let params = CubicParams::of(values);
    (Cubic::new(params).into(), params.beta)
}

/// AeroTCP asks for a timer finer than the usual one and names no figure; a least timeout of 1 s would undo it.
const AEROTCP_TICK: Nanos = 10 * MILLISECOND;
/// Goff et al. 2000 §3.1 ask for a round trip's warning; this is one over a geostationary satellite.
const FREEZE_WARNING: Nanos = 500 * MILLISECOND;

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
        assert_eq!(Variant::from_name("kubic"), Err("cubic"));
        assert_eq!(Variant::from_name("new-reno"), Err("newreno"));
    }

    #[test]
    fn parameters_that_contradict_each_other_are_named() {
        let values = |json: &str| serde_json::from_str(json).expect("well-formed");
        let found = |variant: Variant, json| variant.contradiction(&values(json));
        assert_eq!(found(Variant::Vegas, r#"{"alpha": 3.9}"#), None);
        assert_eq!(
            found(Variant::Vegas, r#"{"alpha": 4}"#),
            Some(("alpha", "beta"))
        );
        let windows = r#"{"low_window": 500, "high_window": 400}"#;
        assert_eq!(
            found(Variant::Highspeed, windows),
            Some(("low_window", "high_window"))
        );
        for info in VARIANTS {
            assert_eq!(found(info.variant, "{}"), None, "{}", info.name);
        }
    }

    #[test]
    fn edit_distance_by_hand() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("sack", "sack"), 0);
    }
}

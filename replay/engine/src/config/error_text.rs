//! English text of configuration errors, for `Display`. Nothing may parse it: read [`ConfigErrorKind`].

use std::fmt;

use super::error::{
    ConfigError, ConfigErrorKind, ConfigErrors, NoEffectReason, Number, ParameterProblem, Relation,
};
use super::{ClockConfig, quantity};

/// One line with every error.
impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.as_slice().iter().enumerate() {
            if place > 0 {
                f.write_str("; ")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem())
    }
}

impl std::error::Error for ConfigError {}

/// `value` of the key `key`, with its unit.
fn shown(key: &str, value: Number) -> String {
    quantity(key, value.as_f64())
}

impl ConfigError {
    /// What is wrong, without the key path.
    #[allow(clippy::too_many_lines, reason = "a table: one arm per kind")]
    pub fn problem(&self) -> String {
        use ConfigErrorKind as Kind;
        let key = self.path.last_key();
        match &self.kind {
            Kind::Malformed { detail } => detail.clone(),
            Kind::OutOfRange { value, min, max } => {
                let [value, min, max] = [value, min, max].map(|number| shown(key, *number));
                format!("{value} is not between {min} and {max}")
            }
            Kind::NoFlows => "there must be at least one flow".into(),
            Kind::TooManyConnections { count, max } => format!(
                "{count} connections of flows, proxies and datagrams are more than {max}, the limit"
            ),
            Kind::TooManyPacketsInFlight { packets, max } => {
                format!("puts {packets} packets on the path at once, more than {max}, the limit")
            }
            Kind::UnknownFlow { number } => format!("there is none with number {number}"),
            Kind::LinkCount { nodes, links } => {
                let needed = nodes.saturating_sub(1);
                format!("{nodes} nodes need {needed} links, not {links}")
            }
            Kind::DuplicateNode { name } => format!("node {name:?} is named twice"),
            Kind::UnknownNode { name, nodes } => {
                format!("{name:?} is no node of the path: {}", nodes.join(", "))
            }
            Kind::NodeOutsideFlow { name, nodes } => format!(
                "{name:?} is no node between the ends of the flow: {}",
                nodes.join(", ")
            ),
            Kind::ReceiverUpstream => {
                "must lie behind the node that sends, in the order of the path".into()
            }
            Kind::SameNode => "is the node that sends".into(),
            Kind::ProxyOrder => "proxies must follow the order of the path, one per node".into(),
            Kind::ParametersWithoutVariant => {
                "a proxy that names no variant takes the flow's with its parameters".into()
            }
            Kind::UnknownVariant {
                name,
                nearest,
                known,
            } => format!(
                "no variant {name:?}; did you mean {nearest:?}? There are {}",
                known.join(", ")
            ),
            Kind::UnknownController { name, known } => {
                format!("no controller {name:?} was given; there are {known:?}")
            }
            Kind::Parameter {
                variant,
                profile,
                problem,
            } => match problem {
                ParameterProblem::OtherProfiles { profiles } => format!(
                    "{variant} has parameters under {} alone, none under {profile}",
                    profiles.join(", ")
                ),
                ParameterProblem::NotBelow { .. } => problem.to_string(),
                _ => format!("{problem} ({variant} under {profile})"),
            },
            Kind::FixedRecovery { variant } => {
                format!("variant {variant:?} fixes its own recovery")
            }
            Kind::EndlessFlow => {
                "a flow without end never closes: give it a size, or an application that ends"
                    .into()
            }
            Kind::Requires { key: other, value } => requires(key, other, *value),
            Kind::Conflicts { with } => conflicts(with),
            Kind::SizeOfApplication { application } => format!(
                "contradicts an application of kind {application:?}, which says itself how much it sends"
            ),
            Kind::Exclusive { keys: [one, other] } => format!("give {one} or {other}, not both"),
            Kind::UnequalLengths {
                keys: ["at_ns", _],
                lengths: [times, sizes],
            } => {
                format!("{times} times and {sizes} sizes; as many of each, and one at least")
            }
            Kind::UnequalLengths { .. } | Kind::FirstNotZero => {
                "needs as many starts_ns as rates_bps, the first start 0".into()
            }
            Kind::NotAscending { .. } if key == "starts_ns" => {
                "starts must ascend and lie before end_ns".into()
            }
            Kind::NotAscending { value } => format!("{value} does not ascend"),
            Kind::Order {
                value,
                must_be,
                other,
                other_value,
                profile,
            } => {
                let what = broken(*must_be);
                if let Some(profile) = profile {
                    let (value, limit) = (shown(key, *value), shown(other, *other_value));
                    format!("{value} is {what} {other}, which is {limit} ({profile})")
                } else {
                    format!("{value} is {what} {other} = {other_value}")
                }
            }
            Kind::SumNotOne { sum } => format!("its probabilities sum to {sum}, not 1"),
            Kind::StayOfOtherClock { clock } => match clock {
                ClockConfig::Packets => "a chain stepped per packet has geometric stays".into(),
                ClockConfig::Time => "a chain in time has stays in ns".into(),
            },
            Kind::ChangesNothing => {
                "changes nothing: give rate_bps, delay_ns, outage, hold or overlap_ns".into()
            }
            Kind::NeverSends => "never sends anything".into(),
            Kind::QueueWithoutRate { queue } => {
                format!("{queue} manages a queue, but without rate_bps nothing ever waits")
            }
            Kind::DuplicateDscp { dscp } => format!("DSCP {dscp} is named twice"),
            Kind::NoDelayOrRate => {
                "a link needs a delay or a rate in one direction at least".into()
            }
            Kind::PacketTooLarge {
                packet_bytes,
                max_bytes,
            } => format!(
                "makes a packet of {packet_bytes} B with its headers; IP takes {max_bytes} B"
            ),
            Kind::BufferBelowTwoSegments { value, smss_bytes } => {
                let value = shown(key, Number::from(*value));
                format!("{value} is less than two segments of {smss_bytes} B")
            }
            Kind::FixedWindowVariant { variant, suitable } => format!(
                "nothing is left of variant {variant:?} over a window that nothing moves; take one of {}",
                suitable.join(", ")
            ),
            Kind::NoEffect {
                variant,
                recovery,
                reason,
            } => no_effect(variant, recovery, *reason),
        }
    }
}

/// How a value breaks the relation that it must have.
fn broken(must_be: Relation) -> &'static str {
    match must_be {
        Relation::Below => "not below",
        Relation::AtMost => "more than",
        Relation::AtLeast => "less than",
        Relation::Above => "not above",
    }
}

fn requires(key: &str, other: &str, value: Option<bool>) -> String {
    match (key, value) {
        (_, None) => format!("means nothing without {other}"),
        ("ecn_beta", Some(value)) => format!("has no effect without {other} = {value}"),
        ("quick_start_bps", Some(value)) => {
            format!("means nothing without {other} = {value}, whose SYN asks")
        }
        (_, Some(value)) => format!("means nothing without {other} = {value}"),
    }
}

fn conflicts(with: &str) -> String {
    match with {
        "application" => {
            "contradicts a stream, which is read as it comes and played at its own rate".into()
        }
        "rate_bps" => "stands beside rate_bps; one of them gives the rate".into(),
        "in_order" => "packets of two links overtake, so in_order must be false".into(),
        "rate_trace" => "a rate trace is that of one link".into(),
        other => format!("means nothing over a {other}"),
    }
}

impl fmt::Display for ParameterProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds = |min: f64, max: f64, unit: &str| {
            let space = if unit.is_empty() { "" } else { " " };
            format!("between {min} and {max}{space}{unit}")
        };
        match self {
            Self::NoParameters => f.write_str("the variant has no parameters"),
            Self::OtherProfiles { profiles } => write!(f, "only under {}", profiles.join(", ")),
            Self::Unknown { nearest, known } => write!(
                f,
                "no such parameter; did you mean {nearest:?}? There are {}",
                known.join(", ")
            ),
            &Self::OutOfRange {
                value,
                min,
                max,
                unit: "bit/s",
            } => {
                let [value, min, max] = [value, min, max].map(|bps| quantity("_bps", bps));
                write!(f, "{value} is not between {min} and {max}")
            }
            Self::OutOfRange {
                value,
                min,
                max,
                unit,
            } => write!(f, "{value} is not {}", bounds(*min, *max, unit)),
            Self::NotWhole { value } => write!(f, "{value} is not a whole number"),
            Self::NotAllowed { value, allowed } => {
                write!(f, "{value:?} is none of {}", allowed.join(", "))
            }
            Self::NotNumber { min, max, unit } => {
                write!(f, "must be a number {}", bounds(*min, *max, unit))
            }
            Self::NotFlag => f.write_str("must be true or false"),
            Self::NotName { allowed } => write!(f, "must be one of {}", allowed.join(", ")),
            Self::NotBelow { upper } => write!(f, "must be below {upper}"),
        }
    }
}

fn no_effect(variant: &str, recovery: &str, reason: NoEffectReason) -> String {
    let variant = format!("variant {variant:?}");
    match reason {
        NoEffectReason::Ns2SlowStart => {
            "profile \"ns2\" starts as ns-2's agents do, without an end by delay".into()
        }
        NoEffectReason::Ns2IncreasePerAck => {
            "profile \"ns2\" grows by one segment per ACK, whatever that acknowledges".into()
        }
        NoEffectReason::OwnSlowStart => format!("{variant} has a start of its own"),
        NoEffectReason::OwnWindow => format!("{variant} has a window of its own"),
        NoEffectReason::NoSsthresh => format!("{variant} has no slow start threshold to set"),
        NoEffectReason::NotPaced => format!("{variant} is a controller that is not paced"),
        NoEffectReason::AlwaysPaced => format!("{variant} paces whatever the stack does"),
        NoEffectReason::IgnoresMarks => format!("{variant} keeps its window at a mark"),
        NoEffectReason::NoHandshake => {
            "means nothing without handshake = true, whose SYN is sent again".into()
        }
        NoEffectReason::OwnTimer => format!("{variant} has a timer of its own"),
        NoEffectReason::UnroundedTimer => {
            "means nothing to rto_rule linux, which rounds no time".into()
        }
        NoEffectReason::RecoveryWithoutSack => format!(
            "is a SACK block, and {variant} has recovery {recovery}, which reads none; leave it out"
        ),
        NoEffectReason::NeedsRackPrr => format!(
            "needs recovery rack_prr with sack, which sends the probes; {variant} has {recovery}"
        ),
        NoEffectReason::NoUndo => format!("{variant} has a recovery that takes nothing back"),
        NoEffectReason::NeedsUndoWithoutTimestamps => {
            "means nothing without undo, nor beside timestamps, whose echo tells of a spurious timeout at once"
                .into()
        }
        NoEffectReason::NeedsNewreno => {
            format!("needs recovery newreno; {variant} has {recovery}")
        }
        NoEffectReason::NeedsDupacks => format!(
            "needs a recovery that counts duplicate ACKs; {variant} has {recovery}, which counts what is in flight"
        ),
    }
}

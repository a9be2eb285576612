//! Errors of a configuration: where, which kind, and the values that explain it.
//!
//! An error holds no prose. [`ConfigErrors`] serialises to a list of objects, each with `path`, `kind` and, where the
//! kind has any, `fields`; the Python package words them in the terms of the scenario file.

use std::fmt;

use serde::Serialize;

use super::{ClockConfig, Profile};

/// One step of a key path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PathStep {
    /// Key of an object.
    Key(String),
    /// Index of a list, from 0.
    Index(usize),
}

/// Where a value stands; serialises to a list, as `["flows", 0, "stack", "smss_bytes"]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct KeyPath(pub Vec<PathStep>);

impl KeyPath {
    /// The path of a key at the top level.
    pub fn root(key: &str) -> Self {
        Self(vec![PathStep::Key(key.to_owned())])
    }
}

/// As `flows[0].stack.smss_bytes`.
impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Key(key) if place == 0 => f.write_str(key)?,
                PathStep::Key(key) => write!(f, ".{key}")?,
                PathStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// A number of a configuration, in the unit that ends its key.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Number {
    /// A count, octets or nanoseconds.
    Integer(u64),
    /// Any other number.
    Real(f64),
}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(impl From<$integer> for Number {
            fn from(number: $integer) -> Self {
                Self::Integer(number.into())
            }
        })*
    };
}

integers!(u8, u16, u32, u64);

impl From<usize> for Number {
    fn from(number: usize) -> Self {
        Self::Integer(number as u64)
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

/// What a value must be with respect to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Less.
    Below,
    /// Less or equal.
    AtMost,
    /// Greater or equal.
    AtLeast,
    /// Greater.
    Above,
}

/// What is wrong with one value of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfigError {
    /// Where.
    pub path: KeyPath,
    /// What.
    #[serde(flatten)]
    pub kind: ConfigErrorKind,
}

/// Errors in a line of text, at most.
const MAX_SHOWN: usize = 8;

/// Everything that is wrong with a configuration, at least one error, in the order of the checks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// A single error.
    pub fn one(path: KeyPath, kind: ConfigErrorKind) -> Self {
        Self(vec![ConfigError { path, kind }])
    }

    /// All of `errors`, if there are any.
    ///
    /// # Errors
    /// `errors`, unless the list is empty.
    pub fn unless_empty(errors: Vec<ConfigError>) -> Result<(), Self> {
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Self(errors))
        }
    }

    /// The errors.
    pub fn as_slice(&self) -> &[ConfigError] {
        &self.0
    }

    /// The errors.
    pub fn into_vec(self) -> Vec<ConfigError> {
        self.0
    }
}

/// One line with the first errors and the number of the others, for developers: the path, and the kind as Rust prints it.
impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.0.iter().take(MAX_SHOWN).enumerate() {
            let separator = if place > 0 { "; " } else { "" };
            write!(f, "{separator}{error}")?;
        }
        match self.0.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "; {more} more"),
        }
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.path, self.kind)
    }
}

impl std::error::Error for ConfigError {}

/// The kinds of errors. Names of keys in fields are the engine's; numbers are in the unit that ends the key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", content = "fields", rename_all = "snake_case")]
#[allow(
    missing_docs,
    reason = "the fields are the values that the kind's documentation names"
)]
pub enum ConfigErrorKind {
    /// The text is not a configuration: unknown keys, missing keys, values of another type. `detail` comes from the
    /// JSON reader.
    Malformed { detail: String },
    /// `value` is less than `min` or greater than `max`.
    OutOfRange {
        value: Number,
        min: Number,
        max: Number,
    },
    /// There is no flow.
    NoFlows,
    /// Ends of flows and datagrams, proxies, and directions of links are more than `max`.
    TooManySources { count: usize, max: usize },
    /// More than `max` datagrams of a source may be in flight at once.
    TooManyPacketsInFlight { packets: u64, max: u64 },
    /// There is no flow of this number.
    UnknownFlow { number: usize },
    /// A path of so many nodes does not have so many links.
    LinkCount { nodes: usize, links: usize },
    /// Two nodes have the same name.
    DuplicateNode { name: String },
    /// The link joins two nodes that links before it join.
    JoinedAlready { nodes: [String; 2] },
    /// The link joins two nodes that no link before it joins to the first one.
    NotJoined { nodes: [String; 2] },
    /// The path has no node of this name.
    UnknownNode { name: String, nodes: Vec<String> },
    /// The node does not lie between the ends of the flow.
    NodeOutsideFlow { name: String, nodes: Vec<String> },
    /// The receiving node is the sending node.
    SameNode,
    /// The proxies do not follow the order of the path, one per node.
    ProxyOrder,
    /// The connections of a shared memory differ in its node or its size.
    PoolDiffers { pool: String },
    /// The connections that a limit counts differ in its node or its values.
    LimitDiffers { limit: String },
    /// A shared memory has no packet for each of its connections.
    PoolTooSmall {
        connections: usize,
        capacity_bytes: u64,
        min_bytes: u64,
    },
    /// ACKs are filtered in a drop-tail queue only.
    FilterWithoutDropTail,
    /// A proxy without a variant takes the flow's, with its parameters.
    ParametersWithoutVariant,
    /// There is no variant of this name.
    UnknownVariant {
        name: String,
        nearest: &'static str,
        known: Vec<&'static str>,
    },
    /// No controller of this name was registered.
    UnknownController { name: String, known: Vec<String> },
    /// A parameter of a variant.
    Parameter {
        variant: &'static str,
        profile: Profile,
        #[serde(flatten)]
        problem: ParameterProblem,
    },
    /// The variant determines the recovery itself.
    FixedRecovery { variant: String },
    /// A flow without end never closes.
    EndlessFlow,
    /// The value has no effect unless `key` is given; with `value`, unless it has that value.
    Requires {
        key: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<bool>,
    },
    /// The value contradicts the key `with`, or has no effect if that is given.
    Conflicts { with: &'static str },
    /// The application determines its own size.
    SizeOfApplication { application: &'static str },
    /// At most one of two keys may be given.
    Exclusive { keys: [&'static str; 2] },
    /// Two lists must have the same length, at least 1.
    UnequalLengths {
        keys: [&'static str; 2],
        lengths: [usize; 2],
    },
    /// The first value of a list must be 0.
    FirstNotZero,
    /// The value is not greater than the one before it.
    NotAscending { value: Number },
    /// The value must be below, at most, at least or above that of the key `other`; with `profile`, one of the two
    /// comes from that profile.
    Order {
        value: Number,
        must_be: Relation,
        other: &'static str,
        other_value: Number,
        #[serde(skip_serializing_if = "Option::is_none")]
        profile: Option<Profile>,
    },
    /// The probabilities of a list do not sum to 1.
    SumNotOne { sum: f64 },
    /// A chain stepped per packet needs geometric stays; one in time needs stays in nanoseconds.
    StayOfOtherClock { clock: ClockConfig },
    /// An entry of a schedule changes nothing.
    ChangesNothing,
    /// All rates of a trace are 0.
    NeverSends,
    /// The queue discipline has no effect without a serialiser.
    QueueWithoutRate { queue: &'static str },
    /// Two classes name the same code point.
    DuplicateDscp { dscp: u8 },
    /// A link needs a delay or a rate in at least one direction.
    NoDelayOrRate,
    /// A segment with its headers is larger than an IP packet.
    PacketTooLarge { packet_bytes: u32, max_bytes: u32 },
    /// The buffer takes less than two segments.
    BufferBelowTwoSegments { value: u64, smss_bytes: u32 },
    /// A fixed window leaves nothing of the variant; `suitable` are the variants that it leaves as they are.
    FixedWindowVariant {
        variant: String,
        suitable: Vec<&'static str>,
    },
    /// The option has no effect for this variant with this recovery.
    NoEffect {
        variant: String,
        recovery: &'static str,
        reason: NoEffectReason,
    },
}

/// What is wrong with a parameter of a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
#[allow(
    missing_docs,
    reason = "the fields are the values that the kind's documentation names"
)]
pub enum ParameterProblem {
    /// The variant has no parameters.
    NoParameters,
    /// The variant has parameters under other profiles only.
    OtherProfiles { profiles: Vec<&'static str> },
    /// The variant has no parameter of this name.
    Unknown {
        nearest: &'static str,
        known: Vec<&'static str>,
    },
    /// A number less than `min` or greater than `max`.
    OutOfRange {
        value: f64,
        min: f64,
        max: f64,
        unit: &'static str,
    },
    /// A number that is not whole.
    NotWhole { value: f64 },
    /// A name that is not in the list.
    NotAllowed {
        value: String,
        allowed: &'static [&'static str],
    },
    /// Not a number.
    NotNumber {
        min: f64,
        max: f64,
        unit: &'static str,
    },
    /// Neither true nor false.
    NotFlag,
    /// Not a name.
    NotName { allowed: &'static [&'static str] },
    /// Not less than the parameter `upper`.
    NotBelow { upper: &'static str },
}

/// Why an option has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoEffectReason {
    /// Profile `ns2` has the slow start of ns-2's agents, without an exit by delay.
    Ns2SlowStart,
    /// Profile `ns2` increases cwnd by one segment per ACK.
    Ns2IncreasePerAck,
    /// The variant has its own slow start.
    OwnSlowStart,
    /// The variant computes its own window.
    OwnWindow,
    /// The variant has no ssthresh that could be set.
    NoSsthresh,
    /// A user's controller is not paced by the stack.
    NotPaced,
    /// The variant always paces.
    AlwaysPaced,
    /// The variant keeps its window at a congestion mark.
    IgnoresMarks,
    /// There is no SYN without a handshake.
    NoHandshake,
    /// The variant has its own retransmission timer.
    OwnTimer,
    /// `rto_rule` `linux` rounds no time.
    UnroundedTimer,
    /// The recovery reads no SACK blocks.
    RecoveryWithoutSack,
    /// Only recovery `rack_prr` with SACK sends tail loss probes.
    NeedsRackPrr,
    /// The recovery undoes no window decrease.
    NoUndo,
    /// F-RTO needs undo, and is redundant with timestamps except under Linux.
    NeedsUndoWithoutTimestamps,
    /// Only recovery `newreno` has partial ACKs.
    NeedsNewreno,
    /// Only a recovery that counts duplicate ACKs has limited transmit.
    NeedsDupacks,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_text_shows_the_first_errors_and_counts_the_others() {
        let text = |errors: usize| {
            let one = ConfigError {
                path: KeyPath::root("flows"),
                kind: ConfigErrorKind::NoFlows,
            };
            let all = vec![one; errors];
            ConfigErrors::unless_empty(all).map_err(|errors| errors.to_string())
        };
        let counts = |errors| text(errors).expect_err("errors").matches("NoFlows").count();
        assert_eq!(text(0), Ok(()));
        assert_eq!([1, 8, 10].map(counts), [1, 8, 8]);
        assert!(text(10).expect_err("errors").ends_with("; 2 more"));
        assert!(!text(8).expect_err("errors").contains("more"));
    }
}

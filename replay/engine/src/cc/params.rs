//! Typed parameters of variants. One table per variant gives name, default, unit, range and source; the same
//! declaration defines the struct that the equations use.
//!
//! Does not depend on any variant. A scenario gives values by name; `check` finds invalid ones.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::catalogue::edit_distance;
use crate::config::ParameterProblem;

/// A value in a scenario.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// True or false.
    Flag(bool),
    /// A number.
    Number(f64),
    /// One of several names.
    Name(String),
}

/// Values by name; absent ones keep their default.
pub type ParamValues = BTreeMap<String, ParamValue>;

/// Type of a parameter, with its default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number from `min` to `max`.
    Number {
        /// Default.
        default: f64,
        /// Minimum.
        min: f64,
        /// Maximum.
        max: f64,
        /// Whole numbers only.
        whole: bool,
    },
    /// True or false.
    Flag {
        /// Default.
        default: bool,
    },
    /// One of several names.
    Choice {
        /// Default.
        default: &'static str,
        /// All names.
        names: &'static [&'static str],
    },
}

/// One row of the table of a variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamSpec {
    /// Name in scenarios.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Unit of a number; empty for a ratio or a count, and for the other kinds.
    pub unit: &'static str,
    /// Where the default comes from, as `RFC 9438 §5.1`.
    pub source: &'static str,
    /// Description, one line.
    pub meaning: &'static str,
}

/// An enum that a parameter may choose from.
pub trait Choice: Copy + 'static {
    /// Every value with its name in scenarios.
    const NAMES: &'static [&'static str];

    /// The value called `name`, if there is one.
    fn from_name(name: &str) -> Option<Self>;
}

/// Checks `values` against the table of a variant. Returns the name of each invalid value with the problem: an unknown
/// name, a value of another type or out of range.
pub fn check(specs: &[ParamSpec], values: &ParamValues) -> Vec<(String, ParameterProblem)> {
    let problem = |(name, value): (&String, &ParamValue)| {
        let problem = match specs.iter().find(|spec| spec.name == name) {
            Some(spec) => spec.problem(value)?,
            None => unknown(specs, name),
        };
        Some((name.clone(), problem))
    };
    values.iter().filter_map(problem).collect()
}

/// Former names of parameters, and their present ones.
const RENAMED: [(&str, &str); 4] = [
    ("greatest_exponent", "max_exponent"),
    ("least_cwnd", "min_cwnd"),
    ("least_interval", "min_interval"),
    ("most", "max_increase"),
];

fn unknown(specs: &[ParamSpec], name: &str) -> ParameterProblem {
    let present = RENAMED.iter().find(|(former, _)| *former == name);
    let name = present.map_or(name, |(_, present)| present);
    let nearest = specs
        .iter()
        .min_by_key(|spec| edit_distance(name, spec.name));
    nearest.map_or(ParameterProblem::NoParameters, |nearest| {
        ParameterProblem::Unknown {
            nearest: nearest.name,
            known: specs.iter().map(|spec| spec.name).collect(),
        }
    })
}

impl ParamSpec {
    /// The default in the syntax of a scenario.
    pub fn default_text(&self) -> String {
        match self.kind {
            Kind::Number { default, .. } => default.to_string(),
            Kind::Flag { default } => default.to_string(),
            Kind::Choice { default, .. } => default.into(),
        }
    }

    /// The allowed values: `min..max` or the names.
    pub fn allowed_text(&self) -> String {
        match self.kind {
            Kind::Number { min, max, .. } => format!("{min}..{max}"),
            Kind::Flag { .. } => "true, false".into(),
            Kind::Choice { names, .. } => names.join(", "),
        }
    }

    /// Why `value` is invalid; none if it is allowed.
    fn problem(&self, value: &ParamValue) -> Option<ParameterProblem> {
        let unit = self.unit;
        match (self.kind, value) {
            (
                Kind::Number {
                    min, max, whole, ..
                },
                &ParamValue::Number(value),
            ) => {
                if !(min..=max).contains(&value) {
                    Some(ParameterProblem::OutOfRange {
                        value,
                        min,
                        max,
                        unit,
                    })
                } else if whole && value.fract() != 0.0 {
                    Some(ParameterProblem::NotWhole { value })
                } else {
                    None
                }
            }
            (Kind::Flag { .. }, ParamValue::Flag(_)) => None,
            (Kind::Choice { names, .. }, ParamValue::Name(name)) => {
                let value = name.clone();
                let unknown = !names.contains(&name.as_str());
                unknown.then_some(ParameterProblem::NotAllowed {
                    value,
                    allowed: names,
                })
            }
            (Kind::Number { min, max, .. }, _) => {
                Some(ParameterProblem::NotNumber { min, max, unit })
            }
            (Kind::Flag { .. }, _) => Some(ParameterProblem::NotFlag),
            (Kind::Choice { names, .. }, _) => Some(ParameterProblem::NotName { allowed: names }),
        }
    }
}

/// The number called `name`, or `default`.
pub fn number(values: &ParamValues, name: &str, default: f64) -> f64 {
    match values.get(name) {
        Some(ParamValue::Number(number)) => *number,
        _ => default,
    }
}

/// The flag called `name`, or `default`.
pub fn flag(values: &ParamValues, name: &str, default: bool) -> bool {
    match values.get(name) {
        Some(ParamValue::Flag(flag)) => *flag,
        _ => default,
    }
}

/// The choice called `name`, or `default`.
pub fn choice<C: Choice>(values: &ParamValues, name: &str, default: C) -> C {
    match values.get(name) {
        Some(ParamValue::Name(chosen)) => C::from_name(chosen).unwrap_or(default),
        _ => default,
    }
}

/// Declares an enum that a parameter may choose from; each value has its name in scenarios.
///
/// ```text
/// choices! {
///     /// How the window decreases.
///     pub enum Mode {
///         /// Halved, then slow start.
///         HalveThenSlowStart = "halve_then_slow_start",
///         /// …
///     }
/// }
/// ```
macro_rules! choices {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$value_doc])* $value,)* }

        impl $crate::cc::Choice for $name {
            const NAMES: &'static [&'static str] = &[$($text),*];

            fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$value),)* _ => None }
            }
        }
    };
}

/// Declares the parameters of a variant: the struct with its defaults, the table `SPECS`, and `with`, which applies the
/// values of a scenario. The first line of a field's documentation is its description in the table.
///
/// ```text
/// parameters! {
///     /// Parameters of Foo.
///     pub struct FooParams {
///         /// Steepness.
///         c: number(0.4, "segments/s³", 0.01, 10.0, "RFC 9438 §5.1"),
///         /// Rounds of the average.
///         rounds: whole(8, "", 1, 64, "paper, §3"),
///         /// Releases bandwidth to new flows.
///         fast_convergence: flag(true, "RFC 9438 §4.7"),
///         /// How the window decreases.
///         mode: choice(Mode, HalveThenSlowStart = "halve_then_slow_start", "paper, §2"),
///     }
/// }
/// ```
macro_rules! parameters {
    ($(#[$doc:meta])* pub struct $name:ident {
        $(#[doc = $meaning:literal] $(#[doc = $more:literal])* $field:ident: $kind:ident $args:tt,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $(#[doc = $meaning] $(#[doc = $more])* pub $field: parameters!(@type $kind $args),)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: parameters!(@default $kind $args),)* }
            }
        }

        impl $name {
            /// The table: name, default, unit, range, source.
            pub const SPECS: &'static [$crate::cc::ParamSpec] = &[
                $($crate::cc::ParamSpec {
                    name: stringify!($field),
                    kind: parameters!(@kind $kind $args),
                    unit: parameters!(@unit $kind $args),
                    source: parameters!(@source $kind $args),
                    meaning: $meaning.trim_ascii(),
                },)*
            ];

            /// The defaults with the `values` of a scenario.
            pub fn of(values: &$crate::cc::ParamValues) -> Self {
                Self::default().with(values)
            }

            /// These parameters with the `values` of a scenario.
            #[must_use]
            pub fn with(self, values: &$crate::cc::ParamValues) -> Self {
                Self {
                    $($field: parameters!(@read values self $field $kind $args),)*
                }
            }
        }
    };

    (@type number $args:tt) => { f64 };
    (@type whole $args:tt) => { u32 };
    (@type flag $args:tt) => { bool };
    (@type choice ($type:ident, $($rest:tt)*)) => { $type };

    (@default number ($default:expr, $($rest:tt)*)) => { $default };
    (@default whole ($default:expr, $($rest:tt)*)) => { $default };
    (@default flag ($default:expr, $($rest:tt)*)) => { $default };
    (@default choice ($type:ident, $value:ident = $($rest:tt)*)) => { $type::$value };

    (@kind number ($default:expr, $unit:literal, $min:expr, $max:expr, $source:literal)) => {
        $crate::cc::Kind::Number { default: $default, min: $min, max: $max, whole: false }
    };
    (@kind whole ($default:expr, $unit:literal, $min:expr, $max:expr, $source:literal)) => {
        $crate::cc::Kind::Number {
            default: $default as f64, min: $min as f64, max: $max as f64, whole: true,
        }
    };
    (@kind flag ($default:expr, $source:literal)) => {
        $crate::cc::Kind::Flag { default: $default }
    };
    (@kind choice ($type:ident, $value:ident = $text:literal, $source:literal)) => {
        $crate::cc::Kind::Choice {
            default: $text, names: <$type as $crate::cc::Choice>::NAMES,
        }
    };

    (@unit number ($default:expr, $unit:literal, $($rest:tt)*)) => { $unit };
    (@unit whole ($default:expr, $unit:literal, $($rest:tt)*)) => { $unit };
    (@unit $kind:ident $args:tt) => { "" };

    (@source flag ($default:expr, $source:literal)) => { $source };
    (@source choice ($type:ident, $value:ident = $text:literal, $source:literal)) => { $source };
    (@source $kind:ident ($default:expr, $unit:literal, $min:expr, $max:expr, $source:literal)) => { $source };

    (@read $values:ident $self:ident $field:ident number $args:tt) => {
        $crate::cc::params::number($values, stringify!($field), $self.$field)
    };
    (@read $values:ident $self:ident $field:ident whole $args:tt) => {
        $crate::cc::params::number($values, stringify!($field), f64::from($self.$field)) as u32
    };
    (@read $values:ident $self:ident $field:ident flag $args:tt) => {
        $crate::cc::params::flag($values, stringify!($field), $self.$field)
    };
    (@read $values:ident $self:ident $field:ident choice $args:tt) => {
        $crate::cc::params::choice($values, stringify!($field), $self.$field)
    };
}

/// Gives `new` to a rule that starts in its default state, but for its parameters: `starts_with!(Foo, FooParams);`.
macro_rules! starts_with {
    ($rule:ident, $params:ident) => {
        impl $rule {
            /// Its first state, with these parameters.
            pub fn new(params: $params) -> Self {
                Self {
                    params,
                    ..Self::default()
                }
            }
        }
    };
}

pub(crate) use choices;
pub(crate) use parameters;
pub(crate) use starts_with;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::catalogue::VARIANTS;

    choices! {
        /// Colours.
        pub enum Colour {
            /// Red.
            Red = "red",
            /// Green.
            Green = "dark_green",
        }
    }

    parameters! {
        /// Parameters of a test.
        pub struct TestParams {
            /// Steepness.
            /// More of it.
            c: number(0.4, "segments/s³", 0.01, 10.0, "RFC 9438 §5.1"),
            /// Rounds.
            rounds: whole(8, "", 1, 64, "a paper, §3"),
            /// Whether.
            whether: flag(true, "another"),
            /// Which.
            colour: choice(Colour, Red = "red", "a third"),
        }
    }

    fn values(json: &str) -> ParamValues {
        serde_json::from_str(json).expect("well-formed")
    }

    fn refusal(json: &str) -> String {
        let problems = check(TestParams::SPECS, &values(json));
        let lines = problems
            .iter()
            .map(|(name, problem)| format!("{name}: {problem:?}"));
        lines.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn values_replace_defaults_by_name() {
        let defaults = TestParams::default();
        assert_eq!(defaults.with(&values("{}")), defaults);
        assert_eq!(TestParams::of(&values("{}")), defaults);
        let given = defaults.with(&values(r#"{"c": 2, "colour": "dark_green"}"#));
        let expected = TestParams {
            c: 2.0,
            colour: Colour::Green,
            ..defaults
        };
        assert_eq!(given, expected);
        let given = defaults.with(&values(r#"{"rounds": 3, "whether": false}"#));
        let expected = TestParams {
            rounds: 3,
            whether: false,
            ..defaults
        };
        assert_eq!(given, expected);
    }

    #[test]
    fn the_table_has_default_unit_range_and_source() {
        let [c, rounds, _, colour] = TestParams::SPECS else {
            panic!("four rows");
        };
        assert_eq!(
            (c.name, c.unit, c.meaning),
            ("c", "segments/s³", "Steepness.")
        );
        assert_eq!(rounds.source, "a paper, §3");
        assert_eq!(
            (c.default_text(), c.allowed_text()),
            ("0.4".into(), "0.01..10".into())
        );
        assert_eq!(colour.allowed_text(), "red, dark_green");
        let names = ["red", "dark_green"].as_slice();
        let default = "red";
        assert_eq!(colour.kind, Kind::Choice { default, names });
    }

    #[test]
    fn problems_name_the_parameter_and_the_allowed_values() {
        for (json, expected) in [
            (
                r#"{"c": 10, "rounds": 64, "whether": false, "colour": "red"}"#,
                "",
            ),
            (
                r#"{"c": 10.1}"#,
                "c: OutOfRange { value: 10.1, min: 0.01, max: 10.0, unit: \"segments/s³\" }",
            ),
            (
                r#"{"c": 0.001}"#,
                "c: OutOfRange { value: 0.001, min: 0.01, max: 10.0, unit: \"segments/s³\" }",
            ),
            (r#"{"rounds": 2.5}"#, "rounds: NotWhole { value: 2.5 }"),
            (
                r#"{"rounds": true}"#,
                "rounds: NotNumber { min: 1.0, max: 64.0, unit: \"\" }",
            ),
            (r#"{"whether": 1}"#, "whether: NotFlag"),
            (
                r#"{"colour": "blue"}"#,
                "colour: NotAllowed { value: \"blue\", allowed: [\"red\", \"dark_green\"] }",
            ),
            (
                r#"{"wether": true}"#,
                "wether: Unknown { nearest: \"whether\", known: [\"c\", \"rounds\", \"whether\", \"colour\"] }",
            ),
        ] {
            assert_eq!(refusal(json), expected);
        }
        assert_eq!(
            check(&[], &values(r#"{"c": 1}"#)),
            [("c".into(), ParameterProblem::NoParameters)]
        );
    }

    #[test]
    fn a_former_name_suggests_the_present_one() {
        for variant in VARIANTS {
            let specs = variant.info().params;
            for (former, present) in RENAMED {
                assert!(!specs.iter().any(|spec| spec.name == former));
                if !specs.iter().any(|spec| spec.name == present) {
                    continue;
                }
                let given = [(former.to_owned(), ParamValue::Number(5.0))].into();
                let problems = check(specs, &given);
                let suggests = |problem: &ParameterProblem| matches!(problem, ParameterProblem::Unknown { nearest, .. } if *nearest == present);
                assert!(
                    suggests(&problems[0].1),
                    "{variant:?} {former}: {problems:?}"
                );
            }
        }
    }
}

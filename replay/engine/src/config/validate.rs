//! Refuses configurations that make no sense, with the key path and what is allowed.
//!
//! Does not depend on how a run is built. Read [`Config::validate`] first.

mod mechanisms;
mod options;
mod path;
mod stack;

pub use options::unheeded_by_all;

use std::fmt;

use super::queue::MAX_DSCP;
use super::{Config, FlowConfig, Profile, StackParams, quantity};
use crate::cc;
use crate::cc::ParamValues;
use crate::cc::catalogue::{EXTERNAL, VARIANTS, Variant};
use crate::sim::time::Nanos;

/// A value that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where, as in `flows[0].stack.smss_bytes`.
    pub key: String,
    /// Why, and what is allowed.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.problem)
    }
}

impl std::error::Error for ConfigError {}

pub(super) type Checked = Result<(), ConfigError>;

/// A month: longer runs and delays are slips of the unit, and the calendar counts up to 52 days.
pub(super) const LONGEST_NS: Nanos = 30 * 86_400 * 1_000_000_000;
const MAX_BPS: f64 = 1e13;
const MIN_BPS: f64 = 8.0;
pub(super) const MAX_PKTS: u64 = 100_000_000;
const MAX_LEGS: usize = 1024;

pub(super) fn refuse(key: impl Into<String>, problem: impl Into<String>) -> Checked {
    Err(ConfigError {
        key: key.into(),
        problem: problem.into(),
    })
}

pub(super) fn within<T: Copy + PartialOrd + fmt::Display>(
    key: &str,
    value: T,
    min: T,
    max: T,
) -> Checked {
    if value >= min && value <= max {
        return Ok(());
    }
    let [value, min, max] = [value, min, max].map(|number| shown(key, number));
    refuse(key, format!("{value} is not between {min} and {max}"))
}

/// A value of `key` as people write it.
pub(super) fn shown<T: fmt::Display>(key: &str, value: T) -> String {
    let text = value.to_string();
    text.parse().map_or(text, |number| quantity(key, number))
}

pub(super) fn probability(key: &str, value: f64) -> Checked {
    within(key, value, 0.0, 1.0)
}

pub(super) fn rate(key: &str, value: Option<f64>) -> Checked {
    value.map_or(Ok(()), |bps| within(key, bps, MIN_BPS, MAX_BPS))
}

impl Config {
    /// Checks every value.
    ///
    /// # Errors
    /// The first value that makes no sense, with its key path.
    pub fn validate(&self) -> Checked {
        within("duration_ns", self.duration_ns, 1, LONGEST_NS)?;
        self.path.validate()?;
        if self.flows.is_empty() {
            return refuse("flows", "there must be at least one flow");
        }
        self.knows_externals()?;
        let legs: usize = self.flows.iter().map(|flow| 1 + flow.proxies.len()).sum();
        let legs = legs + self.datagrams.len();
        within("flows", legs, 1, MAX_LEGS)?;
        for (i, flow) in self.flows.iter().enumerate() {
            flow.validate(&format!("flows[{i}]"), self)?;
        }
        for (i, datagrams) in self.datagrams.iter().enumerate() {
            datagrams.validate(&format!("datagrams[{i}]"), self)?;
        }
        Ok(())
    }
}

impl FlowConfig {
    fn validate(&self, key: &str, config: &Config) -> Checked {
        within(
            &format!("{key}.start_ns"),
            self.start_ns,
            0,
            config.duration_ns,
        )?;
        within(
            &format!("{key}.size_bytes"),
            self.size_bytes.unwrap_or(1),
            1,
            1 << 60,
        )?;
        within(&format!("{key}.dscp"), self.dscp, 0, MAX_DSCP)?;
        let variant = known_variant(&format!("{key}.variant"), &self.variant)?;
        validate_params(
            &format!("{key}.params"),
            variant,
            self.profile,
            &self.params,
        )?;
        StackParams::resolve(self.profile, &self.stack)
            .validate(&format!("{key}.stack"), &self.stack)?;
        if let Some(recovery) = self.stack.recovery {
            let params = StackParams::resolve(self.profile, &self.stack);
            if variant.fix(&params, &self.params).recovery != recovery {
                let problem = format!("variant {:?} fixes its own recovery", self.variant);
                return refuse(format!("{key}.stack.recovery"), problem);
            }
        }
        self.validate_fixed_window(key)?;
        if self.stack.close == Some(true) && self.is_endless() {
            let problem =
                "a flow without end never closes: give it a size, or an application that ends";
            return refuse(format!("{key}.stack.close"), problem);
        }
        self.application.validate(key, self)?;
        let (from, to) = config
            .path
            .ends(key, self.from.as_deref(), self.to.as_deref())?;
        if from >= to {
            let problem = "must lie behind the node that sends, in the order of the path";
            return refuse(format!("{key}.to"), problem);
        }
        self.validate_proxies(key, &config.path.nodes[from..=to])
    }

    fn validate_proxies(&self, key: &str, nodes: &[String]) -> Checked {
        let mut last = 0;
        for (i, proxy) in self.proxies.iter().enumerate() {
            let key = format!("{key}.proxies[{i}]");
            let inner = &nodes[1..nodes.len() - 1];
            let Some(place) = inner.iter().position(|name| *name == proxy.node) else {
                let problem = format!(
                    "{:?} is no node between the ends of the flow: {}",
                    proxy.node,
                    inner.join(", ")
                );
                return refuse(format!("{key}.node"), problem);
            };
            if i > 0 && place <= last {
                return refuse(
                    format!("{key}.node"),
                    "proxies must follow the order of the path, one per node",
                );
            }
            last = place;
            within(
                &format!("{key}.buffer_pkts"),
                u64::from(proxy.buffer_pkts),
                4,
                MAX_PKTS,
            )?;
            if let Some(variant) = &proxy.variant {
                let variant = known_variant(&format!("{key}.variant"), variant)?;
                validate_params(
                    &format!("{key}.params"),
                    variant,
                    self.profile,
                    &proxy.params,
                )?;
            } else if !proxy.params.is_empty() {
                return refuse(
                    format!("{key}.params"),
                    "a proxy that names no variant takes the flow's with its parameters",
                );
            }
        }
        Ok(())
    }
}

impl Config {
    /// A user's controllers must have been given.
    fn knows_externals(&self) -> Checked {
        let known = self.externals.names();
        for (number, flow) in self.flows.iter().enumerate() {
            let proxies = flow.proxies.iter().filter_map(|p| p.variant.as_ref());
            for variant in proxies.chain([&flow.variant]) {
                let name = variant.strip_prefix(EXTERNAL);
                if let Some(name) = name.filter(|name| !known.iter().any(|one| one == name)) {
                    let problem = format!("no controller {name:?} was given; there are {known:?}");
                    return refuse(format!("flows[{number}].variant"), problem);
                }
            }
        }
        Ok(())
    }
}

/// The variant of that name, which stands at `key`.
pub(crate) fn known_variant(key: &str, name: &str) -> Result<Variant, ConfigError> {
    Variant::from_name(name).map_err(|nearest| {
        let all: Vec<_> = VARIANTS.iter().map(|known| known.info().name).collect();
        let problem = format!(
            "no variant {name:?}; did you mean {nearest:?}? There are {}",
            all.join(", ")
        );
        ConfigError {
            key: key.into(),
            problem,
        }
    })
}

fn validate_params(key: &str, variant: Variant, profile: Profile, values: &ParamValues) -> Checked {
    let (name, specs) = (variant.info().name, variant.specs(profile));
    cc::check(specs, values).or_else(|(param, problem)| {
        let elsewhere = specs.is_empty() && !variant.info().params.is_empty();
        let problem = if elsewhere {
            let profiles = variant.profiles().join(", ");
            format!("{name} has parameters under {profiles} alone, none under {profile}")
        } else {
            format!("{problem} ({name} under {profile})")
        };
        refuse(format!("{key}.{param}"), problem)
    })?;
    variant
        .contradiction(values)
        .map_or(Ok(()), |(lower, upper)| {
            refuse(format!("{key}.{lower}"), format!("must be below {upper}"))
        })
}

#[cfg(test)]
mod tests;

//! Checks of a configuration. Every value that makes no sense is found, with its key path and what is allowed.
//!
//! Does not depend on how a run is built. Read [`Config::validate`] first.

mod mechanisms;
mod options;
mod path;
mod place;
mod proxy;
mod stack;

pub use options::ineffective_in_all;
pub(super) use place::{Found, Place};

use super::error::{ConfigErrorKind, ConfigErrors, KeyPath, ParameterProblem};
use super::queue::MAX_DSCP;
use super::{Config, FlowConfig, Profile, StackParams, Tree};
use crate::cc;
use crate::cc::ParamValues;
use crate::cc::catalogue::{EXTERNAL, VARIANTS, Variant};
use crate::sim::calendar::MAX_SOURCES;
use crate::sim::time::Nanos;

/// 30 days. A longer run or delay is a mistake of the unit, and the calendar counts up to 52 days.
pub(super) const MAX_NS: Nanos = 30 * 86_400 * 1_000_000_000;
const MAX_BPS: f64 = 1e13;
const MIN_BPS: f64 = 8.0;
pub(super) const MAX_PKTS: u64 = 100_000_000;
const MAX_FLOW_BYTES: u64 = 1 << 60;

impl Place<'_> {
    /// The rate here must be one that a link or an application can have.
    pub(super) fn rate(&self, bps: f64) -> bool {
        self.within(bps, MIN_BPS, MAX_BPS)
    }

    /// As [`Self::rate`], if it is given.
    pub(super) fn rate_if_given(&self, bps: Option<f64>) {
        self.within_if_given(bps, MIN_BPS, MAX_BPS);
    }
}

impl Config {
    /// Checks every value.
    ///
    /// # Errors
    /// Every value that makes no sense, with its key path. How many sources of events there are is checked before anything
    /// else; if there are too many, that is the only error.
    pub fn validate(&self) -> Result<(), ConfigErrors> {
        let found = Found::default();
        let root = found.root();
        if self.limits_sources(&root.key("flows")) {
            self.validate_all(&root);
        }
        found.finish()
    }

    /// Each end of a connection, each proxy and each direction of a link has its time in the calendar.
    fn limits_sources(&self, place: &Place) -> bool {
        let flows = self.flows.iter().map(|flow| 2 + flow.proxies.len());
        let ends = flows.sum::<usize>() + 2 * self.datagrams.len();
        let count = ends + 2 * self.path.links.len();
        if count <= MAX_SOURCES {
            return true;
        }
        place.refuse(ConfigErrorKind::TooManySources {
            count,
            max: MAX_SOURCES,
        });
        false
    }

    fn validate_all(&self, root: &Place) {
        root.key("duration_ns").within(self.duration_ns, 1, MAX_NS);
        let tree = self.path.validate(&root.key("path"));
        let tree = tree.as_ref();
        if self.flows.is_empty() {
            root.key("flows").refuse(ConfigErrorKind::NoFlows);
        }
        self.validate_externals(root);
        for (i, flow) in self.flows.iter().enumerate() {
            flow.validate(&root.key("flows").index(i), self, tree);
        }
        self.validate_pools(&root.key("flows"));
        self.validate_limits(&root.key("flows"));
        for (i, datagrams) in self.datagrams.iter().enumerate() {
            datagrams.validate(&root.key("datagrams").index(i), self, tree);
        }
    }

    /// A user's controllers must have been registered.
    fn validate_externals(&self, root: &Place) {
        let known = self.externals.names();
        for (i, flow) in self.flows.iter().enumerate() {
            let proxies = flow.proxies.iter().filter_map(|p| p.variant.as_ref());
            for variant in proxies.chain([&flow.variant]) {
                let Some(name) = variant.strip_prefix(EXTERNAL) else {
                    continue;
                };
                if !known.iter().any(|one| one == name) {
                    let kind = ConfigErrorKind::UnknownController {
                        name: name.to_owned(),
                        known: known.iter().map(ToString::to_string).collect(),
                    };
                    root.key("flows").index(i).key("variant").refuse(kind);
                }
            }
        }
    }
}

impl FlowConfig {
    fn validate(&self, place: &Place, config: &Config, tree: Option<&Tree>) {
        let errors_before = place.found().count();
        let start = place.key("start_ns");
        start.within(self.start_ns, 0, config.duration_ns);
        if let Some(stop_ns) = self.stop_ns {
            let stop = place.key("stop_ns");
            stop.within(stop_ns, self.start_ns.saturating_add(1), MAX_NS);
        }
        let size = place.key("size_bytes");
        size.within_if_given(self.size_bytes, 1, MAX_FLOW_BYTES);
        place.key("dscp").within(self.dscp, 0, MAX_DSCP);
        let variant = variant_at(&place.key("variant"), &self.variant);
        if let Some(variant) = variant {
            validate_params(&place.key("params"), variant, self.profile, &self.params);
        }
        let stack = place.key("stack");
        let params = StackParams::resolve(self.profile, &self.stack);
        params.validate(&stack, &self.stack);
        // What follows makes controllers of these values, which must be sound.
        if let Some(variant) = variant.filter(|_| place.found().count() == errors_before) {
            let fixed = variant.fix(&params, &self.params).recovery;
            if self.stack.sets_another(fixed) {
                let variant = self.variant.clone();
                let recovery = stack.key("recovery");
                recovery.refuse(ConfigErrorKind::FixedRecovery { variant });
            }
            self.validate_fixed_window(&stack);
        }
        if self.stack.close == Some(true) && self.is_endless() {
            stack.key("close").refuse(ConfigErrorKind::EndlessFlow);
        }
        self.application.validate(place, self);
        let ends = (config.path).ends_at(place, self.from.as_deref(), self.to.as_deref());
        if let (Some((from, to)), Some(tree)) = (ends, tree) {
            let inner = tree.between(from, to).into_iter();
            let names: Vec<_> = inner.map(|i| config.path.nodes[i].clone()).collect();
            self.validate_proxies(place, &names, config);
            self.validate_ack_filters(place, config, tree);
        }
    }

    /// `inner` are the nodes between the ends of the flow.
    fn validate_proxies(&self, place: &Place, inner: &[String], config: &Config) {
        let mut last = None;
        for (i, proxy) in self.proxies.iter().enumerate() {
            let list = place.key("proxies");
            let place = list.index(i);
            let site = inner.iter().position(|name| *name == proxy.node);
            if site.is_none() {
                place.key("node").refuse(ConfigErrorKind::NodeOutsideFlow {
                    name: proxy.node.clone(),
                    nodes: inner.to_vec(),
                });
            } else if last.is_some() && site <= last {
                place.key("node").refuse(ConfigErrorKind::ProxyOrder);
            }
            last = site.or(last);
            self.validate_proxy(&place, proxy, config.duration_ns);
        }
    }
}

/// The variant of this name; `key` names its place in the error.
///
/// # Errors
/// If there is no such variant; the error has the most similar name.
pub(crate) fn known_variant(key: &str, name: &str) -> Result<Variant, ConfigErrors> {
    find_variant(name).map_err(|kind| ConfigErrors::one(KeyPath::root(key), kind))
}

fn variant_at(place: &Place, name: &str) -> Option<Variant> {
    find_variant(name).map_err(|kind| place.refuse(kind)).ok()
}

fn find_variant(name: &str) -> Result<Variant, ConfigErrorKind> {
    Variant::from_name(name).map_err(|nearest| ConfigErrorKind::UnknownVariant {
        name: name.to_owned(),
        nearest,
        known: VARIANTS.iter().map(|known| known.info().name).collect(),
    })
}

fn validate_params(place: &Place, variant: Variant, profile: Profile, values: &ParamValues) {
    let (name, specs) = (variant.info().name, variant.specs(profile));
    let parameter = |problem| ConfigErrorKind::Parameter {
        variant: name,
        profile,
        problem,
    };
    for (param, problem) in cc::check(specs, values) {
        let elsewhere = specs.is_empty() && !variant.info().params.is_empty();
        let problem = if elsewhere {
            let profiles = variant.profiles();
            ParameterProblem::OtherProfiles { profiles }
        } else {
            problem
        };
        place.key(&param).refuse(parameter(problem));
    }
    if let Some((lower, upper)) = variant.contradiction(values) {
        let problem = ParameterProblem::NotBelow { upper };
        place.key(lower).refuse(parameter(problem));
    }
}

#[cfg(test)]
mod tests;

//! Refuses configurations that make no sense, with the key path and what is allowed.
//!
//! Must not know how a run is built.

use std::fmt;

use super::queue::MOST_DSCP;
use super::{
    ChangeConfig, Config, DirectionConfig, FlowConfig, PathConfig, Profile, QueueConfig,
    RateTraceConfig, StackParams,
};
use crate::catalogue::{EXTERNAL, VARIANTS, Variant};
use crate::controller::{self, ParamValues};
use crate::time::Nanos;

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
const GREATEST_BPS: f64 = 1e13;
const LEAST_BPS: f64 = 8.0;
pub(super) const MOST_PKTS: u64 = 100_000_000;
const MOST_LEGS: usize = 1024;
const MOST_NODES: usize = 512;

pub(super) fn refuse(key: impl Into<String>, problem: impl Into<String>) -> Checked {
    Err(ConfigError {
        key: key.into(),
        problem: problem.into(),
    })
}

pub(super) fn within<T: Copy + PartialOrd + fmt::Display>(
    key: &str,
    value: T,
    least: T,
    most: T,
) -> Checked {
    if value >= least && value <= most {
        Ok(())
    } else {
        refuse(key, format!("{value} is not between {least} and {most}"))
    }
}

pub(super) fn probability(key: &str, value: f64) -> Checked {
    within(key, value, 0.0, 1.0)
}

pub(super) fn rate(key: &str, value: Option<f64>) -> Checked {
    value.map_or(Ok(()), |bps| within(key, bps, LEAST_BPS, GREATEST_BPS))
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
        within("flows", legs, 1, MOST_LEGS)?;
        for (i, flow) in self.flows.iter().enumerate() {
            flow.validate(&format!("flows[{i}]"), self)?;
        }
        for (i, datagrams) in self.datagrams.iter().enumerate() {
            datagrams.validate(&format!("datagrams[{i}]"), self)?;
        }
        Ok(())
    }
}

impl PathConfig {
    /// Places on the path of the nodes `from` and `to`, its ends where they are not named.
    ///
    /// # Errors
    /// A name that is none of the path's nodes; `key` is the path of who names it.
    pub fn ends(
        &self,
        key: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<(usize, usize), ConfigError> {
        let site = |role: &str, name: Option<&str>, unnamed: usize| {
            let Some(name) = name else {
                return Ok(unnamed);
            };
            let place = self.nodes.iter().position(|node| node == name);
            place.ok_or_else(|| ConfigError {
                key: format!("{key}.{role}"),
                problem: format!("{name:?} is no node of the path: {}", self.nodes.join(", ")),
            })
        };
        Ok((
            site("from", from, 0)?,
            site("to", to, self.nodes.len() - 1)?,
        ))
    }

    fn validate(&self) -> Checked {
        within("path.nodes", self.nodes.len(), 2, MOST_NODES)?;
        if self.links.len() + 1 != self.nodes.len() {
            let (nodes, links) = (self.nodes.len(), self.links.len());
            return refuse(
                "path.links",
                format!("{nodes} nodes need {} links, not {links}", nodes - 1),
            );
        }
        for (i, name) in self.nodes.iter().enumerate() {
            if self.nodes[..i].contains(name) {
                return refuse(
                    format!("path.nodes[{i}]"),
                    format!("node {name:?} is named twice"),
                );
            }
        }
        for (i, link) in self.links.iter().enumerate() {
            link.forward.validate(&format!("path.links[{i}].forward"))?;
            link.reverse.validate(&format!("path.links[{i}].reverse"))?;
        }
        // A round trip that takes no time would let a window double for ever at one instant.
        let takes_time = |d: &DirectionConfig| d.delay_ns > 0 || d.rate_bps.is_some();
        for (i, link) in self.links.iter().enumerate() {
            if !takes_time(&link.forward) && !takes_time(&link.reverse) {
                return refuse(
                    format!("path.links[{i}]"),
                    "a link needs a delay or a rate in one direction at least",
                );
            }
        }
        Ok(())
    }
}

impl DirectionConfig {
    fn validate(&self, key: &str) -> Checked {
        rate(&format!("{key}.rate_bps"), self.rate_bps)?;
        within(&format!("{key}.delay_ns"), self.delay_ns, 0, LONGEST_NS)?;
        self.queue.validate(&format!("{key}.queue"))?;
        if let Some(jitter) = &self.jitter {
            jitter.validate(&format!("{key}.jitter"))?;
        }
        if let Some(trace) = &self.rate_trace {
            trace.validate(&format!("{key}.rate_trace"), self)?;
        }
        let serialises = self.rate_bps.is_some()
            || self.rate_trace.is_some()
            || self.schedule.iter().any(|change| change.rate_bps.is_some());
        if !serialises && !matches!(self.queue, QueueConfig::DropTail(_)) {
            let problem = format!(
                "{} manages a queue, but without rate_bps nothing ever waits",
                self.queue.name()
            );
            return refuse(format!("{key}.queue"), problem);
        }
        self.loss.validate(&format!("{key}.loss"))?;
        let mut last = 0;
        for (i, change) in self.schedule.iter().enumerate() {
            let key = format!("{key}.schedule[{i}]");
            within(&format!("{key}.at_ns"), change.at_ns, last, LONGEST_NS)?;
            last = change.at_ns;
            rate(&format!("{key}.rate_bps"), change.rate_bps)?;
            within(
                &format!("{key}.delay_ns"),
                change.delay_ns.unwrap_or(0),
                0,
                LONGEST_NS,
            )?;
            self.validate_overlap(&key, change)?;
            let stays = change.rate_bps.is_none() && change.delay_ns.is_none();
            let stays = stays && change.overlap_ns.is_none();
            if stays && change.outage.is_none() && change.hold.is_none() {
                return refuse(
                    key,
                    "changes nothing: give rate_bps, delay_ns, outage, hold or overlap_ns",
                );
            }
        }
        Ok(())
    }

    fn validate_overlap(&self, key: &str, change: &ChangeConfig) -> Checked {
        let Some(overlap) = change.overlap_ns else {
            return Ok(());
        };
        let key = format!("{key}.overlap_ns");
        within(&key, overlap, 0, LONGEST_NS)?;
        if self.in_order {
            return refuse(
                key,
                "packets of two links overtake, so in_order must be false",
            );
        }
        if self.rate_trace.is_some() {
            return refuse(key, "a rate trace is that of one link");
        }
        Ok(())
    }
}

impl RateTraceConfig {
    fn validate(&self, key: &str, direction: &DirectionConfig) -> Checked {
        if direction.rate_bps.is_some() || direction.schedule.iter().any(|c| c.rate_bps.is_some()) {
            return refuse(key, "stands beside rate_bps; one of them gives the rate");
        }
        if self.starts_ns.len() != self.rates_bps.len() || self.starts_ns.first() != Some(&0) {
            return refuse(
                key,
                "needs as many starts_ns as rates_bps, the first start 0",
            );
        }
        within(&format!("{key}.end_ns"), self.end_ns, 1, LONGEST_NS)?;
        let ends = self.starts_ns.iter().skip(1).chain([&self.end_ns]);
        if let Some(i) = self
            .starts_ns
            .iter()
            .zip(ends)
            .position(|(start, end)| start >= end)
        {
            return refuse(
                format!("{key}.starts_ns[{i}]"),
                "starts must ascend and lie before end_ns",
            );
        }
        for (i, &bps) in self.rates_bps.iter().enumerate() {
            if bps != 0.0 {
                rate(&format!("{key}.rates_bps[{i}]"), Some(bps))?;
            }
        }
        if self.rates_bps.iter().all(|&bps| bps == 0.0) {
            return refuse(key, "never sends anything");
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
        within(&format!("{key}.dscp"), self.dscp, 0, MOST_DSCP)?;
        let variant = known_variant(&format!("{key}.variant"), &self.variant)?;
        validate_params(
            &format!("{key}.params"),
            variant,
            self.profile,
            &self.params,
        )?;
        validate_stack(
            &format!("{key}.stack"),
            &StackParams::resolve(self.profile, &self.stack),
        )?;
        if let Some(recovery) = self.stack.recovery {
            let params = StackParams::resolve(self.profile, &self.stack);
            if variant.fix(&params).recovery != recovery {
                let problem = format!("variant {:?} fixes its own recovery", self.variant);
                return refuse(format!("{key}.stack.recovery"), problem);
            }
        }
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
                MOST_PKTS,
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

fn known_variant(key: &str, name: &str) -> Result<Variant, ConfigError> {
    Variant::from_name(name).map_err(|nearest| {
        let all: Vec<_> = VARIANTS.iter().map(|info| info.name).collect();
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
    controller::check(variant.specs(profile), values).or_else(|(name, problem)| {
        let variant = variant.info().name;
        let profile = format!("{profile:?}").to_lowercase();
        let problem = format!("{problem} (variant {variant:?}, profile {profile:?})");
        refuse(format!("{key}.{name}"), problem)
    })?;
    variant
        .contradiction(values)
        .map_or(Ok(()), |(lower, upper)| {
            refuse(format!("{key}.{lower}"), format!("must be below {upper}"))
        })
}

fn validate_stack(key: &str, params: &StackParams) -> Checked {
    let at = |name: &str| format!("{key}.{name}");
    within(&at("smss_bytes"), params.smss_bytes, 1, 65_000)?;
    within(&at("header_bytes"), params.header_bytes, 0, 120)?;
    within(
        &at("smss_bytes"),
        params.smss_bytes + params.header_bytes,
        1,
        65_535,
    )?;
    within(
        &at("initial_window_pkts"),
        params.initial_window_pkts,
        1,
        1_000_000,
    )?;
    if let Some(ssthresh) = params.initial_ssthresh_pkts {
        within(&at("initial_ssthresh_pkts"), ssthresh, 2, u32::MAX)?;
    }
    if let Some(fixed) = params.fixed_window_pkts {
        within(&at("fixed_window_pkts"), fixed, 2, 1_000_000)?;
    }
    if let Some(limit) = params.slow_start_limit_pkts {
        within(&at("slow_start_limit_pkts"), limit, 1, u32::MAX)?;
    }
    within(&at("min_rto_ns"), params.min_rto_ns, 1_000_000, LONGEST_NS)?;
    within(
        &at("initial_rto_ns"),
        params.initial_rto_ns,
        1_000_000,
        LONGEST_NS,
    )?;
    within(
        &at("max_rto_ns"),
        params.max_rto_ns,
        params.min_rto_ns,
        LONGEST_NS,
    )?;
    within(
        &at("clock_granularity_ns"),
        params.clock_granularity_ns,
        0,
        1_000_000_000,
    )?;
    if let Some(most) = params.user_timeout_ns {
        within(&at("user_timeout_ns"), most, 1_000_000, LONGEST_NS)?;
    }
    // As Linux bounds them.
    if let Some(retries) = params.retry_limit {
        within(&at("retry_limit"), retries, 1, 255)?;
    }
    if let Some(retries) = params.syn_retry_limit {
        within(&at("syn_retry_limit"), retries, 1, 127)?;
    }
    if let Some(beta) = params.ecn_beta {
        within(&at("ecn_beta"), beta, 0.1, 1.0)?;
        if !params.ecn {
            return refuse(at("ecn_beta"), "has no effect without ecn = true");
        }
    }
    // RFC 5681 §4.2: less than half a second.
    within(
        &at("delayed_ack_timeout_ns"),
        params.delayed_ack_timeout_ns,
        1_000_000,
        500_000_000,
    )?;
    within(
        &at("receive_buffer_bytes"),
        params.receive_buffer_bytes,
        2 * u64::from(params.smss_bytes),
        1 << 30,
    )?;
    if let Some(most) = params.receive_buffer_max_bytes {
        within(
            &at("receive_buffer_max_bytes"),
            most,
            params.receive_buffer_bytes,
            1 << 30,
        )?;
    }
    rate(&at("read_rate_bps"), params.read_rate_bps)?;
    validate_send_buffer(key, params)
}

fn validate_send_buffer(key: &str, params: &StackParams) -> Checked {
    let most = format!("{key}.send_buffer_max_bytes");
    let unsent = format!("{key}.notsent_lowat_bytes");
    let Some(bytes) = params.send_buffer_bytes else {
        return match (params.send_buffer_max_bytes, params.notsent_lowat_bytes) {
            (Some(_), _) => refuse(most, "means nothing without send_buffer_bytes"),
            (None, Some(_)) => refuse(unsent, "means nothing without send_buffer_bytes"),
            (None, None) => Ok(()),
        };
    };
    if let Some(octets) = params.notsent_lowat_bytes {
        within(&unsent, octets, 1, 1 << 40)?;
    }
    within(
        &format!("{key}.send_buffer_bytes"),
        bytes,
        2 * u64::from(params.smss_bytes),
        1 << 40,
    )?;
    params
        .send_buffer_max_bytes
        .map_or(Ok(()), |max| within(&most, max, bytes, 1 << 40))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(change: &str, to: &str) -> String {
        let good = r#"{"duration_ns": 1000000000,
            "path": {"nodes": ["a", "b", "c"], "links": [
                {"name": "ab", "forward": {"delay_ns": 1000, "rate_bps": 1e6}, "reverse": {"delay_ns": 1000}},
                {"name": "bc", "forward": {"delay_ns": 1000}, "reverse": {"delay_ns": 1000}}]},
            "flows": [{"name": "f", "variant": "cubic", "proxies": [{"node": "b"}]}]}"#;
        assert!(good.contains(change), "{change}");
        let config: Config = serde_json::from_str(&good.replace(change, to)).expect("well-formed");
        config
            .validate()
            .map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_good_configuration_passes() {
        assert_eq!(problem("cubic", "cubic"), "");
    }

    #[test]
    fn each_slip_names_its_key() {
        for (change, to, expected) in [
            (
                "1e6",
                "-1",
                "path.links[0].forward.rate_bps: -1 is not between 8",
            ),
            (
                "\"cubic\"",
                "\"cubik\"",
                "flows[0].variant: no variant \"cubik\"; did you mean \"cubic\"?",
            ),
            (
                "\"node\": \"b\"",
                "\"node\": \"c\"",
                "flows[0].proxies[0].node: \"c\" is no node between the ends",
            ),
            (
                "[\"a\", \"b\", \"c\"]",
                "[\"a\", \"b\"]",
                "path.links: 2 nodes need 1 links, not 2",
            ),
            (
                "[\"a\", \"b\", \"c\"]",
                "[\"a\", \"b\", \"a\"]",
                "path.nodes[2]: node \"a\" is named twice",
            ),
            ("1000000000", "0", "duration_ns: 0 is not between 1"),
            (
                "\"rate_bps\": 1e6",
                "\"loss\": {\"kind\": \"bernoulli\", \"per\": 1.5}",
                "path.links[0].forward.loss.per: 1.5 is not between 0 and 1",
            ),
            (
                "\"rate_bps\": 1e6",
                "\"loss\": {\"kind\": \"trace\", \"positions\": [3, 3], \"known_pkts\": 9, \"mode\": \"replayed\"}",
                "path.links[0].forward.loss.positions[1]: 3 does not ascend",
            ),
            (
                "\"variant\": \"cubic\"",
                "\"variant\": \"cubic\", \"params\": {\"betta\": 0.7}",
                "flows[0].params.betta: no such parameter; did you mean \"beta\"?",
            ),
            (
                "\"variant\": \"cubic\"",
                "\"variant\": \"cubic\", \"params\": {\"beta\": 1}",
                "flows[0].params.beta: 1 is not between 0.1 and 0.99 (variant \"cubic\", profile",
            ),
            (
                "\"variant\": \"cubic\"",
                "\"variant\": \"newreno\", \"params\": {\"beta\": 0.7}",
                "flows[0].params.beta: the variant has no parameters (variant \"newreno\", profile",
            ),
            (
                "\"variant\": \"cubic\"",
                "\"variant\": \"cubic\", \"profile\": \"linux\", \"params\": {\"beta\": 0.7}",
                "flows[0].params.beta: the variant has no parameters (variant \"cubic\", profile \"linux\")",
            ),
            (
                "\"node\": \"b\"",
                "\"node\": \"b\", \"params\": {\"beta\": 0.7}",
                "flows[0].proxies[0].params: a proxy that names no variant takes the flow's",
            ),
            (
                "\"variant\": \"cubic\"",
                "\"variant\": \"newreno\", \"stack\": {\"recovery\": \"sack\"}",
                "flows[0].stack.recovery: variant \"newreno\" fixes its own recovery",
            ),
            (
                "\"variant\": \"cubic\"",
                "\"variant\": \"cubic\", \"application\": {\"kind\": \"greedy\", \"write_bytes\": 65536}",
                "flows[0].application.write_bytes: means nothing without stack.send_buffer_bytes",
            ),
            (
                "\"variant\": \"cubic\"",
                "\"variant\": \"cubic\", \"stack\": {\"send_buffer_max_bytes\": 65536}",
                "flows[0].stack.send_buffer_max_bytes: means nothing without send_buffer_bytes",
            ),
            (
                "\"variant\": \"cubic\"",
                "\"variant\": \"cubic\", \"stack\": {\"notsent_lowat_bytes\": 65536}",
                "flows[0].stack.notsent_lowat_bytes: means nothing without send_buffer_bytes",
            ),
            (
                "\"variant\": \"cubic\"",
                "\"variant\": \"cubic\", \"stack\": {\"send_buffer_bytes\": 9000, \"notsent_lowat_bytes\": 0}",
                "flows[0].stack.notsent_lowat_bytes: 0 is not between 1 and",
            ),
            (
                "\"variant\": \"cubic\"",
                "\"variant\": \"cubic\", \"stack\": {\"send_buffer_bytes\": 9000, \"send_buffer_max_bytes\": 8999}",
                "flows[0].stack.send_buffer_max_bytes: 8999 is not between 9000 and",
            ),
        ] {
            let got = problem(change, to);
            assert!(got.starts_with(expected), "{got}\nexpected {expected}");
        }
    }

    #[test]
    fn not_a_number_is_out_of_every_range() {
        assert!(within("x", f64::NAN, 0.0, 1.0).is_err());
    }
}

//! The configuration of a run: path, links, flows, proxies and stack parameters, as plain values with serde names.
//!
//! Does not depend on how anything runs. Every number carries its unit in its name; `validate` finds every value that
//! makes no sense. The Python side (`replay/`) reads TOML and writes this as JSON.

mod application;
mod datagram;
mod error;
mod first_sender;
mod jitter;
mod loss;
mod proxy;
mod queue;
mod recorded;
mod stack;
mod tree;
mod validate;

use std::ops::Range;

use serde::Deserialize;

pub use application::{ApplicationConfig, Spread};
pub use datagram::{BurstConfig, DATAGRAM_HEADER_BYTES, DatagramConfig};
pub use error::{
    ConfigError, ConfigErrorKind, ConfigErrors, KeyPath, NoEffectReason, Number, ParameterProblem,
    PathStep, Relation,
};
pub use jitter::JitterConfig;
pub use loss::{ClockConfig, LossConfig, SpanConfig, StateConfig, StayConfig, TraceModeConfig};
pub use proxy::{
    AcknowledgePolicy, AdvertisePolicy, BeyondLimit, BufferSize, FaultConfig, FaultKind,
    ForwardWindow, HandshakePolicy, LegStack, LimitConfig, ProxyConfig, ProxyKind,
};
pub use queue::{
    AckFilterConfig, CodelConfig, DropTailConfig, DrrConfig, PieConfig, PriorityConfig,
    QueueConfig, RedConfig,
};
pub use recorded::RecordedConfig;
pub use stack::{
    HandoverRule, NagleRule, ProbeSegments, Profile, RecoveryKind, RtoRule, SlowStartKind,
    StackOverrides, StackParams,
};
pub use tree::Tree;
pub use validate::ineffective_in_all;
pub(crate) use validate::known_variant;

use crate::cc::{Externals, ParamValues};
use crate::sim::time::Nanos;

/// A run, without its seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// End of the run.
    pub duration_ns: Nanos,
    /// The chain of nodes and links.
    pub path: PathConfig,
    /// The connections that share it.
    pub flows: Vec<FlowConfig>,
    /// Cross traffic of datagrams.
    #[serde(default)]
    pub datagrams: Vec<DatagramConfig>,
    /// Controllers that the user has registered, for flows whose variant is `external:NAME`.
    #[serde(skip)]
    pub externals: Externals,
}

/// Nodes joined by links to a tree. Link `i` joins nodes `i` and `i + 1`, unless it names others: then one of them is joined
/// by a link before it, and the other one is not.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathConfig {
    /// Names of the nodes; data go from the first one to the last one unless a flow names others.
    pub nodes: Vec<String>,
    /// The links between them.
    pub links: Vec<LinkConfig>,
}

/// A link: two directions that share nothing.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Name, for reports.
    pub name: String,
    /// Node at which its forward direction begins; none: that of its number.
    pub from: Option<String>,
    /// Node at which its forward direction ends; none: the one after that.
    pub to: Option<String>,
    /// From `from` to `to`.
    pub forward: DirectionConfig,
    /// The other way.
    pub reverse: DirectionConfig,
}

/// One direction of a link. A packet passes queue and serialiser, loss, and propagation, in this order.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectionConfig {
    /// Rate of the serialiser over IP octets; none: neither serialiser nor queue.
    pub rate_bps: Option<f64>,
    /// The rate over time, instead of `rate_bps`.
    pub rate_trace: Option<RateTraceConfig>,
    /// Propagation delay.
    pub delay_ns: Nanos,
    /// Queue discipline in front of the serialiser.
    #[serde(default)]
    pub queue: QueueConfig,
    /// The loss process.
    #[serde(default)]
    pub loss: LossConfig,
    /// Which packets the loss process applies to.
    #[serde(default)]
    pub loss_applies_to: LossScope,
    /// Random or recorded addition to the delay of each packet; none: no jitter.
    pub jitter: Option<JitterConfig>,
    /// Deliver in order even if the delay decreases or varies; otherwise later packets may overtake.
    #[serde(default)]
    pub in_order: bool,
    /// Changes of rate, delay and availability, in ascending order of time.
    #[serde(default)]
    pub schedule: Vec<ChangeConfig>,
}

impl DirectionConfig {
    /// The same with a queue that filters the ACKs of these legs, if it is drop-tail.
    pub(crate) fn filtering(&self, legs: &[Range<u16>]) -> Self {
        let mut config = self.clone();
        if let QueueConfig::DropTail(queue) = &self.queue {
            config.queue = QueueConfig::AckFilter(AckFilterConfig {
                queue: queue.clone(),
                legs: legs.to_vec(),
            });
        }
        config
    }
}

/// A rate that changes with time and repeats from `end_ns` on. At rate 0 nothing is sent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateTraceConfig {
    /// Start of each interval since the start of the run, ascending, the first one 0.
    pub starts_ns: Vec<Nanos>,
    /// Rate in each interval.
    pub rates_bps: Vec<f64>,
    /// Length of the trace.
    pub end_ns: Nanos,
}

/// From `at_ns` on, the given values apply; those left out stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeConfig {
    /// Time since the start of the run.
    pub at_ns: Nanos,
    /// New rate.
    pub rate_bps: Option<f64>,
    /// New propagation delay.
    pub delay_ns: Option<Nanos>,
    /// Whether the link is down: a packet whose serialisation ends or that would arrive while it is down is lost.
    pub outage: Option<bool>,
    /// Whether transmission is suspended: packets wait in the queue.
    pub hold: Option<bool>,
    /// Handover to a second link with its own queue; the old link drains for this time.
    pub overlap_ns: Option<Nanos>,
}

/// Which packets a loss process applies to and counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossScope {
    /// Segments with payload.
    #[default]
    Data,
    /// Every packet.
    All,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    /// Name, for reports.
    pub name: String,
    /// Node that sends the data; none: the first one of the path.
    pub from: Option<String>,
    /// Node that receives the data; none: the last one of the path.
    pub to: Option<String>,
    /// Differentiated services code point of its packets and of their acknowledgements (RFC 2474).
    #[serde(default)]
    pub dscp: u8,
    /// When it opens.
    #[serde(default)]
    pub start_ns: Nanos,
    /// When its application stops writing; none: never. What it has written is still delivered.
    pub stop_ns: Option<Nanos>,
    /// Octets to send; none: without end.
    pub size_bytes: Option<u64>,
    /// The sending application.
    #[serde(default)]
    pub application: ApplicationConfig,
    /// Name of the TCP variant.
    pub variant: String,
    /// Parameters of the variant that differ from its defaults.
    #[serde(default)]
    pub params: ParamValues,
    /// Stack profile: the values of all parameters that `stack` leaves out.
    #[serde(default)]
    pub profile: Profile,
    /// Stack parameters that differ from the profile.
    #[serde(default)]
    pub stack: StackOverrides,
    /// Split proxies between its ends, in the order of the way.
    #[serde(default)]
    pub proxies: Vec<ProxyConfig>,
}

impl FlowConfig {
    /// Stack of the connection that `proxy` opens onward. Whether connections close is a property of the flow.
    pub fn stack_of(&self, proxy: &ProxyConfig) -> StackParams {
        if proxy.kind != ProxyKind::Split {
            return self.stack_before(proxy);
        }
        let own = StackParams::resolve(self.profile, &self.stack);
        proxy.stack.map_or(own, |stack| StackParams {
            close: own.close,
            ..StackParams::resolve(stack.profile, &stack.overrides)
        })
    }

    /// Stack of the connection that ends at `proxy`, or passes it.
    pub fn stack_before(&self, proxy: &ProxyConfig) -> StackParams {
        let before = (self.proxies.iter()).take_while(|each| each.node != proxy.node);
        let split = before.filter(|each| each.kind == ProxyKind::Split).last();
        split.map_or_else(
            || StackParams::resolve(self.profile, &self.stack),
            |before| self.stack_of(before),
        )
    }

    /// Whether it lasts as long as the run.
    pub fn is_endless(&self) -> bool {
        if self.stop_ns.is_some() {
            return false;
        }
        match &self.application {
            ApplicationConfig::Greedy { .. } => self.size_bytes.is_none(),
            ApplicationConfig::Pages { pages, .. } => pages.is_none(),
            ApplicationConfig::OnOff { .. }
            | ApplicationConfig::Stream { .. }
            | ApplicationConfig::Bursts { .. } => true,
            ApplicationConfig::Writes { .. } => false,
        }
    }
}

//! What a run is made of: path, links, flows, proxies and stack parameters, as plain values with serde names.
//!
//! Must not know how anything runs. Every number carries its unit in its name; `validate` refuses what makes no
//! sense and names the key path. The Python side (`replay/`) reads TOML and writes this as JSON.

mod application;
mod datagram;
mod error;
mod error_text;
mod jitter;
mod loss;
mod quantity;
mod queue;
mod stack;
mod validate;

use serde::Deserialize;

pub use application::{ApplicationConfig, Spread};
pub use datagram::{BurstConfig, DATAGRAM_HEADER_BYTES, DatagramConfig};
pub use error::{
    ConfigError, ConfigErrorKind, ConfigErrors, KeyPath, NoEffectReason, Number, ParameterProblem,
    PathStep, Relation,
};
pub use jitter::JitterConfig;
pub use loss::{ClockConfig, LossConfig, SpanConfig, StateConfig, StayConfig, TraceModeConfig};
pub(crate) use quantity::quantity;
pub use queue::{
    CodelConfig, DropTailConfig, DrrConfig, PieConfig, PriorityConfig, QueueConfig, RedConfig,
};
pub use stack::{
    DummySegments, HandoverRule, NagleRule, Profile, RecoveryKind, RtoRule, SlowStartKind,
    StackOverrides, StackParams,
};
pub use validate::ineffective_in_all;
pub(crate) use validate::known_variant;

use crate::cc::{Externals, ParamValues};
use crate::sim::time::Nanos;

/// One run, but for its seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// End of the run.
    pub duration_ns: Nanos,
    /// The chain of nodes and links.
    pub path: PathConfig,
    /// The connections that share it.
    pub flows: Vec<FlowConfig>,
    /// Other traffic on it.
    #[serde(default)]
    pub datagrams: Vec<DatagramConfig>,
    /// The user's controllers, for flows whose variant is `external:NAME`.
    #[serde(skip)]
    pub externals: Externals,
}

/// A chain of nodes joined by links; `links[i]` joins `nodes[i]` and `nodes[i + 1]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathConfig {
    /// Names of the nodes, from the data sender to the data receiver.
    pub nodes: Vec<String>,
    /// The links between them.
    pub links: Vec<LinkConfig>,
}

/// A link: two directions that share nothing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Name, for reports.
    pub name: String,
    /// Away from the data sender.
    pub forward: DirectionConfig,
    /// Towards the data sender.
    pub reverse: DirectionConfig,
}

/// One direction of a link, in the order of its stages: queue and serialiser, loss, propagation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectionConfig {
    /// Rate of the serialiser over IP octets; none: no serialisation and no queue.
    #[serde(default)]
    pub rate_bps: Option<f64>,
    /// The rate over time in place of `rate_bps`.
    #[serde(default)]
    pub rate_trace: Option<RateTraceConfig>,
    /// Propagation delay.
    pub delay_ns: Nanos,
    /// What waits for the serialiser, and what is dropped or marked meanwhile.
    #[serde(default)]
    pub queue: QueueConfig,
    /// The loss process.
    #[serde(default)]
    pub loss: LossConfig,
    /// Which packets the loss process sees.
    #[serde(default)]
    pub loss_applies_to: LossScope,
    /// What is added to the delay of each packet; none: nothing.
    #[serde(default)]
    pub jitter: Option<JitterConfig>,
    /// Deliver in order even if the delay falls or varies; else later packets overtake.
    #[serde(default)]
    pub in_order: bool,
    /// Changes of rate, delay and availability, by ascending time.
    #[serde(default)]
    pub schedule: Vec<ChangeConfig>,
}

/// A rate that changes as often as it likes; at `end_ns` it starts again. A rate of 0 sends nothing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateTraceConfig {
    /// Since the start of the run, ascending, the first 0.
    pub starts_ns: Vec<Nanos>,
    /// What holds from each start on.
    pub rates_bps: Vec<f64>,
    /// Length of the trace.
    pub end_ns: Nanos,
}

/// From `at_ns` on, the given values hold; those left out stay as they were.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeConfig {
    /// Time since the start of the run.
    pub at_ns: Nanos,
    /// New rate.
    #[serde(default)]
    pub rate_bps: Option<f64>,
    /// New propagation delay.
    #[serde(default)]
    pub delay_ns: Option<Nanos>,
    /// Whether the link is down: what ends its serialisation, or would arrive, while it is down is lost.
    #[serde(default)]
    pub outage: Option<bool>,
    /// Whether nothing is sent: what is queued waits.
    #[serde(default)]
    pub hold: Option<bool>,
    /// A second link takes over, with a queue of its own; the one before serves what it has for so long.
    #[serde(default)]
    pub overlap_ns: Option<Nanos>,
}

/// Which packets a loss process sees and counts.
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
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    /// Name, for reports.
    pub name: String,
    /// Node that sends its data; none: the first of the path.
    #[serde(default)]
    pub from: Option<String>,
    /// Node that receives it, farther along the path; none: the last.
    #[serde(default)]
    pub to: Option<String>,
    /// Differentiated services code point of its packets, acknowledgements too (RFC 2474).
    #[serde(default)]
    pub dscp: u8,
    /// When it opens.
    #[serde(default)]
    pub start_ns: Nanos,
    /// Octets to send; none: without end.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// What feeds it.
    #[serde(default)]
    pub application: ApplicationConfig,
    /// Name of the TCP variant.
    pub variant: String,
    /// Parameters of the variant that differ from its defaults.
    #[serde(default)]
    pub params: ParamValues,
    /// Stack profile that fixes what `stack` leaves out.
    #[serde(default)]
    pub profile: Profile,
    /// Parameters that differ from the profile.
    #[serde(default)]
    pub stack: StackOverrides,
    /// Split proxies on the way, in the order of the path.
    #[serde(default)]
    pub proxies: Vec<ProxyConfig>,
}

impl FlowConfig {
    /// Whether it goes on for as long as the run.
    pub fn is_endless(&self) -> bool {
        match &self.application {
            ApplicationConfig::Greedy { .. } => self.size_bytes.is_none(),
            ApplicationConfig::Pages { pages, .. } => pages.is_none(),
            ApplicationConfig::OnOff { .. } | ApplicationConfig::Stream { .. } => true,
            ApplicationConfig::Writes { .. } => false,
        }
    }
}

/// A split proxy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyConfig {
    /// Node that it sits on; neither end of the path.
    pub node: String,
    /// Packets that it can hold.
    #[serde(default = "default_proxy_pkts")]
    pub buffer_pkts: u32,
    /// Variant of its downstream connection; none: the flow's.
    #[serde(default)]
    pub variant: Option<String>,
    /// Parameters of that variant.
    #[serde(default)]
    pub params: ParamValues,
    /// How much of its free memory it advertises.
    #[serde(default)]
    pub advertise: AdvertisePolicy,
}

fn default_proxy_pkts() -> u32 {
    200
}

/// What a proxy advertises upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdvertisePolicy {
    /// Half of the free memory, rounded down to packets (Luglio et al.'s forwarding agent).
    #[default]
    HalfFree,
    /// All of it.
    Free,
    /// All of it, a third of the memory at most; and no more than a third is unacknowledged downstream (the on-board
    /// agent: a window that arrives, one that is not acknowledged, one for feedback to act).
    Third,
}

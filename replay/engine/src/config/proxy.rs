//! Split proxies of a flow: where they are, the connection that each opens onward, its buffers and its policies.
//!
//! Does not depend on how a proxy works. Every policy is a key; none implies another. Read `docs/proxies.md` first.

use serde::{Deserialize, Serialize};

use super::{Profile, StackOverrides};
use crate::cc::ParamValues;
use crate::sim::time::Nanos;

/// Buffer of a proxy unless the configuration gives one: that of Palazzi et al.
const DEFAULT_BUFFER_PKTS: u32 = 200;

/// A proxy: it splits the connection, or does something else with its segments.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyConfig {
    /// Node of the proxy, neither end of the flow.
    pub node: String,
    /// What it does.
    #[serde(default)]
    pub kind: ProxyKind,
    /// Variant of the connection that it opens onward; none: the flow's.
    pub variant: Option<String>,
    /// Parameters of that variant.
    #[serde(default)]
    pub params: ParamValues,
    /// Stack of that connection, at both its ends; none: the flow's.
    pub stack: Option<LegStack>,
    /// Memory for what has arrived and has not been passed on; without `send_buffer`, until it is acknowledged onward. None:
    /// 200 packets, but for sockets, whose buffers are those of the stacks.
    pub receive_buffer: Option<BufferSize>,
    /// Separate memory for what has been passed on and is not acknowledged onward; a blocking write moves octets there.
    /// None: one cache for both.
    pub send_buffer: Option<BufferSize>,
    /// Name of the memory that its receive buffer is a part of: one of this size for all connections that name it, at this
    /// node. None: a buffer of the connection's own.
    pub pool: Option<String>,
    /// When it acknowledges what arrives.
    #[serde(default)]
    pub acknowledge: AcknowledgePolicy,
    /// How much of its free memory it advertises.
    #[serde(default)]
    pub advertise: AdvertisePolicy,
    /// How much may be unacknowledged onward.
    #[serde(default)]
    pub forward_window: ForwardWindow,
    /// Sockets: the process reads nothing before this time.
    #[serde(default)]
    pub first_read_ns: Nanos,
    /// Sockets: number of segments of the first write that leave before the process writes more, at least 1. `None`:
    /// the window alone decides.
    pub first_left_pkts: Option<u32>,
    /// When it answers a SYN.
    #[serde(default)]
    pub handshake: HandshakePolicy,
    /// How many connections it handles at once; none: any number.
    pub limit: Option<LimitConfig>,
    /// Resets a connection without a segment for this time; none: never.
    pub idle_timeout_ns: Option<Nanos>,
    /// Resets a connection whose other part onward is not established this time after its first segment; none: the stack of
    /// the connection onward decides.
    pub pending_timeout_ns: Option<Nanos>,
    /// What befalls it, at ascending times.
    #[serde(default)]
    pub faults: Vec<FaultConfig>,
}

impl ProxyConfig {
    /// Whether a fault damages what it stores.
    pub fn damages(&self) -> bool {
        (self.faults.iter()).any(|fault| fault.kind == FaultKind::Corruption)
    }

    /// Whether it may end a connection.
    pub fn may_end(&self) -> bool {
        !self.faults.is_empty()
            || self.limit.is_some()
            || self.idle_timeout_ns.is_some()
            || self.pending_timeout_ns.is_some()
    }
}

/// How many connections a proxy handles at once. All flows with the same name count together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitConfig {
    /// Name of the proxy.
    pub name: String,
    /// From this number of connections on it takes no further ones.
    pub max_connections: u32,
    /// It takes connections again when so many are left; none: one less than the maximum.
    pub resume_connections: Option<u32>,
    /// What happens to those beyond.
    #[serde(default)]
    pub beyond: BeyondLimit,
}

/// What happens to a connection for which a proxy has no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BeyondLimit {
    /// Its SYN is answered with a reset.
    #[default]
    Refuse,
    /// It is passed on unsplit: an end-to-end connection with the stack of the one upstream.
    Pass,
}

/// What a proxy does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyKind {
    /// Splits the connection in two.
    #[default]
    Split,
    /// Removes from the queue towards the data sender ACKs that a newer one covers.
    AckFilter,
    /// Caches segments, retransmits them and suppresses the duplicate ACKs (Balakrishnan et al. 1995).
    Snoop,
    /// Acknowledges on behalf of the receiver, which does not know, and retransmits (RFC 3135 §2.1.1).
    Spoofing,
}

impl ProxyKind {
    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::AckFilter => "ack_filter",
            Self::Snoop => "snoop",
            Self::Spoofing => "spoofing",
        }
    }

    /// Whether it sees every segment of the connection and may send some itself.
    pub fn is_agent(self) -> bool {
        matches!(self, Self::Snoop | Self::Spoofing)
    }
}

/// The stack of one connection of a split path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegStack {
    /// Values of all parameters that `overrides` leaves out.
    #[serde(default)]
    pub profile: Profile,
    /// Parameters that differ from the profile.
    #[serde(default)]
    pub overrides: StackOverrides,
}

/// Size of a buffer: in packets, which are full segments of the connection that fills it, or in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferSize {
    /// Packets.
    Pkts(u32),
    /// Octets.
    Bytes(u64),
}

impl Default for BufferSize {
    fn default() -> Self {
        Self::Pkts(DEFAULT_BUFFER_PKTS)
    }
}

/// When a proxy acknowledges what has arrived in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AcknowledgePolicy {
    /// When it arrives.
    #[default]
    OnReceipt,
    /// When it has left once on the connection onward.
    AfterForwarding,
    /// When it has been acknowledged on the connection onward: end to end if every proxy of the path does so.
    OnDelivery,
}

/// What a proxy advertises upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdvertisePolicy {
    /// Half of the free buffer, rounded down (the forwarding agent of Palazzi et al.).
    #[default]
    HalfFree,
    /// All of the free buffer.
    Free,
    /// All of the free buffer, up to a third of the buffer (the on-board agent of Luglio et al.).
    Third,
    /// That of a socket of the stack: a process reads from it what fits into the socket onward (PEPsal).
    Sockets,
}

/// How much may be unacknowledged on the connection onward, besides its own windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForwardWindow {
    /// All that is stored.
    #[default]
    Unlimited,
    /// A third of the buffer that it is stored in (the on-board agent of Luglio et al.).
    Third,
}

/// When a proxy answers a SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HandshakePolicy {
    /// At once; it opens the connection onward when its own is established.
    #[default]
    Accept,
    /// When the connection onward is established.
    Hold,
}

/// What befalls a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultConfig {
    /// When.
    pub at_ns: Nanos,
    /// What.
    pub kind: FaultKind,
    /// Of a move: time until the new node has the state of the connections; none: it never gets it.
    pub transfer_ns: Option<Nanos>,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// All that is stored is lost, and the state of both connections. It is back at once, and answers segments of the
    /// connections that it no longer knows with a reset.
    Restart,
    /// The same, and it never answers again.
    Failure,
    /// What it has stored in order is damaged. It makes new segments, so that no checksum of TCP shows it.
    Corruption,
    /// The path leads over another node from now on. The new node knows the connections once their state has been
    /// transferred, and until then receives nothing; or never, and is like one that has restarted.
    Move,
}

//! Cross traffic of datagrams: constant-rate or on/off sources that heed no window.
//!
//! Must not know how it runs: `crate::net::cross_traffic` does.

use serde::Deserialize;

use super::error::ConfigErrorKind;
use super::queue::MAX_DSCP;
use super::validate::{MAX_NS, Place};
use super::{Config, Spread};
use crate::sim::time::Nanos;

/// A source of datagrams and where they go.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramConfig {
    /// Name, for reports.
    pub name: String,
    /// When it begins.
    #[serde(default)]
    pub start_ns: Nanos,
    /// When it ends; none: with the run.
    #[serde(default)]
    pub stop_ns: Option<Nanos>,
    /// Node that sends; none: the first of the path.
    #[serde(default)]
    pub from: Option<String>,
    /// Node that receives, on either side of the sending one; none: the last of the path.
    #[serde(default)]
    pub to: Option<String>,
    /// Differentiated services code point of its packets (RFC 2474).
    #[serde(default)]
    pub dscp: u8,
    /// Octets of a datagram's IP packet.
    pub packet_bytes: u16,
    /// Rate of IP octets while it is on.
    pub rate_bps: f64,
    /// Times on and off; none: always on.
    #[serde(default)]
    pub bursts: Option<BurstConfig>,
}

/// Times on and off.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstConfig {
    /// Mean time on.
    pub on_ns: Nanos,
    /// Mean pause.
    pub off_ns: Nanos,
    /// How both are spread about their means.
    #[serde(default)]
    pub spread: Spread,
}

/// Headers of IPv4 and UDP.
pub const DATAGRAM_HEADER_BYTES: u16 = 28;

impl DatagramConfig {
    pub(super) fn validate(&self, place: &Place, config: &Config) {
        let start = place.key("start_ns");
        start.within(self.start_ns, 0, config.duration_ns);
        let stop = place.key("stop_ns");
        stop.within_if_given(self.stop_ns, self.start_ns.saturating_add(1), MAX_NS);
        place.key("dscp").within(self.dscp, 0, MAX_DSCP);
        let ends = (config.path).ends_at(place, self.from.as_deref(), self.to.as_deref());
        if ends.is_some_and(|(from, to)| from == to) {
            place.key("to").refuse(ConfigErrorKind::SameNode);
        }
        let packet = place.key("packet_bytes");
        packet.within(self.packet_bytes, DATAGRAM_HEADER_BYTES + 1, u16::MAX);
        place.key("rate_bps").rate(self.rate_bps);
        if let Some(bursts) = &self.bursts {
            let place = place.key("bursts");
            place.key("on_ns").within(bursts.on_ns, 1, MAX_NS);
            place.key("off_ns").within(bursts.off_ns, 0, MAX_NS);
        }
    }
}

//! Cross traffic of datagrams: constant-rate or on/off sources that heed no window.
//!
//! Does not depend on how it runs: `crate::net::cross_traffic` does.

use serde::Deserialize;

use super::queue::MAX_DSCP;
use super::validate::{Checked, LONGEST_NS, rate, refuse, within};
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
    pub(super) fn validate(&self, key: &str, config: &Config) -> Checked {
        let at = |name: &str| format!("{key}.{name}");
        within(&at("start_ns"), self.start_ns, 0, config.duration_ns)?;
        within(
            &at("stop_ns"),
            self.stop_ns.unwrap_or(LONGEST_NS),
            self.start_ns + 1,
            LONGEST_NS,
        )?;
        within(&at("dscp"), self.dscp, 0, MAX_DSCP)?;
        let (from, to) = config
            .path
            .ends(key, self.from.as_deref(), self.to.as_deref())?;
        if from == to {
            return refuse(at("to"), "is the node that sends");
        }
        within(
            &at("packet_bytes"),
            self.packet_bytes,
            DATAGRAM_HEADER_BYTES + 1,
            65_535,
        )?;
        rate(&at("rate_bps"), Some(self.rate_bps))?;
        if let Some(bursts) = &self.bursts {
            within(&at("bursts.on_ns"), bursts.on_ns, 1, LONGEST_NS)?;
            within(&at("bursts.off_ns"), bursts.off_ns, 0, LONGEST_NS)?;
        }
        Ok(())
    }
}

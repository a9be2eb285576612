//! AeroTCP's window: the connection's share of the satellite link times its round-trip time, which nothing moves.
//!
//! Does not depend on recovery, which is the sender's (`tcp/recovery/aerotcp.rs`). Read `docs/variants/aerotcp.md` first.

use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::{choices, parameters};
use crate::cc::{FixedWindow, Windowed};
use crate::config::{RecoveryKind, RtoRule};
use crate::sim::time::{MILLISECOND, Nanos};

/// AeroTCP asks for a timer finer than the usual one and names no figure; a minimum RTO of 1 s would defeat it.
const TICK: Nanos = 10 * MILLISECOND;

choices! {
    /// Who shares the satellite link.
    pub enum Allocation {
        /// As many connections as the parameters say.
        Static = "static",
        /// As many as are open at the time.
        Adaptive = "adaptive",
    }
}

parameters! {
    /// Parameters of AeroTCP.
    pub struct AerotcpParams {
        /// Rate of the satellite link.
        satellite_rate: number(4e6, "bit/s", 1e3, 1e12, "AeroTCP, scenario: 10 connections of 400 kbit/s"),
        /// Round-trip time over the satellite link.
        satellite_rtt: number(0.48, "s", 0.001, 10.0, "AeroTCP, scenario"),
        /// Connections that share the link: the most there may be, or those that are there.
        connections: whole(10, "", 1, 100_000, "AeroTCP, scenario"),
        /// Whether the share follows the connections that are open.
        allocation: choice(Allocation, Static = "static", "AeroTCP, fixed window: static or adaptive"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "aerotcp",
    family: "split",
    summary: "fixed window between gateways; recovery at the first duplicate ACK, two copies after a timeout",
    source: "Shang, Hadjitheodosiou and Baras 2005",
    year: 2005,
    params: AerotcpParams::SPECS,
    fixes_rto: true,
    fix: |stack, _| {
        stack.recovery = RecoveryKind::Aerotcp;
        stack.rto_rule = RtoRule::Rfc6298;
        stack.min_rto_ns = TICK;
        stack.clock_granularity_ns = TICK;
    },
    parts: |stack, values, _| {
        ControllerParts::Window(AerotcpParams::of(values).windowed(stack.packet_bytes()))
    },
    ..Definition::BASE
};

impl AerotcpParams {
    /// The window in segments that leave in packets of `packet_bytes`: SatBW / N * SatRTT; where N is to follow the open
    /// connections, that of one alone.
    fn window_pkts(&self, packet_bytes: u32) -> u32 {
        let connections = match self.allocation {
            Allocation::Static => self.connections,
            Allocation::Adaptive => 1,
        };
        let rate = self.satellite_rate / f64::from(connections);
        share_of_link_pkts(rate, self.satellite_rtt, packet_bytes)
    }

    /// A controller that holds this window, two segments at least, or its share of it.
    pub fn windowed(&self, packet_bytes: u32) -> Windowed {
        let pkts = self.window_pkts(packet_bytes);
        match self.allocation {
            Allocation::Static => FixedWindow::windowed(pkts),
            Allocation::Adaptive => FixedWindow::shared(pkts),
        }
    }
}

/// Packets of `packet_bytes` that `rate_bps` sends in a round-trip time.
pub(super) fn share_of_link_pkts(rate_bps: f64, rtt_s: f64, packet_bytes: u32) -> u32 {
    (rate_bps * rtt_s / f64::from(8 * packet_bytes)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_the_share_of_the_link_times_its_round_trip() {
        // 4 Mbit/s / 10 * 0.48 s = 24 000 octets: 16 packets of 1500.
        let params = AerotcpParams::default();
        assert_eq!(params.window_pkts(1500), 16);
        let alone = AerotcpParams {
            connections: 1,
            ..params
        };
        assert_eq!(alone.window_pkts(1500), 160);
        let adaptive = AerotcpParams {
            allocation: Allocation::Adaptive,
            ..params
        };
        assert_eq!(adaptive.window_pkts(1500), 160, "of which each has a share");
        let slow = AerotcpParams {
            satellite_rate: 1e4,
            ..params
        };
        assert_eq!(
            slow.windowed(1500).window().cwnd.to_bits(),
            2.0_f64.to_bits()
        );
    }
}

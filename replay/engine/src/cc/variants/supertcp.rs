//! Super TCP's window: the satellite link's rate times its round-trip time, or a share of it, which nothing moves.
//!
//! Does not depend on recovery, which is the sender's (`tcp/recovery/supertcp.rs`). Read `docs/variants/supertcp.md` first.

use super::aerotcp::share_of_link_pkts;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::parameters;
use crate::cc::{FixedWindow, Windowed};
use crate::config::RecoveryKind;

parameters! {
    /// Parameters of Super TCP.
    pub struct SupertcpParams {
        /// Rate of the satellite link.
        satellite_rate: number(4e6, "bit/s", 1e3, 1e12, "that of AeroTCP's scenario, which names Super TCP"),
        /// Round-trip time over the satellite link.
        satellite_rtt: number(0.48, "s", 0.001, 10.0, "that of AeroTCP's scenario"),
        /// Connections that share the link.
        connections: whole(10, "", 1, 100_000, "that of AeroTCP's scenario"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "supertcp",
    family: "split",
    summary: "fixed window between gateways; recovery at the first duplicate ACK, the gap of a burst is retransmitted at once",
    source: "as described by Shang, Hadjitheodosiou and Baras 2005",
    year: 2005,
    params: SupertcpParams::SPECS,
    fix: |stack, _| stack.recovery = RecoveryKind::Supertcp,
    parts: |stack, values, _| {
        ControllerParts::Window(SupertcpParams::of(values).windowed(stack.packet_bytes()))
    },
    ..Definition::BASE
};

impl SupertcpParams {
    /// A controller that holds the window of packets of `packet_bytes`, two segments at least.
    pub fn windowed(&self, packet_bytes: u32) -> Windowed {
        let rate = self.satellite_rate / f64::from(self.connections);
        FixedWindow::windowed(share_of_link_pkts(rate, self.satellite_rtt, packet_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_the_share_of_the_link_times_its_round_trip() {
        // 4 Mbit/s / 10 * 0.48 s = 24 000 octets: 16 packets of 1500.
        let params = SupertcpParams::default();
        assert_eq!(
            params.windowed(1500).window().cwnd.to_bits(),
            16.0_f64.to_bits()
        );
        let slow = SupertcpParams {
            satellite_rate: 1e4,
            ..params
        };
        assert_eq!(
            slow.windowed(1500).window().cwnd.to_bits(),
            2.0_f64.to_bits()
        );
    }
}

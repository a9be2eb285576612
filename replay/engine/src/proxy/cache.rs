//! The memory of a proxy: how much of it is advertised, and how much may be unacknowledged onward.
//!
//! Does not depend on connections. Read `docs/proxies.md`, "Buffers", first.

use super::pool::Part;
use crate::config::{AdvertisePolicy, BufferSize, ForwardWindow, ProxyConfig};

/// One buffer: a number of units, which are packets or octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buffer {
    units: u64,
    unit_bytes: u64,
}

impl Buffer {
    fn new(size: BufferSize, packet_bytes: u64) -> Self {
        match size {
            BufferSize::Pkts(pkts) => Self {
                units: pkts.into(),
                unit_bytes: packet_bytes,
            },
            BufferSize::Bytes(bytes) => Self {
                units: bytes,
                unit_bytes: 1,
            },
        }
    }

    fn bytes(&self) -> u64 {
        self.units * self.unit_bytes
    }

    fn free_units(&self, stored_bytes: u64) -> u64 {
        self.units
            .saturating_sub(stored_bytes.div_ceil(self.unit_bytes))
    }

    /// A third of it, in whole units.
    fn third_bytes(&self) -> u64 {
        self.units / 3 * self.unit_bytes
    }
}

/// The buffers of a proxy and the rules of their windows.
#[derive(Clone, Copy, Debug)]
pub struct Cache {
    receive: Buffer,
    /// None: one cache, in which octets stay until they are acknowledged onward.
    send: Option<Buffer>,
    advertise: AdvertisePolicy,
    forward_window: ForwardWindow,
    /// Octets per packet: a full segment of the upstream connection, and of the one onward.
    packet_bytes: [u64; 2],
}

impl Cache {
    /// The memory of `proxy` between connections with these full segments.
    pub fn new(proxy: &ProxyConfig, packet_bytes: [u32; 2]) -> Self {
        let packet_bytes = packet_bytes.map(u64::from);
        Self {
            receive: Buffer::new(proxy.receive_buffer.unwrap_or_default(), packet_bytes[0]),
            send: (proxy.send_buffer).map(|size| Buffer::new(size, packet_bytes[0])),
            advertise: proxy.advertise,
            forward_window: proxy.forward_window,
            packet_bytes,
        }
    }

    /// The connection upstream has other full segments: packets of the memory are segments of it.
    pub fn resize(&mut self, packet_bytes: u32) {
        let packet = u64::from(packet_bytes);
        let before = std::mem::replace(&mut self.packet_bytes[0], packet);
        for buffer in [Some(&mut self.receive), self.send.as_mut()] {
            if let Some(buffer) = buffer.filter(|buffer| buffer.unit_bytes == before) {
                buffer.unit_bytes = packet;
            }
        }
    }

    /// Window to advertise with `stored_bytes` in the receive buffer.
    ///
    /// It never exceeds the free space, and the right edge never moves left, so that the buffer cannot overflow.
    ///
    /// Deviation: where the rule would never advertise a packet, not even if all is free, one is advertised while one is
    /// free. The rules of the papers stall a cache of one packet (half) and of one or two (a third).
    pub fn window_bytes(&self, stored_bytes: u64) -> u64 {
        let free = self.receive.free_units(stored_bytes);
        let (window, max) = self.rule_bytes(free, self.receive.units);
        let packet = self.packet_bytes[0];
        if max < packet {
            packet.min(free * self.receive.unit_bytes)
        } else {
            window
        }
    }

    /// The same for a connection that shares the receive buffer with others and `stores` anything of its own or nothing:
    /// the rule applies to its part, and all windows together never exceed the buffer. It may always promise a packet if it
    /// stores nothing, because the others wake nobody when they free memory.
    pub fn window_of(&self, part: Part, stores: bool) -> u64 {
        let (unit, packet) = (self.receive.unit_bytes, self.packet_bytes[0]);
        let (window, max) = self.rule_bytes(part.free / unit, part.whole / unit);
        let min = if max < packet || !stores { packet } else { 0 };
        window.max(min).min(part.room / unit * unit)
    }

    /// Window with so many units free, and with all units free.
    fn rule_bytes(&self, free: u64, all: u64) -> (u64, u64) {
        let (units, max) = match self.advertise {
            AdvertisePolicy::HalfFree => (free / 2, all / 2),
            AdvertisePolicy::Free | AdvertisePolicy::Sockets => (free, all),
            AdvertisePolicy::Third => (free.min(all / 3), all / 3),
        };
        let unit = self.receive.unit_bytes;
        (units * unit, max * unit)
    }

    /// Maximum number of octets that may have been passed on and be unacknowledged onward, whatever the windows there; `part`
    /// is that of a shared receive buffer.
    ///
    /// Deviation: a third of less than three packets is one packet.
    pub fn onward_bytes(&self, part: Option<Part>) -> u64 {
        let space = self.send.map_or(u64::MAX, |send| send.bytes());
        match self.forward_window {
            ForwardWindow::Unlimited => space,
            ForwardWindow::Third => {
                let receive = part.map_or(self.receive, |part| Buffer {
                    units: part.whole / self.receive.unit_bytes,
                    ..self.receive
                });
                let third = self.send.unwrap_or(receive).third_bytes();
                third.max(self.packet_bytes[1]).min(space)
            }
        }
    }

    /// Whether what has been passed on has left the receive buffer.
    pub fn is_split(&self) -> bool {
        self.send.is_some()
    }

    /// Size of the receive buffer in octets.
    pub fn receive_bytes(&self) -> u64 {
        self.receive.bytes()
    }

    /// Size of all memory in octets.
    pub fn capacity_bytes(&self) -> u64 {
        self.receive.bytes() + self.send.map_or(0, |send| send.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1448;

    fn cache(text: &str) -> Cache {
        let text = format!(r#"{{"node": "p", {text}}}"#);
        let config = serde_json::from_str(&text).expect("well-formed");
        Cache::new(&config, [PACKET as u32; 2])
    }

    /// Packets advertised with so many packets stored.
    fn advertised<const N: usize>(text: &str, stored: [u64; N]) -> [u64; N] {
        let cache = cache(text);
        stored.map(|pkts| cache.window_bytes(pkts * PACKET) / PACKET)
    }

    #[test]
    fn half_of_the_free_buffer_is_advertised_in_whole_packets() {
        let half = advertised(
            r#""receive_buffer": {"pkts": 200}"#,
            [0, 1, 150, 198, 199, 200],
        );
        assert_eq!(half, [100, 99, 25, 1, 0, 0]);
        let octets = cache(r#""receive_buffer": {"bytes": 100000}"#);
        assert_eq!(octets.window_bytes(1001), 49_499);
        assert_eq!(octets.onward_bytes(None), u64::MAX);
    }

    #[test]
    fn all_of_the_free_buffer_and_a_third_at_most() {
        let free = r#""receive_buffer": {"pkts": 200}, "advertise": "free""#;
        assert_eq!(advertised(free, [0, 150, 200]), [200, 50, 0]);
        let third = r#""receive_buffer": {"pkts": 200}, "advertise": "third""#;
        assert_eq!(
            advertised(third, [0, 133, 134, 135, 199, 200]),
            [66, 66, 66, 65, 1, 0]
        );
    }

    #[test]
    fn a_rule_that_would_stall_advertises_one_packet_while_one_is_free() {
        for advertise in ["half_free", "third", "free"] {
            let one = format!(r#""receive_buffer": {{"pkts": 1}}, "advertise": "{advertise}""#);
            assert_eq!(advertised(&one, [0, 1]), [1, 0], "{advertise}");
        }
        let two = r#""receive_buffer": {"pkts": 2}, "advertise": "third""#;
        assert_eq!(advertised(two, [0, 1, 2]), [1, 1, 0]);
        let octets = cache(r#""receive_buffer": {"bytes": 1500}"#);
        assert_eq!(
            [0, 52, 53].map(|stored| octets.window_bytes(stored)),
            [1448, 1448, 1447]
        );
    }

    #[test]
    fn the_forward_window_is_a_third_of_the_buffer_that_holds_what_is_unacknowledged() {
        let onward = |text: &str| cache(text).onward_bytes(None);
        let joint = r#""receive_buffer": {"pkts": 200}, "forward_window": "third""#;
        assert_eq!(onward(joint), 66 * PACKET);
        let split = format!(r#"{joint}, "send_buffer": {{"pkts": 30}}"#);
        assert_eq!(onward(&split), 10 * PACKET);
        assert_eq!(onward(r#""send_buffer": {"bytes": 5000}"#), 5000);
        assert_eq!(
            onward(r#""receive_buffer": {"pkts": 2}, "forward_window": "third""#),
            PACKET
        );
    }

    #[test]
    fn a_shared_buffer_is_divided_evenly_and_never_promised_twice() {
        let window = |free_pkts: u64, room_pkts: u64, stores| {
            let part = Part {
                whole: 40 * PACKET,
                free: free_pkts * PACKET,
                room: room_pkts * PACKET,
            };
            let cache = cache(r#""receive_buffer": {"pkts": 200}"#);
            cache.window_of(part, stores) / PACKET
        };
        assert_eq!(window(40, 100, false), 20);
        assert_eq!(window(40, 7, true), 7);
        assert_eq!((window(1, 100, true), window(1, 100, false)), (0, 1));
        let third = cache(r#""receive_buffer": {"pkts": 200}, "forward_window": "third""#);
        let part = Part {
            whole: 40 * PACKET,
            free: 0,
            room: 0,
        };
        assert_eq!(third.onward_bytes(Some(part)), 13 * PACKET);
    }
}

//! Who is in a first-in-first-out queue, with the departures that are already known.
//!
//! Does not depend on who may join.

use crate::sim::ring::Ring;
use crate::sim::time::Nanos;

/// Packets in service and waiting.
#[derive(Default)]
pub struct Backlog {
    /// End of service and octets of each; the first is in service.
    packets: Ring<(Nanos, u32)>,
    bytes: u64,
}

impl Backlog {
    /// Forgets those whose service has ended by `now`.
    pub fn leave(&mut self, now: Nanos) {
        while let Some(&(_, bytes)) = self.packets.front().filter(|packet| packet.0 <= now) {
            self.bytes -= u64::from(bytes);
            self.packets.pop_front();
        }
    }

    /// A packet joins whose service ends at `departure`.
    pub fn join(&mut self, bytes: u32, departure: Nanos) {
        self.bytes += u64::from(bytes);
        self.packets.push_back((departure, bytes));
    }

    /// Whether the serialiser is busy.
    pub fn is_busy(&self) -> bool {
        !self.packets.is_empty()
    }

    /// Packets that wait besides the one in service.
    pub fn waiting_pkts(&self) -> usize {
        self.packets.len().saturating_sub(1)
    }

    /// Their octets.
    pub fn waiting_bytes(&self) -> u64 {
        let in_service = self.packets.front().map_or(0, |packet| packet.1);
        self.bytes - u64::from(in_service)
    }
}

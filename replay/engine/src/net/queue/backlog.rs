//! The packets of a first-in-first-out queue, whose departures are known.
//!
//! Does not depend on which packets are admitted.

use crate::sim::ring::Ring;
use crate::sim::time::Nanos;

/// Packets in service and in the queue.
#[derive(Default)]
pub struct Backlog {
    /// End of service and octets of each packet; the first one is in service.
    packets: Ring<(Nanos, u32)>,
    bytes: u64,
}

impl Backlog {
    /// Removes the packets whose service has ended by `now`.
    pub fn leave(&mut self, now: Nanos) {
        while let Some(&(_, bytes)) = self.packets.front().filter(|packet| packet.0 <= now) {
            self.bytes -= u64::from(bytes);
            self.packets.pop_front();
        }
    }

    /// Adds a packet whose service ends at `departure`.
    pub fn join(&mut self, bytes: u32, departure: Nanos) {
        self.bytes += u64::from(bytes);
        self.packets.push_back((departure, bytes));
    }

    /// Whether the serialiser is busy.
    pub fn is_busy(&self) -> bool {
        !self.packets.is_empty()
    }

    /// Packets that wait, without the one in service.
    pub fn waiting_pkts(&self) -> usize {
        self.packets.len().saturating_sub(1)
    }

    /// Octets of the packets that wait.
    pub fn waiting_bytes(&self) -> u64 {
        let in_service = self.packets.front().map_or(0, |packet| packet.1);
        self.bytes - u64::from(in_service)
    }
}

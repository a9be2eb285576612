//! Queues that hold packets and are asked for the next one when the serialiser becomes idle.
//!
//! Does not depend on when that is.

use super::ack_filter::AckFilter;
use super::codel::Codel;
use super::drr::Drr;
use super::priority::Priority;
use crate::net::link::DropCause;
use crate::sim::packet_pool::PacketHandle;
use crate::sim::time::Nanos;

/// A packet in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Its slot in the packet pool.
    pub handle: PacketHandle,
    /// When it arrived.
    pub since: Nanos,
    /// Number of its connection.
    pub leg: u16,
    /// Octets of the IP packet.
    pub ip_bytes: u16,
    /// DSCP.
    pub dscp: u8,
    /// Whether its transport is ECN-capable.
    pub ect: bool,
    /// Octet that an ACK without payload or other flags awaits.
    pub ack: Option<u64>,
    /// It is such an ACK, and reports nothing else.
    pub is_plain_ack: bool,
}

/// A packet that enters service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The packet.
    pub packet: Waiting,
    /// Whether it must be marked (congestion experienced).
    pub marked: bool,
}

/// Packets that were dropped, and the cause.
pub type Dropped = Vec<(PacketHandle, DropCause)>;

/// A queue that holds packets.
pub enum Scheduled {
    /// Drops by sojourn time.
    Codel(Codel),
    /// Serves the highest class first.
    Priority(Priority),
    /// Serves flows in turn.
    Drr(Drr),
    /// Removes ACKs that a newer one covers.
    AckFilter(AckFilter),
}

impl Scheduled {
    /// A packet finds the serialiser idle and the queue empty: it enters service immediately.
    pub fn pass_by(&mut self, packet: Waiting) {
        match self {
            Self::Codel(queue) => queue.pass_by(),
            Self::AckFilter(queue) => queue.pass_by(packet),
            Self::Priority(_) | Self::Drr(_) => {}
        }
    }

    /// Adds a packet. Returns the one that does not fit: this one or another; those that are removed for another reason go to
    /// `dropped`.
    pub fn push(&mut self, packet: Waiting, dropped: &mut Dropped) -> Option<Waiting> {
        match self {
            Self::Codel(queue) => queue.push(packet),
            Self::Priority(queue) => queue.push(packet),
            Self::Drr(queue) => queue.push(packet),
            Self::AckFilter(queue) => queue.push(packet, dropped),
        }
    }

    /// The next packet to serve, if there is one; packets that are dropped on the way go to `dropped`.
    pub fn pop(&mut self, now: Nanos, dropped: &mut Dropped) -> Option<Served> {
        let unmarked = |packet| Served {
            packet,
            marked: false,
        };
        match self {
            Self::Codel(queue) => queue.pop(now, dropped),
            Self::Priority(queue) => queue.pop().map(unmarked),
            Self::Drr(queue) => queue.pop().map(unmarked),
            Self::AckFilter(queue) => queue.pop().map(unmarked),
        }
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Codel(queue) => queue.iter().next().is_none(),
            Self::Priority(queue) => queue.iter().next().is_none(),
            Self::Drr(queue) => queue.is_empty(),
            Self::AckFilter(queue) => queue.iter().next().is_none(),
        }
    }

    /// The packets in the queue.
    pub fn handles(&self) -> Vec<PacketHandle> {
        match self {
            Self::Codel(queue) => queue.iter().map(|packet| packet.handle).collect(),
            Self::Priority(queue) => queue.iter().map(|packet| packet.handle).collect(),
            Self::Drr(queue) => queue.iter().map(|packet| packet.handle).collect(),
            Self::AckFilter(queue) => queue.iter().map(|packet| packet.handle).collect(),
        }
    }
}

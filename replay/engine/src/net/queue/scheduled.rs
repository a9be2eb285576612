//! Queues that are asked for a packet when the serialiser falls idle: they hold the packets themselves.
//!
//! Does not depend on when that is.

use super::codel::Codel;
use super::drr::Drr;
use super::priority::Priority;
use crate::net::link::DropCause;
use crate::sim::packet_pool::PacketHandle;
use crate::sim::time::Nanos;

/// A packet that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Where it lies.
    pub handle: PacketHandle,
    /// When it came.
    pub since: Nanos,
    /// Its connection.
    pub leg: u16,
    /// Octets of the IP packet.
    pub ip_bytes: u16,
    /// DSCP.
    pub dscp: u8,
    /// Its transport understands ECN marks.
    pub ect: bool,
}

/// A packet that goes into service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The packet.
    pub packet: Waiting,
    /// It is to be marked: congestion experienced.
    pub marked: bool,
}

/// Packets that will not be served, and why.
pub type Dropped = Vec<(PacketHandle, DropCause)>;

/// A queue that is asked for packets.
pub enum Scheduled {
    /// Drops by sojourn time.
    Codel(Codel),
    /// Serves urgent classes first.
    Priority(Priority),
    /// Serves flows in turn.
    Drr(Drr),
}

impl Scheduled {
    /// A packet finds the serialiser idle and nothing before it: it need not wait.
    pub fn pass_by(&mut self) {
        if let Self::Codel(queue) = self {
            queue.pass_by();
        }
    }

    /// A packet comes; returns the one for which there is no room, itself or another.
    pub fn push(&mut self, packet: Waiting) -> Option<Waiting> {
        match self {
            Self::Codel(queue) => queue.push(packet),
            Self::Priority(queue) => queue.push(packet),
            Self::Drr(queue) => queue.push(packet),
        }
    }

    /// The next packet to serve, if any; `dropped` takes those that it drops on the way.
    pub fn pop(&mut self, now: Nanos, dropped: &mut Dropped) -> Option<Served> {
        let unmarked = |packet| Served {
            packet,
            marked: false,
        };
        match self {
            Self::Codel(queue) => queue.pop(now, dropped),
            Self::Priority(queue) => queue.pop().map(unmarked),
            Self::Drr(queue) => queue.pop().map(unmarked),
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Codel(queue) => queue.iter().next().is_none(),
            Self::Priority(queue) => queue.iter().next().is_none(),
            Self::Drr(queue) => queue.is_empty(),
        }
    }

    /// The packets that wait.
    pub fn handles(&self) -> Vec<PacketHandle> {
        match self {
            Self::Codel(queue) => queue.iter().map(|packet| packet.handle).collect(),
            Self::Priority(queue) => queue.iter().map(|packet| packet.handle).collect(),
            Self::Drr(queue) => queue.iter().map(|packet| packet.handle).collect(),
        }
    }
}

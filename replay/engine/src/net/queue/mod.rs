//! The queue disciplines in front of a serialiser, one file each.
//!
//! **The seam.** If packets leave in order of arrival, and the decision to drop or mark them is made on arrival,
//! nothing later can change a departure: it is computed on arrival and costs no event. Drop-tail, RED and PIE are of
//! this kind; PIE's periodic updates are made up on the next arrival, as all departures are known. Drop-tail in packets
//! is the common case and has its own fast path, [`DropTail`]; the others share [`Fifo`]. CoDel decides when a packet
//! leaves, and priority and deficit round robin reorder packets: these queues are [`Scheduled`], hold the packets, and
//! are asked for the next one whenever the serialiser becomes idle, which is an event of the run.
//!
//! Does not depend on TCP, rates or propagation: a queue sees sizes, times, DSCP, ECN and the number of the connection.
//! Read docs/queues.md first.

mod ack_filter;
mod backlog;
mod codel;
mod drop_tail;
mod drr;
mod pie;
mod priority;
mod red;
mod scheduled;

use hindflight_kernels::StreamRng;

use super::link::DropCause;
use crate::config::QueueConfig;
use crate::sim::packet_pool::PacketHandle;
use crate::sim::time::Nanos;

pub use drop_tail::DropTail;
pub use scheduled::{Dropped, Scheduled, Waiting};

use ack_filter::AckFilter;
use backlog::Backlog;
use codel::Codel;
use drop_tail::ByteLimit;
use drr::Drr;
use pie::Pie;
use priority::Priority;
use red::Red;

/// The queue of one direction of a link.
pub enum Queue {
    /// Drop-tail in packets.
    DropTail(DropTail),
    /// First in, first out, with another admission admission.
    Fifo(Box<Fifo>),
    /// A queue that holds packets.
    Scheduled(Box<Scheduled>),
}

/// The decision on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is admitted.
    Admit,
    /// It is admitted and marked (congestion experienced).
    Mark,
    /// It is dropped.
    Refuse(DropCause),
}

/// An arriving packet, and the state of the serialiser.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Now.
    pub now: Nanos,
    /// When the serialiser will have sent all packets before it.
    pub busy_until: Nanos,
    /// Octets of the IP packet.
    pub ip_bytes: u32,
    /// Whether its transport is ECN-capable.
    pub ect: bool,
}

/// A queue that decides on arrival, with the departures of its packets.
pub struct Fifo {
    backlog: Backlog,
    admission: Admission,
}

/// Admission that decides whether a packet is admitted.
enum Admission {
    Bytes(ByteLimit),
    Red(Red),
    Pie(Pie),
}

impl Queue {
    /// A queue with this configuration; `rng` is its random stream.
    pub fn new(config: &QueueConfig, rng: StreamRng) -> Self {
        let fifo = |admission| {
            Self::Fifo(Box::new(Fifo {
                backlog: Backlog::default(),
                admission,
            }))
        };
        match config {
            QueueConfig::DropTail(config) => match config.packets() {
                Some(limit_pkts) => Self::DropTail(DropTail::new(limit_pkts)),
                None => fifo(Admission::Bytes(ByteLimit::new(
                    config.limit_bytes.unwrap_or(0),
                ))),
            },
            QueueConfig::Red(config) => fifo(Admission::Red(Red::new(config, rng))),
            QueueConfig::Pie(config) => fifo(Admission::Pie(Pie::new(config, rng))),
            QueueConfig::Codel(config) => {
                Self::Scheduled(Box::new(Scheduled::Codel(Codel::new(config))))
            }
            QueueConfig::Priority(config) => {
                Self::Scheduled(Box::new(Scheduled::Priority(Priority::new(config))))
            }
            QueueConfig::Drr(config) => Self::Scheduled(Box::new(Scheduled::Drr(Drr::new(config)))),
            QueueConfig::AckFilter(config) => {
                Self::Scheduled(Box::new(Scheduled::AckFilter(AckFilter::new(config))))
            }
        }
    }

    /// The packets that it holds; none if departures are computed on arrival.
    pub fn queued(&self) -> Vec<PacketHandle> {
        match self {
            Self::DropTail(_) | Self::Fifo(_) => Vec::new(),
            Self::Scheduled(queue) => queue.handles(),
        }
    }

    /// Whether it holds packets, which must then arrive in order of time.
    pub fn is_scheduled(&self) -> bool {
        matches!(self, Self::Scheduled(_))
    }
}

impl Fifo {
    /// Whether `arrival` is admitted; `ns_per_byte` is the present serialisation time of an octet.
    pub fn judge(&mut self, arrival: &Arrival, ns_per_byte: f64) -> Verdict {
        self.backlog.leave(arrival.now);
        match &mut self.admission {
            Admission::Bytes(limit) => limit.judge(&self.backlog, arrival),
            Admission::Red(red) => red.judge(&self.backlog, arrival, ns_per_byte),
            Admission::Pie(pie) => pie.judge(&self.backlog, arrival),
        }
    }

    /// Adds a packet whose service ends at `departure`.
    pub fn join(&mut self, ip_bytes: u32, departure: Nanos) {
        self.backlog.join(ip_bytes, departure);
    }
}

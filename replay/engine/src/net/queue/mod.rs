//! What waits for a serialiser: queue disciplines, one file each.
//!
//! **The seam.** Where packets leave in the order in which they came and their fate is decided when they come, nothing
//! later can change a packet's departure: it is worked out on arrival and costs no event. Drop-tail, RED and PIE are of
//! this kind (PIE's clock included: its updates are caught up with on the next arrival, from a queue whose every
//! departure is known). Drop-tail in packets is the common case and has its own short path, [`DropTail`]; the others
//! share [`Early`]. CoDel decides when a packet leaves, priority and deficit round robin let later packets go first:
//! these are [`Scheduled`], hold the packets themselves, and are asked again each time the serialiser falls idle, which
//! is an event of the run.
//!
//! Does not depend on TCP, rates or propagation: a queue sees sizes, times, DSCP, ECN and which connection a packet is of.
//! Read docs/queues.md first.

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
    /// First in, first out, with another rule for who may join.
    Early(Box<Early>),
    /// Decides or reorders when a packet leaves.
    Scheduled(Box<Scheduled>),
}

/// What a queue says to a packet that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may wait.
    Admit,
    /// It may wait, marked: congestion experienced.
    Mark,
    /// It may not.
    Refuse(DropCause),
}

/// A packet that comes, and what it finds.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Now.
    pub now: Nanos,
    /// When the serialiser will have sent all that is before it.
    pub busy_until: Nanos,
    /// Octets of the IP packet.
    pub ip_bytes: u32,
    /// Its transport understands ECN marks.
    pub ect: bool,
}

/// A queue that decides on arrival, with its books of who leaves when.
pub struct Early {
    backlog: Backlog,
    rule: Rule,
}

/// Who may join.
enum Rule {
    Bytes(ByteLimit),
    Red(Red),
    Pie(Pie),
}

impl Queue {
    /// Builds the queue; `rng` is its own stream.
    pub fn new(config: &QueueConfig, rng: StreamRng) -> Self {
        let early = |rule| {
            Self::Early(Box::new(Early {
                backlog: Backlog::default(),
                rule,
            }))
        };
        match config {
            QueueConfig::DropTail(config) => match config.packets() {
                Some(limit_pkts) => Self::DropTail(DropTail::new(limit_pkts)),
                None => early(Rule::Bytes(ByteLimit::new(config.limit_bytes.unwrap_or(0)))),
            },
            QueueConfig::Red(config) => early(Rule::Red(Red::new(config, rng))),
            QueueConfig::Pie(config) => early(Rule::Pie(Pie::new(config, rng))),
            QueueConfig::Codel(config) => {
                Self::Scheduled(Box::new(Scheduled::Codel(Codel::new(config))))
            }
            QueueConfig::Priority(config) => {
                Self::Scheduled(Box::new(Scheduled::Priority(Priority::new(config))))
            }
            QueueConfig::Drr(config) => Self::Scheduled(Box::new(Scheduled::Drr(Drr::new(config)))),
        }
    }

    /// The packets that it holds; a queue that works departures out ahead holds none.
    pub fn held(&self) -> Vec<PacketHandle> {
        match self {
            Self::DropTail(_) | Self::Early(_) => Vec::new(),
            Self::Scheduled(queue) => queue.handles(),
        }
    }

    /// Whether it is asked for packets, so that they must come at their own time.
    pub fn is_scheduled(&self) -> bool {
        matches!(self, Self::Scheduled(_))
    }
}

impl Early {
    /// Whether `arrival` may join; `ns_per_byte` is what the serialiser takes now.
    pub fn judge(&mut self, arrival: &Arrival, ns_per_byte: f64) -> Verdict {
        self.backlog.leave(arrival.now);
        match &mut self.rule {
            Rule::Bytes(limit) => limit.judge(&self.backlog, arrival),
            Rule::Red(red) => red.judge(&self.backlog, arrival, ns_per_byte),
            Rule::Pie(pie) => pie.judge(&self.backlog, arrival),
        }
    }

    /// Notes that a packet joined and when its service ends.
    pub fn join(&mut self, ip_bytes: u32, departure: Nanos) {
        self.backlog.join(ip_bytes, departure);
    }
}

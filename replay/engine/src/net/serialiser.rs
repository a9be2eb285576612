//! The serialiser of one direction of a link: service times, busy time, and the changes of the schedule.
//!
//! Does not depend on queues or loss. A new rate of the schedule applies from the next packet in service; a new rate of
//! a rate trace applies immediately.

use std::collections::VecDeque;

use super::rate_trace::{FRACTION_BITS, RateTrace, ns_per_byte};
use crate::config::DirectionConfig;
use crate::sim::time::{NEVER, Nanos};

/// Rate, delay and availability from `start` on.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// Start of the epoch.
    pub start: Nanos,
    /// Serialisation time of one octet in 2^-32 ns; 0 without a serialiser.
    pub ns_per_byte: u64,
    /// Propagation delay.
    pub delay: Nanos,
    /// The link is down.
    pub down: bool,
    /// Transmission is suspended: packets wait in the queue.
    pub held: bool,
}

impl Epoch {
    fn on_fast_path(&self) -> bool {
        self.ns_per_byte > 0 && !self.down && !self.held
    }
}

/// A serialiser.
pub struct Serialiser {
    /// The epoch of the packet whose service began last; services begin in order.
    pub now: Epoch,
    /// Start of the next epoch.
    pub next_change: Nanos,
    /// The epochs to come.
    changes: VecDeque<Epoch>,
    /// When it becomes idle.
    pub busy_until: Nanos,
    /// The latest packet size on the fast path, and its service time in this epoch.
    latest: (u16, Nanos),
    /// The rate over time, if a trace gives it.
    trace: Option<Box<RateTrace>>,
}

impl Serialiser {
    /// An idle serialiser.
    pub fn new(config: &DirectionConfig) -> Self {
        let (now, changes) = epochs(config);
        let trace = config.rate_trace.as_ref();
        let trace = trace.map(|trace| Box::new(RateTrace::new(trace)));
        Self {
            now,
            next_change: changes.front().map_or(NEVER, |next| next.start),
            changes,
            busy_until: 0,
            latest: (0, 0),
            trace,
        }
    }

    /// Whether it has a rate and a delay, is neither down nor suspended, and has no rate trace.
    pub fn on_fast_path(&self) -> bool {
        self.trace.is_none() && self.now.on_fast_path()
    }

    /// Whether rate and delay are the same for every packet.
    pub fn is_constant(&self) -> bool {
        self.changes.is_empty() && self.trace.is_none()
    }

    /// Serialisation time of one octet, nanoseconds.
    pub fn ns_per_byte(&self) -> f64 {
        self.now.ns_per_byte as f64 / (1_u64 << FRACTION_BITS) as f64
    }

    /// When the service of a packet begins that is ready at `start`: later if transmission is suspended, never if it is
    /// not resumed. The epoch is then that of this time.
    #[inline]
    pub fn open(&mut self, start: Nanos) -> Nanos {
        if start >= self.next_change {
            self.take_changes(start);
        }
        if self.now.held {
            return self.reopens();
        }
        // The epoch is in the future if an earlier packet waits for it.
        start.max(self.now.start)
    }

    #[cold]
    fn reopens(&mut self) -> Nanos {
        let next = self.changes.iter().find(|epoch| !epoch.held);
        let start = next.map_or(NEVER, |epoch| epoch.start);
        if start != NEVER {
            self.take_changes(start);
        }
        start
    }

    /// Sends a packet from `start` on, when it is idle and the epoch is that of `start`. Returns the end of service.
    #[inline]
    pub fn serve(&mut self, size_bytes: u16, start: Nanos) -> Nanos {
        if let Some(trace) = &mut self.trace {
            self.busy_until = trace.finish(size_bytes, start);
            return self.busy_until;
        }
        self.busy_until = start + self.service(size_bytes);
        self.busy_until
    }

    /// Service time of a packet at the present rate.
    #[inline]
    pub fn service(&self, size_bytes: u16) -> Nanos {
        let service = u128::from(size_bytes) * u128::from(self.now.ns_per_byte);
        ((service + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS) as Nanos
    }

    /// The same, computed once for consecutive packets of the same size.
    #[inline]
    pub fn service_again(&mut self, size_bytes: u16) -> Nanos {
        if self.latest.0 != size_bytes {
            self.latest = (size_bytes, self.service(size_bytes));
        }
        self.latest.1
    }

    /// Moves to the epoch of `time`.
    #[cold]
    pub fn take_changes(&mut self, time: Nanos) {
        self.latest = (0, 0);
        while let Some(next) = self.changes.front().filter(|next| next.start <= time) {
            self.now = *next;
            self.changes.pop_front();
        }
        self.next_change = self.changes.front().map_or(NEVER, |next| next.start);
    }

    /// The epoch of `time`, which is not before the present epoch.
    pub fn at(&self, time: Nanos) -> &Epoch {
        let passed = self.changes.iter().take_while(|epoch| epoch.start <= time);
        passed.last().unwrap_or(&self.now)
    }
}

/// The first epoch and the following ones.
fn epochs(config: &DirectionConfig) -> (Epoch, VecDeque<Epoch>) {
    let first = Epoch {
        start: 0,
        ns_per_byte: match &config.rate_trace {
            Some(trace) => RateTrace::mean_ns_per_byte(trace),
            None => ns_per_byte(config.rate_bps),
        },
        delay: config.delay_ns,
        down: false,
        held: false,
    };
    let mut epoch = first;
    let mut changes = VecDeque::new();
    for change in &config.schedule {
        epoch.start = change.at_ns;
        if change.rate_bps.is_some() {
            epoch.ns_per_byte = ns_per_byte(change.rate_bps);
        }
        epoch.delay = change.delay_ns.unwrap_or(epoch.delay);
        epoch.down = change.outage.unwrap_or(epoch.down);
        epoch.held = change.hold.unwrap_or(epoch.held);
        changes.push_back(epoch);
    }
    (first, changes)
}

//! The connections of a capture: opens them, assigns segments to them, and retires them. Retired connections take no
//! memory.

use std::collections::{HashMap, VecDeque};

use hindflight_decoder::Segment;

use crate::connection::Connection;
use crate::key::{BuildKeyHasher, Key};
use crate::rows::{Event, FlowRow, Note, Sample};

/// Lifetime of a closed connection: 2 MSL (RFC 9293 §3.4.2), with the MSL of 30 s of common stacks.
const CLOSED_NS: i64 = 60_000_000_000;

/// Lifetime of an idle connection: twice the minimum keep-alive interval of RFC 9293 §3.8.4.
const IDLE_NS: i64 = 4 * 3600 * 1_000_000_000;

/// Lifetime of a connection that was never established. It is longer than the time between two SYNs of a stack that
/// retransmits a SYN six times with backoff.
const OPENING_NS: i64 = 180_000_000_000;

/// Maximum number of connections checked for expiry per segment.
const CHECKS_PER_SEGMENT: usize = 4;

/// A pending check for the expiry of a connection.
#[derive(Clone, Copy, Debug)]
struct Check {
    slot: u32,
    flow_id: u32,
    since_ns: i64,
}

#[derive(Debug)]
struct Slot {
    key: Key,
    connection: Connection,
    retired: bool,
}

/// Computes notes, events, samples and flows from segments in the order of the capture.
///
/// The `take_` methods return the rows that are complete since their last call.
#[derive(Debug, Default)]
pub struct Tracker {
    next_flow_id: u32,
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    by_key: HashMap<Key, u32, BuildKeyHasher>,
    last: Option<(Key, u32)>,
    opening: VecDeque<Check>,
    idle: VecDeque<Check>,
    closed: VecDeque<Check>,
    events: Vec<Event>,
    samples: Vec<Sample>,
    finished: Vec<FlowRow>,
}

impl Tracker {
    /// Creates a tracker that numbers connections from `first_flow_id`.
    pub fn new(first_flow_id: u32) -> Self {
        Self {
            next_flow_id: first_flow_id,
            ..Self::default()
        }
    }

    /// Processes the next segment.
    pub fn push(&mut self, segment: &Segment) -> Note {
        let key = Key::of(segment);
        let slot = match self.find(key) {
            Some(slot) if self.connection(slot).is_replaced_by(segment) => {
                self.retire(slot);
                self.open(key, segment)
            }
            Some(slot) => slot,
            None => self.open(key, segment),
        };
        self.last = Some((key, slot));
        let now = segment.t_ns;
        let connection = &mut self.slots[slot as usize].connection;
        let was_closed = connection.is_closed();
        let note = connection.push(segment, &mut self.events, &mut self.samples);
        if connection.is_closed() && !was_closed {
            self.closed.push_back(Check {
                slot,
                flow_id: note.flow_id,
                since_ns: now,
            });
        }
        self.expire(now);
        note
    }

    /// Events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Rows of `instruments` since the last call.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }

    /// Rows of `flows` of the connections retired since the last call.
    pub fn take_finished_flows(&mut self) -> Vec<FlowRow> {
        std::mem::take(&mut self.finished)
    }

    /// Ends the capture: retires all live connections in the order of their numbers.
    pub fn finish(&mut self) {
        let mut live: Vec<(u32, u32)> = (0..)
            .zip(&self.slots)
            .filter(|(_, slot)| !slot.retired)
            .map(|(index, slot)| (slot.connection.flow_id(), index))
            .collect();
        live.sort_unstable();
        for (_, slot) in live {
            self.retire(slot);
        }
    }

    fn find(&self, key: Key) -> Option<u32> {
        match self.last {
            Some((last, slot)) if last == key => Some(slot),
            _ => self.by_key.get(&key).copied(),
        }
    }

    fn connection(&self, slot: u32) -> &Connection {
        &self.slots[slot as usize].connection
    }

    fn open(&mut self, key: Key, segment: &Segment) -> u32 {
        let flow_id = self.next_flow_id;
        self.next_flow_id = self.next_flow_id.wrapping_add(1);
        let slot = Slot {
            key,
            connection: Connection::new(flow_id, segment),
            retired: false,
        };
        let index = if let Some(index) = self.vacant.pop() {
            self.slots[index as usize] = slot;
            index
        } else {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        };
        self.by_key.insert(key, index);
        self.opening.push_back(Check {
            slot: index,
            flow_id,
            since_ns: segment.t_ns,
        });
        index
    }

    fn retire(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.retired {
            return;
        }
        self.finished
            .push(slot.connection.finish(&mut self.events, &mut self.samples));
        slot.retired = true;
        self.by_key.remove(&slot.key);
        self.last = self.last.filter(|last| last.0 != slot.key);
        self.vacant.push(index);
    }

    /// Retires connections whose lifetime has ended.
    fn expire(&mut self, now_ns: i64) {
        for _ in 0..CHECKS_PER_SEGMENT {
            if let Some(check) = due(&mut self.closed, now_ns, CLOSED_NS) {
                // The connection continues if the other end rejected the RST.
                if let Some(next) = self.retire_if_silent(check, now_ns, CLOSED_NS) {
                    self.closed.push_back(next);
                }
            } else if let Some(check) = due(&mut self.opening, now_ns, OPENING_NS) {
                match self.live(check) {
                    Some(connection) if connection.is_established() => {
                        let since_ns = connection.end_ns();
                        self.idle.push_back(Check { since_ns, ..check });
                    }
                    _ => {
                        if let Some(next) = self.retire_if_silent(check, now_ns, OPENING_NS) {
                            self.opening.push_back(next);
                        }
                    }
                }
            } else if let Some(check) = due(&mut self.idle, now_ns, IDLE_NS) {
                if let Some(next) = self.retire_if_silent(check, now_ns, IDLE_NS) {
                    self.idle.push_back(next);
                }
            } else {
                return;
            }
        }
    }

    /// Retires the connection if its last segment is older than `lifetime_ns`. Otherwise, returns the next check.
    fn retire_if_silent(&mut self, check: Check, now_ns: i64, lifetime_ns: i64) -> Option<Check> {
        let since_ns = self.live(check)?.end_ns();
        if now_ns - since_ns < lifetime_ns {
            return Some(Check { since_ns, ..check });
        }
        self.retire(check.slot);
        None
    }

    /// The connection of a check; `None` if it has been retired.
    fn live(&self, check: Check) -> Option<&Connection> {
        let slot = self.slots.get(check.slot as usize)?;
        let connection = &slot.connection;
        (!slot.retired && connection.flow_id() == check.flow_id).then_some(connection)
    }
}

/// Removes the front of `queue` if it is older than `lifetime_ns`.
fn due(queue: &mut VecDeque<Check>, now_ns: i64, lifetime_ns: i64) -> Option<Check> {
    let front = queue.front()?;
    (now_ns.saturating_sub(front.since_ns) >= lifetime_ns)
        .then(|| queue.pop_front())
        .flatten()
}

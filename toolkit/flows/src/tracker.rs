//! All connections of a capture in one pass: finds each segment's connection, opens and retires them.
//!
//! Memory is held for live connections only. Read [`crate::connection`] first.

use std::collections::{HashMap, VecDeque};

use hindflight_decoder::Segment;

use crate::connection::Connection;
use crate::key::{BuildKeyHasher, Key};
use crate::rows::{Event, FlowRow, Note, Sample};

/// A closed connection is kept this long for stragglers: 2 MSL (RFC 9293 §3.4.2) with the 30 s that stacks use.
const CLOSED_NS: i64 = 60_000_000_000;

/// A silent connection is given up after this time; twice the least keep-alive interval of RFC 9293 §3.8.4.
const IDLE_NS: i64 = 4 * 3600 * 1_000_000_000;

/// A connection that never opened is given up after this time: longer than the pauses between SYNs of a stack that
/// doubles its timeout six times.
const OPENING_NS: i64 = 180_000_000_000;

/// Connections looked at for retirement per segment: enough to keep up, few enough not to be felt.
const RETIREMENTS_PER_SEGMENT: usize = 4;

/// A connection waiting for its time to be looked at.
#[derive(Clone, Copy, Debug)]
struct Watch {
    slot: u32,
    flow_id: u32,
    from_ns: i64,
}

#[derive(Debug)]
struct Live {
    key: Key,
    connection: Connection,
    retired: bool,
}

/// Turns segments, in the order of the capture, into notes, events, samples and flows.
///
/// Any order of calls is safe; the `take_` methods hand over what has become certain so far and leave nothing behind.
#[derive(Debug, Default)]
pub struct Tracker {
    next_flow_id: u32,
    slots: Vec<Live>,
    vacant: Vec<u32>,
    by_key: HashMap<Key, u32, BuildKeyHasher>,
    last: Option<(Key, u32)>,
    opening: VecDeque<Watch>,
    idle: VecDeque<Watch>,
    closed: VecDeque<Watch>,
    events: Vec<Event>,
    samples: Vec<Sample>,
    finished: Vec<FlowRow>,
}

impl Tracker {
    /// A tracker whose first connection gets the number `first_flow_id`.
    pub fn new(first_flow_id: u32) -> Self {
        Self {
            next_flow_id: first_flow_id,
            ..Self::default()
        }
    }

    /// Takes the next segment of the capture.
    pub fn push(&mut self, segment: &Segment) -> Note {
        let key = Key::of(segment);
        let slot = match self.find(key) {
            Some(slot) if self.replaced(slot, segment) => {
                self.retire(slot);
                self.open(key, segment)
            }
            Some(slot) => slot,
            None => self.open(key, segment),
        };
        self.last = Some((key, slot));
        let now = segment.t_ns;
        let connection = &mut self.slots[slot as usize].connection;
        let was_closed = connection.closed();
        let note = connection.push(segment, &mut self.events, &mut self.samples);
        if connection.closed() && !was_closed {
            self.closed.push_back(Watch {
                slot,
                flow_id: note.flow_id,
                from_ns: now,
            });
        }
        self.expire(now);
        note
    }

    /// Events that became certain since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Rows of `instruments` since the last call.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }

    /// Connections retired since the last call.
    pub fn take_finished_flows(&mut self) -> Vec<FlowRow> {
        std::mem::take(&mut self.finished)
    }

    /// The end of the capture: retires every connection still live, in the order of their numbers.
    pub fn finish(&mut self) {
        let mut live: Vec<(u32, u32)> = (0..)
            .zip(&self.slots)
            .filter(|(_, live)| !live.retired)
            .map(|(slot, live)| (live.connection.flow_id(), slot))
            .collect();
        live.sort_unstable();
        for (_, slot) in live {
            self.retire(slot);
        }
    }

    /// Number of connections held in memory.
    pub fn live_connections(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    fn find(&self, key: Key) -> Option<u32> {
        match self.last {
            Some((last, slot)) if last == key => Some(slot),
            _ => self.by_key.get(&key).copied(),
        }
    }

    fn replaced(&self, slot: u32, segment: &Segment) -> bool {
        self.slots[slot as usize].connection.replaced_by(segment)
    }

    fn open(&mut self, key: Key, segment: &Segment) -> u32 {
        let flow_id = self.next_flow_id;
        self.next_flow_id = self.next_flow_id.wrapping_add(1);
        let live = Live {
            key,
            connection: Connection::new(flow_id, segment),
            retired: false,
        };
        let slot = if let Some(slot) = self.vacant.pop() {
            self.slots[slot as usize] = live;
            slot
        } else {
            self.slots.push(live);
            (self.slots.len() - 1) as u32
        };
        self.by_key.insert(key, slot);
        self.opening.push_back(Watch {
            slot,
            flow_id,
            from_ns: segment.t_ns,
        });
        slot
    }

    fn retire(&mut self, slot: u32) {
        let live = &mut self.slots[slot as usize];
        if live.retired {
            return;
        }
        self.finished
            .push(live.connection.finish(&mut self.events, &mut self.samples));
        live.retired = true;
        self.by_key.remove(&live.key);
        self.last = self.last.filter(|last| last.0 != live.key);
        self.vacant.push(slot);
    }

    /// Retires what has been closed or silent for long enough.
    fn expire(&mut self, now_ns: i64) {
        for _ in 0..RETIREMENTS_PER_SEGMENT {
            if let Some(watch) = due(&mut self.closed, now_ns, CLOSED_NS) {
                match self.live(watch).map(Connection::end_ns) {
                    // A reset that the other end has not taken.
                    Some(end_ns) if now_ns - end_ns < CLOSED_NS => {
                        self.closed.push_back(Watch {
                            from_ns: end_ns,
                            ..watch
                        });
                    }
                    Some(_) => self.retire(watch.slot),
                    None => {}
                }
            } else if let Some(watch) = due(&mut self.opening, now_ns, OPENING_NS) {
                match self
                    .live(watch)
                    .map(|connection| (connection.opened(), connection.end_ns()))
                {
                    Some((true, end_ns)) => self.idle.push_back(Watch {
                        from_ns: end_ns,
                        ..watch
                    }),
                    Some((false, end_ns)) if now_ns - end_ns < OPENING_NS => {
                        self.opening.push_back(Watch {
                            from_ns: end_ns,
                            ..watch
                        });
                    }
                    Some(_) => self.retire(watch.slot),
                    None => {}
                }
            } else if let Some(watch) = due(&mut self.idle, now_ns, IDLE_NS) {
                match self.live(watch).map(Connection::end_ns) {
                    Some(end_ns) if now_ns - end_ns < IDLE_NS => {
                        self.idle.push_back(Watch {
                            from_ns: end_ns,
                            ..watch
                        });
                    }
                    Some(_) => self.retire(watch.slot),
                    None => {}
                }
            } else {
                return;
            }
        }
    }

    /// The watched connection, unless it has gone and its slot is vacant or taken by another.
    fn live(&self, watch: Watch) -> Option<&Connection> {
        let live = self.slots.get(watch.slot as usize)?;
        let connection = &live.connection;
        (!live.retired && connection.flow_id() == watch.flow_id).then_some(connection)
    }
}

/// The front of `queue` if it has waited for `wait_ns`.
fn due(queue: &mut VecDeque<Watch>, now_ns: i64, wait_ns: i64) -> Option<Watch> {
    let front = queue.front()?;
    (now_ns.saturating_sub(front.from_ns) >= wait_ns)
        .then(|| queue.pop_front())
        .flatten()
}

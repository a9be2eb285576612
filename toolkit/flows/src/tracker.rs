//! The connections of a capture: opens them, assigns segments to them, and retires them. Retired connections take no
//! memory.

mod opening;
mod packed;

use std::collections::VecDeque;

use hashbrown::HashTable;
use hindflight_decoder::{Issue, Segment};

use crate::artefacts::Artefacts;
use crate::connection::Connection;
use crate::key::Key;
use crate::rows::{Event, FlowRow, Note, Sample};

use opening::Opening;
use packed::{Packed, Packer};

/// Lifetime of a closed connection: 2 MSL (RFC 9293 §3.4.2), with the MSL of 30 s of common stacks.
const CLOSED_NS: i64 = 60_000_000_000;

/// Lifetime of an idle connection: twice the minimum keep-alive interval of RFC 9293 §3.8.4.
const IDLE_NS: i64 = 4 * 3600 * 1_000_000_000;

/// Lifetime of a connection that was never established. It is longer than the time between two SYNs of a stack that
/// retransmits a SYN six times with backoff.
const OPENING_NS: i64 = 180_000_000_000;

/// Maximum number of connections checked for expiry per segment.
const CHECKS_PER_SEGMENT: usize = 4;

/// Maximum number of open connections with their complete state in memory, several kilobytes each, and of closed ones,
/// to which few segments come.
const MAX_WHOLE: [usize; 2] = [1 << 14, 1 << 10];

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
    flow_id: u32,
    state: State,
    /// A segment came since it was last considered for packing.
    recent: bool,
    /// Which of the two lists of [`Tracker::whole`] counts.
    closed: bool,
}

#[derive(Debug)]
enum State {
    /// Only a SYN so far.
    Opening(Opening),
    /// Complete state.
    Open(Box<Connection>),
    /// Silent for a while.
    Packed(Packed),
    /// Its row is finished.
    Retired,
}

impl Slot {
    /// Time of the last segment.
    fn end_ns(&self) -> i64 {
        match &self.state {
            State::Opening(opening) => opening.t_ns,
            State::Open(connection) => connection.end_ns(),
            State::Packed(packed) => packed.end_ns,
            State::Retired => i64::MIN,
        }
    }

    fn is_established(&self) -> bool {
        match &self.state {
            State::Open(connection) => connection.is_established(),
            State::Packed(packed) => packed.established,
            State::Opening(_) | State::Retired => false,
        }
    }

    fn is_closed(&self) -> bool {
        matches!(&self.state, State::Open(connection) if connection.is_closed())
    }

    /// Makes the state complete.
    fn unpack(&mut self, packer: &Packer, estimates_cwnd: bool) {
        let connection = match &self.state {
            State::Opening(opening) => {
                Some(opening.connection(self.flow_id, &self.key, estimates_cwnd))
            }
            State::Packed(packed) => packer.unpack(packed),
            State::Open(_) | State::Retired => None,
        };
        if let Some(connection) = connection {
            self.state = State::Open(Box::new(connection));
        }
    }

    /// Takes the connection out and leaves the slot retired.
    fn take(&mut self, packer: &Packer) -> Option<Box<Connection>> {
        // A SYN alone says nothing about the congestion window.
        self.unpack(packer, false);
        match std::mem::replace(&mut self.state, State::Retired) {
            State::Open(connection) => Some(connection),
            State::Opening(_) | State::Packed(_) | State::Retired => None,
        }
    }
}

/// Computes notes, events, samples and flows from segments in the order of the capture.
///
/// The `take_` methods return the rows that are complete since their last call.
#[derive(Debug, Default)]
pub struct Tracker {
    next_flow_id: u32,
    /// No rows of `instruments` are wanted.
    without_instruments: bool,
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    /// Slots and numbers of the connections with complete state, open ones and closed ones: what of them is silent is
    /// packed from the front on.
    whole: [VecDeque<(u32, u32)>; 2],
    /// Another maximum than [`MAX_WHOLE`].
    max_whole: Option<usize>,
    packer: Packer,
    by_key: HashTable<u32>,
    last: Option<(Key, u32)>,
    opening: VecDeque<Check>,
    idle: VecDeque<Check>,
    closed: VecDeque<Check>,
    events: Vec<Event>,
    samples: Vec<Sample>,
    finished: Vec<FlowRow>,
    artefacts: Artefacts,
    /// Slots of the connections to retire at the end of the capture.
    ending: Option<std::vec::IntoIter<u32>>,
}

impl Tracker {
    /// Creates a tracker that numbers connections from `first_flow_id`.
    pub fn new(first_flow_id: u32) -> Self {
        Self {
            next_flow_id: first_flow_id,
            ..Self::default()
        }
    }

    /// Leaves out what only the rows of `instruments` and changes of phase need: there will be none. All else is the
    /// same.
    #[must_use]
    pub fn without_instruments(mut self) -> Self {
        self.without_instruments = true;
        self
    }

    /// Keeps the complete state of at most this number of open connections, and of closed ones. Less memory, more time.
    #[must_use]
    pub fn with_whole(mut self, connections: usize) -> Self {
        // The one that a segment belongs to.
        self.max_whole = Some(connections.max(1));
        self
    }

    /// Processes the next segment.
    pub fn push(&mut self, segment: &Segment) -> Note {
        let key = Key::of(segment);
        // One variable for all paths, so that the note is made where the caller wants it.
        let note;
        if let Some(at) = self.find_continued(key, segment)
            && let State::Open(connection) = &mut self.slots[at as usize].state
        {
            if self.last.is_none_or(|(_, last)| last != at) {
                self.last = Some((key, at));
            }
            let was_closed = connection.is_closed();
            note = connection.push(segment, &mut self.events, &mut self.samples);
            self.artefacts.observe(segment, note.segments_n);
            if connection.is_closed() && !was_closed {
                connection.release_memory();
                self.close(at, note.flow_id, segment.t_ns);
                self.add_whole(at, note.flow_id, true);
            }
            self.expire(segment.t_ns);
        } else {
            note = self.begin(key, segment);
        }
        note
    }

    /// The slot of the connection that `segment` belongs to. Retires one that it replaces.
    fn find_continued(&mut self, key: Key, segment: &Segment) -> Option<u32> {
        let at = self.find(key)?;
        let connection = self.connection(at)?;
        if connection.is_replaced_by(segment) {
            self.retire(at);
            return None;
        }
        Some(at)
    }

    /// The connection in a slot, with its complete state.
    #[inline]
    fn connection(&mut self, index: u32) -> Option<&mut Connection> {
        let slot = &mut self.slots[index as usize];
        slot.recent = true;
        if !matches!(slot.state, State::Open(_)) {
            self.unpack(index);
        }
        match &mut self.slots[index as usize].state {
            State::Open(connection) => Some(connection),
            State::Opening(_) | State::Packed(_) | State::Retired => None,
        }
    }

    #[inline(never)]
    fn unpack(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.unpack(&self.packer, !self.without_instruments);
        let (flow_id, closed) = (slot.flow_id, slot.is_closed());
        self.add_whole(index, flow_id, closed);
    }

    /// Adds a connection to those with complete state. Of too many, packs one that has been silent.
    fn add_whole(&mut self, index: u32, flow_id: u32, closed: bool) {
        self.slots[index as usize].closed = closed;
        let limit = self.max_whole.unwrap_or(MAX_WHOLE[usize::from(closed)]);
        let whole = &mut self.whole[usize::from(closed)];
        whole.push_back((index, flow_id));
        while whole.len() > limit
            && let Some((index, flow_id)) = whole.pop_front()
        {
            let slot = &mut self.slots[index as usize];
            let State::Open(connection) = &slot.state else {
                continue;
            };
            if slot.flow_id != flow_id || slot.closed != closed {
                continue;
            }
            if std::mem::take(&mut slot.recent) {
                whole.push_back((index, flow_id));
            } else if let Some(packed) = self.packer.pack(connection) {
                slot.state = State::Packed(packed);
            }
        }
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

    /// What the capture itself did to the packets; complete at its end.
    pub fn issues(&self) -> Vec<Issue> {
        self.artefacts.issues()
    }

    /// Ends the capture: retires all live connections in the order of their numbers.
    pub fn finish(&mut self) {
        while self.finish_next(usize::MAX) {}
    }

    /// Ends the capture: retires the next `count` live connections in the order of their numbers. Returns whether there
    /// were any.
    pub fn finish_next(&mut self, count: usize) -> bool {
        let mut ending = self.ending.take().unwrap_or_else(|| {
            let live = |index: &u32| !matches!(self.slots[*index as usize].state, State::Retired);
            let mut live: Vec<u32> = (0..self.slots.len() as u32).filter(live).collect();
            live.sort_unstable_by_key(|&index| self.slots[index as usize].flow_id);
            live.into_iter()
        });
        let any = ending.len() > 0;
        for slot in ending.by_ref().take(count) {
            self.retire(slot);
        }
        self.ending = Some(ending);
        any
    }

    fn find(&self, key: Key) -> Option<u32> {
        match self.last {
            Some((last, slot)) if last == key => Some(slot),
            _ => self
                .by_key
                .find(key.hashed(), |&at| self.slots[at as usize].key == key)
                .copied(),
        }
    }

    /// Begins a connection with `segment`.
    #[inline(never)]
    fn begin(&mut self, key: Key, segment: &Segment) -> Note {
        let flow_id = self.next_flow_id;
        self.next_flow_id = self.next_flow_id.wrapping_add(1);
        let mut connection = Connection::new(flow_id, segment, !self.without_instruments);
        let note = connection.push(segment, &mut self.events, &mut self.samples);
        self.artefacts.observe(segment, note.segments_n);
        let closed = connection.is_closed();
        let state = Opening::of(segment, &key)
            .map_or_else(|| State::Open(Box::new(connection)), State::Opening);
        let whole = matches!(state, State::Open(_));
        let slot = self.open(Slot {
            key,
            flow_id,
            state,
            recent: true,
            closed,
        });
        if whole {
            self.add_whole(slot, flow_id, closed);
        }
        self.opening.push_back(Check {
            slot,
            flow_id,
            since_ns: segment.t_ns,
        });
        if closed {
            self.close(slot, flow_id, segment.t_ns);
        }
        self.last = Some((key, slot));
        self.expire(segment.t_ns);
        note
    }

    /// Notes that the connection in `slot` has closed.
    fn close(&mut self, slot: u32, flow_id: u32, since_ns: i64) {
        self.closed.push_back(Check {
            slot,
            flow_id,
            since_ns,
        });
    }

    fn open(&mut self, slot: Slot) -> u32 {
        let hash = slot.key.hashed();
        let index = if let Some(index) = self.vacant.pop() {
            self.slots[index as usize] = slot;
            index
        } else {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        };
        let slots = &self.slots;
        self.by_key
            .insert_unique(hash, index, |&at| slots[at as usize].key.hashed());
        index
    }

    fn retire(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let key = slot.key;
        let Some(mut connection) = slot.take(&self.packer) else {
            return;
        };
        let row = connection.finish(&mut self.events, &mut self.samples);
        self.artefacts.add(&row, connection.clocks().early());
        self.finished.push(row);
        if let Ok(found) = self.by_key.find_entry(key.hashed(), |&at| at == index) {
            found.remove();
        }
        self.last = self.last.filter(|last| last.0 != key);
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
                    Some(slot) if slot.is_established() => {
                        let since_ns = slot.end_ns();
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

    /// The slot of a check; `None` if its connection has been retired.
    fn live(&self, check: Check) -> Option<&Slot> {
        let slot = self.slots.get(check.slot as usize)?;
        let live = !matches!(slot.state, State::Retired) && slot.flow_id == check.flow_id;
        live.then_some(slot)
    }
}

/// Removes the front of `queue` if it is older than `lifetime_ns`.
fn due(queue: &mut VecDeque<Check>, now_ns: i64, lifetime_ns: i64) -> Option<Check> {
    let front = queue.front()?;
    (now_ns.saturating_sub(front.since_ns) >= lifetime_ns)
        .then(|| queue.pop_front())
        .flatten()
}

//! The connections of a capture, in bounded memory: one that has only its SYN takes less than 100 octets, a closed one
//! is packed, and where these grow too many, those that cannot change any more are given out and forgotten.

use std::collections::VecDeque;

use hashbrown::HashTable;
use hindflight_decoder::flags;

use super::connection::{Connection, MAX_IDLE_US};
use super::sequence_space::elapsed_us;
use crate::pack::Pack;
use crate::packet::{Ends, Packet};

/// Closed connections that are kept as they are, for segments that come late.
const LINGERING: usize = 4096;

/// Memory of closed, idle and SYN-only connections above which the finished ones are given out before the end.
const MAX_HELD_BYTES: usize = 96 << 20;

/// Capture time between two searches for idle connections.
const SWEEP_US: u64 = 30_000_000;

/// A connection, with its number and ends.
#[derive(Debug)]
pub struct Row {
    /// Its number, from 1, in the order of the first packets.
    pub number: u32,
    /// Its ends; the first packet came from `a`.
    pub ends: Ends,
    /// Its counters.
    pub connection: Connection,
}

#[derive(Debug)]
struct Entry {
    ends: Ends,
    number: u32,
    /// Another connection between the same ends has begun.
    followed: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Not in use.
    Free,
    /// Only a SYN without payload and ACK so far.
    Syn(Syn),
    /// Complete state.
    Open(Box<Connection>),
    /// Closed: the packed state.
    Packed(Box<[u8]>),
}

/// The fields of a SYN that count.
#[derive(Clone, Copy, Debug)]
struct Syn {
    t_us: i64,
    seq: u32,
    window: u16,
    ip_id: u16,
    mss: u16,
    urgent: u16,
    wscale: u8,
    flags: u8,
    timestamps: bool,
    sack_permitted: bool,
}

/// All connections that have not been given out.
#[derive(Default)]
pub struct Table {
    entries: Vec<Entry>,
    by_ends: HashTable<u32>,
    free: Vec<u32>,
    /// Closed connections whose state has not been packed.
    lingering: VecDeque<u32>,
    /// Packed connections, the first closed first.
    packed: VecDeque<u32>,
    packed_bytes: usize,
    connections: u32,
    last_sweep_us: i64,
    given_out: Vec<Row>,
    buffer: Vec<u8>,
}

impl Syn {
    /// The state of a connection whose first packet is `packet`, if it fits.
    fn of(packet: &Packet) -> Option<Self> {
        const OTHERS: u16 = flags::ACK | flags::FIN | flags::RST;
        let plain = packet.has(flags::SYN)
            && !packet.has(OTHERS)
            && packet.payload_bytes == 0
            && packet.sack_blocks == 0;
        plain.then_some(Self {
            t_us: packet.t_us,
            seq: packet.seq,
            window: packet.window,
            ip_id: packet.ip_id,
            mss: packet.mss,
            urgent: packet.urgent,
            wscale: packet.wscale,
            flags: packet.flags,
            timestamps: packet.timestamps,
            sack_permitted: packet.sack_permitted,
        })
    }

    fn connection(&self, ends: Ends) -> Connection {
        let packet = Packet {
            t_us: self.t_us,
            ends,
            seq: self.seq,
            window: self.window,
            ip_id: self.ip_id,
            mss: self.mss,
            urgent: self.urgent,
            wscale: self.wscale,
            flags: self.flags,
            timestamps: self.timestamps,
            sack_permitted: self.sack_permitted,
            ..Packet::default()
        };
        let mut connection = Connection::new(self.t_us);
        connection.push(&packet, true);
        connection
    }
}

impl Entry {
    /// Takes the connection out, whatever its state.
    fn take(&mut self) -> Option<Connection> {
        match std::mem::replace(&mut self.state, State::Free) {
            State::Free => None,
            State::Syn(syn) => Some(syn.connection(self.ends)),
            State::Open(connection) => Some(*connection),
            State::Packed(octets) => Some(Connection::unpack(&mut &octets[..])),
        }
    }
}

impl Table {
    /// Counts a packet.
    #[inline]
    pub fn push(&mut self, packet: &Packet) {
        let hash = packet.ends.hash();
        let reversed = packet.ends.reversed();
        let entries = &self.entries;
        let found = self.by_ends.find(hash, |&at| {
            let ends = &entries[at as usize].ends;
            *ends == packet.ends || *ends == reversed
        });
        let Some(&at) = found else {
            self.begin(packet, hash);
            return;
        };
        let forward = self.entries[at as usize].ends == packet.ends;
        if !matches!(self.entries[at as usize].state, State::Open(_)) {
            self.open(at);
        }
        let State::Open(connection) = &mut self.entries[at as usize].state else {
            return;
        };
        if connection.is_followed_by(packet, forward) {
            self.follow(at, packet, hash);
            return;
        }
        let before = connection.is_finished();
        connection.push(packet, forward);
        if packet.has(flags::FIN | flags::RST) || before {
            self.linger(at);
        }
    }

    /// Begins a connection with `packet`.
    #[cold]
    fn begin(&mut self, packet: &Packet, hash: u64) {
        self.connections += 1;
        let state = Syn::of(packet).map_or_else(
            || {
                let mut connection = Box::new(Connection::new(packet.t_us));
                connection.push(packet, true);
                State::Open(connection)
            },
            State::Syn,
        );
        let entry = Entry {
            ends: packet.ends,
            number: self.connections,
            followed: false,
            state,
        };
        let at = if let Some(at) = self.free.pop() {
            self.entries[at as usize] = entry;
            at
        } else {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        };
        let entries = &self.entries;
        self.by_ends
            .insert_unique(hash, at, |&at| entries[at as usize].ends.hash());
        if self.held_bytes() > MAX_HELD_BYTES {
            self.give_out(packet.t_us);
        }
    }

    /// Unpacks the state of the connection at `at`.
    #[cold]
    fn open(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        if let State::Packed(octets) = &entry.state {
            self.packed_bytes -= octets.len();
        }
        if let Some(connection) = entry.take() {
            entry.state = State::Open(Box::new(connection));
        }
    }

    /// Ends the connection at `at`, because `packet` starts another one between the same ends.
    #[cold]
    fn follow(&mut self, at: u32, packet: &Packet, hash: u64) {
        if let Ok(found) = self.by_ends.find_entry(hash, |&other| other == at) {
            found.remove();
        }
        self.entries[at as usize].followed = true;
        self.pack(at);
        self.begin(packet, hash);
    }

    /// Notes that the connection at `at` may be closed, and packs the one that was closed longest ago.
    #[inline]
    fn linger(&mut self, at: u32) {
        self.lingering.push_back(at);
        if self.lingering.len() > LINGERING {
            self.pack_oldest();
        }
    }

    fn pack_oldest(&mut self) {
        let Some(at) = self.lingering.pop_front() else {
            return;
        };
        if let State::Open(connection) = &self.entries[at as usize].state
            && connection.is_closed()
        {
            self.pack(at);
        }
    }

    fn pack(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        if let State::Open(connection) = &entry.state {
            self.buffer.clear();
            connection.pack(&mut self.buffer);
            self.packed_bytes += self.buffer.len();
            entry.state = State::Packed(self.buffer.as_slice().into());
            self.packed.push_back(at);
        }
    }

    fn held_bytes(&self) -> usize {
        self.packed_bytes + self.entries.len() * size_of::<Entry>()
    }

    /// Gives out closed connections, the first closed first, or else those that have been idle too long.
    #[cold]
    fn give_out(&mut self, now_us: i64) {
        while self.held_bytes() > MAX_HELD_BYTES
            && self.free.len() < LINGERING
            && let Some(at) = self.packed.pop_front()
        {
            if matches!(self.entries[at as usize].state, State::Packed(_)) {
                self.give_out_one(at, now_us);
            }
        }
        if self.free.is_empty() && elapsed_us(self.last_sweep_us, now_us) > SWEEP_US {
            self.last_sweep_us = now_us;
            for at in 0..self.entries.len() as u32 {
                let last_us = match &self.entries[at as usize].state {
                    State::Syn(syn) => syn.t_us,
                    State::Open(connection) => connection.last_us,
                    State::Free | State::Packed(_) => continue,
                };
                if elapsed_us(last_us, now_us) > MAX_IDLE_US {
                    self.give_out_one(at, now_us);
                }
            }
        }
    }

    fn give_out_one(&mut self, at: u32, now_us: i64) {
        let entry = &mut self.entries[at as usize];
        if let State::Packed(octets) = &entry.state {
            self.packed_bytes -= octets.len();
        }
        let Some(mut connection) = entry.take() else {
            return;
        };
        connection.end(now_us);
        let row = Row {
            number: entry.number,
            ends: entry.ends,
            connection,
        };
        if !entry.followed
            && let Ok(found) = self
                .by_ends
                .find_entry(row.ends.hash(), |&other| other == at)
        {
            found.remove();
        }
        self.free.push(at);
        self.given_out.push(row);
    }

    /// Takes the connections that were given out before the end.
    pub fn take_given_out(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.given_out)
    }

    /// Ends the capture: nothing follows. Returns the other connections in the order of their numbers.
    pub fn finish(mut self, end_us: i64) -> Rest {
        self.by_ends = HashTable::new();
        self.entries
            .retain(|entry| !matches!(entry.state, State::Free));
        self.entries.sort_unstable_by_key(|entry| entry.number);
        for entry in &mut self.entries {
            if let State::Open(connection) = &mut entry.state {
                connection.end(end_us);
            }
        }
        Rest {
            entries: self.entries,
            end_us,
        }
    }
}

/// The connections that are left at the end of a capture.
pub struct Rest {
    entries: Vec<Entry>,
    end_us: i64,
}

impl Rest {
    /// Number of connections.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Calls `use_row` with each of the connections in `range`.
    pub fn for_each(
        &self,
        range: std::ops::Range<usize>,
        mut use_row: impl FnMut(&Ends, u32, &Connection),
    ) {
        for entry in &self.entries[range] {
            let mut unpacked;
            let connection = match &entry.state {
                State::Free => continue,
                State::Syn(syn) => {
                    unpacked = syn.connection(entry.ends);
                    unpacked.end(self.end_us);
                    &unpacked
                }
                State::Packed(octets) => {
                    unpacked = Connection::unpack(&mut &octets[..]);
                    unpacked.end(self.end_us);
                    &unpacked
                }
                State::Open(connection) => connection,
            };
            use_row(&entry.ends, entry.number, connection);
        }
    }
}

//! Reassembly of IP fragments (RFC 791 §3.2, RFC 8200 §4.5) as far as TCP needs it: the header, and the length of all.
//!
//! A packet is complete with the fragment that fills its last gap; its segment has the time and the number of that
//! record. A capture filtered by port holds first fragments only: until another one appears, a first fragment stands
//! for its packet as soon as the same two hosts exchange another packet.

use std::collections::{BTreeMap, VecDeque};

use crate::container::{Place, Record};
use crate::ip::{Fragment, IpHeader, protocol};

/// Time after which an incomplete packet is given up, as in Linux (RFC 8200 §4.5: 60 s, RFC 791 §3.2: 15 s).
const TIMEOUT_NS: i64 = 30_000_000_000;
/// Maximum number of incomplete packets.
const MAX_WAITING: usize = 1024;
/// Maximum number of separate ranges of one packet.
const MAX_RANGES: usize = 64;
/// Octets that are kept of a packet: the longest TCP header.
const KEPT_BYTES: usize = 60;
/// Fragments that may hold some of them: each but the last is of 8 octets at least.
const KEPT_PIECES: usize = KEPT_BYTES.div_ceil(8);
/// Maximum length of an IP packet.
const MAX_IP_BYTES: u32 = 65_535;

/// A record that holds a fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carrier {
    pub number: u64,
    pub place: Place,
    pub t_ns: i64,
    pub frame_bytes: u32,
    pub captured_bytes: u32,
}

impl Carrier {
    pub fn of(record: &Record<'_>) -> Self {
        Self {
            number: record.number,
            place: record.place,
            t_ns: record.t_ns,
            frame_bytes: record.frame_bytes,
            captured_bytes: record.data.len() as u32,
        }
    }
}

/// A packet that is being reassembled.
#[derive(Debug)]
pub(crate) struct Datagram {
    /// The header of the first fragment, once it has come; of another one until then.
    pub ip: IpHeader,
    /// The record that completes it, or that of its only fragment.
    pub carrier: Carrier,
    /// The start of the captured payload of the fragments that come first in the packet, by position.
    starts: BTreeMap<u32, Vec<u8>>,
    /// Octets that have come, with those of extension headers before the payload.
    have_bytes: u32,
    /// Number of all of them, once the last fragment has come.
    total_bytes: Option<u32>,
    /// Sum of the frame lengths of its fragments.
    pub frame_bytes: u32,
    /// Sum of the captured lengths of its fragments.
    pub captured_bytes: u32,
    /// Number of its fragments.
    pub pieces: u32,
    /// Its first fragment has come.
    pub has_first: bool,
    id: u32,
    ranges: Vec<(u32, u32)>,
}

/// What a fragment was good for.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Its packet is incomplete. If its first fragment was alone before, the record and header of that.
    Waits(Option<(Carrier, IpHeader)>),
    /// It was there before.
    Repeats,
    /// Its packet is complete. If its first fragment was alone before, the record and header of that.
    Complete(Box<Datagram>, Option<(Carrier, IpHeader)>),
    /// It repeats octets of another one, differently cut.
    Overlaps,
    /// Its position or length is impossible.
    Invalid,
}

/// The incomplete packets of a capture, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    waiting: VecDeque<Datagram>,
    /// The capture holds fragments of TCP other than first ones.
    later_seen: bool,
}

impl Fragments {
    /// Whether no packet is incomplete.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a fragment with the captured `octets` of its payload of `length` octets.
    pub fn push(&mut self, carrier: Carrier, ip: &IpHeader, octets: &[u8], length: u32) -> Outcome {
        let (id, start, more) = match ip.fragment {
            Fragment::First { id, .. } => (id, 0, true),
            Fragment::Later { id, units, more } => (id, u32::from(units) * 8, more),
            Fragment::None => return Outcome::Invalid,
        };
        let length = length.saturating_add(header_bytes(ip));
        let end = start.saturating_add(length);
        if length == 0 || (more && length % 8 != 0) || end > MAX_IP_BYTES {
            return Outcome::Invalid;
        }
        self.later_seen |= start > 0 && ip.protocol == protocol::TCP;
        let found = self.position(id, ip);
        let index = found.unwrap_or_else(|| {
            self.waiting.push_back(Datagram::new(carrier, ip, id));
            self.waiting.len() - 1
        });
        let datagram = &mut self.waiting[index];
        match datagram.add(start, end, more) {
            Added::Same => return Outcome::Repeats,
            Added::Overlap => return Outcome::Overlaps,
            Added::New => {}
        }
        let before = datagram
            .is_only_first()
            .then_some((datagram.carrier, datagram.ip));
        datagram.pieces += 1;
        // A pcapng block may name any frame length.
        datagram.frame_bytes = datagram.frame_bytes.saturating_add(carrier.frame_bytes);
        datagram.captured_bytes = datagram
            .captured_bytes
            .saturating_add(carrier.captured_bytes);
        datagram.carrier = carrier;
        if start == 0 {
            datagram.has_first = true;
            datagram.ip = *ip;
            self.later_seen |= datagram.pieces > 1;
        }
        datagram.keep(start, octets);
        if datagram.total_bytes == Some(datagram.have_bytes) {
            if let Some(complete) = self.waiting.remove(index) {
                return Outcome::Complete(Box::new(complete), before);
            }
        }
        Outcome::Waits(before)
    }

    /// Where the packet of a fragment is that has this identification and header.
    fn position(&self, id: u32, ip: &IpHeader) -> Option<usize> {
        self.waiting.iter().rposition(|other| {
            // RFC 8200 §4.5: in IPv6 the protocol is that of the first fragment, and those of the others may differ.
            // In IPv4 only the first one shows what follows an authentication header.
            other.id == id
                && (other.ip.src, other.ip.dst) == (ip.src, ip.dst)
                && (other.ip.protocol == ip.protocol
                    || ip.src.is_ipv6()
                    || [other.ip.protocol, ip.protocol].contains(&protocol::AUTHENTICATION))
        })
    }

    /// Whether `ip` is a first fragment, and the only one of its packet so far.
    pub fn is_only_first(&self, ip: &IpHeader) -> bool {
        let last = self.waiting.back();
        last.is_some_and(|last| last.is_only_first() && last.ip == *ip)
    }

    /// The protocol that the other fragments of the packet of the later fragment `ip` show so far, if any has come.
    pub fn protocol(&self, ip: &IpHeader) -> Option<u8> {
        match ip.fragment {
            Fragment::Later { id, .. } => {
                let index = self.position(id, ip)?;
                Some(self.waiting[index].ip.protocol)
            }
            Fragment::None | Fragment::First { .. } => None,
        }
    }

    /// Removes the fragments that came before the first one, `ip`.
    pub fn take_later(&mut self, ip: &IpHeader) -> Option<Datagram> {
        let Fragment::First { id, .. } = ip.fragment else {
            return None;
        };
        let index = self.position(id, ip)?;
        (!self.waiting[index].has_first).then(|| self.waiting.remove(index))?
    }

    /// Adds a packet that is incomplete.
    pub fn adopt(&mut self, datagram: Datagram) {
        self.waiting.push_back(datagram);
    }

    /// Removes a packet of which the capture seems to hold the first fragment only, now that its hosts exchange the
    /// packet `next`; at the end of the input (`None`), any.
    pub fn take_only_first(&mut self, next: Option<&IpHeader>) -> Option<Datagram> {
        if self.later_seen || next.is_some_and(|next| next.fragment.is_later()) {
            return None;
        }
        let between = |one: &Datagram, next: &IpHeader| {
            let ends = (one.ip.src, one.ip.dst);
            one.ip.fragment != next.fragment
                && (ends == (next.src, next.dst) || ends == (next.dst, next.src))
        };
        let index = self.waiting.iter().position(|one| {
            let related = next.is_none_or(|next| between(one, next));
            one.is_only_first() && related
        })?;
        self.waiting.remove(index)
    }

    /// Removes a packet that has waited too long at `now_ns`, or for which there is no space. At the end of the input
    /// (`None`), any.
    pub fn take_expired(&mut self, now_ns: Option<i64>) -> Option<Datagram> {
        let front = self.waiting.front()?;
        let expired = now_ns.is_none_or(|now| now.saturating_sub(front.carrier.t_ns) > TIMEOUT_NS);
        if expired || self.waiting.len() > MAX_WAITING {
            return self.waiting.pop_front();
        }
        None
    }
}

/// What a range added to its packet.
enum Added {
    New,
    Same,
    Overlap,
}

/// Octets before the payload that belong to what is fragmented.
fn header_bytes(ip: &IpHeader) -> u32 {
    match ip.fragment {
        Fragment::First { header_bytes, .. } => u32::from(header_bytes),
        Fragment::None | Fragment::Later { .. } => 0,
    }
}

impl Datagram {
    /// Payload octets that have come.
    pub fn payload_bytes(&self) -> u32 {
        self.have_bytes - header_bytes(&self.ip).min(self.have_bytes)
    }

    /// Octets that have not come; `None` if the last fragment is among them.
    pub fn missing_bytes(&self) -> Option<u32> {
        let total = self.total_bytes?;
        Some(total.saturating_sub(self.have_bytes))
    }

    /// Only its first fragment has come.
    pub fn is_only_first(&self) -> bool {
        self.has_first && self.pieces == 1
    }

    /// The start of the payload. Octets that were not captured are unknown, and so are all after them.
    pub fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(KEPT_BYTES);
        for (start, piece) in &self.starts {
            let start = start.saturating_sub(header_bytes(&self.ip)) as usize;
            if start != octets.len() || start >= KEPT_BYTES {
                break;
            }
            octets.extend(piece.iter().take(KEPT_BYTES - start));
        }
        octets
    }

    fn new(carrier: Carrier, ip: &IpHeader, id: u32) -> Self {
        Self {
            ip: *ip,
            carrier,
            starts: BTreeMap::new(),
            have_bytes: 0,
            total_bytes: None,
            frame_bytes: 0,
            captured_bytes: 0,
            pieces: 0,
            has_first: false,
            id,
            ranges: Vec::new(),
        }
    }

    /// Adds the range `start..end`, the last one unless there are `more`.
    fn add(&mut self, start: u32, end: u32, more: bool) -> Added {
        if self
            .ranges
            .iter()
            .any(|&(from, to)| from <= start && end <= to)
        {
            return Added::Same;
        }
        let beyond = self.total_bytes.is_some_and(|total| end > total || !more);
        let overlaps = self
            .ranges
            .iter()
            .any(|&(from, to)| start < to && from < end);
        if beyond || overlaps || self.ranges.len() == MAX_RANGES {
            return Added::Overlap;
        }
        if !more {
            self.total_bytes = Some(end);
        }
        self.have_bytes += end - start;
        if let Some(range) = self.ranges.iter_mut().find(|range| range.1 == start) {
            range.1 = end;
        } else {
            self.ranges.push((start, end));
        }
        Added::New
    }

    /// Keeps what may belong to the TCP header.
    fn keep(&mut self, start: u32, octets: &[u8]) {
        if octets.is_empty() {
            return;
        }
        let count = octets.len().min(KEPT_BYTES);
        self.starts.insert(start, octets[..count].to_vec());
        if self.starts.len() > KEPT_PIECES {
            self.starts.pop_last();
        }
    }
}

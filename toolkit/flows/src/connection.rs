//! One connection: two directions, their common sequence space, the handshake and the row that remains.
//!
//! Knows no other connection. Read [`crate::sender`] first.

use std::net::IpAddr;

use hindflight_decoder::{Segment, flags};

use crate::inference::Inference;
use crate::rows::{
    Direction, Edges, Event, EventCause, EventKind, FlowRow, Note, Phase, Sample, Vantage,
};
use crate::scoreboard::Transmission;
use crate::sender::{Acked, Sender, Sent};
use crate::sequence::Origin;
use crate::verdict::Whose;

/// A handshake shorter than this says nothing about the place of the capture: the hosts' own delays weigh as much.
const LEAST_HANDSHAKE_NS: i64 = 200_000;

/// Share of the handshake's round trip, in percent, below which the near end counts as the place of the capture.
const NEAR_PERCENT: i64 = 10;

/// Round trips to be seen by timestamps before they stand in for a handshake.
const LEAST_ECHOES: u64 = 8;

/// Place of the capture by the whole round trip and the part of it beyond.
fn vantage((whole_ns, beyond_ns): (i64, i64)) -> Vantage {
    let near_ns = whole_ns / 100 * NEAR_PERCENT;
    if whole_ns < LEAST_HANDSHAKE_NS {
        Vantage::Unknown
    } else if whole_ns - beyond_ns <= near_ns {
        Vantage::Sender
    } else if beyond_ns <= near_ns {
        Vantage::Receiver
    } else {
        Vantage::Middle
    }
}

/// Times of the three segments of a handshake.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_field_names, reason = "the unit belongs to the name")]
struct Handshake {
    syn_ns: Option<i64>,
    syn_ack_ns: Option<i64>,
    ack_ns: Option<i64>,
}

/// What one side's SYN said about window scaling (RFC 7323 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scale {
    /// That SYN was not captured.
    #[default]
    Unseen,
    /// It has no such option.
    Without,
    /// Its shift count.
    Shift(u8),
}

/// Sequence space that a segment takes (RFC 9293 §3.4).
fn occupied(segment: &Segment) -> i64 {
    let flag = |flag: u16| i64::from(segment.flags & flag != 0);
    i64::from(segment.payload_bytes) + flag(flags::SYN) + flag(flags::FIN)
}

/// One live connection.
#[derive(Debug)]
pub struct Connection {
    flow_id: u32,
    a: (IpAddr, u16),
    b: (IpAddr, u16),
    start_ns: i64,
    end_ns: i64,
    origins: [Origin; 2],
    senders: [Sender; 2],
    handshake: Handshake,
    scales: [Scale; 2],
    sack_permitted: [bool; 2],
    sack_in_use: bool,
    fins: [bool; 2],
    rst: bool,
}

impl Connection {
    /// A connection that begins with `segment`.
    pub fn new(flow_id: u32, segment: &Segment) -> Self {
        let source = (segment.src, segment.src_port);
        let target = (segment.dst, segment.dst_port);
        let answer = segment.flags & (flags::SYN | flags::ACK) == flags::SYN | flags::ACK;
        let (a, b) = if answer {
            (target, source)
        } else {
            (source, target)
        };
        Self {
            flow_id,
            a,
            b,
            start_ns: segment.t_ns,
            end_ns: segment.t_ns,
            origins: Default::default(),
            senders: Default::default(),
            handshake: Handshake::default(),
            scales: [Scale::Unseen; 2],
            sack_permitted: [false; 2],
            sack_in_use: false,
            fins: [false; 2],
            rst: false,
        }
    }

    /// Number of the connection.
    pub fn flow_id(&self) -> u32 {
        self.flow_id
    }

    /// Time of the newest segment.
    pub fn end_ns(&self) -> i64 {
        self.end_ns
    }

    /// Whether both ends took part, or data went either way.
    pub fn opened(&self) -> bool {
        let [a, b] = &self.senders;
        (a.row.segments > 0 && b.row.segments > 0 && !self.rst)
            || a.row.data_segments + b.row.data_segments > 0
    }

    /// Reset, or closed from both ends.
    pub fn closed(&self) -> bool {
        self.rst || self.fins == [true; 2]
    }

    fn direction(&self, segment: &Segment) -> Direction {
        if (segment.src, segment.src_port) == self.a {
            Direction::A2b
        } else {
            Direction::B2a
        }
    }

    /// Whether `segment` opens another connection between the same ends.
    pub fn replaced_by(&self, segment: &Segment) -> bool {
        if segment.flags & flags::SYN == 0 || segment.flags & flags::RST != 0 {
            return false;
        }
        let own = self.direction(segment) as usize;
        match self.origins[own].isn() {
            Some(isn) => isn != segment.seq,
            // The other end opens: part of this connection only while this one is opening.
            None => self.closed() || self.scales[1 - own] == Scale::Unseen,
        }
    }

    /// Takes the next segment.
    pub fn push(
        &mut self,
        segment: &Segment,
        events: &mut Vec<Event>,
        samples: &mut Vec<Sample>,
    ) -> Note {
        let direction = self.direction(segment);
        let (own, peer) = (direction as usize, direction.reverse() as usize);
        let has = |flag: u16| segment.flags & flag != 0;
        self.end_ns = self.end_ns.max(segment.t_ns);
        self.senders[own].row.segments += 1;
        let seq = self.position(own, segment);
        if has(flags::RST) && !std::mem::replace(&mut self.rst, true) {
            events.push(self.reset(direction, segment, seq));
        }
        if has(flags::SYN) {
            self.open(own, segment);
        }
        let wnd_bytes = self.window(own, segment);
        let mut note = Note {
            flow_id: self.flow_id,
            direction,
            seq,
            ack: None,
            wnd_bytes,
            sack: Edges::default(),
            retransmission: false,
            dup_ack: false,
            rtt_ns: None,
            flight_bytes: 0,
        };
        if has(flags::ACK) {
            let ack = self.origins[peer].position(segment.ack);
            note.ack = Some(ack);
            note.sack = self.unwrap_sack(peer, ack, segment);
            if !has(flags::RST) {
                self.acknowledge(direction, segment, &mut note, events);
            }
        }
        self.echo(own, segment);
        let occupied = occupied(segment);
        if occupied > 0 && !has(flags::RST) {
            note.retransmission = self.transmit(direction, segment, (seq, seq + occupied), events);
        }
        let shown = if occupied > 0 { own } else { peer };
        note.flight_bytes = self.senders[shown].board.flight();
        if self.senders[peer]
            .inference
            .as_ref()
            .is_some_and(|inference| inference.full())
        {
            self.release(direction.reverse(), samples, events);
        }
        note
    }

    /// RFC 9293 §3.5.2.
    fn reset(&self, direction: Direction, segment: &Segment, seq: i64) -> Event {
        Event {
            flow_id: self.flow_id,
            t_ns: segment.t_ns,
            end_ns: None,
            direction,
            kind: EventKind::Reset,
            cause: EventCause::Unknown,
            record: Some(segment.record),
            seq_start: Some(seq),
            seq_end: Some(seq),
            evidence: None,
        }
    }

    /// Takes the sequence space that a segment occupies. Returns whether it is a retransmission.
    fn transmit(
        &mut self,
        direction: Direction,
        segment: &Segment,
        (start, end): (i64, i64),
        events: &mut Vec<Event>,
    ) -> bool {
        let own = direction as usize;
        let fin = segment.flags & flags::FIN != 0;
        let sent = Sent {
            start,
            end,
            payload_bytes: segment.payload_bytes,
            transmission: Transmission {
                t_ns: segment.t_ns,
                record: segment.record,
                ts_val: segment.options.timestamps.map(|pair| pair.0),
                ip_id: segment.ip_id,
            },
        };
        let whose = Whose {
            flow_id: self.flow_id,
            direction,
        };
        self.origins[own].advance(end);
        self.fins[own] |= fin;
        self.senders[own].send(&sent, fin, whose, events)
    }

    /// Follows the timestamps of acknowledgements to the data that echoes them.
    fn echo(&mut self, own: usize, segment: &Segment) {
        let Some((ts_val, ts_ecr)) = segment.options.timestamps else {
            return;
        };
        let [a, b] = &mut self.senders;
        let (sender, receiver) = if own == 0 { (a, b) } else { (b, a) };
        let mut known = true;
        if sender.vantage != Vantage::Sender && segment.payload_bytes > 0 {
            sender.echo.answer(ts_ecr, segment.t_ns);
            known =
                sender.vantage != Vantage::Unknown || sender.echo.behind.samples() < LEAST_ECHOES;
        }
        if receiver.vantage != Vantage::Sender && receiver.row.data_segments > 0 {
            receiver.echo.offer(ts_val, segment.t_ns);
        }
        if !known {
            self.place_by_timestamps(if own == 0 {
                Direction::A2b
            } else {
                Direction::B2a
            });
        }
    }

    fn position(&mut self, own: usize, segment: &Segment) -> i64 {
        if segment.flags & flags::SYN != 0 {
            self.origins[own].anchor(segment.seq);
        }
        self.origins[own].position(segment.seq)
    }

    /// Takes note of a SYN's options and time.
    fn open(&mut self, own: usize, segment: &Segment) {
        let options = &segment.options;
        self.scales[own] = options.wscale.map_or(Scale::Without, Scale::Shift);
        self.sack_permitted[own] = options.sack_permitted;
        self.sack_in_use = self.sack_permitted == [true; 2];
        let row = &mut self.senders[own].row;
        row.mss_bytes = options.mss;
        row.wscale = options.wscale;
        if let Some(mss) = options.mss {
            // The other end may send no more than this (RFC 9293 §3.7.1).
            self.senders[1 - own].board.set_mss(i64::from(mss));
        }
        if segment.flags & flags::ACK == 0 {
            if self.handshake.syn_ack_ns.is_none() {
                self.handshake.syn_ns = Some(segment.t_ns);
            }
        } else if self.handshake.ack_ns.is_none() {
            self.handshake.syn_ack_ns = Some(segment.t_ns);
        }
    }

    /// The advertised window in octets, where its scale is known. A closed window is one under every scale.
    fn window(&self, own: usize, segment: &Segment) -> Option<i64> {
        let field = i64::from(segment.window);
        if field == 0 || segment.flags & flags::SYN != 0 {
            // RFC 7323 §2.2: the window of a SYN is never scaled.
            return Some(field);
        }
        match (self.scales[own], self.scales[1 - own]) {
            (Scale::Unseen, _) | (_, Scale::Unseen) => None,
            // RFC 7323 §2.3: a shift above 14 is taken for 14.
            (Scale::Shift(shift), Scale::Shift(_)) => Some(field << shift.min(14)),
            _ => Some(field),
        }
    }

    fn unwrap_sack(&self, peer: usize, ack: i64, segment: &Segment) -> Edges {
        let mut edges = Edges::default();
        for &(left, right) in segment.options.sack.as_slice() {
            let origin = &self.origins[peer];
            let left = origin.near(left, ack);
            edges.push(left, origin.near(right, left));
        }
        edges
    }

    fn acknowledge(
        &mut self,
        direction: Direction,
        segment: &Segment,
        note: &mut Note,
        events: &mut Vec<Event>,
    ) {
        let (own, peer) = (direction as usize, direction.reverse() as usize);
        let ack = note.ack.unwrap_or(0);
        let syn = segment.flags & flags::SYN != 0;
        self.origins[peer].advance(ack);
        if own == 0
            && !syn
            && self.handshake.ack_ns.is_none()
            && self.handshake.syn_ack_ns.is_some()
        {
            self.handshake.ack_ns = Some(segment.t_ns);
            self.place(self.halves().map_or(Vantage::Unknown, vantage));
        }
        let blocks = !segment.options.sack.as_slice().is_empty();
        self.sack_in_use |= blocks;
        let acked = Acked {
            t_ns: segment.t_ns,
            record: segment.record,
            ack,
            sack: note.sack,
            ts_ecr: segment.options.timestamps.map(|pair| pair.1),
            wnd_bytes: note.wnd_bytes,
            window: segment.window,
            pure: segment.payload_bytes == 0 && segment.flags & (flags::SYN | flags::FIN) == 0,
            sack_in_use: self.sack_in_use,
        };
        let whose = Whose {
            flow_id: self.flow_id,
            direction: direction.reverse(),
        };
        let answer = self.senders[peer].acknowledge(&acked, whose, events);
        note.dup_ack = answer.dup_ack;
        note.rtt_ns = answer.rtt_ns;
        let row = &mut self.senders[own].row;
        row.dup_acks += u64::from(answer.dup_ack);
        row.sack_segments += u64::from(blocks);
        row.dsack_segments += u64::from(answer.dsack);
    }

    /// Round-trip time of the handshake and the part of it beyond the capture point, towards b.
    fn halves(&self) -> Option<(i64, i64)> {
        let whole = self.handshake.ack_ns? - self.handshake.syn_ns?;
        let beyond = self.handshake.syn_ack_ns? - self.handshake.syn_ns?;
        (whole >= 0).then_some((whole, beyond))
    }

    /// The same from the data of `direction` and the timestamps that it echoes, towards its receiver.
    fn halves_by_timestamps(&self, direction: Direction) -> Option<(i64, i64)> {
        let sender = &self.senders[direction as usize];
        let behind = &sender.echo.behind;
        if behind.samples() < LEAST_ECHOES || sender.rtt.samples() < LEAST_ECHOES {
            return None;
        }
        let beyond = sender.rtt.min_ns()?;
        Some((beyond + behind.min_ns()?, beyond))
    }

    /// Tells both directions where the capture stands.
    fn place(&mut self, vantage_a2b: Vantage) {
        let whole_ns = self.halves().map(|halves| halves.0);
        let vantage_b2a = match vantage_a2b {
            Vantage::Sender => Vantage::Receiver,
            Vantage::Receiver => Vantage::Sender,
            other => other,
        };
        for (sender, vantage) in self.senders.iter_mut().zip([vantage_a2b, vantage_b2a]) {
            sender.handshake_rtt_ns = whole_ns;
            sender.vantage = vantage;
            if vantage == Vantage::Sender && sender.inference.is_none() {
                let phase = if whole_ns.is_some() {
                    Phase::SlowStart
                } else {
                    Phase::Unknown
                };
                sender.inference = Some(Box::new(Inference::new(phase)));
            }
        }
    }

    /// Judges the place by timestamps where the handshake was not captured.
    fn place_by_timestamps(&mut self, direction: Direction) {
        let Some(halves) = self.halves_by_timestamps(direction) else {
            return;
        };
        match (vantage(halves), direction) {
            (Vantage::Sender, Direction::B2a) => self.place(Vantage::Receiver),
            (Vantage::Receiver, Direction::B2a) => self.place(Vantage::Sender),
            (vantage, _) => self.place(vantage),
        }
    }

    /// Hands over the reconstruction's rows of `direction` if it carries the data so far.
    fn release(
        &mut self,
        direction: Direction,
        samples: &mut Vec<Sample>,
        events: &mut Vec<Event>,
    ) {
        let carries = self.data_direction() == direction;
        if let Some(inference) = &mut self.senders[direction as usize].inference {
            let whose = Whose {
                flow_id: self.flow_id,
                direction,
            };
            inference.release(carries, whose, samples, events);
        }
    }

    fn data_direction(&self) -> Direction {
        let [a2b, b2a] = &self.senders;
        if b2a.row.payload_bytes > a2b.row.payload_bytes {
            Direction::B2a
        } else {
            Direction::A2b
        }
    }

    /// The end: last events and the row.
    pub fn finish(&mut self, events: &mut Vec<Event>, samples: &mut Vec<Sample>) -> FlowRow {
        let data_direction = self.data_direction();
        self.senders[data_direction as usize].settle_view(self.flow_id, Inference::settle);
        self.release(data_direction, samples, events);
        for direction in [Direction::A2b, Direction::B2a] {
            let whose = Whose {
                flow_id: self.flow_id,
                direction,
            };
            self.senders[direction as usize].finish(self.end_ns, whose, events);
        }
        let placed = self.senders[data_direction as usize].vantage;
        let [a2b, b2a] = std::mem::take(&mut self.senders).map(|sender| sender.row);
        FlowRow {
            flow_id: self.flow_id,
            a_addr: self.a.0,
            a_port: self.a.1,
            b_addr: self.b.0,
            b_port: self.b.1,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            syn: self.handshake.syn_ns.is_some(),
            syn_ack: self.handshake.syn_ack_ns.is_some(),
            fin: self.fins.iter().map(|&fin| u8::from(fin)).sum(),
            rst: self.rst,
            data_direction,
            vantage: placed,
            handshake_rtt_ns: self.halves().map(|halves| halves.0),
            directions: [a2b, b2a],
        }
    }
}

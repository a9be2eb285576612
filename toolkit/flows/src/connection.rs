//! A connection: two directions with their sequence spaces, the handshake, and the row of `flows`.

mod estimators;
mod vantage;

use std::net::IpAddr;

use hindflight_decoder::{Segment, flags};

use crate::artefacts::clocks::{Clocks, Link};
use crate::artefacts::copies::Copies;
use crate::artefacts::offload::{self, Integrity, Verdict};
use crate::artefacts::stray::Stray;
use crate::cwnd::CwndEstimator;
use crate::handshake::{Handshake, SplitRtt, WindowScale};
use crate::loss::FlowDirection;
use crate::remote::{RemoteSender, Unseen};
use crate::rows::{Direction, Edges, Event, EventCause, EventKind, FlowRow, Note, Sample, Vantage};
use crate::scoreboard::Transmission;
use crate::sender::{EmptySegment, ReceivedAck, Sender, Sent};
use crate::sequence::SequenceSpace;
use crate::untimed::{UntimedData, UntimedSender};

/// SEG.LEN: the sequence space that a segment occupies (RFC 9293 §3.4).
pub(crate) fn seg_len(segment: &Segment) -> i64 {
    let flag = |flag: u16| i64::from(segment.flags & flag != 0);
    i64::from(segment.payload_bytes) + flag(flags::SYN) + flag(flags::FIN)
}

/// A live connection. Arrays are indexed by [`Direction`].
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Connection {
    flow_id: u32,
    a: (IpAddr, u16),
    b: (IpAddr, u16),
    start_ns: i64,
    end_ns: i64,
    sequences: [SequenceSpace; 2],
    senders: [Sender; 2],
    remotes: [Option<Box<RemoteSender>>; 2],
    untimed: [Option<Box<UntimedSender>>; 2],
    copies: Copies,
    integrity: [Integrity; 2],
    clocks: Clocks,
    /// Payload of the segments that records of more than one stand for; 0 without such records.
    piece_bytes: [i64; 2],
    strays: [Stray; 2],
    handshake: Handshake,
    scales: [WindowScale; 2],
    sack_permitted: [bool; 2],
    sack_in_use: bool,
    fins: [bool; 2],
    rst: bool,
    /// Rows of `instruments` are wanted; no column of `flows` depends on the congestion window.
    estimates_cwnd: bool,
}

impl Connection {
    /// Creates the connection whose first segment is `segment`; with `estimates_cwnd`, rows of `instruments` and events
    /// of changes of phase come of it.
    pub fn new(flow_id: u32, segment: &Segment, estimates_cwnd: bool) -> Self {
        let source = (segment.src, segment.src_port);
        let target = (segment.dst, segment.dst_port);
        let syn_ack = segment.flags & (flags::SYN | flags::ACK) == flags::SYN | flags::ACK;
        let (a, b) = if syn_ack {
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
            sequences: Default::default(),
            senders: Default::default(),
            remotes: Default::default(),
            untimed: Default::default(),
            copies: Copies::default(),
            integrity: Default::default(),
            clocks: Clocks::default(),
            piece_bytes: [0; 2],
            strays: Default::default(),
            handshake: Handshake::default(),
            scales: [WindowScale::Unknown; 2],
            sack_permitted: [false; 2],
            sack_in_use: false,
            fins: [false; 2],
            rst: false,
            estimates_cwnd,
        }
    }

    /// Time of the latest segment.
    pub fn end_ns(&self) -> i64 {
        self.end_ns
    }

    /// Whether both ends have sent segments without a RST, or one has sent data.
    pub fn is_established(&self) -> bool {
        let [a, b] = &self.senders;
        (a.row.segments > 0 && b.row.segments > 0 && !self.rst)
            || a.row.data_segments + b.row.data_segments > 0
    }

    /// Whether there was a RST or both ends have sent FIN.
    pub fn is_closed(&self) -> bool {
        self.rst || self.fins == [true; 2]
    }

    fn direction(&self, segment: &Segment) -> Direction {
        if (segment.src, segment.src_port) == self.a {
            Direction::A2b
        } else {
            Direction::B2a
        }
    }

    fn flow(&self, direction: Direction) -> FlowDirection {
        FlowDirection {
            flow_id: self.flow_id,
            direction,
        }
    }

    /// Whether `segment` is the SYN of another incarnation of the connection.
    pub fn is_replaced_by(&self, segment: &Segment) -> bool {
        if segment.flags & flags::SYN == 0 || segment.flags & flags::RST != 0 {
            return false;
        }
        let direction = self.direction(segment);
        if let Some(isn) = self.sequences[direction as usize].isn() {
            return isn != segment.seq;
        }
        // The SYN of the other end belongs to this connection only if the first SYN was captured.
        self.is_closed() || self.scales[direction.reverse() as usize] == WindowScale::Unknown
    }

    /// Processes the next segment.
    pub fn push(
        &mut self,
        segment: &Segment,
        events: &mut Vec<Event>,
        samples: &mut Vec<Sample>,
    ) -> Note {
        let direction = self.direction(segment);
        let (index, reverse) = (direction as usize, direction.reverse() as usize);
        let has = |flag: u16| segment.flags & flag != 0;
        self.end_ns = self.end_ns.max(segment.t_ns);
        let segments_n = self.segments_n(index, segment);
        self.senders[index].row.segments += u64::from(segments_n);
        if self.integrity[index].judge(segment) == Verdict::Corrupted {
            self.senders[index].row.corrupted_segments += u64::from(segments_n);
            return self.note_of_unused(direction, segment, segments_n, false);
        }
        if self.copies.observe(index, segment) {
            return self.note_of_unused(direction, segment, segments_n, true);
        }
        let known_events = events.len();
        let missing = &mut self.senders[index].missing;
        missing.observe(segment.ip_id, segment.t_ns);
        let seq = self.position(index, segment);
        if has(flags::RST) && !std::mem::replace(&mut self.rst, true) {
            self.on_reset(direction, segment, seq, events);
        }
        if has(flags::SYN) {
            self.on_syn(index, segment);
        }
        let wnd_bytes = self.scaled_window(index, segment);
        self.strays[reverse].window(wnd_bytes);
        let mut note = Note::new(self.flow_id, direction, (seq, segments_n), wnd_bytes);
        if has(flags::ACK) {
            let ack = self.sequences[reverse].position(segment.ack);
            note.ack = Some(ack);
            self.unwrap_sack(reverse, ack, segment, &mut note.sack);
            if !has(flags::RST) {
                self.on_ack(direction, segment, &mut note, events);
            }
        }
        let echoed_ns = self.read_echo(&note, segment);
        let seg_len = seg_len(segment);
        let octets = (seq, seq + seg_len);
        self.clocks.observe(&Link::of(segment, &note, seg_len));
        if has(flags::RST) || (seg_len > 0 && self.is_stray(index, octets)) {
            self.senders[index].count_outside(segment.payload_bytes, segments_n);
        } else if seg_len > 0 {
            note.retransmission = self.on_data(&note, segment, octets, events);
        } else if seq > self.senders[index].board.snd_nxt() {
            self.on_empty_segment(direction, segment, seq, events);
        }
        if let Some(rtt_ns) = echoed_ns.filter(|_| !note.retransmission) {
            self.add_upstream_sample(direction, rtt_ns);
        }
        let sender = if seg_len > 0 { index } else { reverse };
        note.flight_bytes = self.senders[sender].flight_bytes();
        self.release_full(direction, samples, events);
        self.split_losses(events, known_events);
        note
    }

    /// Processes a segment of no length, at SND.NXT.
    fn on_empty_segment(
        &mut self,
        direction: Direction,
        segment: &Segment,
        seq: i64,
        events: &mut Vec<Event>,
    ) {
        let (index, flow) = (direction as usize, self.flow(direction));
        let empty = EmptySegment {
            seq,
            transmission: transmission(segment),
            ts_ecr: segment.options.timestamps.map(|pair| pair.1),
        };
        let timeouts = self.senders[index].on_empty_segment(&empty, flow, events);
        if let Some(remote) = self.remotes[index].as_mut().filter(|_| timeouts > 0) {
            remote.end_silence(segment.t_ns, timeouts, self.flow_id);
        }
    }

    /// Segments that the record of `segment` stands for.
    #[inline]
    fn segments_n(&mut self, index: usize, segment: &Segment) -> u16 {
        let mss_bytes = self.senders[index].board.mss_bytes();
        let segments_n = offload::segments_n(segment, mss_bytes);
        if segments_n > 1 {
            self.piece_bytes[index] = offload::piece_bytes(segment, mss_bytes) as i64;
        }
        segments_n
    }

    /// Makes one loss per segment of those of records that stand for several, among `events` from index `from`.
    #[inline]
    fn split_losses(&self, events: &mut Vec<Event>, from: usize) {
        if events.len() > from && self.piece_bytes != [0; 2] {
            for direction in [Direction::A2b, Direction::B2a] {
                let piece_bytes = self.piece_bytes[direction as usize];
                offload::split_losses(events, from, direction, piece_bytes);
            }
        }
    }

    /// The times of the two directions.
    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// Whether the octets of a segment of direction `index` are far ahead of all before.
    fn is_stray(&mut self, index: usize, octets: (i64, i64)) -> bool {
        let board = &self.senders[index].board;
        board.started() && self.strays[index].is_stray(octets, board.snd_nxt())
    }

    /// The note of a record that is not analysed: it is damaged, or a `copy` of the one before.
    fn note_of_unused(
        &self,
        direction: Direction,
        segment: &Segment,
        segments_n: u16,
        copy: bool,
    ) -> Note {
        let (index, reverse) = (direction as usize, direction.reverse() as usize);
        let seq = self.sequences[index].near_newest(segment.seq);
        let acks = segment.flags & flags::ACK != 0;
        let ack = acks.then(|| self.sequences[reverse].near_newest(segment.ack));
        let sender = if seg_len(segment) > 0 { index } else { reverse };
        let wnd_bytes = self.scaled_window(index, segment);
        let mut note = Note::new(self.flow_id, direction, (seq, segments_n), wnd_bytes);
        self.unwrap_sack(reverse, ack.unwrap_or(0), segment, &mut note.sack);
        Note {
            ack,
            copy,
            flight_bytes: self.senders[sender].flight_bytes(),
            ..note
        }
    }

    /// Processes the first RST (RFC 9293 §3.5.2).
    fn on_reset(
        &mut self,
        direction: Direction,
        segment: &Segment,
        seq: i64,
        events: &mut Vec<Event>,
    ) {
        let (kind, cause) = (EventKind::Reset, EventCause::Unknown);
        events.push(Event {
            record: Some(segment.record),
            seq_start: Some(seq),
            seq_end: Some(seq),
            ..Event::new(self.flow_id, segment.t_ns, direction, kind, cause)
        });
        self.on_empty_segment(direction, segment, seq, events);
    }

    /// Processes the sequence space `start..end` of a segment. Returns whether the segment is a retransmission.
    fn on_data(
        &mut self,
        note: &Note,
        segment: &Segment,
        (start, end): (i64, i64),
        events: &mut Vec<Event>,
    ) -> bool {
        let (direction, index) = (note.direction, note.direction as usize);
        let fin = segment.flags & flags::FIN != 0;
        let sent = Sent {
            start,
            end,
            payload_bytes: segment.payload_bytes,
            segments_n: note.segments_n,
            piece_bytes: offload::piece_bytes(segment, self.senders[index].board.mss_bytes())
                as u32,
            transmission: transmission(segment),
        };
        self.sequences[index].advance(end);
        self.fins[index] |= fin;
        let flow = self.flow(direction);
        self.senders[index].one_way = self.senders[1 - index].row.data_segments == 0;
        let retransmission = self.senders[index].send(&sent, fin, flow, events);
        if let (Some(remote), Some((_, ts_ecr))) =
            (&mut self.remotes[index], segment.options.timestamps)
        {
            let sender = &self.senders[index];
            let before = Unseen {
                timeouts: u32::from(retransmission) * (sender.timeouts_before + 1),
                ids_count: sender.counts_missing(),
            };
            remote.on_data(ts_ecr, &sent, fin, before, flow);
        }
        if let Some(untimed) = self.untimed[index]
            .as_mut()
            .filter(|_| segment.payload_bytes > 0)
        {
            let sender = &self.senders[index];
            let row = &sender.row;
            let counts = [row.data_segments, row.retransmitted_segments].map(|count| count as u32);
            let shown = sent.transmission.ip_id.is_some() && sender.order.ids_increment();
            untimed.on_data(UntimedData {
                t_ns: segment.t_ns,
                octets: (start, start + i64::from(segment.payload_bytes)),
                retransmission: shown.then_some(retransmission),
                counts: counts.into(),
            });
        }
        retransmission
    }

    /// Reads the timestamps of a segment upstream of which there is a sender. Returns the time since the ACK that it is
    /// the first to echo, if it carries data.
    fn read_echo(&mut self, note: &Note, segment: &Segment) -> Option<i64> {
        let (ts_val, ts_ecr) = segment.options.timestamps?;
        let [a, b] = &mut self.senders;
        let (sender, peer) = match note.direction {
            Direction::A2b => (a, b),
            Direction::B2a => (b, a),
        };
        let acks = peer.vantage != Vantage::Sender && peer.row.data_segments > 0;
        if let Some(seg_ack) = note.ack.filter(|_| acks) {
            peer.upstream.on_ack(ts_val, segment.t_ns, seg_ack);
        }
        let upstream = sender.vantage != Vantage::Sender && segment.payload_bytes > 0;
        let echoed_ns = upstream.then(|| sender.upstream.on_data(ts_ecr, segment.t_ns))?;
        echoed_ns.filter(|_| note.seq >= sender.board.snd_nxt())
    }

    /// Adds a sample of the RTT between the capture point and the sender of `direction`.
    fn add_upstream_sample(&mut self, direction: Direction, rtt_ns: i64) {
        let sender = &mut self.senders[direction as usize];
        sender.upstream.rtt.sample(rtt_ns, sender.board.round());
        if sender.vantage == Vantage::Unknown
            && sender.upstream.rtt.samples() >= vantage::MIN_UPSTREAM_SAMPLES
        {
            self.set_vantage_from_timestamps(direction);
        }
    }

    fn position(&mut self, index: usize, segment: &Segment) -> i64 {
        if segment.flags & flags::RST != 0 {
            // A RST for a closed port has the sequence number 0 (RFC 9293 §3.10.7.1), which is no initial one.
            return self.sequences[index].near_newest(segment.seq);
        }
        if segment.flags & flags::SYN != 0 {
            self.sequences[index].set_isn(segment.seq);
        }
        self.sequences[index].position(segment.seq)
    }

    /// Processes the options and the time of a SYN.
    fn on_syn(&mut self, index: usize, segment: &Segment) {
        let options = &segment.options;
        self.scales[index] = WindowScale::of_syn(options.wscale);
        self.sack_permitted[index] = options.sack_permitted;
        self.sack_in_use = self.sack_permitted == [true; 2];
        let row = &mut self.senders[index].row;
        row.mss_bytes = options.mss;
        row.wscale = options.wscale;
        if let Some(mss) = options.mss {
            // The option limits the segments of the other end (RFC 9293 §3.7.1).
            self.senders[1 - index].board.set_mss(i64::from(mss));
        }
        self.handshake.on_syn(segment);
    }

    /// The advertised window, scaled; `None` if the scale is unknown. A zero window needs no scale.
    fn scaled_window(&self, index: usize, segment: &Segment) -> Option<i64> {
        let field = i64::from(segment.window);
        if field == 0 || segment.flags & flags::SYN != 0 {
            // RFC 7323 §2.2: the window of a SYN is not scaled.
            return Some(field);
        }
        self.scales[index].scaled(field, self.scales[1 - index])
    }

    fn unwrap_sack(&self, reverse: usize, ack: i64, segment: &Segment, edges: &mut Edges) {
        for &(left, right) in segment.options.sack.as_slice() {
            let sequence = &self.sequences[reverse];
            let left = sequence.near(left, ack);
            edges.push(left, sequence.near(right, left));
        }
    }

    /// Processes the acknowledgement of a segment of `direction`.
    fn on_ack(
        &mut self,
        direction: Direction,
        segment: &Segment,
        note: &mut Note,
        events: &mut Vec<Event>,
    ) {
        let (index, reverse) = (direction as usize, direction.reverse() as usize);
        let ack = note.ack.unwrap_or(0);
        let syn = segment.flags & flags::SYN != 0;
        self.sequences[reverse].advance(ack);
        if direction == Direction::A2b
            && !syn
            && self.handshake.ack_ns.is_none()
            && self.handshake.syn_ack_ns.is_some()
        {
            self.handshake.ack_ns = Some(segment.t_ns);
            self.handshake.is_late = seg_len(segment) > 0 && note.seq > 1;
            if let Some(packets) = packets_after_syn(segment, note.seq) {
                self.senders[index].complete_handshake(segment.ip_id, packets);
            }
            let rtt = self.handshake.rtt();
            self.set_vantage(rtt.map_or(Vantage::Unknown, SplitRtt::vantage));
        }
        // RFC 9293 §3.8.4: a keep-alive repeats the last octet sent, and has none itself.
        let board = &self.senders[index].board;
        let keep_alive = board.started() && note.seq + 1 == board.snd_nxt();
        let has_sack = !segment.options.sack.as_slice().is_empty();
        self.sack_in_use |= has_sack;
        let ack = ReceivedAck {
            t_ns: segment.t_ns,
            record: segment.record,
            seg_ack: ack,
            sack: &note.sack,
            ts_ecr: segment.options.timestamps.map(|pair| pair.1),
            ip_id: segment.ip_id,
            wnd_bytes: note.wnd_bytes,
            window: segment.window,
            pure: segment.payload_bytes == 0
                && segment.flags & (flags::SYN | flags::FIN) == 0
                && !keep_alive,
            sack_in_use: self.sack_in_use,
        };
        if let (Some(remote), Some((ts_val, _))) =
            (&mut self.remotes[reverse], segment.options.timestamps)
        {
            remote.on_ack(ts_val, &ack);
        }
        let flow = self.flow(direction.reverse());
        let result = self.senders[reverse].acknowledge(&ack, flow, events);
        if let Some(untimed) = &mut self.untimed[reverse] {
            untimed.on_ack(&ack, result.dup_ack);
        }
        note.dup_ack = result.dup_ack;
        note.rtt_ns = result.rtt_ns;
        let row = &mut self.senders[index].row;
        row.dup_acks += u64::from(result.dup_ack);
        row.sack_segments += u64::from(has_sack);
        row.dsack_segments += u64::from(result.dsack);
    }

    /// Ends the connection. Adds its last events and samples and returns its row.
    pub fn finish(&mut self, events: &mut Vec<Event>, samples: &mut Vec<Sample>) -> FlowRow {
        let data_direction = self.data_direction();
        let known_events = events.len();
        self.senders[data_direction as usize].sample_cwnd(self.flow_id, CwndEstimator::take_due);
        if let Some(remote) = &mut self.remotes[data_direction as usize] {
            remote.finish(self.end_ns, self.flow_id);
        }
        if let Some(untimed) = &mut self.untimed[data_direction as usize] {
            untimed.finish();
        }
        if let Some(cwnd) = self.cwnd(data_direction) {
            cwnd.finish();
        }
        self.release_samples(data_direction, 0, samples, events);
        for direction in [Direction::A2b, Direction::B2a] {
            let flow = self.flow(direction);
            self.senders[direction as usize].finish(self.end_ns, flow, events);
        }
        self.split_losses(events, known_events);
        let vantage = self.senders[data_direction as usize].vantage;
        let directions = std::mem::take(&mut self.senders).map(|sender| sender.row);
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
            vantage,
            handshake_rtt_ns: self.handshake.path_rtt_ns(),
            directions,
        }
    }
}

/// The number of packets from the SYN to `segment`, which completes the handshake: if it has data, the ACK is missing,
/// and the segments below it are. `None` where it does not show their size.
fn packets_after_syn(segment: &Segment, seq: i64) -> Option<u16> {
    if seg_len(segment) == 0 {
        return Some(1);
    }
    let (below_bytes, size) = (seq - 1, i64::from(segment.payload_bytes));
    let whole = size > 0 && below_bytes >= 0 && below_bytes % size == 0;
    whole.then(|| u16::try_from(below_bytes / size + 2).ok())?
}

fn transmission(segment: &Segment) -> Transmission {
    Transmission {
        t_ns: segment.t_ns,
        record: segment.record,
        ts_val: segment.options.timestamps.map(|pair| pair.0),
        ip_id: segment.ip_id,
    }
}

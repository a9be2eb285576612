//! The receiving half of a connection: reassembly, acknowledgements, the advertised window, the reading application.
//!
//! `ack_policy` decides when an ACK is sent, `autotuning` how the window opens.
//! Does not depend on congestion control. Read RFC 9293 §3.8.6 and §3.10.7.4, RFC 5681 §4.2 and RFC 2018 first.

mod ack_policy;
mod advertised_window;
mod autotuning;
mod closing;
mod freeze;
mod in_order;
mod periodic_acks;
mod probe_segments;
mod process_reads;

use super::reassembly::Reassembly;
use super::segment::{Direction, Ecn, Purpose, Segment, flags};
use super::stack_rules::AckRules;
use crate::config::StackParams;
use crate::sim::time::{Nanos, timestamp};
use crate::tcp::timer::Timer;
use ack_policy::AckPolicy;
use autotuning::GrowingWindow;
pub use autotuning::window_scale;
use closing::Ending;
pub use freeze::Forecast;
use std::collections::VecDeque;

/// Where the free space of the receive buffer is decided; with a separate tag, which is read several times per segment.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum Space {
    /// An application reads from a buffer of this many octets, at once or at a rate (octets per ns).
    Application {
        /// Buffer size.
        buffer_bytes: u64,
        /// Octets per nanosecond; none: at once.
        octets_per_ns: Option<f64>,
    },
    /// A process reads from the same, up to where it says.
    Process {
        /// Buffer size.
        buffer_bytes: u64,
        /// Octet up to which it has read.
        read_to: u64,
    },
    /// A proxy decides: octets to advertise now.
    Granted {
        /// Octets beyond `rcv_nxt` that may be promised.
        window_bytes: u64,
        /// Size of the buffer, for the window scale.
        buffer_bytes: u64,
    },
}

/// What the next acknowledgement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owed {
    Nothing,
    Acknowledgement,
    /// Several alike.
    Acknowledgements(u8),
    /// Window updates: see `process_reads`.
    Updates,
    SynAck,
    Reset,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiverCounters {
    /// Segments with payload that arrived.
    pub data_segments_in: u64,
    /// Of these, without a new octet.
    pub duplicates_in: u64,
    /// Acknowledgements sent.
    pub acks_out: u64,
    /// Data segments that arrived with a congestion mark.
    pub marks_in: u64,
}

/// A receiver.
#[derive(Debug)]
pub struct Receiver {
    leg: u16,
    params: StackParams,
    /// See `may_skip_steps`.
    skips_steps: bool,
    space: Space,
    /// See [`Space::is_read_at_once`].
    reads_at_once: bool,
    established: bool,
    /// When the last SYN-ACK left, and how many have.
    syn_ack_at: Nanos,
    syn_acks_out: u32,
    rcv_nxt: u64,
    /// Where the application reads, fractions of an octet kept, and when that was worked out.
    read_to: f64,
    read_at: Nanos,
    reassembly: Reassembly,
    /// The window of an application's buffer, where it does not offer all of it at once.
    growing: Option<GrowingWindow>,
    /// When the last segment with data came, or a delayed ACK left, where the buffer tunes itself: Linux reads the clock then.
    clock: Nanos,
    /// Right edge of the window last advertised; never moves left (RFC 9293 §3.8.6.2.2).
    edge: u64,
    /// See `find_full_window`.
    full_window: u64,
    /// Octets that became readable with the segment that filled a gap, while its acknowledgement is owed: the application
    /// reads them after it.
    filled_bytes: u64,
    wscale: u8,
    last_ack_sent: u64,
    ts_recent: u32,
    policy: AckPolicy,
    owed: Owed,
    /// Right edges of the window updates that are owed.
    updates: VecDeque<u64>,
    /// Next octet that goes the other way: its application may ask for something.
    own_nxt: u64,
    /// ECN was agreed on; a mark is being echoed (RFC 3168 §6.1.3).
    ecn: bool,
    echoes: bool,
    dsack: Option<(u64, u64)>,
    /// What it knows of outages, if it warns of them.
    forecast: Option<Box<Forecast>>,
    /// Answers to dummy segments that are due, and their code point.
    probe_answers: (u32, u8),
    ending: Ending,
    /// Before the connection is established: the SYN-ACK's; with a slow reader: when a closed window opens; in the end
    /// the FIN's.
    reopen: Timer,
    control_rto: Nanos,
    ip_id: u16,
    counters: ReceiverCounters,
}

impl Space {
    /// Whether what comes in order is read when it comes.
    fn is_read_at_once(&self) -> bool {
        !matches!(
            self,
            Self::Process { .. }
                | Self::Application {
                    octets_per_ns: Some(_),
                    ..
                }
        )
    }
}

impl Receiver {
    /// A receiver of leg `leg`. Without a handshake it is established at once.
    pub fn new(leg: u16, params: &StackParams, space: Space) -> Self {
        let (buffer, growing) = match space {
            Space::Application { buffer_bytes, .. } | Space::Process { buffer_bytes, .. } => {
                let max = params.receive_buffer_max_bytes;
                let grows = params.receive_window_growth || max.is_some();
                let growing = GrowingWindow::new(buffer_bytes, max, params.smss_bytes);
                let limit = max.unwrap_or(buffer_bytes).max(buffer_bytes);
                (limit, grows.then_some(growing))
            }
            Space::Granted { buffer_bytes, .. } => (buffer_bytes, None),
        };
        let scale = (growing.as_ref()).map_or_else(|| window_scale(buffer), GrowingWindow::scale);
        let mut receiver = Self {
            leg,
            params: *params,
            skips_steps: false,
            reads_at_once: space.is_read_at_once(),
            space,
            established: !params.handshake,
            syn_ack_at: 0,
            syn_acks_out: 0,
            rcv_nxt: 1,
            read_to: 1.0,
            read_at: 0,
            reassembly: Reassembly::default(),
            growing,
            clock: 0,
            edge: 1,
            full_window: 0,
            filled_bytes: 0,
            wscale: scale,
            last_ack_sent: 1,
            ts_recent: 0,
            policy: AckPolicy::new(params, AckRules::of(params)),
            owed: Owed::Nothing,
            updates: VecDeque::new(),
            own_nxt: 1,
            ecn: params.ecn && !params.handshake,
            echoes: false,
            dsack: None,
            forecast: None,
            probe_answers: (0, 0),
            reopen: Timer::default(),
            ending: Ending::default(),
            control_rto: params.initial_rto_ns,
            ip_id: 0,
            counters: ReceiverCounters::default(),
        };
        receiver.skips_steps = receiver.may_skip_steps();
        receiver.full_window = receiver.find_full_window();
        receiver.move_edge();
        receiver
    }

    /// Octets received in order, as a stream offset: next expected.
    #[inline]
    pub fn rcv_nxt(&self) -> u64 {
        // A FIN takes a number, and is no octet.
        self.rcv_nxt.min(self.ending.fin_at)
    }

    /// The last cumulative acknowledgement sent.
    pub fn last_ack_sent(&self) -> u64 {
        self.last_ack_sent
    }

    /// Octets received out of order, in the reassembly queue.
    pub fn out_of_order_octets(&self) -> u64 {
        self.reassembly.octets()
    }

    /// Whether the connection is open.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Whether the application may read: the connection is established, or data came with the SYN.
    pub fn is_readable(&self) -> bool {
        self.established || self.rcv_nxt > 1
    }

    /// Octets that the application has read by `now`.
    pub fn delivered(&self, now: Nanos) -> u64 {
        self.read_position(now) as u64 - 1
    }

    /// When the application will have read up to `end`, all of which has arrived in order.
    #[inline]
    pub fn read_at(&self, end: u64, now: Nanos) -> Nanos {
        match self.space {
            Space::Application {
                octets_per_ns: Some(rate),
                ..
            } => self.read_late_at(end, rate, now),
            _ => now,
        }
    }

    /// Apart, so that the arithmetic of slow readers is not done for the others.
    #[inline(never)]
    fn read_late_at(&self, end: u64, rate: f64, now: Nanos) -> Nanos {
        let unread = (end as f64 - self.read_position(now)).max(0.0);
        now + libm::ceil(unread / rate) as Nanos + 1
    }

    /// Number of its leg.
    pub fn leg(&self) -> u16 {
        self.leg
    }

    /// Window scale that it announces.
    pub fn wscale(&self) -> u8 {
        self.wscale
    }

    /// Right edge of the window that it promises.
    pub fn edge(&self) -> u64 {
        self.edge
    }

    /// Payload of a full segment.
    pub fn smss_bytes(&self) -> u32 {
        self.params.smss_bytes
    }

    /// Header of a segment without SACK blocks.
    pub fn header_bytes(&self) -> u32 {
        self.params.header_bytes
    }

    /// Window that it promises now, from `rcv_nxt`.
    pub fn window(&self) -> u64 {
        self.edge - self.rcv_nxt
    }

    /// Counters.
    pub fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    /// Takes a segment that may be anything, but for data in order: returns whether it is that.
    #[inline(never)]
    fn admits(&mut self, segment: &Segment, now: Nanos) -> bool {
        if self.ending.was_reset() {
            self.answer_after_reset(segment);
            return false;
        }
        if segment.flags & flags::CONTROL != 0 {
            let whole = self.take_control(segment);
            self.skips_steps = self.may_skip_steps();
            if whole {
                self.take_syn_data(segment, now);
                return false;
            }
        }
        if !self.established {
            self.established = true;
            self.control_rto = self.params.initial_rto_ns;
            self.policy.note_established(now);
            // RFC 6298 §3 (Karn): no sample from a SYN-ACK that was sent twice.
            if self.syn_acks_out == 1 {
                self.policy.note_handshake(now - self.syn_ack_at);
            }
            self.reopen.stop();
            self.skips_steps = self.may_skip_steps();
        }
        if segment.seq_end() == segment.seq {
            self.note_answer(segment);
            // RFC 9293 §3.10.7.4: what lies before the window (a window probe) is answered with an ACK.
            if segment.seq < self.rcv_nxt {
                self.owed = Owed::Acknowledgement;
            }
            return false;
        }
        if segment.has(flags::DUMMY) {
            self.take_low_priority_probe(segment, now);
            return false;
        }
        if self.ecn {
            self.take_mark(segment);
        }
        self.catch_up(now);
        // Linux: a FIN in order needs no window.
        if segment.seq == self.rcv_nxt && segment.end() <= self.edge {
            return true;
        }
        self.note_data_out_of_order(segment);
        if segment.seq > self.rcv_nxt && segment.seq_end() <= self.edge {
            self.take_out_of_order(segment, now);
        } else {
            self.refuse(segment);
        }
        false
    }

    /// Data that come with a SYN, which its answer acknowledges (RFC 7413 §4.2.2).
    fn take_syn_data(&mut self, segment: &Segment, now: Nanos) {
        let new =
            segment.has(flags::SYN) && segment.payload_bytes > 0 && segment.seq == self.rcv_nxt;
        if new && self.params.fast_open && segment.end() <= self.edge {
            self.note_data(segment);
            self.take_in_order(segment, now);
            self.policy.note_sent();
            self.owed = Owed::SynAck;
        }
    }

    /// RFC 3168 §6.1.3: every ACK echoes a mark until the sender reports that it has decreased its window; a mark on that
    /// very segment is a new one.
    fn take_mark(&mut self, segment: &Segment) {
        let marked = segment.ecn == Ecn::Ce;
        self.counters.marks_in += u64::from(marked);
        self.echoes = marked || self.echoes && !segment.has(flags::CWR);
    }

    fn take_out_of_order(&mut self, segment: &Segment, now: Nanos) {
        if self.params.sack_enabled() {
            // Without SACK the window stays, so that the sender knows the duplicate ACK for one.
            self.grow_window(segment, 0);
        }
        let gaps = self.reassembly.gaps();
        if !self.reassembly.insert(segment.seq, segment.seq_end()) {
            self.note_duplicate(segment);
        }
        self.tune_buffer_in_gap(segment, now);
        let opens_gap = self.reassembly.gaps() > gaps;
        if self.policy.beyond_gap(opens_gap, self.rcv_nxt, now) || self.dsack.is_some() {
            self.owed = Owed::Acknowledgement;
        }
    }

    fn refuse(&mut self, segment: &Segment) {
        self.owed = Owed::Acknowledgement;
        if segment.seq_end() <= self.rcv_nxt {
            self.note_duplicate(segment);
            self.policy.enter_quick_ack_mode(self.window());
        }
    }

    fn note_duplicate(&mut self, segment: &Segment) {
        self.counters.duplicates_in += 1;
        if self.params.dsack && self.params.sack_enabled() {
            self.dsack = Some((segment.seq, segment.seq_end()));
        }
    }

    /// Brings the reading application up to `now`.
    #[inline]
    fn catch_up(&mut self, now: Nanos) {
        if let Space::Application {
            octets_per_ns: Some(_),
            ..
        } = self.space
        {
            self.read_to = self.read_position(now);
            self.read_at = now;
        }
    }

    fn read_position(&self, now: Nanos) -> f64 {
        let arrived = self.rcv_nxt() as f64;
        match self.space {
            Space::Application {
                octets_per_ns: Some(rate),
                ..
            } => (self.read_to + now.saturating_sub(self.read_at) as f64 * rate).min(arrived),
            Space::Process { read_to, .. } => read_to as f64,
            _ => arrived,
        }
    }

    /// Octets that have arrived in order and wait to be read.
    #[inline]
    fn unread(&self) -> u64 {
        if self.reads_at_once {
            0
        } else {
            self.kept_unread()
        }
    }

    /// Apart, as `read_late_at` is.
    #[inline(never)]
    fn kept_unread(&self) -> u64 {
        match self.space {
            Space::Process { read_to, .. } => self.rcv_nxt() - read_to,
            _ => self.rcv_nxt() - self.read_to as u64,
        }
    }

    /// When it needs to be called.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        let own = self.policy.next_deadline().min(self.reopen.armed());
        own.min(self.next_forecast())
    }

    /// Its deadline has expired.
    pub fn on_deadline(&mut self, now: Nanos) {
        self.heed_forecast(now);
        if self.policy.on_deadline(now) && !self.ending.was_reset() {
            self.clock = now;
            self.owed = Owed::Acknowledgement;
        }
        if self.reopen.fires(now) {
            if !self.established {
                // RFC 6298 §5.5: the end of the handshake did not come.
                self.owed = Owed::SynAck;
                return;
            }
            if self.ending.awaits_answer() {
                self.owed = Owed::Acknowledgement;
                return;
            }
            self.catch_up(now);
            self.maybe_update_window();
            self.watch_reopening(now);
        }
    }

    /// Writes the next acknowledgement into a slot, if one is owed; returns whether one is.
    #[inline(always)]
    pub fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        match self.owed {
            Owed::Acknowledgement => self.acknowledge(now, slot),
            Owed::Nothing => return self.answer_low_priority_probe(now, slot),
            Owed::Acknowledgements(copies) => {
                self.acknowledge(now, slot);
                if copies > 1 {
                    self.owed = Owed::Acknowledgements(copies - 1);
                }
            }
            Owed::Updates => self.write_update(now, slot),
            Owed::SynAck => self.answer_syn(now, slot),
            Owed::Reset => self.write_reset(now, slot),
        }
        true
    }

    /// Whether it has nothing to send.
    #[inline]
    pub fn owes_nothing(&self) -> bool {
        self.owed == Owed::Nothing && self.probe_answers.0 == 0
    }

    fn answer_syn(&mut self, now: Nanos, slot: &mut Segment) {
        self.owed = Owed::Nothing;
        self.syn_ack_at = now;
        self.syn_acks_out += 1;
        self.time_control(now);
        self.write_bare(now, slot);
        slot.flags = flags::SYN | flags::ACK | if self.ecn { flags::ECE } else { 0 };
        slot.purpose = Purpose::Control;
        // RFC 7323 §2.2: the window of a SYN is not scaled.
        slot.wnd_bytes = slot.wnd_bytes.min(0xFFFF);
        slot.ip_bytes = self.params.syn_header_bytes() as u16;
        slot.seq = 0;
    }

    /// Writes an acknowledgement into a slot, owed or not.
    #[inline(always)]
    pub fn acknowledge(&mut self, now: Nanos, slot: &mut Segment) {
        self.owed = Owed::Nothing;
        let waited = self.policy.note_sent();
        self.counters.acks_out += 1;
        if !self.skips_steps {
            self.catch_up(now);
        }
        self.move_edge();
        let filled = std::mem::take(&mut self.filled_bytes) > 0;
        self.write_acknowledgement(now, slot);
        slot.waited = waited;
        if filled {
            // They are read now.
            self.maybe_update_window();
        }
    }

    #[inline(always)]
    fn write_acknowledgement(&mut self, now: Nanos, slot: &mut Segment) {
        self.write_bare(now, slot);
        if self.is_frozen() {
            slot.wnd_bytes = 0;
        }
        if self.dsack.is_some() || !self.reassembly.is_empty() {
            self.report_blocks(slot);
        }
        self.last_ack_sent = self.rcv_nxt;
        if !self.skips_steps {
            self.watch_reopening(now);
            if self.has_fin() {
                self.add_fin(slot, now);
            }
        }
    }

    fn report_blocks(&mut self, slot: &mut Segment) {
        if let Some((left, right)) = self.dsack.take() {
            push_block(slot, left, right);
        }
        if !self.reassembly.is_empty() && self.params.sack_enabled() {
            let blocks = self.params.sack_blocks() - usize::from(slot.sack_len);
            self.reassembly
                .report(blocks, |left, right| push_block(slot, left, right));
        }
        if slot.sack_len > 0 {
            // RFC 2018 §3 with two octets of padding.
            slot.ip_bytes += 4 + 8 * u16::from(slot.sack_len);
        }
    }

    #[inline]
    fn write_bare(&mut self, now: Nanos, slot: &mut Segment) {
        self.ip_id = self.ip_id.wrapping_add(1);
        slot.write(Segment {
            seq: self.own_nxt,
            ack: self.rcv_nxt,
            wnd_bytes: (self.edge - self.rcv_nxt).min(self.max_window()) as u32,
            ts_val: timestamp(now),
            ts_ecr: self.ts_recent,
            ip_bytes: self.params.header_bytes as u16,
            ip_id: self.ip_id,
            flags: flags::ACK | if self.echoes { flags::ECE } else { 0 },
            purpose: Purpose::Ack,
            ..Segment::new(self.leg, Direction::Reverse)
        });
    }
}

fn push_block(segment: &mut Segment, left: u64, right: u64) {
    let offset = |octet: u64| octet.wrapping_sub(segment.ack) as i64 as i32;
    segment.sack[usize::from(segment.sack_len)] = (offset(left), offset(right));
    segment.sack_len += 1;
}

//! What leaves next: the handshake, a forced retransmission, repairs, new data, speculative repairs, probes.
//!
//! Does not depend on why the window is what it is.

use super::Sender;
use super::connection::ConnectionState;
use super::pacing::Pacer;
use super::phase::Phase;
use super::rate::Network;
use crate::cc::WindowPacing;
use crate::config::NagleRule;
use crate::sim::node::Sent;
use crate::sim::time::{MILLISECOND, Nanos, SECOND, timestamp};
use crate::tcp::recovery::Departure;
use crate::tcp::recovery::rack::Probe;
use crate::tcp::recovery::undo::Hold;
use crate::tcp::recovery::window::RecoveryWindow;
use crate::tcp::segment::{Direction, Purpose, Segment, flags};

/// Linux: segments that leave as one wherever the window has room for them, and the time whose data they carry.
const MIN_BURST: u32 = WindowPacing::LINUX.min_burst_pkts;
const BURST_SPAN: Nanos = SECOND / 1024;

/// Linux (`tcp_tso_win_divisor`): a third of the window is enough for a burst of its own.
const BURST_SHARE: f64 = 3.0;

/// Segments that leave as one.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Burst {
    at: Nanos,
    size: u32,
    sent: u32,
    /// It is not the first of its instant.
    follows: bool,
}

impl Sender {
    /// Writes the next segment that may leave now into a slot; says whether there is one.
    pub fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        self.transmit_next(now, slot) != Sent::Nothing
    }

    /// The same, which also says where another one surely may not.
    #[allow(
        clippy::inline_always,
        reason = "part of the short way of nearly every segment; a hint is not heard"
    )]
    #[inline(always)]
    pub fn transmit_next(&mut self, now: Nanos, slot: &mut Segment) -> Sent {
        self.transmit_fast(now, slot).unwrap_or_else(|| {
            match self
                .poll_transmit(now)
                .or_else(|| self.poll_low_priority_probe(now))
            {
                Some(segment) => {
                    *slot = segment;
                    if self.stops_now() {
                        Sent::Last
                    } else {
                        Sent::One
                    }
                }
                None => Sent::Nothing,
            }
        })
    }

    /// Whether one of the windows surely stops the next segment, and a note of which one does.
    fn stops_now(&mut self) -> bool {
        let steady = self.state == ConnectionState::Established
            && matches!(self.phase, Phase::Open { .. })
            && self.undo_state.hold == Hold::Nothing
            && !self.persist_due
            && !self.rack.probe_due
            && self.forced.is_none()
            && self.low_priority_probes.is_none()
            && !self.is_frozen()
            && self.board.outstanding() > 0;
        if !steady {
            return false;
        }
        if self.is_window_full() {
            self.note_usage(true);
            self.send_queue.pushed = false;
            return true;
        }
        let smss = u64::from(self.params.smss_bytes);
        let stops = self.write_end - self.snd_nxt >= smss && self.snd_nxt + smss > self.edge;
        if stops {
            self.note_usage(false);
        }
        stops
    }

    /// The long way: the next segment that may leave now, if any.
    #[inline(never)]
    pub(in crate::tcp) fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        self.fast_path_until = None;
        if self.state != ConnectionState::Established {
            return self.poll_control(now);
        }
        if self.persist_due {
            return Some(self.window_probe(now));
        }
        if self.is_frozen() {
            return None;
        }
        if self.rack.probe_due {
            return self.tail_loss_probe(now);
        }
        if let Some(number) = self.forced.take() {
            self.forced = self.second_copy.take();
            return Some(self.retransmit(Departure::Forced(number), number, now));
        }
        if self.board.outstanding() == 0 {
            self.restart_if_idle(now);
        }
        if self.is_window_full() {
            self.note_usage(true);
            self.send_queue.pushed = false;
            return None;
        }
        self.poll_data(now)
    }

    fn poll_data(&mut self, now: Nanos) -> Option<Segment> {
        let repairs = self.is_repairing();
        let held = self.undo_state.hold != Hold::Nothing;
        if repairs
            && !held
            && let Some(number) = self.board.next_repair()
        {
            let (seq, _) = self.board.span(number);
            if !self.pacing_allows(seq, now) {
                return None;
            }
            let departure = Departure::Retransmission(number);
            return Some(self.retransmit(departure, number, now));
        }
        if let Some(len) = self.sendable(now) {
            if !self.pacing_allows(self.snd_nxt, now) {
                return None;
            }
            let pushed = std::mem::take(&mut self.send_queue.pushed);
            if !pushed && self.waits_for_more(now) {
                return None;
            }
            return Some(self.send_new(Departure::New, len, now));
        }
        if self.undo_state.hold == Hold::NewFirst && self.snd_nxt == self.recover {
            // RFC 5682 §3.1 step 2b: there is no new data to ask with.
            self.undo_state.hold = Hold::Nothing;
            return self.poll_data(now);
        }
        self.note_usage(false);
        if self.write_end - self.snd_nxt < u64::from(self.params.smss_bytes)
            && let Some(rates) = &mut self.rates
        {
            rates.limit_by_application(self.board.pipe());
        }
        if repairs {
            self.speculative_repair(now)
        } else {
            None
        }
    }

    /// Whether a segment waits for the next ACK, to leave with more; the window then counts as what stops it.
    pub(in crate::tcp) fn waits_for_more(&mut self, now: Nanos) -> bool {
        self.deferred = self.deferred || self.waits_for_a_burst(now);
        if self.deferred {
            self.note_usage(true);
        }
        self.deferred
    }

    /// Whether pacing lets the segment from `seq` on leave now.
    #[inline]
    pub(in crate::tcp) fn pacing_allows(&mut self, seq: u64, now: Nanos) -> bool {
        match &mut self.pacer {
            None => true,
            Some(pacer) => pacer.allows(seq, now),
        }
    }

    /// Whether the window has no room for another segment.
    #[inline]
    pub(in crate::tcp) fn is_window_full(&self) -> bool {
        f64::from(self.in_network()) + 1.0 > self.effective_window()
    }

    /// Segments that count against the window.
    #[inline]
    pub(in crate::tcp) fn in_network(&self) -> u32 {
        match &self.phase {
            Phase::Recovery(recovery) => recovery.window.in_flight(&self.board),
            Phase::Open { .. } if self.rules.counts_outstanding => self.board.outstanding(),
            Phase::Open { .. } | Phase::Loss { .. } => self.board.pipe(),
        }
    }

    /// The window against which it counts, in segments.
    #[inline]
    pub(in crate::tcp) fn effective_window(&self) -> f64 {
        let cwnd = self.controller.cwnd();
        match &self.phase {
            Phase::Open { dup_acks: 0 } => self.marks.sinking_window().unwrap_or(cwnd),
            Phase::Open { dup_acks } | Phase::Loss { dup_acks, .. } => {
                (self.marks.sinking_window()).unwrap_or(cwnd + self.limited_transmit(*dup_acks))
            }
            Phase::Recovery(recovery) => recovery.window.window(cwnd),
        }
    }

    /// RFC 3042 §2: a new segment for each of the first two duplicate ACKs.
    #[inline]
    fn limited_transmit(&self, dup_acks: u32) -> f64 {
        if dup_acks > 0 && self.rules.limited_transmit {
            f64::from(dup_acks.min(2))
        } else {
            0.0
        }
    }

    #[inline]
    pub(in crate::tcp) fn note_usage(&mut self, limited: bool) {
        self.usage.note(
            limited,
            self.board.outstanding(),
            self.snd_una,
            self.snd_nxt,
        );
    }

    /// Octets of the next new segment, if the application and the receiver's window allow one.
    #[inline]
    fn sendable(&mut self, now: Nanos) -> Option<u16> {
        let smss = u64::from(self.params.smss_bytes);
        let available = self.write_end - self.snd_nxt;
        let len = available.min(smss);
        if len == 0 || (len < smss && self.must_fill_up()) {
            return None;
        }
        if self.snd_nxt + len > self.edge {
            if self.board.outstanding() == 0 && !self.persist_timer.is_set() {
                self.arm_persist(now);
            }
            return None;
        }
        Some(len as u16)
    }

    /// Whether a segment that is not full waits for more: not where no more will come (RFC 9293 §3.7.4).
    fn must_fill_up(&self) -> bool {
        !self.finished
            && match self.params.nagle {
                NagleRule::Off => false,
                NagleRule::Rfc => self.board.outstanding() > 0,
                NagleRule::Minshall => self.small_end > self.snd_una,
            }
    }

    /// Sends a new segment of `len` octets, as `departure`.
    #[inline]
    pub(in crate::tcp) fn send_new(
        &mut self,
        departure: Departure,
        len: u16,
        now: Nanos,
    ) -> Segment {
        let pushed = self.rules.sends_bursts && self.ends_burst(self.window_room(), now);
        let mut segment = self.new_segment(len, now);
        if self.board.keeps_pieces() && (self.burst.at != now || self.burst.sent == 1) {
            self.board.begin_piece_with_last();
        }
        if pushed {
            segment.flags |= flags::PSH;
        }
        self.rules.algorithm.on_departure(self, departure, now);
        segment
    }

    /// Linux (`tcp_small_queue_check`): of several bursts that leave at one instant the second waits until the first has
    /// passed the device, so that the window has room for a moment.
    ///
    /// Deviation: how much the device may hold depends on how it segments; the recorded ones hold a burst.
    #[inline]
    pub(in crate::tcp) fn was_throttled(&self, now: Nanos) -> bool {
        self.burst.at == now && self.burst.follows
    }

    /// Whether the segment that leaves next, with `room` in the window, is the last of several that leave as one: Linux
    /// pushes it, and a receiver that has read it acknowledges it at once.
    pub(in crate::tcp) fn ends_burst(&mut self, room: f64, now: Nanos) -> bool {
        let Burst { at, size, sent, .. } = self.burst;
        if at != now || sent == size {
            self.burst = Burst {
                at: now,
                size: self.size_of_burst(room),
                sent: 0,
                follows: at == now,
            };
        }
        self.burst.sent += 1;
        self.burst.size > 1 && self.burst.sent == self.burst.size
    }

    /// Segments that may leave as one, with `room` in the window. A single one needs no limit.
    #[inline]
    fn size_of_burst(&self, room: f64) -> u32 {
        let smss_bytes = u64::from(self.params.smss_bytes);
        let waiting = self.write_end - self.snd_nxt;
        if room < 2.0 {
            return u32::from(waiting >= smss_bytes);
        }
        let waiting = (waiting / smss_bytes) as u32;
        (room as u32).min(self.max_of_burst()).min(waiting)
    }

    /// Room for segments in the window.
    pub(in crate::tcp) fn window_room(&self) -> f64 {
        self.effective_window() - f64::from(self.in_network())
    }

    /// Linux (`tcp_tso_should_defer`): where a segment left within the last millisecond and the next ACK is due
    /// within one, room for less than a burst waits for more. The millisecond begins when pacing lets the next one
    /// leave (`tcp_wstamp_ns`).
    #[inline]
    pub(in crate::tcp) fn waits_for_a_burst(&self, now: Nanos) -> bool {
        let in_burst = self.burst.at == now && self.burst.sent < self.burst.size;
        if !self.rules.sends_bursts || in_burst || self.is_repairing() {
            return false;
        }
        let (Some(first), Some(srtt)) = (self.board.first(), self.rtt.srtt()) else {
            return false;
        };
        let released = self.pacer.as_ref().map_or(0, Pacer::release);
        now <= self.last_sent_at.max(released) + MILLISECOND
            && self.board.sent_at(first) + srtt <= now + (srtt / 2).min(MILLISECOND)
            && self.gains_by_waiting()
    }

    /// Whether there is less room than for a burst, and more to send. The last segment of a piece gains nothing by waiting.
    #[inline(never)]
    fn gains_by_waiting(&self) -> bool {
        let cwnd = self.effective_window();
        let room = self.window_room();
        let offered = f64::from(self.last_wnd_bytes) / f64::from(self.params.smss_bytes);
        room < cwnd.min(offered) / BURST_SHARE
            && room < f64::from(self.max_of_burst())
            && self.head_pkts() > 1
    }

    /// Linux (`tcp_tso_autosize`): what the pacing rate sends in a millisecond, at least two segments.
    fn max_of_burst(&self) -> u32 {
        if let Some(pacer) = &self.pacer {
            return pacer.burst_pkts();
        }
        let Some(srtt) = self.rtt.srtt() else {
            return MIN_BURST;
        };
        let cwnd = self.controller.cwnd();
        let share = WindowPacing::LINUX.share(cwnd, self.controller.ssthresh());
        let per_millisecond = share * cwnd * BURST_SPAN as f64 / srtt as f64;
        (per_millisecond as u32).max(MIN_BURST)
    }

    #[inline]
    fn new_segment(&mut self, len: u16, now: Nanos) -> Segment {
        let seq = self.snd_nxt;
        let quiet = self.board.pipe() == 0;
        self.board.push(seq, len, now);
        if self.rates.is_some() {
            self.note_departure(self.board.last(), quiet, now);
        }
        self.snd_nxt += u64::from(len);
        if self.board.keeps_pieces() {
            self.drop_sent_pieces();
        }
        if u32::from(len) < self.params.smss_bytes {
            self.small_end = self.snd_nxt;
        }
        self.rtt.time_segment(self.snd_nxt, now);
        if let Phase::Open { dup_acks: 1.. } = self.phase {
            self.limited_transmitted += 1;
        }
        let mut segment = self.segment_of(seq, len, Purpose::Data, now);
        self.marks.label(&mut segment);
        segment
    }

    /// Sends segment `number` again, as `departure`.
    pub(in crate::tcp) fn retransmit(
        &mut self,
        departure: Departure,
        number: u64,
        now: Nanos,
    ) -> Segment {
        let quiet = self.board.pipe() == 0;
        if self.board.keeps_pieces() {
            let room = self.window_room().max(1.0);
            self.board.cut_piece(number, room as u64, now);
        }
        self.board.retransmit(number, now);
        self.undo_state.note_retransmission(now);
        if self.rates.is_some() {
            self.note_departure(Some(number), quiet, now);
        }
        self.counters.retransmissions += 1;
        let (seq, len) = self.board.span(number);
        let purpose = match self.phase {
            Phase::Loss { .. } => Purpose::TimeoutRetransmission,
            Phase::Open { .. } | Phase::Recovery(_) => Purpose::FastRetransmission,
        };
        let segment = self.segment_of(seq, len, purpose, now);
        self.rules.algorithm.on_departure(self, departure, now);
        segment
    }

    /// Notes what segment `number` knows of the rate so far; `quiet`: nothing else is in the network.
    fn note_departure(&mut self, number: Option<u64>, quiet: bool, now: Nanos) {
        let (Some(rates), Some(number), Some(first)) =
            (&mut self.rates, number, self.board.first())
        else {
            return;
        };
        let network = Network {
            outstanding: self.board.outstanding(),
            flight: self.board.pipe(),
            lost_total: self.board.lost_total(),
        };
        rates.on_send(number, first, network, now);
        if quiet && rates.is_app_limited() {
            self.controller.on_restart(now);
            self.update_pacing();
        }
    }

    /// RFC 6675 §4, NextSeg rules (3) and (4): with nothing else to send, a hole that is not yet lost, then once the
    /// last segment.
    fn speculative_repair(&mut self, now: Nanos) -> Option<Segment> {
        let Phase::Recovery(recovery) = &mut self.phase else {
            return None;
        };
        if !matches!(recovery.window, RecoveryWindow::Pipe) {
            return None;
        }
        if let Some(number) = self.board.next_speculative(recovery.speculative_from) {
            recovery.speculative_from = number + 1;
            return Some(self.retransmit(Departure::Forced(number), number, now));
        }
        if recovery.rescued {
            return None;
        }
        recovery.rescued = true;
        let last = self.board.last_unsacked()?;
        Some(self.retransmit(Departure::Forced(last), last, now))
    }

    pub(in crate::tcp) fn restart_if_idle(&mut self, now: Nanos) {
        // RFC 5681 §4.1.
        if self.counters.segments_out > 0
            && self.write_end > self.snd_nxt
            && now - self.last_sent_at > self.rtt.rto()
            && !self.persist_timer.is_set()
            && self.rules.restarts_after_idle
        {
            self.controller.on_idle(
                f64::from(self.params.initial_window_pkts),
                now - self.last_sent_at,
            );
        }
    }

    /// A data segment, counted.
    #[inline]
    fn segment_of(&mut self, seq: u64, len: u16, purpose: Purpose, now: Nanos) -> Segment {
        self.counters.segments_out += 1;
        self.last_sent_at = now;
        if let Some(pacer) = &mut self.pacer {
            pacer.on_send(seq, len.into(), self.counters.segments_out, now);
        }
        self.marks.on_send();
        if let Phase::Recovery(recovery) = &mut self.phase {
            recovery.window.on_send();
        }
        let mut segment = self.bare(now, flags::ACK);
        segment.seq = seq;
        segment.payload_bytes = len;
        segment.ip_bytes += len;
        segment.purpose = purpose;
        segment.slow_start =
            self.params.delayed_ack_after_slow_start && self.controller.in_slow_start();
        if seq + u64::from(len) == self.write_end && self.finished {
            segment.flags |= flags::PSH;
            if self.fin_seq.is_some() {
                segment.flags |= flags::FIN;
                segment.payload_bytes -= 1;
                segment.ip_bytes -= 1;
            }
        }
        segment
    }

    pub(in crate::tcp) fn next_ip_id(&mut self) -> u16 {
        self.ip_id = self.ip_id.wrapping_add(1);
        self.ip_id
    }

    #[inline]
    pub(in crate::tcp) fn bare(&mut self, now: Nanos, flags: u8) -> Segment {
        let ip_id = self.next_ip_id();
        Segment {
            seq: self.snd_nxt,
            ack: 1,
            wnd_bytes: 0xFFFF,
            ts_val: timestamp(now),
            ts_ecr: self.ts_recent,
            ip_bytes: self.params.header_bytes as u16,
            ip_id,
            flags,
            purpose: Purpose::Control,
            ..Segment::new(self.leg, Direction::Forward)
        }
    }

    /// RFC 9293 §3.8.6.1.
    ///
    /// Deviation: the probe is an empty segment before the window, as Linux sends it, not an octet of new data.
    fn window_probe(&mut self, now: Nanos) -> Segment {
        self.persist_due = false;
        let mut segment = self.bare(now, flags::ACK);
        segment.seq = self.snd_una - 1;
        segment.purpose = Purpose::Probe;
        segment
    }

    /// RFC 8985 §7.3: new data if the receiver's window has room, else the last segment again.
    fn tail_loss_probe(&mut self, now: Nanos) -> Option<Segment> {
        self.rack.probe_due = false;
        let (mut segment, retransmission) = if let Some(len) = self.sendable(now) {
            if !self.rules.algorithm.probe_may_leave(self, now) {
                return None;
            }
            (self.send_new(Departure::Probe(None), len, now), false)
        } else {
            let last = self.board.last()?;
            let departure = Departure::Probe(Some(last));
            (self.retransmit(departure, last, now), true)
        };
        segment.purpose = Purpose::Probe;
        self.note_probe(retransmission);
        Some(segment)
    }

    /// A probe left; `retransmission`: with old data.
    pub(in crate::tcp) fn note_probe(&mut self, retransmission: bool) {
        self.rack.probe = Some(Probe {
            high_seq: self.snd_nxt,
            retransmission,
        });
    }
}

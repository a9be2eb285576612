//! What is sent next: the handshake, a forced retransmission, lost segments, new data, speculative retransmissions, probes.
//!
//! Does not depend on how the window was computed. On the fast path (see `fast_path`) the steps that cannot have an effect
//! there are skipped.

use super::Sender;
use super::burst::Room;
use super::connection::ConnectionState;
use super::phase::Phase;
use super::rate::Network;
use super::validation::UnusedWindow;
use crate::cc::ConnectionEvent;
use crate::sim::node::Sent;
use crate::sim::time::{Nanos, timestamp};
use crate::tcp::recovery::Departure;
use crate::tcp::recovery::rack::Probe;
use crate::tcp::recovery::undo::Hold;
use crate::tcp::recovery::window::RecoveryWindow;
use crate::tcp::segment::{Direction, Purpose, Segment, flags};

/// What stops new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The window is full.
    Window,
    /// There is nothing that the application and the receiver's window allow.
    NoData,
    /// Pacing, or a burst that waits for more room.
    Deferred,
}

impl Sender {
    /// Writes the next segment that may leave now into a slot; returns whether there is one.
    pub fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        self.transmit_next(now, slot) != Sent::Nothing
    }

    /// The same, which also tells where no other one can follow. On the fast path only new data can leave.
    #[inline(always)]
    pub fn transmit_next(&mut self, now: Nanos, slot: &mut Segment) -> Sent {
        if !self.sends_on_fast_path() {
            return self.transmit_any(now, slot);
        }
        let sent = self.transmit_fast(now, slot);
        if sent != Sent::One {
            self.set_timers(now);
        }
        sent
    }

    #[inline(always)]
    fn transmit_fast(&mut self, now: Nanos, slot: &mut Segment) -> Sent {
        let cwnd = self.controller.window().cwnd;
        let room = Room::of(cwnd, self.board.outstanding());
        if self.awaits_release(room, now) {
            return Sent::Nothing;
        }
        let Ok(data) = self.next_data(room, now) else {
            return Sent::Nothing;
        };
        slot.write(self.send_new(true, Departure::New, data, now));
        // Within a burst the next one mostly follows, so that it is not worth looking for it twice.
        if self.burst.has_more() {
            return Sent::One;
        }
        let room = Room::of(cwnd, self.board.outstanding());
        if self.next_data(room, now).is_ok() {
            Sent::One
        } else {
            Sent::Last
        }
    }

    #[inline(never)]
    fn transmit_any(&mut self, now: Nanos, slot: &mut Segment) -> Sent {
        let segment = (self.poll_transmit(now)).or_else(|| self.poll_low_priority_probe(now));
        let Some(segment) = segment else {
            return Sent::Nothing;
        };
        self.window_use.called_early_at = None;
        *slot = segment;
        if self.sends_new_data_only() && self.next_data(self.room(), now).is_err() {
            Sent::Last
        } else {
            Sent::One
        }
    }

    /// Whether nothing but new data can leave next.
    fn sends_new_data_only(&self) -> bool {
        self.state == ConnectionState::Established
            && matches!(self.phase, Phase::Open { .. })
            && self.undo_state.hold == Hold::Nothing
            && !self.persist_due
            && !self.rack.probe_due
            && !self.send_queue.pushed
            && self.forced.is_none()
            && self.low_priority_probes.is_none()
            && !self.is_frozen()
            && self.board.outstanding() > 0
    }

    /// The next segment that may leave now, if any, whatever the state.
    pub(in crate::tcp) fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        self.fast_path_until = None;
        self.set_timers(now);
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
        if let Some(number) = self.take_forced() {
            return Some(self.retransmit(Departure::Forced(number), number, now));
        }
        if self.board.outstanding() == 0 {
            self.restart_if_idle(now);
        }
        self.end_hold_behind_burst(now);
        let in_recovery = self.in_loss_recovery();
        if in_recovery
            && self.undo_state.hold == Hold::Nothing
            && !self.is_window_full()
            && let Some(number) = self.board.next_retransmission()
        {
            let (seq, _) = self.board.span(number);
            // Linux (`tcp_xmit_retransmit_queue`) asks before each piece.
            let leaves = self.pacing_allows(seq, !self.board.begins_piece(number), now);
            return leaves.then(|| self.retransmit(Departure::Retransmission(number), number, now));
        }
        if self.lacks_data_for_frto(now) {
            self.undo_state.hold = Hold::Nothing;
            return self.poll_transmit(now);
        }
        if self.undo_state.hold == Hold::Everything {
            return None;
        }
        match self.next_data(self.room(), now) {
            Ok(data) => Some(self.send_new(false, Departure::New, data, now)),
            Err(Stop::NoData) if in_recovery => self.speculative_retransmission(now),
            Err(_) => None,
        }
    }

    /// The segment to be sent again regardless of the window, unless it was acknowledged while nothing could leave.
    fn take_forced(&mut self) -> Option<u64> {
        let first = self.board.first();
        let number = self.forced.take()?;
        self.forced = self.second_copy.take();
        (first.is_some_and(|first| first <= number)).then_some(number)
    }

    /// RFC 5682 §3.1 step 2b: F-RTO needs new data as its probe, and there is none.
    fn lacks_data_for_frto(&mut self, now: Nanos) -> bool {
        self.undo_state.hold == Hold::NewDataFirst
            && self.snd_nxt == self.recover
            && !self.is_window_full()
            && self.sendable(now).is_none()
    }

    /// Linux (`tcp_tsq_write`): once the device has taken the first burst of new data, lost segments come before more of it.
    fn end_hold_behind_burst(&mut self, now: Nanos) {
        if self.undo_state.hold == Hold::NewDataFirst
            && self.rules.holds_for_one_ack
            && self.rules.sends_bursts
            && self.burst.at == now
            && !self.burst.has_more()
        {
            self.undo_state.hold = Hold::Nothing;
        }
    }

    /// Octets of the next new segment that may leave now into `room`, and the size of a burst that begins with it; or what
    /// stops it, with a note of that.
    #[inline(always)]
    fn next_data(&mut self, room: Room, now: Nanos) -> Result<(u16, u32), Stop> {
        if room.left < 1.0 {
            self.note_usage(true, now);
            self.send_queue.pushed = false;
            return Err(Stop::Window);
        }
        let Some(len) = self.sendable(now) else {
            self.note_no_data(now);
            return Err(Stop::NoData);
        };
        // Linux (`tcp_write_xmit`) asks before each burst, so that none joins a retransmission that left just now.
        let joins = !self.rules.sends_bursts || self.is_in_burst(now);
        if !self.pacing_allows(self.snd_nxt, joins, now) {
            return Err(Stop::Deferred);
        }
        if self.rules.sends_bursts {
            let Some(burst) = self.plan_burst(room, now) else {
                return Err(Stop::Deferred);
            };
            return Ok((len, burst));
        }
        Ok((len, 0))
    }

    /// Linux asks when the application writes (tcp_sendmsg calls tcp_rate_check_app_limited): one that waits for the send
    /// buffer does not limit the rate.
    #[inline]
    fn note_no_data(&mut self, now: Nanos) {
        self.note_usage(false, now);
        if !self.send_queue.writer_waits && !self.has_unsent_segment() {
            self.limit_rates();
        }
    }

    /// Whether pacing lets the segment from `seq` on leave now; `joins`: it may be part of the last burst.
    #[inline(always)]
    pub(in crate::tcp) fn pacing_allows(&mut self, seq: u64, joins: bool, now: Nanos) -> bool {
        match &mut self.pacer {
            None => true,
            Some(pacer) => pacer.allows(seq, joins, now),
        }
    }

    /// Whether the window has no room for another segment.
    #[inline]
    pub(in crate::tcp) fn is_window_full(&self) -> bool {
        self.room().left < 1.0
    }

    /// The window and what is left of it.
    pub(super) fn room(&self) -> Room {
        Room::of(self.effective_window(), self.in_network())
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
        let cwnd = self.controller.window().cwnd;
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
    pub(in crate::tcp) fn note_usage(&mut self, limited: bool, now: Nanos) {
        self.usage.note(
            limited,
            self.board.outstanding(),
            self.snd_una,
            self.snd_nxt,
        );
        if self.rules.unused_window == UnusedWindow::Decays {
            self.validate_window(limited, now);
        }
    }

    /// Sends a new segment of `len` octets as `departure`; a burst that begins with it has `burst` segments. While the
    /// connection is on the fast path the segment is known to have no mark, no separate piece and no timing.
    #[inline(always)]
    pub(in crate::tcp) fn send_new(
        &mut self,
        fast: bool,
        departure: Departure,
        (len, burst): (u16, u32),
        now: Nanos,
    ) -> Segment {
        let pushed = self.rules.sends_bursts && self.ends_burst(burst, now);
        let idle = !fast && self.board.pipe() == 0;
        let seq = self.snd_nxt;
        if idle {
            self.note_resumption(now);
        }
        self.board.push(seq, len, now);
        if self.rates.is_some() {
            self.note_departure(fast, self.board.last(), idle, now);
        }
        self.snd_nxt += u64::from(len);
        if u32::from(len) < self.params.smss_bytes {
            self.small_end = self.snd_nxt;
        }
        let mut segment = self.segment_of(fast, (seq, len), Purpose::Data, now);
        if !fast {
            self.note_new(&mut segment, now);
        }
        if pushed {
            segment.flags |= flags::PSH;
        }
        if fast {
            self.untimed.sent = true;
        } else {
            self.rules.algorithm.on_departure(self, departure, now);
        }
        segment
    }

    /// What else a new segment may be: part of a piece, timed, sent on a duplicate ACK, markable.
    fn note_new(&mut self, segment: &mut Segment, now: Nanos) {
        if self.board.keeps_pieces() {
            self.drop_sent_pieces();
            if self.burst.at != now || self.burst.sent == 1 {
                self.board.begin_piece_with_last();
            }
        }
        self.rtt.time_segment(self.snd_nxt, now);
        if let Phase::Open { dup_acks: 1.. } = self.phase {
            self.limited_transmitted += 1;
        }
        self.marks.label(segment);
    }

    /// Sends segment `number` again, as `departure`.
    pub(in crate::tcp) fn retransmit(
        &mut self,
        departure: Departure,
        number: u64,
        now: Nanos,
    ) -> Segment {
        let idle = self.board.pipe() == 0;
        if self.board.keeps_pieces() {
            let room = self.room().left.max(1.0);
            self.board.cut_piece(number, room as u64, now);
        }
        let (seq, len) = self.board.span(number);
        let stamp = self.stamp(seq, now);
        self.board.retransmit(number, stamp);
        self.undo_state.note_retransmission(stamp);
        if self.rates.is_some() {
            self.note_departure(false, Some(number), idle, now);
        }
        self.counters.retransmissions += 1;
        let purpose = match self.phase {
            Phase::Loss { .. } => Purpose::TimeoutRetransmission,
            Phase::Open { .. } | Phase::Recovery(_) => Purpose::FastRetransmission,
        };
        let mut segment = self.segment_of(false, (seq, len), purpose, now);
        segment.ts_val = timestamp(stamp);
        self.rules.algorithm.on_departure(self, departure, now);
        segment
    }

    /// Departure timestamp of the segment from `seq` on, which is sent again now. Behind a burst of new data it is the later
    /// of the two, as RACK tells them apart by it.
    fn stamp(&self, seq: u64, now: Nanos) -> Nanos {
        match &self.pacer {
            Some(pacer) if self.rules.sends_bursts => pacer.stamp(seq, now),
            None if self.rules.sends_bursts && self.burst.at == now => now + 1,
            _ => now,
        }
    }

    /// Notes what segment `number` knows of the rate so far; `idle`: no other segment is in flight.
    #[inline(always)]
    fn note_departure(&mut self, fast: bool, number: Option<u64>, idle: bool, now: Nanos) {
        let (Some(rates), Some(number), Some(first)) =
            (&mut self.rates, number, self.board.first())
        else {
            return;
        };
        let outstanding = self.board.outstanding();
        let network = Network {
            outstanding,
            flight: if fast { outstanding } else { self.board.pipe() },
            lost_total: self.board.lost_total(),
        };
        rates.on_send(number, first, network, now);
        if idle && rates.is_app_limited() {
            self.controller.on_event(&ConnectionEvent::Restart(now));
            self.update_pacing();
        }
    }

    /// RFC 6675 §4, NextSeg rules (3) and (4): with nothing else to send, a hole that is not yet lost, then once the
    /// last segment.
    fn speculative_retransmission(&mut self, now: Nanos) -> Option<Segment> {
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

    /// A data segment, counted.
    #[inline(always)]
    fn segment_of(
        &mut self,
        fast: bool,
        (seq, len): (u64, u16),
        purpose: Purpose,
        now: Nanos,
    ) -> Segment {
        self.counters.segments_out += 1;
        self.last_sent_at = now;
        if let Some(pacer) = &mut self.pacer {
            pacer.on_send(seq, len.into(), self.counters.segments_out, now);
        }
        let mut segment = self.bare(now, flags::ACK);
        segment.seq = seq;
        segment.payload_bytes = len;
        segment.ip_bytes += len;
        segment.purpose = purpose;
        if !fast {
            self.marks.on_send();
            if let Phase::Recovery(recovery) = &mut self.phase {
                recovery.window.on_send();
            }
            segment.slow_start =
                self.params.delayed_ack_after_slow_start && self.controller.in_slow_start();
        }
        // Linux (`tcp_push`): the last segment of a write is pushed, whether it is full or not.
        if segment.end() == self.write_end && (self.is_pushed() || self.board.keeps_pieces()) {
            segment.flags |= flags::PSH;
            if !fast && self.fin_seq.is_some() {
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

    #[inline(always)]
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

    /// RFC 8985 §7.3: new data if the receiver's window has room, a segment that is not full too, else the last one again.
    fn tail_loss_probe(&mut self, now: Nanos) -> Option<Segment> {
        let sendable = self.sendable(now);
        self.rack.probe_due = false;
        let (mut segment, retransmission) = if let Some(len) = sendable {
            if !self.rules.algorithm.probe_may_leave(self, now) {
                return None;
            }
            let (departure, data) = (Departure::Probe(None), (len, self.burst_now()));
            (self.send_new(false, departure, data, now), false)
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

#[cfg(test)]
mod tests;

//! Retransmissions: whether a segment is one, its cause, and the recovery that it starts. [`super::lost_before`] names
//! those that were lost before it.

use super::{Sender, Sent};
use crate::cause::{
    ACK_CLOCK_NS, CaState, DUP_THRESH, F_RTO_ACKS, REO_WND_DIVISOR, RetransmissionContext,
    mechanism,
};
use crate::evidence::{End, Reason};
use crate::loss::{self, FlowDirection};
use crate::retransmissions::Retransmission;
use crate::rows::{Event, EventCause, EventKind, Vantage};
use crate::scoreboard::{Overlap, Range, Transmission};

/// The coarsest tick of Linux (`HZ` = 100).
const TICK_NS: i64 = 10_000_000;

impl Sender {
    /// Processes a segment that repeats octets or fills a gap. Returns whether it is a retransmission.
    pub(super) fn resend(
        &mut self,
        sent: &Sent,
        overlap: &Overlap,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) -> bool {
        let fills_loss = overlap.gap.is_some_and(|gap| {
            gap.first.record == sent.transmission.record
                || self.was_sent_later(&sent.transmission, &gap)
        });
        self.count_payload(sent, overlap.repeated_bytes);
        let octets = overlap.repeated_bytes + if fills_loss { overlap.filled_bytes } else { 0 };
        let entry = self.entry(sent, overlap, octets > 0);
        let not_captured = if octets > 0 && self.vantage != Vantage::Sender {
            let gap = overlap.gap.filter(|_| fills_loss);
            self.lost_before_capture(&entry, gap, flow, events)
        } else {
            Vec::new()
        };
        // The first of those of a hole that the sender knew of was fast.
        let known = overlap
            .gap
            .is_some_and(|gap| gap.first.record != sent.transmission.record);
        let timeouts_before = (not_captured.len() as u32).saturating_sub(u32::from(known));
        self.timeouts_before = timeouts_before.saturating_sub(self.progress.take_lost_again());
        let acknowledged = sent.end <= self.board.snd_una();
        let head = sent.start <= self.board.snd_una() && !acknowledged;
        let kept = self
            .board
            .resend(sent.start, sent.end, entry, fills_loss, &not_captured);
        if octets == 0 {
            self.on_reordering(sent, overlap, flow, events);
            return false;
        }
        self.count_retransmission(sent, octets);
        if !kept {
            self.report_acknowledged(&entry, &not_captured, flow, events);
        }
        if acknowledged {
            return true;
        }
        self.enter_recovery(&entry, flow, events);
        if head {
            // RFC 6298 §5.1, §5.5
            self.timer_restart_ns = sent.transmission.t_ns;
            self.loss_evidence_ns = None;
        }
        true
    }

    /// The entry of the log for `sent`, with its cause if it `repeats` octets.
    fn entry(&self, sent: &Sent, overlap: &Overlap, repeats: bool) -> Retransmission {
        let (cause, reason) = if repeats {
            self.retransmission_context(sent, overlap).cause()
        } else {
            (EventCause::Unknown, Reason::None)
        };
        Retransmission {
            transmission: sent.transmission,
            seq_start: sent.start,
            seq_end: sent.end,
            cause,
            reason,
            mechanism: mechanism(cause, reason, self.sack_in_use),
            primary: true,
            not_captured: false,
        }
    }

    /// Counts a retransmission of so many octets.
    fn count_retransmission(&mut self, sent: &Sent, octets: i64) {
        if sent.payload_bytes > 0 {
            let repeated = (octets as u64).min(u64::from(sent.payload_bytes));
            let size = sent
                .payload_bytes
                .div_ceil(u32::from(sent.segments_n.max(1)));
            self.row.retransmitted_segments += repeated.div_ceil(u64::from(size));
            self.row.retransmitted_bytes += repeated;
        }
    }

    /// Reports the retransmission `entry` of octets that had all been acknowledged, and those `lost` before it.
    fn report_acknowledged(
        &mut self,
        entry: &Retransmission,
        lost: &[Retransmission],
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        for earlier in lost {
            let copy = self.repeated.add(entry.seq_start);
            events.push(loss::missing_event(earlier, copy, flow));
        }
        self.repeated.add(entry.seq_start);
        let spurious = entry.cause != EventCause::Probe;
        let proof = if spurious {
            Reason::AlreadyAcknowledged
        } else {
            Reason::None
        };
        events.push(loss::retransmission_event(
            entry,
            Some(spurious),
            proof,
            flow,
        ));
    }

    /// Processes a segment that fills a gap and shows no sign of a retransmission.
    fn on_reordering(
        &mut self,
        sent: &Sent,
        overlap: &Overlap,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        if sent.payload_bytes > 0 {
            self.row.out_of_order_segments += u64::from(sent.segments_n);
        }
        let revealed_by = overlap.gap.map_or(0, |gap| gap.first.record);
        events.push(Event {
            record: Some(sent.transmission.record),
            seq_start: Some(sent.start),
            seq_end: Some(sent.end),
            ..flow.event(
                EventKind::Reordering,
                EventCause::Unknown,
                sent.transmission.t_ns,
                Reason::Reordered { revealed_by },
            )
        });
    }

    /// Whether a segment that fills `gap` was sent later than the segment above the gap.
    fn was_sent_later(&self, transmission: &Transmission, gap: &Range) -> bool {
        self.order
            .sent_later(transmission, &gap.first)
            .unwrap_or_else(|| {
                // Without timestamps and IDs: a retransmission comes at least an RTT later, a reordered segment
                // earlier. Where only a bound of the RTT is known, what is delayed by more than the largest reordering
                // window is lost to the sender, so that it retransmits it (RFC 8985 §6.2).
                let rtt_ns = self.path_srtt_ns();
                let least_ns = if self.is_rtt_bounded() {
                    rtt_ns / REO_WND_DIVISOR
                } else {
                    rtt_ns / 10 * 9
                };
                rtt_ns > 0 && transmission.t_ns - gap.first.t_ns >= least_ns
            })
    }

    /// The state of the sender when it sent the retransmission `sent`.
    fn retransmission_context(&self, sent: &Sent, overlap: &Overlap) -> RetransmissionContext {
        let now = sent.transmission.t_ns;
        // The sender received an ACK, and its response came back, this time after the ACK passed the capture point.
        let upstream_ns = self.upstream_rtt_ns();
        let (una, nxt) = (self.board.snd_una(), self.board.snd_nxt());
        let previous = overlap
            .range
            .or(overlap.gap)
            .map_or(Transmission::default(), |range| {
                self.board.last_transmission(&range)
            });
        let newest = self.newest_delivered.record;
        let later_delivered = (newest > previous.record).then_some(newest);
        let sacked = self.board.sacked();
        let head = sent.start <= una && sent.end > una;
        let retransmitted_before = overlap
            .range
            .is_some_and(|range| range.retransmissions.is_some());
        RetransmissionContext {
            ca_state: self.ca_state,
            spurious_rto_point: self.spurious_rto_point,
            head,
            tail: sent.end >= nxt,
            retransmitted_before,
            skips: sent.start > una && self.board.is_sent_once(sent.start - 1),
            // Neither a SYN nor a FIN.
            tiny: sent.payload_bytes <= 1 && sent.end - sent.start == i64::from(sent.payload_bytes),
            acknowledged: sent.end <= una,
            zero_window: self.snd_wnd_bytes == Some(0),
            dup_acks: self.dup_acks.max(self.waiting_segments()),
            sacked_bytes: if sacked.highest().is_some_and(|highest| highest > sent.start) {
                sacked.octets()
            } else {
                0
            },
            later_delivered,
            lost_after_timeout: retransmitted_before
                && later_delivered.is_some()
                && (self.sent_since_timeout(&previous) || self.left_out(sent, &previous)),
            sack: self.sack_in_use,
            since_timer_restart_ns: now - self.timer_restart_ns - upstream_ns,
            since_last_transmission_ns: now - previous.t_ns,
            since_loss_evidence_ns: self.loss_evidence_ns.map(|since| now - since - upstream_ns),
            waits_for_reordering: head && self.waits_for_reordering(now, previous.t_ns),
            since_send_ns: now - self.last_send_ns,
            paced_ns: self.paced_ns,
            since_ack_ns: if self.vantage == Vantage::Sender {
                now - self.last_ack_ns
            } else {
                i64::MAX
            },
            srtt_ns: self.path_srtt_ns(),
            rto_ns: self.rtt.rto_ns().saturating_add(upstream_ns),
            min_rto_ns: self.rtt.min_rto_ns().saturating_add(upstream_ns),
        }
    }

    /// Whether the sender recovers from a timeout and sent this transmission since.
    fn sent_since_timeout(&self, transmission: &Transmission) -> bool {
        matches!(self.ca_state, CaState::Loss { record, .. } if record <= transmission.record)
    }

    /// Whether the sender recovers from a timeout and did not take `previous`, the last transmission of the octets of
    /// `sent`, for lost then: it was sent a round trip before the timeout at most, and the sender has retransmitted higher
    /// octets since (Linux: `tcp_timeout_mark_lost`). A sender without RACK fills the holes in order.
    fn left_out(&self, sent: &Sent, previous: &Transmission) -> bool {
        let CaState::Loss { high_rxt, .. } = self.ca_state else {
            return false;
        };
        sent.start < high_rxt && self.board.is_retransmission_out(previous)
    }

    /// Whether the reordering timer may have sent at `now_ns` what no ACK triggered, as a capture at the sender shows.
    /// It was last sent at `sent_ns`; the last ACK would have triggered it if its time had been up by then.
    fn waits_for_reordering(&self, now_ns: i64, sent_ns: i64) -> bool {
        self.vantage == Vantage::Sender
            && self.sack_in_use
            && self.loss_evidence_ns.is_some()
            && now_ns - self.last_ack_ns > ACK_CLOCK_NS
            && sent_ns.saturating_add(self.reordering_age_ns()) >= self.last_ack_ns
            && now_ns <= self.reordering_ends_ns()
    }

    /// When the reordering timer expires at the latest (RFC 8985 §6.2, step 5): the youngest segment that was sent
    /// before a delivered one is as old then as RACK.rtt and the reordering window.
    ///
    /// Deviation: the window that grows with DSACKs, up to SRTT (step 4), is not modelled. A retransmission timer that
    /// the same ACK restarted expires later than that.
    ///
    /// Deviation: no standard limits how late a timer may be. That of Linux starts with two ticks, of 10 ms at most,
    /// and its timer wheel rounds up by an eighth of the time at most (kernel/time/timer.c).
    fn reordering_ends_ns(&self) -> i64 {
        let newest = self.newest_delivered.record;
        let lost = self.board.sent_before(newest).map(|last| last.t_ns);
        let due_ns = lost
            .max()
            .unwrap_or(0)
            .saturating_add(self.reordering_age_ns());
        let late_ns = due_ns.saturating_sub(self.last_ack_ns).max(0) / 8 + 2 * TICK_NS;
        due_ns.saturating_add(late_ns)
    }

    /// How old a segment is when it is lost, if one that was sent later is delivered: RACK.rtt and the reordering
    /// window.
    fn reordering_age_ns(&self) -> i64 {
        let window_ns = self.rtt.min_ns().unwrap_or(0) / REO_WND_DIVISOR;
        self.rack_rtt_ns.saturating_add(window_ns)
    }

    /// Without SACK, the segments that wait above the oldest hole after an undo, as duplicate ACKs have shown.
    fn waiting_segments(&self) -> u32 {
        if self.sack_in_use || self.ca_state != CaState::Open {
            return 0;
        }
        let segments_n = self.dup_acked_bytes / self.board.smss_bytes().max(1);
        u32::try_from(segments_n).unwrap_or(u32::MAX)
    }

    /// The time up to which what was sent is lost when the timer expires at `now_ns`: all before, or, with SACK, what
    /// was sent more than a round trip and the reordering window ago (RFC 8985 §6.3).
    fn lost_at_timeout_ns(&self, now_ns: i64) -> i64 {
        let window_ns = self.path_min_rtt_ns() / REO_WND_DIVISOR;
        let wait_ns = if self.sack_in_use {
            self.path_srtt_ns().saturating_add(window_ns).max(1)
        } else {
            1
        };
        now_ns.saturating_sub(wait_ns)
    }

    /// Updates the recovery state after a retransmission.
    fn enter_recovery(
        &mut self,
        entry: &Retransmission,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        let segments_n = self.board.segments_in(entry.seq_end - entry.seq_start);
        let open = self.ca_state == CaState::Open;
        let timeout = matches!(entry.reason, Reason::TimerExpired { .. });
        match entry.cause {
            EventCause::Rto if timeout => {
                if open {
                    self.begin_undo(entry.seq_end - entry.seq_start);
                }
                self.enter_loss(entry, flow, events);
            }
            EventCause::Fast if !matches!(self.ca_state, CaState::Recovery { .. }) => {
                self.begin_recovery(entry.transmission.t_ns, entry.seq_end - entry.seq_start);
            }
            _ => {}
        }
        if let CaState::Recovery {
            start_ns,
            record,
            seq_start,
            retransmissions,
            ..
        } = &mut self.ca_state
        {
            if *retransmissions == 0 {
                self.row.recoveries += 1;
                *start_ns = entry.transmission.t_ns;
                *record = entry.transmission.record;
                *seq_start = entry.seq_start;
                self.retransmit_ts = entry.transmission.ts_val;
            }
            *retransmissions += 1;
        }
        if let CaState::Loss { high_rxt, .. } = &mut self.ca_state {
            *high_rxt = entry.seq_end.max(*high_rxt);
        }
        self.undo.on_retransmission(segments_n as u32);
    }

    /// Upstream of the capture point: begins recovery at `now_ns` if as many segments as DupThresh are SACKed above the
    /// oldest hole (RFC 6675 §5). Its first retransmission may have been lost: the first one captured takes its place.
    pub fn begin_recovery_unseen(&mut self, now_ns: i64) {
        let dup_thresh_bytes = i64::from(DUP_THRESH) * self.board.smss_bytes();
        let sacked_bytes = self.board.sacked().octets();
        if self.ca_state == CaState::Open && sacked_bytes > 0 && sacked_bytes >= dup_thresh_bytes {
            self.begin_recovery(now_ns, 0);
        }
    }

    /// Begins fast recovery at `now_ns`, with a retransmission of so many octets, as in [`Self::begin_undo`].
    /// It counts from its first captured retransmission on: until then, it may be reordering.
    fn begin_recovery(&mut self, now_ns: i64, octets: i64) {
        self.begin_undo(octets);
        self.recovery_point = self.board.snd_nxt();
        self.ca_state = CaState::Recovery {
            start_ns: now_ns,
            record: 0,
            seq_start: self.board.snd_una(),
            recovery_point: self.board.snd_nxt(),
            retransmissions: 0,
        };
    }

    /// Starts to count the retransmissions that DSACKs may report. The last one, of so many octets, which the board has
    /// already, is counted later.
    fn begin_undo(&mut self, octets: i64) {
        let before = (self.board.retrans_out_bytes() - octets).max(0);
        let outstanding = self.board.segments_in(before) as u32;
        self.undo.begin(self.board.snd_una(), outstanding);
    }

    /// Processes a timeout: `entry` is what it retransmitted.
    fn enter_loss(&mut self, entry: &Retransmission, flow: FlowDirection, events: &mut Vec<Event>) {
        let now = entry.transmission.t_ns;
        let recovery_point = self.board.snd_nxt();
        // RFC 5682 §3.1 step 1: F-RTO is not used if fast recovery was in progress, which begins with the evidence of a
        // loss, even if a full window holds the retransmission. Evidence that may be reordering leaves the segment to
        // another timer: see `waits_for_reordering`. As in Linux, a repeated timeout starts F-RTO again, and another one
        // during the recovery does not. Without SACK, the recovery lasts until more than the recovery point is
        // acknowledged (RFC 6582 §4).
        let held = !self.sack_in_use && self.board.snd_una() == self.recovery_point;
        let in_recovery = match self.ca_state {
            CaState::Recovery { .. } => true,
            CaState::Open => held || (self.sack_in_use && self.loss_evidence_ns.is_some()),
            CaState::Loss { seq_start, .. } => seq_start != entry.seq_start,
        };
        let f_rto_acks = if in_recovery { 0 } else { F_RTO_ACKS };
        let evidence = self.board.sacked().octets() > 0 || self.dup_acks > 0;
        let may_be_recovery = self.ca_state == CaState::Open && evidence;
        self.exit_recovery(now, End::BrokenOff, flow, events);
        self.row.rtos += 1;
        (self.timeout_point, self.recovery_point) = (recovery_point, recovery_point);
        self.board
            .lose_retransmissions(self.lost_at_timeout_ns(now));
        self.ca_state = CaState::Loss {
            recovery_point,
            f_rto_acks,
            record: entry.transmission.record,
            seq_start: entry.seq_start,
            high_rxt: entry.seq_end,
        };
        self.retransmit_ts = entry.transmission.ts_val;
        let timeout = Event {
            record: Some(entry.transmission.record),
            seq_start: Some(entry.seq_start),
            seq_end: Some(entry.seq_end),
            ..flow.event(EventKind::Rto, EventCause::Rto, now, entry.reason)
        };
        if may_be_recovery && self.vantage == Vantage::Sender {
            self.pending_rto = Some(timeout);
        } else {
            events.push(timeout);
        }
    }

    /// Processes a segment after what appeared to be a timeout, before any ACK, or without SACK any ACK of new data.
    /// RFC 5681 §3.1: after a timeout, the window is one segment. If the sender sends a second one, the reordering
    /// timer started loss recovery (RFC 8985 §6.3), pacing delayed it, or more duplicate ACKs than usual did, after
    /// reordering.
    pub(super) fn revise_timeout(&mut self, sent: &Sent) {
        let second = |timeout: &mut Event| {
            let wait_ns = sent.transmission.t_ns - timeout.t_ns;
            timeout.seq_start != Some(sent.start) && wait_ns < self.rtt.min_rto_ns()
        };
        let (Some(timeout), CaState::Loss { recovery_point, .. }) =
            (self.pending_rto.take_if(second), self.ca_state)
        else {
            return;
        };
        let (record, seq_start) = (timeout.record.unwrap_or(0), timeout.seq_start.unwrap_or(0));
        let reason = Reason::WindowOpen {
            record: sent.transmission.record,
        };
        let mechanism = mechanism(EventCause::Fast, reason, self.sack_in_use);
        self.board.revise(seq_start, record, |entry| {
            (entry.cause, entry.reason, entry.mechanism) = (EventCause::Fast, reason, mechanism);
        });
        self.row.rtos -= 1;
        self.row.recoveries += 1;
        self.ca_state = CaState::Recovery {
            start_ns: timeout.t_ns,
            record,
            seq_start,
            recovery_point,
            retransmissions: 1,
        };
    }

    /// Returns to the open state at `now_ns`.
    pub(super) fn exit_recovery(
        &mut self,
        now_ns: i64,
        end: End,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        if let CaState::Recovery {
            start_ns,
            record,
            seq_start,
            recovery_point,
            retransmissions,
        } = self.ca_state
        {
            let reason = Reason::Ended {
                recovery_point,
                retransmissions,
                end,
            };
            events.push(Event {
                end_ns: Some(now_ns),
                record: Some(record),
                seq_start: Some(seq_start),
                seq_end: Some(recovery_point),
                ..flow.event(EventKind::Recovery, EventCause::Fast, start_ns, reason)
            });
            if retransmissions == 0 && end == End::Acknowledged {
                // What was SACKed had overtaken the oldest segment. The sender retransmitted nothing.
                if let Some(cwnd) = &mut self.cwnd {
                    cwnd.cancel_recovery();
                }
            } else if retransmissions == 0 {
                // Its retransmissions were lost unseen.
                self.row.recoveries += 1;
            }
        }
        if end == End::Undone {
            self.recovery_point = i64::MIN;
        }
        self.ca_state = CaState::Open;
        self.retransmit_ts = None;
        self.dup_acked_bytes = 0;
    }
}

//! The state of one direction of a connection as a data sender: scoreboard, RTT, recovery state and counters.
//!
//! [`ack`] is the ACK that it receives, [`delivery`] what that delivers, [`retransmission`] processes retransmissions,
//! [`late_original`] what they overtook,
//! [`lost_before`], [`missing`], [`in_recovery`], [`silence`], [`go_back_n`] and [`empty_segment`] those lost before
//! the capture point, and [`cwnd`] feeds the estimator of the congestion window.

mod ack;
mod ack_ids;
mod after_timeout;
mod cwnd;
mod delivery;
mod empty_segment;
mod go_back_n;
mod in_recovery;
mod late_original;
mod lost_before;
mod missing;
mod repairs;
mod retransmission;
mod silence;
mod undo;

use crate::cause::{ACK_CLOCK_NS, CaState, REO_WND_DIVISOR};
use crate::cwnd::CwndEstimator;
use crate::evidence::{End, Reason};
use crate::jump::QueuedSegments;
use crate::loss::{self, FlowDirection, LossDetector, Path};
use crate::missing::MissingPackets;
use crate::ordering::SendOrder;
use crate::passes::Passes;
use crate::rows::{DirectionRow, Event, Vantage};
use crate::rtt::RttEstimator;
use crate::scoreboard::{Delivery, Overlap, Scoreboard, Transmission};
use crate::upstream_rtt::UpstreamRtt;

pub use ack::{AckNote, ReceivedAck};
pub use empty_segment::EmptySegment;

/// A segment that occupies sequence space.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// First position.
    pub start: i64,
    /// One past the last position, including SYN and FIN.
    pub end: i64,
    /// Payload length.
    pub payload_bytes: u32,
    /// Segments that the record stands for.
    pub segments_n: u16,
    /// Payload of a full segment with the options of these.
    pub piece_bytes: u32,
    /// Its transmission.
    pub transmission: Transmission,
}

/// The state of one direction.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Sender {
    /// Scoreboard.
    pub board: Scoreboard,
    /// RTT from the capture point to the receiver.
    pub rtt: RttEstimator,
    /// RTT from the capture point to the sender, unless the capture point is at the sender.
    pub upstream: UpstreamRtt,
    /// RTT of the handshake.
    pub handshake_rtt_ns: Option<i64>,
    /// RTT of the whole path as the holes show that were filled.
    repairs: repairs::Repairs,
    /// Capture point, relative to this direction.
    pub vantage: Vantage,
    /// Estimator of the congestion window, if the capture point is at the sender.
    pub cwnd: Option<Box<CwndEstimator>>,
    /// The capture point is downstream: see [`crate::remote`].
    pub remote: bool,
    /// The other end sends no data, so that this end sends no ACKs.
    pub one_way: bool,
    /// Columns of `flows`.
    pub row: DirectionRow,
    flight_max_bytes: i64,
    ca_state: CaState,
    /// The event of a timeout that may turn out to be loss recovery, until the next ACK; without SACK, until the next
    /// ACK of new data.
    pending_rto: Option<Event>,
    /// Recovery point of a spurious timeout, until it is acknowledged.
    spurious_rto_point: Option<i64>,
    undo: undo::Undo,
    /// Timestamp of the first retransmission of the recovery (RFC 3522: RetransmitTS).
    retransmit_ts: Option<u32>,
    /// Whether the IPv4 IDs show the order of sending.
    pub order: SendOrder,
    losses: LossDetector,
    snd_wnd_bytes: Option<i64>,
    last_window: Option<u16>,
    sack_in_use: bool,
    /// Consecutive duplicate ACKs, and their total.
    dup_acks: u32,
    dup_acks_in: u64,
    /// Time of the one that reached DupThresh.
    dup_thresh_ns: i64,
    /// Octets that left the network according to duplicate ACKs without SACK.
    dup_acked_bytes: i64,
    queued: QueuedSegments,
    passes: Passes,
    repeated: go_back_n::Repeated,
    /// First octet and end of the last retransmission, if no new data came after it.
    last_resent: Option<(i64, i64)>,
    /// Time of the last retransmission captured.
    last_resent_ns: i64,
    skipped: go_back_n::Skipped,
    progress: missing::Progress,
    /// Retransmissions of the octets of the last one that were lost before it, each sent by a timeout.
    pub timeouts_before: u32,
    /// Packets of this end that are missing.
    pub missing: MissingPackets,
    /// Octets that were acknowledged since the last segment and not captured: the capture lost them.
    acked_unseen_bytes: i64,
    /// Segments that were shorter than the SMSS.
    short_segments: u64,
    fin_seq: Option<i64>,
    /// The last sent transmission that was delivered (RFC 8985: RACK.xmit_ts).
    newest_delivered: Transmission,
    /// RTT of what the last ACK delivered (RFC 8985: RACK.rtt).
    ///
    /// Deviation: as in Linux, it is that of what the ACK acknowledges cumulatively, if there is any, although a SACK
    /// block may report what was sent later.
    rack_rtt_ns: i64,
    /// Recovery point of the last timeout.
    timeout_point: i64,
    /// Recovery point of the last recovery, also from a timeout, unless it was undone.
    recovery_point: i64,
    /// Without SACK, where a duplicate ACK after the new data of F-RTO lets the sender begin to repeat segments.
    f_rto_ended_at: Option<i64>,
    /// Time of the last restart of the retransmission timer.
    timer_restart_ns: i64,
    /// Time when a segment sent after the oldest outstanding one was delivered.
    loss_evidence_ns: Option<i64>,
    last_ack_ns: i64,
    last_ack_id: Option<u16>,
    ack_ids: ack_ids::AckIds,
    last_send_ns: i64,
    /// Time for which the last segment waited without an ACK, as where the pacer holds it back; 0 if it did not, or for
    /// as long as for a timer.
    paced_ns: i64,
}

impl Sender {
    fn path(&self) -> Path {
        Path {
            min_rtt_ns: self.rtt.min_ns(),
            shortest_rtt_ns: self.rtt.shortest_ns(),
            at_receiver: self.vantage == Vantage::Receiver,
            acknowledged: self.board.acknowledged(),
        }
    }

    /// FlightSize; `None` if nothing of this direction was captured, or nothing of the payload that was acknowledged.
    #[inline]
    pub fn flight_bytes(&self) -> Option<i64> {
        let seen =
            self.row.data_segments > 0 || (self.row.segments > 0 && self.row.acked_bytes == 0);
        seen.then(|| self.board.flight_bytes())
    }

    /// RTT from the capture point to the sender.
    fn upstream_rtt_ns(&self) -> i64 {
        if self.vantage == Vantage::Sender {
            return 0;
        }
        let repaired = || Some(self.repairs.rtt_ns()? - self.rtt.srtt_ns().unwrap_or(0));
        let measured = self.upstream.rtt.srtt_ns().or_else(repaired);
        measured
            .unwrap_or_else(|| self.handshake_upstream_ns())
            .max(0)
    }

    /// The RTT from the capture point to the sender, as the handshake shows.
    fn handshake_upstream_ns(&self) -> i64 {
        let mut path_ns = self.handshake_rtt_ns.unwrap_or(0);
        if let Some(bound_ns) = self
            .repairs
            .bound_ns()
            .filter(|_| self.repairs.handshake_is_late())
        {
            path_ns = path_ns.min(bound_ns);
        }
        (path_ns - self.rtt.min_ns().unwrap_or(0)).max(0)
    }

    /// SRTT of the whole path.
    fn path_srtt_ns(&self) -> i64 {
        self.rtt.srtt_ns().unwrap_or(0) + self.upstream_rtt_ns()
    }

    /// The time that a round trip of the whole path takes now at least: what an ACK triggers cannot come sooner.
    ///
    /// Deviation: no standard says by how much a round trip may be shorter than SRTT. The reordering window is taken,
    /// as a quarter of SRTT: where a round trip varies by more, RACK takes segments for lost that arrive (RFC 8985
    /// §6.2). The minimum RTT is no bound, as it may be that of another path, before a handover.
    fn shortest_round_trip_ns(&self) -> i64 {
        let srtt_ns = self.path_srtt_ns();
        srtt_ns - srtt_ns / REO_WND_DIVISOR
    }

    /// Minimum RTT of the whole path.
    fn path_min_rtt_ns(&self) -> i64 {
        self.rtt.min_ns().unwrap_or(0) + self.upstream_min_rtt_ns()
    }

    /// Minimum RTT from the capture point to the sender.
    fn upstream_min_rtt_ns(&self) -> i64 {
        let measured = self.upstream.rtt.min_ns();
        measured.unwrap_or_else(|| self.handshake_upstream_ns())
    }

    /// Processes a segment that occupies sequence space. Returns whether it is a retransmission.
    pub fn send(
        &mut self,
        sent: &Sent,
        fin: bool,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) -> bool {
        let now = sent.transmission.t_ns;
        if fin {
            self.fin_seq = Some(sent.end - 1);
        }
        let below_smss = i64::from(sent.payload_bytes) < self.board.smss_bytes();
        self.short_segments += u64::from(below_smss);
        if self.cwnd.is_some() {
            let departure = self.departure(sent, fin);
            self.sample_cwnd(flow.flow_id, |cwnd| cwnd.before_segment(&departure));
        }
        let idle = self.board.flight_bytes() == 0;
        self.revise_timeout(sent);
        self.explain_unseen();
        let probes = sent.payload_bytes == 1 && self.snd_wnd_bytes == Some(0);
        if !probes {
            self.end_window_probes(sent.start, flow, events);
        }
        self.retract_end_of_flight(sent);
        self.observe_id(sent);
        self.decide_skipped(now, (sent.start, sent.end), flow, events);
        self.lost_in_go_back_n(sent, flow, events);
        let overlap = self.overlap_of(sent);
        if idle && overlap.gap.is_none() {
            self.timer_restart_ns = now;
        }
        let retransmission = if overlap.is_empty() {
            let gap_start = self.board.snd_nxt();
            self.board.send_new(sent.start, sent.end, sent.transmission);
            self.end_account(sent, gap_start, flow, events);
            if probes {
                self.board.mark_window_probe();
            }
            self.last_resent = None;
            self.count_payload(sent, 0);
            false
        } else if self.board.is_late(sent.start, sent.end) {
            self.count_payload(sent, 0);
            false
        } else if self.board.is_stored_twice(sent.start, &sent.transmission) {
            return false;
        } else if self.is_late_original(sent, &overlap, flow, events) {
            false
        } else {
            let retransmission = self.resend(sent, &overlap, flow, events);
            self.correct_end_of_flight(sent, fin, overlap.gap);
            retransmission
        };
        self.discard_excess(flow, events);
        self.order.observe(sent.transmission.ip_id);
        self.observe_pacing(now);
        self.last_send_ns = now;
        self.flight_max_bytes = self.flight_max_bytes.max(self.board.flight_bytes());
        self.observe_cwnd(now);
        retransmission
    }

    /// Notes how long the sender waited before a segment that it sends at `now_ns`, if the pacer may have held it back:
    /// no ACK triggered it, and a timer would have waited for longer than a round trip. Segments of one burst count as
    /// one. Writes of the application look the same, and so does a reordering timer.
    #[inline]
    fn observe_pacing(&mut self, now_ns: i64) {
        let waited_ns = now_ns - self.last_send_ns;
        if now_ns - self.last_ack_ns <= ACK_CLOCK_NS {
            self.paced_ns = 0;
        } else if waited_ns > ACK_CLOCK_NS {
            let may_be_paced = self
                .rtt
                .srtt_ns()
                .is_some_and(|srtt_ns| waited_ns < srtt_ns);
            self.paced_ns = if may_be_paced { waited_ns } else { 0 };
        }
    }

    /// What of `sent` was sent before. If it seems new and was sent before nevertheless, a gap is opened for it.
    #[inline]
    fn overlap_of(&mut self, sent: &Sent) -> Overlap {
        let overlap = self.board.overlap(sent.start, sent.end);
        if !overlap.is_empty() || !self.was_sent_before(sent) {
            return overlap;
        }
        let earlier = Transmission {
            t_ns: self.last_send_ns,
            ..sent.transmission
        };
        self.board.open_gap(sent.start, sent.end, earlier);
        self.board.overlap(sent.start, sent.end)
    }

    /// Explains missing packets by octets that were acknowledged: the capture lost them, not the network.
    fn explain_unseen(&mut self) {
        let octets = std::mem::take(&mut self.acked_unseen_bytes);
        if octets > 0 {
            let packets = octets
                .unsigned_abs()
                .div_ceil(self.board.smss_bytes().max(1).unsigned_abs());
            self.missing
                .explain(u32::try_from(packets).unwrap_or(u32::MAX));
        }
    }

    /// Takes back the octet of zero-window probes that the receiver refused: the segment at `start` sends it as new
    /// data.
    fn end_window_probes(&mut self, start: i64, flow: FlowDirection, events: &mut Vec<Event>) {
        let Some(probe) = self.board.take_refused_probe(start) else {
            return;
        };
        self.row.unique_bytes -= 1;
        let again: Vec<_> = self
            .board
            .log()
            .iter(probe.retransmissions)
            .copied()
            .collect();
        for entry in again.iter().rev() {
            events.push(loss::retransmission_event(
                entry,
                Some(false),
                Reason::None,
                flow,
            ));
        }
        self.board.log_mut().free(probe.retransmissions);
    }

    /// Discards ranges of the scoreboard above its limit.
    fn discard_excess(&mut self, flow: FlowDirection, events: &mut Vec<Event>) {
        while let Some(range) = self.board.pop_excess() {
            if range.retransmissions.is_some() {
                loss::decide_unacknowledged(
                    &range,
                    self.board.log(),
                    self.newest_arrived(),
                    self.path(),
                    flow,
                    events,
                );
                self.board.log_mut().free(range.retransmissions);
            }
        }
    }

    /// Counts payload that has no place in the sequence space: of a RST (RFC 9293 §3.5.3), or far outside the window.
    pub fn count_outside(&mut self, payload_bytes: u32, segments_n: u16) {
        if payload_bytes > 0 {
            self.row.data_segments += u64::from(segments_n);
            self.row.payload_bytes += u64::from(payload_bytes);
            self.row.unique_bytes += u64::from(payload_bytes);
            self.row.max_segment_bytes = self.row.max_segment_bytes.max(payload_bytes);
        }
    }

    fn count_payload(&mut self, sent: &Sent, repeated_bytes: i64) {
        if sent.payload_bytes > 0 {
            let payload = u64::from(sent.payload_bytes);
            self.row.data_segments += u64::from(sent.segments_n);
            self.row.payload_bytes += payload;
            self.row.unique_bytes += payload - (repeated_bytes as u64).min(payload);
            self.row.max_segment_bytes = self.row.max_segment_bytes.max(sent.payload_bytes);
            self.board.observe_payload(i64::from(sent.payload_bytes));
            self.board.unseen.observe(sent.start);
        }
    }

    /// Processes an ACK.
    pub fn acknowledge(
        &mut self,
        ack: &ReceivedAck<'_>,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) -> AckNote {
        self.sack_in_use = ack.sack_in_use;
        let before = self.board.snd_una();
        let advances = ack.seg_ack > before;
        if advances || ack.sack_in_use {
            events.extend(self.pending_rto.take());
        }
        self.sample_cwnd(flow.flow_id, |cwnd| cwnd.before_ack(ack.t_ns, advances));
        let outstanding = self.board.started() && self.board.snd_nxt() > before;
        if self.board.started() {
            self.acked_unseen_bytes += (ack.seg_ack - self.board.snd_nxt()).clamp(0, MAX_UNSEEN);
        }
        let dsack = ack.dsack_block();
        self.ack_ids.observe_at(ack.ip_id, ack.t_ns);
        // Fast path: it repeats what is known, as the ACKs of data segments do where data flow in one direction.
        let repeats = !advances && self.board.acknowledged() && ack.sack.is_empty();
        let mut delivery = if repeats {
            Delivery::default()
        } else {
            self.update_scoreboard(ack, dsack.is_some())
        };
        // A packet that the network duplicated reports nothing new.
        let duplicated = ack.ip_id.is_some_and(|id| id != 0) && ack.ip_id == self.last_ack_id;
        self.last_ack_id = ack.ip_id;
        if let Some(octets) = dsack.filter(|_| !duplicated) {
            self.on_dsack(ack, octets);
        }
        let again = self.on_sack_again(ack, dsack.is_some());
        let duplicate = again || dsack.is_some();
        if delivery.acked_bytes > 0 && matches!(self.ca_state, CaState::Loss { .. }) {
            delivery.undo |= self.undo.is_shown();
        }
        if !duplicated && !duplicate && ack.seg_ack == before && delivery.is_empty() {
            self.on_empty_ack(ack);
        }
        let note = AckNote {
            dsack: dsack.is_some(),
            dup_ack: self.is_dup_ack(ack, &delivery, outstanding && ack.seg_ack == before),
            rtt_ns: self.sample_rtt(ack.t_ns, &delivery),
        };
        if note.dup_ack {
            self.on_dup_ack(ack.t_ns);
        }
        if delivery.acked_bytes > 0 {
            self.on_new_ack(ack, before, &delivery, flow, events);
        } else if delivery.undo {
            self.undo_timeout(ack.t_ns, flow, events);
        }
        self.update_loss_evidence(ack.t_ns, delivery.acked_bytes > 0);
        self.last_window = Some(ack.window);
        self.snd_wnd_bytes = ack.wnd_bytes;
        self.last_ack_ns = ack.t_ns;
        if self.losses.is_due(ack.t_ns) {
            self.decide_losses(ack.t_ns, flow, events);
        }
        self.observe_cwnd(ack.t_ns);
        note
    }

    /// Takes the decisions on losses that are due at `now_ns`.
    fn decide_losses(&mut self, now_ns: i64, flow: FlowDirection, events: &mut Vec<Event>) {
        let known = (self.path(), self.ack_ids.skipped());
        let log = self.board.log_mut();
        self.losses.decide(now_ns, log, known, flow, events);
    }

    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.board.release_memory();
        self.upstream.release_memory();
        self.losses.release_memory();
        self.passes.release_memory();
        self.missing.release_memory();
        if let Some(cwnd) = &mut self.cwnd {
            cwnd.release_memory();
        }
    }

    /// Processes the acknowledgement of new data.
    fn on_new_ack(
        &mut self,
        ack: &ReceivedAck<'_>,
        before: i64,
        delivery: &Delivery,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        self.dup_acks = 0;
        self.f_rto_ended_at = None;
        // RFC 6582 §3.2 step 3: a partial ACK acknowledges the oldest segment and segments that had left before.
        let left_before = (delivery.acked_bytes - self.board.smss_bytes()).max(0);
        self.dup_acked_bytes = match self.ca_state {
            CaState::Recovery { .. } => (self.dup_acked_bytes - left_before).max(0),
            CaState::Open | CaState::Loss { .. } => 0,
        };
        if self.board.flight_bytes() == 0 {
            self.queued.end_flight();
        }
        self.passes.acknowledge(self.board.snd_una());
        // RFC 6298 §5.3
        self.timer_restart_ns = ack.t_ns;
        let una = self.board.snd_una();
        let syn = i64::from(before <= 0 && una > 0);
        let fin = i64::from(self.fin_seq.is_some_and(|fin| before <= fin && fin < una));
        self.row.acked_bytes += (delivery.acked_bytes - syn - fin).max(0) as u64;
        let ends = match self.ca_state {
            CaState::Open => false,
            CaState::Recovery { recovery_point, .. } | CaState::Loss { recovery_point, .. } => {
                una >= recovery_point
            }
        };
        if delivery.undo {
            self.note_spurious_timeout();
        }
        self.spurious_rto_point = self.spurious_rto_point.filter(|&point| una < point);
        if ends || delivery.undo {
            let end = if ends { End::Acknowledged } else { End::Undone };
            let left_bytes = self.dup_acked_bytes;
            self.exit_recovery(ack.t_ns, end, flow, events);
            if !ends && !ack.sack_in_use {
                // The segments counted by duplicate ACKs still wait for the hole. Enough of them start another
                // recovery (Linux: `sacked_out`).
                self.dup_acked_bytes = left_bytes;
            }
        }
    }

    /// The last sent transmission that arrived. With SACK, it is known to have; what the sender takes for delivered may be
    /// a duplicate on its way.
    fn newest_arrived(&self) -> Transmission {
        if self.sack_in_use {
            self.losses.newest_known()
        } else {
            self.newest_delivered
        }
    }

    /// Updates the time since when the oldest outstanding segment appears lost.
    fn update_loss_evidence(&mut self, now_ns: i64, advances: bool) {
        let appears_lost = self
            .board
            .head_transmission()
            .is_some_and(|head| self.newest_delivered.record > head.record);
        if !appears_lost {
            self.loss_evidence_ns = None;
        } else if advances || self.loss_evidence_ns.is_none() {
            self.loss_evidence_ns = Some(now_ns);
        }
    }

    /// Processes the end of the connection: decides on everything that is open.
    pub fn finish(&mut self, now_ns: i64, flow: FlowDirection, events: &mut Vec<Event>) {
        events.extend(self.pending_rto.take());
        let path = self.path();
        self.decide_losses(loss::END, flow, events);
        self.decide_skipped(now_ns, (i64::MIN, i64::MIN), flow, events);
        self.exit_recovery(now_ns, End::BrokenOff, flow, events);
        let newest = self.newest_arrived();
        let mut max_losses = self.max_open_losses();
        for range in self.board.outstanding() {
            // Without SACK, an ACK says nothing about the segments above the first hole.
            let known = self.sack_in_use || range.start <= self.board.snd_una();
            let newest = if known {
                newest
            } else {
                Transmission::default()
            };
            loss::decide_unacknowledged(range, self.board.log(), newest, path, flow, events);
            // What was repeated was given up by the sender.
            let repeated = !range.captured() && range.retransmissions.is_some();
            if path.acknowledged && (repeated || self.is_lost_gap(range, now_ns)) {
                let smss = self.board.smss_bytes();
                let named = loss::decide_open_gap(range, smss, max_losses, flow, events);
                max_losses = (max_losses - named).max(0);
            }
        }
        // Without an ACK in the capture, nothing shows what is still in flight.
        let known = self.board.acknowledged() && self.flight_bytes().is_some();
        self.row.flight_max_bytes = known.then_some(self.flight_max_bytes);
        self.row.not_captured_bytes = self.board.unseen.octets().map(|octets| octets as u64);
        self.row.rtt_samples = self.rtt.samples();
        self.row.rtt_min_ns = self.rtt.min_ns();
        self.row.rtt_mean_ns = self.rtt.mean_ns();
        self.row.rtt_max_ns = self.rtt.max_ns();
    }
}

/// Maximum number of octets that one ACK shows to be unseen: the largest window (RFC 7323 §2.3).
const MAX_UNSEEN: i64 = 1 << 30;

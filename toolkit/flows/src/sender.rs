//! One direction of a connection as its data sender: what it sent, what came back, what it repaired.
//!
//! Brings scoreboard, round-trip times, causes and verdicts together; knows no addresses and no other connection.
//! Read [`crate::scoreboard`] first.

use crate::cause::{Episode, Situation};
use crate::evidence::Reason;
use crate::history::Copy;
use crate::inference::{Inference, State, View};
use crate::ordering::SendOrder;
use crate::rows::{DirectionRow, Edges, Event, EventCause, EventKind, Sample, Source, Vantage};
use crate::rtt::RttEstimator;
use crate::scoreboard::{Delivery, Overlap, Range, Scoreboard, Transmission};
use crate::verdict::{self, Path, Verdicts, Whose};

/// A segment that this direction sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// First position it occupies.
    pub start: i64,
    /// One past the last (SYN and FIN included).
    pub end: i64,
    /// Payload.
    pub payload_bytes: u32,
    /// When and as which record.
    pub transmission: Transmission,
}

/// An acknowledgement that this direction received.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When it passed.
    pub t_ns: i64,
    /// Its record.
    pub record: u64,
    /// Cumulative acknowledgement.
    pub ack: i64,
    /// SACK blocks.
    pub sack: Edges,
    /// Timestamp echoed.
    pub ts_ecr: Option<u32>,
    /// Window, scaled where the scale is known.
    pub wnd_bytes: Option<i64>,
    /// Window field.
    pub window: u16,
    /// No payload, SYN, FIN or RST.
    pub pure: bool,
    /// SACK is in use on the connection.
    pub sack_in_use: bool,
}

/// What the tracker learns from an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckNote {
    /// It is a duplicate.
    pub dup_ack: bool,
    /// It reports a duplicate segment.
    pub dsack: bool,
    /// The round-trip time it measures.
    pub rtt_ns: Option<i64>,
}

/// The state of one direction.
#[derive(Debug, Default)]
pub struct Sender {
    /// What was sent and what became of it.
    pub board: Scoreboard,
    /// Round-trip times.
    pub rtt: RttEstimator,
    /// Counters of the `flows` row.
    pub row: DirectionRow,
    /// Between loss and repair.
    pub episode: Episode,
    /// Window that the receiver advertised.
    pub snd_wnd: Option<i64>,
    /// Duplicate acknowledgements received so far.
    pub dup_acks_in: u64,
    /// Round-trip time of the handshake: stands in where the capture point sees none of its own.
    pub handshake_rtt_ns: Option<i64>,
    /// Where the capture stands, seen along this direction.
    pub vantage: Vantage,
    /// The reconstruction of the window, at a capture beside this sender.
    pub inference: Option<Box<Inference>>,
    order: SendOrder,
    verdicts: Verdicts,
    dup_acks: u32,
    /// Octets that duplicate ACKs without SACK stand for.
    dup_acked_bytes: i64,
    window_field: Option<u16>,
    sack_in_use: bool,
    fin: Option<i64>,
    newest_delivered: Transmission,
    timer_ns: i64,
    evidence_ns: Option<i64>,
    last_ack_ns: i64,
    last_sent_ns: i64,
}

impl Sender {
    fn path(&self) -> Path {
        Path {
            min_rtt_ns: self.rtt.min_ns(),
            at_receiver: self.vantage == Vantage::Receiver,
        }
    }

    /// Smoothed round-trip time of the whole path, as well as the capture point can tell.
    fn whole_srtt_ns(&self) -> i64 {
        match self.rtt.srtt_ns() {
            Some(srtt) if self.vantage == Vantage::Sender => srtt,
            srtt => srtt.unwrap_or(0).max(self.handshake_rtt_ns.unwrap_or(0)),
        }
    }

    /// What the whole path adds to the round-trip time seen from the capture point.
    fn unseen_rtt_ns(&self) -> i64 {
        self.whole_srtt_ns() - self.rtt.srtt_ns().unwrap_or(0)
    }

    /// Takes a segment that occupies sequence space. Returns whether it is a retransmission.
    pub fn send(&mut self, sent: &Sent, fin: bool, whose: Whose, events: &mut Vec<Event>) -> bool {
        let now = sent.transmission.t_ns;
        if fin {
            self.fin = Some(sent.end - 1);
        }
        let short = i64::from(sent.payload_bytes) < self.smss_bytes();
        self.settle_view(whose.flow_id, |inference| {
            inference.next_segment(now, short)
        });
        if self.board.flight() == 0 {
            self.timer_ns = now;
        }
        let overlap = self.board.overlap(sent.start, sent.end);
        let repeats = if overlap.repeated == 0 && overlap.filled == 0 {
            self.board
                .send_fresh(sent.start, sent.end, sent.transmission);
            self.count_payload(sent, 0);
            false
        } else {
            self.send_again(sent, &overlap, whose, events)
        };
        self.order.observe(sent.transmission.ip_id);
        self.last_sent_ns = now;
        self.row.flight_max_bytes = self.row.flight_max_bytes.max(self.board.flight());
        self.infer(now);
        repeats
    }

    fn count_payload(&mut self, sent: &Sent, repeated: i64) {
        if sent.payload_bytes > 0 {
            let payload = u64::from(sent.payload_bytes);
            self.row.data_segments += 1;
            self.row.payload_bytes += payload;
            self.row.unique_bytes += payload - (repeated as u64).min(payload);
            self.row.max_segment_bytes = self.row.max_segment_bytes.max(sent.payload_bytes);
            self.board.note_segment_bytes(i64::from(sent.payload_bytes));
        }
    }

    fn send_again(
        &mut self,
        sent: &Sent,
        overlap: &Overlap,
        whose: Whose,
        events: &mut Vec<Event>,
    ) -> bool {
        let proven = overlap
            .gap
            .is_some_and(|gap| self.sent_later(&sent.transmission, &gap));
        self.count_payload(sent, overlap.repeated);
        let octets = overlap.repeated + if proven { overlap.filled } else { 0 };
        let (cause, reason) = if octets > 0 {
            self.situation(sent, overlap).cause()
        } else {
            (EventCause::Unknown, Reason::None)
        };
        let copy = Copy {
            transmission: sent.transmission,
            seq_start: sent.start,
            seq_end: sent.end,
            cause,
            reason,
            lead: true,
        };
        let acknowledged = sent.end <= self.board.snd_una();
        let head = sent.start <= self.board.snd_una() && !acknowledged;
        self.board.send_again(sent.start, sent.end, copy, proven);
        if octets == 0 {
            self.overtaken(sent, overlap, whose, events);
            return false;
        }
        if sent.payload_bytes > 0 {
            self.row.retransmitted_segments += 1;
            self.row.retransmitted_bytes += (octets as u64).min(u64::from(sent.payload_bytes));
        }
        if acknowledged {
            let needless = cause != EventCause::Probe;
            let proof = if needless {
                Reason::AlreadyAcknowledged
            } else {
                Reason::None
            };
            events.push(verdict::retransmission(&copy, needless, proof, whose));
            return true;
        }
        self.enter(&copy, whose, events);
        if head {
            // RFC 6298 §5.1, §5.5: sending the oldest segment again restarts the timer.
            self.timer_ns = sent.transmission.t_ns;
            self.evidence_ns = None;
        }
        true
    }

    /// A gap was filled by a segment that nothing proves to be a retransmission.
    fn overtaken(&mut self, sent: &Sent, overlap: &Overlap, whose: Whose, events: &mut Vec<Event>) {
        self.row.out_of_order_segments += u64::from(sent.payload_bytes > 0);
        let revealed_by = overlap.gap.map_or(0, |gap| gap.first.record);
        let now = sent.transmission.t_ns;
        events.push(Event {
            record: Some(sent.transmission.record),
            seq_start: Some(sent.start),
            seq_end: Some(sent.end),
            ..whose.event(
                EventKind::Reordering,
                EventCause::Unknown,
                now,
                Reason::Overtaken { revealed_by },
            )
        });
    }

    /// Whether what fills `gap` was sent later than the segment that revealed the gap.
    fn sent_later(&self, segment: &Transmission, gap: &Range) -> bool {
        self.order.later(segment, &gap.first).unwrap_or_else(|| {
            // Without marks of the sender: overtaking lasts less than a round trip, a repair at least one.
            let rtt = self.whole_srtt_ns();
            rtt > 0 && segment.t_ns - gap.first.t_ns >= rtt / 10 * 9
        })
    }

    fn situation(&self, sent: &Sent, overlap: &Overlap) -> Situation {
        let now = sent.transmission.t_ns;
        let (una, nxt) = (self.board.snd_una(), self.board.snd_nxt());
        let before = overlap.range.or(overlap.gap);
        let before = before.map_or(Transmission::default(), |range| self.board.newest(&range));
        let newest = self.newest_delivered.record;
        Situation {
            episode: self.episode,
            head: sent.start <= una && sent.end > una,
            tail: sent.end >= nxt,
            tiny: sent.payload_bytes <= 1,
            acknowledged: sent.end <= una,
            zero_window: self.snd_wnd == Some(0),
            dup_acks: self.dup_acks,
            sacked_above: self.board.sacked().octets_above(sent.start),
            later_delivered: (newest > before.record).then_some(newest),
            sack: self.sack_in_use,
            timer_ns: now - self.timer_ns,
            since_sent_ns: now - before.t_ns,
            evidence_ns: self.evidence_ns.map(|since| now - since),
            silence_ns: now - self.last_sent_ns,
            since_ack_ns: now - self.last_ack_ns,
            srtt_ns: self.whole_srtt_ns(),
            rto_ns: self.rtt.rto_ns() + self.unseen_rtt_ns(),
            least_rto_ns: self.rtt.least_rto_ns() + self.unseen_rtt_ns(),
        }
    }

    /// Moves between open, fast recovery and loss on a retransmission.
    fn enter(&mut self, copy: &Copy, whose: Whose, events: &mut Vec<Event>) {
        let recovery_point = self.board.snd_nxt();
        let now = copy.transmission.t_ns;
        match (copy.cause, copy.reason) {
            (EventCause::Rto, Reason::TimerExpired { .. }) => {
                self.leave(now, true, whose, events);
                self.row.rtos += 1;
                self.episode = Episode::Loss { recovery_point };
                events.push(Event {
                    record: Some(copy.transmission.record),
                    seq_start: Some(copy.seq_start),
                    seq_end: Some(copy.seq_end),
                    ..whose.event(EventKind::Rto, EventCause::Rto, now, copy.reason)
                });
            }
            (EventCause::Fast, _) if self.episode == Episode::Open => {
                self.row.recoveries += 1;
                self.episode = Episode::Recovery {
                    start_ns: now,
                    record: copy.transmission.record,
                    seq_start: copy.seq_start,
                    recovery_point,
                    retransmissions: 0,
                };
            }
            _ => {}
        }
        if let Episode::Recovery {
            retransmissions, ..
        } = &mut self.episode
        {
            *retransmissions += 1;
        }
    }

    /// Ends the episode at `now_ns`.
    fn leave(&mut self, now_ns: i64, broken_off: bool, whose: Whose, events: &mut Vec<Event>) {
        if let Episode::Recovery {
            start_ns,
            record,
            seq_start,
            recovery_point,
            retransmissions,
        } = self.episode
        {
            let reason = Reason::Ended {
                recovery_point,
                retransmissions,
                broken_off,
            };
            events.push(Event {
                end_ns: Some(now_ns),
                record: Some(record),
                seq_start: Some(seq_start),
                seq_end: Some(recovery_point),
                ..whose.event(EventKind::Recovery, EventCause::Fast, start_ns, reason)
            });
        }
        self.episode = Episode::Open;
        self.dup_acked_bytes = 0;
    }

    /// Takes an acknowledgement.
    pub fn acknowledge(&mut self, acked: &Acked, whose: Whose, events: &mut Vec<Event>) -> AckNote {
        self.sack_in_use = acked.sack_in_use;
        let moves = acked.ack > self.board.snd_una();
        self.settle_view(whose.flow_id, |inference| {
            inference.next_ack(acked.t_ns, moves)
        });
        let before = self.board.snd_una();
        let outstanding = self.board.started() && self.board.snd_nxt() > before;
        let duplicate = duplicate_report(acked);
        let delivery = self.deliver(acked, duplicate.is_some());
        if let Some((left, right)) = duplicate {
            self.verdicts
                .duplicate(left, right, acked.record, acked.t_ns);
        }
        let mut note = AckNote {
            dsack: duplicate.is_some(),
            ..AckNote::default()
        };
        if acked.sack_in_use {
            // RFC 6675 §2
            note.dup_ack = delivery.acked == 0 && delivery.sacked > 0;
        } else {
            // RFC 5681 §2
            let same_window = self.window_field == Some(acked.window);
            note.dup_ack = acked.pure && outstanding && acked.ack == before && same_window;
        }
        if let Some(sent_ns) = delivery.sample_sent_ns {
            let rtt_ns = acked.t_ns - sent_ns;
            note.rtt_ns = (rtt_ns >= 0).then_some(rtt_ns);
            self.rtt.sample(rtt_ns);
        }
        self.conclude(acked, before, note.dup_ack, &delivery, whose, events);
        self.infer(acked.t_ns);
        note
    }

    /// What one acknowledgement delivers; a DSACK block is taken out first and reported last.
    fn deliver(&mut self, acked: &Acked, dsack: bool) -> Delivery {
        let before = self.board.snd_una();
        let wait_ns = 2 * (self.rtt.rto_ns() + self.unseen_rtt_ns());
        let (verdicts, newest) = (&mut self.verdicts, &mut self.newest_delivered);
        let least_ns = self.rtt.min_ns().unwrap_or(0) / 10 * 9;
        let mut echoed_ns = None;
        let mut arrived = |range: &Range, last: Transmission, echo: Option<u32>| {
            // RFC 8985 §6.2 step 2: a retransmission younger than the least round trip is not what arrived.
            let plausible = range.copies.is_none() || acked.t_ns - last.t_ns >= least_ns;
            if plausible && range.captured() && last.record > newest.record {
                *newest = last;
            }
            if range.copies.is_some()
                && echo.is_some()
                && echo == last.ts_val
                && echo != range.first.ts_val
            {
                echoed_ns = Some(last.t_ns);
            }
            verdicts.add(range, acked.t_ns, echo, wait_ns);
        };
        let mut delivery = self.board.acknowledge(acked.ack, |range, last| {
            // RFC 7323 §4.3: what moved the left edge is what is echoed, so only the first range can be told.
            let echo = acked
                .ts_ecr
                .filter(|_| range.start <= before && range.captured());
            arrived(range, last, echo);
        });
        for (left, right) in acked.sack.blocks().skip(usize::from(dsack)) {
            self.board.sack(left, right, &mut delivery, |range, last| {
                arrived(range, last, None);
            });
        }
        if let (None, Some(sent_ns)) = (delivery.sample_sent_ns, echoed_ns) {
            self.rtt.smooth((acked.t_ns - sent_ns).max(0));
        }
        delivery
    }

    /// What an acknowledgement changes after it was taken.
    fn conclude(
        &mut self,
        acked: &Acked,
        before: i64,
        dup_ack: bool,
        delivery: &Delivery,
        whose: Whose,
        events: &mut Vec<Event>,
    ) {
        if dup_ack {
            self.dup_acks += 1;
            self.dup_acks_in += 1;
            self.dup_acked_bytes += self.smss_bytes();
        }
        if delivery.acked > 0 {
            self.dup_acks = 0;
            // RFC 6582 §3.2 step 3: what a partial ACK covers beyond the oldest segment had left already.
            let beyond = (delivery.acked - self.smss_bytes()).max(0);
            self.dup_acked_bytes = (self.dup_acked_bytes - beyond).max(0);
            // RFC 6298 §5.3
            self.timer_ns = acked.t_ns;
            let una = self.board.snd_una();
            let syn = i64::from(before <= 0 && una > 0);
            let fin = i64::from(self.fin.is_some_and(|fin| before <= fin && fin < una));
            self.row.acked_bytes += (delivery.acked - syn - fin).max(0) as u64;
            let ends = match self.episode {
                Episode::Open => false,
                Episode::Recovery { recovery_point, .. } | Episode::Loss { recovery_point } => {
                    una >= recovery_point
                }
            };
            if ends {
                self.leave(acked.t_ns, false, whose, events);
            }
        }
        let doubted = self
            .board
            .oldest()
            .is_some_and(|oldest| self.newest_delivered.record > oldest.record);
        if !doubted {
            self.evidence_ns = None;
        } else if delivery.acked > 0 || self.evidence_ns.is_none() {
            self.evidence_ns = Some(acked.t_ns);
        }
        self.window_field = Some(acked.window);
        self.snd_wnd = acked.wnd_bytes;
        self.last_ack_ns = acked.t_ns;
        let path = self.path();
        self.verdicts
            .due(acked.t_ns, self.board.history_mut(), path, whose, events);
    }

    /// Octets in the network (RFC 6675 §4): what is neither SACKed nor taken for lost, and what was sent again.
    fn pipe(&self) -> i64 {
        let (una, nxt) = (self.board.snd_una(), self.board.snd_nxt());
        match self.episode {
            Episode::Open => self.board.flight(),
            Episode::Recovery { .. } if !self.sack_in_use => {
                // RFC 6582 §3.2: each duplicate ACK stands for a segment that has left; the oldest one is lost.
                let left = self.dup_acked_bytes + self.smss_bytes();
                (nxt - una - left + self.board.repeated()).max(0)
            }
            Episode::Recovery { .. } => {
                nxt - self.board.sacked().highest().unwrap_or(una).max(una) + self.board.repeated()
            }
            Episode::Loss { recovery_point } => {
                let lost = self
                    .board
                    .sacked()
                    .highest()
                    .unwrap_or(una)
                    .max(recovery_point);
                (nxt - lost.max(una)).max(0) + self.board.repeated()
            }
        }
    }

    fn smss_bytes(&self) -> i64 {
        self.board.segment_bytes()
    }

    /// Shows the inference what the sender has become.
    fn infer(&mut self, t_ns: i64) {
        if self.inference.is_none() {
            return;
        }
        let state = State {
            t_ns,
            episode: self.episode,
            pipe_bytes: self.pipe(),
            flight_bytes: self.board.flight(),
            smss_bytes: self.smss_bytes(),
            srtt_ns: self.rtt.srtt_ns().unwrap_or(0),
            snd_wnd_bytes: self.snd_wnd,
        };
        if let Some(inference) = &mut self.inference {
            inference.observe(&state);
        }
    }

    /// Makes a row of the view that `step` finds due. Nothing has changed since that view was taken.
    pub fn settle_view(&mut self, flow_id: u32, step: impl FnOnce(&mut Inference) -> Option<View>) {
        let Some(view) = self.inference.as_deref_mut().and_then(step) else {
            return;
        };
        let row = Sample {
            flow_id,
            t_ns: view.t_ns,
            source: Source::Inferred,
            phase: view.phase,
            cwnd_bytes: view.cwnd_bytes,
            ssthresh_bytes: view.ssthresh_bytes,
            flight_bytes: self.board.flight(),
            smss_bytes: self.smss_bytes(),
            srtt_ns: self.rtt.srtt_ns(),
            rttvar_ns: self.rtt.rttvar_ns(),
            rto_ns: Some(self.rtt.rto_ns()),
            min_rtt_ns: self.rtt.min_ns(),
            snd_una: self.board.snd_una(),
            snd_nxt: self.board.snd_nxt(),
            snd_wnd_bytes: self.snd_wnd,
            segments_out: self.row.data_segments as i64,
            retransmissions: self.row.retransmitted_segments as i64,
            rtos: self.row.rtos as i64,
            recoveries: self.row.recoveries as i64,
            dup_acks_in: self.dup_acks_in as i64,
            app_limited: view.app_limited,
        };
        if let Some(inference) = &mut self.inference {
            inference.keep(row);
        }
    }

    /// The end of the connection: what is still open is judged by what is known.
    pub fn finish(&mut self, now_ns: i64, whose: Whose, events: &mut Vec<Event>) {
        let path = self.path();
        self.verdicts
            .due(i64::MAX, self.board.history_mut(), path, whose, events);
        self.leave(now_ns, true, whose, events);
        for range in self.board.undelivered() {
            verdict::unrepaired(
                range,
                self.board.history(),
                self.newest_delivered,
                whose,
                events,
            );
        }
        self.row.rtt_samples = self.rtt.samples();
        self.row.rtt_min_ns = self.rtt.min_ns();
        self.row.rtt_mean_ns = self.rtt.mean_ns();
        self.row.rtt_max_ns = self.rtt.max_ns();
    }
}

/// The DSACK block of an acknowledgement (RFC 2883 §4): below the cumulative one, or inside the second block.
fn duplicate_report(acked: &Acked) -> Option<(i64, i64)> {
    let mut blocks = acked.sack.blocks();
    let (left, right) = blocks.next()?;
    let inside = |outer: (i64, i64)| outer.0 <= left && right <= outer.1;
    (right <= acked.ack || blocks.next().is_some_and(inside)).then_some((left, right))
}

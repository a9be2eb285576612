//! One direction of a connection as its data sender: what it sent, what came back, what it repaired.
//!
//! Brings scoreboard, round-trip times, causes and verdicts together; knows no addresses and no other connection.
//! `repair` holds what a retransmission means, `show` what the reconstruction of the window sees. Read
//! [`crate::scoreboard`] first.

mod repair;
mod show;

use crate::cause::Episode;
use crate::echo::Echo;
use crate::evidence::End;
use crate::inference::Inference;
use crate::ordering::SendOrder;
use crate::rows::{DirectionRow, Edges, Event, Vantage};
use crate::rtt::RttEstimator;
use crate::scoreboard::{Arrival, Delivery, Scoreboard, Transmission};
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
    /// Recovery point of a timeout that an echo disproved, until it is acknowledged.
    disproved_timeout: Option<i64>,
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
    /// What lies behind the capture point, where that is not at this sender.
    pub echo: Echo,
    order: SendOrder,
    verdicts: Verdicts,
    dup_acks: u32,
    /// Octets that duplicate ACKs without SACK stand for.
    dup_acked_bytes: i64,
    window_field: Option<u16>,
    sack_in_use: bool,
    fin: Option<i64>,
    newest_delivered: Transmission,
    /// Timestamp of the first retransmission of the episode.
    episode_ts: Option<u32>,
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

    /// Round-trip time behind the capture point: from an acknowledgement to what it triggers.
    fn behind_ns(&self) -> i64 {
        if self.vantage == Vantage::Sender {
            return 0;
        }
        let handshake = self.handshake_rtt_ns.unwrap_or(0) - self.rtt.min_ns().unwrap_or(0);
        self.echo.behind.srtt_ns().unwrap_or(handshake.max(0))
    }

    /// Smoothed round-trip time of the whole path, as well as the capture point can tell.
    fn whole_srtt_ns(&self) -> i64 {
        self.rtt.srtt_ns().unwrap_or(0) + self.behind_ns()
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
        } else if self.board.late(sent.start, sent.end) {
            self.count_payload(sent, 0);
            false
        } else if self.board.stored_twice(sent.start, &sent.transmission) {
            return false;
        } else {
            self.send_again(sent, &overlap, whose, events)
        };
        self.forget_overflow(whose, events);
        self.order.observe(sent.transmission.ip_id);
        self.last_sent_ns = now;
        self.row.flight_max_bytes = self.row.flight_max_bytes.max(self.board.flight());
        self.infer(now);
        repeats
    }

    /// Lets go of what no acknowledgement will tell more about.
    fn forget_overflow(&mut self, whose: Whose, events: &mut Vec<Event>) {
        while let Some(range) = self.board.overflow() {
            if range.copies.is_some() {
                let newest = self.newest_delivered;
                verdict::unrepaired(&range, self.board.history(), newest, whose, events);
                self.board.history_mut().free(range.copies);
            }
        }
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
        let wait_ns = self
            .rtt
            .rto_ns()
            .saturating_add(self.behind_ns())
            .saturating_mul(2);
        let (verdicts, newest) = (&mut self.verdicts, &mut self.newest_delivered);
        let least_ns = self.rtt.min_ns().unwrap_or(0) / 10 * 9;
        let (mut echoed_ns, mut undone) = (None, false);
        let began = self.episode_ts;
        let mut arrived = |arrival: Arrival<'_>, echo: Option<u32>| {
            // RFC 8985 §6.2 step 2: a retransmission younger than the least round trip is not what arrived, nor is
            // one that is younger than the timestamp echoed.
            let (range, last) = (arrival.range, arrival.newest);
            let echo = echo.filter(|_| range.copies.is_some());
            let before_echo = |sent: Option<u32>| {
                echo.zip(sent)
                    .is_some_and(|(echo, sent)| earlier(echo, sent))
            };
            let too_young = range.copies.is_some() && acked.t_ns - last.t_ns < least_ns;
            if !too_young
                && !before_echo(last.ts_val)
                && range.captured()
                && last.record > newest.record
            {
                *newest = last;
            }
            if echo.is_some() && echo == last.ts_val && echo != range.first.ts_val {
                echoed_ns = Some(last.t_ns);
            }
            // RFC 4015 §3.2: what is echoed was sent before the octets were sent again, and the episode began.
            undone |=
                before_echo(began) && before_echo(arrival.repeat.and_then(|repeat| repeat.ts_val));
            verdicts.add(range, acked.t_ns, echo, wait_ns);
        };
        let mut delivery = self.board.acknowledge(acked.ack, |arrival| {
            // RFC 7323 §4.3: what moved the left edge is what is echoed, so only the first range can be told.
            let first = arrival.range.start <= before && arrival.range.captured();
            arrived(arrival, acked.ts_ecr.filter(|_| first));
        });
        for (left, right) in acked.sack.blocks().skip(usize::from(dsack)) {
            self.board
                .sack(left, right, &mut delivery, |arrival| arrived(arrival, None));
        }
        // Where other retransmissions are still out, recovery goes on for them.
        let alone = matches!(self.episode, Episode::Loss { .. }) || self.board.repeated() == 0;
        delivery.undone = undone && alone;
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
            if delivery.undone
                && let Episode::Loss { recovery_point } = self.episode
            {
                self.disproved_timeout = Some(recovery_point);
            }
            self.disproved_timeout = self.disproved_timeout.filter(|&point| una < point);
            if ends || delivery.undone {
                let end = if ends { End::Acknowledged } else { End::Undone };
                self.leave(acked.t_ns, end, whose, events);
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

    /// The end of the connection: what is still open is judged by what is known.
    pub fn finish(&mut self, now_ns: i64, whose: Whose, events: &mut Vec<Event>) {
        let path = self.path();
        self.verdicts
            .due(i64::MAX, self.board.history_mut(), path, whose, events);
        self.leave(now_ns, End::BrokenOff, whose, events);
        for range in self.board.outstanding() {
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

/// Whether timestamp `val` is older than `reference` (RFC 7323 §5.2).
fn earlier(val: u32, reference: u32) -> bool {
    (val.wrapping_sub(reference) as i32) < 0
}

/// The DSACK block of an acknowledgement (RFC 2883 §4): below the cumulative one, or inside the second block.
fn duplicate_report(acked: &Acked) -> Option<(i64, i64)> {
    let mut blocks = acked.sack.blocks();
    let (left, right) = blocks.next()?;
    let inside = |outer: (i64, i64)| outer.0 <= left && right <= outer.1;
    (right <= acked.ack || blocks.next().is_some_and(inside)).then_some((left, right))
}

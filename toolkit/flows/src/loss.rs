//! Which transmissions of a retransmitted range were lost, and which retransmissions were spurious.
//!
//! The decision is taken some time after the range was delivered, so that it can use a DSACK. The rules are those of
//! RFC 3522 (Eifel) and RFC 3708 (DSACK).

mod arrival_order;
mod discards;
mod duplicates;
mod first_arrived;
mod knowledge;
mod originals;
mod unacknowledged;

use std::collections::{HashMap, VecDeque};

use crate::evidence::{Evidence, Reason};
use crate::jump::Arrived;
use crate::ordering::is_older;
use crate::retransmissions::{Retransmission, Retransmissions};
use crate::rows::{Direction, Event, EventCause, EventKind};
use crate::scoreboard::{Range, State, Transmission};
use arrival_order::{ArrivalOrder, Arrivals, Duplicate, Duplicates};
use discards::Discards;
use first_arrived::{Verdict, contradicts_rtt, is_answer_captured, late_duplicate};
use knowledge::Knowledge;

pub use duplicates::Dsack;
pub use knowledge::Path;
pub use unacknowledged::{decide_open_gap, decide_unacknowledged};

/// One direction of a connection.
#[derive(Clone, Copy, Debug)]
pub struct FlowDirection {
    /// Connection.
    pub flow_id: u32,
    /// Direction of the data.
    pub direction: Direction,
}

impl FlowDirection {
    /// An event without a range and an end.
    pub fn event(
        self,
        kind: EventKind,
        cause: EventCause,
        t_ns: i64,
        evidence: impl Into<Evidence>,
    ) -> Event {
        Event {
            evidence: Some(evidence.into()),
            ..Event::new(self.flow_id, t_ns, self.direction, kind, cause)
        }
    }
}

/// The ACK that shows that a range was delivered.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct DeliveringAck {
    /// Time.
    pub t_ns: i64,
    /// Record.
    pub record: u64,
    /// Time of the ACK before it.
    pub previous_ns: i64,
    /// Minimum RTT from the capture point to the receiver up to then.
    pub min_rtt_ns: Option<i64>,
    /// ACKs that are missing between the two.
    pub missing_acks: u16,
    /// IPv4 IDs that the ACKs up to the one before skipped, if the IDs count the ACKs.
    pub ids_skipped_before: Option<u32>,
    /// Time of the last ACK before which some are missing, if the IDs count the ACKs.
    pub missed_ns: Option<i64>,
    /// SND.UNA and SND.NXT before it.
    pub flight: (i64, i64),
    /// SACK is in use, so that the receiver may report duplicates.
    pub sack: bool,
    /// It echoes the original transmission of the range, and no other.
    pub echoes_first: bool,
    /// The SACK block that reports the range.
    pub block: Option<(i64, i64)>,
}

/// A retransmitted range that was delivered.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct PendingRange {
    range: Range,
    delivered_by: DeliveringAck,
    /// Timestamp echoed by the ACK, if it refers to this range.
    ts_ecr: Option<u32>,
    arrived: Arrived,
    /// Record of the ACK that shows that the receiver discarded the original transmission.
    discarded_by: Option<u64>,
    /// Record of an ACK that shows that it may have.
    maybe_discarded_by: Option<u64>,
    /// Time of the decision.
    deadline_ns: i64,
    /// DSACKs of the range, and record and time of the last one.
    dsacks: u16,
    dsack_record: u64,
    dsack_ns: i64,
    /// Timestamp that the ACK with the last DSACK echoes.
    dsack_ecr: Option<u32>,
    /// Record of the last sent of the original transmissions that were known to have arrived by then.
    newest_at_dsack: u64,
    /// A SACK block reported it again, and no DSACK did so far.
    reported_again: bool,
    /// What had arrived before the ACK that delivered it.
    before: Arrivals,
}

impl PendingRange {
    /// Whether the ACK echoes transmission `number` and no earlier one.
    fn is_echoed(&self, all: &Transmissions<'_>, number: usize) -> bool {
        let ts_val = all.transmission(number).ts_val;
        let earlier = number
            .checked_sub(1)
            .map(|earlier| all.transmission(earlier).ts_val);
        self.ts_ecr.is_some() && self.ts_ecr == ts_val && earlier != Some(ts_val)
    }

    /// The proof that the ACK was not caused by `sent`, if it echoes an older timestamp (RFC 3522).
    fn earlier_echo(&self, sent: &Transmission) -> Option<Reason> {
        let (ts_ecr, ts_val) = self.ts_ecr.zip(sent.ts_val)?;
        is_older(ts_ecr, ts_val).then_some(Reason::EarlierEchoed { ts_ecr, ts_val })
    }

    /// The number of transmissions, from the original on, that a hole below shows to be lost.
    fn lost_before(&self) -> usize {
        match self.arrived {
            Arrived::Repaired(lost) => lost as usize,
            Arrived::Partial => 1,
            _ => 0,
        }
    }

    /// Whether it is all that was in flight.
    fn is_flight(&self) -> bool {
        let (una, nxt) = self.delivered_by.flight;
        self.range.start <= una && nxt <= self.range.end
    }
}

/// The time of a decision at the end of a capture.
pub const END: i64 = i64::MAX;

/// Detects losses and spurious retransmissions of one direction.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct LossDetector {
    pending: VecDeque<PendingRange>,
    /// Number of the entry of the range that starts at a position, counted from the first entry ever.
    by_start: HashMap<i64, u64>,
    /// Number of the first entry in `pending`.
    first: u64,
    /// Original transmissions that the receiver discarded.
    pub discards: Discards,
    /// The receiver has reported a duplicate (RFC 2883).
    reports_duplicates: bool,
    order: ArrivalOrder,
    newest_known: Transmission,
    duplicates: Duplicates,
}

impl LossDetector {
    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.pending.shrink_to_fit();
        self.by_start.shrink_to_fit();
        self.discards.release_memory();
        self.order.release_memory();
    }

    /// Adds a delivered range, if it was retransmitted. The decision is taken `wait_ns` later.
    pub fn on_delivered(
        &mut self,
        range: &Range,
        delivered_by: DeliveringAck,
        ts_ecr: Option<u32>,
        arrived: &Arrived,
        wait_ns: i64,
    ) {
        let discarded_by = self.discards.take(range.start);
        self.order.begin(delivered_by.record);
        if Self::shows_order(range, &delivered_by) {
            self.note_arrived(&range.first);
            let awaited = !self.pending.is_empty();
            self.order.add(&range.first, delivered_by.t_ns, awaited);
        }
        if range.retransmissions.is_none() {
            return;
        }
        self.by_start
            .insert(range.start, self.first + self.pending.len() as u64);
        self.pending.push_back(PendingRange {
            range: *range,
            delivered_by,
            ts_ecr,
            arrived: *arrived,
            discarded_by,
            maybe_discarded_by: self.discards.overtaken(range),
            deadline_ns: delivered_by.t_ns.saturating_add(wait_ns),
            dsacks: 0,
            dsack_record: 0,
            dsack_ns: 0,
            dsack_ecr: None,
            newest_at_dsack: 0,
            reported_again: false,
            // Without SACK, what was held back arrived before what the ACKs show to have arrived.
            before: if delivered_by.sack {
                self.order.before
            } else {
                Arrivals::default()
            },
        });
    }

    /// Whether it is known that the original transmission of `range` arrived just before the ACK `by`: the timestamp
    /// echoed is that of the segment which moved the left edge of the window since the ACK before (RFC 7323 §4.3), or,
    /// with SACK, it was sent once. Without SACK, the cumulative ACK may come long after.
    fn shows_order(range: &Range, by: &DeliveringAck) -> bool {
        let once = range.retransmissions.is_none() && range.state == State::Outstanding;
        let echoed = by.echoes_first && !range.first_not_captured;
        echoed || (by.sack && once && !range.split)
    }

    /// Notes that `sent` is known to have arrived.
    pub fn note_arrived(&mut self, sent: &Transmission) {
        if sent.record > self.newest_known.record {
            self.newest_known = *sent;
        }
    }

    /// The last sent of the transmissions that are known to have arrived.
    pub fn newest_known(&self) -> Transmission {
        self.newest_known
    }

    /// The last sent of the original transmissions that arrived after one that was sent later.
    pub fn overtaken(&self) -> Transmission {
        self.order.now.overtaken
    }

    /// Takes off the range at `start` up to `count` retransmissions that were lost just before its last one. Returns
    /// their number.
    pub fn take_lost_before_last(&self, start: i64, count: u32, log: &mut Retransmissions) -> u32 {
        let index = self.index_of(start);
        let list = index.and_then(|index| self.pending[index].range.retransmissions);
        list.map_or(0, |list| log.take_lost_before_newest(list, count))
    }

    /// Where the segment at `start`, which a retransmission delivered, stands among those that are pending.
    fn index_of(&self, start: i64) -> Option<usize> {
        let index = (self.by_start.get(&start)? - self.first) as usize;
        (index < self.pending.len()).then_some(index)
    }

    /// Whether no range waits for a decision.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether a decision is due at `now_ns`.
    #[inline]
    pub fn is_due(&self, now_ns: i64) -> bool {
        let first = self.pending.front();
        first.is_some_and(|entry| entry.deadline_ns <= now_ns)
    }

    /// Takes the decisions that are due at `now_ns`, with the IPv4 IDs that the ACKs have skipped, if the IDs count the
    /// ACKs. At the [`END`] of a capture, all are.
    pub fn decide(
        &mut self,
        now_ns: i64,
        log: &mut Retransmissions,
        (path, ids_skipped): (Path, Option<u32>),
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        let mut known = Knowledge {
            path,
            ids_skipped,
            newest: self.newest_known,
            reports_duplicates: self.reports_duplicates,
            order: &self.order,
            duplicates: self.duplicates,
        };
        while let Some(pending) = self.pending.front_mut().filter(|entry| {
            entry.deadline_ns <= now_ns && (now_ns == END || !entry.awaits_report(log, &known))
        }) {
            if !known.reports_duplicates {
                let answered_by = pending.discarded_by.take();
                pending.maybe_discarded_by = pending.maybe_discarded_by.or(answered_by);
            }
            if path.at_receiver {
                let all = Transmissions::new(&pending.range, log);
                decide_captured(&all, flow, events);
            } else if let Some(one) = decide_delivered(pending, log, &known, flow, events) {
                known.duplicates.add(one, &pending.before.newest);
            }
            log.free(pending.range.retransmissions);
            let (start, number) = (pending.range.start, self.first);
            if self.by_start.get(&start) == Some(&number) {
                self.by_start.remove(&start);
            }
            self.pending.pop_front();
            self.first += 1;
        }
        self.duplicates = known.duplicates;
        let oldest = self.pending.front();
        self.order
            .forget(oldest.map_or(u64::MAX, |entry| entry.delivered_by.record));
    }
}

/// The transmissions of a range, in the order of sending.
struct Transmissions<'a> {
    range: &'a Range,
    retransmissions: Vec<&'a Retransmission>,
}

impl<'a> Transmissions<'a> {
    fn new(range: &'a Range, log: &'a Retransmissions) -> Self {
        let mut retransmissions: Vec<&Retransmission> = log.iter(range.retransmissions).collect();
        retransmissions.reverse();
        Self {
            range,
            retransmissions,
        }
    }

    /// Number of the last transmission; the original one is 0.
    fn last(&self) -> usize {
        self.retransmissions.len()
    }

    /// Retransmission `number`, from 1.
    fn retransmission(&self, number: usize) -> Option<&'a Retransmission> {
        self.retransmissions.get(number.checked_sub(1)?).copied()
    }

    /// Retransmission `number`, from 1, if it was captured and this is the range that reports it.
    fn captured(&self, number: usize) -> Option<&'a Retransmission> {
        self.retransmission(number)
            .filter(|entry| entry.primary && !entry.not_captured)
    }

    /// Transmission `number`, from 0.
    fn transmission(&self, number: usize) -> Transmission {
        self.retransmission(number)
            .map_or(self.range.first, |entry| entry.transmission)
    }
}

/// Decides on a range that was delivered. Returns the retransmission that is known to have arrived late.
fn decide_delivered(
    pending: &PendingRange,
    log: &Retransmissions,
    known: &Knowledge<'_>,
    flow: FlowDirection,
    events: &mut Vec<Event>,
) -> Option<Duplicate> {
    let (all, path) = (Transmissions::new(&pending.range, log), known.path);
    if pending.arrived == Arrived::Unclear || contradicts_rtt(pending, &all, path) {
        decide_unclear(&all, flow, events);
        return None;
    }
    let verdict = Verdict::new(pending, &all, known);
    let arrived = verdict.arrived;
    let reported = verdict.reported;
    let successful = all.transmission(arrived);
    let retransmitted_as = Reason::RetransmittedAs {
        record: successful.record,
        after_ns: pending.delivered_by.t_ns.saturating_sub(successful.t_ns),
    };
    for number in 0..=all.last() {
        let discarded_by = pending.discarded_by.filter(|_| number == 0);
        if let Some(reason) = verdict.undecided(pending, number) {
            add_fate(EventKind::Undecided, &all, number, reason, flow, events);
        } else if number < arrived && discarded_by.is_none() {
            add_loss(&all, number, retransmitted_as, flow, events);
        } else if number > arrived && reported.is_of_later(number) {
            let record = pending.dsack_record;
            add_loss(&all, number, Reason::LaterReported { record }, flow, events);
        } else if number > arrived && reported.lacks(number) {
            let sent = all.transmission(number);
            let shown = known.reports_duplicates && is_answer_captured(pending, &sent, known);
            let (kind, reason) = if shown {
                let newest = known.newest.record;
                (EventKind::Loss, Reason::NoDsack { newest })
            } else {
                (EventKind::Undecided, Reason::NoReport)
            };
            add_fate(kind, &all, number, reason, flow, events);
        }
        if let Some(entry) = all.captured(number) {
            let spurious = verdict.spurious(number);
            let discarded = || {
                pending
                    .discarded_by
                    .map(|record| Reason::Discarded { record })
            };
            let proof = if spurious == Some(true) {
                verdict.proof
            } else {
                discarded().unwrap_or(Reason::None)
            };
            events.push(retransmission_event(entry, spurious, proof, flow));
        }
    }
    late_duplicate(pending, &all, arrived, known)
}

/// Decides on a range of which the capture does not show which transmission arrived first.
fn decide_unclear(all: &Transmissions<'_>, flow: FlowDirection, events: &mut Vec<Event>) {
    for number in 0..=all.last() {
        add_fate(
            EventKind::Undecided,
            all,
            number,
            Reason::NoSack,
            flow,
            events,
        );
        if let Some(entry) = all.captured(number) {
            events.push(retransmission_event(entry, None, Reason::None, flow));
        }
    }
}

/// Decides on a range that was captured at the receiver: what was captured has arrived.
fn decide_captured(all: &Transmissions<'_>, flow: FlowDirection, events: &mut Vec<Event>) {
    let first_captured = (1..=all.last()).find(|&number| {
        all.retransmission(number)
            .is_some_and(|entry| !entry.not_captured)
    });
    // A SACK block had reported the octets, and what was lost of them before is known.
    let again = all.range.state == State::Delivered;
    let arrived = if all.range.first_not_captured && !again {
        first_captured.unwrap_or(all.last())
    } else {
        0
    };
    for number in usize::from(again)..=all.last() {
        let entry = all.retransmission(number);
        if entry.map_or(all.range.first_not_captured, |entry| entry.not_captured) {
            let record = all.transmission(arrived).record;
            add_loss(
                all,
                number,
                Reason::RetransmittedAs {
                    record,
                    after_ns: 0,
                },
                flow,
                events,
            );
        } else if let Some(entry) = entry.filter(|entry| entry.primary) {
            let spurious = number > arrived;
            let proof = if spurious {
                Reason::CapturedAtReceiver
            } else {
                Reason::None
            };
            events.push(retransmission_event(entry, Some(spurious), proof, flow));
        }
    }
}

/// The event of a retransmission.
pub fn retransmission_event(
    entry: &Retransmission,
    spurious: Option<bool>,
    proof: Reason,
    flow: FlowDirection,
) -> Event {
    let cause = if spurious == Some(true) {
        EventCause::Spurious
    } else {
        entry.cause
    };
    let evidence = Evidence {
        reason: entry.reason,
        proof,
    };
    Event {
        record: Some(entry.transmission.record),
        seq_start: Some(entry.seq_start),
        seq_end: Some(entry.seq_end),
        mechanism: Some(entry.mechanism),
        spurious,
        ..flow.event(
            EventKind::Retransmission,
            cause,
            entry.transmission.t_ns,
            evidence,
        )
    }
}

/// The event of the loss of a retransmission of octets that have been acknowledged; `copy` is its number.
pub fn missing_event(entry: &Retransmission, copy: u32, flow: FlowDirection) -> Event {
    let t_ns = entry.transmission.t_ns;
    Event {
        seq_start: Some(entry.seq_start),
        seq_end: Some(entry.seq_end),
        copy: Some(copy),
        ..flow.event(
            EventKind::Loss,
            EventCause::Unknown,
            t_ns,
            Reason::MissingId,
        )
    }
}

/// Adds the event of the loss of transmission `number`, if the range is the primary one of its segment.
fn add_loss(
    all: &Transmissions<'_>,
    number: usize,
    reason: Reason,
    flow: FlowDirection,
    events: &mut Vec<Event>,
) {
    add_fate(EventKind::Loss, all, number, reason, flow, events);
}

/// Adds an event about the fate of transmission `number`; see [`add_loss`].
fn add_fate(
    kind: EventKind,
    all: &Transmissions<'_>,
    number: usize,
    reason: Reason,
    flow: FlowDirection,
    events: &mut Vec<Event>,
) {
    let (range, transmission) = (all.range, all.transmission(number));
    let entry = all.retransmission(number);
    if !entry.map_or(range.primary, |entry| entry.primary) {
        return;
    }
    // The receiver refused the octet of a zero-window probe, so the network did not lose it.
    if entry.map_or(range.window_probe, |entry| {
        entry.reason == Reason::ZeroWindow
    }) {
        return;
    }
    let passed = entry.filter(|entry| entry.not_captured);
    let not_captured = passed.is_some() || (number == 0 && range.first_not_captured);
    let reason = match reason {
        Reason::RetransmittedAs { record, .. }
            if number == 0 && not_captured && record == transmission.record =>
        {
            Reason::MissingId
        }
        Reason::RetransmittedAs { record, .. } if not_captured && passed.is_none() => {
            Reason::LostBeforeCapture {
                revealed_by: transmission.record,
                filled_by: record,
            }
        }
        _ => passed.map_or(reason, |entry| entry.reason),
    };
    let (start, end) = entry.map_or((range.start, range.end), |entry| {
        (entry.seq_start, entry.seq_end)
    });
    events.push(Event {
        record: (!not_captured).then_some(transmission.record),
        seq_start: Some(start),
        seq_end: Some(end),
        copy: Some(number as u32 + 1),
        ..flow.event(kind, EventCause::Unknown, transmission.t_ns, reason)
    });
}

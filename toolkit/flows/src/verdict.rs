//! Which transmissions of a repaired range were lost, and which retransmissions were not needed.
//!
//! A verdict waits after the delivery for as long as a report of a duplicate may take, then becomes events. Knows no
//! connection. Read RFC 3522 (Eifel) and RFC 3708 (DSACK) first.

use std::collections::{HashMap, VecDeque};

use crate::evidence::{Evidence, Reason};
use crate::history::{Copy, History};
use crate::rows::{Direction, Event, EventCause, EventKind};
use crate::scoreboard::{Range, State, Transmission};

/// Whose events these are.
#[derive(Clone, Copy, Debug)]
pub struct Whose {
    /// Connection.
    pub flow_id: u32,
    /// Direction of the data.
    pub direction: Direction,
}

impl Whose {
    /// An event without a range or an end.
    pub fn event(
        self,
        kind: EventKind,
        cause: EventCause,
        t_ns: i64,
        evidence: impl Into<Evidence>,
    ) -> Event {
        Event {
            flow_id: self.flow_id,
            t_ns,
            end_ns: None,
            direction: self.direction,
            kind,
            cause,
            record: None,
            seq_start: None,
            seq_end: None,
            evidence: Some(evidence.into()),
        }
    }
}

/// A range that was retransmitted and has been delivered.
#[derive(Clone, Copy, Debug)]
struct Pending {
    range: Range,
    delivered_ns: i64,
    /// Timestamp echoed, where it can only come from what filled this range.
    echo: Option<u32>,
    deadline_ns: i64,
    duplicates: u16,
    /// The last report of a duplicate, and when it came.
    duplicate_record: u64,
    duplicate_ns: i64,
}

impl Pending {
    fn report(&mut self, record: u64, t_ns: i64) {
        self.duplicates = self.duplicates.saturating_add(1);
        self.duplicate_record = record;
        self.duplicate_ns = t_ns;
    }
}

/// What is known of the path when a verdict falls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// Least round-trip time seen from the capture point.
    pub min_rtt_ns: Option<i64>,
    /// The capture stands at the receiver of this direction, so what it shows has arrived.
    pub at_receiver: bool,
}

/// Entries looked through, newest first, for a report of a duplicate that begins where no entry does.
const SEARCHED: usize = 256;

/// Verdicts that wait for their time.
#[derive(Debug, Default)]
pub struct Verdicts {
    pending: VecDeque<Pending>,
    /// Number of the entry for the range that starts at a position, counted from the first entry ever.
    by_start: HashMap<i64, u64>,
    /// Entries that have left.
    gone: u64,
}

impl Verdicts {
    /// Puts a delivered range on the list, if it was retransmitted.
    pub fn add(&mut self, range: &Range, delivered_ns: i64, echo: Option<u32>, wait_ns: i64) {
        if range.copies.is_none() {
            return;
        }
        self.by_start
            .insert(range.start, self.gone + self.pending.len() as u64);
        self.pending.push_back(Pending {
            range: *range,
            delivered_ns,
            echo,
            deadline_ns: delivered_ns.saturating_add(wait_ns),
            duplicates: 0,
            duplicate_record: 0,
            duplicate_ns: 0,
        });
    }

    /// Takes note of a DSACK block.
    pub fn duplicate(&mut self, left: i64, right: i64, record: u64, t_ns: i64) {
        let mut at = left;
        while let Some(&number) = self.by_start.get(&at).filter(|_| at < right) {
            let Some(pending) = self.pending.get_mut((number - self.gone) as usize) else {
                return;
            };
            pending.report(record, t_ns);
            at = pending.range.end.max(at + 1);
        }
        if at == left {
            let touches =
                |pending: &&mut Pending| pending.range.start < right && left < pending.range.end;
            self.pending
                .iter_mut()
                .rev()
                .take(SEARCHED)
                .filter(touches)
                .for_each(|pending| pending.report(record, t_ns));
        }
    }

    /// Passes judgement on what is due at `now_ns`.
    pub fn due(
        &mut self,
        now_ns: i64,
        history: &mut History,
        path: Path,
        whose: Whose,
        events: &mut Vec<Event>,
    ) {
        while let Some(front) = self
            .pending
            .front()
            .filter(|front| front.deadline_ns <= now_ns)
        {
            judge(front, history, path, whose, events);
            history.free(front.range.copies);
            let (start, number) = (front.range.start, self.gone);
            if self.by_start.get(&start) == Some(&number) {
                self.by_start.remove(&start);
            }
            self.pending.pop_front();
            self.gone += 1;
        }
    }
}

/// The transmissions of one range, oldest first.
struct Transmissions<'a> {
    range: &'a Range,
    /// Retransmissions, oldest first.
    repeats: Vec<&'a Copy>,
    copies: usize,
}

impl<'a> Transmissions<'a> {
    fn new(range: &'a Range, history: &'a History) -> Self {
        let mut repeats: Vec<&Copy> = history.chain(range.copies).collect();
        repeats.reverse();
        Self {
            range,
            copies: repeats.len(),
            repeats,
        }
    }

    /// Retransmission `number`, from 1.
    fn copy(&self, number: usize) -> Option<&'a Copy> {
        self.repeats.get(number.checked_sub(1)?).copied()
    }

    /// Transmission `number`, 0 being the first.
    fn at(&self, number: usize) -> Transmission {
        self.copy(number)
            .map_or(self.range.first, |copy| copy.transmission)
    }
}

/// An acknowledgement that comes sooner than the least round-trip time over this is not due to a transmission.
///
/// RFC 3708 and RFC 8985 §6.2 take the whole of it; a path may become shorter between samples, so half is taken.
const EARLY_DIVISOR: i64 = 2;

/// The transmission that arrived first, and what shows it where it is not the last.
fn delivered(pending: &Pending, all: &Transmissions<'_>, path: Path) -> (usize, Reason) {
    let (mut arrived, mut proof) = (all.copies, Reason::None);
    if pending.range.state == State::Delivered {
        return (0, Reason::AlreadyAcknowledged);
    }
    if path.at_receiver && !pending.range.first_unseen {
        return (0, Reason::SeenAtReceiver);
    }
    if let Some(ts_ecr) = pending.echo {
        while let Some(ts_val) = (arrived > 0).then(|| all.at(arrived).ts_val).flatten() {
            if ts_ecr.wrapping_sub(ts_val) as i32 >= 0 {
                break;
            }
            proof = Reason::EarlierEchoed { ts_ecr, ts_val };
            arrived -= 1;
        }
    }
    if let Some(min_rtt_ns) = path.min_rtt_ns {
        while arrived > 0 {
            let after_ns = pending.delivered_ns - all.at(arrived).t_ns;
            if after_ns >= min_rtt_ns / EARLY_DIVISOR {
                break;
            }
            proof = Reason::TooEarly {
                after_ns,
                min_rtt_ns,
            };
            arrived -= 1;
        }
    }
    if pending.duplicates > 0 {
        // In order, the copy that came second was sent later than the one that arrived first.
        let by_report = all.copies.saturating_sub(usize::from(pending.duplicates));
        if by_report < arrived {
            arrived = by_report;
            proof = Reason::Dsack {
                record: pending.duplicate_record,
            };
        }
    }
    if pending.range.first_unseen {
        arrived = arrived.max(1);
    }
    (arrived, proof)
}

fn judge(pending: &Pending, history: &History, path: Path, whose: Whose, events: &mut Vec<Event>) {
    let all = Transmissions::new(&pending.range, history);
    let (arrived, proof) = delivered(pending, &all, path);
    let repair = all.at(arrived);
    let why = Reason::RepairedBy {
        record: repair.record,
        after_ns: pending.delivered_ns - repair.t_ns,
    };
    for number in 0..=all.copies {
        if number < arrived {
            lost(&all, number, why, whose, events);
        }
        if unreported(pending, &all, arrived, path, number) {
            let why = Reason::NotReported {
                record: pending.duplicate_record,
            };
            lost(&all, number, why, whose, events);
        }
        if let Some(copy) = all.copy(number).filter(|copy| copy.lead) {
            let needless = number > arrived;
            let proof = if needless { proof } else { Reason::None };
            events.push(retransmission(copy, needless, proof, whose));
        }
    }
}

/// Whether transmission `number`, needless as it was, is known to be lost all the same: the receiver reported the
/// arrival of one copy besides the first, and a later one must have been it.
fn unreported(
    pending: &Pending,
    all: &Transmissions<'_>,
    arrived: usize,
    path: Path,
    number: usize,
) -> bool {
    if pending.duplicates != 1 || number <= arrived {
        return false;
    }
    let latest_ns = pending.duplicate_ns - path.min_rtt_ns.unwrap_or(0) / EARLY_DIVISOR;
    (number + 1..=all.copies).any(|later| all.at(later).t_ns <= latest_ns)
}

/// The event of one retransmission.
pub fn retransmission(copy: &Copy, needless: bool, proof: Reason, whose: Whose) -> Event {
    let cause = if needless {
        EventCause::Spurious
    } else {
        copy.cause
    };
    let evidence = Evidence {
        reason: copy.reason,
        proof,
    };
    Event {
        record: Some(copy.transmission.record),
        seq_start: Some(copy.seq_start),
        seq_end: Some(copy.seq_end),
        ..whose.event(
            EventKind::Retransmission,
            cause,
            copy.transmission.t_ns,
            evidence,
        )
    }
}

/// The event of the loss of transmission `number`, if it speaks for its segment.
fn lost(
    all: &Transmissions<'_>,
    number: usize,
    why: Reason,
    whose: Whose,
    events: &mut Vec<Event>,
) {
    let (range, transmission) = (all.range, all.at(number));
    let lead = all.copy(number).map_or(range.lead, |copy| copy.lead);
    if !lead {
        return;
    }
    let unseen = number == 0 && range.first_unseen;
    let why = match why {
        Reason::RepairedBy { record, .. } if unseen => Reason::NeverCaptured {
            revealed_by: transmission.record,
            filled_by: record,
        },
        _ => why,
    };
    let (start, end) = all.copy(number).map_or((range.start, range.end), |copy| {
        (copy.seq_start, copy.seq_end)
    });
    events.push(Event {
        record: (!unseen).then_some(transmission.record),
        seq_start: Some(start),
        seq_end: Some(end),
        ..whose.event(EventKind::Loss, EventCause::Unknown, transmission.t_ns, why)
    });
}

/// The end of the capture for a range that was never acknowledged cumulatively: transmissions older than `newest`,
/// the newest known to have arrived, were lost beyond dispute, and so was what left a gap that a later segment filled.
/// All retransmissions become events.
pub fn unrepaired(
    range: &Range,
    history: &History,
    newest: Transmission,
    whose: Whose,
    events: &mut Vec<Event>,
) {
    let all = Transmissions::new(range, history);
    let arrived = range.state == State::Delivered;
    for number in 0..=all.copies {
        if number == 0 && range.first_unseen {
            let record = all.at(1).record;
            let why = Reason::RepairedBy {
                record,
                after_ns: 0,
            };
            lost(&all, number, why, whose, events);
        } else if range.state == State::Outstanding && all.at(number).record < newest.record {
            let delivered = newest.record;
            lost(
                &all,
                number,
                Reason::NeverRepaired { delivered },
                whose,
                events,
            );
        }
        if let Some(copy) = all.copy(number).filter(|copy| copy.lead) {
            let proof = if arrived {
                Reason::AlreadyAcknowledged
            } else {
                Reason::None
            };
            events.push(retransmission(copy, arrived, proof, whose));
        }
    }
}

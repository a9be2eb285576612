//! The transmission of a retransmitted range that arrived first: timestamps (RFC 3522), the minimum RTT, DSACKs (RFC
//! 3708), the order of arrival, and without SACK jumps of the cumulative ACK show it.

use super::arrival_order::Duplicate;
use super::knowledge::{Knowledge, Path};
use super::{PendingRange, Transmissions};
use crate::cause::REO_WND_DIVISOR;
use crate::evidence::Reason;
use crate::jump::Arrived;
use crate::scoreboard::{State, Transmission};

/// A transmission that is followed by the ACK within the minimum RTT divided by this did not cause it.
///
/// RFC 3708 and RFC 8985 §6.2 use the minimum RTT. The path can become shorter between samples, hence half of it.
const EARLY_DIVISOR: i64 = 2;

/// Which transmission of a range arrived first.
pub(super) struct Verdict {
    /// Its number.
    pub(super) arrived: usize,
    /// The proof, if it is not the last one.
    pub(super) proof: Reason,
    /// What the receiver reported as duplicates.
    pub(super) reported: Reported,
    /// The transmissions of which each may be the one instead.
    unclear: std::ops::Range<usize>,
}

impl Verdict {
    pub(super) fn new(
        pending: &PendingRange,
        all: &Transmissions<'_>,
        known: &Knowledge<'_>,
    ) -> Self {
        let (arrived, proof) = first_arrived(pending, all, known);
        let reported = Reported::new(pending, all, arrived, known);
        Self {
            arrived,
            proof,
            reported,
            unclear: unclear(pending, all, (arrived, proof, reported), known.path),
        }
    }

    /// Why the fate of transmission `number` is undecided, if it is.
    pub(super) fn undecided(&self, pending: &PendingRange, number: usize) -> Option<Reason> {
        if self.unclear.contains(&number) {
            let record = pending.delivered_by.record;
            return Some(Reason::MissingAck { record });
        }
        // Without SACK, no ACK reports a duplicate.
        if number > self.arrived && !pending.delivered_by.sack && pending.dsacks == 0 {
            return Some(Reason::NoSack);
        }
        let discarded = pending.discarded_by.is_none() && number == 0 && self.arrived > 0;
        let maybe = pending.maybe_discarded_by.filter(|_| discarded)?;
        Some(Reason::MaybeDiscarded { record: maybe })
    }

    /// Whether transmission `number` was spurious, if that is known.
    pub(super) fn spurious(&self, number: usize) -> Option<bool> {
        let shown = self.arrived < self.unclear.end && !self.unclear.contains(&number);
        let known = self.unclear.is_empty() || number <= self.unclear.start || shown;
        known.then_some(number > self.arrived)
    }
}

/// The number of the transmission that arrived first, and the proof if it is not the last one.
fn first_arrived(
    pending: &PendingRange,
    all: &Transmissions<'_>,
    known: &Knowledge<'_>,
) -> (usize, Reason) {
    let (mut arrived, mut proof, path) = (all.last(), Reason::None, known.path);
    if pending.range.state == State::Delivered {
        return (0, Reason::AlreadyAcknowledged);
    }
    if let Arrived::Before(filled_by) = pending.arrived
        && !pending.range.first_not_captured
    {
        let record = filled_by.record;
        return (0, Reason::JumpedOver { record });
    }
    while arrived > 0
        && let Some(echoed) = pending.earlier_echo(&all.transmission(arrived))
    {
        proof = echoed;
        arrived -= 1;
    }
    if let Some(min_rtt_ns) = path.min_rtt_ns {
        while arrived > pending.lost_before() {
            let after_ns = pending
                .delivered_by
                .t_ns
                .saturating_sub(all.transmission(arrived).t_ns);
            if after_ns >= min_rtt_ns / EARLY_DIVISOR
                || pending.is_echoed(all, arrived)
                || (known.reports_duplicates && is_on_shorter_path(pending, all, arrived, path))
            {
                break;
            }
            proof = Reason::TooEarly {
                after_ns,
                min_rtt_ns,
            };
            arrived -= 1;
        }
    }
    if pending.dsacks > 0 {
        // Without reordering, a duplicate was sent later than the transmission that arrived first.
        let by_dsack = all.last().saturating_sub(usize::from(pending.dsacks));
        let by_dsack = last_unanswered(pending, all, by_dsack).unwrap_or(by_dsack);
        let by_dsack = if pending.dsack_record == pending.delivered_by.record {
            by_dsack.min(last_before_silence(pending, all, path))
        } else {
            by_dsack
        };
        if by_dsack < arrived {
            arrived = by_dsack;
            let record = pending.dsack_record;
            proof = if pending.reported_again {
                Reason::ReportedAgain { record }
            } else {
                Reason::Dsack { record }
            };
        }
    }
    if let Some((in_order, record)) = in_order_of_path(pending, all, arrived, known) {
        arrived = in_order;
        proof = Reason::Overtaking { record };
    }
    if pending.range.first_not_captured {
        arrived = arrived.max(1);
    }
    (arrived, proof)
}

/// Whether the evidence contradicts itself: without SACK, duplicate ACKs show that a transmission arrived, or that the
/// path is shorter, but the ACK came sooner than the samples allow. Other things cause duplicate ACKs, too.
pub(super) fn contradicts_rtt(pending: &PendingRange, all: &Transmissions<'_>, path: Path) -> bool {
    let Some((min_ns, shortest_ns)) = path.min_rtt_ns.zip(path.shortest_rtt_ns) else {
        return false;
    };
    let (by, lost) = (pending.delivered_by, pending.lost_before());
    let after_ns = |number| by.t_ns.saturating_sub(all.transmission(number).t_ns);
    let arrived = (1..=all.last()).rev().find(|&number| {
        let possible = number <= lost || after_ns(number) >= shortest_ns / EARLY_DIVISOR;
        possible && pending.earlier_echo(&all.transmission(number)).is_none()
    });
    let too_early = arrived.is_some_and(|number| {
        after_ns(number) < min_ns / EARLY_DIVISOR && !pending.is_echoed(all, number)
    });
    let by_count = matches!(pending.arrived, Arrived::InOrder | Arrived::Partial);
    too_early && !by.sack && by_count
}

/// Whether a timeout sent transmission `number`, or the recovery from one, over a path that became shorter since the
/// range was delivered, by more than the reordering window (RFC 8985 §6.2). Nothing had arrived for a timeout, and what
/// has been measured on a new path may contain a queue: it bounds the path from above only. For a receiver that reports
/// duplicates: it reported none, so the transmission was none.
fn is_on_shorter_path(
    pending: &PendingRange,
    all: &Transmissions<'_>,
    number: usize,
    path: Path,
) -> bool {
    let after_timeout = all.retransmission(number).is_some_and(|entry| {
        matches!(
            entry.reason,
            Reason::TimerExpired { .. } | Reason::AfterTimeout { .. }
        )
    });
    let shorter = path
        .min_rtt_ns
        .zip(pending.delivered_by.min_rtt_ns)
        .is_some_and(|(now_ns, before_ns)| now_ns < before_ns - before_ns / REO_WND_DIVISOR);
    shorter && after_timeout && pending.dsacks == 0
}

/// The last transmission up to `latest` that was sent before the last ACK that is missing, if the ACK of octets below
/// acknowledged the range as well. It had arrived before, and the receiver answers at once what arrives above a hole,
/// with a SACK block (RFC 5681 §4.2, RFC 2018 §4): that ACK is missing.
fn last_unanswered(
    pending: &PendingRange,
    all: &Transmissions<'_>,
    latest: usize,
) -> Option<usize> {
    let by = pending.delivered_by;
    let missed_ns = by.missed_ns.filter(|_| {
        let above_hole = by.flight.0 < pending.range.start;
        by.sack && by.block.is_none() && above_hole
    })?;
    let unanswered = |&number: &usize| all.transmission(number).t_ns < missed_ns;
    (0..=latest).rev().find(unanswered)
}

/// The last transmission up to `arrived` that fits the order of its path, if `arrived` does not, and the record of the
/// segment that `arrived` would have overtaken.
fn in_order_of_path(
    pending: &PendingRange,
    all: &Transmissions<'_>,
    arrived: usize,
    known: &Knowledge<'_>,
) -> Option<(usize, u64)> {
    let by = (pending.delivered_by.record, pending.delivered_by.t_ns);
    let sent = all.transmission(arrived);
    let later = known.overtaken(&sent, by);
    // What counts as lost because a retransmission sent after it was delivered is not, if that was a duplicate.
    let earliest = later.map_or(0, |_| pending.lost_before());
    let overtaken = later.or_else(|| known.overtaken_duplicate(&sent, by))?;
    if pending.is_echoed(all, arrived) {
        return None;
    }
    let fits = |&number: &usize| {
        let captured = number > 0 || !pending.range.first_not_captured;
        let sent = all.transmission(number);
        let late = pending.before.follows_overtaken(&sent, &known.duplicates);
        let in_order = || late.unwrap_or_else(|| known.overtaken(&sent, by).is_none());
        captured && in_order() && known.overtaken_duplicate(&sent, by).is_none()
    };
    let in_order = (earliest..arrived).rev().find(fits)?;
    Some((in_order, overtaken))
}

/// The transmissions of a range, repeated in a silence, of which each may have arrived first, its ACK being lost.
///
/// A retransmission that is lost and an ACK that is lost explain a silence with one retransmission before the last
/// either way: the original arrived, or that retransmission did. With more than one, or with more in flight, one break
/// of the path explains all if the original arrived. Without SACK, nothing reports a duplicate, so IPv4 IDs must show
/// that an ACK is missing, which may also be one of a segment above.
fn unclear(
    pending: &PendingRange,
    all: &Transmissions<'_>,
    (arrived, proof, reported): (usize, Reason, Reported),
    path: Path,
) -> std::ops::Range<usize> {
    let before = last_before_silence(pending, all, path);
    let last = all.last();
    if pending.delivered_by.sack {
        // DSACKs that come separately report one duplicate each.
        let ends_silence =
            pending.dsacks == 1 && pending.dsack_record == pending.delivered_by.record;
        let by_dsack = matches!(proof, Reason::Dsack { .. }) && arrived == before;
        let duplicate = reported.one().unwrap_or(last);
        let one_in_flight = pending.is_flight() && arrived + 2 == duplicate;
        let either = ends_silence && by_dsack && one_in_flight;
        return if either { arrived..duplicate } else { 0..0 };
    }
    let shown = before < pending.lost_before() || before >= arrived;
    if pending.delivered_by.missing_acks == 0 || shown {
        return 0..0;
    }
    let end = if pending.is_flight() {
        arrived
    } else {
        before + 1
    };
    before..end
}

/// The number of the last transmission that was sent before a silence that the delivering ACK ends.
///
/// If that ACK reports a duplicate, it shows that a transmission had arrived before and that its ACK was lost. A
/// receiver answers each retransmission at once (RFC 5681 §4.2), so that one which arrived in the silence would have
/// needed a path that broke, worked and lost an ACK again. If the path broke once, what arrived was sent before. Later
/// than a minimum RTT after the last ACK, a timer triggers what is sent. If that is true of the original transmission,
/// the application paused, and nothing was in flight.
fn last_before_silence(pending: &PendingRange, all: &Transmissions<'_>, path: Path) -> usize {
    let ack = pending.delivered_by;
    let Some(min_rtt_ns) = path.min_rtt_ns else {
        return all.last();
    };
    let silent_ns = ack.previous_ns.saturating_add(min_rtt_ns);
    if all.transmission(0).t_ns > silent_ns {
        return all.last();
    }
    (1..=all.last())
        .find(|&number| all.transmission(number).t_ns > silent_ns)
        .map_or(all.last(), |number| number - 1)
}

/// The only retransmission of a range if it is known to have arrived after the original transmission: the receiver
/// reported it as a duplicate, and it was younger than the minimum RTT when the octets had arrived, or what was sent before
/// it was still on its way. On a path that became shorter, an original that is overtaken would be reported as well; if a
/// segment sent once overtook the retransmission, the path became shorter while that was on its way.
pub(super) fn late_duplicate(
    pending: &PendingRange,
    all: &Transmissions<'_>,
    arrived: usize,
    known: &Knowledge<'_>,
) -> Option<Duplicate> {
    if (arrived, all.last(), pending.dsacks) != (0, 1, 1) {
        return None;
    }
    let (sent, by) = (all.transmission(1), &pending.delivered_by);
    if pending.newest_at_dsack > sent.record {
        return None;
    }
    let too_young = by.t_ns.saturating_sub(sent.t_ns) < known.path.min_rtt_ns?;
    let overtakes = known.overtakes(&sent, (by.record, by.t_ns));
    (too_young || overtakes).then_some(Duplicate {
        sent,
        reported_ns: pending.dsack_ns,
        original: all.transmission(0),
        original_ns: by.t_ns,
    })
}

/// The number of the transmission after `arrived` that the ACK with the DSACK echoes.
fn named_duplicate(
    pending: &PendingRange,
    all: &Transmissions<'_>,
    arrived: usize,
) -> Option<usize> {
    (arrived + 1..=all.last()).find(|&spurious| {
        pending.dsack_ecr.is_some() && all.transmission(spurious).ts_val == pending.dsack_ecr
    })
}

/// Which of the transmissions after the one that arrived the receiver reported as duplicates.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reported {
    /// None.
    None,
    /// This one.
    One(usize),
    /// Several.
    Several,
}

impl Reported {
    /// A duplicate that ends at the left edge of the window has its timestamp echoed (RFC 7323 §4.3), so the echo may name
    /// the only one that was reported; else it was the last one that can have arrived.
    fn new(
        pending: &PendingRange,
        all: &Transmissions<'_>,
        arrived: usize,
        known: &Knowledge<'_>,
    ) -> Self {
        match pending.dsacks {
            0 => return Self::None,
            1 => {}
            _ => return Self::Several,
        }
        if let Some(duplicate) = named_duplicate(pending, all, arrived) {
            return Self::One(duplicate);
        }
        let min_rtt_ns = known.path.min_rtt_ns.unwrap_or(0);
        let latest_ns = (pending.dsack_ns).saturating_sub(min_rtt_ns / EARLY_DIVISOR);
        let by = (pending.dsack_record, pending.dsack_ns);
        let possible = |&number: &usize| {
            let sent = all.transmission(number);
            sent.t_ns <= latest_ns && !known.overtakes(&sent, by)
        };
        let last = (arrived + 1..=all.last()).rev().find(possible);
        Self::One(last.unwrap_or(arrived + 1))
    }

    /// The only one.
    fn one(self) -> Option<usize> {
        match self {
            Self::One(number) => Some(number),
            Self::None | Self::Several => None,
        }
    }

    /// Whether the spurious transmission `number` was lost nevertheless: the only report is of a later one.
    pub(super) fn is_of_later(self, number: usize) -> bool {
        self.one().is_some_and(|reported| number < reported)
    }

    /// Whether nothing reports the spurious transmission `number`: there is no report, or the only one is of an earlier
    /// transmission.
    pub(super) fn lacks(self, number: usize) -> bool {
        match self {
            Self::None => true,
            Self::One(reported) => number > reported,
            Self::Several => false,
        }
    }
}

/// Whether the capture has the answer to `sent`, a spurious retransmission, if it arrived: a transmission sent later
/// is known to have arrived, and the IDs of the ACKs skip none since the one before the octets were acknowledged.
pub(super) fn is_answer_captured(
    pending: &PendingRange,
    sent: &Transmission,
    known: &Knowledge<'_>,
) -> bool {
    let before = pending.delivered_by.ids_skipped_before;
    before.is_some() && before == known.ids_skipped && sent.record < known.newest.record
}

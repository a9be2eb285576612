//! What the capture shows of the ranges that were not acknowledged by its end.

use super::{FlowDirection, Path, Transmissions, add_fate, add_loss, retransmission_event};
use crate::evidence::Reason;
use crate::retransmissions::Retransmissions;
use crate::rows::{Event, EventCause, EventKind};
use crate::scoreboard::{Range, State, Transmission};

/// Decides on a range that was not acknowledged by the end of the capture.
///
/// Transmissions older than `newest`, the last sent one that was delivered, were lost, and so was what left a gap that
/// a retransmission filled. Of the others, nothing is known.
pub fn decide_unacknowledged(
    range: &Range,
    log: &Retransmissions,
    newest: Transmission,
    path: Path,
    flow: FlowDirection,
    events: &mut Vec<Event>,
) {
    let all = Transmissions::new(range, log);
    let delivered = range.state == State::Delivered;
    let outstanding = range.state == State::Outstanding;
    let mut all_lost = true;
    for number in 0..=all.last() {
        let entry = all.retransmission(number);
        if let Some(entry) = all.captured(number) {
            let (spurious, proof) = if delivered {
                (Some(true), Reason::AlreadyAcknowledged)
            } else {
                (all_lost.then_some(false), Reason::None)
            };
            events.push(retransmission_event(entry, spurious, proof, flow));
        }
        let not_captured = entry.map_or(range.first_not_captured, |entry| entry.not_captured);
        if not_captured {
            let record = all.transmission(all.last()).record;
            let after_ns = 0;
            let reason = Reason::RetransmittedAs { record, after_ns };
            add_loss(&all, number, reason, flow, events);
        } else if outstanding && !path.at_receiver {
            all_lost &= all.transmission(number).record < newest.record;
            if all_lost {
                let delivered = newest.record;
                let reason = Reason::NeverAcknowledged { delivered };
                add_loss(&all, number, reason, flow, events);
            } else if path.acknowledged {
                let reason = Reason::CaptureEnds;
                add_fate(EventKind::Undecided, &all, number, reason, flow, events);
            }
        }
    }
}

/// Adds the losses of a gap that is open at the end of a capture at the receiver: the original transmissions of its
/// octets, in segments of `smss_bytes`. Later ones may have been lost as well; nothing shows them. If the segments are
/// not known, or are more than `max_losses`, only the first one is named, and what else was sent of the octets is
/// undecided. Returns the number of losses.
pub fn decide_open_gap(
    range: &Range,
    smss_bytes: i64,
    max_losses: i64,
    flow: FlowDirection,
    events: &mut Vec<Event>,
) -> i64 {
    if range.captured() {
        return 0;
    }
    let revealed_by = range.first.record;
    let gap_event = |kind, (start, end), copy, reason| Event {
        seq_start: Some(start),
        seq_end: Some(end),
        copy,
        ..flow.event(kind, EventCause::Unknown, range.first.t_ns, reason)
    };
    let smss = smss_bytes.max(1);
    let segments_n = (range.end - range.start + smss - 1) / smss;
    let unknown = range.unknown_segments || segments_n > max_losses.max(1);
    let losses_n = if unknown { 1 } else { segments_n };
    for number in 0..losses_n {
        let start = range.start + number * smss;
        let segment = (start, range.end.min(start + smss));
        let reason = Reason::GapOpen { revealed_by };
        events.push(gap_event(EventKind::Loss, segment, Some(1), reason));
    }
    if unknown {
        let octets = (range.start, range.end);
        let reason = Reason::UnknownSegments { revealed_by };
        events.push(gap_event(EventKind::Undecided, octets, None, reason));
    }
    losses_n
}

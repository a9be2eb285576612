//! The transmission of a retransmitted range that arrived first: timestamps (RFC 3522), the minimum RTT, DSACKs (RFC 3708),
//! and without SACK jumps of the cumulative ACK show it.

use super::{Path, PendingRange, Transmissions};
use crate::evidence::Reason;
use crate::jump::Arrived;
use crate::scoreboard::State;

/// A transmission that is followed by the ACK within the minimum RTT divided by this did not cause it.
///
/// RFC 3708 and RFC 8985 §6.2 use the minimum RTT. The path can become shorter between samples, hence half of it.
const EARLY_DIVISOR: i64 = 2;

/// The number of the transmission that arrived first, and the proof if it is not the last one.
pub(super) fn first_arrived(
    pending: &PendingRange,
    all: &Transmissions<'_>,
    path: Path,
) -> (usize, Reason) {
    let (mut arrived, mut proof) = (all.last(), Reason::None);
    if pending.range.state == State::Delivered {
        return (0, Reason::AlreadyAcknowledged);
    }
    if let Arrived::Before(filled_by) = pending.arrived
        && !pending.range.first_not_captured
    {
        let record = filled_by.record;
        return (0, Reason::JumpedOver { record });
    }
    if let Some(ts_ecr) = pending.ts_ecr {
        while let Some(ts_val) = (arrived > 0)
            .then(|| all.transmission(arrived).ts_val)
            .flatten()
        {
            if ts_ecr.wrapping_sub(ts_val) as i32 >= 0 {
                break;
            }
            proof = Reason::EarlierEchoed { ts_ecr, ts_val };
            arrived -= 1;
        }
    }
    if let Some(min_rtt_ns) = path.min_rtt_ns {
        let oldest = match pending.arrived {
            Arrived::Repaired(lost) => lost as usize,
            _ => 0,
        };
        while arrived > oldest {
            let after_ns = pending.delivered_by.t_ns - all.transmission(arrived).t_ns;
            if after_ns >= min_rtt_ns / EARLY_DIVISOR || pending.is_echoed(all, arrived) {
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
        let by_dsack = by_dsack.min(last_before_silence(pending, all, path));
        if by_dsack < arrived {
            arrived = by_dsack;
            proof = Reason::Dsack {
                record: pending.dsack_record,
            };
        }
    }
    if pending.range.first_not_captured {
        arrived = arrived.max(1);
    }
    (arrived, proof)
}

/// The number of the last transmission that was sent before a silence, if the ACK that ends it reports a duplicate.
///
/// Such an ACK says that a transmission had arrived before and that its ACK was lost. A receiver answers each
/// retransmission at once (RFC 5681 §4.2), so that one which arrived in the silence would have needed a path that broke, worked
/// and lost an ACK again. If the path broke once, what arrived was sent before. Later than a minimum RTT after the last
/// ACK, a timer triggers what is sent. If that is true of the original transmission, the application paused, and nothing
/// was in flight.
fn last_before_silence(pending: &PendingRange, all: &Transmissions<'_>, path: Path) -> usize {
    let ack = pending.delivered_by;
    let (true, Some(min_rtt_ns)) = (pending.dsack_record == ack.record, path.min_rtt_ns) else {
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

/// Whether the spurious transmission `number` was lost nevertheless: the receiver reported one duplicate, and another
/// transmission caused it. A duplicate that ends at the left edge of the window has its timestamp echoed (RFC 7323 §4.3), so
/// the echo may name it; else it was the last one that can have arrived.
pub(super) fn is_unreported(
    pending: &PendingRange,
    all: &Transmissions<'_>,
    arrived: usize,
    path: Path,
    number: usize,
) -> bool {
    if pending.dsacks != 1 || number <= arrived {
        return false;
    }
    let duplicate = (arrived + 1..=all.last()).find(|&spurious| {
        pending.dsack_ecr.is_some() && all.transmission(spurious).ts_val == pending.dsack_ecr
    });
    if let Some(duplicate) = duplicate {
        return number != duplicate;
    }
    let latest_ns = pending.dsack_ns - path.min_rtt_ns.unwrap_or(0) / EARLY_DIVISOR;
    (number + 1..=all.last()).any(|later| all.transmission(later).t_ns <= latest_ns)
}

//! Go-back-N: without SACK, a sender repeats segment after segment from the first hole on, also those that have arrived
//! (RFC 5681 §3.1, RFC 6582 §3.2). Downstream of a loss, missing IPv4 IDs show which of these retransmissions were
//! lost.

use std::collections::BTreeMap;

use super::{Sender, Sent};
use crate::cause::{DUP_THRESH, REO_WND_DIVISOR, mechanism};
use crate::evidence::Reason;
use crate::loss::{self, FlowDirection};
use crate::retransmissions::Retransmission;
use crate::rows::{Event, EventCause, Vantage};
use crate::scoreboard::{Arrival, Range, Transmission};

/// Maximum number of acknowledged segments of which the number of transmissions is kept.
const MAX_KEPT: usize = 1 << 12;

/// Losses that gaps at the end of any capture may have.
const MIN_OPEN: i64 = 1 << 8;

/// The number of transmissions of segments that were delivered and sent more than once, by their first octet.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Repeated {
    counts: BTreeMap<i64, u32>,
}

impl Repeated {
    /// Transmissions of the delivered segment at `start`.
    pub(super) fn count(&self, start: i64) -> u32 {
        self.counts.get(&start).copied().unwrap_or(1)
    }

    /// Sets the number of transmissions of the segment at `start`.
    pub(super) fn set(&mut self, start: i64, count: u32) {
        if self.counts.len() >= MAX_KEPT {
            self.counts.pop_first();
        }
        self.counts.insert(start, count);
    }

    /// Adds the retransmissions of a segment that is delivered: again, if a SACK block reported it before.
    pub(super) fn add_all(&mut self, arrival: &Arrival<'_>) {
        let (start, again) = (arrival.range.start, arrival.retransmissions_n);
        if again > 0 {
            self.set(start, self.count(start) + again);
        }
    }

    /// The segments that begin within `start..end`.
    pub(super) fn within(&self, start: i64, end: i64) -> impl Iterator<Item = i64> {
        let known = (start < end).then(|| self.counts.range(start..end));
        known.into_iter().flatten().map(|(&start, _)| start)
    }

    /// Adds a transmission of the segment at `start`. Returns its number.
    pub(super) fn add(&mut self, start: i64) -> u32 {
        let count = self.count(start) + 1;
        self.set(start, count);
        count
    }
}

/// Acknowledged octets that a retransmission jumped over.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct SkippedOctets {
    from: i64,
    to: i64,
    above: Transmission,
    /// Segments captured above them since.
    segments_above: u32,
}

/// How far a sender has come that goes back, as its timestamps show, and what it jumped over.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Skipped {
    /// The last retransmission sent, of those captured, and the end of the highest one since the sender went back.
    last_sent: Transmission,
    high_rxt: i64,
    /// Octets that reordering may still bring, fewer than DupThresh ranges.
    octets: Vec<SkippedOctets>,
}

impl Sender {
    /// Adds the retransmissions that were lost between the last one captured and `sent`, which may be new data: the
    /// sender repeats segments in order, and as many packets are missing as there are segments between the two.
    pub(super) fn lost_in_go_back_n(
        &mut self,
        sent: &Sent,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        let Some((_, resent_to)) = self.last_resent else {
            return;
        };
        let counted =
            self.vantage == Vantage::Receiver && !self.sack_in_use && self.counts_missing();
        let (nxt, recent) = (self.board.snd_nxt(), i64::from(self.missing.recent()));
        // New data follow the last repetition, so that those lost leave a gap.
        let gap_bytes = (sent.start - nxt).max(0);
        let is_rest = |&go_back_n_end: &i64| {
            let segments_n = self
                .board
                .segments_in(go_back_n_end - resent_to + gap_bytes);
            segments_n > 0 && segments_n == recent
        };
        let ends = if sent.start >= nxt {
            [self.go_back_n_end(resent_to), nxt]
        } else {
            [sent.start; 2]
        };
        let whole = ends.into_iter().find(is_rest);
        // With all acknowledged, a sender that has data sends it at once, so that in a silence new data were lost.
        let timer = self.max_timeouts(sent.transmission.t_ns) > 0;
        if !counted || (timer && self.board.snd_una() >= nxt) {
            return;
        }
        let sent_at = &sent.transmission;
        if let Some(end) = whole {
            self.lose_go_back_n(sent_at, (resent_to, end), flow, events);
        } else {
            let gap_segments = self.board.segments_in(gap_bytes);
            let parts = self.parts_of_jump(sent, resent_to, recent - gap_segments);
            let Some(parts) = parts.filter(|_| !timer) else {
                return;
            };
            for part in parts {
                self.lose_go_back_n(sent_at, part, flow, events);
            }
        }
        self.last_resent = None;
    }

    /// Without SACK and IDs that count: notes which octets the retransmissions jumped over from the `previous` one to
    /// `entry`, of those that have been acknowledged since. The ACK that `entry` echoes shows where SND.UNA was, and
    /// from there on the sender retransmits segment after segment. New data come last.
    pub(super) fn note_skipped(&mut self, entry: &Retransmission, previous: Option<(i64, i64)>) {
        let sent = &entry.transmission;
        let went_back = self.order.sent_later(sent, &self.skipped.last_sent) == Some(true);
        if entry.seq_start < self.skipped.high_rxt && !went_back {
            // Reordered: it was sent before what has arrived.
            return;
        }
        let high_rxt = std::mem::replace(&mut self.skipped.high_rxt, entry.seq_end);
        self.skipped.last_sent = *sent;
        let una_when_sent = self.upstream.una_when_sent(sent.t_ns);
        let (Some((_, resent_to)), Some(una_when_sent)) = (previous, una_when_sent) else {
            return;
        };
        let from = high_rxt.max(resent_to).max(una_when_sent);
        let to = entry.seq_start.min(self.board.snd_una());
        let reordered = self.row.out_of_order_segments > 0;
        if from < to && entry.seq_start < self.timeout_point && !reordered {
            self.skipped.octets.push(SkippedOctets {
                from,
                to,
                above: *sent,
                segments_above: 0,
            });
        }
    }

    /// Decides at `now_ns` on what retransmissions jumped over: it was lost if it has not arrived within the reordering
    /// window of a quarter of the minimum RTT, nor before DupThresh segments (RFC 8985 §6.2). A segment `start..end` is
    /// captured now.
    pub(super) fn decide_skipped(
        &mut self,
        now_ns: i64,
        (start, end): (i64, i64),
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        if self.skipped.octets.is_empty() {
            return;
        }
        let window_ns = self.path_min_rtt_ns() / REO_WND_DIVISOR;
        for mut octets in std::mem::take(&mut self.skipped.octets) {
            let in_time = now_ns - octets.above.t_ns <= window_ns;
            octets.segments_above += u32::from(start >= octets.to);
            // The retransmission above them was the first.
            if !in_time || octets.segments_above + 1 >= DUP_THRESH {
                self.lose_go_back_n(&octets.above, (octets.from, octets.to), flow, events);
            } else if start >= octets.to || end <= octets.from {
                self.skipped.octets.push(octets);
            }
        }
    }

    /// What a sender retransmitted before `sent`, in `segments_n` segments: it stopped above `resent_to` because an ACK
    /// jumped over the rest, and continued from SND.UNA.
    fn parts_of_jump(
        &self,
        sent: &Sent,
        resent_to: i64,
        segments_n: i64,
    ) -> Option<[(i64, i64); 2]> {
        let (una, nxt) = (self.board.snd_una(), self.board.snd_nxt());
        let continued_to = sent.start.min(self.go_back_n_end(una));
        let below = segments_n - self.board.segments_in(continued_to - una);
        let stopped_at = resent_to + below * self.board.smss_bytes().max(1);
        let in_order = sent.start < nxt || continued_to < nxt;
        let continued = una == continued_to || (una < continued_to && in_order);
        let jumped = una > resent_to && continued;
        let end = una.min(self.go_back_n_end(resent_to));
        let possible = segments_n > 0 && below >= 0 && stopped_at <= end;
        (jumped && possible).then_some([(resent_to, stopped_at), (una, continued_to)])
    }

    /// The end of what a sender that has come to `resent_to` repeats: what was sent after the timeout is not repeated
    /// (RFC 5682 §3.1 step 2: two segments). If another timeout followed that the capture does not show, it is SND.NXT.
    pub(super) fn go_back_n_end(&self, resent_to: i64) -> i64 {
        if resent_to < self.timeout_point {
            self.timeout_point
        } else {
            self.board.snd_nxt()
        }
    }

    /// Adds a retransmission of each segment of `from..to` that was lost before `sent`.
    pub(super) fn lose_go_back_n(
        &mut self,
        sent: &Transmission,
        (from, to): (i64, i64),
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        let (smss, una) = (self.board.smss_bytes().max(1), self.board.snd_una());
        let mut start = from;
        while start < to {
            let end = to.min(start + smss);
            let entry = lost_entry(sent, (start, end), false);
            if end <= una {
                let copy = self.repeated.add(start);
                events.push(loss::missing_event(&entry, copy, flow));
                self.missing.explain(1);
            } else {
                let captured = self.board.add_not_captured(start, end, &entry);
                let holes = u32::from(self.board.add_lost_to_hole(&entry));
                self.missing.explain(captured + holes);
            }
            start = end;
        }
    }
}

impl Sender {
    /// Maximum number of losses in gaps that are open at the end: [`MIN_OPEN`], or as many as the capture shows
    /// segments with data. A damaged segment may lie 2 GiB ahead, and those before may have one octet each.
    pub(super) fn max_open_losses(&self) -> i64 {
        i64::try_from(self.row.data_segments)
            .unwrap_or(i64::MAX)
            .max(MIN_OPEN)
    }

    /// Whether a gap that is open at the end, at `now_ns`, of a capture at the receiver was lost. Reordering fills it
    /// within the reordering window: at most a round trip, and a quarter of the minimum, or the arrival of DupThresh
    /// segments, if there has been none (RFC 8985 §6.2 steps 4 and 5).
    pub(super) fn is_lost_gap(&self, gap: &Range, now_ns: i64) -> bool {
        let above_bytes = self.board.snd_nxt() - gap.end;
        let reordered = self.row.out_of_order_segments > 0;
        let dup_thresh_bytes = i64::from(DUP_THRESH) * self.board.smss_bytes();
        let window_ns = if reordered {
            self.path_srtt_ns()
        } else {
            self.path_min_rtt_ns() / REO_WND_DIVISOR
        };
        self.vantage == Vantage::Receiver
            && (now_ns - gap.first.t_ns > window_ns
                || (!reordered && above_bytes >= dup_thresh_bytes))
    }
}

/// A retransmission of the octets from `start` to before `end` that was lost just before `sent`.
pub(super) fn lost_entry(
    sent: &Transmission,
    (start, end): (i64, i64),
    sack: bool,
) -> Retransmission {
    let (cause, reason) = (EventCause::Unknown, Reason::MissingId);
    Retransmission {
        transmission: *sent,
        seq_start: start,
        seq_end: end,
        cause,
        reason,
        mechanism: mechanism(cause, reason, sack),
        primary: true,
        not_captured: true,
    }
}

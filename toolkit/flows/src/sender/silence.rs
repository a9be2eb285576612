//! Downstream of a loss, with SACK and IPv4 IDs that the sender increments: the retransmissions that were lost in a silence.
//!
//! What is missing in a silence was the end of the flight, a tail loss probe, and the retransmissions that timeouts sent of one
//! segment. When new data arrive, the gap below them is the end of the flight, and the rest was sent again.

use super::walk::lost_entry;
use super::{Sender, Sent};
use crate::loss::{self, FlowDirection};
use crate::missing::timeouts;
use crate::retransmissions::Retransmission;
use crate::rows::Event;

/// What is missing in the last silence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    /// The retransmission that ended it.
    entry: Retransmission,
    /// Packets missing that nothing explains so far.
    lost: u32,
    /// Retransmissions of that segment that there may have been before, less those explained: one for each timeout, and in
    /// recovery one before.
    max_repeats: u32,
    /// The sender was not in recovery, so that it may have sent a probe (RFC 8985 §7.2).
    probed: bool,
}

impl Sender {
    /// Begins to account for a silence that `entry` ended, in which `lost` packets are missing besides `explained`
    /// retransmissions. The sender may have been in `recovery`.
    pub(super) fn begin_account(
        &mut self,
        entry: &Retransmission,
        explained: u32,
        lost: u32,
        recovery: bool,
    ) {
        let upstream_ns = self
            .upstream
            .rtt
            .min_ns()
            .unwrap_or_else(|| self.upstream_rtt_ns());
        let min_rto_ns = self.rtt.min_rto_ns().saturating_add(upstream_ns);
        let waited_ns = entry.transmission.t_ns - self.last_send_ns;
        let timeouts = timeouts(waited_ns, min_rto_ns).saturating_sub(1);
        self.progress.silence = (lost > 0).then_some(Silence {
            entry: *entry,
            lost,
            max_repeats: (timeouts + u32::from(recovery)).saturating_sub(explained),
            probed: !recovery,
        });
    }

    /// Ends the account with `sent`, the first new data, which reveal a gap from `gap_start` on: what is missing besides it were
    /// retransmissions of the segment that ended the silence, one for each timeout, and then a probe, which repeats the last
    /// segment (RFC 8985 §7.3). If more is missing, nothing shows what it was.
    pub(super) fn end_account(
        &mut self,
        sent: &Sent,
        gap_start: i64,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        let Some(silence) = self.progress.silence.take() else {
            return;
        };
        let smss = self.board.smss_bytes().max(1);
        let gap_segments = self.board.segments_in(sent.start - gap_start);
        let again = i64::from(silence.lost) - gap_segments;
        let (repeats, probes) = (i64::from(silence.max_repeats), i64::from(silence.probed));
        let head = silence.entry;
        // Short segments would make more packets.
        let whole = (sent.start - gap_start) % smss == 0;
        if gap_segments <= 0 || !whole || !(1..=repeats + probes).contains(&again) {
            return;
        }
        let repeated = again.min(repeats) as u32;
        if repeated > 0 && head.seq_end <= self.board.snd_una() {
            let copy = self.repeated.count(head.seq_start);
            for number in copy..copy + repeated {
                events.push(loss::missing_event(&head, number, flow));
            }
            self.repeated.set(head.seq_start, copy + repeated);
        }
        if again > repeats {
            let probe = lost_entry(sent, (gap_start, sent.start), true);
            self.board.add_lost_to_gap_end(sent.start, &probe);
        }
    }
}

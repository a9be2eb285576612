//! Downstream of a loss, with IPv4 IDs that the sender increments: the retransmissions that were lost in a silence.
//!
//! What is missing in a silence was the end of the flight, a tail loss probe, the retransmissions that timeouts sent of
//! the oldest segment, and without SACK the rest of what was being repeated. When new data arrive, the gap below them
//! is the end of the flight, and the rest was sent again.

use super::go_back_n::lost_entry;
use super::{Sender, Sent};
use crate::cause::{CaState, DUP_THRESH};
use crate::loss::{self, FlowDirection};
use crate::missing::timeouts;
use crate::retransmissions::Retransmission;
use crate::rows::{Event, Vantage};

/// What the sender was doing when a silence began.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) enum Before {
    /// No recovery, so that it may have sent a probe (RFC 8985 §7.2).
    Open,
    /// Recovery with SACK, in which it may have repeated the oldest segment once.
    Recovery,
    /// Without SACK, it had still to repeat these octets before new data.
    GoBackN(i64, i64),
}

/// What is missing in the last silence.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Silence {
    /// The retransmission that ended it.
    entry: Retransmission,
    before: Before,
    /// Packets missing that nothing explains so far.
    lost: u32,
    /// Those explained as retransmissions that timeouts sent, by the time of the silence alone.
    by_timer: u32,
    /// Retransmissions of that segment that there may have been before, less those explained: one for each timeout, and
    /// in recovery one before.
    max_repeats: u32,
    /// Packets missing since the silence that nothing explained when it ended.
    unexplained: u32,
}

/// A silence that a retransmission ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct SilenceEnd<'a> {
    /// That retransmission.
    pub(super) entry: &'a Retransmission,
    /// Retransmissions of its octets that are known to be missing.
    pub(super) explained: u32,
    /// Packets missing besides.
    pub(super) lost: u32,
    /// End of the retransmission before, if no new data came after it.
    pub(super) resent_to: Option<i64>,
}

impl Sender {
    /// The largest number of timeouts since the last packet, at `now_ns`.
    pub(super) fn max_timeouts(&self, now_ns: i64) -> u32 {
        let upstream_ns = self.upstream_min_rtt_ns();
        let min_rto_ns = self.rtt.min_rto_ns().saturating_add(upstream_ns);
        timeouts(now_ns.saturating_sub(self.last_send_ns), min_rto_ns)
    }

    /// The time from the last packet to a probe, which restarts the timer (RFC 8985 §7.2: two round trips), at least.
    /// Outside of recovery with SACK, it precedes the first timeout.
    pub(super) fn probe_timeout_ns(&self) -> i64 {
        if self.sack_in_use && self.ca_state == CaState::Open {
            self.shortest_round_trip_ns().saturating_mul(2)
        } else {
            0
        }
    }

    /// Without SACK, the number of timeouts in a silence that a retransmission captured at `now_ns` ends: as many as
    /// fit, and at least one, which sent it. The last ACK of new data restarted the timer (RFC 6298 §5.3). It reached
    /// the sender half of the minimum round trip between capture point and sender after it was captured, and what the
    /// last timeout sent took the other half.
    ///
    /// Deviation: a stack may have a longer RTO (RFC 6298 §2.4: at least 1 s). It is assumed to be the shortest one:
    /// SRTT and the minimum that is added to it. With a longer one, fewer timeouts fit.
    fn likely_timeouts(&self, now_ns: i64) -> u32 {
        let since_ns = self.timer_restart_ns.min(self.last_send_ns);
        let waited_ns = now_ns
            .saturating_sub(since_ns)
            .saturating_sub(self.upstream_min_rtt_ns());
        timeouts(waited_ns, self.shortest_rto_ns()).max(1)
    }

    /// The RTO of a stack at the shortest round trip that is possible now.
    fn shortest_rto_ns(&self) -> i64 {
        let variation_ns = self.rtt.min_rto_ns() - self.rtt.srtt_ns().unwrap_or(0);
        self.shortest_round_trip_ns().saturating_add(variation_ns)
    }

    /// Begins to account for a silence that `entry` ended, in which `lost` packets are missing besides `explained`
    /// retransmissions, of which timeouts sent the latter number. A timer repeats the oldest segment (RFC 6298 §5.4), so
    /// what is above it was not repeated in the silence.
    pub(super) fn begin_account(
        &mut self,
        entry: &Retransmission,
        (explained, by_timer): (u32, u32),
        lost: u32,
        before: Before,
    ) {
        let now_ns = entry.transmission.t_ns;
        let timeouts = if self.sack_in_use {
            let probe_ns = if before == Before::Open {
                self.probe_timeout_ns()
            } else {
                0
            };
            self.max_timeouts(now_ns.saturating_sub(probe_ns))
        } else {
            self.likely_timeouts(now_ns)
        };
        // The last one sent `entry`.
        let timeouts = timeouts.saturating_sub(1);
        let again = timeouts + u32::from(before == Before::Recovery);
        let oldest = entry.seq_start <= self.board.snd_una();
        self.progress.silence = (lost + by_timer > 0 && oldest).then_some(Silence {
            entry: *entry,
            before,
            lost,
            by_timer,
            max_repeats: again.saturating_sub(explained),
            unexplained: self.missing.unexplained_since(entry.transmission.t_ns),
        });
    }

    /// Names the packets that are missing in a silence without SACK, as far as the silence itself shows what they were:
    /// first the rest of what the sender was retransmitting, then the end of the flight, then a retransmission of the
    /// same segment by each timeout but the last one. What it does not show, new data may show later. Returns the
    /// number of the latter retransmissions.
    pub(super) fn lost_in_silence_without_sack(
        &mut self,
        silence: &SilenceEnd<'_>,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) -> u32 {
        let entry = silence.entry;
        if silence.lost == 0 || !self.is_silent(entry.transmission.t_ns) {
            return 0;
        }
        let resent_to = silence.resent_to.or(self.f_rto_ended_at);
        let rest = resent_to.map(|from| (from, self.go_back_n_end(from)));
        let rest = rest.filter(|(from, end)| from < end);
        if let Some(retransmitted) = self.lost_as_silence_shows(silence, rest, flow, events) {
            self.progress.lost_at_end = 0;
            return retransmitted;
        }
        let before = match rest {
            Some((from, end)) => Before::GoBackN(from, end),
            None if self.ca_state != CaState::Open || self.dup_acks >= DUP_THRESH => {
                Before::Recovery
            }
            None => Before::Open,
        };
        self.begin_account(entry, (silence.explained, 0), silence.lost, before);
        0
    }

    /// The same if the silence shows what all of them were, where the sender had still to retransmit the octets `rest`;
    /// else `None`.
    fn lost_as_silence_shows(
        &mut self,
        silence: &SilenceEnd<'_>,
        rest: Option<(i64, i64)>,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) -> Option<u32> {
        let (entry, una) = (silence.entry, self.board.snd_una());
        let oldest = entry.seq_start <= una && entry.seq_end > una;
        // RFC 5682 §3.1 step 2: F-RTO sends new data before it retransmits more.
        let f_rto = matches!(self.ca_state, CaState::Loss { f_rto_acks, .. } if f_rto_acks > 0);
        if !oldest || f_rto {
            return None;
        }
        // The last one sent `entry`.
        let timeouts = self.likely_timeouts(entry.transmission.t_ns) - 1;
        let retransmitted = timeouts.saturating_sub(silence.explained).min(silence.lost);
        let left = silence.lost - retransmitted;
        let in_loss = matches!(self.ca_state, CaState::Loss { .. });
        let (from, end) = rest.filter(|_| in_loss).unwrap_or((0, 0));
        let rest_segments = self.board.segments_in(end - from);
        if i64::from(left) < rest_segments {
            // The window did not let it come to new data.
            let to = from + i64::from(left) * self.board.smss_bytes().max(1);
            self.lose_go_back_n(&entry.transmission, (from, to), flow, events);
            self.missing.explain(retransmitted);
            return Some(retransmitted);
        }
        let at_end = left - rest_segments as u32;
        if timeouts > 0 || !self.open_end_of_flight(at_end, entry.transmission) {
            return None;
        }
        self.lose_go_back_n(&entry.transmission, (from, end), flow, events);
        Some(0)
    }

    /// Whether packets that are missing count at `now_ns`, and none was captured for a round trip.
    fn is_silent(&self, now_ns: i64) -> bool {
        let counted = self.vantage == Vantage::Receiver && self.counts_missing();
        counted && now_ns - self.last_send_ns >= self.path_srtt_ns()
    }

    /// Keeps the account of a silence before new data that continue the sequence explain all that is missing.
    pub(super) fn account_before_clear(&mut self) {
        if let Some(silence) = &mut self.progress.silence {
            let left = self
                .missing
                .unexplained_since(silence.entry.transmission.t_ns);
            silence.unexplained = silence.unexplained.saturating_sub(left);
        }
    }

    /// Ends the account with `sent`, the first new data, which reveal a gap from `gap_start` on: what is missing
    /// besides it were retransmissions of the segment that ended the silence, one for each timeout, and then a probe,
    /// which repeats the last segment (RFC 8985 §7.3), or the rest of what was being repeated. If more is missing,
    /// nothing shows what it was. If less is, fewer timeouts expired in the silence, as the application paused.
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
        let since_ns = silence.entry.transmission.t_ns;
        // The gap has been explained. Retransmissions of holes since the silence may have explained more.
        let left = i64::from(self.missing.unexplained_since(since_ns)) + gap_segments;
        let elsewhere = (i64::from(silence.unexplained) - left).max(0);
        let rest = match silence.before {
            Before::GoBackN(start, end) => (start, end),
            _ => (0, 0),
        };
        let probes = i64::from(silence.before == Before::Open && self.sack_in_use);
        let repeats = i64::from(silence.max_repeats);
        let besides_gap = i64::from(silence.lost) - elsewhere - gap_segments;
        let too_many = besides_gap.min(0).unsigned_abs();
        let too_many = u32::try_from(too_many).unwrap_or(u32::MAX);
        self.take_repeats(&silence.entry, too_many.min(silence.by_timer));
        let mut resent_segments = self.board.segments_in(rest.1 - rest.0);
        // New data were lost before the sender had repeated all: what it repeated for certain is lost.
        let broken_off = gap_segments > 0 && besides_gap < resent_segments;
        if gap_segments == 0 || broken_off {
            let at_most = besides_gap - besides_gap.min(repeats);
            resent_segments = resent_segments.min(at_most);
        }
        let again = besides_gap - resent_segments;
        // Short segments would make more packets.
        let whole = (sent.start - gap_start) % smss == 0;
        let shown = gap_segments > 0 || !self.sack_in_use;
        if !shown || !whole || !(0..=repeats + probes).contains(&again) {
            return;
        }
        let repeated = if broken_off {
            0
        } else {
            again.min(repeats) as u32
        };
        // Once more has been repeated, the rest of go-back-N is no longer the last that was sent of its segments.
        let head = (silence.entry.seq_start, silence.entry.seq_end);
        if resent_segments > 0 && self.last_resent == Some(head) {
            let end = rest.1.min(rest.0 + resent_segments * smss);
            self.lose_go_back_n(&sent.transmission, (rest.0, end), flow, events);
        }
        self.lose_repeats(&silence.entry, repeated, flow, events);
        if again > repeats {
            let probe = lost_entry(&sent.transmission, (gap_start, sent.start), true);
            self.board.add_lost_to_gap_end(sent.start, &probe);
            self.missing.explain(1);
        }
    }

    /// Takes off up to `count` retransmissions that were lost before the one in `head`, as long as nothing is decided.
    fn take_repeats(&mut self, head: &Retransmission, count: u32) {
        let start = head.seq_start;
        if head.seq_end > self.board.snd_una() {
            // The capture has no ACK of it.
            self.board.take_lost_before_last(start, count);
            return;
        }
        let log = self.board.log_mut();
        let taken = self.losses.take_lost_before_last(start, count, log);
        if taken > 0 {
            let copies = self.repeated.count(start);
            self.repeated
                .set(start, copies.saturating_sub(taken).max(1));
        }
    }

    /// Adds `count` retransmissions that were lost before the one in `head`, which arrived.
    fn lose_repeats(
        &mut self,
        head: &Retransmission,
        count: u32,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        self.missing.explain(count);
        if head.seq_end > self.board.snd_una() {
            // The capture has no ACK of it.
            self.board.add_lost_before_last(head, count);
        } else if count > 0 {
            let copy = self.repeated.count(head.seq_start);
            for number in copy..copy + count {
                events.push(loss::missing_event(head, number, flow));
            }
            self.repeated.set(head.seq_start, copy + count);
        }
    }
}

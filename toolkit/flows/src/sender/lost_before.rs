//! Downstream of a loss: the retransmissions that were lost before the capture point, as a captured one of the same
//! octets shows.
//!
//! The number of those missing comes first, of a hole or of octets that had arrived; then each of them is named.

use super::Sender;
use super::silence::SilenceEnd;
use crate::cause::DUP_THRESH;
use crate::evidence::Reason;
use crate::loss::FlowDirection;
use crate::missing::timeouts;
use crate::retransmissions::Retransmission;
use crate::rows::{Event, Vantage};
use crate::scoreboard::{Range, Transmission};

/// The retransmissions of a segment that are missing before one that was captured.
struct Missing {
    count: u32,
    /// Time between them.
    round_ns: i64,
    reason: Reason,
    /// When a retransmission was captured that shows the first of them.
    shown_ns: Option<i64>,
    /// When each would have been captured, about, as far as that is known.
    times_ns: Vec<i64>,
}

impl Missing {
    const NONE: Self = Self {
        count: 0,
        round_ns: 0,
        reason: Reason::None,
        shown_ns: None,
        times_ns: Vec::new(),
    };
}

/// A retransmission of the octets of `entry` that was lost at `t_ns`.
fn lost_at(entry: &Retransmission, t_ns: i64, reason: Reason) -> Retransmission {
    Retransmission {
        transmission: Transmission {
            t_ns,
            ..entry.transmission
        },
        not_captured: true,
        reason,
        ..*entry
    }
}

/// Removes the one of `times_ns` that is nearest to `t_ns`.
fn remove_nearest(times_ns: &mut Vec<i64>, t_ns: i64) {
    let nearest = (0..times_ns.len()).min_by_key(|&index| times_ns[index].abs_diff(t_ns));
    if let Some(index) = nearest {
        times_ns.remove(index);
    }
}

impl Sender {
    /// Retransmissions that were lost before the capture point, as the retransmission `entry` shows. If it fills a
    /// hole, that is `gap`.
    pub(super) fn lost_before_capture(
        &mut self,
        entry: &Retransmission,
        gap: Option<Range>,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) -> Vec<Retransmission> {
        let now_ns = entry.transmission.t_ns;
        let previous = self.last_resent.replace((entry.seq_start, entry.seq_end));
        let previous_ns = std::mem::replace(&mut self.last_resent_ns, now_ns);
        let in_silence = self.missing.recent();
        let gap = gap.map(|gap| self.retract_lost(entry, gap));
        if self.max_timeouts(now_ns) > 0 {
            self.progress.silence_end_ns = now_ns;
            let informed_ns = self.upstream.informed_until_ns(now_ns);
            self.passes
                .end_silence(self.last_send_ns, now_ns, informed_ns);
        }
        self.lost_between(entry, previous);
        if self.vantage == Vantage::Receiver && !self.sack_in_use && !self.counts_missing() {
            self.note_skipped(entry, previous);
        }
        let repeats_arrived = std::mem::replace(&mut self.progress.repeats_arrived, gap.is_none());
        let unaware = gap.is_none() || repeats_arrived;
        if let Some((_, resent_to)) = previous.filter(|_| unaware) {
            self.lost_between_duplicates(entry, resent_to, flow, events);
        }
        let (missing, explained) = match &gap {
            Some(gap) => self.missing_of_hole(entry, gap, previous_ns, previous.is_none()),
            None => self.missing_of_duplicate(entry),
        };
        let end = SilenceEnd {
            entry,
            explained,
            lost: in_silence.saturating_sub(explained),
            resent_to: previous.map(|(_, resent_to)| resent_to),
        };
        let again = if self.sack_in_use {
            0
        } else {
            self.lost_in_silence_without_sack(&end, flow, events)
        };
        self.f_rto_ended_at = None;
        let (rounds, at_once) = match gap {
            Some(_) => (missing.count, again),
            None => (missing.count + again, 0),
        };
        let in_rounds = (1..=i64::from(rounds)).rev().map(|round| {
            lost_at(
                entry,
                now_ns.saturating_sub(round.saturating_mul(missing.round_ns)),
                missing.reason,
            )
        });
        let in_silence = (0..at_once).map(|_| lost_at(entry, now_ns, Reason::MissingId));
        in_rounds.chain(in_silence).collect()
    }

    /// Without SACK, a sender retransmits all segments after a timeout: adds those lost between the `previous` one and
    /// `entry`.
    fn lost_between(&mut self, entry: &Retransmission, previous: Option<(i64, i64)>) {
        if self.sack_in_use {
            return;
        }
        if let Some((from, end)) = previous
            && from >= self.board.snd_una()
            && end < entry.seq_start
        {
            let lost = lost_at(entry, entry.transmission.t_ns, entry.reason);
            self.board.add_not_captured(end, entry.seq_start, &lost);
        }
    }

    /// What is missing before a retransmission of octets captured before, and how many of the packets missing in the
    /// silence that it ends this explains. It comes after a timeout, of which the ACK was lost.
    fn missing_of_duplicate(&mut self, entry: &Retransmission) -> (Missing, u32) {
        let now_ns = entry.transmission.t_ns;
        if !self.sack_in_use {
            self.passes.push(entry.seq_start, entry.transmission, None);
        }
        let rto_ns = self.rtt.rto_ns().saturating_add(self.upstream_rtt_ns());
        let count = if self.counts_missing() && self.vantage == Vantage::Receiver {
            let waited_ns = now_ns - self.last_send_ns - self.probe_timeout_ns();
            let expired = timeouts(waited_ns.max(0), rto_ns).saturating_sub(1);
            expired.min(self.missing.recent())
        } else {
            0
        };
        self.missing.explain(count);
        self.expect_lost_flight(entry, count, false);
        let missing = Missing {
            count,
            round_ns: rto_ns,
            reason: Reason::MissingId,
            ..Missing::NONE
        };
        (missing, count)
    }

    /// The same before a retransmission that fills the hole `gap`. The last one before was captured at `previous_ns`,
    /// and `after_new` data came since.
    fn missing_of_hole(
        &mut self,
        entry: &Retransmission,
        gap: &Range,
        previous_ns: i64,
        after_new: bool,
    ) -> (Missing, u32) {
        let counted = self.counts_missing() && self.vantage == Vantage::Receiver;
        let silent = entry.transmission.t_ns - self.last_send_ns >= self.path_srtt_ns();
        if counted && self.sack_in_use {
            self.lost_in_recovery(entry, gap, previous_ns);
        }
        let mut missing = self.lost_of_hole(entry, gap, previous_ns);
        if missing.count == 0 && previous_ns < gap.first.t_ns {
            self.sample_repair(&entry.transmission, gap);
        }
        self.progress.was_repeated = missing.count > 0 || gap.retransmissions.is_some();
        self.progress.resend_hole(entry.seq_end, silent);
        // None could come within a round trip after the hole was revealed.
        let round_ns = self.shortest_round_trip_ns();
        let earliest_ns = gap.first.t_ns.saturating_add(round_ns);
        let first_shown = missing.count > 0
            && missing
                .shown_ns
                .is_some_and(|shown_ns| self.missing.explain_shown_in(earliest_ns, shown_ns));
        let mut explained = u32::from(first_shown);
        let others = missing.times_ns.iter().skip(explained as usize);
        for &t_ns in others {
            let half_ns = missing.round_ns / 2;
            explained += u32::from(self.missing.explain_sent_at(earliest_ns, t_ns, half_ns));
        }
        self.missing.explain(missing.count - explained);
        if counted && self.sack_in_use {
            let at_end = gap.first.record == entry.transmission.record;
            if at_end {
                self.progress.lost_again = self.progress.after_timeout.take_lost();
                missing.count += self.progress.lost_again;
            } else if entry.seq_start <= self.board.snd_una() {
                self.time_out_at_hole(entry.transmission.t_ns, self.progress.was_repeated);
            }
            self.expect_lost_flight(entry, missing.count, !at_end);
        }
        if counted && !self.sack_in_use && missing.count == 0 && after_new && !silent {
            self.lost_before_oldest_hole(entry);
        }
        // What other retransmissions passed was lost before the silence.
        let passed = matches!(missing.reason, Reason::Passed { .. });
        let explained = if passed { 0 } else { missing.count };
        (missing, explained)
    }

    /// Retransmissions of the hole `gap` that were lost before the one in `entry`. The last retransmission before was
    /// captured at `previous_ns`.
    fn lost_of_hole(&mut self, entry: &Retransmission, gap: &Range, previous_ns: i64) -> Missing {
        let (start, sent) = (entry.seq_start, &entry.transmission);
        // A retransmission that is known to be lost was sent after the hole was revealed.
        let revealed_ns = self.board.last_transmission(gap).t_ns.max(gap.first.t_ns);
        let rto_ns = self.rtt.rto_ns().saturating_add(self.upstream_rtt_ns());
        let counted = self.counts_missing();
        let max_count = if counted {
            self.missing.unexplained()
        } else {
            u32::MAX
        };
        if gap.first.record == sent.record {
            // In order, but the ID shows that the octets had been sent: they were at the end of a flight.
            let before = if self.sack_in_use {
                self.progress.after_timeout.take_by_timer().min(max_count)
            } else {
                // The RTO may be longer: one that is missing was the rest of the flight.
                let expired = timeouts(sent.t_ns - revealed_ns, rto_ns).saturating_sub(1);
                expired.min(max_count.saturating_sub(1))
            };
            return Missing {
                count: before,
                round_ns: rto_ns,
                reason: Reason::MissingId,
                ..Missing::NONE
            };
        }
        let rtt_ns = self.sack_in_use.then_some(self.path_srtt_ns());
        let passed = self
            .passes
            .lost_before(start, gap.first.t_ns, sent, (rtt_ns, &self.order));
        self.passes.push(start, *sent, Some(revealed_ns));
        if let Some(until_ns) = self.uninformed_until_ns(sent.t_ns, gap) {
            return self.lost_of_unknown_hole(sent, until_ns, max_count);
        }
        if let Some(passed) = passed {
            let known = self.board.log().iter(gap.retransmissions).count() as u32;
            let head = start <= self.board.snd_una();
            let in_silence = if head && !counted {
                timeouts(sent.t_ns - self.last_send_ns, rto_ns).saturating_sub(1)
            } else {
                0
            };
            let count = (passed.count + in_silence)
                .saturating_sub(known)
                .min(max_count);
            let mut times_ns = passed.times_ns;
            for one in self.board.log().iter(gap.retransmissions) {
                remove_nearest(&mut times_ns, one.transmission.t_ns);
            }
            times_ns.truncate(count as usize);
            return Missing {
                count,
                round_ns: passed.round_ns,
                reason: Reason::Passed {
                    record: passed.passed_by,
                },
                shown_ns: (known == 0).then_some(passed.passed_ns),
                times_ns,
            };
        }
        self.lost_of_late_hole(entry, revealed_ns, previous_ns)
    }

    /// Retransmissions, at most `max_count`, that were lost before `sent`, of a hole that the sender did not know of,
    /// as the last ACK that it may have received came at `until_ns`: only timeouts can have retransmitted it.
    fn lost_of_unknown_hole(&self, sent: &Transmission, until_ns: i64, max_count: u32) -> Missing {
        let srtt_ns = self.path_srtt_ns();
        let rto_ns = self.rtt.rto_ns().saturating_add(self.upstream_rtt_ns());
        let after_ns = sent.t_ns - until_ns;
        let expired = timeouts(after_ns - srtt_ns, rto_ns).saturating_sub(1);
        let reason = if self.counts_missing() {
            Reason::MissingId
        } else {
            Reason::RepairedLate {
                after_ns,
                rtt_ns: srtt_ns,
            }
        };
        Missing {
            count: expired.min(max_count),
            round_ns: rto_ns,
            reason,
            ..Missing::NONE
        }
    }

    /// Retransmissions that were lost before `entry`, of a hole that the sender knew of, as the hole was filled late.
    ///
    /// The oldest hole is filled first, within a round trip, unless the retransmission was lost. Then it is repeated
    /// after another round trip (RFC 8985 §6.2), or after a timeout if no ACK came back. Without SACK, it is the oldest
    /// one only when all below are acknowledged (RFC 6582 §3.2: a partial ACK).
    fn lost_of_late_hole(
        &mut self,
        entry: &Retransmission,
        revealed_ns: i64,
        previous_ns: i64,
    ) -> Missing {
        let now_ns = entry.transmission.t_ns;
        let counted = self.counts_missing();
        let srtt_ns = self.path_srtt_ns();
        let rto_ns = self.rtt.rto_ns().saturating_add(self.upstream_rtt_ns());
        let revealed_ns = if self.sack_in_use {
            revealed_ns
        } else {
            revealed_ns
                .max(self.timer_restart_ns)
                .max(self.dup_thresh_ns)
        };
        let waited_ns = now_ns - revealed_ns - srtt_ns;
        // After a silence, a timer expired, although the sender had known of the hole.
        let silent = counted && now_ns - self.last_send_ns >= srtt_ns;
        let alone = previous_ns < revealed_ns
            || (counted && !self.board.has_other_gap(entry.seq_start, entry.seq_end))
            || (silent && self.sack_in_use);
        let known = self.sack_in_use || (counted && self.dup_acks >= DUP_THRESH);
        let oldest = entry.seq_start <= self.board.snd_una() && known && srtt_ns > 0;
        // Without timestamps, nothing shows how long a queue before the capture point makes the round trip.
        let measured = self.upstream.rtt.srtt_ns().is_some()
            || self.repairs.rtt_ns().is_some()
            || now_ns - self.last_send_ns >= rto_ns;
        // Without SACK, only a timeout repeats what recovery repeated (RFC 6582 §3.2).
        let expired = if silent && self.sack_in_use {
            self.timeouts_in_silence(now_ns)
        } else {
            timeouts(waited_ns, rto_ns)
        };
        let in_time = waited_ns < self.shortest_round_trip_ns()
            || (!self.sack_in_use && !silent && expired == 0);
        if !oldest || !alone || !measured || in_time {
            if oldest && counted && !self.sack_in_use {
                self.expect_end_of_flight(entry);
            }
            return Missing::NONE;
        }
        let count = expired.max(1);
        Missing {
            count: count.min(self.max_missing_since(revealed_ns, previous_ns)),
            round_ns: waited_ns / i64::from(count),
            reason: Reason::RepairedLate {
                after_ns: now_ns - revealed_ns,
                rtt_ns: srtt_ns,
            },
            ..Missing::NONE
        }
    }

    /// Without SACK, what is missing just before `entry`, a retransmission of the oldest hole that came in time, is new
    /// data, if no other hole shows them.
    fn expect_end_of_flight(&mut self, entry: &Retransmission) {
        let other = self.board.has_other_gap(entry.seq_start, entry.seq_end);
        if !other && self.missing.recent() > 0 {
            self.progress.lost_at_end = self.missing.recent();
        }
    }

    /// Maximum number of missing retransmissions of a hole that was revealed at `revealed_ns`. None could come before,
    /// nor, with SACK, before the first one of a hole below (RFC 6675 §5: the oldest first), the last of which came at
    /// `previous_ns`.
    fn max_missing_since(&self, revealed_ns: i64, previous_ns: i64) -> u32 {
        if !self.counts_missing() {
            return u32::MAX;
        }
        let below_ns = if self.sack_in_use && !self.progress.was_repeated {
            previous_ns + 1
        } else {
            i64::MIN
        };
        let earliest_ns = below_ns.max(revealed_ns + self.shortest_round_trip_ns());
        self.missing.unexplained_since(earliest_ns)
    }
}

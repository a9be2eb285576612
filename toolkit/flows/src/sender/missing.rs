//! Downstream of a loss, with IPv4 IDs that the sender increments: what the packets were that are missing.
//!
//! A packet that is missing was new data, or a retransmission. New data that are missing leave a gap once newer data
//! arrive; at the end of a flight they do not, and are repeated as data that seem new. All others were retransmissions
//! of holes, the oldest first (RFC 6675 §5).

use super::after_timeout::AfterTimeout;
use super::go_back_n::lost_entry;
use super::silence::{Before, Silence};
use super::{Sender, Sent};
use crate::cause::CaState;
use crate::evidence::Reason;
use crate::retransmissions::Retransmission;
use crate::rows::Vantage;
use crate::scoreboard::{Range, Transmission};

/// How far a sender has come with new data and retransmissions.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Progress {
    /// End of the last retransmission of a hole, lost before the capture point or not.
    pub(super) last_rxt: i64,
    /// HighRxt: the highest of these since the last silence (RFC 6675 §2).
    pub(super) high_rxt: i64,
    /// A retransmission of the last hole that was filled had been lost before.
    pub(super) was_repeated: bool,
    /// When the last silence ended in which a timer can have expired.
    pub(super) silence_end_ns: i64,
    /// The last retransmission repeated octets that had arrived.
    pub(super) repeats_arrived: bool,
    /// Time of the last new data.
    pub(super) last_new_ns: i64,
    /// Without SACK, segments at the end of a flight that were lost and not repeated yet.
    pub(super) lost_at_end: u32,
    /// With SACK, the last segment repeated the end of a flight.
    pub(super) repeats_end: bool,
    /// Start of the last end of a flight that was opened, and when.
    pub(super) end_opened: Option<(i64, i64)>,
    /// With SACK, what the sender retransmits after a timeout.
    pub(super) after_timeout: AfterTimeout,
    /// Lost retransmissions of the last segment that no timeout sent.
    pub(super) lost_again: u32,
    /// The last silence, until new data show what the packets were that are missing in it.
    pub(super) silence: Option<Silence>,
}

impl Progress {
    /// Takes the number of lost retransmissions of the last segment that no timeout sent.
    pub(super) fn take_lost_again(&mut self) -> u32 {
        std::mem::take(&mut self.lost_again)
    }

    /// Notes the retransmission of a hole up to `end`. After a silence, a sender repeats all holes again (RFC 6298
    /// §5.4).
    pub(super) fn resend_hole(&mut self, end: i64, silent: bool) {
        self.last_rxt = end;
        self.high_rxt = if silent { end } else { self.high_rxt.max(end) };
    }
}

/// Whether the sender may have repeated a hole, of which the last transmission is given: it had received ACKs up to
/// `latest_ns`, of a segment above the hole, or of one sent after its last retransmission. By F-RTO, it repeats what its
/// last transmission passed.
pub(super) fn known_by(latest_ns: i64, f_rto: bool) -> impl Fn(&Range, &Transmission) -> bool {
    move |hole, last| {
        let followed_ns = match hole.retransmissions {
            None if !f_rto => hole.passed_ns,
            _ => last.t_ns,
        };
        followed_ns <= latest_ns
    }
}

impl Sender {
    /// Whether missing IDs count the lost packets of this sender.
    pub fn counts_missing(&self) -> bool {
        self.one_way && self.order.ids_count()
    }

    /// Processes the ID of the packet that completes the handshake, the number `packets` after the SYN. Of more than
    /// one, the first is the ACK, no data.
    pub fn complete_handshake(&mut self, ip_id: Option<u16>, packets: u16) {
        let in_step = self.order.observe_handshake(ip_id, packets);
        if packets == 1 {
            self.order.observe(ip_id);
        } else if in_step {
            self.missing.explain(1);
        }
    }

    /// Processes whether the ID of `sent` steps as its sequence number has it, if `sent` is new, and nothing else can
    /// be missing just before it: outside recovery, without a silence after which a timer may have repeated segments.
    pub(super) fn observe_id(&mut self, sent: &Sent) {
        let nxt = self.board.snd_nxt();
        if self.vantage != Vantage::Receiver || !self.one_way || sent.start < nxt {
            return;
        }
        let recent = i64::from(self.missing.recent());
        if recent == self.board.segments_in(sent.start - nxt) {
            self.order.observe_new(true);
        } else if sent.start == nxt && self.is_undisturbed(sent) {
            self.order.observe_new(false);
        }
    }

    /// Whether no retransmission, nor a segment before one, can have been sent just before `sent`, as far as the
    /// capture shows.
    fn is_undisturbed(&self, sent: &Sent) -> bool {
        // Before the first data, the last packet was the ACK of the handshake.
        let handshake_ns = match self.row.data_segments {
            0 => self.handshake_rtt_ns.unwrap_or(0),
            _ => 0,
        };
        let since_ns = self.last_send_ns.saturating_add(handshake_ns);
        self.ca_state == CaState::Open
            && self.last_resent.is_none()
            && sent.transmission.t_ns - since_ns < self.path_srtt_ns()
            && !self.board.has_other_gap(sent.start, sent.end)
    }

    /// Whether the new octets of `sent` had been sent before, and lost before the capture point: its ID shows that a
    /// packet is missing, and there is no other hole.
    pub(super) fn was_sent_before(&mut self, sent: &Sent) -> bool {
        if self.vantage == Vantage::Receiver && self.max_timeouts(sent.transmission.t_ns) > 0 {
            self.progress.silence_end_ns = sent.transmission.t_ns;
        }
        let mut gap_bytes = (sent.start - self.board.snd_nxt()).max(0);
        if gap_bytes > 0 && self.lost_at_end_again(sent) {
            gap_bytes = 0;
        }
        if self.progress.silence.is_some() && self.missing.recent() > 0 {
            // Part of the gap was lost after the silence.
            self.progress.silence = None;
        }
        let in_gap = self.board.segments_in(gap_bytes);
        let earlier = in_gap > i64::from(self.missing.recent());
        self.missing
            .explain(u32::try_from(in_gap).unwrap_or(u32::MAX));
        if self.vantage != Vantage::Receiver || gap_bytes > 0 || !self.counts_missing() {
            if gap_bytes > 0 {
                self.lost_besides_gap(sent);
            }
            self.end_repeats(sent, earlier);
            return false;
        }
        if self.missing.unexplained() == 0 {
            self.end_repeats(sent, false);
            return false;
        }
        let holes = self.board.has_other_gap(sent.start, sent.end);
        let sent_before = if self.sack_in_use {
            self.was_at_end(sent, holes)
        } else if holes && self.progress.lost_at_end == 0 {
            self.lost_before_new_data_without_sack(sent);
            false
        } else {
            self.was_at_end_without_sack(sent)
        };
        if !sent_before {
            self.progress.last_new_ns = sent.transmission.t_ns;
        }
        sent_before
    }

    /// Ends the retransmission of the end of a flight with `sent`, new data. The recovery from a timeout goes on if
    /// there is a hole, or some of the gap that `sent` reveals was lost `earlier` than just before it: F-RTO sends new
    /// data first (RFC 5682 §3.1 step 2).
    fn end_repeats(&mut self, sent: &Sent, earlier: bool) {
        self.progress.lost_at_end = 0;
        self.progress.repeats_end = false;
        self.progress.last_new_ns = sent.transmission.t_ns;
        if self.progress.after_timeout.is_known() {
            if earlier || self.board.has_other_gap(sent.start, sent.end) {
                self.progress.after_timeout.pass_flight();
            } else {
                self.progress.after_timeout.clear();
            }
        }
    }

    /// Whether the segments below `sent` were at the end of a flight that was lost, and their retransmissions were lost
    /// just before `sent`: as many packets are missing there. Opens a gap of them.
    fn lost_at_end_again(&mut self, sent: &Sent) -> bool {
        let nxt = self.board.snd_nxt();
        let segments_n = self.board.segments_in(sent.start - nxt);
        let again = segments_n.min(i64::from(self.left_at_end()));
        if again == 0 || segments_n != i64::from(self.missing.recent()) {
            return false;
        }
        let earlier = Transmission {
            t_ns: self.last_send_ns,
            ..sent.transmission
        };
        self.board.open_gap(nxt, sent.start, earlier);
        let smss = self.board.smss_bytes().max(1);
        for number in 0..segments_n {
            let start = nxt + number * smss;
            let octets = (start, sent.start.min(start + smss));
            let entry = lost_entry(&sent.transmission, octets, self.sack_in_use);
            // Those lost before are explained already.
            let before = self.progress.after_timeout.take_lost();
            for _ in 0..before + u32::from(number < again) {
                self.board.add_lost_to_hole(&entry);
            }
        }
        let count = u32::try_from(segments_n + again).unwrap_or(u32::MAX);
        self.missing.explain(count);
        if self.sack_in_use {
            self.progress.repeats_end = true;
        } else {
            self.progress.lost_at_end -= again as u32;
        }
        true
    }

    /// The number of segments at the end of a flight that were lost and not repeated yet. With SACK, they are what is
    /// missing since the last new data, once the sender repeats them.
    fn left_at_end(&self) -> u32 {
        if !self.sack_in_use {
            return self.progress.lost_at_end;
        }
        if !self.progress.repeats_end {
            return 0;
        }
        let since_ns = self.progress.last_new_ns + 1;
        let missing = self.missing.unexplained_since(since_ns);
        missing.saturating_sub(self.missing.recent())
    }

    /// What is missing just before `sent`, new data that reveal a gap, besides it: retransmissions of holes below.
    /// Short segments would make more packets of the gap.
    fn lost_besides_gap(&mut self, sent: &Sent) {
        let counted = self.vantage == Vantage::Receiver && self.counts_missing();
        let nxt = self.board.snd_nxt();
        let whole = (sent.start - nxt) % self.board.smss_bytes().max(1) == 0;
        if !counted
            || !whole
            || self.missing.recent() == 0
            || !self.board.has_other_gap(nxt, sent.end)
        {
            return;
        }
        if self.sack_in_use {
            self.lost_before_new_data(sent);
        } else {
            self.lost_before_new_data_without_sack(sent);
        }
    }

    /// The same with SACK. A retransmission that is missing leaves its hole open, and counts when the hole is filled.
    /// If there is none, what is missing since the last new data was new, too, and is repeated now.
    fn was_at_end(&mut self, sent: &Sent, holes: bool) -> bool {
        if holes {
            self.lost_before_new_data(sent);
        }
        let lost = if holes {
            self.left_at_end() > 0 || self.left_of_flight() > 0
        } else {
            let since_ns = self.progress.last_new_ns + 1;
            self.missing.unexplained_since(since_ns) > 0
        };
        if lost {
            self.lost_again_at_end(sent, holes);
            if !(holes && self.explain_in_flight()) {
                self.missing.explain(1);
            }
        } else if holes {
            // As in `end_repeats`: the recovery from a timeout goes on.
            self.progress.after_timeout.pass_flight();
        } else {
            self.progress.after_timeout.clear();
            self.missing.clear();
        }
        self.progress.repeats_end = lost;
        lost
    }

    /// What is missing between the last new data and a timeout after which the sender goes on with what was in flight. It
    /// comes to that once it has repeated the holes below, of which some may be lost again.
    fn left_of_flight(&self) -> u32 {
        let Some(until_ns) = self.progress.after_timeout.flight_before_ns() else {
            return 0;
        };
        let missing = self
            .missing
            .unexplained_since(self.progress.last_new_ns + 1);
        missing.saturating_sub(self.missing.unexplained_since(until_ns + 1))
    }

    /// Explains one of these. Returns whether there is one.
    fn explain_in_flight(&mut self) -> bool {
        let until_ns = self.progress.after_timeout.flight_before_ns();
        let from_ns = self.progress.last_new_ns + 1;
        until_ns.is_some_and(|until_ns| self.missing.explain_shown_in(from_ns, until_ns))
    }

    fn was_at_end_without_sack(&mut self, sent: &Sent) -> bool {
        // The missing packet may also be one of many spurious retransmissions, unless a timeout follows.
        let silent = sent.transmission.t_ns - self.last_send_ns >= self.path_srtt_ns();
        if silent && self.missing.recent() > 0 {
            self.progress.lost_at_end = self.missing.recent();
        }
        let lost = self.progress.lost_at_end > 0;
        if lost {
            self.missing.explain(1);
            self.progress.lost_at_end -= 1;
        } else {
            self.account_before_clear();
            self.missing.clear();
        }
        lost
    }

    /// Adds the retransmissions that are missing just before `sent`, new data that continue the sequence: with SACK,
    /// those of the holes above the last retransmission, then again of the lowest ones. None comes earlier than a round
    /// trip after the hole was seen, or after its last one: the sender had received the ACK of what followed.
    fn lost_before_new_data(&mut self, sent: &Sent) {
        let latest_ns = self.acknowledged_until_ns(sent.transmission.t_ns);
        let entry = lost_entry(&sent.transmission, (sent.start, sent.end), self.sack_in_use);
        // F-RTO sends new data before it retransmits what the retransmission by the timeout passed.
        let f_rto = self.progress.after_timeout.sends_new_data();
        let may = known_by(latest_ns, f_rto);
        let una = self.board.snd_una();
        for above in [self.progress.last_rxt.max(una), una] {
            let lost = self.missing.recent();
            let (count, end) = self.board.add_lost_to_gaps(above, lost, &entry, &may);
            if count > 0 {
                self.missing.explain(count);
                self.progress.resend_hole(end, false);
            }
        }
    }

    /// Time of the last ACK that the sender of the retransmission captured at `now_ns` may have received, if its
    /// timestamps show that no segment had arrived before which was sent after the hole `gap` (RFC 7323 §4, RFC 8985
    /// §6.2).
    pub(super) fn uninformed_until_ns(&self, now_ns: i64, gap: &Range) -> Option<i64> {
        let until_ns = self.upstream.informed_until_ns(now_ns);
        until_ns.filter(|&until_ns| until_ns < gap.passed_ns)
    }

    /// When the last segment was captured whose ACK the sender of the segment captured at `now_ns` may have received, as
    /// its timestamps show. Without them, the estimate of the round trip does, which follows a path that becomes shorter
    /// in some round trips only.
    pub(super) fn acknowledged_until_ns(&self, now_ns: i64) -> i64 {
        self.upstream
            .informed_until_ns(now_ns)
            .unwrap_or_else(|| now_ns - self.shortest_round_trip_ns())
    }

    /// After a silence, the missing packets that no timeout explains were, with SACK, a retransmission of each hole
    /// that the sender knew of (RFC 6675 §5: the oldest first, and before new data), and the end of the flight. The
    /// latter follow as new data.
    ///
    /// `explained` retransmissions of the segment are known to be lost. If it was a `hole`, the sender was in recovery.
    pub(super) fn expect_lost_flight(
        &mut self,
        entry: &Retransmission,
        explained: u32,
        hole: bool,
    ) {
        let lost = self.missing.recent();
        let now_ns = entry.transmission.t_ns;
        let by_timer = if self.sack_in_use && !hole {
            explained.saturating_sub(self.progress.lost_again)
        } else {
            0
        };
        if lost + by_timer == 0 || now_ns - self.last_send_ns < self.path_srtt_ns() {
            return;
        }
        if !self.sack_in_use {
            self.progress.lost_at_end = lost;
            return;
        }
        let ended_by = Retransmission {
            reason: Reason::MissingId,
            ..*entry
        };
        let entry = Retransmission {
            not_captured: true,
            ..ended_by
        };
        let informed_ns = self.upstream.informed_until_ns(now_ns);
        let known = |hole: &Range, _: &Transmission| {
            informed_ns.is_none_or(|until_ns| hole.passed_ns <= until_ns)
        };
        // The holes that `entry` passed count when they are filled. If an ACK triggered `entry`, the first
        // retransmission of its hole, those of the holes above come later (RFC 6675 §5: the oldest first).
        let una = self.board.snd_una();
        let passed = self.board.gap_segments(una, entry.seq_start);
        let first = hole && !self.progress.was_repeated;
        let above = if first && self.max_timeouts(now_ns) == 0 {
            0
        } else {
            lost.saturating_sub(passed)
        };
        let (of_holes, _) = self
            .board
            .add_lost_to_gaps(entry.seq_end, above, &entry, known);
        self.missing.explain(of_holes);
        let recovery = hole || self.board.has_other_gap(entry.seq_start, entry.seq_end);
        let before = if recovery {
            Before::Recovery
        } else {
            Before::Open
        };
        self.begin_account(&ended_by, (explained, by_timer), lost - of_holes, before);
    }
}

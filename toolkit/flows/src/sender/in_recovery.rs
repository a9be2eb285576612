//! Downstream of a loss, with IPv4 IDs that the sender increments: what the packets were that are missing just before a
//! retransmission in recovery, without a silence in which a timer could have expired.
//!
//! With SACK, a sender repeats the holes in order, then sends new data (RFC 6675 §5); what it repeated is repeated
//! again after a round trip (RFC 8985 §6.2). Without SACK, it repeats one hole in each round trip (RFC 6582 §3.2).

use super::go_back_n::lost_entry;
use super::missing::known_by;
use super::{Sender, Sent};
use crate::cause::{CaState, REO_WND_DIVISOR};
use crate::loss::{self, FlowDirection};
use crate::retransmissions::Retransmission;
use crate::rows::{Event, Vantage};
use crate::scoreboard::{Range, Transmission};

impl Sender {
    /// Attributes to segments the packets missing just before `entry`, which fills the hole `gap`, with SACK. The last
    /// retransmission was captured at `previous_ns`.
    pub(super) fn lost_in_recovery(
        &mut self,
        entry: &Retransmission,
        gap: &Range,
        previous_ns: i64,
    ) {
        let lost = self.missing.recent();
        let now_ns = entry.transmission.t_ns;
        let silent = now_ns - self.last_send_ns >= self.path_srtt_ns();
        if lost == 0 || gap.first.record == entry.transmission.record {
            return;
        }
        if previous_ns < gap.first.t_ns {
            // In a silence, only the echo shows that the first ACK that reported the hole triggered it, and no timer.
            if !silent || self.upstream.informed_until_ns(now_ns).is_some() {
                self.lost_before_recovery(entry, gap, lost);
            }
        } else if !silent {
            self.lost_above_high_rxt(entry, lost);
        }
        if !silent {
            self.lost_between_holes(entry);
        }
    }

    /// The same where `entry` goes on above the last retransmission: the sender repeated the holes between the two
    /// (RFC 6675 §5: the oldest first) if as many packets are missing as there are such holes. If it can have repeated
    /// none, the packets are new data: they open a gap at the end of the flight.
    fn lost_between_holes(&mut self, entry: &Retransmission) {
        let lost = self.missing.recent();
        let una = self.board.snd_una();
        let from = self.progress.last_rxt.max(una);
        if lost == 0 || entry.seq_start < from {
            return;
        }
        let now_ns = entry.transmission.t_ns;
        let may = known_by(self.acknowledged_until_ns(now_ns), false);
        let between = self.board.gap_segments_that(from, entry.seq_start, &may);
        if between == lost {
            let missing = lost_entry(&entry.transmission, (0, 0), true);
            self.board.add_lost_to_gaps(from, lost, &missing, may);
            self.missing.explain(lost);
        } else if entry.seq_start >= self.progress.high_rxt
            && now_ns - self.last_send_ns < self.shortest_round_trip_ns()
            && self.board.gap_segments_that(una, entry.seq_start, may) == 0
        {
            self.open_end_of_flight(lost, entry.transmission);
        }
    }

    /// The same for the first retransmission after new data. If it is that of the oldest hole, and came before a second
    /// one can, no other was sent, so that the packets are new data: they open a gap at the end of the flight. The
    /// first one takes a round trip, and the sender learns of its loss by an ACK of what it sent later (RFC 8985 §6.2),
    /// a round trip after that.
    fn lost_before_recovery(&mut self, entry: &Retransmission, gap: &Range, lost: u32) {
        let now_ns = entry.transmission.t_ns;
        let oldest = entry.seq_start <= self.board.snd_una();
        let two_ns = self.path_srtt_ns() + self.shortest_round_trip_ns();
        let first = now_ns - gap.first.t_ns < two_ns;
        if oldest && first && self.uninformed_until_ns(now_ns, gap).is_none() {
            self.open_end_of_flight(lost, entry.transmission);
        }
    }

    /// Opens a gap of `lost` segments at SND.NXT that were sent before `later`, unless they exceed the window. Returns
    /// whether they do not.
    pub(super) fn open_end_of_flight(&mut self, lost: u32, later: Transmission) -> bool {
        if lost == 0 {
            return true;
        }
        let (una, nxt) = (self.board.snd_una(), self.board.snd_nxt());
        let end = nxt + i64::from(lost) * self.board.smss_bytes().max(1);
        let fits = self
            .snd_wnd_bytes
            .is_some_and(|wnd_bytes| end <= una + wnd_bytes);
        if fits {
            self.progress.end_opened = Some((nxt, later.t_ns));
            self.board.open_gap(nxt, end, later);
            self.missing.explain(lost);
        }
        fits
    }

    /// Removes the last end of a flight that was opened, if `sent` begins there with the next ID, and left before the
    /// sender can have received an ACK of the segment that showed it: it is new data, so that something else was
    /// missing.
    pub(super) fn retract_end_of_flight(&mut self, sent: &Sent) {
        let Some((start, opened_ns)) = self.progress.end_opened else {
            return;
        };
        let now_ns = sent.transmission.t_ns;
        let informed_ns = self.upstream.informed_until_ns(now_ns);
        // Without timestamps: no round trip is shorter than half of the shortest one.
        let too_soon = informed_ns.map_or(
            now_ns - opened_ns < self.path_min_rtt_ns() / 2,
            |until_ns| until_ns < opened_ns,
        );
        if sent.start == start && self.missing.recent() == 0 && too_soon {
            self.board.shorten_end(self.board.snd_nxt() - start);
        }
        if sent.start == start || !too_soon {
            self.progress.end_opened = None;
        }
    }

    /// Shortens the gap at the end of the flight, of which only the number of segments is known, by what `sent` lacks
    /// of a full one if it was one of them: it filled octets of `gap`, which was the end. A probe of one octet is a
    /// part of a segment (RFC 9293 §3.8.6.1). Above a FIN there is none.
    pub(super) fn correct_end_of_flight(&mut self, sent: &Sent, fin: bool, gap: Option<Range>) {
        let nxt = self.board.snd_nxt();
        if sent.end >= nxt {
            return;
        }
        if fin {
            self.board.shorten_end(nxt - sent.end);
        } else if gap.is_some_and(|gap| gap.end == nxt) && sent.payload_bytes > 1 {
            let short_bytes = self.board.smss_bytes() - i64::from(sent.payload_bytes);
            self.board.shorten_end(short_bytes);
        }
    }

    /// Takes off `gap`, which `entry` fills, the retransmissions that cannot have been lost. What a packet showed that was
    /// sent later than `entry` is `entry` itself, delayed. What came too soon before it was another packet, if one can
    /// have been missing: the retransmission of another hole that was known before, or new data before a retransmission.
    pub(super) fn retract_lost(&mut self, entry: &Retransmission, mut gap: Range) -> Range {
        if self.vantage != Vantage::Receiver || !self.sack_in_use || !self.counts_missing() {
            return gap;
        }
        let octets = (entry.seq_start, entry.seq_end);
        while let Some((lost, before_ns)) = self.board.last_lost_of_gap(entry.seq_start) {
            let shown_by = lost.transmission;
            let sent = &entry.transmission;
            let delayed = self.order.sent_later(&shown_by, sent) == Some(true);
            let other = self.is_too_soon(shown_by.t_ns, before_ns, sent.t_ns)
                && (self.board.has_other_gap_before(octets, shown_by.t_ns)
                    || !self.board.is_new(shown_by.record));
            if !delayed && !other {
                break;
            }
            gap.retransmissions = self.board.take_last_off(entry.seq_start);
            if !delayed {
                self.missing.reopen(shown_by.ip_id, shown_by.t_ns);
            }
        }
        gap
    }

    /// Whether a retransmission that was lost at `lost_ns` cannot be repeated by one captured at `now_ns`: without a
    /// timeout, that comes no earlier than a round trip after it (RFC 8985 §6.2). The sender sent it for what was
    /// captured at `before_ns`.
    ///
    /// Deviation: without timestamps, nothing says how long a round trip takes now. It is taken to be no shorter than half
    /// of the one before.
    fn is_too_soon(&self, lost_ns: i64, before_ns: i64, now_ns: i64) -> bool {
        let half_ns = (lost_ns - before_ns) / 2;
        let shortest_ns = self.shortest_round_trip_ns().min(half_ns);
        let informed_ns = self.upstream.informed_until_ns(now_ns);
        let until_ns = informed_ns.unwrap_or(now_ns - shortest_ns);
        lost_ns > until_ns.max(self.progress.silence_end_ns)
    }

    /// The same for a retransmission below HighRxt: a repeated one, so that what was sent just before it were the next
    /// holes above HighRxt which the sender knew of, unless it knew before that a retransmission between them and `entry`
    /// was lost as well (RFC 6675 §5: the oldest first). Holes that a retransmission above HighRxt passed count when they are
    /// filled.
    fn lost_above_high_rxt(&mut self, entry: &Retransmission, lost: u32) {
        let high_rxt = self.progress.high_rxt;
        let from = self.progress.last_rxt.max(self.board.snd_una());
        if entry.seq_start >= high_rxt {
            return;
        }
        let passed = self.board.gap_segments(from, entry.seq_start);
        let now_ns = entry.transmission.t_ns;
        // They may have been sent just after the last packet that was captured, and the sender waited for reordering
        // before (RFC 8985 §6.2).
        let wait_ns = now_ns - self.last_send_ns + self.path_min_rtt_ns() / REO_WND_DIVISOR;
        let latest_ns = now_ns - self.shortest_round_trip_ns();
        let informed_ns = self.upstream.informed_until_ns(now_ns).unwrap_or(latest_ns);
        let due_ns = self.board.first_lost_again_ns(entry.seq_end, high_rxt);
        let known = |hole: &Range, last: &Transmission| {
            hole.passed_ns + wait_ns <= informed_ns
                && last.t_ns <= latest_ns
                && due_ns.is_none_or(|due_ns| hole.passed_ns < due_ns)
        };
        let entry = lost_entry(&entry.transmission, (0, 0), true);
        let left = lost.saturating_sub(passed);
        let (count, end) = self.board.add_lost_to_gaps(high_rxt, left, &entry, known);
        if count > 0 {
            self.missing.explain(count);
            self.progress.high_rxt = end;
        }
    }

    /// Without SACK, what is missing between new data and `entry`, a retransmission of the oldest hole that came in
    /// time, where there are others: nothing below was sent after the new data, so that the packets are the end of the
    /// flight.
    pub(super) fn lost_before_oldest_hole(&mut self, entry: &Retransmission) {
        let oldest = entry.seq_start <= self.board.snd_una();
        if oldest && self.board.has_other_gap(entry.seq_start, entry.seq_end) {
            self.open_end_of_flight(self.missing.recent(), entry.transmission);
        }
    }

    /// Adds the retransmission of the oldest hole that is missing just before `sent`, new data, without SACK. It comes
    /// no earlier than a round trip after the hole became the oldest, or after its last one.
    pub(super) fn lost_before_new_data_without_sack(&mut self, sent: &Sent) {
        let go_back_n = matches!(self.ca_state, CaState::Loss { .. }) && self.last_resent.is_some();
        let silent = self.max_timeouts(sent.transmission.t_ns) > 0;
        if self.missing.recent() != 1 || go_back_n || silent || self.vantage != Vantage::Receiver {
            return;
        }
        let una = self.board.snd_una();
        let latest_ns = sent.transmission.t_ns - self.shortest_round_trip_ns();
        let oldest_ns = self.timer_restart_ns;
        let may = |hole: &Range, last: &Transmission| {
            hole.start <= una && hole.first.t_ns.max(last.t_ns).max(oldest_ns) <= latest_ns
        };
        let entry = lost_entry(&sent.transmission, (sent.start, sent.end), false);
        let (count, _) = self.board.add_lost_to_gaps(una, 1, &entry, may);
        self.missing.explain(count);
    }
}

impl Sender {
    /// With SACK, adds the retransmissions that are missing just before `entry`, which goes on above `resent_to`, up to
    /// which the sender repeated segments just before. One of the two repeats octets that had arrived: the sender does not
    /// know what has arrived, so that it repeats all segments in order if as many packets are missing as there are
    /// between the two.
    pub(super) fn lost_between_duplicates(
        &mut self,
        entry: &Retransmission,
        resent_to: i64,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        let counted =
            self.vantage == Vantage::Receiver && self.sack_in_use && self.counts_missing();
        let sent = &entry.transmission;
        let (from, to) = (resent_to, entry.seq_start);
        let lost = self.missing.recent();
        if !counted || lost == 0 || self.max_timeouts(sent.t_ns) > 0 {
            return;
        }
        let smss = self.board.smss_bytes().max(1);
        if to - from == i64::from(lost) * smss {
            for start in (0..i64::from(lost)).map(|number| from + number * smss) {
                self.lose_repeated(sent, (start, start + smss), flow, events);
            }
        } else if entry.seq_end <= self.board.snd_una() {
            self.lost_between_acknowledged(entry, resent_to, flow, events);
        }
    }

    /// Adds the retransmission of the segment `octets` that was lost before `sent`: of a hole, or of what had arrived.
    fn lose_repeated(
        &mut self,
        sent: &Transmission,
        octets: (i64, i64),
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        let entry = lost_entry(sent, octets, true);
        let kept = self.board.add_lost_to_hole(&entry)
            || self.board.add_not_captured(octets.0, octets.1, &entry) > 0;
        if !kept {
            let copy = self.repeated.add(octets.0);
            events.push(loss::missing_event(&entry, copy, flow));
        }
        self.missing.explain(1);
    }

    /// The same where all had been acknowledged. On a path that becomes shorter, what is still on its way counts as lost
    /// to the sender (RFC 8985 §6.2), so that it repeats what it has repeated before, in order. It is that if as many
    /// packets are missing as there are such segments between the two.
    fn lost_between_acknowledged(
        &mut self,
        entry: &Retransmission,
        resent_to: i64,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        let (from, to) = (resent_to, entry.seq_start);
        let lost = self.missing.recent() as usize;
        let starts: Vec<i64> = self.repeated.within(from, to).take(lost + 1).collect();
        if starts.len() != lost {
            return;
        }
        let smss = self.board.smss_bytes().max(1);
        let ends: Vec<i64> = starts.iter().skip(1).copied().chain([to]).collect();
        for (start, end) in starts.into_iter().zip(ends) {
            // A short segment ends where the next one starts.
            let octets = (start, end.min(start + smss));
            self.lose_repeated(&entry.transmission, octets, flow, events);
        }
    }
}

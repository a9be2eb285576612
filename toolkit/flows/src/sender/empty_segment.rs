//! Downstream of a loss: what a segment without octets shows of the segments before it. Its sequence number is SND.NXT.

use super::Sender;
use super::go_back_n::lost_entry;
use crate::loss::{self, FlowDirection};
use crate::missing::timeouts;
use crate::rows::{Event, Vantage};
use crate::scoreboard::Transmission;

impl Sender {
    /// Processes a RST or an ACK of no length at `seq`, which echoes `ts_ecr`. A sender that aborts the connection gives the RST
    /// SND.NXT (RFC 9293 §3.10.5), and so it does with an ACK (§3.10.7.4), so that the packets which its ID shows to be missing
    /// were the octets below, and retransmissions by timers. If they are not as many, the ID is of another counter. A single octet
    /// above whole segments may be the FIN, in a packet of its own or not; it is no data. Returns the number of timeouts that are
    /// among what is missing, at least.
    pub fn on_empty_segment(
        &mut self,
        seq: i64,
        transmission: Transmission,
        ts_ecr: Option<u32>,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) -> u32 {
        let (nxt, smss) = (self.board.snd_nxt(), self.board.smss_bytes().max(1));
        if self.vantage != Vantage::Receiver || !self.counts_missing() || seq < nxt {
            return 0;
        }
        if self.may_be_short(self.board.segments_in(seq - nxt)) {
            return self.lose_unknown_segments(seq, transmission);
        }
        let fin = i64::from((seq - nxt) % smss == 1);
        let segments_n = self.board.segments_in(seq - nxt - fin);
        let timeouts = i64::from(self.max_timeouts(transmission.t_ns));
        let probe = i64::from(self.sack_in_use);
        let missing = self.missing.recent();
        let una = self.board.snd_una();
        // What it had not learned of was repeated, too, though it had arrived.
        let echoed = ts_ecr.and_then(|ts_ecr| self.upstream.una_at_echo(ts_ecr));
        let uninformed = echoed.filter(|&echoed| echoed < una);
        let holes = i64::from(self.board.gap_segments(una, nxt));
        let repeats = i64::from(missing) - segments_n;
        if !(0..=fin + timeouts + holes.max(probe)).contains(&repeats) {
            return 0;
        }
        if segments_n == 0 && holes == 0 && uninformed.is_none() {
            return 0;
        }
        let again = (repeats - fin).max(0);
        // After a timeout, the window let no new data go, so that these had left before.
        let revealed = Transmission {
            t_ns: if again > holes.max(probe) {
                self.last_send_ns
            } else {
                transmission.t_ns
            },
            ..transmission
        };
        if segments_n > 0 {
            self.board.open_gap(nxt, seq - fin, revealed);
        }
        self.missing.explain(missing);
        let mut expired = (again - probe).min(timeouts);
        if let Some(start) = uninformed {
            let head = lost_entry(&revealed, (start, start + smss), self.sack_in_use);
            for _ in 0..again.min(timeouts) {
                let copy = self.repeated.add(start);
                events.push(loss::missing_event(&head, copy, flow));
            }
        } else if holes > 0 {
            expired = self.lose_holes_again(again, holes, timeouts, &revealed);
        } else if una >= nxt {
            let first_end = (seq - fin).min(nxt + smss);
            self.lose_again((nxt, first_end), again.min(timeouts), &revealed);
            if again > timeouts {
                // RFC 8985 §7.3: a probe repeats the last segment.
                let last = lost_entry(&revealed, (nxt, seq - fin), self.sack_in_use);
                self.board.add_lost_to_gap_end(seq - fin, &last);
            }
        }
        u32::try_from(expired).unwrap_or(0)
    }

    /// Names `again` retransmissions that were lost of what the sender knew to be missing, in `holes` segments. With SACK, all are
    /// repeated before new data (RFC 6675 §5), and each of the `timeouts` at most repeats the oldest one (RFC 6298 §5.4). If there
    /// are not enough for all, nothing shows which they were. Without SACK, recovery repeats the oldest one. Returns the number of
    /// timeouts among them.
    fn lose_holes_again(
        &mut self,
        again: i64,
        holes: i64,
        timeouts: i64,
        revealed: &Transmission,
    ) -> i64 {
        let una = self.board.snd_una();
        let Some(oldest) = self.board.overlap(una, una + 1).gap else {
            return 0;
        };
        let end = oldest
            .end
            .min(oldest.start + self.board.smss_bytes().max(1));
        let head = (oldest.start, end);
        if !self.sack_in_use {
            self.lose_again(head, again.min(timeouts + 1), revealed);
            return (again - 1).min(timeouts);
        }
        if again < holes || again - holes > timeouts {
            return 0;
        }
        let entry = lost_entry(revealed, head, true);
        self.board
            .add_lost_to_gaps(una, holes as u32, &entry, |_, _| true);
        self.lose_again(head, again - holes, revealed);
        again - holes
    }

    /// Whether a segment that is shorter than the SMSS is to be expected among `segments_n`, by those captured. The segments
    /// of a sender whose application writes less at a time end where the writes do (RFC 9293 §3.7.4), which nothing shows.
    fn may_be_short(&self, segments_n: i64) -> bool {
        let captured = self.row.data_segments;
        u64::try_from(segments_n)
            .unwrap_or(0)
            .saturating_mul(self.short_segments)
            > captured
    }

    /// Opens a gap at SND.NXT of octets whose segments are not known, but for the first one: the timeouts that must have
    /// expired repeated it, if nothing older was outstanding. Returns their number.
    fn lose_unknown_segments(&mut self, seq: i64, transmission: Transmission) -> u32 {
        let (nxt, missing) = (self.board.snd_nxt(), self.missing.recent());
        if i64::from(missing) < self.board.segments_in(seq - nxt) {
            return 0;
        }
        let oldest = self.board.snd_una() >= nxt;
        self.board
            .open_gap_of_unknown_segments(nxt, seq, transmission);
        self.missing.explain(missing);
        // With the first segment, a packet is missing for each of them.
        let expired = self.min_timeouts(transmission.t_ns);
        if !oldest || expired >= missing {
            return 0;
        }
        let first_end = seq.min(nxt + self.board.smss_bytes().max(1));
        let entry = lost_entry(&transmission, (nxt, first_end), self.sack_in_use);
        for _ in 0..expired {
            self.board.add_lost_to_gap_start(&entry);
        }
        expired
    }

    /// The smallest number of timeouts since the last segment, at `now_ns`, if data were in flight: its ACK restarted the timer
    /// after a round trip (RFC 6298 §5.3), a probe again after two (RFC 8985 §7.2 and §7.3). No RTO is longer than those of both
    /// parts of the path together.
    fn min_timeouts(&self, now_ns: i64) -> u32 {
        let rto_ns = self.rtt.rto_ns().saturating_add(self.upstream.rtt.rto_ns());
        let restart_ns = self.path_srtt_ns().saturating_mul(3);
        let waited_ns = now_ns
            .saturating_sub(self.last_send_ns)
            .saturating_sub(restart_ns);
        timeouts(waited_ns.max(0), rto_ns)
    }

    /// Adds `count` retransmissions of the octets `start..end` of a gap, by a timer for the most part (RFC 6298 §5.4), that were
    /// lost before the segment without octets, `empty`.
    fn lose_again(&mut self, (start, end): (i64, i64), count: i64, empty: &Transmission) {
        let entry = lost_entry(empty, (start, end), self.sack_in_use);
        for _ in 0..count {
            self.board.add_lost_to_hole(&entry);
        }
    }
}

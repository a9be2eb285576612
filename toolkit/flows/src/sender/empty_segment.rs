//! Downstream of a loss: what a segment without octets shows of the segments before it. Its sequence number is SND.NXT.

use super::Sender;
use super::go_back_n::lost_entry;
use crate::loss::{self, FlowDirection};
use crate::missing::timeouts;
use crate::rows::{Event, Vantage};
use crate::scoreboard::Transmission;

/// A RST or an ACK of no length.
#[derive(Clone, Copy, Debug)]
pub struct EmptySegment {
    /// SEG.SEQ, unwrapped.
    pub seq: i64,
    /// Its transmission.
    pub transmission: Transmission,
    /// Timestamp echo reply.
    pub ts_ecr: Option<u32>,
}

/// What is missing just before such a segment.
struct Missing {
    /// End of the new data that are missing.
    end: i64,
    new_segments: i64,
    /// Retransmissions.
    retransmitted: i64,
    /// Maximum number of timeouts and of probes among these.
    timeouts: i64,
    probes: i64,
    /// Segments of the holes that the sender knew of.
    holes: i64,
    /// SND.UNA of the sender, if it had not received the last ACK of new data.
    una_before: Option<i64>,
}

impl Sender {
    /// Processes a segment of no length. A sender that aborts the connection gives the RST SND.NXT (RFC 9293 §3.10.5),
    /// and so it does with an ACK (§3.10.7.4), so that the packets which its ID shows to be missing were the octets
    /// below, and retransmissions by timers. Returns the number of timeouts that are among what is missing, at least.
    pub fn on_empty_segment(
        &mut self,
        empty: &EmptySegment,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) -> u32 {
        let (seq, nxt) = (empty.seq, self.board.snd_nxt());
        if self.vantage != Vantage::Receiver || !self.counts_missing() || seq < nxt {
            return 0;
        }
        if self.may_be_short(self.board.segments_in(seq - nxt)) || self.has_short(seq - nxt) {
            return self.lose_unknown_segments(seq, empty.transmission);
        }
        let Some(missing) = self.missing_before_empty(empty) else {
            return 0;
        };
        // After a timeout, the window let no new data go, so that these had left before.
        let after_timeout = missing.retransmitted > missing.holes.max(missing.probes);
        let t_ns = if after_timeout {
            self.last_send_ns
        } else {
            empty.transmission.t_ns
        };
        let revealed = Transmission {
            t_ns,
            ..empty.transmission
        };
        if missing.new_segments > 0 {
            self.board.open_gap(nxt, missing.end, revealed);
        }
        self.missing.explain(self.missing.recent());
        let expired = if let Some(start) = missing.una_before {
            self.lose_acknowledged(start, &missing, &revealed, flow, events);
            missing.retransmitted - missing.probes
        } else if missing.holes > 0 {
            self.lose_holes_again(&missing, &revealed)
        } else {
            self.lose_end_again(nxt, &missing, &revealed);
            missing.retransmitted - missing.probes
        };
        u32::try_from(expired.min(missing.timeouts)).unwrap_or(0)
    }

    /// Counts what is missing just before `empty`. If the packets are not as many, the ID is of another counter. A
    /// single octet above whole segments may be the FIN, in a packet of its own or not; it is no data. `None` if
    /// nothing shows what they were.
    fn missing_before_empty(&self, empty: &EmptySegment) -> Option<Missing> {
        let (una, nxt) = (self.board.snd_una(), self.board.snd_nxt());
        let new_bytes = empty.seq - nxt;
        let fin = i64::from(new_bytes % self.board.smss_bytes().max(1) == 1);
        let new_segments = self.board.segments_in(new_bytes - fin);
        let echoed = empty.ts_ecr.and_then(|ecr| self.upstream.una_at_echo(ecr));
        let una_before = echoed.filter(|&echoed| echoed < una);
        let holes = i64::from(self.board.gap_segments(una, nxt));
        let timeouts = i64::from(self.max_timeouts(empty.transmission.t_ns));
        let probes = i64::from(self.sack_in_use);
        let others = i64::from(self.missing.recent()) - new_segments;
        let possible = (0..=fin + timeouts + holes.max(probes)).contains(&others);
        let shown = new_segments > 0 || holes > 0 || una_before.is_some();
        (possible && shown).then_some(Missing {
            end: empty.seq - fin,
            new_segments,
            retransmitted: (others - fin).max(0),
            timeouts,
            probes,
            holes,
            una_before,
        })
    }

    /// Names the retransmissions, by timeouts, of the segment at `start`: it had arrived, but the sender had received
    /// no ACK of it.
    fn lose_acknowledged(
        &mut self,
        start: i64,
        missing: &Missing,
        revealed: &Transmission,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        let end = start + self.board.smss_bytes().max(1);
        let head = lost_entry(revealed, (start, end), self.sack_in_use);
        for _ in 0..missing.retransmitted.min(missing.timeouts) {
            let copy = self.repeated.add(start);
            events.push(loss::missing_event(&head, copy, flow));
        }
    }

    /// Names the retransmissions of the new data above `nxt` that are missing, if all before had arrived.
    fn lose_end_again(&mut self, nxt: i64, missing: &Missing, revealed: &Transmission) {
        if self.board.snd_una() < nxt {
            return;
        }
        let first_end = missing.end.min(nxt + self.board.smss_bytes().max(1));
        let by_timeouts = missing.retransmitted.min(missing.timeouts);
        self.lose_again((nxt, first_end), by_timeouts, revealed);
        if missing.retransmitted > missing.timeouts {
            // RFC 8985 §7.3: a probe retransmits the last segment.
            let last = lost_entry(revealed, (nxt, missing.end), self.sack_in_use);
            self.board.add_lost_to_gap_end(missing.end, &last);
        }
    }

    /// Names the retransmissions of holes that the sender knew of. With SACK, all are retransmitted before new data
    /// (RFC 6675 §5), and each of the timeouts at most retransmits the oldest one (RFC 6298 §5.4). If there are not
    /// enough for all, nothing shows which they were. Without SACK, recovery retransmits the oldest one. Returns the
    /// number of timeouts among them.
    fn lose_holes_again(&mut self, missing: &Missing, revealed: &Transmission) -> i64 {
        let una = self.board.snd_una();
        let Some(oldest) = self.board.overlap(una, una + 1).gap else {
            return 0;
        };
        let end = oldest
            .end
            .min(oldest.start + self.board.smss_bytes().max(1));
        let head = (oldest.start, end);
        let (count, timeouts) = (missing.retransmitted, missing.timeouts);
        if !self.sack_in_use {
            self.lose_again(head, count.min(timeouts + 1), revealed);
            return count - 1;
        }
        let by_timeouts = count - missing.holes;
        if !(0..=timeouts).contains(&by_timeouts) {
            return 0;
        }
        let entry = lost_entry(revealed, head, true);
        self.board
            .add_lost_to_gaps(una, missing.holes as u32, &entry, |_, _| true);
        self.lose_again(head, by_timeouts, revealed);
        by_timeouts
    }

    /// Whether a segment that is shorter than the SMSS is to be expected among `segments_n`, by those captured. The
    /// segments of a sender whose application writes less at a time end where the writes do (RFC 9293 §3.7.4), which
    /// nothing shows.
    fn may_be_short(&self, segments_n: i64) -> bool {
        let captured = self.row.data_segments;
        u64::try_from(segments_n)
            .unwrap_or(0)
            .saturating_mul(self.short_segments)
            > captured
    }

    /// Whether one of several segments that hold `octets` is a short one, of a sender that has sent short segments in
    /// between: it need not be the last one. A single octet may be the FIN.
    fn has_short(&self, octets: i64) -> bool {
        let smss = self.board.smss_bytes().max(1);
        octets > smss && octets % smss > 1 && self.short_segments > 0
    }

    /// Opens a gap at SND.NXT of octets whose segments are not known, but for the first one: the timeouts that must
    /// have expired repeated it, if nothing older was outstanding. Returns their number.
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

    /// The smallest number of timeouts since the last segment, at `now_ns`, if data were in flight: its ACK restarted
    /// the timer after a round trip (RFC 6298 §5.3), a probe again after two (RFC 8985 §7.2 and §7.3). No RTO is longer
    /// than those of both parts of the path together.
    fn min_timeouts(&self, now_ns: i64) -> u32 {
        let rto_ns = self.rtt.rto_ns().saturating_add(self.upstream.rtt.rto_ns());
        let restart_ns = self.path_srtt_ns().saturating_mul(3);
        let waited_ns = now_ns
            .saturating_sub(self.last_send_ns)
            .saturating_sub(restart_ns);
        timeouts(waited_ns.max(0), rto_ns)
    }

    /// Adds `count` retransmissions of the octets `start..end` of a gap, by a timer for the most part (RFC 6298 §5.4),
    /// that were lost before the segment without octets, `empty`.
    fn lose_again(&mut self, (start, end): (i64, i64), count: i64, empty: &Transmission) {
        let entry = lost_entry(empty, (start, end), self.sack_in_use);
        for _ in 0..count {
            self.board.add_lost_to_hole(&entry);
        }
    }
}

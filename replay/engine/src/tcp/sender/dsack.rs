//! DSACKs: what the receiver says has arrived twice.
//!
//! Does not depend on how losses are detected. Read RFC 2883 §4 and RFC 3708 §3 first.

use super::Sender;
use crate::tcp::segment::Segment;

impl Sender {
    /// Takes the report of what arrived twice, before what the ACK covers leaves the scoreboard. Returns the number of
    /// segments, which were sent twice; 0 if there is no such report.
    pub(in crate::tcp) fn take_dsack(&mut self, segment: &Segment) -> u32 {
        let Some((left, right)) = segment.dsack().filter(|_| self.rules.sack) else {
            return 0;
        };
        let segments = (right - left).div_ceil(u64::from(self.params.smss_bytes));
        self.counters.dsacks_in += segments;
        if self.counters.dsacks_in > self.counters.retransmissions {
            return 0;
        }
        let of_probe = (self.rack.probe).is_some_and(|probe| probe.high_seq == right);
        if !of_probe {
            self.rules.algorithm.on_dsack(self, self.snd_una);
        } else if segment.ack >= right {
            // RFC 8985 §7.4.2: the original of the probe came too: nothing was lost.
            self.rack.probe = None;
        }
        let segments = segments as u32;
        if right <= segment.ack || left >= segment.ack {
            self.note_spurious(left, right, segments);
        }
        segments
    }

    /// RFC 3708 §3: what was sent again since the window decreased, and arrived twice, was sent again without need. Of
    /// what earlier ACKs have covered all counts (Linux: `tcp_check_dsack`), of the rest what the scoreboard knows to have
    /// been sent again (`tcp_sacktag_one`).
    ///
    /// Deviation: Linux also takes it for reordering if SACK had reported the segment before.
    fn note_spurious(&mut self, left: u64, right: u64, segments: u32) {
        let Some(marker) = self.undo_state.marker.filter(|marker| right > *marker) else {
            return;
        };
        let spurious = if right <= self.snd_una {
            segments
        } else {
            self.board.retransmitted_within(left.max(marker), right)
        };
        self.undo_state.note_spurious(spurious);
    }
}

#[cfg(test)]
mod tests {
    use crate::cc::catalogue::Variant;
    use crate::config::Profile;
    use crate::tcp::ladder::{avoiding, check, sender};

    /// Segments 1 and 3 of 8 were late, not lost. The copy of 3 is reported above the ACK, that of 1 by the ACK that
    /// covers it: with that, all that was sent again has arrived twice, and the window is what it was.
    #[test]
    fn rfc3708_what_arrived_twice_counts_above_the_ack_and_in_the_ack_that_covers_it() {
        let ladder = |copy_of_3: &str, rest: &str| {
            check(
                sender(Variant::LinuxReno, Profile::Linux, avoiding(8)),
                &format!(
                    "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 avoidance)
                     0.100 < ack 1 echo 1 sack 2-2
                     0.100 > 9 (cwnd 8 avoidance)
                     0.100 < ack 1 echo 1 sack 4-4,2-2
                     0.100 < ack 1 echo 1 sack 4-5,2-2
                     0.100 > R1 (cwnd 5 recovery)
                     0.101 < ack 1 echo 1 sack 4-6,2-2
                     0.101 < ack 1 echo 1 sack 4-7,2-2
                     0.101 > R3 (cwnd 4 recovery)
                     0.102 < ack 1 echo 1 {copy_of_3}
                     0.102 > 10 (cwnd 4 recovery)
                     0.103 < ack 8 echo 100 sack 1-1
                     0.103 > {rest}"
                ),
            );
        };
        ladder("sack 3-3,2-7", "11 12 13 14 (cwnd 8 avoidance)");
        ladder("sack 2-7", "11 (cwnd 4 recovery)");
    }
}

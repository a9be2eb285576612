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
        // RFC 8985 §7.4.2: the original of a probe came too: nothing was lost.
        let of_probe = (self.rack.probe.take_if(|probe| probe.high_seq == right)).is_some();
        if !of_probe {
            self.rules.algorithm.on_dsack(self, self.snd_una);
        }
        let segments = segments as u32;
        self.note_spurious(left, right, segments);
        segments
    }

    /// RFC 3708 §3: what was sent again since the window decreased, and arrived twice, was sent again without need. Of
    /// what earlier ACKs have covered all counts (Linux: `tcp_check_dsack`), of the rest what the scoreboard knows to have
    /// been sent again (`tcp_sacktag_one`).
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
    use crate::tcp::ladder::{SMSS, parse};

    #[test]
    fn rfc2883_what_arrived_twice_lies_below_the_ack_or_within_the_second_block() {
        let twice = |ack: &str| {
            let octets = parse(ack, 0).dsack();
            octets.map(|(left, right)| (left / SMSS + 1, right / SMSS))
        };
        assert_eq!(twice("ack 4 sack 2-3,6-7"), Some((2, 3)));
        assert_eq!(twice("ack 4 sack 3-3"), Some((3, 3)));
        assert_eq!(twice("ack 4 sack 6-6,6-8,10-10"), Some((6, 6)));
        assert_eq!(twice("ack 4 sack 6-8,10-10"), None);
        assert_eq!(twice("ack 4 sack 6-8"), None);
        assert_eq!(twice("ack 4"), None);
    }
}

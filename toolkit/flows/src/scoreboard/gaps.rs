//! Gaps: ranges of which the capture shows no transmission, and transmissions that were lost before the capture point.

use super::{Range, Scoreboard, State, Transmission};
use crate::retransmissions::Retransmission;

impl Scoreboard {
    /// Adds a gap of new octets at SND.NXT. A transmission of them was lost before the one that `revealed` it.
    pub fn open_gap(&mut self, start: i64, end: i64, revealed: Transmission) {
        self.ranges.push_back(Range {
            start,
            end,
            first: revealed,
            retransmissions: None,
            state: State::Gap,
            first_not_captured: false,
            window_probe: false,
            primary: true,
        });
        self.snd_nxt = end;
    }

    /// Whether there is a gap outside of `start..end`.
    pub fn has_other_gap(&self, start: i64, end: i64) -> bool {
        let other = |range: &Range| range.end <= start || range.start >= end;
        self.ranges
            .iter()
            .any(|range| !range.captured() && other(range))
    }

    /// Adds a retransmission that was lost before the capture point to each captured range of `start..end`. Returns the
    /// number of these ranges.
    pub fn add_not_captured(&mut self, start: i64, end: i64, entry: &Retransmission) -> u32 {
        let mut count = 0;
        let (from, to) = (self.index_of(start), self.index_of(end));
        for range in self.ranges.range_mut(from..to) {
            if range.start >= start && range.state == State::Outstanding {
                let entry = Retransmission {
                    seq_start: range.start,
                    seq_end: range.end,
                    ..*entry
                };
                let list = self.log.push(entry, range.retransmissions);
                range.retransmissions = list.or(range.retransmissions);
                count += 1;
            }
        }
        count
    }

    /// Adds a retransmission that was lost before the capture point to each segment of the gaps above `above`, in the
    /// order of sequence numbers, at most to `max_segments` of them. Returns their number.
    pub fn add_lost_to_gaps(
        &mut self,
        above: i64,
        max_segments: u32,
        entry: &Retransmission,
    ) -> u32 {
        let (mut index, mut count) = (self.index_of(above), 0);
        while count < max_segments && index < self.ranges.len() {
            let Range { start, end, .. } = self.ranges[index];
            if !self.ranges[index].captured() && start >= above {
                let end = end.min(start + self.smss_bytes.max(1));
                self.split(end);
                let entry = Retransmission {
                    seq_start: start,
                    seq_end: end,
                    ..*entry
                };
                let range = &mut self.ranges[index];
                let list = self.log.push(entry, range.retransmissions);
                range.retransmissions = list.or(range.retransmissions);
                count += 1;
            }
            index += 1;
        }
        count
    }
}

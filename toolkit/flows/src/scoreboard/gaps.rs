//! Gaps: ranges of which the capture shows no transmission, and transmissions that were lost before the capture point.

use super::{Range, Scoreboard, State, Transmission};
use crate::evidence::Reason;
use crate::retransmissions::Retransmission;

impl Scoreboard {
    /// Adds a gap of new octets at SND.NXT. A transmission of them was lost before the one that `revealed` it.
    pub fn open_gap(&mut self, start: i64, end: i64, revealed: Transmission) {
        debug_assert!(start < end, "a gap has octets");
        self.ranges.push_back(Range {
            start,
            end,
            first: revealed,
            retransmissions: None,
            state: State::Gap,
            first_not_captured: false,
            window_probe: false,
            primary: true,
            split: false,
            passed_ns: revealed.t_ns,
            unknown_segments: false,
        });
        self.snd_nxt = end;
    }

    /// The same, where it is not known into which segments the sender divided the octets.
    pub fn open_gap_of_unknown_segments(&mut self, start: i64, end: i64, revealed: Transmission) {
        if start < end {
            self.open_gap(start, end, revealed);
            if let Some(gap) = self.ranges.back_mut() {
                gap.unknown_segments = true;
            }
        }
    }

    /// Adds the retransmission `entry` of a first segment of the last gap that was lost before the capture point.
    pub fn add_lost_to_gap_start(&mut self, entry: &Retransmission) {
        let gap = self.ranges.back_mut().filter(|last| !last.captured());
        if let Some(gap) = gap.filter(|gap| gap.start == entry.seq_start) {
            let list = self.log.push(*entry, gap.retransmissions);
            gap.retransmissions = list.or(gap.retransmissions);
        }
    }

    /// Takes up to `octets` off the end of the flight, as far as it is a gap above all that was captured.
    pub fn shorten_end(&mut self, mut octets: i64) {
        while octets > 0
            && let Some(last) = self.ranges.back_mut().filter(|last| !last.captured())
        {
            let cut = octets.min(last.end - last.start);
            last.end -= cut;
            octets -= cut;
            self.snd_nxt = last.end;
            if last.start == last.end {
                let unsent = last.retransmissions;
                self.log.free(unsent);
                self.ranges.pop_back();
            }
        }
    }

    /// Whether there is a gap, or a part of one, outside of `start..end`.
    pub fn has_other_gap(&self, start: i64, end: i64) -> bool {
        let other = |range: &Range| range.start < start || range.end > end;
        self.ranges
            .iter()
            .any(|range| !range.captured() && other(range))
    }

    /// The same of a gap that was revealed before `t_ns`.
    pub fn has_other_gap_before(&self, (start, end): (i64, i64), t_ns: i64) -> bool {
        let other = |range: &Range| range.start < start || range.end > end;
        self.ranges
            .iter()
            .any(|range| !range.captured() && other(range) && range.passed_ns < t_ns)
    }

    /// When it first showed that a retransmission of a gap within `start..end` was lost, the last one of that gap.
    pub fn first_lost_again_ns(&self, start: i64, end: i64) -> Option<i64> {
        let from = self.ranges.iter().skip(self.index_of(start));
        let within = from.take_while(|range| range.start < end);
        let gaps = within.filter(|range| !range.captured());
        gaps.filter_map(|gap| gap.retransmissions)
            .map(|list| self.log.newest(list).transmission.t_ns)
            .min()
    }

    /// The number of segments in gaps that lie within `start..end`.
    pub fn gap_segments(&self, start: i64, end: i64) -> u32 {
        self.gap_segments_that(start, end, |_, _| true)
    }

    /// The number of those of which the gap and its last transmission are as `may` has it.
    pub fn gap_segments_that(
        &self,
        start: i64,
        end: i64,
        may: impl Fn(&Range, &Transmission) -> bool,
    ) -> u32 {
        let from = self.ranges.iter().skip(self.index_of(start));
        let within = from.take_while(|range| range.start < end);
        let gaps =
            within.filter(|range| !range.captured() && may(range, &self.last_transmission(range)));
        gaps.map(|gap| self.segments_in(gap.end.min(end) - gap.start.max(start)))
            .sum::<i64>() as u32
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
    /// order of sequence numbers, at most to `max_segments` of them, and only to those that `may` have been
    /// retransmitted. Returns their number and the end of the last one.
    pub fn add_lost_to_gaps(
        &mut self,
        above: i64,
        max_segments: u32,
        entry: &Retransmission,
        may: impl Fn(&Range, &Transmission) -> bool,
    ) -> (u32, i64) {
        if max_segments == 0 {
            return (0, above);
        }
        let below = self.ranges.get(self.index_of(above));
        if below.is_some_and(|range| !range.captured()) {
            // What was lost of it above counts.
            self.split(above);
        }
        let (mut index, mut count, mut last_end) = (self.index_of(above), 0, above);
        while count < max_segments && index < self.ranges.len() {
            let range = self.ranges[index];
            let Range { start, end, .. } = range;
            if !range.captured() && start >= above && may(&range, &self.last_transmission(&range)) {
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
                last_end = end;
            }
            index += 1;
        }
        (count, last_end)
    }

    /// Adds a retransmission that was lost before the capture point to the last segment of the gap that ends at `end`.
    pub fn add_lost_to_gap_end(&mut self, end: i64, entry: &Retransmission) {
        let smss = self.smss_bytes.max(1);
        let gap = self.ranges.get(self.index_of(end - 1));
        let Some(gap) = gap.filter(|gap| !gap.captured()) else {
            return;
        };
        let entry = Retransmission {
            seq_start: gap.start + (end - 1 - gap.start) / smss * smss,
            seq_end: end,
            ..*entry
        };
        self.add_lost_to_hole(&entry);
    }

    /// Adds the retransmission `entry` that was lost before the capture point to the octets that it repeats, if these
    /// are all in one gap. Returns whether they are.
    pub fn add_lost_to_hole(&mut self, entry: &Retransmission) -> bool {
        let (start, end) = (entry.seq_start, entry.seq_end);
        let gap = self.ranges.get(self.index_of(start));
        if !gap.is_some_and(|gap| !gap.captured() && gap.start <= start && end <= gap.end) {
            return false;
        }
        self.split(start);
        self.split(end);
        let index = self.index_of(start);
        let range = &mut self.ranges[index];
        let list = self.log.push(*entry, range.retransmissions);
        range.retransmissions = list.or(range.retransmissions);
        true
    }

    /// The last retransmission of the gap at `start`, if it was lost before the capture point, and the time of the one
    /// before, or that at which the gap was revealed.
    pub fn last_lost_of_gap(&self, start: i64) -> Option<(Retransmission, i64)> {
        let gap = self.ranges.get(self.index_of(start));
        let gap = gap.filter(|range| !range.captured())?;
        let mut transmissions = self.log.iter(gap.retransmissions);
        let newest = transmissions.next().filter(|newest| newest.not_captured)?;
        let before = transmissions.next();
        let before_ns = before.map_or(gap.passed_ns, |before| before.transmission.t_ns);
        Some((*newest, before_ns))
    }

    /// Takes the last retransmission off the range at `start`. Returns those before.
    pub fn take_last_off(&mut self, start: i64) -> Option<u32> {
        let index = self.index_of(start);
        let range = self.ranges.get_mut(index)?;
        range.retransmissions = self.log.pop(range.retransmissions?);
        range.retransmissions
    }

    /// Whether the packet of `record` has new data above SND.UNA.
    pub fn is_new(&self, record: u64) -> bool {
        let captured = |range: &&Range| range.captured() && !range.first_not_captured;
        let mut captured = self.ranges.iter().filter(captured);
        captured.any(|range| range.first.record == record)
    }

    /// Takes off the range at `start` up to `count` retransmissions that were lost just before its last one. Returns
    /// their number.
    pub fn take_lost_before_last(&mut self, start: i64, count: u32) -> u32 {
        let range = self.ranges.get(self.index_of(start));
        let list = range.and_then(|range| range.retransmissions);
        list.map_or(0, |list| self.log.take_lost_before_newest(list, count))
    }

    /// Adds `count` retransmissions that were lost before the capture point, just before `last`, if that is the last
    /// retransmission of its range.
    pub fn add_lost_before_last(&mut self, last: &Retransmission, count: u32) {
        let index = self.index_of(last.seq_start);
        let Some(range) = self.ranges.get_mut(index) else {
            return;
        };
        for _ in 0..count {
            let newest = range.retransmissions.map(|list| *self.log.newest(list));
            let Some((list, newest)) = range.retransmissions.zip(newest) else {
                return;
            };
            if newest.transmission.record != last.transmission.record {
                return;
            }
            if let Some(longer) = self.log.push(newest, Some(list)) {
                let lost = self.log.newest_mut(list);
                (lost.reason, lost.not_captured) = (Reason::MissingId, true);
                range.retransmissions = Some(longer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{EventCause, Mechanism};

    #[test]
    fn a_gap_that_nothing_is_added_to_is_not_split() {
        let mut board = Scoreboard::default();
        let sent = Transmission::default();
        board.set_mss(1000);
        board.observe_payload(1000);
        board.send_new(0, 1000, sent);
        board.open_gap(1000, 3000, sent);
        let entry = Retransmission {
            transmission: sent,
            seq_start: 0,
            seq_end: 0,
            cause: EventCause::Unknown,
            reason: Reason::None,
            mechanism: Mechanism::Unknown,
            primary: true,
            not_captured: true,
        };
        let mut add = |max_segments| {
            let added = board.add_lost_to_gaps(2000, max_segments, &entry, |_, _| true);
            (added.0, board.outstanding().count())
        };
        assert_eq!(add(0), (0, 2));
        assert_eq!(add(1), (1, 3));
    }
}

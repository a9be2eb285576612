//! Outstanding ranges and their retransmissions: which were lost at a timeout, and which ranges were never
//! retransmitted.

use super::{Range, Scoreboard, State, Transmission, last_transmission, retransmission_out};
use crate::retransmissions::{Retransmission, Retransmissions};

impl Range {
    /// The record of the first retransmission, if all that `late` is known to be is the original transmission of the
    /// range: it sends the same octets, and all retransmissions were captured, and sent later.
    pub fn overtaken_by(
        &self,
        (start, end): (i64, i64),
        log: &Retransmissions,
        was_sent_later: impl Fn(&Transmission) -> bool,
    ) -> Option<u64> {
        let whole = self.state == State::Outstanding && (self.start, self.end) == (start, end);
        let again = || log.iter(self.retransmissions);
        let overtook =
            |entry: &Retransmission| !entry.not_captured && was_sent_later(&entry.transmission);
        let first = again()
            .last()
            .filter(|_| whole && self.first_not_captured && again().all(overtook))?;
        Some(first.transmission.record)
    }

    /// Adds the original transmission, which was overtaken.
    pub fn add_original(&mut self, late: &Transmission) {
        (self.first, self.first_not_captured) = (*late, false);
    }
}

impl Scoreboard {
    /// Adds an original transmission that was overtaken: see [`Range::overtaken_by`]. Returns the record of the
    /// retransmission.
    pub fn add_late_original(
        &mut self,
        octets: (i64, i64),
        late: &Transmission,
        was_sent_later: impl Fn(&Transmission) -> bool,
    ) -> Option<u64> {
        let index = self.index_of(octets.0);
        let range = self.ranges.get_mut(index)?;
        let record = range.overtaken_by(octets, &self.log, was_sent_later)?;
        range.add_original(late);
        Some(record)
    }

    /// Whether the last timeout did not take the retransmission `sent` for lost.
    pub fn is_retransmission_out(&self, sent: &Transmission) -> bool {
        sent.t_ns > self.lost_until_ns
    }

    /// Counts retransmissions sent up to `until_ns` as lost: the timer has expired (RFC 8985 §6.3).
    pub fn lose_retransmissions(&mut self, until_ns: i64) {
        self.lost_until_ns = until_ns;
        let out = |range: &&Range| {
            range.state == State::Outstanding && retransmission_out(&self.log, range, until_ns)
        };
        let octets = self
            .ranges
            .iter()
            .filter(out)
            .map(|range| range.end - range.start);
        self.retrans_out_bytes = octets.sum();
    }

    /// Changes the retransmission of `record` that is the last one of the range at `start`.
    pub fn revise(&mut self, start: i64, record: u64, change: impl FnOnce(&mut Retransmission)) {
        let range = self.ranges.get(self.index_of(start));
        let newest = range
            .and_then(|range| range.retransmissions)
            .map(|list| self.log.newest_mut(list));
        if let Some(entry) = newest.filter(|entry| entry.transmission.record == record) {
            change(entry);
        }
    }

    /// The last transmissions of the outstanding ranges, of those before `record`.
    pub fn sent_before(&self, record: u64) -> impl Iterator<Item = Transmission> {
        let outstanding = self
            .ranges
            .iter()
            .filter(|range| range.state == State::Outstanding);
        outstanding
            .map(|range| last_transmission(&self.log, range))
            .filter(move |last| last.record < record)
    }

    /// Whether the octet at `position` is outstanding and was never retransmitted.
    pub fn is_sent_once(&self, position: i64) -> bool {
        let range = self.ranges.get(self.index_of(position));
        range.is_some_and(|range| {
            range.state == State::Outstanding && range.retransmissions.is_none()
        })
    }
}

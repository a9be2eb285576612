//! Outstanding ranges and their retransmissions: which were lost at a timeout, and which ranges were never
//! retransmitted.

use super::{Range, Scoreboard, State, Transmission, last_transmission, retransmission_out};
use crate::retransmissions::Retransmission;

impl Scoreboard {
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

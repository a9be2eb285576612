//! A delivered range with its transmissions: what the sender sent of it, and which of these were lost.

use super::{Range, Transmission, last_transmission};
use crate::retransmissions::Retransmissions;

/// A range that is delivered, with its transmissions.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The range in its previous state.
    pub range: &'a Range,
    /// Its last transmission.
    pub last: Transmission,
    /// Its first retransmission, and their number.
    pub first_retransmission: Option<Transmission>,
    pub retransmissions_n: u32,
    log: &'a Retransmissions,
}

impl<'a> Arrival<'a> {
    /// The delivered `range`, whose retransmissions are in `log`.
    pub fn new(log: &'a Retransmissions, range: &'a Range) -> Self {
        let first = log.iter(range.retransmissions).last();
        Self {
            range,
            last: last_transmission(log, range),
            first_retransmission: first.map(|entry| entry.transmission),
            retransmissions_n: log.iter(range.retransmissions).count() as u32,
            log,
        }
    }

    /// The number of transmissions, from the original on, that were sent more than `reordering_ns` before `delivered`.
    pub fn sent_before(&self, delivered: &Transmission, reordering_ns: i64) -> u32 {
        let before = |sent: &Transmission| {
            sent.record < delivered.record
                && sent.t_ns.saturating_add(reordering_ns) <= delivered.t_ns
        };
        let retransmitted = self.log.iter(self.range.retransmissions);
        let count = retransmitted
            .filter(|entry| before(&entry.transmission))
            .count();
        count as u32 + u32::from(before(&self.range.first))
    }
}

//! Original transmissions that may come after a retransmission, which overtook them on a path that became shorter.

use super::LossDetector;
use crate::retransmissions::Retransmissions;
use crate::scoreboard::Transmission;

impl LossDetector {
    /// Whether the receiver may still discard the original transmission of the segment at `start`, which a retransmission
    /// delivered: no ACK has answered it.
    pub fn awaits_original(&self, start: i64) -> bool {
        self.index_of(start).is_some_and(|index| {
            let pending = &self.pending[index];
            let captured = !pending.range.first_not_captured;
            captured && pending.discarded_by.is_none() && pending.dsacks == 0
        })
    }

    /// Notes that the ACK in `record` answered the original transmission of the segment at `start`.
    pub fn answer_original(&mut self, start: i64, record: u64) {
        match self.index_of(start) {
            Some(index) => self.pending[index].discarded_by = Some(record),
            None => self.discards.answer(start, record),
        }
    }

    /// Adds an original transmission that was overtaken: see [`Range::overtaken_by`]. Returns the record of the
    /// retransmission.
    pub fn add_late_original(
        &mut self,
        octets: (i64, i64),
        late: &Transmission,
        log: &Retransmissions,
        was_sent_later: impl Fn(&Transmission) -> bool,
    ) -> Option<u64> {
        let index = self.index_of(octets.0)?;
        let pending = &mut self.pending[index];
        let record = pending.range.overtaken_by(octets, log, was_sent_later)?;
        pending.range.add_original(late);
        Some(record)
    }
}

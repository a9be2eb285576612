//! The order in which original transmissions arrived: those of segments that were sent once, or whose timestamp was
//! echoed. Segments on one path arrive in the order of sending, so it shows which transmission of a retransmitted range can
//! have arrived when its octets did.

use std::collections::VecDeque;

use crate::scoreboard::{MAX_RANGES, Transmission};

/// How far original transmissions that are known to have arrived had come.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Arrivals {
    /// The last sent one.
    pub(super) newest: Transmission,
    /// The last sent one of those that were overtaken, on a path that became shorter, and when it was delivered.
    pub(super) overtaken: Transmission,
    overtaken_ns: i64,
}

impl Arrivals {
    /// Adds a transmission. Two parts of one segment arrived together.
    fn add(&mut self, sent: &Transmission, now_ns: i64) {
        if sent.record > self.newest.record {
            self.newest = *sent;
        } else if sent.record > self.overtaken.record && sent.record != self.newest.record {
            (self.overtaken, self.overtaken_ns) = (*sent, now_ns);
        }
    }

    /// Whether the transmission `sent`, which segments sent later had overtaken, can have arrived in the order of its path:
    /// after others that were overtaken while it was on its way. `None` if it had not been overtaken.
    pub(super) fn follows_overtaken(
        &self,
        sent: &Transmission,
        duplicates: &Duplicates,
    ) -> Option<bool> {
        let follows = |late: &Transmission, late_ns: i64| {
            late.record != 0 && late.record < sent.record && sent.t_ns < late_ns
        };
        let late_original = &duplicates.late_original;
        (sent.record < self.newest.record).then(|| {
            follows(&self.overtaken, self.overtaken_ns)
                || (late_original.as_ref())
                    .is_some_and(|one| follows(&one.original, one.original_ns))
        })
    }
}

/// An original transmission that arrived in the order of sending.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct InOrder {
    record: u64,
    t_ns: i64,
    /// Record and time of the ACK that shows it.
    ack_record: u64,
    ack_ns: i64,
}

/// How far they have arrived by the last ACK and by the one before it, and which in order since the oldest ACK with a
/// decision to come: as many at most as the scoreboard has ranges.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct ArrivalOrder {
    pub(super) before: Arrivals,
    pub(super) now: Arrivals,
    ack_record: u64,
    in_order: VecDeque<InOrder>,
}

impl ArrivalOrder {
    /// Releases spare capacity.
    pub(super) fn release_memory(&mut self) {
        self.in_order.shrink_to_fit();
    }

    /// Begins with the ACK in `record`.
    pub(super) fn begin(&mut self, record: u64) {
        if record != self.ack_record {
            (self.before, self.ack_record) = (self.now, record);
        }
    }

    /// Adds a segment that the ACK at `now_ns` delivers; `awaited`: a decision is to come.
    pub(super) fn add(&mut self, sent: &Transmission, now_ns: i64, awaited: bool) {
        self.now.add(sent, now_ns);
        if !awaited || sent.record != self.now.newest.record {
            return;
        }
        if self.in_order.len() == MAX_RANGES {
            self.in_order.pop_front();
        }
        self.in_order.push_back(InOrder {
            record: sent.record,
            t_ns: sent.t_ns,
            ack_record: self.ack_record,
            ack_ns: now_ns,
        });
    }

    /// Forgets what ACKs up to `record` show.
    pub(super) fn forget(&mut self, record: u64) {
        while let Some(one) = self.in_order.front()
            && one.ack_record <= record
        {
            self.in_order.pop_front();
        }
    }

    /// The record of a segment that `sent` would have overtaken if it had caused the ACK of this record and time: one that
    /// was sent earlier, or arrived later, by more than `window_ns`.
    pub(super) fn overtaken(
        &self,
        sent: &Transmission,
        (ack_record, ack_ns): (u64, i64),
        window_ns: i64,
    ) -> Option<u64> {
        let in_order = &self.in_order;
        let later = in_order.partition_point(|one| one.ack_record <= ack_record);
        let earlier = in_order.partition_point(|one| one.record < sent.record);
        let first = in_order.get(later).filter(|_| later < earlier)?;
        let last = in_order.get(earlier - 1)?;
        if first.t_ns.saturating_add(window_ns) < sent.t_ns {
            return Some(first.record);
        }
        (ack_ns.saturating_add(window_ns) < last.ack_ns).then_some(last.record)
    }
}

/// Retransmissions known to have arrived after the original transmissions of their segments.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Duplicates {
    /// The last one.
    last: Option<Duplicate>,
    /// The last one of which the original had been overtaken.
    late_original: Option<Duplicate>,
}

impl Duplicates {
    /// Adds one; `newest` had arrived before its original.
    pub(super) fn add(&mut self, one: Duplicate, newest: &Transmission) {
        self.last = Some(one);
        if one.original.record < newest.record {
            self.late_original = Some(one);
        }
    }

    /// The record of the last one, if `sent` would have overtaken it by arriving at `by_ns`: it was sent before, and the
    /// receiver reported it later, by more than `window_ns`.
    pub(super) fn overtaken(&self, sent: &Transmission, by_ns: i64, window_ns: i64) -> Option<u64> {
        let last = self.last?;
        let later = by_ns.saturating_add(window_ns) < last.reported_ns;
        (later && last.sent.record < sent.record).then_some(last.sent.record)
    }
}

/// A retransmission that the receiver reported as a duplicate.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Duplicate {
    pub(super) sent: Transmission,
    pub(super) reported_ns: i64,
    /// The original transmission, and when it was delivered.
    pub(super) original: Transmission,
    pub(super) original_ns: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(record: u64) -> Transmission {
        Transmission {
            record,
            ..Transmission::default()
        }
    }

    #[test]
    fn the_second_part_of_a_segment_was_not_overtaken_by_the_first() {
        let mut order = ArrivalOrder::default();
        order.begin(60);
        order.add(&sent(50), 1, true);
        order.add(&sent(50), 2, true);
        assert_eq!(order.now.overtaken.record, 0);
        order.add(&sent(49), 3, true);
        assert_eq!(order.in_order.len(), 2);
        assert_eq!(
            (order.now.overtaken.record, order.now.overtaken_ns),
            (49, 3)
        );
    }

    #[test]
    fn arrivals_in_order_show_what_a_transmission_would_have_overtaken() {
        let at = |record: u64, t_ns: i64| Transmission {
            t_ns,
            record,
            ..Transmission::default()
        };
        let mut order = ArrivalOrder::default();
        for (record, ack) in [(10, 100), (11, 110), (12, 120), (20, 130)] {
            order.begin(ack);
            order.add(&at(record, record as i64), ack as i64, true);
        }
        let overtaken = |order: &ArrivalOrder, sent, by: u64, window_ns| {
            order.overtaken(&sent, (by, by as i64), window_ns)
        };
        assert_eq!(
            overtaken(&order, at(15, 15), 100, 3),
            Some(11),
            "sent by more than 3 ns before"
        );
        assert_eq!(
            overtaken(&order, at(15, 15), 100, 4),
            Some(12),
            "it arrived 20 ns later"
        );
        assert_eq!(overtaken(&order, at(15, 15), 100, 20), None);
        assert_eq!(
            overtaken(&order, at(15, 15), 120, 3),
            None,
            "all had arrived"
        );
        assert_eq!(
            overtaken(&order, at(10, 10), 100, 3),
            None,
            "sent before them"
        );
        order.forget(110);
        assert_eq!(order.in_order.len(), 2);
        order.forget(u64::MAX);
        assert!(order.in_order.is_empty());
        order.add(&at(21, 21), 140, false);
        assert!(order.in_order.is_empty(), "no decision is to come");
    }
}

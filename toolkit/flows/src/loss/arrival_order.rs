//! The order in which original transmissions arrived: those of segments that were sent once, or whose timestamp was
//! echoed. Segments on one path arrive in the order of sending, so it shows which transmission of a retransmitted range can
//! have arrived when its octets did.

use crate::cause::REO_WND_DIVISOR;
use crate::scoreboard::Transmission;

/// How far original transmissions that are known to have arrived had come.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Arrivals {
    /// The last sent one.
    pub(super) newest: Transmission,
    /// The last sent one of those that were overtaken, on a path that became shorter, and when it was delivered.
    pub(super) overtaken: Transmission,
    pub(super) overtaken_ns: i64,
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
}

/// How far they have arrived by the last ACK, and by the one before it.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct ArrivalOrder {
    pub(super) before: Arrivals,
    pub(super) now: Arrivals,
    ack_record: u64,
}

impl ArrivalOrder {
    /// Begins with the ACK in `record`.
    pub(super) fn begin(&mut self, record: u64) {
        if record != self.ack_record {
            (self.before, self.ack_record) = (self.now, record);
        }
    }

    /// Adds a segment that the ACK at `now_ns` delivers. Returns whether it arrived in the order of sending.
    pub(super) fn add(&mut self, sent: &Transmission, now_ns: i64) -> bool {
        self.now.add(sent, now_ns);
        sent.record == self.now.newest.record
    }
}

/// What had arrived before the ACK that delivered a retransmitted range, and what did next.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Around {
    pub(super) before: Arrivals,
    /// The first segment that arrived after that, in the order of sending.
    pub(super) next: Option<Transmission>,
    /// The last retransmission known to have arrived after the original transmission of its segment.
    pub(super) duplicate: Option<Duplicate>,
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

impl Around {
    /// Whether the transmission `sent` can have arrived in the order of its path. If segments sent later had arrived
    /// before, it was overtaken, after others that were overtaken while it was on its way. Else no segment that was sent
    /// before it, by more than the reordering window (RFC 8985 §6.2), arrived later.
    pub(super) fn fits(&self, sent: &Transmission, min_rtt_ns: i64) -> bool {
        let before = &self.before;
        if sent.record < before.newest.record {
            let follows = |late: &Transmission, late_ns: i64| {
                late.record != 0 && late.record < sent.record && sent.t_ns < late_ns
            };
            return follows(&before.overtaken, before.overtaken_ns)
                || self
                    .duplicate
                    .is_some_and(|one| follows(&one.original, one.original_ns));
        }
        self.overtakes(sent, min_rtt_ns).is_none()
    }

    /// The retransmission that `sent` would have overtaken if it had arrived by `now_ns`: it was sent before, and the
    /// receiver reported it as a duplicate later, by more than the reordering window (RFC 8985 §6.2).
    pub(super) fn overtakes_duplicate(
        &self,
        sent: &Transmission,
        now_ns: i64,
        min_rtt_ns: i64,
    ) -> Option<Transmission> {
        let (duplicate, window_ns) = (self.duplicate?, min_rtt_ns / REO_WND_DIVISOR);
        let overtaken =
            duplicate.sent.record < sent.record && now_ns + window_ns < duplicate.reported_ns;
        overtaken.then_some(duplicate.sent)
    }

    /// The segment that `sent` would have overtaken if it had been the one that arrived.
    pub(super) fn overtakes(&self, sent: &Transmission, min_rtt_ns: i64) -> Option<Transmission> {
        let window_ns = min_rtt_ns / REO_WND_DIVISOR;
        self.next
            .filter(|next| next.record < sent.record && next.t_ns + window_ns < sent.t_ns)
    }
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
        assert!(order.add(&sent(50), 1));
        assert!(order.add(&sent(50), 2));
        assert_eq!(order.now.overtaken.record, 0);
        assert!(!order.add(&sent(49), 3));
        assert_eq!(
            (order.now.overtaken.record, order.now.overtaken_ns),
            (49, 3)
        );
    }
}

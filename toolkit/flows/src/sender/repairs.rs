//! At the receiver, without timestamps: the RTT of the path with its queues, from the holes and what filled them.
//!
//! With SACK, the sender learns of a hole at once, and fills it before it sends new data (RFC 6675 §5): a round trip
//! later, unless the retransmission was lost. The handshake shows the RTT of an empty queue only.

use super::Sender;
use crate::cause::CaState;
use crate::rows::Vantage;
use crate::scoreboard::{Range, Transmission};

/// Round trips for which the shortest time counts. Assumed: what a window lost is repeated in as many.
const ROUND_TRIPS: i64 = 4;

/// The times that it took to fill holes.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Repairs {
    /// The shortest one lately, of holes whose first retransmission arrived, and when that one was filled.
    shortest: Option<(i64, i64)>,
    /// The shortest one of any hole.
    bound_ns: Option<i64>,
    /// IPv4 IDs count what is missing.
    counted: bool,
    /// The RTT of the handshake is an upper bound: its ACK is missing, and data after it.
    handshake_is_late: bool,
}

impl Repairs {
    /// RTT of the path. Before the first sample, a bound. `None` where nothing shows which retransmission of a hole
    /// came.
    ///
    /// Deviation: RFC 6298 §2.3 smooths the RTT over some round trips. Holes are so rare that this would be that of a
    /// path before, and one of several holes waits for the others, so that the shortest time of some round trips counts.
    pub(super) fn rtt_ns(&self) -> Option<i64> {
        let bound_ns = self.bound_ns.filter(|_| self.counted);
        self.shortest.map(|(rtt_ns, _)| rtt_ns).or(bound_ns)
    }

    /// Adds the time that it took to fill a hole at `now_ns` by its first retransmission.
    fn sample(&mut self, repair_ns: i64, now_ns: i64) {
        let lasts = |&(rtt_ns, since_ns): &(i64, i64)| {
            rtt_ns < repair_ns && now_ns - since_ns <= rtt_ns.saturating_mul(ROUND_TRIPS)
        };
        self.shortest = self.shortest.filter(lasts).or(Some((repair_ns, now_ns)));
    }

    /// Whether the RTT of the handshake is an upper bound.
    pub(super) fn handshake_is_late(&self) -> bool {
        self.handshake_is_late
    }

    /// The RTT of the path is this at most.
    pub(super) fn bound_ns(&self) -> Option<i64> {
        self.bound_ns
    }
}

impl Sender {
    /// Sets the RTT of the handshake; an upper bound if it `is_late`, because its ACK is missing, and data after it.
    pub fn set_handshake_rtt(&mut self, rtt_ns: Option<i64>, is_late: bool) {
        self.handshake_rtt_ns = rtt_ns;
        self.repairs.handshake_is_late = is_late;
    }

    /// Samples the RTT from the hole `gap` and `sent`, the first retransmission since it was revealed. It was the
    /// first one of the hole if no packet is missing since. A timer does not wait for what reveals a hole: after a
    /// timeout, nothing is sampled. Whether a timer sent this one depends on the RTT. A step of the capture clock gives
    /// a negative time.
    pub(super) fn sample_repair(&mut self, sent: &Transmission, gap: &Range) {
        let first = gap.retransmissions.is_none() && gap.first.record != sent.record;
        let by_timer = matches!(self.ca_state, CaState::Loss { .. });
        let repair_ns = sent.t_ns - gap.passed_ns;
        let sacks = self.sack_in_use && self.vantage == Vantage::Receiver;
        if !first || by_timer || !sacks || repair_ns < 0 {
            return;
        }
        let bound_ns = self.repairs.bound_ns.unwrap_or(repair_ns);
        self.repairs.bound_ns = Some(bound_ns.min(repair_ns));
        self.repairs.counted = self.counts_missing();
        // A retransmission that was captured before the segment above the hole may have been sent before the hole.
        let certain = gap.passed_ns == gap.first.t_ns;
        let missing = self.missing.unexplained_since(gap.passed_ns + 1);
        if self.repairs.counted && certain && missing == 0 {
            self.repairs.sample(repair_ns, sent.t_ns);
        }
    }

    /// Whether only a bound of the RTT of the path is known.
    pub(super) fn is_rtt_bounded(&self) -> bool {
        let measured = self.upstream.rtt.srtt_ns().or(self.repairs.rtt_ns());
        self.repairs.handshake_is_late && measured.is_none() && self.repairs.bound_ns.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_of_some_round_trips_counts() {
        let mut repairs = Repairs::default();
        let mut last = |repair_ns, now_ns| {
            repairs.sample(repair_ns, now_ns);
            repairs.rtt_ns().expect("sampled")
        };
        assert_eq!([last(20, 100), last(25, 180)], [20, 20]);
        assert_eq!(last(600, 181), 600, "another path");
        assert_eq!([last(550, 300), last(580, 2500)], [550, 550]);
        assert_eq!(last(580, 2501), 580);
    }
}

//! Downstream of a loss, with SACK and IPv4 IDs that the sender increments: the end of a flight that was lost and that
//! a sender retransmits after a timeout, where these retransmissions are lost, too.
//!
//! The timeout retransmits the oldest segment. When that is acknowledged, the sender goes on with the next ones, the
//! oldest first, and then sends new data (RFC 5681 §3.1); F-RTO sends new data first (RFC 5682 §3.1 step 2).

use std::collections::VecDeque;

use super::{Sender, Sent};
use crate::cause::CaState;
use crate::missing::{nearest_timeouts, timeouts};

/// Maximum number of segments at the end of a flight of which lost retransmissions are kept: as many as can be
/// missing between two packets.
const MAX_KEPT: usize = 1 << 12;

/// What a sender sends first when what a timeout retransmitted is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
enum NextAfterTimeout {
    /// There was no timeout.
    #[default]
    Unknown,
    /// What was in flight, in order.
    Flight,
    /// New data, by F-RTO.
    NewData,
}

/// What is retransmitted after a timeout.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct AfterTimeout {
    next: NextAfterTimeout,
    /// When the last timeout was captured.
    timeout_ns: i64,
    /// The lost retransmissions of each segment from SND.NXT on.
    lost_again: VecDeque<u32>,
    /// Lost retransmissions of that at SND.NXT: timeouts sent them in the silence that its captured one ended.
    by_timer: u32,
}

impl AfterTimeout {
    /// Notes a timeout after `silence_timeouts` since the last packet. RFC 5682 §3.1 step 1: F-RTO is not used if the
    /// sender was `recovering`. As in Linux, a repeated timeout starts it again.
    fn time_out(&mut self, now_ns: i64, recovering: bool, silence_timeouts: u32) {
        self.timeout_ns = now_ns;
        self.next = if recovering && silence_timeouts < 2 {
            NextAfterTimeout::Flight
        } else {
            NextAfterTimeout::NewData
        };
    }

    /// Adds a lost retransmission of each of the first `count` segments from SND.NXT on. Returns how many were added.
    fn lose(&mut self, count: u32) -> u32 {
        let count = (count as usize).min(MAX_KEPT);
        if self.lost_again.len() < count {
            self.lost_again.resize(count, 0);
        }
        self.lost_again
            .iter_mut()
            .take(count)
            .for_each(|one| *one += 1);
        count as u32
    }

    /// Takes the lost retransmissions of the segment at SND.NXT, which is retransmitted now.
    pub(super) fn take_lost(&mut self) -> u32 {
        self.lost_again.pop_front().unwrap_or(0)
    }

    /// Takes those that timeouts sent in the silence which the present retransmission of the segment ends.
    pub(super) fn take_by_timer(&mut self) -> u32 {
        std::mem::take(&mut self.by_timer)
    }

    /// Whether F-RTO sends new data first (RFC 5682 §3.1 step 2).
    pub(super) fn sends_new_data(&self) -> bool {
        self.next == NextAfterTimeout::NewData
    }

    /// When the last timeout was captured, if the sender goes on with what was in flight before it.
    pub(super) fn flight_before_ns(&self) -> Option<i64> {
        (self.next == NextAfterTimeout::Flight).then_some(self.timeout_ns)
    }

    /// Whether a timeout is known after which no new data have shown that all has arrived.
    pub(super) fn is_known(&self) -> bool {
        self.next != NextAfterTimeout::Unknown
    }

    /// New data follow, but what was in flight has not all arrived: SND.NXT has passed it.
    pub(super) fn pass_flight(&mut self) {
        self.lost_again.clear();
        self.by_timer = 0;
    }

    /// New data follow: nothing of the flight is left.
    pub(super) fn clear(&mut self) {
        self.next = NextAfterTimeout::Unknown;
        self.pass_flight();
    }
}

impl Sender {
    /// The number of timeouts since the last packet, at `now_ns`; 0 if no RTO has passed. The first one comes after the
    /// ACK of that packet, and outside of recovery after a probe. Without timestamps, the RTO is a lower bound.
    pub(super) fn timeouts_in_silence(&self, now_ns: i64) -> u32 {
        let rto_ns = self.rtt.rto_ns().saturating_add(self.upstream_rtt_ns());
        let waited_ns = now_ns.saturating_sub(self.last_send_ns);
        let max_timeouts = timeouts(waited_ns, rto_ns);
        if max_timeouts == 0 || self.upstream.rtt.srtt_ns().is_none() {
            return max_timeouts;
        }
        let probe_ns = if self.progress.after_timeout.next == NextAfterTimeout::Unknown {
            self.probe_timeout_ns()
        } else {
            0
        };
        let waited_ns = waited_ns
            .saturating_sub(self.path_srtt_ns())
            .saturating_sub(probe_ns);
        nearest_timeouts(waited_ns, rto_ns)
    }

    /// Notes that the oldest hole was filled at `now_ns`, if a timeout did that. If it had been `retransmitted` before,
    /// the sender was in recovery.
    pub(super) fn time_out_at_hole(&mut self, now_ns: i64, retransmitted: bool) {
        let timeouts = self.timeouts_in_silence(now_ns);
        if timeouts > 0 {
            let recovering = retransmitted || self.ca_state != CaState::Open;
            self.progress
                .after_timeout
                .time_out(now_ns, recovering, timeouts);
        }
    }

    /// Attributes to segments the packets missing just before `sent`, which retransmits the first segment at the end of
    /// a flight, if a timeout sent it: one packet for each timeout before, then what the sender sent when the
    /// retransmission before was acknowledged. If there are `holes`, that was not the end of the flight.
    pub(super) fn lost_again_at_end(&mut self, sent: &Sent, holes: bool) {
        let timeouts = self.timeouts_in_silence(sent.transmission.t_ns);
        if timeouts == 0 {
            return;
        }
        let since_ns = self.progress.last_new_ns + 1;
        let recent = self.missing.recent();
        let left = self.missing.unexplained_since(since_ns);
        let in_flight = left.saturating_sub(recent);
        let by_timer = recent.min(timeouts - 1);
        let again = if self.progress.after_timeout.next == NextAfterTimeout::Flight && !holes {
            (recent - by_timer).min(in_flight)
        } else {
            0
        };
        let after = &mut self.progress.after_timeout;
        after.by_timer = by_timer;
        self.missing.explain(after.lose(again));
        let in_loss = after.next != NextAfterTimeout::Unknown && in_flight > 0;
        let recovering = in_loss || self.ca_state != CaState::Open;
        after.time_out(sent.transmission.t_ns, recovering, timeouts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_retransmissions_are_counted_from_the_oldest_segment_on() {
        let mut after = AfterTimeout::default();
        assert_eq!((after.lose(2), after.lose(1)), (2, 1));
        assert_eq!([(); 3].map(|()| after.take_lost()), [2, 1, 0]);
        assert_eq!(after.lose(4095), 4095, "missing between two packets");
        assert_eq!(after.lose(u32::MAX), MAX_KEPT as u32);
        assert_eq!(after.lost_again.len(), MAX_KEPT);
    }

    #[test]
    fn only_a_first_timeout_in_recovery_is_followed_by_what_was_in_flight() {
        let next = |recovering, timeouts| {
            let mut after = AfterTimeout::default();
            after.time_out(0, recovering, timeouts);
            after.next
        };
        assert_eq!(next(true, 1), NextAfterTimeout::Flight);
        assert_eq!(next(false, 1), NextAfterTimeout::NewData);
        assert_eq!(next(true, 2), NextAfterTimeout::NewData);
    }
}

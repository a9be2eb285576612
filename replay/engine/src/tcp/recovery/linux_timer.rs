//! The one timer that Linux has for three purposes: a retransmission timeout, a tail loss probe, RACK's reordering
//! window. Setting it for one purpose cancels the others. When it is set for the timeout again, the RTO runs from the
//! transmission of the oldest segment, not from now. At most one of the sender's three timers is set.
//!
//! Does not depend on the window increase. Facts: Linux 6.18 `tcp_rearm_rto`, `tcp_schedule_loss_probe`,
//! `tcp_send_loss_probe`, `tcp_rack_reo_timeout`, `tcp_xmit_retransmit_queue`. It counts in ticks.
//!
//! Deviation: timers of the handshake, of a closed window and of a FIN are exact, and so are all of a sender whose
//! recovery is not Linux's (see `linux`), though its timeout is in whole ticks.

use super::Ack;
use crate::sim::time::{MILLISECOND, Nanos, SECOND};
use crate::tcp::jiffies;
use crate::tcp::sender::Sender;
use crate::tcp::sender::pacing::Pacer;

/// Linux (`TCP_TIMEOUT_MIN_US`): added to a probe's two round trips and to RACK's wait.
const ALLOWANCE: Nanos = 2 * MILLISECOND;
/// Linux (`TCP_TIMEOUT_INIT`, RFC 6298 §2.1): a probe's time where no round trip has been measured.
const PROBE_WITHOUT_RTT: Nanos = SECOND;
/// A timeout that is due already fires so much later.
const AT_ONCE: Nanos = 1000;

impl Sender {
    /// Sets the retransmission timer, for as long as a timeout takes from now; where the timer served another purpose
    /// till now, from when the oldest segment left.
    #[inline(never)]
    pub(super) fn rearm_timeout(&mut self, now: Nanos) {
        if self.rack.probe_timer.is_set() || self.rack.reordering_timer.is_set() {
            self.rearm_timeout_of_oldest(now);
        } else {
            self.set_timeout(self.rtt.rto(), now);
        }
    }

    /// The timer served another purpose, and has fired.
    pub(super) fn rearm_timeout_of_oldest(&mut self, now: Nanos) {
        let sent_at = self
            .board
            .first()
            .map_or(now, |first| self.board.sent_at(first));
        let left = (sent_at + self.rtt.rto()).saturating_sub(now);
        self.set_timeout(left.max(AT_ONCE), now);
    }

    /// What pacing holds back has the whole time from when it may leave.
    pub(super) fn set_timeout(&mut self, wait: Nanos, now: Nanos) {
        self.rack.probe_timer.stop();
        self.rack.reordering_timer.stop();
        self.rto_timer.set_ticks(now, self.with_pacing(wait, now));
    }

    /// Linux (`tcp_pacing_delay`): `wait`, and as many whole ticks as pacing takes.
    fn with_pacing(&self, wait: Nanos, now: Nanos) -> Nanos {
        wait + jiffies::down(self.released_at().saturating_sub(now))
    }

    /// New data left: a probe, no later than the timeout of the oldest segment would fire if that is still to come.
    #[inline(always)]
    pub(in crate::tcp) fn time_new_data(&mut self, now: Nanos) {
        let Some(first) = self.board.first() else {
            return;
        };
        let due = self.board.sent_at(first) + self.rtt.rto();
        let probes = self.set_probe(now, if due > now { due - now } else { Nanos::MAX });
        if !probes && (self.board.outstanding() == 1 || self.rack.probe_timer.is_set()) {
            self.rearm_timeout(now);
        }
    }

    /// Segment `number` was retransmitted: the oldest has the whole timeout, unless RACK waits for others.
    pub(super) fn time_retransmission(&mut self, number: u64, now: Nanos) {
        if self.board.first() == Some(number) && !self.rack.reordering_timer.is_set() {
            self.set_timeout(self.rtt.rto(), now);
        }
    }

    /// An ACK came. The timer restarts if it moved `snd_una`, or reported what left before the oldest was retransmitted.
    pub(super) fn time_after_ack(&mut self, ack: &Ack) {
        let now = ack.now;
        if self.rack.awaits {
            self.rto_timer.stop();
            self.rack.probe_timer.stop();
            let wait = (self.rack.reordering_timer.deadline() + ALLOWANCE).saturating_sub(now);
            // It has nothing to do with what pacing holds back.
            let wait = wait.min(self.rtt.rto());
            self.rack.reordering_timer.set_ticks(now, wait);
        } else if ack.advances || self.sacked_before_oldest(ack) {
            self.time_new_una(now);
        }
    }

    /// `snd_una` moved, and data are outstanding: a probe or a timeout.
    #[inline(always)]
    pub(in crate::tcp) fn time_new_una(&mut self, now: Nanos) {
        if !self.set_probe(now, self.rtt.rto()) {
            self.rearm_timeout(now);
        }
    }

    /// The ACK reports a segment sent before the oldest one was retransmitted, which therefore has its whole time.
    fn sacked_before_oldest(&self, ack: &Ack) -> bool {
        let sent_at = self.board.first().map(|first| self.board.sent_at(first));
        (ack.digest.oldest_sacked_sent_at.zip(sent_at)).is_some_and(|(sacked, sent)| sacked < sent)
    }

    /// RFC 8985 §7.2: a probe in two round trips, or after `max`. Returns whether there is to be one.
    #[inline(always)]
    fn set_probe(&mut self, now: Nanos, max: Nanos) -> bool {
        let open = !self.in_loss_recovery() && self.board.sacked() == 0;
        if !open || !self.rules.tail_loss_probe {
            return false;
        }
        let wait = self.rtt.srtt().map_or(PROBE_WITHOUT_RTT, |srtt| {
            // Deviation: RFC 8985 §7.2 adds the receiver's delayed ACK for a single segment, Linux its minimum RTO.
            let single = self.board.outstanding() == 1;
            2 * srtt
                + if single {
                    self.params.min_rto_ns
                } else {
                    ALLOWANCE
                }
        });
        self.rto_timer.stop();
        self.rack.reordering_timer.stop();
        let wait = wait.min(max);
        if self.released_at() < now + jiffies::TICK {
            self.rack.probe_timer.set_ticks(now, wait);
        } else {
            self.set_probe_after_pacing(wait, now);
        }
        true
    }

    /// Apart, so that what pacing does not hold back for a tick need not be divided by one.
    #[cold]
    #[inline(never)]
    fn set_probe_after_pacing(&mut self, wait: Nanos, now: Nanos) {
        let wait = self.with_pacing(wait, now);
        self.rack.probe_timer.set_ticks(now, wait);
    }

    /// When pacing lets the next segment leave.
    #[inline]
    fn released_at(&self) -> Nanos {
        self.pacer.as_ref().map_or(0, Pacer::release)
    }
}

#[cfg(test)]
mod tests {
    use crate::cc::Pace;
    use crate::cc::catalogue::Variant;
    use crate::config::Profile;
    use crate::sim::time::{MILLISECOND, NEVER, Nanos};
    use crate::tcp::ladder::{parse as ack, sender, window};
    use crate::tcp::sender::Sender;
    use crate::tcp::sender::pacing::Pacer;

    const MS: Nanos = MILLISECOND;

    fn polled(sender: &mut Sender, now: Nanos) -> usize {
        std::iter::from_fn(|| sender.poll_transmit(now)).count()
    }

    /// Four segments left at 0; the first was acknowledged at 100 ms, when two more left. srtt 100 ms, rto 300 ms.
    fn begun() -> Sender {
        let mut sender = sender(Variant::LinuxReno, Profile::Linux, window(4));
        assert_eq!(polled(&mut sender, 0), 4);
        sender.receive(&ack("ack 2", 100 * MS), 100 * MS);
        assert_eq!(polled(&mut sender, 100 * MS), 2);
        assert_eq!(sender.rtt.rto(), 300 * MS);
        sender
    }

    /// Deadlines of the timeout, the probe and the reordering window, in microseconds.
    fn set(sender: &Sender) -> [Option<u64>; 3] {
        let rack = &sender.rack;
        [sender.rto_timer, rack.probe_timer, rack.reordering_timer].map(|timer| {
            Some(timer.deadline())
                .filter(|&at| at != NEVER)
                .map(|at| at / 1000)
        })
    }

    #[test]
    fn a_probe_comes_after_two_round_trips_but_no_later_than_a_timeout_that_is_still_to_come() {
        let mut sender = begun();
        // 2 srtt and 2 ms from 100 ms is 302 ms; the oldest segment left at 0 and times out at 300, a tick before it fires.
        assert_eq!(set(&sender), [None, Some(304_000), None]);
        sender.time_new_data(250 * MS);
        assert_eq!(set(&sender), [None, Some(304_000), None]);
        sender.time_new_data(300 * MS);
        assert_eq!(set(&sender), [None, Some(508_000), None], "it is past");
    }

    #[test]
    fn a_timeout_that_takes_its_turn_back_counts_from_when_the_oldest_left() {
        let mut sender = begun();
        sender.rearm_timeout(200 * MS);
        assert_eq!(set(&sender), [Some(304_000), None, None]);
        sender.rearm_timeout(200 * MS);
        // 75 ticks are counted by eights.
        assert_eq!(set(&sender), [Some(512_000), None, None], "it was its own");
        sender.time_new_data(400 * MS);
        sender.rearm_timeout(450 * MS);
        assert_eq!(set(&sender), [Some(456_000), None, None], "at once");
    }

    #[test]
    fn only_a_retransmission_of_the_oldest_restarts_the_timeout_and_not_while_rack_waits() {
        let mut sender = begun();
        sender.time_retransmission(2, 200 * MS);
        assert_eq!(set(&sender), [None, Some(304_000), None]);
        sender.time_retransmission(1, 200 * MS);
        assert_eq!(set(&sender), [Some(512_000), None, None]);
        sender.receive(&ack("ack 2 sack 3-3", 210 * MS), 210 * MS);
        // 210 ms after they left, a quarter of the minimum RTT, and 2 ms.
        let waits = [None, None, Some(240_000)];
        assert_eq!(set(&sender), waits);
        sender.time_retransmission(1, 220 * MS);
        assert_eq!(set(&sender), waits);
    }

    #[test]
    fn racks_timer_gives_way_to_the_timeout_of_the_oldest() {
        let mut sender = begun();
        sender.receive(&ack("ack 2 sack 3-3", 110 * MS), 110 * MS);
        assert_eq!(set(&sender), [None, None, Some(140_000)]);
        sender.on_deadline(140 * MS);
        // The sample of 110 ms made the timeout 301.25 ms, which are 76 ticks.
        assert_eq!(set(&sender), [Some(308_000), None, None]);
        assert_eq!(polled(&mut sender, 140 * MS), 1);
        assert_eq!(
            set(&sender),
            [Some(448_000), None, None],
            "it was retransmitted"
        );
    }

    #[test]
    fn what_pacing_holds_back_has_its_time_from_when_it_may_leave() {
        let mut sender = begun();
        let mut pacer = Pacer::default();
        // 1000 octets take 40 ms, half of them saved by the credit of the first 300 ms.
        pacer.set_pace(Pace::new(25.0, 1), 1000, None);
        pacer.on_send(1, 1000, 10, 300 * MS);
        sender.pacer = Some(pacer);
        sender.time_new_data(300 * MS);
        assert_eq!(set(&sender), [None, Some(528_000), None]);
        sender.rack.probe_timer.stop();
        sender.rearm_timeout(300 * MS);
        assert_eq!(set(&sender), [Some(640_000), None, None]);
    }
}

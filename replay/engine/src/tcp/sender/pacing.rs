//! Pacing as in Linux's TCP-internal pacing: bursts of a few segments, each of which delays the next one. No cost without a
//! controller that paces.
//!
//! Does not depend on why the rate is what it is.

use super::Sender;
use crate::cc::Pace;
use crate::sim::time::{Nanos, SECOND};
use crate::tcp::timer::Timer;

/// Linux: the first segments of a connection leave unpaced.
const UNPACED_PKTS: u64 = 10;
/// Linux: a burst is what is sent in 2⁻¹⁰ s, …
const BURST_PER_S: f64 = 1024.0;
/// … more on short paths: 64 KiB halved once per 512 µs of the minimum RTT, …
const BURST_MAX_BYTES: u32 = 65_536;
const BURST_HALVING: Nanos = 512_000;
/// … but never more than that.
const BURST_HALVINGS: Nanos = 32;

/// What leaves back to back: at one instant, in sequence.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    at: Nanos,
    /// Its departure timestamp.
    stamp: Nanos,
    next_seq: u64,
    left: u32,
}

/// The pacer of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    bytes_per_s: f64,
    /// Whether there is a rate to keep to: one that takes time.
    keeps_rate: bool,
    burst_pkts: u32,
    /// What a full segment takes, and its octets.
    full: (Nanos, u32),
    /// What these were worked out from last.
    set_for: (Pace, Option<Nanos>),
    /// The next burst may leave from here on.
    release: Nanos,
    /// What the last burst left later than it might have: it may shorten the wait by half at most.
    credit: Nanos,
    burst: Burst,
    /// Fires when something waits for `release`.
    pub timer: Timer,
    /// Whether the first segments wait as well.
    paces_all: bool,
}

impl Pacer {
    /// When the next burst may leave.
    #[inline]
    pub fn release(&self) -> Nanos {
        self.release
    }

    /// The first segments of the connection are paced too.
    pub fn pace_all(&mut self) {
        self.paces_all = true;
    }

    /// Segments of a burst.
    pub fn burst_pkts(&self) -> u32 {
        self.burst_pkts
    }

    /// Sets the pace of segments of `smss_bytes`.
    #[inline(always)]
    pub fn set_pace(&mut self, pace: Pace, smss_bytes: u32, min_rtt: Option<Nanos>) {
        let given = (pace, min_rtt);
        if given != self.set_for {
            self.set_for = given;
            self.work_out(pace, smss_bytes, min_rtt);
        }
    }

    #[inline(never)]
    fn work_out(&mut self, pace: Pace, smss_bytes: u32, min_rtt: Option<Nanos>) {
        self.bytes_per_s = pace.pkts_per_s * f64::from(smss_bytes);
        self.keeps_rate = self.bytes_per_s.is_finite() && self.bytes_per_s > 0.0;
        self.full = (self.duration(smss_bytes), smss_bytes);
        let halvings = min_rtt.unwrap_or(Nanos::MAX) / BURST_HALVING;
        let near = if halvings < BURST_HALVINGS {
            BURST_MAX_BYTES >> halvings
        } else {
            0
        };
        let bytes = (self.bytes_per_s / BURST_PER_S + f64::from(near)).min(BURST_MAX_BYTES.into());
        self.burst_pkts = ((bytes / f64::from(smss_bytes)) as u32)
            .max(pace.min_burst_pkts)
            .min(pace.max_burst_pkts);
    }

    /// Whether the segment that begins at `seq` may leave now; else the timer is set. `joins`: it may be part of the last
    /// burst.
    #[inline]
    pub fn allows(&mut self, seq: u64, joins: bool, now: Nanos) -> bool {
        if self.release <= now || joins && self.goes_on(seq, now) {
            return true;
        }
        self.timer.set(self.release);
        false
    }

    /// Whether it has refused the next segment of new data since the last one left, and would refuse it again.
    #[inline]
    pub fn holds(&self, now: Nanos) -> bool {
        self.release > now && self.burst.at != now && self.timer.is_set_for(self.release)
    }

    /// Whether the segment that begins at `seq` belongs to the last burst.
    #[inline]
    fn goes_on(&self, seq: u64, now: Nanos) -> bool {
        self.burst.left > 0 && self.burst.at == now && self.burst.next_seq == seq
    }

    /// Linux (`tcp_wstamp_ns`): the time that the segment from `seq` on bears if it leaves now. What does not wait for the
    /// pacer, as the retransmission of a timeout, bears the time until which it ought to have waited.
    pub fn stamp(&self, seq: u64, now: Nanos) -> Nanos {
        if self.goes_on(seq, now) {
            self.burst.stamp
        } else {
            self.release.max(now)
        }
    }

    /// What so many octets take at the rate.
    fn duration(&self, bytes: u32) -> Nanos {
        (f64::from(bytes) * SECOND as f64 / self.bytes_per_s) as Nanos
    }

    /// A segment of `bytes` from `seq` on leaves, the connection's `count`-th.
    #[inline]
    pub fn on_send(&mut self, seq: u64, bytes: u32, count: u64, now: Nanos) {
        if !self.goes_on(seq, now) {
            self.burst.left = self.burst_pkts;
            self.burst.at = now;
            self.credit = now.saturating_sub(self.release);
            self.release = self.release.max(now);
            self.burst.stamp = self.release;
        }
        self.burst.left = self.burst.left.saturating_sub(1);
        self.burst.next_seq = seq + u64::from(bytes);
        if self.keeps_rate && (self.paces_all || count >= UNPACED_PKTS) {
            let (full, full_bytes) = self.full;
            let whole = if bytes == full_bytes {
                full
            } else {
                self.duration(bytes)
            };
            let saved = self.credit.min(whole / 2);
            self.credit -= saved;
            self.release = self.release.saturating_add(whole - saved);
        }
    }
}

impl Sender {
    /// Whether the pacer's bursts are those of the minimum RTT as it is now.
    #[inline(always)]
    pub(in crate::tcp) fn paces_for_min_rtt(&self) -> bool {
        let min_rtt = self.rtt.min_rtt();
        self.pacer
            .as_ref()
            .is_none_or(|pacer| pacer.set_for.1 == min_rtt)
    }

    /// Takes over the pace of the controller.
    #[inline(always)]
    pub(in crate::tcp) fn update_pacing(&mut self) {
        if self.pacer.is_none() {
            return;
        }
        let outstanding = self.board.outstanding();
        let mut pace = self.controller.pace(self.rtt.path_srtt(), outstanding);
        if self.quick_start.is_some() {
            pace.pkts_per_s = pace.pkts_per_s.min(self.quick_start_pkts_per_s());
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.set_pace(pace, self.params.smss_bytes, self.rtt.min_rtt());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::catalogue::Variant;
    use crate::config::{Profile, StackOverrides};
    use crate::sim::time::MILLISECOND;
    use crate::tcp::ladder::{check, parse, sender, window};

    const MS: Nanos = MILLISECOND;

    /// 1000 octets a millisecond, bursts of `burst`.
    fn pacer(burst: u32) -> Pacer {
        let mut pacer = Pacer::default();
        pacer.set_pace(Pace::new(1e3, burst), 1000, Some(SECOND));
        pacer
    }

    #[test]
    fn single_segments_keep_their_distance_to_the_nanosecond() {
        let mut pacer = pacer(1);
        pacer.on_send(0, 1000, 10, 50 * MS);
        // The clock stood at zero: the credit of 50 ms halves the first wait.
        assert_eq!(pacer.release(), 50 * MS + MS / 2);
        assert!(!pacer.allows(1000, true, 50 * MS + MS / 2 - 1));
        assert_eq!(pacer.timer.armed(), 50 * MS + MS / 2);
        assert!(pacer.allows(1000, true, 50 * MS + MS / 2));
        pacer.on_send(1000, 1000, 11, 50 * MS + MS / 2);
        assert_eq!(pacer.release(), 51 * MS + MS / 2);
        assert!(!pacer.allows(2000, true, 51 * MS + MS / 2 - 1));
    }

    #[test]
    fn a_burst_leaves_at_once_and_pays_for_all_of_it() {
        let mut pacer = pacer(2);
        pacer.release = 50 * MS;
        pacer.on_send(0, 1000, 10, 50 * MS);
        assert!(pacer.allows(1000, true, 50 * MS));
        pacer.on_send(1000, 1000, 11, 50 * MS);
        assert!(!pacer.allows(2000, true, 50 * MS), "two, not three");
        assert_eq!(pacer.release(), 52 * MS);
    }

    #[test]
    fn only_what_is_adjacent_joins_a_burst() {
        let mut pacer = pacer(2);
        pacer.release = 50 * MS;
        pacer.on_send(0, 1000, 10, 50 * MS);
        assert!(!pacer.allows(5000, true, 50 * MS));
        assert!(
            !pacer.allows(1000, true, 50 * MS + 1),
            "nor what comes later"
        );
    }

    #[test]
    fn the_first_segments_leave_unpaced() {
        let mut pacer = pacer(1);
        for count in 1..10 {
            pacer.on_send(1000 * (count - 1), 1000, count, 50 * MS);
            assert!(pacer.allows(1000 * count, true, 50 * MS), "after {count}");
        }
        pacer.on_send(9000, 1000, 10, 50 * MS);
        assert!(!pacer.allows(10_000, true, 50 * MS));
    }

    #[test]
    fn linux_a_timeouts_retransmission_bears_the_time_until_which_the_pacer_would_have_held_it() {
        let min_rtt_after_ack_at = |at| {
            let overrides = StackOverrides {
                tail_loss_probe: Some(false),
                ..window(2)
            };
            let mut sender = sender(Variant::Bbr, Profile::Linux, overrides);
            while sender.poll_transmit(0).is_some() {}
            if let Some(pacer) = &mut sender.pacer {
                pacer.release = 2 * SECOND;
            }
            let due = sender.next_deadline();
            sender.on_deadline(due);
            let again = sender.poll_transmit(due);
            assert_eq!(again.map(|s| (s.seq, s.ts_val)), Some((1, 2000)));
            sender.receive(&parse("ack 2 echo 2000", at), at);
            sender.rtt.min_rtt()
        };
        // Sent at 1.024 s and acknowledged at 2.1: 100 ms by the echo. One of later than now measures nothing.
        assert_eq!(min_rtt_after_ack_at(2100 * MS), Some(100 * MS));
        assert_eq!(min_rtt_after_ack_at(1900 * MS), None);
    }

    #[test]
    fn what_joins_a_burst_bears_the_time_of_its_first_segment() {
        let mut pacer = pacer(2);
        pacer.release = 60 * MS;
        assert_eq!(pacer.stamp(0, 50 * MS), 60 * MS);
        pacer.on_send(0, 1000, 10, 50 * MS);
        assert_eq!(pacer.release(), 61 * MS);
        assert_eq!(pacer.stamp(1000, 50 * MS), 60 * MS);
        assert_eq!(pacer.stamp(5000, 50 * MS), 61 * MS);
        assert_eq!(pacer.stamp(5000, 70 * MS), 70 * MS);
    }

    #[test]
    fn bursts_grow_with_the_rate_and_on_short_paths() {
        let burst = |bytes_per_s, min_rtt| {
            let mut pacer = Pacer::default();
            pacer.set_pace(Pace::new(bytes_per_s / 1448.0, 2), 1448, min_rtt);
            pacer.burst_pkts
        };
        assert_eq!(burst(1e5, Some(SECOND)), 2);
        // 7.2 MB/s: 7031 octets in 2⁻¹⁰ s.
        assert_eq!(burst(7.2e6, Some(SECOND)), 4);
        assert_eq!(burst(1e9, Some(SECOND)), 45, "64 KiB");
        // 2 ms: 65536 >> 3 = 8192 octets more.
        assert_eq!(burst(7.2e6, Some(2 * MS)), 10);
        assert_eq!(burst(f64::INFINITY, Some(SECOND)), 45);
    }

    #[test]
    fn a_burst_that_has_a_most_grows_neither_with_the_rate_nor_on_short_paths() {
        let burst = |max_burst_pkts, min_rtt| {
            let mut pacer = Pacer::default();
            let pace = Pace {
                max_burst_pkts,
                ..Pace::new(1e9 / 1448.0, 1)
            };
            pacer.set_pace(pace, 1448, Some(min_rtt));
            pacer.burst_pkts
        };
        assert_eq!((burst(1, SECOND), burst(1, MS), burst(2, MS)), (1, 1, 2));
        assert_eq!(burst(u32::MAX, SECOND), 45);
    }

    /// A sender of 12 segments that sends them again as soon as a timeout has marked them.
    fn retransmitting() -> Sender {
        let overrides = StackOverrides {
            send_buffer_bytes: Some(1_000_000),
            tail_loss_probe: Some(false),
            frto: Some(false),
            ..window(12)
        };
        sender(Variant::Bbr, Profile::Linux, overrides)
    }

    #[test]
    fn retransmissions_leave_together_only_where_they_did_before() {
        // 1 to 12 left as one, and 13 and 14. Acknowledged up to 12, that is alone; the other two still are a pair.
        check(
            retransmitting(),
            "0.000 > 1 2 3 4 5 6 7 8 9 10 11 12 (cwnd 12 slow start)
             0.100 < ack 3
             0.100 > 13 14 (cwnd 14 slow start)
             0.103 > 15 16 (cwnd 14 slow start)
             0.416 > R3 (cwnd 1 loss)
             0.500 < ack 12
             0.500 > R12 (cwnd 10 loss)
             0.501 > R13 R14 (cwnd 10 loss)
             0.507 > R15 R16 (cwnd 10 loss)
             0.513 > 17 18 (cwnd 10 loss)
             0.518 end",
        );
    }

    #[test]
    fn new_data_does_not_join_the_last_retransmission() {
        check(
            retransmitting(),
            "0.000 > 1 2 3 4 5 6 7 8 9 10 11 12 (cwnd 12 slow start)
             0.100 < ack 3 wnd 11
             0.100 > 13 (cwnd 14 limited)
             0.416 > R3 (cwnd 1 loss)
             0.500 < ack 12 wnd 100
             0.500 > R12 (cwnd 10 loss)
             0.501 > R13 (cwnd 10 loss)
             0.504 > 14 15 (cwnd 10 loss)
             0.506 end",
        );
    }
}

//! BBR's pacing rate and the bursts that go with it: what a bandwidth means in segments per second, and what has to be
//! in flight in addition to the product, because segments leave in bursts. Every version paces like this.
//!
//! Does not depend on modes; a gain is an argument. Facts: Linux 6.x, tcp_bbr.c, "pacing" and "quantization budget".

use super::fixed;
use crate::cc::Pace;
use crate::sim::time::{MILLISECOND, Nanos};

/// Below this pacing rate bursts are single segments (1.2 Mbit/s).
const MIN_BURST_BYTES_PER_S: f64 = 150_000.0;
/// Linux: a burst is what is sent in 2⁻¹⁰ s, at most about 64 KiB.
const BURST_PER_S: f64 = 1024.0;
const MAX_BURST_PKTS: f64 = 127.0;
const MAX_BURST_BYTES: f64 = 65_216.0;
/// Version 3 adds to it on short paths.
const SHORT_PATH_BURST_BYTES: u32 = 65_536;
const BURST_HALVING: Nanos = 512_000;
const BURST_HALVINGS: Nanos = 32;
/// Round-trip time that is assumed before the first sample.
const ASSUMED_RTT: Nanos = MILLISECOND;

/// The rate, in segments per second.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    smss_bytes: f64,
    margin_percent: f64,
    pace: Pace,
    /// The bandwidth and the gain that the rate is of, and what it means in segments of a burst.
    set_for: (u64, u64),
    burst_goal: u64,
    has_seen_rtt: bool,
}

impl Pacer {
    /// A pacer without a rate yet, which will pace `margin_percent` below the rate that it is given.
    pub fn new(smss_bytes: u32, margin_percent: f64) -> Self {
        let mut pacer = Self {
            smss_bytes: f64::from(smss_bytes),
            margin_percent,
            pace: Pace::UNPACED,
            set_for: (u64::MAX, u64::MAX),
            burst_goal: 0,
            has_seen_rtt: false,
        };
        pacer.set_rate(f64::INFINITY);
        pacer
    }

    /// Octets of a segment.
    pub fn smss_bytes(&self) -> f64 {
        self.smss_bytes
    }

    /// The rate, and the segments that leave back to back at least.
    #[inline]
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The same in octets.
    pub fn bytes_per_s(&self) -> f64 {
        self.pace.pkts_per_s * self.smss_bytes
    }

    /// Whether the rate still rests on an assumed round-trip time.
    #[inline]
    pub fn lacks_rtt(&self) -> bool {
        !self.has_seen_rtt
    }

    /// The first rate: a window per round-trip time, times `gain`.
    pub fn begin(&mut self, cwnd: u64, rtt: Option<Nanos>, gain: u64) {
        self.has_seen_rtt = rtt.is_some();
        let bw = fixed::bandwidth(cwnd, rtt.unwrap_or(ASSUMED_RTT));
        self.take(bw, gain, self.rate(bw, gain));
    }

    /// The rate for `bw` times `gain`; one that `may_fall` no longer only rises. Returns whether it is set anew.
    #[inline]
    pub fn set(&mut self, bw: u64, gain: u64, may_fall: bool) -> bool {
        if self.set_for == (bw, gain) {
            return false;
        }
        let rate = self.rate(bw, gain);
        let changes = may_fall || rate > self.pace.pkts_per_s;
        if changes {
            self.take(bw, gain, rate);
        }
        changes
    }

    fn take(&mut self, bw: u64, gain: u64, rate: f64) {
        self.set_for = (bw, gain);
        self.set_rate(rate);
    }

    fn set_rate(&mut self, pkts_per_s: f64) {
        self.pace.pkts_per_s = pkts_per_s;
        let slow = self.bytes_per_s() < MIN_BURST_BYTES_PER_S;
        self.pace.min_burst_pkts = if slow { 1 } else { 2 };
        self.burst_goal = self.burst_with(0.0);
    }

    fn rate(&self, bw: u64, gain: u64) -> f64 {
        fixed::rate_pkts_per_s(bw, gain, self.margin_percent)
    }

    /// Segments of a burst, whatever the interface allows.
    #[inline]
    pub fn burst_goal(&self) -> u64 {
        self.burst_goal
    }

    /// The same on a path of `min_rtt` (version 3): near ones may have more, 64 KiB halved once per 512 µs.
    #[inline]
    pub fn burst_goal_on(&self, min_rtt: Nanos) -> u64 {
        if min_rtt < BURST_HALVINGS * BURST_HALVING {
            self.burst_with(f64::from(
                SHORT_PATH_BURST_BYTES >> (min_rtt / BURST_HALVING),
            ))
        } else {
            self.burst_goal
        }
    }

    fn burst_with(&self, bytes: f64) -> u64 {
        let bytes = (self.bytes_per_s() / BURST_PER_S + bytes).min(MAX_BURST_BYTES);
        let segments = libm::floor(bytes / self.smss_bytes);
        segments
            .max(self.pace.min_burst_pkts.into())
            .min(MAX_BURST_PKTS) as u64
    }

    /// `segments` with three bursts more: sent, on its way back, waiting for the pacer.
    pub fn with_bursts(&self, segments: u64) -> u64 {
        segments + 3 * self.burst_goal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::variants::bbr::fixed::{UNIT, bandwidth};
    use crate::sim::time::{NEVER, SECOND};

    fn at(pkts_per_s: u64) -> Pacer {
        let mut pacer = Pacer::new(1448, 0.0);
        pacer.set(bandwidth(pkts_per_s, SECOND), UNIT, true);
        pacer
    }

    #[test]
    fn a_burst_is_a_millisecond_of_the_rate_between_one_segment_and_64_kib() {
        // 150 000 octets a second are 103.6 segments.
        assert_eq!((at(103).burst_goal(), at(104).burst_goal()), (1, 2));
        // 10 240 segments a second: ten per 2⁻¹⁰ s, less the rounding of the bandwidth.
        assert_eq!((at(10_235).burst_goal(), at(10_250).burst_goal()), (9, 10));
        assert_eq!(at(1_000_000).burst_goal(), 45, "65 216 octets");
        assert_eq!(at(10_250).with_bursts(100), 130);
        // 2 ms: 65 536 >> 3 = 8192 octets more, which make 15.6 of 10.
        assert_eq!(at(10_250).burst_goal_on(2 * MILLISECOND), 15);
        assert_eq!(at(10_250).burst_goal_on(SECOND), 10);
        assert_eq!(at(10_250).burst_goal_on(NEVER), 10);
    }

    #[test]
    fn a_rate_that_may_not_fall_only_rises() {
        let mut pacer = at(100);
        let hundred = pacer.pace().pkts_per_s;
        pacer.set(bandwidth(50, SECOND), UNIT, false);
        assert_eq!(pacer.pace().pkts_per_s.to_bits(), hundred.to_bits());
        pacer.set(bandwidth(50, SECOND), UNIT, true);
        assert!((49.9..50.1).contains(&pacer.pace().pkts_per_s));
        pacer.set(bandwidth(100, SECOND), UNIT, false);
        assert_eq!(pacer.pace().pkts_per_s.to_bits(), hundred.to_bits());
    }
}

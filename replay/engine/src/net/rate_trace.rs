//! A rate that a trace gives over time: when a packet that begins its service at some time has been sent.
//!
//! Does not depend on queues or packets, only octets. Unlike a new rate of the schedule, which holds from the next packet in
//! service, the trace's holds at once, as each of its intervals may be shorter than a packet takes. A rate of 0 sends
//! nothing. At its end the trace starts again (as mm-link does). Read `docs/channels/interop.md`.

use crate::config::RateTraceConfig;
use crate::sim::time::{Nanos, SECOND};

/// Bits behind the point of an octet and of the time that one takes.
const FRACTION_BITS: u32 = 32;

/// A rate trace in play.
pub struct RateTrace {
    starts: Vec<Nanos>,
    /// What one octet takes in 2^-32 ns; 0: nothing is sent.
    ns_per_byte: Vec<u64>,
    length: Nanos,
    /// Beginning of the round through the trace that is being played, and the interval in it.
    origin: Nanos,
    at: usize,
}

impl RateTrace {
    /// A trace that starts with the run.
    pub fn new(config: &RateTraceConfig) -> Self {
        let scale = (1_u64 << FRACTION_BITS) as f64;
        let takes = |bps: f64| {
            if bps > 0.0 {
                ((8.0 * SECOND as f64 * scale / bps) as u64).max(1)
            } else {
                0
            }
        };
        Self {
            starts: config.starts_ns.clone(),
            ns_per_byte: config.rates_bps.iter().map(|&bps| takes(bps)).collect(),
            length: config.end_ns,
            origin: 0,
            at: 0,
        }
    }

    /// What one octet takes over the whole trace, in 2^-32 ns.
    pub fn mean_ns_per_byte(config: &RateTraceConfig) -> u64 {
        let ends = config.starts_ns.iter().skip(1).chain([&config.end_ns]);
        let bits: f64 = config
            .starts_ns
            .iter()
            .zip(ends)
            .zip(&config.rates_bps)
            .map(|((start, end), bps)| (end - start) as f64 * bps)
            .sum();
        let scale = (1_u64 << FRACTION_BITS) as f64;
        ((8.0 * config.end_ns as f64 * SECOND as f64 * scale / bits) as u64).max(1)
    }

    /// When a packet has been sent whose service begins at `start`; starts ascend.
    pub fn finish(&mut self, size_bytes: u16, start: Nanos) -> Nanos {
        self.go_to(start);
        let mut left = u128::from(size_bytes) << FRACTION_BITS;
        let mut now = start;
        loop {
            let takes = u128::from(self.ns_per_byte[self.at]);
            let end = self.end();
            let span = u128::from(end - now) << (2 * FRACTION_BITS);
            if let Some(room) = span.checked_div(takes) {
                if room >= left {
                    let one = 1_u128 << (2 * FRACTION_BITS);
                    return now + (left * takes).div_ceil(one) as Nanos;
                }
                left -= room;
            }
            now = end;
            self.step();
        }
    }

    /// End of the interval.
    fn end(&self) -> Nanos {
        let within = self.starts.get(self.at + 1).unwrap_or(&self.length);
        self.origin + within
    }

    fn step(&mut self) {
        self.at += 1;
        if self.at == self.starts.len() {
            self.at = 0;
            self.origin += self.length;
        }
    }

    fn go_to(&mut self, time: Nanos) {
        if time >= self.origin + 2 * self.length {
            // The link was idle for rounds.
            self.origin = time - time % self.length;
            self.at = 0;
        }
        while self.end() <= time {
            self.step();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    /// One packet of 1500 octets in ms 0, none in ms 1, four in ms 2 and 3 together.
    fn trace() -> RateTrace {
        RateTrace::new(&RateTraceConfig {
            starts_ns: vec![0, MILLISECOND, 2 * MILLISECOND],
            rates_bps: vec![12e6, 0.0, 24e6],
            end_ns: 4 * MILLISECOND,
        })
    }

    #[test]
    fn a_busy_link_sends_what_each_interval_holds_and_starts_again() {
        let mut link = trace();
        let mut at = 0;
        let mut ends = Vec::new();
        for _ in 0..7 {
            at = link.finish(1500, at);
            ends.push(at);
        }
        let half = MILLISECOND / 2;
        let exact = [2, 5, 6, 7, 8, 10, 13].map(|halves| halves * half);
        for (got, end) in ends.iter().zip(exact) {
            assert!(got.abs_diff(end) <= 1, "{ends:?}");
        }
    }

    #[test]
    fn a_packet_goes_on_at_the_next_rate() {
        // 750 octets in the second half of ms 0, the rest after the pause at twice the rate.
        let got = trace().finish(1500, MILLISECOND / 2);
        assert!(
            got.abs_diff(2 * MILLISECOND + MILLISECOND / 4) <= 1,
            "{got}"
        );
    }

    #[test]
    fn an_idle_link_keeps_nothing_for_later() {
        let got = trace().finish(1500, 403 * MILLISECOND);
        assert!(
            got.abs_diff(403 * MILLISECOND + MILLISECOND / 2) <= 1,
            "{got}"
        );
        let got = trace().finish(3000, 401 * MILLISECOND);
        assert!(got.abs_diff(403 * MILLISECOND) <= 1, "{got}");
    }

    #[test]
    fn the_mean_counts_the_pause() {
        let config = RateTraceConfig {
            starts_ns: vec![0, MILLISECOND, 2 * MILLISECOND],
            rates_bps: vec![12e6, 0.0, 24e6],
            end_ns: 4 * MILLISECOND,
        };
        // 15 Mbit/s: 533.3 ns per octet.
        let mean = RateTrace::mean_ns_per_byte(&config) as f64 / 4_294_967_296.0;
        assert!((mean - 1600.0 / 3.0).abs() < 1e-6);
    }
}

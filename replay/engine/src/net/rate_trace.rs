//! A rate over time, given by a trace: when a packet whose service begins at some time has been sent.
//!
//! Does not depend on queues or packets, only on octets. A new rate of the schedule applies from the next packet in
//! service; a new rate of the trace applies immediately, as an interval of the trace may be shorter than the service of
//! a packet. At rate 0 nothing is sent. After its end the trace starts again (as in mm-link). Read
//! `docs/channels/interop.md`.

use crate::config::RateTraceConfig;
use crate::sim::time::{Nanos, SECOND};

/// Fractional bits of octets and of the serialisation time of an octet.
pub const FRACTION_BITS: u32 = 32;

/// Serialisation time of an octet in 2^-32 ns; without a rate 0.
pub fn ns_per_byte(rate_bps: Option<f64>) -> u64 {
    let scale = (1_u64 << FRACTION_BITS) as f64;
    rate_bps.map_or(0, |bps| ((8.0 * SECOND as f64 * scale / bps) as u64).max(1))
}

/// A rate trace and the position in it.
pub struct RateTrace {
    starts: Vec<Nanos>,
    /// Serialisation time of an octet in 2^-32 ns; 0: nothing is sent.
    ns_per_byte: Vec<u64>,
    length: Nanos,
    /// Start of the present repetition of the trace, and the index of the interval.
    origin: Nanos,
    at: usize,
}

impl RateTrace {
    /// The trace starts with the run.
    pub fn new(config: &RateTraceConfig) -> Self {
        let sends = |&bps: &f64| Some(bps).filter(|bps| *bps > 0.0);
        let rates = config.rates_bps.iter().map(sends);
        Self {
            starts: config.starts_ns.clone(),
            ns_per_byte: rates.map(ns_per_byte).collect(),
            length: config.end_ns,
            origin: 0,
            at: 0,
        }
    }

    /// Mean serialisation time of an octet over the whole trace, in 2^-32 ns.
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

    /// When a packet has been sent whose service begins at `start`; successive starts ascend.
    pub fn finish(&mut self, size_bytes: u16, start: Nanos) -> Nanos {
        self.advance_to(start);
        let mut left = u128::from(size_bytes) << FRACTION_BITS;
        let mut now = start;
        loop {
            let ns_of_byte = u128::from(self.ns_per_byte[self.at]);
            let end = self.end();
            let span = u128::from(end - now) << (2 * FRACTION_BITS);
            if let Some(capacity) = span.checked_div(ns_of_byte) {
                if capacity >= left {
                    let one = 1_u128 << (2 * FRACTION_BITS);
                    return now + (left * ns_of_byte).div_ceil(one) as Nanos;
                }
                left -= capacity;
            }
            now = end;
            self.next_interval();
        }
    }

    /// End of the present interval.
    fn end(&self) -> Nanos {
        let within = self.starts.get(self.at + 1).unwrap_or(&self.length);
        self.origin + within
    }

    fn next_interval(&mut self) {
        self.at += 1;
        if self.at == self.starts.len() {
            self.at = 0;
            self.origin += self.length;
        }
    }

    fn advance_to(&mut self, time: Nanos) {
        if time >= self.origin + 2 * self.length {
            // The link was idle for several repetitions.
            self.origin = time - time % self.length;
            self.at = 0;
        }
        while self.end() <= time {
            self.next_interval();
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
    fn a_busy_link_sends_at_the_rate_of_each_interval_and_repeats_the_trace() {
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
    fn a_packet_continues_at_the_next_rate() {
        // 750 octets in the second half of ms 0, the rest after the gap at twice the rate.
        let got = trace().finish(1500, MILLISECOND / 2);
        assert!(
            got.abs_diff(2 * MILLISECOND + MILLISECOND / 4) <= 1,
            "{got}"
        );
    }

    #[test]
    fn an_idle_link_saves_no_capacity() {
        let got = trace().finish(1500, 403 * MILLISECOND);
        assert!(
            got.abs_diff(403 * MILLISECOND + MILLISECOND / 2) <= 1,
            "{got}"
        );
        let got = trace().finish(3000, 401 * MILLISECOND);
        assert!(got.abs_diff(403 * MILLISECOND) <= 1, "{got}");
    }

    #[test]
    fn the_mean_includes_the_gap() {
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

//! AFStart: slow start towards a threshold that the spacing of ACKs tells, by a share of what is missing.
//!
//! Does not depend on recovery. Read Zhang, Ansari, Wu and Yu 2012 (abstract) first, then `docs/variants/afstart.md`.

use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::{parameters, starts_with};
use crate::cc::{AckEvidence, MIN_SSTHRESH, RecoveryPhase, Reno, Window, WindowIncrease};
use crate::sim::time::{Nanos, SECOND};

parameters! {
    /// Parameters of AFStart.
    pub struct AfstartParams {
        /// Segments of a stream whose ACKs give one sample of the available bandwidth.
        stream: whole(5, "segments", 2, 100, "Cao, Hasegawa and Murata 2004 (ImTCP), recalled"),
        /// Weight of a new sample.
        weight: number(0.5, "", 0.01, 1.0, "chosen: the paper's text was not at hand"),
        /// Share of what is missing to ssthresh that a round trip adds.
        gain: number(0.5, "", 0.05, 2.0, "chosen: the paper's text was not at hand"),
        /// Maximum increase per segment acknowledged.
        max_increase: number(8.0, "segments", 1.0, 100.0, "chosen: the paper's text was not at hand"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "afstart",
    family: "loss",
    summary: "Reno; slow start aims at a threshold estimated from the spacing of ACKs",
    source: "Zhang et al. 2012",
    year: 2012,
    params: AfstartParams::SPECS,
    parts: |stack, values, _| {
        ControllerParts::halved(Afstart::new(AfstartParams::of(values)), stack.profile)
    },
    ..Definition::BASE
};

/// The ACKs of a stream so far.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    first: Option<Nanos>,
    segments: u32,
    /// Octet that ends the flight it belongs to: the next flight's ACKs come after a pause.
    flight_end: u64,
}

/// State of AFStart.
#[derive(Clone, Debug, Default)]
pub struct Afstart {
    params: AfstartParams,
    stream: Stream,
    /// Segments per second.
    available: Option<f64>,
    reno: Reno,
}

/// What a segment acknowledged adds to `window` below ssthresh: `gain` of what is missing per round trip, at least a
/// segment per round trip.
fn increment(window: &Window, gain: f64, most: f64) -> f64 {
    let missing = window.ssthresh - window.cwnd;
    (gain * missing / window.cwnd).clamp(1.0 / window.cwnd, most)
}

starts_with!(Afstart, AfstartParams);

impl Afstart {
    /// Takes an ACK of a stream; the rate in segments per second when it is whole.
    fn sample(&mut self, ack: &AckEvidence) -> Option<f64> {
        let stream = &mut self.stream;
        let Some(first) = stream.first.filter(|_| ack.snd_una <= stream.flight_end) else {
            *stream = Stream {
                first: Some(ack.now),
                segments: 0,
                flight_end: ack.snd_nxt,
            };
            return None;
        };
        stream.segments += ack.delivered;
        if stream.segments < self.params.stream || ack.now == first {
            return None;
        }
        let rate = f64::from(stream.segments) * SECOND as f64 / (ack.now - first) as f64;
        (stream.first, stream.segments) = (Some(ack.now), 0);
        Some(rate)
    }

    fn update_threshold(&mut self, window: &mut Window, ack: &AckEvidence) {
        let (Some(rate), Some(min_rtt)) = (self.sample(ack), ack.min_rtt) else {
            return;
        };
        let weight = self.params.weight;
        let available = match self.available {
            Some(known) => (1.0 - weight) * known + weight * rate,
            None => rate,
        };
        self.available = Some(available);
        window.ssthresh = (available * min_rtt as f64 / SECOND as f64).max(MIN_SSTHRESH);
    }
}

impl WindowIncrease for Afstart {
    const OWNS_SLOW_START: bool = true;

    fn on_ack(&mut self, window: &mut Window, acked: f64, ack: &AckEvidence) {
        if !ack.cwnd_limited {
            return;
        }
        if !window.in_slow_start() {
            self.reno.on_ack(window, acked, ack);
            return;
        }
        // What a timeout found lost leaves in flights that `snd_nxt` does not tell apart: nothing is measured.
        if ack.recovery_phase != RecoveryPhase::Loss {
            self.update_threshold(window, ack);
        }
        if !window.in_slow_start() {
            return;
        }
        let step = if window.ssthresh.is_finite() && self.available.is_some() {
            increment(window, self.params.gain, self.params.max_increase)
        } else {
            // RFC 5681 §3.1 until the first sample.
            1.0
        };
        window.cwnd = (window.cwnd + step * acked).min(window.ssthresh);
    }

    fn on_decrease(&mut self, before: &Window) {
        self.reno.on_decrease(before);
        self.stream = Stream::default();
    }

    /// The path may be another one: slow start measures again.
    fn on_timeout(&mut self) {
        self.reno.on_timeout();
        self.available = None;
    }

    fn on_idle(&mut self, idle: Nanos) {
        self.reno.on_idle(idle);
        self.stream = Stream::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    /// An ACK of one segment of 1000 octets, `n`-th of its flight of `flight`.
    fn ack(now_ms: u64, n: u64, flight: u64) -> AckEvidence {
        AckEvidence {
            now: now_ms * MILLISECOND,
            delivered: 1,
            min_rtt: Some(500 * MILLISECOND),
            snd_una: 1 + 1000 * n,
            snd_nxt: 1 + 1000 * (flight + n),
            cwnd_limited: true,
            ..AckEvidence::default()
        }
    }

    #[test]
    fn a_segment_adds_its_share_of_what_is_missing_within_bounds() {
        let window = |cwnd, ssthresh| Window { cwnd, ssthresh };
        assert_eq!(increment(&window(10.0, 50.0), 0.5, 8.0), 2.0);
        assert_eq!(increment(&window(40.0, 50.0), 0.5, 8.0), 0.125);
        assert_eq!(increment(&window(2.0, 1000.0), 0.5, 8.0), 8.0);
        // A segment per round trip at the end.
        assert_eq!(increment(&window(50.0, 50.5), 0.5, 8.0), 0.02);
    }

    #[test]
    fn the_sixth_ack_of_a_flight_sets_the_threshold_to_rate_times_least_rtt() {
        // A segment per 10 ms over 500 ms: 50 segments.
        let mut afstart = Afstart::default();
        let mut window = Window {
            cwnd: 10.0,
            ssthresh: f64::INFINITY,
        };
        for n in 1..=5 {
            afstart.on_ack(&mut window, 1.0, &ack(500 + 10 * n, n, 10));
        }
        assert_eq!((window.cwnd, window.ssthresh), (15.0, f64::INFINITY));
        afstart.on_ack(&mut window, 1.0, &ack(560, 6, 10));
        assert_eq!(window.ssthresh, 50.0);
        // 0.5 * 35 / 15.
        assert!((window.cwnd - (15.0 + 17.5 / 15.0)).abs() < 1e-12);
    }

    #[test]
    fn a_pause_between_two_flights_is_no_spacing() {
        let mut afstart = Afstart::default();
        let mut window = Window {
            cwnd: 4.0,
            ssthresh: f64::INFINITY,
        };
        for n in 1..=4 {
            afstart.on_ack(&mut window, 1.0, &ack(490 + 10 * n, n, 4));
        }
        // The first of the next flight; two of a sample's five are missing.
        for n in 6..=9 {
            afstart.on_ack(&mut window, 1.0, &ack(940 + 10 * n, n, 12));
        }
        assert_eq!(afstart.available, None);
        afstart.available = Some(60.0);
        for n in 10..=11 {
            afstart.on_ack(&mut window, 1.0, &ack(940 + 10 * n, n, 12));
        }
        // A segment per 10 ms, which weighs half.
        assert_eq!(afstart.available, Some(80.0));
    }

    #[test]
    fn after_a_timeout_nothing_measured_before_counts() {
        let mut afstart = Afstart {
            available: Some(60.0),
            ..Afstart::default()
        };
        let mut window = Window {
            cwnd: 1.0,
            ssthresh: 200.0,
        };
        afstart.on_decrease(&window);
        afstart.on_timeout();
        // A segment per segment, towards no threshold.
        for n in 1..=20 {
            let in_recovery = AckEvidence {
                recovery_phase: RecoveryPhase::Loss,
                ..ack(500 + 100 * n, n, 1)
            };
            afstart.on_ack(&mut window, 1.0, &in_recovery);
        }
        assert_eq!((window.cwnd, afstart.available), (21.0, None));
        afstart.on_ack(&mut window, 1.0, &ack(500, 1, 8));
        for n in 2..=6 {
            afstart.on_ack(&mut window, 1.0, &ack(490 + 10 * n, n, 8));
        }
        assert_eq!((afstart.available, window.ssthresh), (Some(100.0), 50.0));
    }
}

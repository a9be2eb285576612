//! Vegas where ACKs are few and losses are the link's: each RTT sample counts by itself, what ends slow start is the rate
//! between two ACKs, and a round trip is measured by time, because holes keep `snd_una` from advancing.
//!
//! Does not depend on how often the receiver acknowledges. Read `vegas` first, then `docs/variants/scps-tp.md`.

use super::reno::Reno;
use super::vegas::{MIN_WINDOW, VegasParams, diff};
use crate::cc::params::starts_with;
use crate::cc::{AckEvidence, Window, WindowIncrease};
use crate::sim::time::{Nanos, keep_min, seconds};

/// State of SCPS-TP's Vegas.
#[derive(Clone, Debug, Default)]
pub struct ScpsVegas {
    params: VegasParams,
    base_rtt: Option<Nanos>,
    /// The minimum sample of the round, and when the round began.
    min: Option<Nanos>,
    began: Nanos,
    /// Segments delivered so far, and how many they were when at the last sample.
    delivered: u64,
    sampled: Option<(Nanos, u64)>,
    /// Segments per second between the last two samples.
    rate: f64,
    reno: Reno,
}

starts_with!(ScpsVegas, VegasParams);

impl ScpsVegas {
    /// Slow start: more than gamma wait, and it ends at what the path delivers in the time that a segment takes, its ACK's
    /// wait included. Deviation: the reference implementation ends it at the window that it has reached, and avoidance takes
    /// half of what waits beyond beta each round trip; with few ACKs that window is twice the path's.
    fn start(&mut self, window: &mut Window, waiting: f64, ack: &AckEvidence) {
        if waiting <= self.params.gamma {
            self.reno.increase(window, ack);
            return;
        }
        let carried = self.rate * ack.srtt.map_or(0.0, seconds);
        window.cwnd = window.cwnd.min(libm::floor(carried) + 1.0).max(MIN_WINDOW);
        window.ssthresh = window.ssthresh.min(window.cwnd - 1.0);
        self.begin(ack);
    }

    /// The once-per-round decision (Brakmo and Peterson 1995 §3.2).
    fn adjust(&mut self, window: &mut Window, waiting: f64, ack: &AckEvidence) {
        if waiting > self.params.beta {
            window.cwnd = (window.cwnd - 1.0).max(MIN_WINDOW);
            window.ssthresh = window.ssthresh.min(window.cwnd - 1.0);
        } else if waiting < self.params.alpha && ack.cwnd_limited {
            window.cwnd += 1.0;
        }
        self.begin(ack);
    }

    fn begin(&mut self, ack: &AckEvidence) {
        (self.began, self.min) = (ack.now, None);
    }
}

impl WindowIncrease for ScpsVegas {
    const OBSERVES: bool = true;
    const OWNS_SLOW_START: bool = true;
    const INCREASES_IN_RECOVERY: bool = true;

    fn observe(&mut self, ack: &AckEvidence) {
        self.delivered += u64::from(ack.delivered);
        let Some(rtt) = ack.rtt else {
            return;
        };
        keep_min(&mut self.base_rtt, rtt);
        keep_min(&mut self.min, rtt);
        if let Some((at, delivered)) = self.sampled.replace((ack.now, self.delivered))
            && ack.now > at
        {
            self.rate = (self.delivered - delivered) as f64 / seconds(ack.now - at);
        }
    }

    fn on_ack(&mut self, window: &mut Window, _acked: f64, ack: &AckEvidence) {
        let (Some(rtt), Some(base), Some(min)) = (ack.rtt, self.base_rtt, self.min) else {
            if window.in_slow_start() {
                self.reno.increase(window, ack);
            }
            return;
        };
        if window.in_slow_start() {
            let waiting = diff(window.cwnd, seconds(rtt), seconds(base));
            self.start(window, waiting, ack);
        } else if ack.now.saturating_sub(rtt) >= self.began {
            let waiting = diff(window.cwnd, seconds(min), seconds(base));
            self.adjust(window, waiting, ack);
        }
    }

    fn on_idle(&mut self, _idle: Nanos) {
        (self.base_rtt, self.min, self.sampled) = (None, None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    /// An ACK of so many segments at that time, its sample if it has one, with an SRTT of 625 ms.
    fn on_event(
        vegas: &mut ScpsVegas,
        window: &mut Window,
        (now_ms, delivered, rtt_ms): (u64, u32, Option<u64>),
    ) -> f64 {
        let ack = AckEvidence {
            now: now_ms * MILLISECOND,
            delivered,
            rtt: rtt_ms.map(|ms| ms * MILLISECOND),
            srtt: Some(625 * MILLISECOND),
            cwnd_limited: true,
            ..AckEvidence::default()
        };
        vegas.observe(&ack);
        vegas.on_ack(window, f64::from(delivered), &ack);
        window.cwnd
    }

    fn starting(cwnd: f64) -> Window {
        Window {
            cwnd,
            ssthresh: f64::INFINITY,
        }
    }

    #[test]
    fn slow_start_ends_at_the_rate_times_the_time_that_a_segment_takes() {
        let (mut vegas, mut window) = (ScpsVegas::default(), starting(400.0));
        // Over 500 ms nothing waits; at 503 ms 600 3 / 500 do.
        assert_eq!(
            on_event(&mut vegas, &mut window, (1000, 100, Some(500))),
            500.0
        );
        assert_eq!(
            on_event(&mut vegas, &mut window, (1125, 100, Some(500))),
            600.0
        );
        // 100 in 125 ms: 800 a second, 500 in 625 ms.
        assert_eq!(
            on_event(&mut vegas, &mut window, (1250, 100, Some(503))),
            501.0
        );
        assert_eq!(window.ssthresh, 500.0);
        // It does not raise a window that is smaller.
        let (mut vegas, mut window) = (ScpsVegas::default(), starting(300.0));
        on_event(&mut vegas, &mut window, (1000, 10, Some(500)));
        on_event(&mut vegas, &mut window, (1125, 100, Some(560)));
        assert_eq!(window.cwnd, 310.0);
    }

    #[test]
    fn an_ack_that_has_waited_grows_slow_start_and_says_nothing_of_a_queue() {
        let (mut vegas, mut window) = (ScpsVegas::default(), starting(10.0));
        on_event(&mut vegas, &mut window, (500, 1, Some(500)));
        assert_eq!(on_event(&mut vegas, &mut window, (750, 9, None)), 20.0);
        // Nor does it end a round or take part in it.
        window.ssthresh = 2.0;
        assert_eq!(on_event(&mut vegas, &mut window, (2000, 5, None)), 20.0);
    }

    #[test]
    fn in_congestion_avoidance_the_window_moves_by_one_per_round_trip_toward_alpha_to_beta() {
        let moved = |rtt_ms| {
            let (mut vegas, mut window) = (ScpsVegas::default(), Window::at(500.0));
            on_event(&mut vegas, &mut window, (1000, 100, Some(500)));
            vegas.min = None;
            let course = [1125, 1250, 1375, 1500, 1510]
                .map(|now_ms| on_event(&mut vegas, &mut window, (now_ms, 100, Some(rtt_ms))));
            // The first answer to what left after the last decision, at 1000 ms, comes an RTT later.
            assert_eq!(course[..3], [501.0; 3]);
            course[4] - 501.0
        };
        // 501 (rtt - 500) / 500 wait: 1, 3, 5.
        assert_eq!([501, 503, 505].map(moved), [1.0, 0.0, -1.0]);
    }

    #[test]
    fn a_hole_that_holds_the_cumulative_ack_back_holds_no_round_back() {
        let (mut vegas, mut window) = (ScpsVegas::default(), Window::at(100.0));
        // `snd_una` stays where it is throughout.
        let course = [500, 1000, 1500]
            .map(|now_ms| on_event(&mut vegas, &mut window, (now_ms, 20, Some(500))));
        assert_eq!(course, [101.0, 102.0, 103.0]);
    }

    #[test]
    fn the_window_is_two_segments_at_least() {
        let (mut vegas, mut window) = (ScpsVegas::default(), Window::at(2.0));
        on_event(&mut vegas, &mut window, (1000, 1, Some(100)));
        window.cwnd = 2.0;
        assert_eq!(
            on_event(&mut vegas, &mut window, (9000, 1, Some(5000))),
            2.0
        );
    }
}

//! How the congestion window grows with the segments that ACKs acknowledge, as the Linux stack counts it.

/// Scale of [`BETA_CUBIC`].
const BETA_SCALE: i64 = 1024;

/// RFC 9438 §4.6: beta_cubic is 0.7.
const BETA_CUBIC: i64 = 717;

/// Initial estimate without a previous maximum: one segment per 20 acknowledged at most (Linux, `bictcp_update`).
const MAX_COUNT_AFTER_SLOW_START: i64 = 20;

/// Segments per RTT of an estimate by RFC 9438 §4.3, as Linux computes them: one per 15/8 windows.
const FRIENDLY_EIGHTHS: i64 = 15;

/// A time from which on the cubic function exceeds every window.
const MAX_MS: i64 = 1_000_000;

/// The rule by which a window grows and is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Law {
    /// RFC 5681 §3.1.
    Reno,
    /// RFC 9438.
    Cubic,
}

impl Law {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Reno, Self::Cubic];

    /// The window after the reduction of one of `cwnd` segments.
    pub fn reduced(self, cwnd: i64) -> i64 {
        let reduced = match self {
            Self::Reno => cwnd / 2,
            Self::Cubic => cwnd * BETA_CUBIC / BETA_SCALE,
        };
        reduced.max(2)
    }
}

/// W_max after the reduction of a window of `cwnd` segments: fast convergence (RFC 9438 §4.7).
pub fn w_max_after(cwnd: i64, w_max: i64) -> i64 {
    if cwnd < w_max {
        cwnd * (BETA_SCALE + BETA_CUBIC) / (2 * BETA_SCALE)
    } else {
        cwnd
    }
}

/// The cubic function of one congestion avoidance stage. Times are in milliseconds, windows in segments.
#[derive(Clone, Copy, Debug)]
struct Stage {
    start_ms: i64,
    k_ms: i64,
    origin: i64,
    w_est: i64,
    acked: i64,
}

/// A window that grows.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    law: Law,
    /// The window, in segments.
    pub cwnd: i64,
    /// Slow start below it.
    pub ssthresh: i64,
    w_max: i64,
    /// Segments acknowledged since the window grew.
    count: i64,
    rtt_ms: i64,
    stage: Option<Stage>,
}

impl Growth {
    /// A window of `cwnd` segments below or at `ssthresh`; `w_max` is 0 if there is none.
    pub fn new(law: Law, (cwnd, ssthresh): (i64, i64), w_max: i64, rtt_ns: i64) -> Self {
        Self {
            law,
            cwnd,
            ssthresh,
            w_max,
            count: 0,
            rtt_ms: (rtt_ns / 1_000_000).min(MAX_MS),
            stage: None,
        }
    }

    /// An ACK at `now_ns` acknowledges `segments`.
    pub fn on_ack(&mut self, segments: i64, now_ns: i64) {
        let exponential = segments.min((self.ssthresh - self.cwnd).max(0));
        self.cwnd += exponential;
        let rest = segments - exponential;
        if rest > 0 {
            let every = match self.law {
                Law::Reno => self.cwnd,
                Law::Cubic => self.cubic_count(rest, now_ns / 1_000_000),
            };
            self.add(rest, every.max(1));
        }
    }

    /// One segment more per `every` acknowledged (Linux, `tcp_cong_avoid_ai`).
    fn add(&mut self, segments: i64, every: i64) {
        if self.count >= every {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += segments;
        if self.count >= every {
            self.cwnd += self.count / every;
            self.count %= every;
        }
    }

    /// The segments whose ACKs let the window grow by one (Linux, `bictcp_update`).
    fn cubic_count(&mut self, segments: i64, now_ms: i64) -> i64 {
        let (cwnd, w_max) = (self.cwnd, self.w_max);
        let stage = self.stage.get_or_insert_with(|| Stage {
            start_ms: now_ms,
            // RFC 9438 §4.2: K is the cubic root of (W_max - cwnd_epoch) / C, with C = 0.4 per s^3.
            k_ms: cubic_root((w_max - cwnd).max(0) * 2_500_000_000),
            origin: w_max.max(cwnd),
            w_est: cwnd,
            acked: 0,
        });
        stage.acked += segments;
        let since_ms = (now_ms - stage.start_ms).clamp(0, MAX_MS) + self.rtt_ms;
        let offset_ms = (since_ms - stage.k_ms).abs().min(MAX_MS);
        // 4 d^3 / 10^10 = 0.4 (d / 1000)^3.
        let difference = 4 * offset_ms.pow(3) / 10_000_000_000;
        let target = if since_ms < stage.k_ms {
            stage.origin - difference
        } else {
            stage.origin + difference
        };
        let mut count = if target > cwnd {
            cwnd / (target - cwnd)
        } else {
            100 * cwnd
        };
        if w_max == 0 {
            count = count.min(MAX_COUNT_AFTER_SLOW_START);
        }
        let per_segment = (cwnd * FRIENDLY_EIGHTHS / 8).max(1);
        stage.w_est += stage.acked / per_segment;
        stage.acked %= per_segment;
        if stage.w_est > cwnd {
            count = count.min(cwnd / (stage.w_est - cwnd));
        }
        // RFC 9438 §4.4: by half of the window per RTT at most.
        count.max(2)
    }
}

/// The largest integer whose cube is at most `value`.
fn cubic_root(value: i64) -> i64 {
    let (mut low, mut high) = (0, MAX_MS);
    while low < high {
        let middle = low + (high - low + 1) / 2;
        if middle.pow(3) <= value {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows after each ACK of two segments, one per 10 ms.
    fn windows(mut growth: Growth, acks: i64) -> Vec<i64> {
        (0..acks)
            .map(|number| {
                growth.on_ack(2, number * 10_000_000);
                growth.cwnd
            })
            .collect()
    }

    #[test]
    fn slow_start_grows_by_what_is_acknowledged_and_reno_by_one_per_window() {
        let growth = Growth::new(Law::Reno, (4, 8), 0, 0);
        assert_eq!(windows(growth, 7), [6, 8, 8, 8, 8, 9, 9]);
    }

    #[test]
    fn cubic_returns_to_its_maximum_after_k() {
        // K = cbrt(30 / 0.4) = 4.217 s.
        let growth = Growth::new(Law::Cubic, (70, 70), 100, 0);
        let windows = windows(growth, 422);
        assert_eq!(windows.last(), Some(&100));
        assert!(
            windows[210] >= 90,
            "half of K: 100 - 30 / 8, less the time of a window"
        );
    }

    #[test]
    fn cubic_grows_as_fast_as_reno_would_with_its_reduction() {
        let growth = Growth::new(Law::Cubic, (10, 10), 10, 0);
        // One segment per 15/8 windows, and as many ACKs more until it is counted.
        let windows = windows(growth, 50);
        assert!((13..=15).contains(&windows[49]), "{windows:?}");
    }

    #[test]
    fn fast_convergence_lowers_the_maximum() {
        assert_eq!(w_max_after(100, 90), 100);
        assert_eq!(w_max_after(100, 110), 85);
    }

    #[test]
    fn cubic_root_is_exact() {
        for value in [0, 1, 7, 8, 26, 27, 74_999_999_999] {
            let root = cubic_root(value);
            assert!(root.pow(3) <= value && (root + 1).pow(3) > value, "{value}");
        }
    }
}

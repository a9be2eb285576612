//! PIE: every 15 ms a proportional integral controller updates the probability with which arriving packets are dropped
//! or marked, so that the queueing delay stays at its target.
//!
//! Does not depend on when a packet is served: the queueing delay is the time until the serialiser becomes idle. Read
//! RFC 8033 §4 and §5 first. Of the optional parts it has ECN (§5.1), derandomisation (§5.4) and the cap on a step
//! (§5.5), as Linux; no departure rate needs to be estimated (§5.2), and it is always active (§5.3).

use hindflight_kernels::StreamRng;

use super::backlog::Backlog;
use super::{Arrival, Verdict};
use crate::config::PieConfig;
use crate::net::link::DropCause;
use crate::sim::time::{Nanos, seconds};

/// RFC 8033 §4.1: below this probability, and with a short delay, no packet is dropped or marked.
const SAFE_PROBABILITY: f64 = 0.2;
/// RFC 8033 §4.2: decay of the probability while the queue is empty.
const IDLE_DECAY: f64 = 0.98;
/// RFC 8033 §5.4: no drop before the sum of the probabilities since the last one reaches this, and one for certain at
/// `MAX_ACCUMULATED`.
const MIN_ACCUMULATED: f64 = 0.85;
/// See `MIN_ACCUMULATED`.
const MAX_ACCUMULATED: f64 = 8.5;
/// RFC 8033 §5.5: from this probability on, a step is at most `MAX_STEP`.
const CAPPED_FROM: f64 = 0.1;
/// See `CAPPED_FROM`.
const MAX_STEP: f64 = 0.02;
/// RFC 8033 §4.2: below each probability a step is divided by the number next to it.
const SCALES: [(f64, f64); 6] = [
    (1e-6, 2048.0),
    (1e-5, 512.0),
    (1e-4, 128.0),
    (1e-3, 32.0),
    (1e-2, 8.0),
    (1e-1, 2.0),
];

/// PIE's state.
pub struct Pie {
    config: PieConfig,
    probability: f64,
    /// Sum of the probabilities since the last drop or mark.
    accumulated: f64,
    /// Queueing delay at the last update.
    old_delay: Nanos,
    burst_left: Nanos,
    next_update: Nanos,
    rng: StreamRng,
}

impl Pie {
    /// An empty queue.
    pub fn new(config: &PieConfig, rng: StreamRng) -> Self {
        Self {
            config: config.clone(),
            probability: 0.0,
            accumulated: 0.0,
            old_delay: 0,
            burst_left: config.max_burst_ns,
            next_update: config.update_ns,
            rng,
        }
    }

    /// The decision on an arriving packet.
    pub fn judge(&mut self, backlog: &Backlog, arrival: &Arrival) -> Verdict {
        self.catch_up(arrival);
        if backlog.is_busy() && backlog.waiting_pkts() >= self.config.limit_pkts as usize {
            self.accumulated = 0.0;
            return Verdict::Refuse(DropCause::Queue);
        }
        let delay = arrival.busy_until.saturating_sub(arrival.now);
        // RFC 8033 §4.4: a new burst is allowed when the congestion is over.
        if self.probability == 0.0 && self.is_short(delay) && self.is_short(self.old_delay) {
            self.burst_left = self.config.max_burst_ns;
        }
        if self.burst_left > 0 || !self.drops_or_marks(backlog.waiting_bytes()) {
            return Verdict::Admit;
        }
        // RFC 8033 §5.1.
        if arrival.ect && self.config.ecn && self.probability < self.config.ecn_threshold {
            Verdict::Mark
        } else {
            Verdict::Refuse(DropCause::Aqm)
        }
    }

    fn is_short(&self, delay: Nanos) -> bool {
        delay < self.config.target_ns / 2
    }

    /// RFC 8033 §4.1 and §5.4.
    fn drops_or_marks(&mut self, waiting_bytes: u64) -> bool {
        let safe = self.is_short(self.old_delay) && self.probability < SAFE_PROBABILITY;
        if safe || waiting_bytes <= 2 * u64::from(self.config.mean_packet_bytes) {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        let drop_or_mark = self.accumulated >= MAX_ACCUMULATED
            || self.accumulated >= MIN_ACCUMULATED && self.rng.unit() <= self.probability;
        if drop_or_mark {
            self.accumulated = 0.0;
        }
        drop_or_mark
    }

    /// Makes up the updates that were due by now. Nothing has arrived since the last packet, so the delay at each
    /// update is known: what was left to send.
    fn catch_up(&mut self, arrival: &Arrival) {
        while self.next_update <= arrival.now {
            self.update(arrival.busy_until.saturating_sub(self.next_update));
            self.next_update += self.config.update_ns;
            let resting = self.probability == 0.0 && self.old_delay == 0 && self.burst_left == 0;
            if resting && self.next_update <= arrival.now {
                let missed = (arrival.now - self.next_update) / self.config.update_ns;
                self.next_update += missed * self.config.update_ns;
            }
        }
    }

    /// RFC 8033 §4.2 and §5.5; `delay` is the present queueing delay.
    fn update(&mut self, delay: Nanos) {
        let error = seconds(delay) - seconds(self.config.target_ns);
        let trend = seconds(delay) - seconds(self.old_delay);
        let mut step = self.config.alpha * error + self.config.beta * trend;
        let scale = SCALES.iter().find(|scale| self.probability < scale.0);
        step /= scale.map_or(1.0, |scale| scale.1);
        if self.probability >= CAPPED_FROM {
            step = step.min(MAX_STEP);
        }
        self.probability += step;
        if delay == 0 && self.old_delay == 0 {
            self.probability *= IDLE_DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.old_delay = delay;
        self.burst_left = self.burst_left.saturating_sub(self.config.update_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::{MILLISECOND, SECOND};
    use hindflight_kernels::{Purpose, StreamKey};

    fn pie() -> Pie {
        let key = StreamKey {
            seed: 5,
            owner: 0,
            direction: 0,
            purpose: Purpose::Queue,
        };
        Pie::new(&PieConfig::default(), StreamRng::new(key))
    }

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-15, "{got}, not {expected}");
    }

    #[test]
    fn the_probability_follows_a_table_computed_by_hand() {
        // Delays in ms before and now, probabilities before and after: p + (0.125 (d - 15 ms) + 1.25 (d - old)) /
        // scale.
        for (old_ms, delay_ms, before, after) in [
            // 0.125 x 0.005 + 1.25 x 0.02 = 0.025625, divided by 2048.
            (0, 20, 0.0, 0.025_625 / 2048.0),
            (0, 20, 5e-6, 5e-6 + 0.025_625 / 512.0),
            (0, 20, 5e-5, 5e-5 + 0.025_625 / 128.0),
            (0, 20, 5e-4, 5e-4 + 0.025_625 / 32.0),
            (0, 20, 5e-3, 5e-3 + 0.025_625 / 8.0),
            (0, 20, 5e-2, 5e-2 + 0.025_625 / 2.0),
            // From 0.1 on a step is at most 0.02; a smaller one is not changed: 0.125 x 0.005 + 1.25 x 0.005 =
            // 0.006875.
            (0, 20, 0.1, 0.12),
            (15, 20, 0.3, 0.306_875),
            // Steady at the target nothing changes; a falling delay lowers the probability: -1.25 x 0.01 = -0.0125.
            (15, 15, 0.3, 0.3),
            (25, 15, 0.3, 0.2875),
            // Empty at two updates: 0.3 - 0.125 x 0.015 = 0.298125, times 0.98.
            (0, 0, 0.3, 0.298_125 * 0.98),
            (1, 0, 0.3, 0.298_125 - 0.001_25),
            // The bounds.
            (0, 0, 1e-7, 0.0),
            (500, 900, 0.99, 1.0),
        ] {
            let mut pie = pie();
            pie.old_delay = old_ms * MILLISECOND;
            pie.probability = before;
            pie.update(delay_ms * MILLISECOND);
            close(pie.probability, after);
            assert_eq!(pie.old_delay, delay_ms * MILLISECOND);
        }
    }

    #[test]
    fn missed_updates_are_made_up_with_the_delay_of_their_time() {
        let arrival = |now_ms: u64, busy_ms: u64| Arrival {
            now: now_ms * MILLISECOND,
            busy_until: busy_ms * MILLISECOND,
            ip_bytes: 1500,
            ect: false,
        };
        // Updates at 15, 30, 45 ms find 75, 60, 45 ms of queue.
        let mut lazy = pie();
        lazy.probability = 0.05;
        lazy.catch_up(&arrival(59, 90));
        let mut eager = pie();
        eager.probability = 0.05;
        for delay_ms in [75, 60, 45] {
            eager.update(delay_ms * MILLISECOND);
        }
        close(lazy.probability, eager.probability);
        assert!(lazy.probability > 0.0);
        assert_eq!(lazy.next_update, 60 * MILLISECOND);
        // A year idle does not cost a year of updates, and the phase of the updates stays.
        let year_ms = 365 * 86_400 * 1000;
        lazy.catch_up(&arrival(year_ms + 1, 90));
        close(lazy.probability, 0.0);
        assert_eq!(lazy.next_update, (year_ms + 15) * MILLISECOND);
    }

    #[test]
    fn drops_come_neither_too_early_nor_too_late() {
        let mut pie = pie();
        pie.probability = 0.05;
        pie.old_delay = 20 * MILLISECOND;
        let (mut gaps, mut gap) = (Vec::new(), 0_u32);
        for _ in 0..50_000 {
            gap += 1;
            if pie.drops_or_marks(10_000) {
                gaps.push(gap);
                gap = 0;
            }
        }
        // 16 packets add up to 0.8, 17 to 0.85; from then on one in 20 is dropped: 16 + 20 on average; the 170th for
        // certain.
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        assert!((mean - 36.0).abs() < 1.5, "{mean}");
        let (least, most) = (gaps.iter().min(), gaps.iter().max());
        assert!(matches!(least, Some(17 | 18)), "{least:?}");
        assert!(most.is_some_and(|&gap| gap <= 171), "{most:?}");
        assert!(!pie.drops_or_marks(3000), "two packets may always wait");
        pie.old_delay = 7 * MILLISECOND;
        assert!(
            (0..1000).all(|_| !pie.drops_or_marks(10_000)),
            "little delay"
        );
    }

    #[test]
    fn a_burst_is_allowed_for_its_time_and_drops_replace_marks() {
        let mut backlog = Backlog::default();
        for departure in 1..=10 {
            backlog.join(1500, departure * SECOND);
        }
        let mut pie = pie();
        let arrival = |now_ms: u64, ect| Arrival {
            now: now_ms * MILLISECOND,
            busy_until: 10 * SECOND,
            ip_bytes: 1500,
            ect,
        };
        pie.accumulated = 100.0;
        assert_eq!(pie.judge(&backlog, &arrival(149, false)), Verdict::Admit);
        pie.accumulated = 100.0;
        let dropped = Verdict::Refuse(DropCause::Aqm);
        assert_eq!(pie.judge(&backlog, &arrival(150, false)), dropped);
        for (probability, expected) in [(0.099, Verdict::Mark), (0.1, dropped)] {
            (pie.accumulated, pie.probability) = (100.0, probability);
            assert_eq!(pie.judge(&backlog, &arrival(150, true)), expected);
        }
        pie.config.limit_pkts = 9;
        let full = Verdict::Refuse(DropCause::Queue);
        assert_eq!(pie.judge(&backlog, &arrival(150, true)), full);
    }
}

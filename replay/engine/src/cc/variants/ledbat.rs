//! LEDBAT: the window moves so that a fixed delay waits in queues, and yields to others.
//!
//! Does not depend on recovery. RFC 6817 throughout.

use std::collections::VecDeque;

use super::reno::Reno;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::{parameters, starts_with};
use crate::cc::{AckEvidence, Window, WindowIncrease};
use crate::sim::time::{Nanos, SECOND, seconds};

parameters! {
    /// Parameters of LEDBAT.
    pub struct LedbatParams {
        /// Queueing delay aimed at (TARGET).
        target: number(0.1, "s", 0.001, 0.1, "RFC 6817 §2.5"),
        /// Increase per round trip and unit of off_target (GAIN).
        gain: number(1.0, "", 0.001, 1.0, "RFC 6817 §2.5"),
        /// Minutes of which the minimum delay is kept (BASE_HISTORY).
        base_history: whole(10, "min", 1, 60, "RFC 6817 §2.5"),
        /// Samples of which the minimum is the current delay (CURRENT_FILTER).
        current_filter: whole(4, "", 1, 64, "RFC 6817 §2.5"),
        /// Slow start before the first loss.
        slow_start: flag(false, "RFC 6817 §2.4.2 has none"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "ledbat",
    family: "delay",
    summary: "keeps a fixed queueing delay and yields to other flows (RFC 6817)",
    source: "RFC 6817",
    year: 2012,
    params: LedbatParams::SPECS,
    uses_ssthresh: |values| LedbatParams::of(values).slow_start,
    parts: |stack, values, _| {
        ControllerParts::halved(Ledbat::new(LedbatParams::of(values)), stack.profile)
    },
    ..Definition::BASE
};

/// RFC 6817 §2.5: MIN_CWND, in segments.
const MIN_CWND: f64 = 2.0;
/// RFC 6817 §2.5: ALLOWED_INCREASE, in segments.
const ALLOWED_INCREASE: f64 = 1.0;
/// RFC 6817 §2.3: delays are kept by the minute.
const MINUTE: Nanos = 60 * SECOND;

/// State of LEDBAT.
#[derive(Clone, Debug, Default)]
pub struct Ledbat {
    params: LedbatParams,
    /// Minimum delay of each of the last minutes.
    base: VecDeque<Nanos>,
    minute: Nanos,
    /// The last samples.
    current: VecDeque<Nanos>,
    reno: Reno,
}

starts_with!(Ledbat, LedbatParams);

impl Ledbat {
    /// RFC 6817 §2.4.2, `update_base_delay` and `update_current_delay`. Deviation: the RTT replaces the one-way delay,
    /// because captures have no common clock; the delay of the reverse path counts with it.
    fn take(&mut self, delay: Nanos, now: Nanos) {
        let minute = now / MINUTE;
        match self.base.back_mut() {
            Some(min) if minute == self.minute => *min = (*min).min(delay),
            _ => {
                self.base.push_back(delay);
                self.minute = minute;
            }
        }
        if self.base.len() > self.params.base_history as usize {
            self.base.pop_front();
        }
        self.current.push_back(delay);
        if self.current.len() > self.params.current_filter as usize {
            self.current.pop_front();
        }
    }

    /// RFC 6817 §2.4.2: `off_target`, the share of the target that is left; 1 without a sample.
    fn off_target(&self) -> f64 {
        let (Some(&current), Some(&base)) = (self.current.iter().min(), self.base.iter().min())
        else {
            return 1.0;
        };
        let queueing = seconds(current.saturating_sub(base));
        (self.params.target - queueing) / self.params.target
    }
}

impl WindowIncrease for Ledbat {
    const OBSERVES: bool = true;
    const OWNS_SLOW_START: bool = true;

    fn observe(&mut self, ack: &AckEvidence) {
        if let Some(rtt) = ack.rtt {
            self.take(rtt, ack.now);
        }
    }

    /// RFC 6817 §2.4.2: `on_ack`.
    fn on_ack(&mut self, window: &mut Window, _acked: f64, ack: &AckEvidence) {
        if self.params.slow_start && window.ssthresh.is_infinite() {
            self.reno.increase(window, ack);
            return;
        }
        let acked = f64::from(ack.delivered);
        let grown = window.cwnd + self.params.gain * self.off_target() * acked / window.cwnd;
        // RFC 6817 §2.4.2: max_allowed_cwnd, which prevents an increase far beyond the data in flight.
        let allowed = f64::from(ack.flight) + acked + ALLOWED_INCREASE;
        let max = if ack.cwnd_limited {
            allowed.max(window.cwnd)
        } else {
            window.cwnd
        };
        window.cwnd = grown.min(max).max(MIN_CWND);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    fn ack(now: Nanos, rtt_ms: u64) -> AckEvidence {
        AckEvidence {
            now,
            delivered: 1,
            flight: 50,
            rtt: Some(rtt_ms * MILLISECOND),
            cwnd_limited: true,
            ..AckEvidence::default()
        }
    }

    fn moved(rtts_ms: &[u64]) -> f64 {
        let mut ledbat = Ledbat::default();
        for &rtt_ms in rtts_ms {
            ledbat.observe(&ack(0, rtt_ms));
        }
        let mut window = Window::at(50.0);
        ledbat.on_ack(&mut window, 1.0, &ack(0, 0));
        (window.cwnd - 50.0) * 50.0
    }

    #[test]
    fn the_window_moves_by_the_share_of_the_target_that_is_left() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} is not {b}");
        near(moved(&[100]), 1.0);
        near(moved(&[100, 140, 150, 160, 140]), 0.6);
        near(moved(&[100, 250, 250, 250, 250]), -0.5);
        // The minimum of four samples counts, and the first is one of them.
        near(moved(&[100, 250, 250, 250]), 1.0);
    }

    #[test]
    fn an_untested_window_does_not_grow_and_none_falls_below_two() {
        let mut ledbat = Ledbat::default();
        let mut window = Window::at(50.0);
        let idle = AckEvidence {
            cwnd_limited: false,
            ..ack(0, 100)
        };
        ledbat.on_ack(&mut window, 1.0, &idle);
        assert_eq!(window.cwnd, 50.0);
        for rtt_ms in [100, 900, 900, 900, 900] {
            ledbat.observe(&ack(0, rtt_ms));
        }
        let mut window = Window::at(3.0);
        for _ in 0..5 {
            ledbat.on_ack(&mut window, 1.0, &ack(0, 900));
        }
        assert_eq!(window.cwnd, 2.0);
    }

    #[test]
    fn the_base_delay_is_forgotten_after_its_minutes() {
        let params = LedbatParams {
            base_history: 2,
            current_filter: 1,
            ..LedbatParams::default()
        };
        let mut ledbat = Ledbat::new(params);
        ledbat.observe(&ack(0, 100));
        ledbat.observe(&ack(MINUTE, 200));
        assert!(ledbat.off_target() < 0.1);
        ledbat.observe(&ack(2 * MINUTE, 200));
        assert_eq!(ledbat.off_target(), 1.0);
    }
}

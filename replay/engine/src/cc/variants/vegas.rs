//! Vegas: once per round trip the window moves by one segment so that between alpha and beta segments wait in queues.
//!
//! Does not depend on recovery. Read Brakmo and Peterson 1995 §3 first, then `docs/variants/vegas.md`.

use super::reno::Reno;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::{parameters, starts_with};
use crate::cc::rtt_round::{Delay, RttRound};
use crate::cc::{AckEvidence, Window, WindowIncrease};
use crate::sim::time::Nanos;

parameters! {
    /// Parameters of Vegas.
    pub struct VegasParams {
        /// Fewer segments waiting than this: the window grows.
        alpha: number(2.0, "segments", 0.0, 1000.0, "Linux; Brakmo and Peterson 1995 have 1 to 2"),
        /// More segments waiting than this: the window shrinks.
        beta: number(4.0, "segments", 0.0, 1000.0, "Linux; Brakmo and Peterson 1995 have 3 to 4"),
        /// More segments waiting than this: slow start ends.
        gamma: number(1.0, "segments", 0.0, 1000.0, "Brakmo and Peterson 1995 §3.3"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "vegas",
    family: "delay",
    summary: "keeps a few segments in queues",
    source: "Brakmo and Peterson 1995",
    year: 1995,
    params: VegasParams::SPECS,
    ordered: |values| {
        let p = VegasParams::of(values);
        vec![[("alpha", p.alpha), ("beta", p.beta)]]
    },
    parts: |stack, values, _| {
        ControllerParts::halved(Vegas::new(VegasParams::of(values)), stack.profile)
    },
    ns2_module: true,
    ..Definition::BASE
};

/// Deviation: as Linux, a round with fewer samples says nothing, for one delayed ACK would be all of it.
pub const MIN_SAMPLES: u32 = 3;
/// The window never falls below this, in segments.
pub const MIN_WINDOW: f64 = 2.0;

/// State of Vegas.
#[derive(Clone, Debug, Default)]
pub struct Vegas {
    params: VegasParams,
    round: RttRound,
    reno: Reno,
}

/// Segments that wait. Deviation: as Linux, against the base RTT, cwnd (rtt - base) / base; the paper divides by the RTT.
///
/// Deviation: a real number, as in the paper. Linux cuts it to whole segments: there beta = 4 is exceeded from 5 on.
pub fn diff(cwnd: f64, rtt_s: f64, base_s: f64) -> f64 {
    cwnd * (rtt_s - base_s) / base_s
}

starts_with!(Vegas, VegasParams);

impl Vegas {
    /// The once-per-round decision (Brakmo and Peterson 1995 §3.2, §3.3).
    fn adjust(&mut self, window: &mut Window, delay: &Delay, ack: &AckEvidence) {
        let diff = diff(window.cwnd, delay.rtt_s, delay.base_s);
        if window.in_slow_start() {
            if diff > self.params.gamma {
                let target = libm::floor(window.cwnd * delay.base_s / delay.rtt_s);
                window.cwnd = window.cwnd.min(target + 1.0);
                window.ssthresh = window.ssthresh.min(window.cwnd - 1.0);
            } else {
                self.reno.increase(window, ack);
            }
        } else if diff > self.params.beta {
            window.cwnd -= 1.0;
            window.ssthresh = window.ssthresh.min(window.cwnd - 1.0);
        } else if diff < self.params.alpha && ack.cwnd_limited {
            window.cwnd += 1.0;
        }
        window.cwnd = window.cwnd.max(MIN_WINDOW);
        // Deviation: as Linux, ssthresh never falls below three quarters of the window.
        window.ssthresh = window.ssthresh.max(0.75 * window.cwnd);
    }
}

impl WindowIncrease for Vegas {
    const OBSERVES: bool = true;
    const OWNS_SLOW_START: bool = true;

    fn observe(&mut self, ack: &AckEvidence) {
        self.round.add_sample(ack);
    }

    fn on_ack(&mut self, window: &mut Window, _acked: f64, ack: &AckEvidence) {
        if self.round.turns(ack) {
            match self.round.min_delay() {
                Some(delay) if self.round.samples() >= MIN_SAMPLES => {
                    self.adjust(window, &delay, ack);
                }
                _ => self.reno.increase(window, ack),
            }
            self.round.clear();
        } else if window.in_slow_start() {
            self.reno.increase(window, ack);
        }
    }

    fn on_recovery_exit(&mut self, ack: &AckEvidence) {
        self.round.restart(ack);
    }

    fn on_idle(&mut self, _idle: Nanos) {
        self.round.reset_base();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    /// One round of `samples` ACKs with this RTT; `n` numbers the rounds.
    fn round(vegas: &mut Vegas, window: &mut Window, n: u64, rtt_ms: u64, samples: u64) {
        for i in 1..=samples {
            let ack = AckEvidence {
                delivered: 1,
                rtt: Some(rtt_ms * MILLISECOND),
                snd_una: 1000 * n + i,
                snd_nxt: 1000 * (n + 1),
                cwnd_limited: true,
                ..AckEvidence::default()
            };
            vegas.observe(&ack);
            vegas.on_ack(window, 1.0, &ack);
        }
    }

    /// The window after a round in which `rtt_ms` was measured over a base of 100 ms.
    fn after(window: Window, rtt_ms: u64) -> Window {
        let (mut vegas, mut window) = (Vegas::default(), window);
        let mut first = Window::at(2.0);
        round(&mut vegas, &mut first, 1, 100, 5);
        vegas.round.clear();
        round(&mut vegas, &mut window.clone(), 1, rtt_ms, 5);
        round(&mut vegas, &mut window, 2, rtt_ms, 1);
        window
    }

    #[test]
    fn in_congestion_avoidance_the_window_moves_by_one_toward_alpha_to_beta() {
        let at = |rtt_ms| after(Window::at(100.0), rtt_ms).cwnd - 100.0;
        // 100 (rtt - 100)/100 segments wait: 1, 3, 5.
        assert_eq!([at(101), at(103), at(105)], [1.0, 0.0, -1.0]);
    }

    #[test]
    fn slow_start_ends_when_more_than_gamma_wait() {
        let window = Window {
            cwnd: 100.0,
            ssthresh: 1000.0,
        };
        let on = after(window, 100);
        assert!(on.in_slow_start() && on.cwnd > 100.0);
        let out = after(window, 125);
        // floor(100 · 100/125) + 1 = 81, ssthresh below it.
        assert_eq!((out.cwnd, out.ssthresh), (81.0, 80.0));
    }

    #[test]
    fn a_round_with_too_few_samples_grows_as_reno() {
        let (mut vegas, mut window) = (Vegas::default(), Window::at(2.0));
        for n in 1..=4 {
            round(&mut vegas, &mut window, n, 100 * n, 1);
        }
        assert_eq!(window.cwnd.to_bits(), 3.0_f64.to_bits());
    }
}

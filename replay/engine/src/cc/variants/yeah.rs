//! YeAH: Scalable TCP while few segments wait in queues; with more it drains the queue and grows as Reno.
//!
//! Does not depend on recovery. Read Baiocchi, Castellani and Vacirca 2007 §2 first, then `docs/variants/yeah.md`.

use super::reno::{AckCounter, Reno};
use super::vegas::MIN_SAMPLES;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::parameters;
use crate::cc::rtt_round::{Delay, RttRound};
use crate::cc::{AckEvidence, SignalEvidence, Window, WindowIncrease};

parameters! {
    /// Parameters of YeAH.
    pub struct YeahParams {
        /// Segments that may wait before the queue is drained (Q_max).
        alpha: number(80.0, "segments", 1.0, 1e6, "Baiocchi et al. 2007 §2; Linux"),
        /// Divisor of the backlog that one drain takes.
        gamma: number(1.0, "", 0.1, 100.0, "Baiocchi et al. 2007 §2; Linux"),
        /// Divisor of the base RTT: a delay of more than that share of it counts as a long queue.
        phi: number(8.0, "", 1.0, 1000.0, "Baiocchi et al. 2007 §2; Linux"),
        /// Round trips as Reno after which a competitor is sure to be there (rho).
        rho: whole(16, "", 1, 1000, "Linux"),
        /// Round trips as Scalable TCP after which the count of Reno restarts (zeta).
        zeta: whole(50, "", 1, 1000, "Linux"),
        /// Increase per segment acknowledged in the fast mode.
        scalable_a: number(0.01, "segments", 1e-6, 1.0, "Kelly 2003 §3"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "yeah",
    family: "loss and delay",
    summary: "Scalable TCP while queues are short, otherwise Reno that drains them",
    source: "Baiocchi et al. 2007",
    year: 2007,
    params: YeahParams::SPECS,
    parts: |_, values, _| ControllerParts::own(Yeah::new(YeahParams::of(values))),
    ns2_module: true,
    ..Definition::BASE
};

/// Linux: one drain takes at most half of the window.
const MAX_DRAINED: f64 = 0.5;
/// Linux: without a competitor a loss costs an eighth of the window at least.
const MIN_DECREASE: f64 = 1.0 / 8.0;
/// The window that Reno would have starts here, in segments.
const MIN_RENO: f64 = 2.0;

/// State of YeAH.
#[derive(Clone, Debug)]
pub struct Yeah {
    params: YeahParams,
    reno: Reno,
    counter: AckCounter,
    round: RttRound,
    /// Segments that waited in the last round.
    backlog: f64,
    /// Window that Reno would have by now.
    reno_count: f64,
    reno_rounds: u32,
    fast_rounds: u32,
}

impl Yeah {
    /// YeAH with these parameters.
    pub fn new(params: YeahParams) -> Self {
        Self {
            params,
            reno: Reno::default(),
            counter: AckCounter::default(),
            round: RttRound::default(),
            backlog: 0.0,
            reno_count: MIN_RENO,
            reno_rounds: 0,
            fast_rounds: 0,
        }
    }

    /// The once-per-round choice of the mode (Baiocchi et al. 2007 §2).
    fn choose_mode(&mut self, window: &mut Window, delay: &Delay) {
        self.backlog = delay.backlog(window.cwnd);
        let stretched = delay.rtt_s - delay.base_s > delay.base_s / self.params.phi;
        if self.backlog > self.params.alpha || stretched {
            if self.backlog > self.params.alpha && window.cwnd > self.reno_count {
                let drained = (self.backlog / self.params.gamma).min(MAX_DRAINED * window.cwnd);
                window.cwnd = libm::floor(window.cwnd - drained).max(self.reno_count);
                window.ssthresh = window.cwnd;
            }
            self.reno_count = if self.reno_count <= MIN_RENO {
                (window.cwnd / 2.0).max(MIN_RENO)
            } else {
                self.reno_count + 1.0
            };
            self.reno_rounds = self.reno_rounds.saturating_add(1);
        } else {
            self.fast_rounds += 1;
            if self.fast_rounds > self.params.zeta {
                (self.reno_count, self.fast_rounds) = (MIN_RENO, 0);
            }
            self.reno_rounds = 0;
        }
    }
}

impl WindowIncrease for Yeah {
    const OBSERVES: bool = true;

    fn observe(&mut self, ack: &AckEvidence) {
        self.round.add_sample(ack);
    }

    fn on_ack(&mut self, window: &mut Window, acked: f64, ack: &AckEvidence) {
        if self.reno_rounds == 0 {
            let per_increment = window.cwnd.min(1.0 / self.params.scalable_a);
            self.counter.count(&mut window.cwnd, per_increment, acked);
        } else {
            self.reno.on_ack(window, acked, ack);
        }
        if self.round.turns(ack) {
            if let Some(delay) = self.round.min_delay()
                && self.round.samples() >= MIN_SAMPLES
            {
                self.choose_mode(window, &delay);
            }
            self.round.clear();
        }
    }

    /// Baiocchi et al. 2007 §2: without a competitor a loss decreases the window by the backlog, otherwise by half.
    fn ssthresh_after(&mut self, window: &Window, _signal: &SignalEvidence) -> f64 {
        let half = (window.cwnd / 2.0).max(MIN_RENO);
        let decrease = if self.reno_rounds < self.params.rho {
            self.backlog.max(MIN_DECREASE * window.cwnd).min(half)
        } else {
            half
        };
        libm::floor(window.cwnd - decrease)
    }

    /// RTT samples from recovery do not count as a round trip.
    fn on_recovery_exit(&mut self, ack: &AckEvidence) {
        self.round.restart(ack);
    }

    fn undo(&mut self, before: &Self) {
        (self.reno_count, self.fast_rounds) = (before.reno_count, before.fast_rounds);
    }

    fn on_decrease(&mut self, before: &Window) {
        self.reno_count = (self.reno_count / 2.0).max(MIN_RENO);
        self.fast_rounds = 0;
        self.counter = AckCounter::default();
        self.reno.on_decrease(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Signal;

    fn delay(rtt_s: f64) -> Delay {
        Delay { base_s: 0.1, rtt_s }
    }

    #[test]
    fn a_long_queue_is_drained_but_not_below_renos_window() {
        let (mut yeah, mut window) = (Yeah::new(YeahParams::default()), Window::at(500.0));
        // 500 · 0.025/0.125 = 100 segments wait, more than 80.
        yeah.choose_mode(&mut window, &delay(0.125));
        assert_eq!((window.cwnd, window.ssthresh), (400.0, 400.0));
        assert_eq!((yeah.reno_count, yeah.reno_rounds), (200.0, 1));
        yeah.reno_count = 390.0;
        yeah.choose_mode(&mut window, &delay(0.14));
        assert_eq!(window.cwnd, 390.0);
    }

    #[test]
    fn a_short_queue_over_a_stretched_rtt_is_left_and_reno_takes_over() {
        let (mut yeah, mut window) = (Yeah::new(YeahParams::default()), Window::at(100.0));
        yeah.choose_mode(&mut window, &delay(0.112));
        assert_eq!(yeah.reno_rounds, 0);
        yeah.choose_mode(&mut window, &delay(0.113));
        assert_eq!((yeah.reno_rounds, window.cwnd), (1, 100.0));
        let grown = |yeah: &mut Yeah| {
            let mut window = Window::at(200.0);
            for _ in 0..100 {
                yeah.on_ack(&mut window, 1.0, &AckEvidence::default());
            }
            window.cwnd - 200.0
        };
        assert_eq!(grown(&mut yeah), 0.0);
        assert_eq!(grown(&mut Yeah::new(YeahParams::default())), 1.0);
    }

    #[test]
    fn a_loss_costs_the_backlog_between_an_eighth_and_a_half() {
        let loss = SignalEvidence {
            now: 0,
            lost_total: 0,
            flight: 0.0,
            signal: Signal::Loss,
        };
        let after = |backlog, reno_rounds| {
            let mut yeah = Yeah {
                backlog,
                reno_rounds,
                ..Yeah::new(YeahParams::default())
            };
            yeah.ssthresh_after(&Window::at(80.0), &loss)
        };
        assert_eq!(
            [after(0.0, 0), after(20.0, 0), after(60.0, 0)],
            [70.0, 60.0, 40.0]
        );
        assert_eq!([after(0.0, 15), after(0.0, 16)], [70.0, 40.0]);
    }
}

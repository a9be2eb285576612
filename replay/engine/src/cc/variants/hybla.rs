//! Hybla: on a long path the window increases as fast as on a path of RTT_0, by rho = RTT / RTT_0.
//!
//! Does not depend on recovery. Read Caini and Firrincieli 2004 §3 first, then `docs/variants/hybla.md`.

use super::reno::AckCounter;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::parameters;
use crate::cc::{AckEvidence, RecoveryPhase, Reno, Window, WindowIncrease, WindowPacing};
use crate::sim::time::{Nanos, seconds};

parameters! {
    /// Parameters of Hybla.
    pub struct HyblaParams {
        /// RTT of the path whose increase per second is the target (RTT_0).
        rtt_0: number(0.025, "s", 0.001, 10.0, "Caini and Firrincieli 2004 §3"),
        /// Exponent of slow start is at most this.
        max_exponent: number(16.0, "", 1.0, 60.0, "Linux"),
        /// The window is rho segments at least from the first ACK on.
        scale_initial_window: flag(true, "Caini and Firrincieli 2004 §3; Linux"),
        /// ssthresh is rho times that of the stack from the first RTT on.
        scale_ssthresh: flag(false, "Caini and Firrincieli 2004 §3; not in Linux"),
        /// Segments leave one by one, an RTT over cwnd apart.
        spacing: flag(false, "Caini and Firrincieli 2004 §4; not in Linux"),
        /// Hoe's estimate: the spacing of the first ACKs sets the first ssthresh.
        hoe_estimate: flag(false, "Hoe 1996 §3; Caini and Firrincieli 2004 §4"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "hybla",
    family: "loss",
    summary: "increases on a path with a long RTT as Reno does on one with a short RTT",
    source: "Caini and Firrincieli 2004",
    year: 2004,
    params: HyblaParams::SPECS,
    pacing: |values| {
        HyblaParams::of(values)
            .spacing
            .then_some(WindowPacing::SPACED)
    },
    parts: |stack, values, _| {
        let hybla = Hybla::new(HyblaParams::of(values));
        ControllerParts::halved(hybla.of_module(stack.runs_ns2_module()), stack.profile)
    },
    ns2_module: true,
    ..Definition::BASE
};

/// ns-2's module: bits of the word that holds 2^rho.
const MODULE_WORD_BITS: f64 = 32.0;

/// Hoe 1996 §3: ACKs whose spacing is measured.
const HOE_ACKS: u32 = 3;

/// Hoe's estimate of the first ssthresh.
#[derive(Clone, Copy, Debug)]
enum Hoe {
    /// It waits for enough ACKs of one flight.
    Awaited(Flight),
    /// It has come, a loss came before it, or nobody asked for it.
    Settled,
}

/// The ACKs of a flight so far.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    first: Option<Nanos>,
    acks: u32,
    segments: f64,
    /// Octet that ends it: the next flight's ACKs come after a pause, which is no spacing.
    end: u64,
}

impl Hoe {
    /// Takes an ACK; the ssthresh in segments when enough of one flight have come: rate times RTT.
    fn take(&mut self, ack: &AckEvidence) -> Option<f64> {
        let Self::Awaited(flight) = self else {
            return None;
        };
        let Some(first) = flight.first.filter(|_| ack.snd_una <= flight.end) else {
            *flight = Flight {
                first: Some(ack.now),
                acks: 1,
                segments: 0.0,
                end: ack.snd_nxt,
            };
            return None;
        };
        flight.acks += 1;
        flight.segments += f64::from(ack.delivered);
        let elapsed = ack.now - first;
        if flight.acks < HOE_ACKS || elapsed == 0 {
            return None;
        }
        // An ACK without a sample has the smoothed time only.
        let rtt = ack.rtt.or(ack.srtt)?;
        let estimate = flight.segments * rtt as f64 / elapsed as f64;
        *self = Self::Settled;
        Some(estimate)
    }
}

/// State of Hybla.
#[derive(Clone, Debug)]
pub struct Hybla {
    params: HyblaParams,
    rho: f64,
    min_srtt: Option<Nanos>,
    /// Whether the first rho has scaled the windows.
    opened: bool,
    hoe: Hoe,
    /// ns-2's module of Linux 2.6.22: rho in whole eighths, and the ACK that scales the window does not increase it further.
    module: bool,
    counter: AckCounter,
    /// The increase during loss recovery after a timeout.
    reno: Reno,
}

/// Caini and Firrincieli 2004 §3: increase per ACK in slow start.
fn slow_start_increment(rho: f64, max_exponent: f64) -> f64 {
    libm::exp2(rho.min(max_exponent)) - 1.0
}

/// Caini and Firrincieli 2004 §3: increase per ACK in congestion avoidance.
fn avoidance_increment(rho: f64, cwnd: f64) -> f64 {
    rho * rho / cwnd
}

impl Hybla {
    /// Hybla with these parameters.
    pub fn new(params: HyblaParams) -> Self {
        Self {
            params,
            rho: 1.0,
            min_srtt: None,
            opened: false,
            hoe: if params.hoe_estimate {
                Hoe::Awaited(Flight::default())
            } else {
                Hoe::Settled
            },
            module: false,
            counter: AckCounter::default(),
            reno: Reno::default(),
        }
    }

    /// The same, with the arithmetic of ns-2's module or without.
    #[must_use]
    pub fn of_module(self, module: bool) -> Self {
        Self { module, ..self }
    }

    /// rho follows the minimum smoothed RTT of every ACK (Linux: recalculated only when the minimum falls).
    fn update_rho(&mut self, ack: &AckEvidence) {
        let Some(srtt) = ack.srtt else {
            return;
        };
        if self.min_srtt.is_some_and(|min| srtt >= min) {
            return;
        }
        self.min_srtt = Some(srtt);
        self.rho = (seconds(srtt) / self.params.rtt_0).max(1.0);
        if self.module {
            self.rho = libm::floor(8.0 * self.rho) / 8.0;
        }
    }

    /// Scales window and ssthresh by the first rho. Deviation: Linux does so at once; a window that is not used stays here.
    fn open(&mut self, window: &mut Window) {
        if self.opened || self.min_srtt.is_none() {
            return;
        }
        self.opened = true;
        if self.params.scale_ssthresh {
            window.ssthresh *= self.rho;
        }
        if self.params.scale_initial_window {
            let scaled = libm::floor(self.rho).min(window.ssthresh);
            window.cwnd = window.cwnd.max(scaled);
        }
    }
}

impl WindowIncrease for Hybla {
    const OWNS_SLOW_START: bool = true;

    fn on_ack(&mut self, window: &mut Window, _acked: f64, ack: &AckEvidence) {
        self.update_rho(ack);
        if !ack.cwnd_limited {
            return;
        }
        let first = !self.opened;
        self.open(window);
        if self.module && first {
            return;
        }
        if let Some(estimate) = self.hoe.take(ack) {
            window.ssthresh = window.ssthresh.min(estimate.max(crate::cc::MIN_SSTHRESH));
            window.cwnd = window.cwnd.min(window.ssthresh);
        }
        // Deviation: Reno until the estimate is there, since 2^rho - 1 would come before it at rho = 20; the paper does not
        // say. As Linux (`hybla_en`), Reno also in loss recovery after a timeout; the paper does not say that either.
        if ack.recovery_phase == RecoveryPhase::Loss || matches!(self.hoe, Hoe::Awaited(_)) {
            self.reno.increase(window, ack);
            return;
        }
        // Deviation: as the paper and Linux, by the ACK, not by the segment; delayed ACKs halve the increase.
        if window.in_slow_start() {
            let exponent = if self.module {
                // Its shift of a 32-bit word wraps: rho of 40 grows as one of 8.
                self.rho % MODULE_WORD_BITS
            } else {
                self.rho
            };
            let grown = window.cwnd + slow_start_increment(exponent, self.params.max_exponent);
            window.cwnd = grown.min(window.ssthresh);
        } else {
            let increment = avoidance_increment(self.rho, window.cwnd);
            self.counter.count(&mut window.cwnd, 1.0, increment);
        }
    }

    fn on_decrease(&mut self, before: &Window) {
        if !self.module {
            self.counter = AckCounter::default();
        }
        self.reno.on_decrease(before);
        self.hoe = Hoe::Settled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    fn ack(now_ms: u64, rtt_ms: u64) -> AckEvidence {
        AckEvidence {
            now: now_ms * MILLISECOND,
            delivered: 1,
            rtt: Some(rtt_ms * MILLISECOND),
            srtt: Some(rtt_ms * MILLISECOND),
            cwnd_limited: true,
            ..AckEvidence::default()
        }
    }

    #[test]
    fn growth_by_hand() {
        assert_eq!(slow_start_increment(1.0, 16.0), 1.0);
        assert_eq!(slow_start_increment(3.0, 16.0), 7.0);
        assert_eq!(slow_start_increment(20.0, 16.0), 65_535.0);
        assert_eq!(avoidance_increment(4.0, 32.0), 0.5);
    }

    #[test]
    fn a_short_path_is_reno_and_a_long_one_grows_by_rho_squared_per_window() {
        let grown = |rtt_ms, acks| {
            let (mut hybla, mut window) = (Hybla::new(HyblaParams::default()), Window::at(100.0));
            for _ in 0..acks {
                hybla.on_ack(&mut window, 1.0, &ack(0, rtt_ms));
            }
            window.cwnd - 100.0
        };
        // The window itself grows meanwhile: the ACKs of a window of 100 increase it by one, at rho = 4 by between 14 and
        // 16.
        assert_eq!([grown(25, 99), grown(25, 101)], [0.0, 1.0]);
        assert_eq!(grown(10, 101), 1.0);
        assert!((14.0..=16.0).contains(&grown(100, 100)));
    }

    #[test]
    fn the_first_rtt_scales_the_initial_window_and_only_a_lower_one_moves_rho() {
        let mut hybla = Hybla::new(HyblaParams::default());
        let mut window = Window {
            cwnd: 10.0,
            ssthresh: 1000.0,
        };
        let limited = AckEvidence {
            delivered: 0,
            ..ack(0, 500)
        };
        // Linux: from every ACK, also where the application does not use the window.
        let idle = AckEvidence {
            cwnd_limited: false,
            ..limited
        };
        hybla.on_ack(&mut window, 0.0, &idle);
        assert_eq!((hybla.rho, window.cwnd), (20.0, 10.0));
        hybla.open(&mut window);
        assert_eq!(window.cwnd, 20.0);
        hybla.on_ack(&mut window, 1.0, &ack(1, 600));
        assert_eq!(hybla.rho, 20.0);
        hybla.on_ack(&mut window, 1.0, &ack(2, 250));
        assert_eq!(hybla.rho, 10.0);
    }

    /// The window after round trips of a window's ACKs each, ssthresh being gamma segments on the path of `RTT_0`.
    fn course(rtt_ms: u64, gamma: f64, rounds: usize) -> Vec<f64> {
        let mut hybla = Hybla::new(HyblaParams {
            scale_ssthresh: true,
            ..HyblaParams::default()
        });
        let mut window = Window {
            cwnd: 1.0,
            ssthresh: gamma,
        };
        let start = AckEvidence {
            delivered: 0,
            ..ack(0, rtt_ms)
        };
        hybla.update_rho(&start);
        hybla.open(&mut window);
        let mut course = vec![window.cwnd];
        for _ in 0..rounds {
            for _ in 0..window.cwnd as u32 {
                hybla.on_ack(&mut window, 1.0, &ack(0, rtt_ms));
            }
            course.push(window.cwnd);
        }
        course
    }

    #[test]
    fn the_papers_window_over_time() {
        // Caini and Firrincieli 2004 §3: rho 2^(t / RTT_0) up to rho gamma, then rho ((t - t_gamma) / RTT_0 + gamma).
        assert_eq!(course(25, 16.0, 6)[..6], [1.0, 2.0, 4.0, 8.0, 16.0, 17.0]);
        assert_eq!(course(50, 16.0, 2), [2.0, 8.0, 32.0]);
        // At t_gamma = 4 RTT_0 all stand at rho 16, and 40 RTT_0 later at rho (16 + 40), whatever the RTT; less what the rule
        // per ACK loses, since its price rises within a round trip: rho^4 / (2 W) in each, rho / 2 ln(56 / 16) in all.
        for (rtt_ms, rounds) in [(25, 44), (50, 22), (100, 11)] {
            let rho = rtt_ms as f64 / 25.0;
            let share = course(rtt_ms, 16.0, rounds).last().expect("not empty") / rho;
            let expected = 56.0 - rho / 2.0 * libm::log(3.5);
            assert!((share - expected).abs() < 0.6, "{rtt_ms} ms: {share}");
        }
    }

    #[test]
    fn after_a_timeout_it_is_reno_until_loss_recovery_ends() {
        let mut hybla = Hybla::new(HyblaParams::default());
        let mut window = Window {
            cwnd: 40.0,
            ssthresh: 1000.0,
        };
        let in_recovery = AckEvidence {
            recovery_phase: RecoveryPhase::Loss,
            ..ack(0, 100)
        };
        hybla.on_ack(&mut window, 1.0, &in_recovery);
        assert_eq!(window.cwnd, 41.0);
        hybla.on_ack(&mut window, 1.0, &ack(1, 100));
        // 2^4 - 1.
        assert_eq!(window.cwnd, 56.0);
    }

    #[test]
    fn as_ns2s_module_it_takes_rho_in_eighths_modulo_32_and_the_first_ack_for_the_window_alone() {
        let mut hybla = Hybla::new(HyblaParams::default()).of_module(true);
        let mut window = Window {
            cwnd: 2.0,
            ssthresh: 1000.0,
        };
        hybla.on_ack(&mut window, 1.0, &ack(0, 1002));
        // 1002 / 25 = 40.08.
        assert_eq!((hybla.rho, window.cwnd), (40.0, 40.0));
        hybla.on_ack(&mut window, 1.0, &ack(1, 1002));
        // 2^8 - 1.
        assert_eq!(window.cwnd, 295.0);
    }

    #[test]
    fn hoes_estimate_is_the_rate_of_three_acks_times_the_rtt_and_no_leap_comes_before_it() {
        let (mut hybla, mut window) = awaiting();
        // A segment per 10 ms over 500 ms: 50. Until then a segment per ACK, then 2^16 - 1, up to there.
        let course = [1, 2, 3].map(|n| grown(&mut hybla, &mut window, (490 + 10 * n, n, 4)));
        let expected = [(5.0, f64::INFINITY), (6.0, f64::INFINITY), (50.0, 50.0)];
        assert_eq!(course, expected);
    }

    #[test]
    fn hoes_estimate_takes_acks_of_one_flight_and_brings_down_what_is_above_it() {
        let (mut hybla, mut window) = awaiting();
        for n in 1..=2 {
            grown(&mut hybla, &mut window, (490 + 10 * n, n, 1));
        }
        window.cwnd = 80.0;
        // 50 again, and an ACK of avoidance: 20^2 / 50. The next flight: the pause between the two does not count as its spacing.
        for n in 3..=4 {
            let after = grown(&mut hybla, &mut window, (970 + 10 * n, n, 8));
            assert_eq!(after, (78.0 + n as f64, f64::INFINITY));
        }
        assert_eq!(grown(&mut hybla, &mut window, (1020, 5, 8)), (58.0, 50.0));
    }

    #[test]
    fn a_loss_before_hoes_estimate_makes_it_superfluous() {
        let (mut hybla, mut window) = awaiting();
        grown(&mut hybla, &mut window, (500, 1, 4));
        hybla.on_decrease(&window);
        window.ssthresh = 1000.0;
        assert_eq!(
            grown(&mut hybla, &mut window, (510, 2, 4)),
            (1000.0, 1000.0)
        );
    }

    /// Waiting for the estimate under a window of four.
    fn awaiting() -> (Hybla, Window) {
        let params = HyblaParams {
            hoe_estimate: true,
            scale_initial_window: false,
            ..HyblaParams::default()
        };
        let window = Window {
            cwnd: 4.0,
            ssthresh: f64::INFINITY,
        };
        (Hybla::new(params), window)
    }

    /// The window after an ACK at that time, of the `n`-th segment, when so many were out behind it.
    fn grown(
        hybla: &mut Hybla,
        window: &mut Window,
        (now_ms, n, out): (u64, u64, u64),
    ) -> (f64, f64) {
        let ack = AckEvidence {
            snd_una: 1 + 1000 * n,
            snd_nxt: 1 + 1000 * (n + out),
            ..ack(now_ms, 500)
        };
        hybla.on_ack(window, 1.0, &ack);
        (window.cwnd, window.ssthresh)
    }
}

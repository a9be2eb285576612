//! H-TCP: the increase rises with the time since the last decrease, and the decrease follows the share of the RTT that is
//! queueing delay.
//!
//! Does not depend on slow start or recovery. Read draft-leith-tcp-htcp-06 §2 first, then `docs/variants/htcp.md`.

use super::reno::AckCounter;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::parameters;
use crate::cc::{AckEvidence, RecoveryPhase, SignalEvidence, Window, WindowIncrease};
use crate::sim::time::{MILLISECOND, Nanos, SECOND, seconds};

parameters! {
    /// Parameters of H-TCP.
    pub struct HtcpParams {
        /// Time since the last decrease during which it is Reno (Delta_L).
        low_speed_time: number(1.0, "s", 0.0, 60.0, "draft-leith-tcp-htcp-06 §2.1"),
        /// The increase scales with the minimum RTT over 100 ms, by 0.1 to 2.
        rtt_scaling: flag(true, "draft-leith-tcp-htcp-06 §2.3; Linux"),
        /// A loss halves the window if the throughput changed by more than a fifth since the loss before.
        bandwidth_switch: flag(true, "draft-leith-tcp-htcp-06 §2.2; Linux"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "htcp",
    family: "loss",
    summary: "increase depends on the time since the last loss",
    source: "draft-leith-tcp-htcp-06",
    year: 2008,
    params: HtcpParams::SPECS,
    parts: |_, values, _| ControllerParts::own(Htcp::new(HtcpParams::of(values))),
    ns2_module: true,
    ..Definition::BASE
};

/// draft-leith-tcp-htcp-06 §2.2: bounds of what remains after a loss.
const MIN_BETA: f64 = 0.5;
const MAX_BETA: f64 = 0.8;
/// §2.2: relative change of the throughput that counts.
const THROUGHPUT_CHANGE: f64 = 0.2;
/// Linux: the scaled increase is at least one segment per round trip.
const MIN_INCREASE: f64 = 1.0;
/// Linux: on paths shorter than this a loss halves the window.
const MIN_ADAPTIVE_RTT: Nanos = 10 * MILLISECOND;
/// Linux: RTT samples this far above the maximum are spikes, not queues.
const RTT_SPIKE: Nanos = 20 * MILLISECOND;
/// Linux: at a decrease the maximum RTT moves this far towards the minimum, because routes change.
const MAX_RTT_MEMORY: f64 = 0.95;
/// Linux: in the first round trips after a decrease the throughput is used unsmoothed, then smoothed.
const SETTLING_ROUNDS: u64 = 3;

/// Throughput over round trips, in segments per second.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    since: Nanos,
    segments: f64,
    smoothed: f64,
    max: f64,
    max_before: f64,
}

/// State of H-TCP.
#[derive(Clone, Debug)]
pub struct Htcp {
    params: HtcpParams,
    counter: AckCounter,
    /// Time of the last decrease, or of the first ACK.
    last_reduction: Option<Nanos>,
    now: Nanos,
    cwnd: f64,
    min_rtt: Option<Nanos>,
    max_rtt: Nanos,
    beta: f64,
    /// The factor of decrease is computed from the RTTs: not at the first decrease, nor at the first after a change of
    /// throughput.
    adapts: bool,
    throughput: Throughput,
}

/// draft-leith-tcp-htcp-06 §2.1: increase per round trip `since_s` seconds after a decrease, before scaling.
fn increase(since_s: f64, low_speed_s: f64) -> f64 {
    let over = (since_s - low_speed_s).max(0.0);
    1.0 + 10.0 * over + (over / 2.0) * (over / 2.0)
}

/// §2.3 as in Linux: divisor of the increase, 100 ms over the minimum RTT.
fn rtt_scale(min_rtt: Nanos) -> f64 {
    (0.1 * SECOND as f64 / min_rtt as f64).clamp(0.5, 10.0)
}

impl Htcp {
    /// H-TCP with these parameters.
    pub fn new(params: HtcpParams) -> Self {
        Self {
            params,
            counter: AckCounter::default(),
            last_reduction: None,
            now: 0,
            cwnd: 0.0,
            min_rtt: None,
            max_rtt: 0,
            beta: MIN_BETA,
            adapts: false,
            throughput: Throughput::default(),
        }
    }

    /// Increase per round trip: §2.1 to §2.3, with 2 (1 - beta) so that flows share fairly.
    fn alpha(&self) -> f64 {
        let since = self.now - self.last_reduction.unwrap_or(self.now);
        let mut alpha = increase(seconds(since), self.params.low_speed_time);
        if let (true, Some(min_rtt)) = (self.params.rtt_scaling, self.min_rtt) {
            alpha = (alpha / rtt_scale(min_rtt)).max(MIN_INCREASE);
        }
        2.0 * (1.0 - self.beta) * alpha
    }

    fn take_rtt(&mut self, ack: &AckEvidence) {
        let Some(srtt) = ack.srtt else {
            return;
        };
        let min_rtt = self.min_rtt.map_or(srtt, |min| min.min(srtt)).max(1);
        self.min_rtt = Some(min_rtt);
        if ack.recovery_phase == RecoveryPhase::None {
            self.max_rtt = self.max_rtt.max(min_rtt);
            if srtt <= self.max_rtt + RTT_SPIKE {
                self.max_rtt = self.max_rtt.max(srtt);
            }
        }
    }

    fn measure_throughput(&mut self, ack: &AckEvidence) {
        let Some(min_rtt) = self.min_rtt else {
            return;
        };
        let since_reduction = ack.now - self.last_reduction.unwrap_or(ack.now);
        let measured = &mut self.throughput;
        if ack.recovery_phase != RecoveryPhase::None {
            (measured.segments, measured.since) = (0.0, ack.now);
            return;
        }
        measured.segments += f64::from(ack.delivered);
        let elapsed = ack.now - measured.since;
        if measured.segments < self.cwnd - 1.0 || elapsed < min_rtt {
            return;
        }
        let current = measured.segments * SECOND as f64 / elapsed as f64;
        if since_reduction / min_rtt <= SETTLING_ROUNDS {
            (measured.smoothed, measured.max) = (current, current);
        } else {
            measured.smoothed = (3.0 * measured.smoothed + current) / 4.0;
            measured.max = measured.max.max(measured.smoothed);
        }
        (measured.segments, measured.since) = (0.0, ack.now);
    }

    /// §2.2: what remains after a loss.
    fn update_beta(&mut self) {
        if self.params.bandwidth_switch {
            let (now, before) = (self.throughput.max, self.throughput.max_before);
            self.throughput.max_before = now;
            if (now - before).abs() > THROUGHPUT_CHANGE * before {
                self.beta = MIN_BETA;
                self.adapts = false;
                return;
            }
        }
        match self.min_rtt {
            Some(min_rtt) if self.adapts && min_rtt > MIN_ADAPTIVE_RTT && self.max_rtt > 0 => {
                self.beta = (min_rtt as f64 / self.max_rtt as f64).clamp(MIN_BETA, MAX_BETA);
            }
            _ => {
                self.beta = MIN_BETA;
                self.adapts = true;
            }
        }
    }
}

impl WindowIncrease for Htcp {
    const OBSERVES: bool = true;

    fn observe(&mut self, ack: &AckEvidence) {
        self.now = ack.now;
        if self.last_reduction.is_none() {
            (self.last_reduction, self.throughput.since) = (Some(ack.now), ack.now);
        }
        self.take_rtt(ack);
        self.measure_throughput(ack);
    }

    fn on_ack(&mut self, window: &mut Window, acked: f64, _ack: &AckEvidence) {
        self.cwnd = window.cwnd;
        let per_increment = window.cwnd / self.alpha();
        self.counter.count(&mut window.cwnd, per_increment, acked);
    }

    fn ssthresh_after(&mut self, window: &Window, _signal: &SignalEvidence) -> f64 {
        self.update_beta();
        if let Some(min_rtt) = self.min_rtt.filter(|&min| self.max_rtt > min) {
            let queued = (self.max_rtt - min_rtt) as f64;
            self.max_rtt = min_rtt + (MAX_RTT_MEMORY * queued) as Nanos;
        }
        libm::floor(self.beta * window.cwnd)
    }

    /// The time counts from the end of recovery, as in Linux.
    fn on_recovery_exit(&mut self, ack: &AckEvidence) {
        self.last_reduction = Some(ack.now);
    }

    fn undo(&mut self, before: &Self) {
        self.last_reduction = before.last_reduction;
        (self.beta, self.adapts, self.max_rtt) = (before.beta, before.adapts, before.max_rtt);
        self.throughput.max_before = before.throughput.max_before;
    }

    fn on_decrease(&mut self, _before: &Window) {
        // Before the first ACK there is no time to count from.
        self.last_reduction = self.last_reduction.map(|_| self.now);
        self.counter = AckCounter::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Signal;

    const LOSS: SignalEvidence = SignalEvidence {
        now: 0,
        lost_total: 0,
        flight: 0.0,
        signal: Signal::Loss,
    };

    fn ack(now: Nanos, rtt_ms: u64) -> AckEvidence {
        AckEvidence {
            now,
            delivered: 1,
            srtt: Some(rtt_ms * MILLISECOND),
            ..AckEvidence::default()
        }
    }

    #[test]
    fn growth_by_hand() {
        let increase = |since_s| increase(since_s, 1.0);
        // 1; at two seconds beyond the first: 1 + 20 + 1.
        assert_eq!([increase(0.9), increase(3.0)], [1.0, 22.0]);
        let scale = |ms| rtt_scale(ms * MILLISECOND);
        assert_eq!([scale(5), scale(50), scale(500)], [10.0, 2.0, 0.5]);
        let mut htcp = Htcp::new(HtcpParams::default());
        htcp.observe(&ack(0, 100));
        htcp.observe(&ack(3 * SECOND, 100));
        assert!((htcp.alpha() - 22.0).abs() < 1e-9);
        htcp.beta = 0.8;
        assert!((htcp.alpha() - 8.8).abs() < 1e-9);
    }

    fn after_two_losses(max_rtt_ms: u64, throughput: [f64; 2]) -> f64 {
        let mut htcp = Htcp::new(HtcpParams::default());
        htcp.observe(&ack(0, 100));
        htcp.observe(&ack(1, max_rtt_ms));
        htcp.max_rtt = max_rtt_ms * MILLISECOND;
        let mut after = 0.0;
        // At the first decrease the throughput changes from nothing; from the second on the factor adapts.
        for max in [throughput[0], throughput[0], throughput[1]] {
            htcp.throughput.max = max;
            htcp.max_rtt = max_rtt_ms * MILLISECOND;
            after = htcp.ssthresh_after(&Window::at(100.0), &LOSS);
        }
        after
    }

    #[test]
    fn a_loss_leaves_the_ratio_of_the_rtts_between_its_bounds() {
        let steady = [100.0, 100.0];
        assert_eq!(after_two_losses(150, steady), 66.0);
        assert_eq!(after_two_losses(105, steady), 80.0);
        assert_eq!(after_two_losses(400, steady), 50.0);
        // A change of a fifth, up or down, is the most that counts as steady.
        assert_eq!(after_two_losses(150, [100.0, 119.0]), 66.0);
        assert_eq!(after_two_losses(150, [100.0, 121.0]), 50.0);
        assert_eq!(after_two_losses(150, [100.0, 82.0]), 66.0);
        assert_eq!(after_two_losses(150, [100.0, 79.0]), 50.0);
    }

    #[test]
    fn the_time_counts_from_the_end_of_recovery_and_an_undo_takes_the_old_one() {
        let mut htcp = Htcp::new(HtcpParams::default());
        htcp.observe(&ack(0, 100));
        let before = htcp.clone();
        htcp.observe(&ack(2 * SECOND, 100));
        htcp.on_decrease(&Window::at(10.0));
        htcp.on_recovery_exit(&ack(3 * SECOND, 100));
        htcp.observe(&ack(4 * SECOND, 100));
        assert!((htcp.alpha() - 1.0).abs() < 1e-9);
        htcp.undo(&before);
        // Four seconds, three beyond the first: 1 + 30 + 2.25.
        assert!((htcp.alpha() - 33.25).abs() < 1e-9);
    }

    #[test]
    fn throughput_is_measured_over_whole_round_trips() {
        let mut htcp = Htcp::new(HtcpParams::default());
        htcp.observe(&ack(0, 100));
        htcp.cwnd = 11.0;
        for n in 1..=10 {
            htcp.observe(&ack(n * 10 * MILLISECOND, 100));
        }
        // 11 segments in 100 ms.
        assert!((htcp.throughput.max - 110.0).abs() < 1e-9);
    }
}

//! Markov and semi-Markov channels with any number of states, stepped per packet or in time. Each state has a sojourn
//! time and a loss probability (`docs/channels/markov.md`).
//!
//! `gilbert_elliott.rs` has a faster form of the chain of two states that is stepped per packet.

use crate::lookahead::Lookahead;
use crate::rng::{RunLength, StreamRng};

/// The losses in a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StateLoss {
    /// Every packet is lost with this probability.
    Packets(f64),
    /// Every bit is wrong with this probability; a packet with a wrong bit is lost.
    Bits(f64),
}

impl StateLoss {
    /// Probability that a packet of `size_bytes` is lost.
    pub(crate) fn of_packet(self, size_bytes: u32) -> f64 {
        match self {
            Self::Packets(probability) => probability,
            Self::Bits(probability) => {
                -libm::expm1(f64::from(size_bytes) * 8.0 * libm::log1p(-probability))
            }
        }
    }
}

/// The distribution of the sojourn time in a state, in packets or nanoseconds, as the [`Clock`] says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stay {
    /// Geometric: the chain leaves the state before the next packet with this probability.
    Geometric(f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Log-normal.
    LogNormal {
        /// Median of the sojourn time.
        median: f64,
        /// Standard deviation of the natural logarithm of the sojourn time.
        sigma: f64,
    },
    /// Constant.
    Fixed(u64),
}

impl Stay {
    fn sample(self, rng: &mut StreamRng) -> u64 {
        match self {
            Self::Geometric(leave) => rng.run_length(leave).saturating_add(1),
            Self::Exponential(mean) => rng.exponential(mean) as u64,
            Self::LogNormal { median, sigma } => (median * libm::exp(sigma * rng.normal())) as u64,
            Self::Fixed(length) => length,
        }
    }
}

/// The unit in which sojourn times are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Packets that enter the process: an idle link keeps its state.
    Packets,
    /// Nanoseconds: the state changes also while nothing is sent.
    Time,
}

/// The states of a chain and the transitions between them.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainParams {
    /// The unit of the sojourn times.
    pub clock: Clock,
    /// Loss and sojourn time of each state.
    pub states: Vec<(StateLoss, Stay)>,
    /// For each state the probabilities of the next state; each row sums to 1.
    pub jumps: Vec<Vec<f64>>,
    /// Probabilities of the initial state.
    pub start: Vec<f64>,
}

/// The sequence of states, without packets.
#[derive(Clone, Debug)]
pub struct Walk {
    params: ChainParams,
    state: Option<usize>,
    rng: StreamRng,
}

impl Walk {
    /// A sequence that begins with the next call of [`Self::step`].
    pub fn new(params: ChainParams, rng: StreamRng) -> Self {
        Self {
            params,
            state: None,
            rng,
        }
    }

    /// The losses in a state.
    pub(crate) fn loss(&self, state: usize) -> StateLoss {
        self.params.states[state].0
    }

    /// The next state and its sojourn time.
    pub fn step(&mut self) -> (usize, u64) {
        let row = match self.state {
            Some(state) => &self.params.jumps[state],
            None => &self.params.start,
        };
        let state = sample_index(row, &mut self.rng);
        self.state = Some(state);
        (state, self.params.states[state].1.sample(&mut self.rng))
    }
}

/// A random index with these probabilities.
fn sample_index(weights: &[f64], rng: &mut StreamRng) -> usize {
    let mut left = rng.unit() * weights.iter().sum::<f64>();
    let possible = weights
        .iter()
        .enumerate()
        .filter(|(_, weight)| **weight > 0.0);
    let mut last = 0;
    for (index, weight) in possible {
        last = index;
        if left <= *weight {
            break;
        }
        left -= weight;
    }
    last
}

/// Counts the packets or bits that pass before the next loss in a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossCountdown {
    distribution: RunLength,
    per_bit: bool,
    left: u64,
}

impl LossCountdown {
    /// Starts in a state with this loss.
    pub(crate) fn new(loss: StateLoss, rng: &mut StreamRng) -> Self {
        let (probability, per_bit) = match loss {
            StateLoss::Packets(probability) => (probability, false),
            StateLoss::Bits(probability) => (probability, true),
        };
        let distribution = RunLength::new(probability);
        Self {
            distribution,
            per_bit,
            left: distribution.sample(rng),
        }
    }

    /// Whether the next packet, of `size_bytes`, is lost.
    #[inline]
    pub(crate) fn lost(&mut self, size_bytes: u32, rng: &mut StreamRng) -> bool {
        let needs = if self.per_bit {
            u64::from(size_bytes) * 8
        } else {
            1
        };
        if self.left >= needs {
            self.left -= if self.left == u64::MAX { 0 } else { needs };
            return false;
        }
        // The geometric distribution has no memory, so a new run begins after the lost packet.
        self.left = self.distribution.sample(rng);
        true
    }

    /// Packets of `size_bytes` that pass before the next loss; `u64::MAX` if none is ever lost.
    fn packets(&self, size_bytes: u32) -> u64 {
        if self.per_bit && self.left != u64::MAX {
            self.left / (u64::from(size_bytes) * 8).max(1)
        } else {
            self.left
        }
    }

    /// Counts packets that pass.
    fn consume(&mut self, packets: u64, size_bytes: u32) {
        let each = if self.per_bit {
            u64::from(size_bytes) * 8
        } else {
            1
        };
        if self.left != u64::MAX {
            self.left -= packets * each;
        }
    }
}

/// Losses by the states of a chain.
#[derive(Clone, Debug)]
pub struct ChainLoss {
    sequence: Walk,
    countdown: LossCountdown,
    /// Packets left in the present state, or the time at which it ends.
    end: u64,
}

impl ChainLoss {
    /// Starts the process at time 0.
    pub fn new(params: ChainParams, rng: StreamRng) -> Self {
        let mut sequence = Walk::new(params, rng);
        let (state, stay) = sequence.step();
        let countdown = LossCountdown::new(sequence.params.states[state].0, &mut sequence.rng);
        // Like netem, a chain stepped per packet steps before the first packet is decided.
        let end = match sequence.params.clock {
            Clock::Packets if stay != u64::MAX => stay.saturating_sub(1),
            _ => stay,
        };
        Self {
            sequence,
            countdown,
            end,
        }
    }

    /// Whether a packet of `size_bytes` that is on the channel at `now_ns` is lost; `now_ns` never decreases.
    #[inline]
    pub fn lost(&mut self, size_bytes: u32, now_ns: u64) -> bool {
        match self.sequence.params.clock {
            Clock::Packets => {
                while self.end == 0 {
                    self.end = self.enter_next_state();
                }
                self.end -= u64::from(self.end != u64::MAX);
            }
            Clock::Time => {
                while self.end <= now_ns {
                    let stay = self.enter_next_state().max(1);
                    self.end = self.end.saturating_add(stay);
                }
            }
        }
        self.countdown.lost(size_bytes, &mut self.sequence.rng)
    }

    /// The number of packets of `size_bytes` that pass before the next loss; none if the first `max_pkts` pass. The
    /// chain must be stepped per packet.
    ///
    /// The packets, with the lost one, are counted as processed. The losses are those of [`Self::lost`], but the cost
    /// does not grow with the number of packets.
    pub fn pass_until_loss(&mut self, size_bytes: u32, max_pkts: u64) -> Option<u64> {
        let mut passed = 0;
        while passed < max_pkts {
            while self.end == 0 {
                self.end = self.enter_next_state();
            }
            let run = self.countdown.packets(size_bytes);
            let run = run.min(self.end).min(max_pkts - passed);
            self.countdown.consume(run, size_bytes);
            passed += run;
            self.end -= if self.end == u64::MAX { 0 } else { run };
            if passed < max_pkts && self.end > 0 {
                let lost = self.lost(size_bytes, 0);
                debug_assert!(lost);
                return Some(passed);
            }
        }
        None
    }

    /// Whether the chain is stepped per packet.
    pub fn is_stepped(&self) -> bool {
        self.sequence.params.clock == Clock::Packets
    }

    /// The states of a chain in time, for queries ahead of time.
    pub(crate) fn lookahead(mut self) -> Lookahead {
        let first = self.sequence.loss(self.sequence.state.unwrap_or(0));
        let rng = self.sequence.rng.split();
        Lookahead::from_chain(self.sequence, first, self.end, rng)
    }

    /// Enters the next state and returns its sojourn time.
    fn enter_next_state(&mut self) -> u64 {
        let (state, stay) = self.sequence.step();
        self.countdown =
            LossCountdown::new(self.sequence.params.states[state].0, &mut self.sequence.rng);
        stay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::test_rng as rng;
    use crate::{GilbertElliott, GilbertElliottParams};

    fn two_states(clock: Clock, good: Stay, bad: Stay, loss: [StateLoss; 2]) -> ChainParams {
        ChainParams {
            clock,
            states: vec![(loss[0], good), (loss[1], bad)],
            jumps: vec![vec![0.0, 1.0], vec![1.0, 0.0]],
            start: vec![1.0, 0.0],
        }
    }

    const ALL_OR_NOTHING: [StateLoss; 2] = [StateLoss::Packets(0.0), StateLoss::Packets(1.0)];

    /// Loss rate, mean burst and mean gap of a loss sequence.
    fn statistics(lost_packets: &[bool]) -> (f64, f64, f64) {
        let lost = lost_packets.iter().filter(|&&lost| lost).count() as f64;
        let bursts = lost_packets.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let n = lost_packets.len() as f64;
        (lost / n, lost / bursts, (n - lost) / bursts)
    }

    #[test]
    fn two_states_stepped_per_packet_are_gilbert_elliott() {
        let (p, r, h, k) = (0.02, 0.2, 0.3, 0.99);
        let chain = two_states(
            Clock::Packets,
            Stay::Geometric(p),
            Stay::Geometric(r),
            [StateLoss::Packets(1.0 - k), StateLoss::Packets(1.0 - h)],
        );
        let (mut one, mut other) = (
            ChainLoss::new(chain, rng(1)),
            GilbertElliott::new(GilbertElliottParams { p, r, h, k }, rng(2)),
        );
        let ours = statistics(
            &(0..2_000_000)
                .map(|_| one.lost(1500, 0))
                .collect::<Vec<_>>(),
        );
        let theirs = statistics(&(0..2_000_000).map(|_| other.lost()).collect::<Vec<_>>());
        let share = p / (p + r) * (1.0 - h) + r / (p + r) * (1.0 - k);
        assert!((ours.0 - share).abs() < 0.001, "{ours:?}");
        assert!(
            (ours.1 / theirs.1 - 1.0).abs() < 0.01,
            "{ours:?} {theirs:?}"
        );
        assert!(
            (ours.2 / theirs.2 - 1.0).abs() < 0.02,
            "{ours:?} {theirs:?}"
        );
    }

    #[test]
    fn the_packet_rate_does_not_change_bursts_in_time_nor_bursts_in_packets() {
        let time = two_states(
            Clock::Time,
            Stay::Exponential(90e6),
            Stay::Exponential(10e6),
            ALL_OR_NOTHING,
        );
        let packets = two_states(
            Clock::Packets,
            Stay::Geometric(1.0 / 90.0),
            Stay::Geometric(0.1),
            ALL_OR_NOTHING,
        );
        // At one packet per ms the two agree apart from sampling. At ten per ms the bursts of the model in time are ten
        // times as long in packets.
        for (spacing_ns, expected) in [(1_000_000_u64, [10.5, 10.0]), (100_000, [100.5, 10.0])] {
            for (params, mean) in [(&time, expected[0]), (&packets, expected[1])] {
                let mut process = ChainLoss::new(params.clone(), rng(3));
                let lost: Vec<_> = (0..3_000_000)
                    .map(|i| process.lost(1500, i * spacing_ns))
                    .collect();
                let (share, burst, _) = statistics(&lost);
                assert!((share - 0.1).abs() < 0.006, "{share}");
                assert!((burst / mean - 1.0).abs() < 0.06, "{burst} {mean}");
            }
        }
    }

    #[test]
    fn a_sampled_chain_in_time_is_a_chain_per_packet_of_other_parameters() {
        // P(good to bad in one step) = a / (a + b) (1 - e^-(a + b) step), with a and b the rates of leaving the states.
        let (good_ns, bad_ns, step_ns) = (40e6, 5e6, 2_000_000_u64);
        let (a, b) = (1.0 / good_ns, 1.0 / bad_ns);
        let mixing = 1.0 - libm::exp(-(a + b) * step_ns as f64);
        let (p, r) = (a / (a + b) * mixing, b / (a + b) * mixing);
        let params = two_states(
            Clock::Time,
            Stay::Exponential(good_ns),
            Stay::Exponential(bad_ns),
            ALL_OR_NOTHING,
        );
        let mut process = ChainLoss::new(params, rng(8));
        let lost: Vec<_> = (0..3_000_000)
            .map(|i| process.lost(40, i * step_ns))
            .collect();
        let (share, burst, gap) = statistics(&lost);
        assert!((share - p / (p + r)).abs() < 0.001, "{share}");
        assert!((burst * r - 1.0).abs() < 0.012, "{burst}");
        assert!((gap * p - 1.0).abs() < 0.012, "{gap}");
    }

    #[test]
    fn each_state_has_a_separate_bit_error_rate() {
        let params = two_states(
            Clock::Packets,
            Stay::Geometric(0.01),
            Stay::Geometric(0.03),
            [StateLoss::Bits(1e-6), StateLoss::Bits(1e-5)],
        );
        for (size, good, bad) in [
            (1500_u32, 0.011_928_3, 0.113_080_0),
            (40, 0.000_319_95, 0.003_194_9),
        ] {
            let mut process = ChainLoss::new(params.clone(), rng(5));
            let n = 4_000_000;
            let lost = (0..n).filter(|_| process.lost(size, 0)).count() as f64 / f64::from(n);
            let expected = 0.75 * good + 0.25 * bad;
            assert!(
                (lost / expected - 1.0).abs() < 0.03,
                "{size}: {lost} against {expected}"
            );
        }
    }

    #[test]
    fn run_lengths_give_the_same_losses_as_single_packets() {
        let three = |loss: [StateLoss; 3]| ChainParams {
            clock: Clock::Packets,
            states: vec![
                (loss[0], Stay::Geometric(0.01)),
                (loss[1], Stay::Geometric(0.2)),
                (loss[2], Stay::Geometric(1.0)),
            ],
            jumps: vec![
                vec![0.0, 0.7, 0.3],
                vec![0.5, 0.0, 0.5],
                vec![1.0, 0.0, 0.0],
            ],
            start: vec![0.2, 0.3, 0.5],
        };
        let packets = [0.001, 0.5, 1.0].map(StateLoss::Packets);
        let bits = [1e-7, 1e-5, 0.0].map(StateLoss::Bits);
        for loss in [packets, bits] {
            let (mut one, mut other) = (
                ChainLoss::new(three(loss), rng(9)),
                ChainLoss::new(three(loss), rng(9)),
            );
            let n = 100_000;
            let singly: Vec<u64> = (0..n).filter(|_| one.lost(1500, 0)).collect();
            let (mut next, mut runs) = (0, Vec::new());
            while let Some(passed) = other.pass_until_loss(1500, n - next) {
                runs.push(next + passed);
                next += passed + 1;
            }
            assert!(singly.len() > 300, "{}", singly.len());
            assert_eq!(singly, runs);
        }
    }

    #[test]
    fn sojourn_times_have_the_mean_of_their_distribution() {
        let mut rng = rng(6);
        let distributions = [
            (Stay::Geometric(0.05), 20.0),
            (Stay::Exponential(5e8), 5e8),
            // Mean of the log-normal distribution: median e^(sigma^2 / 2).
            (
                Stay::LogNormal {
                    median: 1e6,
                    sigma: 0.5,
                },
                1_133_148.0,
            ),
            (Stay::Fixed(77), 77.0),
        ];
        for (stay, mean) in distributions {
            let got = (0..200_000)
                .map(|_| stay.sample(&mut rng) as f64)
                .sum::<f64>()
                / 2e5;
            assert!((got / mean - 1.0).abs() < 0.012, "{stay:?}: {got}");
        }
    }

    #[test]
    fn transitions_follow_their_rows_and_an_impossible_state_never_occurs() {
        let params = ChainParams {
            clock: Clock::Time,
            states: vec![(StateLoss::Packets(0.0), Stay::Fixed(1)); 4],
            jumps: vec![
                vec![0.0, 0.3, 0.7, 0.0],
                vec![1.0, 0.0, 0.0, 0.0],
                vec![0.5, 0.5, 0.0, 0.0],
                vec![1.0, 0.0, 0.0, 0.0],
            ],
            start: vec![0.0, 0.0, 1.0, 0.0],
        };
        let mut sequence = Walk::new(params, rng(7));
        let states: Vec<_> = (0..100_000).map(|_| sequence.step().0).collect();
        assert_eq!(states[0], 2);
        assert!(!states.contains(&3));
        let from_first: Vec<_> = states
            .windows(2)
            .filter(|w| w[0] == 0)
            .map(|w| w[1])
            .collect();
        let to_second =
            from_first.iter().filter(|&&s| s == 1).count() as f64 / from_first.len() as f64;
        assert!((to_second - 0.3).abs() < 0.007, "{to_second}");
    }
}

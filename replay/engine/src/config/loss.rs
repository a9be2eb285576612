//! Loss processes: their parameters, the checks of these, and the process itself.
//!
//! Does not depend on links. The Python side uses the same names (`channels/models/losses.py`); `docs/channels/` describes
//! each model.

use hindflight_kernels::{
    Arq, ArqParams, Bernoulli, BitErrors, ChainLoss, ChainParams, Clock, Fec, FecParams,
    GilbertElliott, GilbertElliottParams, Guard, LossProcess, LossSequence, LossTrace, Purpose,
    Span, StateLoss, Stay, StreamKey, StreamRng, Timeline, TraceMode,
};
use serde::{Deserialize, Serialize};

use super::error::{ConfigErrorKind, ConfigErrors, Relation};
use super::validate::{Found, MAX_NS, Place};

/// A loss process and its parameters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossConfig {
    /// Nothing is lost.
    #[default]
    None,
    /// Independent losses with packet error rate `per`.
    Bernoulli {
        /// Probability that a packet is lost.
        per: f64,
    },
    /// Independent bit errors.
    Ber {
        /// Probability that a bit is wrong.
        ber: f64,
    },
    /// Bursts of losses, with netem's parameters.
    GilbertElliott {
        /// Probability of the transition from good to bad, per packet.
        p: f64,
        /// Probability of the transition from bad to good, per packet.
        r: f64,
        /// Probability of delivery in the bad state.
        h: f64,
        /// Probability of delivery in the good state.
        k: f64,
    },
    /// A (semi-)Markov chain, stepped per packet or in time.
    Chain {
        /// Unit of the stays.
        clock: ClockConfig,
        /// The states.
        states: Vec<StateConfig>,
        /// Transition probabilities, one row per state.
        jumps: Vec<Vec<f64>>,
        /// Initial distribution.
        start: Vec<f64>,
    },
    /// A captured loss sequence, by position.
    Trace {
        /// Positions of the lost packets, ascending, from 0.
        positions: Vec<u64>,
        /// Length of the captured sequence, packets.
        known_pkts: u64,
        /// How it is replayed.
        mode: TraceModeConfig,
        /// Block length of `resampled`.
        #[serde(default = "default_block_pkts")]
        block_pkts: u64,
        /// Packets that are delayed: position and additional delay, ns; positions ascend.
        #[serde(default)]
        late: Vec<(u64, u64)>,
    },
    /// Loss probabilities that depend on time.
    Timeline {
        /// In ascending order of start; each applies until the next.
        spans: Vec<SpanConfig>,
    },
    /// Link-layer retransmission (ARQ) over another process.
    Arq {
        /// Loss process of each attempt.
        over: Box<LossConfig>,
        /// Retransmissions after the first attempt.
        retries: u32,
        /// Duration of an attempt.
        try_ns: u64,
        /// Whether later packets wait for the one that is retransmitted.
        in_order: bool,
    },
    /// Link-layer erasure code (FEC) over another process.
    Fec {
        /// Loss process of each packet of a block.
        over: Box<LossConfig>,
        /// Packets of a block.
        block: u32,
        /// RecoveryPhase packets among them.
        repair: u32,
        /// Duration of a packet of a block.
        packet_ns: u64,
        /// Whether later packets wait for one that is recovered.
        in_order: bool,
    },
}

fn default_block_pkts() -> u64 {
    100
}

/// How a captured sequence is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceModeConfig {
    /// As captured.
    Replayed,
    /// In blocks that are resampled at random.
    Resampled,
}

/// Unit of a chain's stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockConfig {
    /// Packets.
    Packets,
    /// Nanoseconds.
    Time,
}

/// A state of a chain: `per` or `ber`, and its stay.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateConfig {
    /// Probability that a packet is lost.
    pub per: Option<f64>,
    /// Probability that a bit is wrong.
    pub ber: Option<f64>,
    /// Duration of a stay.
    pub stay: StayConfig,
}

/// Distribution of the duration of a stay.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StayConfig {
    /// Geometric: probability to leave the state before the next packet.
    Geometric(f64),
    /// Exponential with this mean.
    ExponentialNs(f64),
    /// Log-normal.
    LogNormal {
        /// Median.
        median_ns: f64,
        /// Standard deviation of its natural logarithm.
        sigma: f64,
    },
    /// Constant.
    FixedNs(u64),
}

/// Loss probability from a time on: `per` or `ber`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpanConfig {
    /// Since the start of the run.
    pub start_ns: u64,
    /// Probability that a packet is lost.
    pub per: Option<f64>,
    /// Probability that a bit is wrong.
    pub ber: Option<f64>,
}

/// The loss of a state with `per` or `ber`; with neither, nothing is lost.
fn state_loss(per: Option<f64>, ber: Option<f64>) -> StateLoss {
    ber.map_or(StateLoss::Packets(per.unwrap_or(0.0)), StateLoss::Bits)
}

impl StateConfig {
    fn stay(&self) -> Stay {
        match self.stay {
            StayConfig::Geometric(leave) => Stay::Geometric(leave),
            StayConfig::ExponentialNs(mean) => Stay::Exponential(mean),
            StayConfig::LogNormal { median_ns, sigma } => Stay::LogNormal {
                median: median_ns,
                sigma,
            },
            StayConfig::FixedNs(length) => Stay::Fixed(length),
        }
    }
}

impl LossConfig {
    /// The process, with random numbers of the stream at `key`. The configuration must be valid.
    pub fn process(&self, key: StreamKey) -> LossProcess {
        let rng = StreamRng::new(key);
        match self {
            Self::None => LossProcess::None,
            Self::Bernoulli { per } => LossProcess::Bernoulli(Bernoulli::new(*per, rng)),
            Self::Ber { ber } => LossProcess::BitErrors(BitErrors::new(*ber, rng)),
            &Self::GilbertElliott { p, r, h, k } => LossProcess::GilbertElliott(
                GilbertElliott::new(GilbertElliottParams { p, r, h, k }, rng),
            ),
            Self::Trace {
                positions,
                known_pkts,
                mode,
                block_pkts,
                late,
            } => {
                let mode = match mode {
                    TraceModeConfig::Replayed => TraceMode::Replayed,
                    TraceModeConfig::Resampled => TraceMode::Resampled {
                        block_pkts: *block_pkts,
                    },
                };
                let rng = StreamRng::new(key.with(Purpose::Resample));
                let sequence = LossSequence {
                    known_pkts: *known_pkts,
                    lost: positions.clone(),
                    late: late.clone(),
                };
                LossProcess::Trace(LossTrace::new(sequence, mode, rng))
            }
            Self::Chain { .. } => self.chain().map_or(LossProcess::None, |params| {
                LossProcess::Chain(Box::new(ChainLoss::new(params, rng)))
            }),
            Self::Timeline { .. } => {
                let spans = self.spans().unwrap_or_default();
                LossProcess::Timeline(Box::new(Timeline::new(spans, rng)))
            }
            Self::Arq { .. } | Self::Fec { .. } => {
                self.guard(key).map_or(LossProcess::None, |guard| {
                    LossProcess::Guarded(Box::new(guard))
                })
            }
        }
    }

    /// Link-layer protection of the inner process, if this is ARQ or FEC.
    fn guard(&self, key: StreamKey) -> Option<Guard> {
        match *self {
            Self::Arq {
                ref over,
                retries,
                try_ns,
                in_order,
            } => {
                let params = ArqParams {
                    retries,
                    try_ns,
                    in_order,
                };
                Some(Guard::Arq(Arq::new(over.process(key), params)))
            }
            Self::Fec {
                ref over,
                block,
                repair,
                packet_ns,
                in_order,
            } => {
                let params = FecParams {
                    block,
                    repair,
                    packet_ns,
                    in_order,
                };
                Some(Guard::Fec(Fec::new(over.process(key), params)))
            }
            _ => None,
        }
    }

    /// The spans, if this is a timeline.
    pub fn spans(&self) -> Option<Vec<Span>> {
        let Self::Timeline { spans } = self else {
            return None;
        };
        let spans = spans.iter().map(|span| Span {
            start_ns: span.start_ns,
            loss: state_loss(span.per, span.ber),
        });
        Some(spans.collect())
    }

    /// The states and transition probabilities, if this is a chain.
    pub fn chain(&self) -> Option<ChainParams> {
        let Self::Chain {
            clock,
            states,
            jumps,
            start,
        } = self
        else {
            return None;
        };
        let states = states
            .iter()
            .map(|state| (state_loss(state.per, state.ber), state.stay()));
        Some(ChainParams {
            clock: match clock {
                ClockConfig::Packets => Clock::Packets,
                ClockConfig::Time => Clock::Time,
            },
            states: states.collect(),
            jumps: jumps.clone(),
            start: start.clone(),
        })
    }

    /// Checks every value; `key` names the process in the errors.
    ///
    /// # Errors
    /// Every value that makes no sense, with its key path.
    pub fn validate(&self, key: &str) -> Result<(), ConfigErrors> {
        let found = Found::default();
        self.validate_at(&found.root().key(key));
        found.finish()
    }

    pub(super) fn validate_at(&self, place: &Place) {
        let probability = |name: &str, value: f64| place.key(name).probability(value);
        match self {
            Self::None => {}
            Self::Bernoulli { per } => {
                probability("per", *per);
            }
            Self::Ber { ber } => {
                probability("ber", *ber);
            }
            Self::GilbertElliott { p, r, h, k } => {
                for (name, value) in [("p", p), ("r", r), ("h", h), ("k", k)] {
                    probability(name, *value);
                }
            }
            Self::Chain {
                clock,
                states,
                jumps,
                start,
            } => validate_chain(place, *clock, states, (jumps, start)),
            Self::Trace {
                positions,
                known_pkts,
                block_pkts,
                late,
                ..
            } => {
                place.key("known_pkts").within(*known_pkts, 1, u64::MAX);
                place.key("block_pkts").within(*block_pkts, 1, u64::MAX);
                validate_trace(place, positions, late, *known_pkts);
            }
            Self::Timeline { spans } => validate_spans(&place.key("spans"), spans),
            Self::Arq {
                over,
                retries,
                try_ns,
                ..
            } => {
                place.key("retries").within(*retries, 0, 255);
                place.key("try_ns").within(*try_ns, 1, MAX_NS);
                over.validate_at(&place.key("over"));
            }
            Self::Fec {
                over,
                block,
                repair,
                packet_ns,
                ..
            } => {
                if place.key("block").within(*block, 2, 65_535) {
                    place.key("repair").within(*repair, 1, *block - 1);
                }
                place.key("packet_ns").within(*packet_ns, 1, MAX_NS);
                over.validate_at(&place.key("over"));
            }
        }
    }
}

const MAX_STATES: usize = 1000;
const MAX_SIGMA: f64 = 10.0;

/// `steps` are the transition probabilities and the initial distribution.
fn validate_chain(
    place: &Place,
    clock: ClockConfig,
    states: &[StateConfig],
    steps: (&[Vec<f64>], &[f64]),
) {
    let (jumps, start) = steps;
    let count = states.len();
    place.key("states").within(count, 1, MAX_STATES);
    for (i, state) in states.iter().enumerate() {
        validate_state(&place.key("states").index(i), clock, state);
    }
    let rows = place.key("jumps");
    rows.within(jumps.len(), count, count);
    for (i, row) in jumps.iter().enumerate() {
        validate_distribution(&rows.index(i), row, count);
    }
    validate_distribution(&place.key("start"), start, count);
}

fn validate_trace(place: &Place, lost: &[u64], late: &[(u64, u64)], known_pkts: u64) {
    validate_positions(&place.key("positions"), lost.iter(), known_pkts);
    let list = place.key("late");
    let positions = late.iter().map(|(position, _)| position);
    validate_positions(&list, positions, known_pkts);
    for (i, (_, added_ns)) in late.iter().enumerate() {
        if !list.index(i).within(*added_ns, 0, MAX_NS) {
            break;
        }
    }
}

fn validate_spans(list: &Place, spans: &[SpanConfig]) {
    let mut last = 0;
    for (i, span) in spans.iter().enumerate() {
        let place = list.index(i);
        let sound = place.key("start_ns").within(span.start_ns, last, MAX_NS);
        if !sound || !validate_state_loss(&place, span.per, span.ber) {
            break;
        }
        last = span.start_ns;
    }
}

fn validate_state_loss(place: &Place, per: Option<f64>, ber: Option<f64>) -> bool {
    if per.is_some() && ber.is_some() {
        place.refuse(ConfigErrorKind::Exclusive {
            keys: ["per", "ber"],
        });
        return false;
    }
    let per = place.key("per").probability(per.unwrap_or(0.0));
    place.key("ber").probability(ber.unwrap_or(0.0)) && per
}

fn validate_state(place: &Place, clock: ClockConfig, state: &StateConfig) {
    validate_state_loss(place, state.per, state.ber);
    let stay = place.key("stay");
    let longest = MAX_NS as f64;
    match state.stay {
        StayConfig::Geometric(leave) => {
            stay.probability(leave);
        }
        StayConfig::ExponentialNs(mean) => {
            stay.within(mean, 1.0, longest);
        }
        StayConfig::LogNormal { median_ns, sigma } => {
            stay.key("median_ns").within(median_ns, 1.0, longest);
            stay.key("sigma").within(sigma, 0.0, MAX_SIGMA);
        }
        StayConfig::FixedNs(length) => {
            stay.within(length, 1, MAX_NS);
        }
    }
    let per_packet = matches!(state.stay, StayConfig::Geometric(_));
    if per_packet != (clock == ClockConfig::Packets) {
        stay.refuse(ConfigErrorKind::StayOfOtherClock { clock });
    }
}

/// Probabilities, one per state, that sum to 1.
fn validate_distribution(place: &Place, row: &[f64], states: usize) {
    place.within(row.len(), states, states);
    for (i, value) in row.iter().enumerate() {
        if !place.index(i).probability(*value) {
            return;
        }
    }
    let sum: f64 = row.iter().sum();
    if (sum - 1.0).abs() > 1e-6 {
        place.refuse(ConfigErrorKind::SumNotOne { sum });
    }
}

/// Positions of packets that ascend and lie within the trace.
fn validate_positions<'a>(list: &Place, positions: impl Iterator<Item = &'a u64>, known_pkts: u64) {
    let mut before = None;
    for (i, &position) in positions.enumerate() {
        let value = position.into();
        if position >= known_pkts {
            list.index(i).refuse(ConfigErrorKind::Order {
                value,
                must_be: Relation::Below,
                other: "known_pkts",
                other_value: known_pkts.into(),
                profile: None,
            });
            return;
        }
        if before.is_some_and(|before| before >= position) {
            let kind = ConfigErrorKind::NotAscending { value };
            list.index(i).refuse(kind);
            return;
        }
        before = Some(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> LossConfig {
        serde_json::from_str(json).expect("sound JSON")
    }

    const CHAIN: &str = r#"{"kind":"chain","clock":"time","states":[{"stay":{"exponential_ns":9e7}},
        {"per":1.0,"stay":{"exponential_ns":1e7}}],"jumps":[[0,1],[1,0]],"start":[1,0]}"#;

    #[test]
    fn a_chain_in_time_and_a_timeline_lose_packets_at_their_times() {
        let key = StreamKey {
            seed: 1,
            owner: 0,
            direction: 0,
            purpose: Purpose::Loss,
        };
        let chain = parse(CHAIN);
        assert_eq!(chain.validate("loss"), Ok(()));
        let mut process = chain.process(key);
        let lost = (0..1_000_000_u64)
            .filter(|i| process.pass(1500, i * 1_000_000).is_none())
            .count() as f64;
        assert!((lost / 1e6 - 0.1).abs() < 0.005, "{lost}");
        let timeline =
            parse(r#"{"kind":"timeline","spans":[{"start_ns":5,"per":1.0},{"start_ns":9}]}"#);
        assert_eq!(timeline.validate("loss"), Ok(()));
        let mut process = timeline.process(key);
        let lost: Vec<_> = (0..20).filter(|&t| process.pass(40, t).is_none()).collect();
        assert_eq!(lost, [5, 6, 7, 8]);
    }

    #[test]
    fn an_invalid_value_is_refused_with_its_key_path() {
        for (wrong, right, key) in [
            ("\"per\":1.0", "\"per\":1.5", "loss.states[1].per"),
            ("\"per\":1.0", "\"per\":0.1,\"ber\":0.1", "loss.states[1]"),
            ("[0,1]", "[0.2,0.9]", "loss.jumps[0]"),
            ("[0,1],", "", "loss.jumps"),
            ("\"start\":[1,0]", "\"start\":[1]", "loss.start"),
            (
                "exponential_ns\":9e7",
                "geometric\":0.5",
                "loss.states[0].stay",
            ),
            (
                "exponential_ns\":9e7",
                "exponential_ns\":-1",
                "loss.states[0].stay",
            ),
            ("\"time\"", "\"packets\"", "loss.states[0].stay"),
        ] {
            let config = parse(&CHAIN.replace(wrong, right));
            let error = config.validate("loss").expect_err(right);
            assert_eq!(error.as_slice()[0].path.to_string(), key, "{error}");
        }
        let unsorted = parse(r#"{"kind":"timeline","spans":[{"start_ns":5},{"start_ns":4}]}"#);
        assert!(unsorted.validate("loss").is_err());
    }
}

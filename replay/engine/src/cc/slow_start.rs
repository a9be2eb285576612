//! Slow start and its exits without a loss: none, HyStart (Ha and Rhee 2011, as in Linux), HyStart++.
//!
//! Does not depend on congestion avoidance. Read RFC 5681 §3.1 and RFC 9406 §4 first.

use super::rtt_round::RttRound;
use super::{AckEvidence, WindowPacing};
use crate::sim::time::{MILLISECOND, Nanos};

/// Slow start of one connection.
#[derive(Clone, Debug)]
pub struct SlowStart {
    /// Maximum increase of cwnd per ACK, segments (RFC 5681 §3.1: one; RFC 3465: L).
    limit: f64,
    exit: Exit,
}

/// How slow start ends without a loss.
#[derive(Clone, Debug)]
enum Exit {
    Never,
    Hystart(Hystart),
    Hystartpp(Hystartpp),
}

/// RFC 9406 §4.3 and Linux: samples required in a round.
const ROUND_SAMPLES: u32 = 8;
/// RFC 9406 §4.3 and Linux: bounds of the delay increase that ends slow start.
const MIN_INCREASE: Nanos = 4 * MILLISECOND;
const MAX_INCREASE: Nanos = 16 * MILLISECOND;
/// Between the bounds it is an eighth of the minimum RTT.
const INCREASE_DIVISOR: u64 = 8;
/// Linux: HyStart does not apply below this cwnd, in segments.
const HYSTART_LOW_WINDOW: f64 = 16.0;
/// Linux: ACKs that arrive closer together belong to one train.
const HYSTART_ACK_DELTA: Nanos = 2 * MILLISECOND;
/// Linux (`hystart_ack_delay`): the delay of the largest bursts, two sent and two received at the pacing rate, on a
/// path that had small ones until then; and its maximum.
const BURSTS: f64 = 4.0;
const MAX_BURST_PKTS: f64 = 45.0;
const MAX_BURST_DELAY: Nanos = MILLISECOND;

/// The two rules of HyStart in Linux.
#[derive(Clone, Copy, Debug, Default)]
struct Hystart {
    round: RttRound,
    /// Minimum RTT of data; the handshake does not count, as its segments are short.
    delay_min: Option<Nanos>,
    round_start: Nanos,
    last_ack: Nanos,
    /// It has ended a slow start; it is off until a timeout.
    found: bool,
}

/// The delay of bursts at the pacing rate of slow start.
///
/// Deviation: Linux counts a burst as 64 KiB; here it is the same number of full Ethernet segments.
fn burst_delay(cwnd: f64, ack: &AckEvidence) -> Nanos {
    let Some(srtt) = ack.srtt else {
        return 0;
    };
    let rate = WindowPacing::LINUX.share(cwnd, f64::INFINITY) * cwnd / srtt as f64;
    MAX_BURST_DELAY.min((BURSTS * MAX_BURST_PKTS / rate) as Nanos)
}

impl Hystart {
    /// Whether slow start ends now.
    fn ends_slow_start(&mut self, rtt: Nanos, cwnd: f64, ack: &AckEvidence) -> bool {
        let ends_slow_start = !self.found && self.is_pipe_full(rtt, cwnd, ack);
        self.found |= ends_slow_start;
        ends_slow_start
    }

    fn is_pipe_full(&mut self, rtt: Nanos, cwnd: f64, ack: &AckEvidence) -> bool {
        if self.round.turns(ack) {
            self.round.clear();
            (self.round_start, self.last_ack) = (ack.now, ack.now);
        }
        let delay_min = self.delay_min.map_or(rtt, |min| min.min(rtt));
        self.delay_min = Some(delay_min);
        if cwnd < HYSTART_LOW_WINDOW {
            return false;
        }
        // ACK train: if closely spaced ACKs arrive for half of the minimum RTT, the pipe is full; for all of it if
        // pacing may have spread them.
        if ack.now - self.last_ack <= HYSTART_ACK_DELTA {
            self.last_ack = ack.now;
            let path = delay_min + burst_delay(cwnd, ack);
            let paced = ack.paced_until > 0;
            let enough = if paced { path } else { path / 2 };
            if ack.now - self.round_start > enough {
                return true;
            }
        }
        // Delay: with enough samples, the minimum of the round exceeds that of the connection clearly.
        let enough = self.round.samples() >= ROUND_SAMPLES;
        self.round.add_sample(ack);
        let increase = (delay_min / INCREASE_DIVISOR).clamp(MIN_INCREASE, MAX_INCREASE);
        let clear = |min| min > delay_min + increase;
        enough && self.round.min_rtt().is_some_and(clear)
    }
}

/// HyStart++ (RFC 9406 §4.2).
#[derive(Clone, Copy, Debug)]
struct Hystartpp {
    round: RttRound,
    last_round_min_rtt: Option<Nanos>,
    stage: Stage,
}

/// Slow start proper, or conservative slow start, which tests whether the delay increase was real.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Standard,
    Conservative { baseline: Nanos, rounds: u32 },
}

/// RFC 9406 §4.3: CSS_GROWTH_DIVISOR and CSS_ROUNDS.
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

impl Hystartpp {
    /// Divisor of the increase; none to leave slow start.
    fn divisor(&mut self, ack: &AckEvidence) -> Option<f64> {
        let last = self.round.min_rtt();
        if self.round.turns(ack) {
            self.round.clear();
            self.last_round_min_rtt = last;
            if let Stage::Conservative { rounds, .. } = &mut self.stage {
                *rounds += 1;
                if *rounds >= CSS_ROUNDS {
                    return None;
                }
            }
        }
        self.round.add_sample(ack);
        if self.round.samples() >= ROUND_SAMPLES {
            self.update_stage();
        }
        Some(if matches!(self.stage, Stage::Standard) {
            1.0
        } else {
            CSS_GROWTH_DIVISOR
        })
    }

    fn update_stage(&mut self) {
        let Some(current) = self.round.min_rtt() else {
            return;
        };
        self.stage = match (self.stage, self.last_round_min_rtt) {
            (Stage::Standard, Some(last)) => {
                let increase = (last / INCREASE_DIVISOR).clamp(MIN_INCREASE, MAX_INCREASE);
                if current < last + increase {
                    return;
                }
                Stage::Conservative {
                    baseline: current,
                    rounds: 0,
                }
            }
            (Stage::Conservative { baseline, .. }, _) if current < baseline => Stage::Standard,
            (stage, _) => stage,
        };
    }
}

impl SlowStart {
    /// Slow start that only ssthresh or a loss ends; `limit` in segments per ACK, none: no limit.
    pub fn standard(limit: Option<u32>) -> Self {
        Self {
            limit: limit.map_or(f64::INFINITY, f64::from),
            exit: Exit::Never,
        }
    }

    /// Slow start with HyStart as in Linux.
    pub fn hystart(limit: Option<u32>) -> Self {
        Self {
            exit: Exit::Hystart(Hystart::default()),
            ..Self::standard(limit)
        }
    }

    /// Slow start with HyStart++.
    pub fn hystartpp(limit: Option<u32>) -> Self {
        let exit = Hystartpp {
            round: RttRound::default(),
            last_round_min_rtt: None,
            stage: Stage::Standard,
        };
        Self {
            exit: Exit::Hystartpp(exit),
            ..Self::standard(limit)
        }
    }

    /// Whether it needs every ACK: `ends_by` is called.
    pub fn observes(&self) -> bool {
        matches!(self.exit, Exit::Hystart(_))
    }

    /// Whether an RTT sample ends slow start (HyStart).
    #[inline]
    pub fn ends_by(&mut self, cwnd: f64, ack: &AckEvidence) -> bool {
        match (&mut self.exit, ack.rtt) {
            (Exit::Hystart(hystart), Some(rtt)) => hystart.ends_slow_start(rtt, cwnd, ack),
            _ => false,
        }
    }

    /// A timeout resets HyStart with its minimum RTT, as in Linux.
    pub fn on_timeout(&mut self) {
        if let Exit::Hystart(hystart) = &mut self.exit {
            *hystart = Hystart::default();
        }
    }

    /// Increases `cwnd` up to `ssthresh`, which an exit may set. Returns the acknowledged segments that are left for
    /// congestion avoidance.
    #[inline]
    pub fn on_ack(&mut self, cwnd: &mut f64, ssthresh: &mut f64, ack: &AckEvidence) -> f64 {
        let acked = f64::from(ack.delivered);
        let mut divisor = 1.0;
        match &mut self.exit {
            Exit::Never | Exit::Hystart(_) => {}
            Exit::Hystartpp(hystartpp) => {
                let Some(given) = hystartpp.divisor(ack) else {
                    *ssthresh = *cwnd;
                    return 0.0;
                };
                divisor = given;
            }
        }
        if !ack.cwnd_limited {
            return 0.0;
        }
        let increase = acked.min(self.limit) / divisor;
        let grown = (*cwnd + increase).min(*ssthresh);
        let used = (grown - *cwnd) * divisor;
        *cwnd = grown;
        if *cwnd < *ssthresh {
            0.0
        } else {
            (acked - used).max(0.0)
        }
    }

    /// A loss ended slow start; HyStart++ applies to the first slow start only (RFC 9406 §4.2).
    pub fn end(&mut self) {
        if matches!(self.exit, Exit::Hystartpp(_)) {
            self.exit = Exit::Never;
        }
    }
}

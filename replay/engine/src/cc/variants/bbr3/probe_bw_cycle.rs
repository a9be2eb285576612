//! The cycle of `PROBE_BW`: drain, cruise, refill, probe up; when the next probe is due, and how fast it rises.
//!
//! Does not depend on rates. Read draft-ietf-ccwg-bbr §5.3.3 first.

use hindflight_kernels::StreamRng;

use super::params::Bbr3Params;
use crate::sim::time::{Nanos, SECOND};

/// Where in the cycle it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Sends less than the path delivers, to drain what the probe has queued.
    Down,
    /// Sends what the path delivers.
    Cruise,
    /// The same for a round without lower bounds, so that the pipe is full when the probe begins.
    Refill,
    /// Sends more, and lets more be in flight round by round.
    Up,
}

/// What ACKs say of the probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// Nothing.
    #[default]
    None,
    /// It is about to begin.
    Refilling,
    /// It has begun; what is acknowledged left before.
    Starting,
    /// What is acknowledged left in it.
    Coming,
    /// It is over; what is acknowledged left in it.
    Stopping,
}

/// Rounds that are counted at most, and doublings of a probe.
const MAX_ROUNDS: u32 = 255;
const MAX_DOUBLINGS: u32 = 30;

/// State of the cycle.
#[derive(Clone, Copy, Debug)]
pub struct ProbeBwCycle {
    /// When the phase under way (down, up) began.
    since: Nanos,
    /// Time from there to the next probe.
    wait: Nanos,
    /// Rounds since the last probe, and what was drawn as a start.
    pub rounds: u32,
    /// See [`Feedback`].
    pub feedback: Feedback,
    /// Losses seen now are those of a probe.
    pub samples_probe: bool,
    /// The last probe went too far.
    pub was_too_high: bool,
    /// The last probe stopped where the one before had gone too far.
    pub stopped_early: bool,
    doublings: u32,
    acks_per_step: u64,
    acks: u64,
}

impl Default for ProbeBwCycle {
    fn default() -> Self {
        Self {
            since: 0,
            wait: 0,
            rounds: 0,
            feedback: Feedback::None,
            samples_probe: false,
            was_too_high: false,
            stopped_early: false,
            doublings: 0,
            acks_per_step: u64::MAX,
            acks: 0,
        }
    }
}

impl ProbeBwCycle {
    /// A round trip has passed.
    pub fn note_round(&mut self) {
        self.rounds = (self.rounds + 1).min(MAX_ROUNDS);
    }

    /// A cycle begins: `rng` draws how long it is (draft §5.3.3.8).
    pub fn begin(&mut self, now: Nanos, params: &Bbr3Params, rng: &mut StreamRng) {
        self.rounds = below(rng, params.probe_rand_rounds.into()) as u32;
        let spread = (params.probe_rand_s * SECOND as f64) as u64;
        self.wait = (params.probe_base_s * SECOND as f64) as Nanos + below(rng, spread.max(1));
        self.since = now;
        self.feedback = Feedback::Stopping;
        self.acks_per_step = u64::MAX;
    }

    /// Whether the next probe is due: by the clock, or as soon as Reno, losing once a round per segment of `target` in
    /// flight, would have risen that far.
    pub fn is_due(&self, now: Nanos, params: &Bbr3Params, target: u64) -> bool {
        let rounds = target.min(params.probe_max_rounds.into());
        now > self.due_at() || u64::from(self.rounds) >= rounds
    }

    /// By the clock the next probe is due after this.
    pub fn due_at(&self) -> Nanos {
        self.since + self.wait
    }

    /// The pipe is filled for the next probe, whose first step is a share 2^-`doublings` of the window.
    pub fn refill(&mut self, doublings: u32) {
        self.doublings = doublings;
        self.acks = 0;
        self.stopped_early = false;
        self.feedback = Feedback::Refilling;
    }

    /// The probe begins.
    pub fn probe(&mut self, now: Nanos, cwnd: u64) {
        self.feedback = Feedback::Starting;
        self.since = now;
        self.steepen(cwnd);
    }

    /// Every round of a probe adds twice as many segments as the one before: 1, 2, 4 …
    pub fn steepen(&mut self, cwnd: u64) {
        self.acks_per_step = (cwnd >> self.doublings).max(1);
        self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
    }

    /// Segments by which the flight may rise for `delivered` more.
    pub fn rise(&mut self, delivered: u64) -> u64 {
        self.acks += delivered;
        let steps = self.acks / self.acks_per_step;
        self.acks -= steps * self.acks_per_step;
        steps
    }
}

/// A number below `max`, drawn.
fn below(rng: &mut StreamRng, max: u64) -> u64 {
    let drawn = u128::from(rng.next_u64() >> 32) * u128::from(max);
    (drawn >> 32) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use hindflight_kernels::{Purpose, StreamKey};

    fn rng() -> StreamRng {
        StreamRng::new(StreamKey {
            seed: 7,
            owner: 0,
            direction: 0,
            purpose: Purpose::Controller,
        })
    }

    #[test]
    fn a_cycle_lasts_two_to_three_seconds_and_starts_at_round_zero_or_one() {
        let (mut cycle, params, mut rng) = (ProbeBwCycle::default(), Bbr3Params::default(), rng());
        let (mut waits, mut firsts) = (Vec::new(), [0; 2]);
        for _ in 0..1000 {
            cycle.begin(SECOND, &params, &mut rng);
            waits.push(cycle.wait);
            firsts[cycle.rounds as usize] += 1;
        }
        let (min, max) = (waits.iter().min(), waits.iter().max());
        assert!(min.is_some_and(|w| (2 * SECOND..2 * SECOND + SECOND / 50).contains(w)));
        assert!(max.is_some_and(|w| (3 * SECOND - SECOND / 50..3 * SECOND).contains(w)));
        assert!(firsts.iter().all(|n| (430..570).contains(n)), "{firsts:?}");
    }

    #[test]
    fn a_probe_is_due_by_the_clock_or_by_rounds() {
        let (mut cycle, params) = (ProbeBwCycle::default(), Bbr3Params::default());
        cycle.begin(SECOND, &params, &mut rng());
        cycle.rounds = 0;
        let end = SECOND + cycle.wait;
        assert!(!cycle.is_due(end, &params, 100) && cycle.is_due(end + 1, &params, 100));
        for (rounds, target, due) in [
            (9, 10, false),
            (10, 10, true),
            (62, 900, false),
            (63, 900, true),
        ] {
            cycle.rounds = rounds;
            assert_eq!(
                cycle.is_due(SECOND, &params, target),
                due,
                "{rounds} of {target}"
            );
        }
    }

    #[test]
    fn a_probe_rises_by_one_two_four_segments_a_round() {
        let mut cycle = ProbeBwCycle::default();
        cycle.refill(0);
        cycle.probe(0, 64);
        let rises: Vec<u64> = (0..4)
            .map(|_| {
                let rise = (0..64).map(|_| cycle.rise(1)).sum();
                cycle.steepen(64);
                rise
            })
            .collect();
        assert_eq!(rises, [1, 2, 4, 8]);
        cycle.begin(0, &Bbr3Params::default(), &mut rng());
        assert_eq!(cycle.rise(1 << 40), 0, "no more once it is over");
    }
}

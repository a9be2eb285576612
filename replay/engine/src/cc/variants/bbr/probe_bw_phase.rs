//! The phase with which a cycle of BBR begins: drawn, or as a capture shows it.
//!
//! Does not depend on gains.

use hindflight_kernels::StreamRng;

/// Phases of a cycle: one probes, one drains, the others cruise.
pub const CYCLE_LENGTH: u8 = 8;
/// The phase that drains what the probing one before it has queued: no cycle begins with it.
pub const DRAINING_PHASE: u8 = 1;
/// All but that one.
const RANDOM_PHASES: u64 = 7;

/// Where the phases come from.
#[derive(Clone, Debug)]
pub struct FirstPhases {
    rng: StreamRng,
    /// Those that are given, a digit each, the next one last.
    given: u64,
}

impl FirstPhases {
    /// A digit of `given` for each cycle, the first one first; `rng` chooses it if `given` has none.
    pub fn new(given: f64, rng: StreamRng) -> Self {
        Self {
            rng,
            given: reversed(given as u64),
        }
    }

    /// The next cycle's.
    pub fn next(&mut self) -> u8 {
        let digit = (self.given % 10) as u8;
        self.given /= 10;
        if (1..=CYCLE_LENGTH).contains(&digit) {
            return digit % CYCLE_LENGTH;
        }
        // Linux draws how many of seven phases to go back from the last, then advances by one.
        let drawn = ((self.rng.next_u64() >> 32) * RANDOM_PHASES) >> 32;
        (CYCLE_LENGTH - drawn as u8) % CYCLE_LENGTH
    }
}

/// The digits of `number` from its last to its first.
fn reversed(mut number: u64) -> u64 {
    let mut out = 0;
    while number > 0 {
        out = 10 * out + number % 10;
        number /= 10;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use hindflight_kernels::{Purpose, StreamKey};

    fn phases(given: f64) -> FirstPhases {
        let key = StreamKey {
            seed: 7,
            owner: 0,
            direction: 0,
            purpose: Purpose::Controller,
        };
        FirstPhases::new(given, StreamRng::new(key))
    }

    #[test]
    fn first_phases_are_given_or_drawn_and_never_drain() {
        let mut given = phases(2_807.0);
        assert_eq!([given.next(), given.next()], [2, 0]);
        assert_ne!(given.next(), DRAINING_PHASE, "drawn");
        assert_eq!(given.next(), 7);
        let mut drawn = [0; CYCLE_LENGTH as usize];
        let mut without = phases(0.0);
        for _ in 0..7000 {
            drawn[usize::from(without.next())] += 1;
        }
        assert_eq!(drawn[usize::from(DRAINING_PHASE)], 0);
        for (phase, &times) in drawn.iter().enumerate().filter(|&(phase, _)| phase != 1) {
            assert!((850..1150).contains(&times), "phase {phase}: {times}");
        }
    }
}

//! How much more than its bandwidth says BBR has seen acknowledged at once: links and receivers that aggregate ACKs
//! would starve a window of exactly the path's product.
//!
//! Does not depend on the window. Facts: Linux 6.x, tcp_bbr.c, "ack aggregation".

use super::fixed::delivered_in;
use crate::sim::time::{MILLISECOND, Nanos};

/// Rounds that one of the two slots of the windowed maximum covers, as a rule.
pub const SLOT_ROUNDS: u32 = 5;
/// Excess that a window allows at most, in time at the model's bandwidth.
pub const MAX_EXTRA: Nanos = 100 * MILLISECOND;
/// An epoch that counted so many segments restarts.
const MAX_ACKED: u64 = 1 << 20;

/// State.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aggregation {
    epoch_start: Nanos,
    epoch_acked: u64,
    /// The most excess of this slot and of the one before.
    max: u64,
    max_before: u64,
    rounds: u32,
}

impl Aggregation {
    /// A new epoch from `now` on.
    pub fn restart_epoch(&mut self, now: Nanos) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    /// An ACK at `now` delivered `acked` segments where `bw` was expected; at most `cwnd` can be excess. `round` is there
    /// if a round begins with it: the rounds that a slot covers now. Returns whether the excess may be another one now.
    pub fn update(
        &mut self,
        now: Nanos,
        acked: u64,
        bw: u64,
        round: Option<u32>,
        cwnd: u64,
    ) -> bool {
        if let Some(slot_rounds) = round {
            self.rounds += 1;
            if self.rounds >= slot_rounds {
                self.rounds = 0;
                (self.max, self.max_before) = (0, self.max);
            }
        }
        let mut expected = delivered_in(bw, now.saturating_sub(self.epoch_start));
        if self.epoch_acked <= expected || self.epoch_acked + acked >= MAX_ACKED {
            self.restart_epoch(now);
            expected = 0;
        }
        self.epoch_acked += acked;
        let excess = (self.epoch_acked - expected).min(cwnd);
        let grows = excess > self.max;
        if grows {
            self.max = excess;
        }
        grows || round.is_some()
    }

    /// The most excess of the last five to ten rounds, in segments.
    pub fn extra_acked(&self) -> u64 {
        self.max.max(self.max_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::variants::bbr::fixed::bandwidth;
    use crate::sim::time::SECOND;

    #[test]
    fn a_burst_of_acks_counts_what_is_above_the_expected() {
        let bw = bandwidth(100, SECOND);
        let mut state = Aggregation::default();
        state.update(SECOND, 1, bw, None, 1000);
        assert_eq!(state.extra_acked(), 1);
        // 20 at once, 10 ms later: 21 acked in the epoch, 1 expected (rounded down to 0).
        state.update(SECOND + 10 * MILLISECOND, 20, bw, None, 1000);
        assert_eq!(state.extra_acked(), 21);
        state.update(SECOND + 20 * MILLISECOND, 20, bw, None, 1000);
        assert_eq!(state.extra_acked(), 40, "41 acked, 1 expected");
        state.update(SECOND + 30 * MILLISECOND, 90, bw, None, 50);
        assert_eq!(state.extra_acked(), 50, "no more than cwnd");
    }

    #[test]
    fn an_epoch_ends_when_acks_fall_behind() {
        let bw = bandwidth(100, SECOND);
        let mut state = Aggregation::default();
        state.update(SECOND, 10, bw, None, 1000);
        state.update(2 * SECOND, 3, bw, None, 1000);
        assert_eq!((state.epoch_start, state.epoch_acked), (2 * SECOND, 3));
        assert_eq!(state.extra_acked(), 10, "the maximum stays");
    }

    #[test]
    fn a_maximum_is_forgotten_after_its_slot_has_come_round() {
        let bw = bandwidth(100, SECOND);
        let mut state = Aggregation::default();
        state.update(SECOND, 10, bw, None, 1000);
        for round in 2..=10 {
            state.update(round * SECOND, 2, bw, Some(SLOT_ROUNDS), 1000);
            assert_eq!(state.extra_acked(), 10, "round {round}");
        }
        state.update(11 * SECOND, 2, bw, Some(SLOT_ROUNDS), 1000);
        assert_eq!(state.extra_acked(), 2);
    }
}

//! Losses read from a trace by position: the n-th data packet that reaches the loss stage, retransmissions included.
//!
//! Must not know where the trace came from. Read `docs/channels/trace.md` first. Resampling is the circular block
//! bootstrap (Politis and Romano, "A circular block-resampling procedure for stationary data", 1992).

use crate::rng::StreamRng;

/// How a trace is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceMode {
    /// As captured; past its end it starts again, and the packets there are counted.
    Replayed,
    /// Blocks of this many consecutive positions, each drawn with equal probability and wrapping at the end.
    Resampled {
        /// Positions per block.
        block_pkts: u64,
    },
}

/// What a trace says of packets by position.
#[derive(Clone, Debug, Default)]
pub struct TraceFates {
    /// Packets that the trace knows.
    pub known_pkts: u64,
    /// Those of them that are lost, ascending.
    pub lost: Vec<u64>,
    /// Those that come late, ascending, with what is added to their delay, ns.
    pub late: Vec<(u64, u64)>,
}

/// A loss trace in play.
#[derive(Clone, Debug)]
pub struct LossTrace {
    positions: Vec<u64>,
    late: Vec<(u64, u64)>,
    known_pkts: u64,
    mode: TraceMode,
    /// Packets seen so far.
    seen: u64,
    /// Position, counted from the first packet of the run, of the next loss; `u64::MAX` for none.
    next_lost: u64,
    /// Where the block (or the round through the trace) that is being played begins in the run, …
    origin: u64,
    /// … which position of the trace it starts with, …
    start: u64,
    /// … and how many of its losses have been played.
    played: usize,
    rng: StreamRng,
    /// The same block for what comes late: losses are looked for ahead, delays packet by packet.
    late_origin: u64,
    late_start: u64,
    late_rng: StreamRng,
}

impl LossTrace {
    /// A trace of these fates, each position below `known_pkts`.
    pub fn new(fates: TraceFates, mode: TraceMode, rng: StreamRng) -> Self {
        let mut trace = Self {
            positions: fates.lost,
            late: fates.late,
            known_pkts: fates.known_pkts,
            mode,
            seen: 0,
            next_lost: 0,
            origin: 0,
            start: 0,
            played: 0,
            late_origin: 0,
            late_start: 0,
            late_rng: rng.clone(),
            rng,
        };
        trace.draw_block();
        trace.late_start = trace.start;
        trace.late_rng.clone_from(&trace.rng);
        trace.next_lost = trace.following_loss();
        trace
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn lost(&mut self) -> bool {
        let position = self.seen;
        self.seen += 1;
        if position < self.next_lost {
            return false;
        }
        self.next_lost = self.following_loss();
        true
    }

    /// What is added to the delay of the next packet; none if it is lost.
    #[inline]
    pub fn pass(&mut self) -> Option<u64> {
        let position = self.seen;
        if self.lost() {
            return None;
        }
        Some(if self.late.is_empty() {
            0
        } else {
            self.added_ns(position)
        })
    }

    /// Whether a packet comes late.
    pub fn repairs(&self) -> bool {
        !self.late.is_empty()
    }

    /// What is added to the delay of packet `position` of the run, which the block that is being played holds or the
    /// one before it.
    fn added_ns(&mut self, position: u64) -> u64 {
        while position >= self.late_origin + self.block_pkts() {
            self.late_origin += self.block_pkts();
            self.late_start = match self.mode {
                TraceMode::Replayed => 0,
                TraceMode::Resampled { .. } => self.late_rng.below(self.known_pkts),
            };
        }
        let place = (self.late_start + position - self.late_origin) % self.known_pkts;
        let found = self.late.binary_search_by_key(&place, |(at, _)| *at);
        found.map_or(0, |index| self.late[index].1)
    }

    /// Packets that lay beyond the end of the trace, when it is replayed as captured.
    pub fn beyond_pkts(&self) -> u64 {
        match self.mode {
            TraceMode::Replayed => self.seen.saturating_sub(self.known_pkts),
            TraceMode::Resampled { .. } => 0,
        }
    }

    fn block_pkts(&self) -> u64 {
        match self.mode {
            TraceMode::Replayed => self.known_pkts,
            TraceMode::Resampled { block_pkts } => block_pkts.clamp(1, self.known_pkts),
        }
    }

    fn draw_block(&mut self) {
        self.played = 0;
        self.start = match self.mode {
            TraceMode::Replayed => 0,
            TraceMode::Resampled { .. } => self.rng.below(self.known_pkts),
        };
    }

    fn following_loss(&mut self) -> u64 {
        if self.positions.is_empty() || self.known_pkts == 0 {
            return u64::MAX;
        }
        loop {
            if let Some(offset) = self.loss_in_block() {
                self.played += 1;
                return self.origin + offset;
            }
            self.origin += self.block_pkts();
            self.draw_block();
        }
    }

    /// Offset, from the start of the block, of its next loss.
    fn loss_in_block(&self) -> Option<u64> {
        let first = self
            .positions
            .partition_point(|&position| position < self.start);
        let n = self.positions.len();
        if self.played >= n {
            return None;
        }
        let index = first + self.played;
        let position = if index < n {
            self.positions[index]
        } else {
            self.positions[index - n] + self.known_pkts
        };
        let offset = position - self.start;
        (offset < self.block_pkts()).then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::test_rng;

    fn trace(positions: &[u64], known: u64, mode: TraceMode, seed: u64) -> LossTrace {
        let fates = TraceFates {
            lost: positions.to_vec(),
            known_pkts: known,
            late: Vec::new(),
        };
        LossTrace::new(fates, mode, test_rng(seed))
    }

    fn lost_positions(trace: &mut LossTrace, n: u64) -> Vec<u64> {
        (0..n).filter(|_| trace.lost()).collect()
    }

    #[test]
    fn replays_as_captured_then_wraps_and_counts_the_excess() {
        let mut t = trace(&[0, 3, 4, 9], 10, TraceMode::Replayed, 1);
        assert_eq!(lost_positions(&mut t, 10), [0, 3, 4, 9]);
        assert_eq!(t.beyond_pkts(), 0);
        assert_eq!(lost_positions(&mut t, 15), [0, 3, 4, 9, 10, 13, 14]);
        assert_eq!(t.beyond_pkts(), 15);
    }

    #[test]
    fn a_trace_without_losses_loses_nothing() {
        for mode in [TraceMode::Replayed, TraceMode::Resampled { block_pkts: 3 }] {
            assert!(lost_positions(&mut trace(&[], 10, mode, 1), 100).is_empty());
        }
    }

    #[test]
    fn what_comes_late_goes_by_position_with_the_losses() {
        let late: Vec<_> = (0..100)
            .filter(|i| i % 7 == 3)
            .map(|i| (i, i + 1))
            .collect();
        for mode in [TraceMode::Replayed, TraceMode::Resampled { block_pkts: 9 }] {
            let fates = TraceFates {
                known_pkts: 100,
                lost: (0..100).filter(|i| i % 7 == 2).collect(),
                late: late.clone(),
            };
            let mut trace = LossTrace::new(fates, mode, test_rng(2));
            let passed: Vec<_> = (0..5_000).map(|_| trace.pass()).collect();
            // Behind a loss comes the late packet, but for the last of a block and of the trace.
            let behind: Vec<_> = passed.windows(2).filter(|w| w[0].is_none()).collect();
            let kept = behind.iter().filter(|w| w[1] > Some(0)).count();
            assert!(behind.len() > 600, "{}", behind.len());
            assert!(kept as f64 > 0.85 * behind.len() as f64, "{kept}");
            if mode == TraceMode::Replayed {
                assert_eq!(passed[3], Some(4));
                assert_eq!(passed[103], Some(4));
                assert_eq!(kept, behind.len());
            }
        }
    }

    #[test]
    fn resampling_keeps_the_loss_rate_and_differs_by_seed() {
        let positions: Vec<u64> = (0..50)
            .map(|i| i * 37 % 1000)
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        let mode = TraceMode::Resampled { block_pkts: 20 };
        let first = lost_positions(&mut trace(&positions, 1000, mode, 1), 400_000);
        let rate = first.len() as f64 / 4e5;
        assert!(
            (rate - positions.len() as f64 / 1000.0).abs() < 0.003,
            "{rate}"
        );
        assert_eq!(
            first,
            lost_positions(&mut trace(&positions, 1000, mode, 1), 400_000)
        );
        assert_ne!(
            first,
            lost_positions(&mut trace(&positions, 1000, mode, 2), 400_000)
        );
    }

    #[test]
    fn blocks_keep_bursts_whole_also_across_the_end_of_the_trace() {
        // One burst of four that straddles the end; blocks as long as the trace, so each holds the whole burst.
        let mut t = trace(
            &[0, 1, 98, 99],
            100,
            TraceMode::Resampled { block_pkts: 100 },
            3,
        );
        let lost = lost_positions(&mut t, 10_000);
        assert_eq!(lost.len(), 400, "every block of 100 carries all four");
        let neighbours = lost.windows(2).filter(|w| w[1] == w[0] + 1).count();
        assert!(neighbours >= 200, "{neighbours}");
    }
}

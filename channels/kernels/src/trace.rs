//! Losses of a trace by position: the n-th data packet that reaches the loss stage, counting retransmissions
//! (`docs/channels/trace.md`).
//!
//! Resampling is the circular block bootstrap (Politis and Romano, "A circular block-resampling procedure for
//! stationary data", 1992).

use crate::rng::StreamRng;

/// How a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceMode {
    /// As captured. Past its end the trace starts again, and the packets there are counted.
    Replayed,
    /// In random blocks of consecutive positions. Each start is equally likely, and blocks wrap at the end of the
    /// trace.
    Resampled {
        /// Positions per block.
        block_pkts: u64,
    },
}

/// The loss sequence of a trace: losses and delays by packet position.
#[derive(Clone, Debug, Default)]
pub struct LossSequence {
    /// Packets in the trace.
    pub known_pkts: u64,
    /// Positions of the lost packets, ascending.
    pub lost: Vec<u64>,
    /// Positions of the packets that are delayed, ascending, with the added delay in ns.
    pub late: Vec<(u64, u64)>,
}

/// The replay of a loss trace.
#[derive(Clone, Debug)]
pub struct LossTrace {
    positions: Vec<u64>,
    late: Vec<(u64, u64)>,
    known_pkts: u64,
    mode: TraceMode,
    /// Packets so far.
    packets: u64,
    /// Position of the next loss, counted from the first packet of the run; `u64::MAX` if there is none.
    next_lost: u64,
    /// Position in the run at which the present block (or the present pass through the trace) begins.
    origin: u64,
    /// Position in the trace at which the block starts.
    start: u64,
    /// Losses of the block so far.
    played: usize,
    rng: StreamRng,
    // The present block for delays: the next loss is found ahead of time, a delay when its packet arrives.
    late_origin: u64,
    late_start: u64,
    late_rng: StreamRng,
}

impl LossTrace {
    /// Starts the replay; all positions are below `known_pkts`.
    pub fn new(trace: LossSequence, mode: TraceMode, rng: StreamRng) -> Self {
        let mut replay = Self {
            positions: trace.lost,
            late: trace.late,
            known_pkts: trace.known_pkts,
            mode,
            packets: 0,
            next_lost: 0,
            origin: 0,
            start: 0,
            played: 0,
            late_origin: 0,
            late_start: 0,
            late_rng: rng.clone(),
            rng,
        };
        replay.start_block();
        replay.late_start = replay.start;
        replay.late_rng.clone_from(&replay.rng);
        replay.next_lost = replay.find_next_loss();
        replay
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn lost(&mut self) -> bool {
        let position = self.packets;
        self.packets += 1;
        if position < self.next_lost {
            return false;
        }
        self.next_lost = self.find_next_loss();
        true
    }

    /// The delay added to the next packet; none if it is lost.
    #[inline]
    pub fn pass(&mut self) -> Option<u64> {
        let position = self.packets;
        if self.lost() {
            return None;
        }
        Some(if self.late.is_empty() {
            0
        } else {
            self.added_ns(position)
        })
    }

    /// Whether any packet is delayed.
    pub fn adds_delay(&self) -> bool {
        !self.late.is_empty()
    }

    /// The delay added to packet `position` of the run, which is in the present block or the one before.
    fn added_ns(&mut self, position: u64) -> u64 {
        while position >= self.late_origin + self.block_pkts() {
            self.late_origin += self.block_pkts();
            self.late_start = match self.mode {
                TraceMode::Replayed => 0,
                TraceMode::Resampled { .. } => self.late_rng.below(self.known_pkts),
            };
        }
        let position = (self.late_start + position - self.late_origin) % self.known_pkts;
        let found = self.late.binary_search_by_key(&position, |(at, _)| *at);
        found.map_or(0, |index| self.late[index].1)
    }

    /// Packets past the end of a trace that is replayed as captured.
    pub fn beyond_pkts(&self) -> u64 {
        match self.mode {
            TraceMode::Replayed => self.packets.saturating_sub(self.known_pkts),
            TraceMode::Resampled { .. } => 0,
        }
    }

    fn block_pkts(&self) -> u64 {
        match self.mode {
            TraceMode::Replayed => self.known_pkts,
            TraceMode::Resampled { block_pkts } => block_pkts.clamp(1, self.known_pkts),
        }
    }

    fn start_block(&mut self) {
        self.played = 0;
        self.start = match self.mode {
            TraceMode::Replayed => 0,
            TraceMode::Resampled { .. } => self.rng.below(self.known_pkts),
        };
    }

    fn find_next_loss(&mut self) -> u64 {
        if self.positions.is_empty() || self.known_pkts == 0 {
            return u64::MAX;
        }
        loop {
            if let Some(offset) = self.loss_in_block() {
                self.played += 1;
                return self.origin + offset;
            }
            self.origin += self.block_pkts();
            self.start_block();
        }
    }

    /// The offset of the next loss from the start of the block.
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
        let trace = LossSequence {
            lost: positions.to_vec(),
            known_pkts: known,
            late: Vec::new(),
        };
        LossTrace::new(trace, mode, test_rng(seed))
    }

    fn lost_positions(trace: &mut LossTrace, n: u64) -> Vec<u64> {
        (0..n).filter(|_| trace.lost()).collect()
    }

    #[test]
    fn past_its_end_a_trace_starts_again_and_the_packets_are_counted() {
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
    fn delays_follow_the_positions_like_losses() {
        let late: Vec<_> = (0..100)
            .filter(|i| i % 7 == 3)
            .map(|i| (i, i + 1))
            .collect();
        for mode in [TraceMode::Replayed, TraceMode::Resampled { block_pkts: 9 }] {
            let losses = LossSequence {
                known_pkts: 100,
                lost: (0..100).filter(|i| i % 7 == 2).collect(),
                late: late.clone(),
            };
            let mut trace = LossTrace::new(losses, mode, test_rng(2));
            let passed: Vec<_> = (0..5_000).map(|_| trace.pass()).collect();
            // A delayed packet follows each loss, except at the end of a block and of the trace.
            let after: Vec<_> = passed.windows(2).filter(|w| w[0].is_none()).collect();
            let kept = after.iter().filter(|w| w[1] > Some(0)).count();
            assert!(after.len() > 600, "{}", after.len());
            assert!(kept as f64 > 0.85 * after.len() as f64, "{kept}");
            if mode == TraceMode::Replayed {
                assert_eq!(passed[3], Some(4));
                assert_eq!(passed[103], Some(4));
                assert_eq!(kept, after.len());
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
    fn blocks_keep_bursts_together_across_the_end_of_the_trace() {
        // A burst of four across the end of the trace. A block is as long as the trace, so each has the whole burst.
        let mut t = trace(
            &[0, 1, 98, 99],
            100,
            TraceMode::Resampled { block_pkts: 100 },
            3,
        );
        let lost = lost_positions(&mut t, 10_000);
        assert_eq!(lost.len(), 400, "every block of 100 has all four");
        let neighbours = lost.windows(2).filter(|w| w[1] == w[0] + 1).count();
        assert!(neighbours >= 200, "{neighbours}");
    }
}

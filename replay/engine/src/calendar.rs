//! The earliest of a fixed set of sources, ties by the source's number: that number is the rank of stages.
//!
//! Must not know what a source is. Up to `LINEAR` sources are scanned; above that a winner tree answers in
//! O(log n) per change.

use crate::time::{NEVER, Nanos};

const LINEAR: usize = 16;

/// Next time of each source.
pub struct Calendar {
    times: Vec<Nanos>,
    /// Winner tree over `times`, leaves at `width..`; empty when scanning.
    winners: Vec<u32>,
    width: usize,
}

impl Calendar {
    /// A calendar of `sources`, all at [`NEVER`].
    pub fn new(sources: usize) -> Self {
        let width = sources.next_power_of_two();
        if sources <= LINEAR {
            return Self {
                times: vec![NEVER; sources],
                winners: Vec::new(),
                width,
            };
        }
        let mut winners = vec![0; 2 * width];
        for leaf in 0..width {
            winners[width + leaf] = leaf as u32;
        }
        for node in (1..width).rev() {
            winners[node] = winners[2 * node];
        }
        Self {
            times: vec![NEVER; width],
            winners,
            width,
        }
    }

    /// Sets the time of `source`.
    #[inline]
    pub fn set(&mut self, source: usize, time: Nanos) {
        self.times[source] = time;
        if !self.winners.is_empty() {
            self.replay_matches(source);
        }
    }

    /// Source and time of the earliest.
    #[inline]
    pub fn earliest(&self) -> (usize, Nanos) {
        if !self.winners.is_empty() {
            let source = self.winners[1] as usize;
            return (source, self.times[source]);
        }
        let mut best = (0, NEVER);
        for (source, &time) in self.times.iter().enumerate() {
            if time < best.1 {
                best = (source, time);
            }
        }
        best
    }

    fn replay_matches(&mut self, source: usize) {
        let mut node = (self.width + source) >> 1;
        while node >= 1 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            // The left one has the lower number: it wins ties.
            let right_wins = self.times[right as usize] < self.times[left as usize];
            self.winners[node] = if right_wins { right } else { left };
            node >>= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scan_and_tree_agree_and_break_ties_by_rank() {
        for sources in [3, LINEAR, LINEAR + 1, 40] {
            let mut calendar = Calendar::new(sources);
            assert_eq!(calendar.earliest().1, NEVER);
            let mut times = vec![NEVER; sources];
            let mut x: u64 = 12345;
            for _ in 0..2000 {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let source = (x >> 33) as usize % sources;
                times[source] = (x >> 50) % 20;
                calendar.set(source, times[source]);
                let least = *times.iter().min().unwrap_or(&NEVER);
                let first = times.iter().position(|&t| t == least).unwrap_or(0);
                assert_eq!(calendar.earliest(), (first, least));
            }
        }
    }
}

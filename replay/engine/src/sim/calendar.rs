//! The calendar: the earliest of a fixed set of event sources. At equal times the source with the lower number comes first.
//!
//! Does not depend on what a source is. Time and number share one word, so that the smallest word is the earliest source; it
//! is cached. The words form a tree of groups of eight: with up to eight sources a change takes one store, and seven
//! comparisons if it concerns the earliest one.

use super::time::{NEVER, Nanos};

/// Most sources; the rest of a word holds 52 days of nanoseconds.
pub const MAX_SOURCES: usize = 1 << SOURCE_BITS;
const SOURCE_BITS: u32 = 12;
/// The latest time that it can represent: what comes later, or never, is at this time.
pub const LATEST: Nanos = NEVER >> SOURCE_BITS;
const GROUP: usize = 8;

/// Next time of each source.
pub struct Calendar {
    /// The group at the top.
    top: [u64; GROUP],
    /// Levels below it, the highest first; the last one holds the sources.
    groups: Vec<[u64; GROUP]>,
    /// First group of the level of the sources, and of each level above it, upwards.
    levels: Vec<usize>,
    /// The smallest of all.
    earliest: u64,
}

/// Written out, since a loop becomes vector code, for which the baseline processor has no comparison.
#[inline]
fn min(group: &[u64; GROUP]) -> u64 {
    let low = group[0].min(group[1]).min(group[2].min(group[3]));
    let high = group[4].min(group[5]).min(group[6].min(group[7]));
    low.min(high)
}

impl Calendar {
    /// A calendar of `sources` (at most [`MAX_SOURCES`]), none of which has a time.
    pub fn new(sources: usize) -> Self {
        debug_assert!(sources <= MAX_SOURCES);
        let mut sizes = Vec::new();
        let mut below = sources.div_ceil(GROUP);
        while below > 1 {
            sizes.push(below);
            below = below.div_ceil(GROUP);
        }
        let mut levels = Vec::with_capacity(sizes.len());
        let mut above = sizes.iter().sum::<usize>();
        for size in &sizes {
            above -= size;
            levels.push(above);
        }
        Self {
            top: [u64::MAX; GROUP],
            groups: vec![[u64::MAX; GROUP]; sizes.iter().sum()],
            levels,
            earliest: u64::MAX,
        }
    }

    /// Sets the time of `source`.
    #[inline]
    pub fn set(&mut self, source: usize, time: Nanos) {
        let word = time.min(LATEST) << SOURCE_BITS | source as u64;
        if self.levels.is_empty() {
            self.top[source % GROUP] = word;
        } else {
            self.set_below(source, word);
        }
        if word < self.earliest {
            self.earliest = word;
        } else if self.earliest as usize & (MAX_SOURCES - 1) == source {
            self.earliest = min(&self.top);
        }
    }

    fn set_below(&mut self, source: usize, mut word: u64) {
        let mut place = source;
        for &first in &self.levels {
            let group = &mut self.groups[first + place / GROUP];
            group[place % GROUP] = word;
            word = min(group);
            place /= GROUP;
        }
        self.top[place % GROUP] = word;
    }

    /// Source and time of the earliest; [`LATEST`] if none has a time.
    #[inline]
    pub fn earliest(&self) -> (usize, Nanos) {
        let word = self.earliest;
        (word as usize & (MAX_SOURCES - 1), word >> SOURCE_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_time_comes_first_and_ties_go_by_rank() {
        for sources in [1, 3, 8, 9, 64, 65, 600] {
            let mut calendar = Calendar::new(sources);
            assert_eq!(calendar.earliest().1, LATEST);
            let mut times = vec![LATEST; sources];
            let mut x: u64 = 12345;
            for _ in 0..5000 {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let source = (x >> 33) as usize % sources;
                times[source] = (x >> 50) % 20;
                calendar.set(source, times[source]);
                let min = *times.iter().min().unwrap_or(&LATEST);
                let first = times.iter().position(|&t| t == min).unwrap_or(0);
                assert_eq!(calendar.earliest(), (first, min));
            }
        }
    }

    #[test]
    fn a_source_without_a_time_never_comes_first() {
        let mut calendar = Calendar::new(2);
        calendar.set(0, NEVER);
        calendar.set(1, 7);
        assert_eq!(calendar.earliest(), (1, 7));
    }
}

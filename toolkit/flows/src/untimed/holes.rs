//! Which octets have arrived, and what each segment adds to them.

/// Maximum number of holes; more are not told apart.
const MAX_HOLES: usize = 1 << 12;

/// Octets that have not arrived below some that have.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Hole {
    start: i64,
    end: i64,
    /// When the first octet above it arrived.
    t_ns: i64,
}

/// What a segment is to the octets that arrived before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The highest so far; `skipped` octets before it have not arrived.
    New {
        /// Octets between the highest one before it and this segment.
        skipped: i64,
    },
    /// It begins the oldest hole, which showed at `since_ns`.
    Oldest {
        /// When the hole showed.
        since_ns: i64,
    },
    /// It fills another part of a hole, which showed at `since_ns`.
    Other {
        /// When the hole showed.
        since_ns: i64,
    },
    /// All its octets had arrived.
    Repeated,
}

/// The octets that have arrived.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Holes {
    ranges: Vec<Hole>,
    /// One past the highest octet.
    pub highest: i64,
    /// Number of octets.
    pub delivered: i64,
}

impl Holes {
    /// Nothing has arrived; the first octet is `first`.
    pub fn new(first: i64) -> Self {
        Self {
            highest: first,
            ..Self::default()
        }
    }

    /// RCV.NXT.
    pub fn rcv_nxt(&self) -> i64 {
        self.ranges.first().map_or(self.highest, |hole| hole.start)
    }

    /// Octets in holes.
    pub fn missing(&self) -> i64 {
        self.ranges.iter().map(|hole| hole.end - hole.start).sum()
    }

    /// Whether there is no hole.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether there are more holes than are kept.
    pub fn is_full(&self) -> bool {
        self.ranges.len() >= MAX_HOLES
    }

    /// The segment `start..end` arrives.
    pub fn insert(&mut self, (start, end): (i64, i64), t_ns: i64) -> Arrival {
        if start >= self.highest {
            let skipped = start - self.highest;
            if skipped > 0 && !self.is_full() {
                let (start, end) = (self.highest, start);
                self.ranges.push(Hole { start, end, t_ns });
            }
            self.highest = end;
            self.delivered += end - start;
            return Arrival::New { skipped };
        }
        let index = self.ranges.partition_point(|hole| hole.end <= start);
        let Some(&hole) = self.ranges.get(index).filter(|hole| hole.start <= start) else {
            return Arrival::Repeated;
        };
        let filled_end = end.min(hole.end);
        self.delivered += filled_end - start;
        let left = (hole.start < start).then_some(Hole { end: start, ..hole });
        let right = (filled_end < hole.end).then_some(Hole {
            start: filled_end,
            ..hole
        });
        let rest = left.into_iter().chain(right);
        self.ranges.splice(index..=index, rest);
        let since_ns = hole.t_ns;
        if index == 0 && start == hole.start {
            Arrival::Oldest { since_ns }
        } else {
            Arrival::Other { since_ns }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_fill_the_holes_that_others_left() {
        let mut holes = Holes::default();
        let mut insert = |start, end, t_ns| holes.insert((start, end), t_ns);
        assert_eq!(insert(0, 10, 1), Arrival::New { skipped: 0 });
        assert_eq!(insert(30, 40, 2), Arrival::New { skipped: 20 });
        assert_eq!(insert(50, 60, 3), Arrival::New { skipped: 10 });
        assert_eq!(insert(40, 50, 4), Arrival::Other { since_ns: 3 });
        assert_eq!(insert(20, 30, 5), Arrival::Other { since_ns: 2 });
        assert_eq!(insert(20, 30, 6), Arrival::Repeated);
        assert_eq!(insert(10, 20, 7), Arrival::Oldest { since_ns: 2 });
        assert_eq!(
            (holes.rcv_nxt(), holes.delivered, holes.missing()),
            (60, 60, 0)
        );
    }
}

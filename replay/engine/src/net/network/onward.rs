//! Which link direction follows on which.
//!
//! Does not depend on packets. On a chain every link direction has one that follows; where ways part, the way decides.

use crate::net::link::LinkDirection;

/// What the ways of a run have behind or before a link direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Neighbour {
    /// No way leads on, or comes from, there.
    #[default]
    None,
    /// All that do have this link direction.
    Only(u32),
    /// They differ; or ways begin there.
    Several,
}

impl Neighbour {
    fn note(&mut self, number: usize) {
        let number = number as u32;
        *self = match *self {
            Self::None => Self::Only(number),
            Self::Only(known) if known == number => *self,
            Self::Only(_) | Self::Several => Self::Several,
        };
    }
}

/// Which link direction follows on which.
pub struct Onward {
    next: Vec<Neighbour>,
    before: Vec<Neighbour>,
    /// Link directions of the ways there and back of each leg, for where ways part; otherwise empty.
    ways: Vec<Vec<usize>>,
}

impl Onward {
    /// Of `links` link directions, over which legs go and come back on `ways`.
    pub fn of(links: usize, ways: &[Vec<usize>]) -> Self {
        let mut onward = Self {
            next: vec![Neighbour::None; links],
            before: vec![Neighbour::None; links],
            ways: Vec::new(),
        };
        let both = ways.iter().flat_map(|way| {
            let back = way.iter().rev().map(|number| number ^ 1).collect();
            [way.clone(), back]
        });
        let both: Vec<Vec<usize>> = both.collect();
        for way in &both {
            if let Some(&first) = way.first() {
                onward.before[first] = Neighbour::Several;
            }
            for pair in way.windows(2) {
                onward.next[pair[0]].note(pair[1]);
                onward.before[pair[1]].note(pair[0]);
            }
        }
        if onward.next.contains(&Neighbour::Several) {
            onward.ways = both;
        }
        onward
    }

    /// The link direction behind `number`, where it is not the last one, on way `way`.
    #[inline]
    pub fn next(&self, number: usize, way: usize) -> usize {
        match self.next[number] {
            Neighbour::Only(next) => next as usize,
            Neighbour::None | Neighbour::Several => self.next_of_way(number, way),
        }
    }

    fn next_of_way(&self, number: usize, way: usize) -> usize {
        let own = self.ways[way].iter();
        let next = own.skip_while(|&&each| each != number).nth(1);
        // A packet is asked for its next link direction only before the last one of its way.
        next.copied().unwrap_or(number)
    }

    /// The link direction behind `number`, if what leaves the one is all that the other takes, in the same order.
    pub fn ahead(&self, number: usize, links: &[LinkDirection]) -> Option<u32> {
        let Neighbour::Only(next) = self.next[number] else {
            return None;
        };
        let alone = self.before[next as usize] == Neighbour::Only(number as u32);
        // A queue that is asked for packets must get them at their own time.
        let scheduled = links[number].is_scheduled() || links[next as usize].is_scheduled();
        (alone && !scheduled && links[number].keeps_order()).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_ways_part_the_way_decides() {
        // 0, 2, 4 and 0, 2, 6; the second leg comes back over 7, 3, 1.
        let onward = Onward::of(8, &[vec![0, 2, 4], vec![0, 2, 6]]);
        assert_eq!((onward.next(0, 0), onward.next(0, 2)), (2, 2));
        assert_eq!((onward.next(2, 0), onward.next(2, 2)), (4, 6));
        assert_eq!(
            (onward.next(5, 1), onward.next(7, 3), onward.next(3, 3)),
            (3, 3, 1)
        );
        assert_eq!(onward.before[3], Neighbour::Several);
        assert_eq!(onward.before[2], Neighbour::Only(0));
    }

    #[test]
    fn ways_that_begin_at_a_link_join_there() {
        let onward = Onward::of(4, &[vec![0, 2], vec![2]]);
        assert_eq!(onward.next[0], Neighbour::Only(2));
        assert_eq!(onward.before[2], Neighbour::Several);
        assert_eq!(onward.before[1], Neighbour::Only(3));
    }
}

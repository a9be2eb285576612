//! A connection that a proxy passes on unsplit: its segments change the leg, and nothing else.
//!
//! Does not depend on TCP.

use std::collections::VecDeque;

use crate::tcp::segment::{Direction, Segment};

/// Segments on their way through.
#[derive(Debug)]
pub struct Forwarding {
    /// Leg of the data sender, and leg of the data receiver.
    legs: [u16; 2],
    segments: VecDeque<Segment>,
}

impl Forwarding {
    /// From the first of `legs` to the second, and back.
    pub fn new(legs: [u16; 2]) -> Self {
        Self {
            legs,
            segments: VecDeque::new(),
        }
    }

    /// Passes a segment on.
    pub fn push(&mut self, segment: &Segment) {
        let leg = match segment.direction {
            Direction::Forward => self.legs[1],
            Direction::Reverse => self.legs[0],
        };
        self.segments.push_back(Segment { leg, ..*segment });
    }

    /// Writes the next segment into a slot, if there is one.
    pub fn pop(&mut self, slot: &mut Segment) -> bool {
        let next = self.segments.pop_front();
        if let Some(segment) = next {
            *slot = segment;
        }
        next.is_some()
    }
}

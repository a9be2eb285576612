//! Losses by the clock at any time from a moving base on: for a link layer that tries a packet again while later ones
//! are tried for the first time.
//!
//! Must not know packets' order. The states are those of [`ChainLoss`] in time or of a [`Timeline`]; each packet draws
//! its own fate in the state of its time.

use std::collections::VecDeque;

use crate::chain::{StateLoss, Walk};
use crate::rng::StreamRng;
use crate::timeline::Span;

/// Where the states come from.
#[derive(Clone, Debug)]
enum States {
    /// A chain in time.
    Walk(Walk),
    /// What is left of a timeline.
    Spans(VecDeque<Span>),
}

/// States by the clock that can be looked up ahead of time.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    states: States,
    /// States that may still be asked for, with their ends, in order of time.
    known: VecDeque<(u64, StateLoss)>,
    rng: StreamRng,
}

impl Ahead {
    /// From a walk in time whose first state ends at `end_ns`.
    pub fn of_walk(walk: Walk, first: StateLoss, end_ns: u64, rng: StreamRng) -> Self {
        Self {
            states: States::Walk(walk),
            known: VecDeque::from([(end_ns, first)]),
            rng,
        }
    }

    /// From spans by ascending start; before the first nothing is lost.
    pub fn of_spans(spans: VecDeque<Span>, rng: StreamRng) -> Self {
        let first = spans.front().map_or(u64::MAX, |span| span.start_ns);
        Self {
            states: States::Spans(spans),
            known: VecDeque::from([(first, StateLoss::Packets(0.0))]),
            rng,
        }
    }

    /// Tells of later spans, as [`Timeline::extend`](crate::Timeline); says whether it goes by spans.
    pub fn extend(&mut self, more: Vec<Span>) -> bool {
        let States::Spans(spans) = &mut self.states else {
            return false;
        };
        spans.extend(more);
        true
    }

    /// Forgets what lies before `base_ns`: nothing will be asked there any more.
    pub fn forget(&mut self, base_ns: u64) {
        while self.known.len() > 1 && self.known.front().is_some_and(|(end, _)| *end <= base_ns) {
            self.known.pop_front();
        }
    }

    /// Whether a packet of `size_bytes` that is on the channel at `at_ns` is lost.
    pub fn lost(&mut self, size_bytes: u32, at_ns: u64) -> bool {
        while self.known.back().is_none_or(|(end, _)| *end <= at_ns) {
            let start = self.known.back().map_or(0, |(end, _)| *end);
            self.known.push_back(self.states.following(start));
        }
        let place = self.known.partition_point(|(end, _)| *end <= at_ns);
        let chance = self.known[place].1.of_packet(size_bytes);
        chance > 0.0 && self.rng.unit() <= chance
    }
}

impl States {
    /// The state from `start_ns` on, with its end.
    fn following(&mut self, start_ns: u64) -> (u64, StateLoss) {
        match self {
            Self::Walk(walk) => {
                let (state, stay) = walk.step();
                (start_ns.saturating_add(stay.max(1)), walk.loss(state))
            }
            Self::Spans(spans) => {
                let loss = spans
                    .pop_front()
                    .map_or(StateLoss::Packets(0.0), |span| span.loss);
                let end = spans.front().map_or(u64::MAX, |next| next.start_ns);
                (end, loss)
            }
        }
    }
}

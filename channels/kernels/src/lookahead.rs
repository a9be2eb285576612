//! Time-driven losses that can be queried in any order from a moving base time on. A link layer needs this when it
//! retransmits one packet while it sends later ones for the first time.
//!
//! The states are those of a [`ChainLoss`](crate::ChainLoss) in time or of a [`Timeline`](crate::Timeline). Each
//! query is decided independently by the loss probability at its time.

use std::collections::VecDeque;

use crate::chain::{StateLoss, Walk};
use crate::rng::StreamRng;
use crate::timeline::Span;

/// The source of the states.
#[derive(Clone, Debug)]
enum States {
    /// A chain in time.
    Chain(Walk),
    /// The rest of a timeline.
    Spans(VecDeque<Span>),
}

/// A sequence of states in time that can be queried ahead of the base time.
#[derive(Clone, Debug)]
pub(crate) struct Lookahead {
    states: States,
    /// The generated states that can still be queried, each with its end, in order of time.
    known: VecDeque<(u64, StateLoss)>,
    rng: StreamRng,
}

impl Lookahead {
    /// Starts in the state `first` of a chain, which ends at `end_ns`.
    pub fn from_chain(sequence: Walk, first: StateLoss, end_ns: u64, rng: StreamRng) -> Self {
        Self {
            states: States::Chain(sequence),
            known: VecDeque::from([(end_ns, first)]),
            rng,
        }
    }

    /// Starts with a timeline; the spans are sorted by start, and nothing is lost before the first one.
    pub fn from_spans(spans: VecDeque<Span>, rng: StreamRng) -> Self {
        let first = spans.front().map_or(u64::MAX, |span| span.start_ns);
        Self {
            states: States::Spans(spans),
            known: VecDeque::from([(first, StateLoss::Packets(0.0))]),
            rng,
        }
    }

    /// Appends later spans; returns whether the states come from spans.
    pub fn extend(&mut self, more: Vec<Span>) -> bool {
        let States::Spans(spans) = &mut self.states else {
            return false;
        };
        spans.extend(more);
        true
    }

    /// Moves the base to `base_ns`: no later query is for an earlier time.
    pub fn discard_before(&mut self, base_ns: u64) {
        while self.known.len() > 1 && self.known.front().is_some_and(|(end, _)| *end <= base_ns) {
            self.known.pop_front();
        }
    }

    /// Whether a packet of `size_bytes` that is on the channel at `at_ns` is lost.
    pub fn lost(&mut self, size_bytes: u32, at_ns: u64) -> bool {
        while self.known.back().is_none_or(|(end, _)| *end <= at_ns) {
            let start = self.known.back().map_or(0, |(end, _)| *end);
            self.known.push_back(self.states.next(start));
        }
        let index = self.known.partition_point(|(end, _)| *end <= at_ns);
        let probability = self.known[index].1.of_packet(size_bytes);
        probability > 0.0 && self.rng.unit() <= probability
    }
}

impl States {
    /// The state that begins at `start_ns`, with its end.
    fn next(&mut self, start_ns: u64) -> (u64, StateLoss) {
        match self {
            Self::Chain(sequence) => {
                let (state, stay) = sequence.step();
                (start_ns.saturating_add(stay.max(1)), sequence.loss(state))
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

//! Losses by the clock: what a model or a file says a link loses from when on.
//!
//! Must not know where the spans came from. Read `docs/channels/synth.md` first.

use std::collections::VecDeque;

use crate::ahead::Ahead;
use crate::chain::{Budget, StateLoss};
use crate::rng::StreamRng;

/// Losses that hold from a time on, until the next span begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Its first nanosecond.
    pub start_ns: u64,
    /// What is lost.
    pub loss: StateLoss,
}

/// A timeline in play. Before the first span nothing is lost; the last one holds for ever.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The spans to come.
    spans: VecDeque<Span>,
    next_ns: u64,
    budget: Budget,
    rng: StreamRng,
}

impl Timeline {
    /// `spans` by ascending start.
    pub fn new(spans: Vec<Span>, mut rng: StreamRng) -> Self {
        Self {
            next_ns: spans.first().map_or(u64::MAX, |span| span.start_ns),
            spans: spans.into(),
            budget: Budget::new(StateLoss::Packets(0.0), &mut rng),
            rng,
        }
    }

    /// Whether a packet of `size_bytes` that is on the channel at `now_ns` is lost; `now_ns` never falls.
    #[inline]
    pub fn lost(&mut self, size_bytes: u32, now_ns: u64) -> bool {
        if now_ns >= self.next_ns {
            self.go_to(now_ns);
        }
        self.budget.lost(size_bytes, &mut self.rng)
    }

    /// Tells of later spans. What went before must not have been asked for a time from the last span on that it knew.
    pub(crate) fn extend(&mut self, spans: Vec<Span>) {
        self.spans.extend(spans);
        self.find_next();
    }

    /// The same spans, to be looked up ahead of time.
    pub(crate) fn ahead(self) -> Ahead {
        Ahead::of_spans(self.spans, self.rng)
    }

    fn go_to(&mut self, now_ns: u64) {
        let due = |span: &Span| span.start_ns <= now_ns;
        while let Some(span) = self.spans.front().copied().filter(due) {
            self.spans.pop_front();
            self.budget = Budget::new(span.loss, &mut self.rng);
        }
        self.find_next();
    }

    fn find_next(&mut self) {
        let next = self.spans.front();
        self.next_ns = next.map_or(u64::MAX, |span| span.start_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::test_rng;

    #[test]
    fn each_span_loses_from_its_first_nanosecond_until_the_next() {
        let loss = |start_ns, probability| Span {
            start_ns,
            loss: StateLoss::Packets(probability),
        };
        let spans = vec![loss(10, 1.0), loss(20, 0.0), loss(20, 1.0), loss(30, 0.0)];
        let mut timeline = Timeline::new(spans.clone(), test_rng(1));
        let lost: Vec<_> = (0..40).filter(|&t| timeline.lost(1500, t)).collect();
        assert_eq!(lost, (10..30).collect::<Vec<_>>());
        let mut sparse = Timeline::new(spans, test_rng(1));
        assert!(
            !sparse.lost(40, 35),
            "spans without a packet are passed over"
        );
        let mut bits = Timeline::new(
            vec![Span {
                start_ns: 0,
                loss: StateLoss::Bits(1e-5),
            }],
            test_rng(1),
        );
        let share = (0..200_000).filter(|&t| bits.lost(1500, t)).count() as f64 / 2e5;
        assert!((share - 0.113_08).abs() < 0.002, "{share}");
    }
}

//! Time-driven losses: a list of spans, each with its start and its loss (`docs/channels/synth.md`).

use std::collections::VecDeque;

use crate::chain::{LossCountdown, StateLoss};
use crate::lookahead::Lookahead;
use crate::rng::StreamRng;

/// The losses from a time on, until the next span begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Its first nanosecond.
    pub start_ns: u64,
    /// The losses.
    pub loss: StateLoss,
}

/// The process. Nothing is lost before the first span; the last span does not end.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The spans that have not begun.
    spans: VecDeque<Span>,
    next_ns: u64,
    countdown: LossCountdown,
    rng: StreamRng,
}

impl Timeline {
    /// Starts the process; `spans` are sorted by start.
    pub fn new(spans: Vec<Span>, mut rng: StreamRng) -> Self {
        Self {
            next_ns: spans.first().map_or(u64::MAX, |span| span.start_ns),
            spans: spans.into(),
            countdown: LossCountdown::new(StateLoss::Packets(0.0), &mut rng),
            rng,
        }
    }

    /// Whether a packet of `size_bytes` that is on the channel at `now_ns` is lost; `now_ns` never decreases.
    #[inline]
    pub fn lost(&mut self, size_bytes: u32, now_ns: u64) -> bool {
        if now_ns >= self.next_ns {
            self.advance_to(now_ns);
        }
        self.countdown.lost(size_bytes, &mut self.rng)
    }

    /// Appends later spans. No packet may have been decided at or after the start of the last span so far.
    pub(crate) fn extend(&mut self, spans: Vec<Span>) {
        self.spans.extend(spans);
        self.update_next();
    }

    /// The same spans, for queries ahead of time.
    pub(crate) fn lookahead(self) -> Lookahead {
        Lookahead::from_spans(self.spans, self.rng)
    }

    fn advance_to(&mut self, now_ns: u64) {
        let due = |span: &Span| span.start_ns <= now_ns;
        while let Some(span) = self.spans.front().copied().filter(due) {
            self.spans.pop_front();
            self.countdown = LossCountdown::new(span.loss, &mut self.rng);
        }
        self.update_next();
    }

    fn update_next(&mut self) {
        let next = self.spans.front();
        self.next_ns = next.map_or(u64::MAX, |span| span.start_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::test_rng;

    #[test]
    fn a_span_holds_from_its_first_nanosecond_until_the_next() {
        let loss = |start_ns, probability| Span {
            start_ns,
            loss: StateLoss::Packets(probability),
        };
        let spans = vec![loss(10, 1.0), loss(20, 0.0), loss(20, 1.0), loss(30, 0.0)];
        let mut timeline = Timeline::new(spans.clone(), test_rng(1));
        let lost: Vec<_> = (0..40).filter(|&t| timeline.lost(1500, t)).collect();
        assert_eq!(lost, (10..30).collect::<Vec<_>>());
        let mut sparse = Timeline::new(spans, test_rng(1));
        assert!(!sparse.lost(40, 35), "spans without a packet are skipped");
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

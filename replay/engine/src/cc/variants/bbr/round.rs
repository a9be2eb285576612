//! Round trips as BBR counts them: by what had been delivered when a segment left.
//!
//! Does not depend on what a round is counted for. Read draft-ietf-ccwg-bbr §5.5.1 first.

use crate::cc::evidence::{AckEvidence, RateSample};

/// Round trips so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// How many.
    pub count: u64,
    /// The last ACK began one.
    pub starts: bool,
    /// It ends with the first segment that left after so many had been delivered.
    pub end: u64,
}

impl Round {
    /// Takes the sample of an ACK; returns whether a round begins with it.
    #[inline(always)]
    pub fn take(&mut self, sample: &RateSample, ack: &AckEvidence) -> bool {
        self.starts = sample.prior_delivered >= self.end;
        if self.starts {
            self.count += 1;
            self.restart(ack);
        }
        self.starts
    }

    /// The round under way ends no sooner than with what leaves from now on.
    #[inline(always)]
    pub fn restart(&mut self, ack: &AckEvidence) {
        self.end = ack.delivered_total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_the_first_segment_that_left_in_it() {
        let mut round = Round::default();
        let mut take = |prior_delivered, delivered_total| {
            let sample = RateSample {
                prior_delivered,
                ..RateSample::default()
            };
            let ack = AckEvidence {
                delivered_total,
                ..AckEvidence::default()
            };
            round.take(&sample, &ack)
        };
        assert!(take(0, 10), "the first");
        assert!(!take(9, 11));
        assert!(take(10, 20));
        assert!(!take(19, 21));
        assert_eq!(round.count, 2);
    }
}

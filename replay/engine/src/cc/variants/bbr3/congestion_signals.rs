//! What the path delivered, lost and marked in the last round trip, and in the cycle since the last probe.
//!
//! Does not depend on what follows from it. Read draft-ietf-ccwg-bbr §5.5.10.3 first. Its rounds are not those of the cycle:
//! one begins with a loss, so that a whole round of deliveries is seen before anything is reduced.

use crate::cc::evidence::{AckEvidence, LostSegment, RateSample};

/// The signals.
#[derive(Clone, Copy, Debug, Default)]
pub struct CongestionSignals {
    /// Maximum rate of the round.
    pub bw: u64,
    /// Most segments delivered while one was on its way.
    pub inflight: u64,
    /// Something was lost in the round, …
    pub loss_in_round: bool,
    /// … or marked.
    pub mark_in_round: bool,
    /// Something was lost in the cycle, …
    pub loss_in_cycle: bool,
    /// … or marked.
    pub mark_in_cycle: bool,
    /// ACKs of the round that showed a loss.
    pub losing_acks: u32,
    /// The last ACK began a round.
    pub round_starts: bool,
    round_end: u64,
}

impl CongestionSignals {
    /// The first round ends with what leaves after `delivered` segments and one have been.
    pub fn begin(&mut self, delivered: u64) {
        self.round_end = delivered + 1;
    }

    /// A probe is over, or about to be: what it caused says nothing of what comes now.
    pub fn reset(&mut self) {
        *self = Self {
            losing_acks: self.losing_acks,
            round_starts: self.round_starts,
            round_end: self.round_end,
            ..Self::default()
        };
    }

    /// A segment was marked lost.
    pub fn note_loss(&mut self, delivered_total: u64) {
        if !self.loss_in_round {
            self.round_end = delivered_total;
        }
        (self.loss_in_round, self.loss_in_cycle) = (true, true);
    }

    /// An ACK with a sample of rate `bw`, before anything else looks at it.
    pub fn take(&mut self, ack: &AckEvidence, bw: u64) {
        self.round_starts = false;
        let Some(sample) = ack.rate.as_ref().filter(|_| ack.delivered > 0) else {
            return;
        };
        self.bw = self.bw.max(bw);
        self.inflight = self.inflight.max(sample.delivered);
        if !self.is_within_round(sample) {
            self.round_end = ack.delivered_total;
            self.round_starts = true;
        }
    }

    /// Whether the newest segment of `sample` left before the round began.
    #[inline]
    fn is_within_round(&self, sample: &RateSample) -> bool {
        sample.prior_delivered < self.round_end
    }

    /// The same ACK, after all have looked: a new round begins with what it delivered.
    pub fn advance(&mut self, ack: &AckEvidence, bw: u64) {
        let Some(sample) = &ack.rate else {
            return;
        };
        if self.round_starts {
            (self.bw, self.inflight) = (bw, sample.delivered);
        }
        self.loss_in_cycle |= ack.lost_total > sample.prior_lost;
        self.mark_in_cycle |= sample.marked > 0;
    }
}

/// A loss that a tail loss probe recovered, as the scoreboard would have reported it.
pub fn lost_segment_of_probe(signals: &CongestionSignals, app_limited: bool) -> LostSegment {
    LostSegment {
        tx_in_flight: signals.inflight.min(u32::MAX.into()) as u32 + 1,
        lost: 1,
        app_limited,
        delivered_total: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::evidence::RateSample;

    fn ack(prior_delivered: u64, delivered_total: u64, delivered: u64) -> AckEvidence {
        AckEvidence {
            delivered: 1,
            delivered_total,
            rate: Some(RateSample {
                delivered,
                prior_delivered,
                ..RateSample::default()
            }),
            ..AckEvidence::default()
        }
    }

    fn step(signals: &mut CongestionSignals, ack: &AckEvidence, bw: u64) -> (bool, u64, u64) {
        signals.take(ack, bw);
        let seen = (signals.round_starts, signals.bw, signals.inflight);
        signals.advance(ack, bw);
        seen
    }

    #[test]
    fn the_greatest_of_a_round_is_kept_until_the_next_begins() {
        let mut signals = CongestionSignals::default();
        signals.begin(1);
        assert_eq!(step(&mut signals, &ack(1, 2, 10), 100), (false, 100, 10));
        assert_eq!(step(&mut signals, &ack(2, 9, 8), 80), (true, 100, 10));
        assert_eq!(step(&mut signals, &ack(8, 10, 7), 70), (false, 80, 8));
        assert_eq!(step(&mut signals, &ack(9, 11, 9), 90), (true, 90, 9));
    }

    #[test]
    fn the_first_loss_begins_a_round_and_later_ones_do_not() {
        let mut signals = CongestionSignals::default();
        signals.begin(1);
        step(&mut signals, &ack(2, 20, 10), 100);
        signals.note_loss(25);
        signals.note_loss(30);
        assert!(!step(&mut signals, &ack(24, 31, 10), 100).0);
        assert!(step(&mut signals, &ack(25, 32, 10), 100).0);
        assert!(signals.loss_in_round && signals.loss_in_cycle);
        signals.reset();
        assert!(!signals.loss_in_round && !signals.loss_in_cycle && signals.bw == 0);
    }
}

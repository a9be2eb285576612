//! Delay over a round trip, as in Vegas and its successors: the minimum RTT of the connection, and minimum, sum and
//! number of the samples of the round.
//!
//! Does not depend on what the delay is used for. Read Brakmo and Peterson 1995 §3 first.

use super::{AckEvidence, Round};
use crate::sim::time::{Nanos, keep_min, seconds};

/// RTT samples of a round trip, and the minimum RTT of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct RttRound {
    round: Round,
    base_rtt: Option<Nanos>,
    min: Option<Nanos>,
    sum: Nanos,
    samples: u32,
}

/// RTT of a round and of the connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// Minimum RTT of the connection, in seconds.
    pub base_s: f64,
    /// RTT of the round, in seconds.
    pub rtt_s: f64,
}

impl Delay {
    /// Segments of `cwnd` in queues, by the actual rate of the path: cwnd (rtt - base) / rtt.
    pub fn backlog(&self, cwnd: f64) -> f64 {
        cwnd * (self.rtt_s - self.base_s) / self.rtt_s
    }
}

impl RttRound {
    /// Adds the RTT sample of an ACK, if it has one.
    #[inline]
    pub fn add_sample(&mut self, ack: &AckEvidence) {
        if let Some(rtt) = ack.rtt {
            keep_min(&mut self.base_rtt, rtt);
            keep_min(&mut self.min, rtt);
            self.sum += rtt;
            self.samples += 1;
        }
    }

    /// Whether `ack` ends the round. The samples stay until [`clear`](Self::clear).
    #[inline]
    pub fn turns(&mut self, ack: &AckEvidence) -> bool {
        self.round.turns(ack)
    }

    /// Starts a round with `ack` and removes the samples.
    pub fn restart(&mut self, ack: &AckEvidence) {
        self.round.restart(ack);
        self.clear();
    }

    /// Removes the samples of the round.
    pub fn clear(&mut self) {
        (self.min, self.sum, self.samples) = (None, 0, 0);
    }

    /// Removes the minimum RTT of the connection as well: the path may have changed.
    pub fn reset_base(&mut self) {
        self.clear();
        self.base_rtt = None;
    }

    /// Number of samples of the round.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// Minimum RTT of the round; none without samples.
    pub fn min_rtt(&self) -> Option<Nanos> {
        self.min
    }

    /// Minimum RTT of the round and of the connection; none without samples.
    pub fn min_delay(&self) -> Option<Delay> {
        Some(Delay {
            base_s: seconds(self.base_rtt?),
            rtt_s: seconds(self.min?),
        })
    }

    /// Mean RTT of the round and minimum RTT of the connection; none without samples.
    pub fn mean_delay(&self) -> Option<Delay> {
        let mean = self.sum.checked_div(self.samples.into())?;
        Some(Delay {
            base_s: seconds(self.base_rtt?),
            rtt_s: seconds(mean),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    fn take(round: &mut RttRound, rtt_ms: u64) {
        round.add_sample(&AckEvidence {
            rtt: Some(rtt_ms * MILLISECOND),
            ..AckEvidence::default()
        });
    }

    #[test]
    fn the_base_rtt_survives_the_round_and_the_samples_do_not() {
        let mut round = RttRound::default();
        assert_eq!((round.min_delay(), round.mean_delay()), (None, None));
        take(&mut round, 100);
        round.clear();
        take(&mut round, 125);
        take(&mut round, 175);
        let delay = |rtt_s| Some(Delay { base_s: 0.1, rtt_s });
        assert_eq!(
            (round.min_delay(), round.mean_delay()),
            (delay(0.125), delay(0.15))
        );
        assert_eq!(round.samples(), 2);
        round.reset_base();
        take(&mut round, 150);
        assert_eq!(round.min_delay().map(|delay| delay.base_s), Some(0.15));
    }

    #[test]
    fn the_backlog_is_the_share_of_the_window_above_the_base_rtt() {
        let delay = Delay {
            base_s: 0.1,
            rtt_s: 0.125,
        };
        assert!((delay.backlog(50.0) - 10.0).abs() < 1e-9);
    }
}

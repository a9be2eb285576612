//! Congestion marks as version 3 reads them on paths whose queues mark early: an average of the share that is marked.
//!
//! Does not depend on the state machine. Facts: Linux's v3 branch, tcp_bbr.c, "ECN"; the draft leaves marks out.
//!
//! Deviation: an acknowledgement's echo counts for all that it delivers, as Linux takes it; with RFC 3168's receiver, which
//! echoes until the sender confirms it, the share is too great.

use super::params::Bbr3Params;
use crate::cc::evidence::AckEvidence;
use crate::cc::variants::bbr::fixed::{UNIT, gain};
use crate::sim::time::{MILLISECOND, Nanos};

/// State.
#[derive(Clone, Copy, Debug)]
pub struct EcnState {
    /// EcnState are answered on this connection.
    pub eligible: bool,
    /// Average share, in 256ths.
    alpha: u64,
    marked_total: u64,
    /// Delivered and marked at the last update.
    last: (u64, u64),
    startup_rounds: u32,
}

impl Default for EcnState {
    fn default() -> Self {
        Self {
            eligible: false,
            alpha: UNIT,
            marked_total: 0,
            last: (0, 0),
            startup_rounds: 0,
        }
    }
}

impl EcnState {
    /// Every ACK.
    #[inline]
    pub fn take(&mut self, ack: &AckEvidence) {
        if ack.ecn_echo {
            self.marked_total += u64::from(ack.delivered);
        }
    }

    /// A round trip has passed: averages its share of state. Returns whether STARTUP has seen too many.
    pub fn end_round(&mut self, ack: &AckEvidence, min_rtt: Nanos, params: &Bbr3Params) -> bool {
        let near = (params.ecn_max_rtt_ms * MILLISECOND as f64) as Nanos;
        self.eligible |= params.ecn && (near == 0 || min_rtt <= near);
        let delivered = ack.delivered_total - self.last.0;
        if !self.eligible || delivered == 0 {
            return false;
        }
        let share = (self.marked_total - self.last.1) * UNIT / delivered;
        let weight = gain(params.ecn_alpha_gain);
        let alpha = (UNIT - weight) * self.alpha / UNIT + weight * share / UNIT;
        self.alpha = alpha.min(UNIT);
        self.last = (ack.delivered_total, self.marked_total);
        self.startup_rounds = if share >= gain(params.ecn_threshold) {
            self.startup_rounds + 1
        } else {
            0
        };
        self.startup_rounds >= params.full_ecn_rounds
    }

    /// What a round with a mark takes off the flight, in 256ths.
    pub fn cut(&self, params: &Bbr3Params) -> u64 {
        self.alpha * gain(params.ecn_factor) / UNIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(shares: &[u32], params: &Bbr3Params, min_rtt: Nanos) -> (EcnState, Vec<bool>) {
        let mut state = EcnState::default();
        let mut total = 0;
        let ends = shares.iter().map(|&marked| {
            for n in 0..100 {
                total += 1;
                state.take(&AckEvidence {
                    delivered: 1,
                    ecn_echo: n < marked,
                    ..AckEvidence::default()
                });
            }
            let ack = AckEvidence {
                delivered_total: total,
                ..AckEvidence::default()
            };
            state.end_round(&ack, min_rtt, params)
        });
        let ends = ends.collect();
        (state, ends)
    }

    #[test]
    fn the_share_is_averaged_and_two_rounds_of_half_end_startup() {
        let params = Bbr3Params {
            ecn: true,
            ..Bbr3Params::default()
        };
        let (state, ends) = rounds(&[0], &params, MILLISECOND);
        assert_eq!((state.alpha, ends), (240, vec![false]), "15/16 of one");
        assert_eq!(state.cut(&params), 79, "85/256 of 240");
        let (state, ends) = rounds(&[50, 49, 50, 50], &params, MILLISECOND);
        assert_eq!(ends, [false, false, false, true]);
        // 256: 240 + 8 = 248, 232 + 7 = 239, 224 + 8 = 232, 217 + 8 = 225.
        assert_eq!(state.alpha, 225);
    }

    #[test]
    fn marks_count_if_asked_for_on_short_paths() {
        let asked = Bbr3Params {
            ecn: true,
            ..Bbr3Params::default()
        };
        let anywhere = Bbr3Params {
            ecn_max_rtt_ms: 0.0,
            ..asked
        };
        let far = 6 * MILLISECOND;
        assert!(!rounds(&[100; 4], &Bbr3Params::default(), 1).0.eligible);
        assert!(!rounds(&[100; 4], &asked, far).0.eligible);
        assert!(rounds(&[100; 4], &asked, 5 * MILLISECOND).0.eligible);
        assert!(rounds(&[100; 4], &anywhere, far).0.eligible);
    }
}

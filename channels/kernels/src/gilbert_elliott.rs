//! Two-state burst losses (Gilbert 1960, Elliott 1963) with the parameters and the order of steps of netem's
//! `loss gemodel`: the state steps before the packet's fate is drawn.
//!
//! Must not know what else a link does. Read `docs/channels/gilbert_elliott.md` first.

use crate::rng::StreamRng;

/// Parameters, each a probability per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliottParams {
    /// Good state to bad state.
    pub p: f64,
    /// Bad state to good state.
    pub r: f64,
    /// Delivery in the bad state (1 - h is lost).
    pub h: f64,
    /// Delivery in the good state (1 - k is lost).
    pub k: f64,
}

/// The process, starting in the good state.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    params: GilbertElliottParams,
    bad: bool,
    /// Packets that still see this state before it changes.
    stay: u64,
    /// Packets that still pass before the next loss, were the state to last.
    survivors: u64,
    rng: StreamRng,
}

impl GilbertElliott {
    /// Starts the process.
    pub fn new(params: GilbertElliottParams, mut rng: StreamRng) -> Self {
        // The chain steps before the first draw, so the run of "no change" may be empty.
        let stay = rng.run_length(params.p);
        let survivors = rng.run_length(1.0 - params.k);
        Self {
            params,
            bad: false,
            stay,
            survivors,
            rng,
        }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn lost(&mut self) -> bool {
        if self.stay == 0 {
            self.change_state();
        } else if self.stay != u64::MAX {
            self.stay -= 1;
        }
        if self.survivors > 0 {
            self.survivors -= u64::from(self.survivors != u64::MAX);
            return false;
        }
        self.survivors = self.rng.run_length(self.loss_probability());
        true
    }

    fn loss_probability(&self) -> f64 {
        1.0 - if self.bad {
            self.params.h
        } else {
            self.params.k
        }
    }

    fn change_state(&mut self) {
        self.bad = !self.bad;
        // This packet sees the new state; the run counts the steps after it that leave the state alone.
        self.stay = self.rng.run_length(if self.bad {
            self.params.r
        } else {
            self.params.p
        });
        self.survivors = self.rng.run_length(self.loss_probability());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, StreamKey};

    fn fates(params: GilbertElliottParams, n: usize) -> Vec<bool> {
        let key = StreamKey {
            seed: 11,
            owner: 0,
            direction: 0,
            purpose: Purpose::Loss,
        };
        let mut process = GilbertElliott::new(params, StreamRng::new(key));
        (0..n).map(|_| process.lost()).collect()
    }

    #[test]
    fn bursts_have_the_mean_length_and_the_share_of_the_chain() {
        // Gilbert's pure form: every packet of the bad state is lost, none of the good one.
        let params = GilbertElliottParams {
            p: 0.01,
            r: 0.25,
            h: 0.0,
            k: 1.0,
        };
        let fate = fates(params, 1_000_000);
        let lost = fate.iter().filter(|&&l| l).count() as f64;
        let bursts = fate.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        assert!(
            (lost / 1e6 - 0.01 / 0.26).abs() < 0.0015,
            "share {}",
            lost / 1e6
        );
        assert!((lost / bursts - 4.0).abs() < 0.1, "burst {}", lost / bursts);
    }

    #[test]
    fn both_states_lose_with_their_own_probability() {
        let params = GilbertElliottParams {
            p: 0.02,
            r: 0.02,
            h: 0.6,
            k: 0.98,
        };
        let rate = fates(params, 1_000_000).iter().filter(|&&l| l).count() as f64 / 1e6;
        assert!((rate - 0.21).abs() < 0.012, "{rate}");
    }

    #[test]
    fn a_chain_that_never_leaves_the_good_state_is_bernoulli() {
        let rate = fates(
            GilbertElliottParams {
                p: 0.0,
                r: 1.0,
                h: 0.0,
                k: 0.9,
            },
            200_000,
        );
        let rate = rate.iter().filter(|&&l| l).count() as f64 / 2e5;
        assert!((rate - 0.1).abs() < 0.004, "{rate}");
    }

    #[test]
    fn the_state_steps_before_the_first_draw() {
        assert_eq!(
            fates(
                GilbertElliottParams {
                    p: 1.0,
                    r: 1.0,
                    h: 0.0,
                    k: 1.0
                },
                4
            ),
            [true, false, true, false]
        );
    }
}

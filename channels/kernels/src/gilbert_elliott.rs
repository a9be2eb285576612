//! Two-state burst losses (Gilbert 1960, Elliott 1963) with the parameters and the order of steps of netem's
//! `loss gemodel`: the state steps before the packet's fate is drawn.
//!
//! Must not know what else a link does. Read `docs/channels/gilbert_elliott.md` first.

use crate::rng::{RunTable, StreamRng};

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
    /// How long the good and the bad state last, in steps.
    stays: Box<[RunTable; 2]>,
    /// Packets that pass between losses in the good and the bad state.
    passes: Box<[RunTable; 2]>,
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
        let stays = Box::new([params.p, params.r].map(RunTable::new));
        let passes = Box::new([params.k, params.h].map(|delivery| RunTable::new(1.0 - delivery)));
        // The chain steps before the first draw, so the run of "no change" may be empty.
        let stay = stays[0].draw(&mut rng);
        let survivors = passes[0].draw(&mut rng);
        Self {
            stays,
            passes,
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
        }
        self.stay -= u64::from(self.stay != u64::MAX);
        if self.survivors > 0 {
            self.survivors -= u64::from(self.survivors != u64::MAX);
            return false;
        }
        self.survivors = self.passes[usize::from(self.bad)].draw(&mut self.rng);
        true
    }

    /// Packets that pass before the next loss, `most_pkts` at most; that many steps and the lost one are behind it.
    /// The same fates as [`Self::lost`] gives one by one, but the time it takes does not grow with the packets.
    pub fn pass_until_loss(&mut self, most_pkts: u64) -> Option<u64> {
        let mut passed = 0;
        loop {
            let left = most_pkts - passed;
            if self.survivors < self.stay.min(left) {
                passed += self.survivors;
                self.spend(self.survivors + 1);
                self.survivors = self.passes[usize::from(self.bad)].draw(&mut self.rng);
                return Some(passed);
            }
            let run = self.stay.min(left);
            if run == left {
                self.survivors -= if self.survivors == u64::MAX { 0 } else { run };
                self.spend(run);
                return None;
            }
            passed += run;
            self.change_state();
        }
    }

    /// So many packets have seen the state.
    fn spend(&mut self, packets: u64) {
        self.stay -= if self.stay == u64::MAX { 0 } else { packets };
    }

    fn change_state(&mut self) {
        self.bad = !self.bad;
        let state = usize::from(self.bad);
        // This packet sees the new state, and so do those whose step leaves the state alone.
        self.stay = self.stays[state].draw(&mut self.rng).saturating_add(1);
        self.survivors = self.passes[state].draw(&mut self.rng);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::test_rng;

    fn fates(params: GilbertElliottParams, n: usize) -> Vec<bool> {
        let mut process = GilbertElliott::new(params, test_rng(11));
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

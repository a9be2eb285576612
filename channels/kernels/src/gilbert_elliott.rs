//! Two-state burst losses (Gilbert 1960, Elliott 1963; `docs/channels/gilbert_elliott.md`). Parameters and order of
//! steps are those of netem's `loss gemodel`: the state changes first, then the packet is decided.

use crate::rng::{RunTable, StreamRng};

/// Parameters, each a probability per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliottParams {
    /// Transition from the good to the bad state.
    pub p: f64,
    /// Transition from the bad to the good state.
    pub r: f64,
    /// Delivery in the bad state (loss 1 - h).
    pub h: f64,
    /// Delivery in the good state (loss 1 - k).
    pub k: f64,
}

/// The process. It starts in the good state.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    /// Sojourn times in the good and the bad state, in steps.
    sojourns: Box<[RunTable; 2]>,
    /// Packets between two losses in the good and the bad state.
    gaps: Box<[RunTable; 2]>,
    bad: bool,
    /// Packets left in the present state.
    stay: u64,
    /// Packets before the next loss if the state lasts until then.
    survivors: u64,
    rng: StreamRng,
}

impl GilbertElliott {
    /// Starts the process.
    pub fn new(params: GilbertElliottParams, mut rng: StreamRng) -> Self {
        let sojourns = Box::new([params.p, params.r].map(RunTable::new));
        let gaps = Box::new([params.k, params.h].map(|delivery| RunTable::new(1.0 - delivery)));
        // The chain steps before the first packet, so the sojourn in the good state may be empty.
        let stay = sojourns[0].sample(&mut rng);
        let survivors = gaps[0].sample(&mut rng);
        Self {
            sojourns,
            gaps,
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
        self.survivors = self.gaps[usize::from(self.bad)].sample(&mut self.rng);
        true
    }

    /// The number of packets that pass before the next loss; none if the first `max_pkts` pass.
    ///
    /// The packets, with the lost one, are counted as processed. The losses are those of [`Self::lost`], but the cost
    /// does not grow with the number of packets.
    pub fn pass_until_loss(&mut self, max_pkts: u64) -> Option<u64> {
        let mut passed = 0;
        loop {
            let left = max_pkts - passed;
            if self.survivors < self.stay.min(left) {
                passed += self.survivors;
                self.consume(self.survivors + 1);
                self.survivors = self.gaps[usize::from(self.bad)].sample(&mut self.rng);
                return Some(passed);
            }
            let run = self.stay.min(left);
            if run == left {
                self.survivors -= if self.survivors == u64::MAX { 0 } else { run };
                self.consume(run);
                return None;
            }
            passed += run;
            self.change_state();
        }
    }

    /// Counts packets in the present state.
    fn consume(&mut self, packets: u64) {
        self.stay -= if self.stay == u64::MAX { 0 } else { packets };
    }

    fn change_state(&mut self) {
        self.bad = !self.bad;
        let state = usize::from(self.bad);
        // The present packet is in the new state, and so are those whose step does not change it.
        self.stay = self.sojourns[state].sample(&mut self.rng).saturating_add(1);
        self.survivors = self.gaps[state].sample(&mut self.rng);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::test_rng;

    fn losses(params: GilbertElliottParams, n: usize) -> Vec<bool> {
        let mut process = GilbertElliott::new(params, test_rng(11));
        (0..n).map(|_| process.lost()).collect()
    }

    #[test]
    fn loss_rate_and_mean_burst_are_those_of_the_chain() {
        // Gilbert's simple form: every packet in the bad state is lost, none in the good state.
        let params = GilbertElliottParams {
            p: 0.01,
            r: 0.25,
            h: 0.0,
            k: 1.0,
        };
        let losses = losses(params, 1_000_000);
        let lost = losses.iter().filter(|&&l| l).count() as f64;
        let bursts = losses.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        assert!(
            (lost / 1e6 - 0.01 / 0.26).abs() < 0.0015,
            "share {}",
            lost / 1e6
        );
        assert!((lost / bursts - 4.0).abs() < 0.1, "burst {}", lost / bursts);
    }

    #[test]
    fn each_state_has_a_separate_loss_probability() {
        let params = GilbertElliottParams {
            p: 0.02,
            r: 0.02,
            h: 0.6,
            k: 0.98,
        };
        let rate = losses(params, 1_000_000).iter().filter(|&&l| l).count() as f64 / 1e6;
        assert!((rate - 0.21).abs() < 0.012, "{rate}");
    }

    #[test]
    fn a_chain_that_never_leaves_the_good_state_is_bernoulli() {
        let rate = losses(
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
    fn the_state_changes_before_the_first_packet_is_decided() {
        assert_eq!(
            losses(
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

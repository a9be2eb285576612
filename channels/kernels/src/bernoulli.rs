//! Independent losses of packets and independent bit errors (`docs/channels/bernoulli.md`, `docs/channels/ber.md`).
//!
//! Both generate run lengths: one random number per loss, not per packet.

use crate::rng::StreamRng;

/// Every packet is lost with the same probability, regardless of its size.
#[derive(Clone, Debug)]
pub struct Bernoulli {
    probability: f64,
    survivors: u64,
    rng: StreamRng,
}

impl Bernoulli {
    /// Starts the process; `probability` of losing a packet, 0 to 1.
    pub fn new(probability: f64, mut rng: StreamRng) -> Self {
        let survivors = rng.run_length(probability);
        Self {
            probability,
            survivors,
            rng,
        }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn lost(&mut self) -> bool {
        if self.survivors > 0 {
            self.survivors -= u64::from(self.survivors != u64::MAX);
            return false;
        }
        self.survivors = self.rng.run_length(self.probability);
        true
    }
}

/// Every bit is wrong with the same probability, and a packet with a wrong bit is lost: PER = 1 - (1 - BER)^(8 L).
#[derive(Clone, Debug)]
pub struct BitErrors {
    ber: f64,
    good_bits: u64,
    rng: StreamRng,
}

impl BitErrors {
    /// Starts the process; `ber` is the probability that a bit is wrong, 0 to 1.
    pub fn new(ber: f64, mut rng: StreamRng) -> Self {
        let good_bits = rng.run_length(ber);
        Self {
            ber,
            good_bits,
            rng,
        }
    }

    /// Whether the next packet, of `size_bytes`, is lost.
    #[inline]
    pub fn lost(&mut self, size_bytes: u32) -> bool {
        let bits = u64::from(size_bytes) * 8;
        if self.good_bits >= bits {
            self.good_bits -= if self.good_bits == u64::MAX { 0 } else { bits };
            return false;
        }
        // The geometric distribution has no memory, so a new run begins after the lost packet.
        self.good_bits = self.rng.run_length(self.ber);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::test_rng as rng;

    #[test]
    fn losses_have_the_given_rate_and_are_independent() {
        let mut process = Bernoulli::new(0.02, rng(5));
        let lost: Vec<bool> = (0..500_000).map(|_| process.lost()).collect();
        let rate = lost.iter().filter(|&&l| l).count() as f64 / 5e5;
        let pairs = lost.windows(2).filter(|w| w[0] && w[1]).count() as f64 / 5e5;
        assert!((rate - 0.02).abs() < 0.0008, "{rate}");
        assert!((pairs - 0.0004).abs() < 0.00012, "{pairs}");
    }

    #[test]
    fn the_limits_lose_nothing_and_everything() {
        let (mut never, mut always) = (Bernoulli::new(0.0, rng(1)), Bernoulli::new(1.0, rng(1)));
        assert!((0..1000).all(|_| !never.lost() && always.lost()));
        let (mut never, mut always) = (BitErrors::new(0.0, rng(1)), BitErrors::new(1.0, rng(1)));
        assert!((0..1000).all(|_| !never.lost(1500) && always.lost(40)));
    }

    #[test]
    fn bit_errors_depend_on_the_size_of_the_packet() {
        for (size, per) in [(1500_u32, 0.011_928_3), (40, 0.000_319_95)] {
            let mut process = BitErrors::new(1e-6, rng(9));
            let n = 2_000_000;
            let rate = f64::from((0..n).map(|_| u32::from(process.lost(size))).sum::<u32>())
                / f64::from(n);
            let tolerance = 4.0 * (per / f64::from(n)).sqrt();
            assert!(
                (rate - per).abs() < tolerance,
                "{size}: {rate} against {per}"
            );
        }
    }
}

//! Random streams. Each consumer has a separate stream, so a new consumer never changes the numbers of another.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM TOMS
//! 47(4), 2021). SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) fills its state from the key of the stream.

/// The consumer of a stream; part of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Losses of a model.
    Loss,
    /// Blocks of a resampled trace.
    Resample,
    /// Initial sequence numbers.
    SequenceNumber,
    /// States of a model over time.
    States,
    /// Buildings of a street.
    Street,
    /// Sizes and times of an application's writes.
    Application,
    /// Early drops and marks of a queue discipline.
    Queue,
    /// Random choices of a congestion controller.
    Controller,
    /// Fading of a signal.
    Fading,
    /// Jitter of a delay.
    Delay,
}

/// The key of a stream: equal keys give equal numbers on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKey {
    /// Seed of the run.
    pub seed: u64,
    /// Number of the link or flow that uses the stream.
    pub owner: u32,
    /// 0 forward, 1 reverse.
    pub direction: u8,
    /// What the numbers decide.
    pub purpose: Purpose,
}

impl StreamKey {
    /// The stream of an owner, forward.
    pub const fn new(seed: u64, owner: u32, purpose: Purpose) -> Self {
        Self {
            seed,
            owner,
            direction: 0,
            purpose,
        }
    }

    /// The stream of the same owner for another purpose.
    #[must_use]
    pub const fn with(self, purpose: Purpose) -> Self {
        Self { purpose, ..self }
    }
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct StreamRng {
    state: [u64; 4],
}

impl StreamRng {
    /// Opens the stream at `key`.
    pub fn new(key: StreamKey) -> Self {
        let mut mixer = SplitMix64 { state: key.seed };
        let place = u64::from(key.owner) << 16 | u64::from(key.direction) << 8 | key.purpose as u64;
        mixer.state = mixer.next() ^ place.wrapping_mul(0xD134_2543_DE82_EF95);
        Self {
            state: std::array::from_fn(|_| mixer.next()),
        }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A separate stream, seeded by the next number of this one.
    pub(crate) fn split(&mut self) -> Self {
        let mut mixer = SplitMix64 {
            state: self.next_u64(),
        };
        Self {
            state: std::array::from_fn(|_| mixer.next()),
        }
    }

    /// A uniform number in (0, 1]: never 0, so that its logarithm is finite.
    pub fn unit(&mut self) -> f64 {
        unit_of(self.next_u64())
    }

    /// A uniform integer in 0..`bound` (0 if `bound` is 0), with a bias of at most 2^-64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A geometric run length: the number of failures before the first success, where each trial succeeds with
    /// `probability`. `u64::MAX` means that no trial ever succeeds.
    pub fn run_length(&mut self, probability: f64) -> u64 {
        if probability <= 0.0 {
            return u64::MAX;
        }
        // floor(ln U / ln(1 - p)); for p = 1 the divisor is minus infinity and the run has length 0.
        (libm::log(self.unit()) / libm::log1p(-probability)) as u64
    }

    /// An exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.unit())
    }

    /// A standard normal number (Box and Muller, 1958; the second number of each pair is discarded).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

/// Maps 64 bits to (0, 1].
fn unit_of(bits: u64) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
    ((bits >> 11) + 1) as f64 * STEP
}

/// The distribution of [`StreamRng::run_length`] with its logarithm computed once: the same numbers, faster.
#[derive(Clone, Copy, Debug)]
pub struct RunLength {
    /// ln(1 - p): 0 for p = 0, minus infinity for p = 1.
    log_failure: f64,
}

impl RunLength {
    /// The distribution for trials that succeed with `probability`.
    pub fn new(probability: f64) -> Self {
        Self {
            log_failure: libm::log1p(-probability.clamp(0.0, 1.0)),
        }
    }

    /// A run length; `u64::MAX` means that no trial ever succeeds.
    #[inline]
    pub fn sample(self, rng: &mut StreamRng) -> u64 {
        if self.log_failure == 0.0 {
            return u64::MAX;
        }
        self.of(rng.unit())
    }

    fn of(self, unit: f64) -> u64 {
        (libm::log(unit) / self.log_failure) as u64
    }
}

/// Runs shorter than this are looked up in a table.
const TABLE_LENGTH: usize = 128;
/// The leading bits of a number that select its part of (0, 1].
const PART_BITS: u32 = 8;

/// [`RunLength`] with a table of the short runs: the same numbers, several times faster where runs are short. It takes
/// longer to build and occupies 1.3 kB.
#[derive(Clone, Debug)]
pub(crate) struct RunTable {
    distribution: RunLength,
    /// (1 - p)^(i + 1): a run is longer than i if the uniform number is not greater. The last entry is 0.
    powers: [f64; TABLE_LENGTH + 1],
    /// The shortest run in each part.
    shortest: [u8; 1 << PART_BITS],
}

impl RunTable {
    /// The distribution for trials that succeed with `probability`.
    pub(crate) fn new(probability: f64) -> Self {
        let failure = 1.0 - probability.clamp(0.0, 1.0);
        let (mut power, mut powers) = (1.0, [0.0; TABLE_LENGTH + 1]);
        for each in &mut powers[..TABLE_LENGTH] {
            power *= failure;
            *each = power;
        }
        let shortest = std::array::from_fn(|part| {
            let max = (part + 1) as f64 / f64::from(1 << PART_BITS);
            powers.partition_point(|power| *power >= max) as u8
        });
        Self {
            distribution: RunLength::new(probability),
            powers,
            shortest,
        }
    }

    /// A run length; `u64::MAX` means that no trial ever succeeds.
    #[inline]
    pub(crate) fn sample(&self, rng: &mut StreamRng) -> u64 {
        if self.distribution.log_failure == 0.0 {
            return u64::MAX;
        }
        let bits = rng.next_u64();
        let unit = unit_of(bits);
        let longer = |run: usize| unit <= self.powers[run];
        let mut run = usize::from(self.shortest[(bits >> (u64::BITS - PART_BITS)) as usize]);
        // Usually the answer is one of the next two, which no branch predictor can guess: add instead of branching.
        run += usize::from(longer(run));
        run += usize::from(longer(run));
        while longer(run) {
            run += 1;
        }
        if run < TABLE_LENGTH {
            run as u64
        } else {
            self.distribution.of(unit)
        }
    }
}

struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// A loss stream for tests.
#[cfg(test)]
pub(crate) fn test_rng(seed: u64) -> StreamRng {
    StreamRng::new(StreamKey {
        seed,
        owner: 0,
        direction: 0,
        purpose: Purpose::Loss,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u64, owner: u32, direction: u8, purpose: Purpose) -> StreamKey {
        StreamKey {
            seed,
            owner,
            direction,
            purpose,
        }
    }

    #[test]
    fn splitmix_matches_its_published_first_values() {
        // Reference values of the authors' C code for the state 1234567.
        let mut mixer = SplitMix64 { state: 1_234_567 };
        let got: Vec<u64> = (0..3).map(|_| mixer.next()).collect();
        assert_eq!(
            got,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn xoshiro_matches_the_reference_values_for_a_small_state() {
        let mut rng = StreamRng {
            state: [1, 2, 3, 4],
        };
        let got: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(
            got,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn equal_keys_give_equal_streams_and_every_part_of_the_key_counts() {
        let base = key(7, 1, 0, Purpose::Loss);
        let first = StreamRng::new(base).next_u64();
        assert_eq!(first, StreamRng::new(base).next_u64());
        for other in [
            key(8, 1, 0, Purpose::Loss),
            key(7, 2, 0, Purpose::Loss),
            key(7, 1, 1, Purpose::Loss),
            key(7, 1, 0, Purpose::Resample),
        ] {
            assert_ne!(first, StreamRng::new(other).next_u64(), "{other:?}");
        }
    }

    #[test]
    fn unit_is_uniform_and_never_zero() {
        let mut rng = StreamRng::new(key(1, 0, 0, Purpose::Loss));
        let numbers: Vec<f64> = (0..100_000).map(|_| rng.unit()).collect();
        let mean = numbers.iter().sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.004, "{mean}");
        assert!(numbers.iter().all(|&u| u > 0.0 && u <= 1.0));
    }

    #[test]
    fn run_length_has_the_geometric_mean_and_its_limits() {
        let mut rng = StreamRng::new(key(2, 0, 0, Purpose::Loss));
        assert_eq!(rng.run_length(0.0), u64::MAX);
        assert_eq!(rng.run_length(1.0), 0);
        let mean = (0..100_000)
            .map(|_| rng.run_length(0.01) as f64)
            .sum::<f64>()
            / 1e5;
        // (1 - p) / p = 99; standard error 0.31.
        assert!((mean - 99.0).abs() < 1.2, "{mean}");
    }

    #[test]
    fn a_run_length_with_a_stored_logarithm_is_the_same() {
        for probability in [0.0, 1e-9, 0.01, 0.5, 0.999, 1.0] {
            let (mut one, mut other) = (
                StreamRng::new(key(4, 0, 0, Purpose::Loss)),
                StreamRng::new(key(4, 0, 0, Purpose::Loss)),
            );
            let distribution = RunLength::new(probability);
            for _ in 0..1000 {
                assert_eq!(one.run_length(probability), distribution.sample(&mut other));
            }
            assert_eq!(one.next_u64(), other.next_u64(), "{probability}");
        }
    }

    #[test]
    fn a_run_length_from_the_table_is_the_same() {
        for probability in [
            0.0, 1e-9, 0.002, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.9, 0.999, 1.0,
        ] {
            let (mut one, mut other) = (
                StreamRng::new(key(4, 0, 0, Purpose::Loss)),
                StreamRng::new(key(4, 0, 0, Purpose::Loss)),
            );
            let (distribution, table) = (RunLength::new(probability), RunTable::new(probability));
            for _ in 0..100_000 {
                assert_eq!(
                    distribution.sample(&mut one),
                    table.sample(&mut other),
                    "{probability}"
                );
            }
            assert_eq!(one.next_u64(), other.next_u64(), "{probability}");
        }
    }

    #[test]
    fn normal_and_exponential_numbers_have_their_moments() {
        let mut rng = StreamRng::new(key(5, 0, 0, Purpose::States));
        let n = 200_000;
        let numbers: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let mean = numbers.iter().sum::<f64>() / f64::from(n);
        let square = numbers.iter().map(|z| z * z).sum::<f64>() / f64::from(n);
        let beyond = numbers.iter().filter(|z| **z > 1.959_964).count() as f64 / f64::from(n);
        assert!(mean.abs() < 0.009, "{mean}");
        assert!((square - 1.0).abs() < 0.013, "{square}");
        assert!((beyond - 0.025).abs() < 0.0014, "{beyond}");
        let mean = (0..n).map(|_| rng.exponential(3.0)).sum::<f64>() / f64::from(n);
        assert!((mean - 3.0).abs() < 0.027, "{mean}");
    }

    #[test]
    fn below_reaches_every_value_under_its_bound() {
        let mut rng = StreamRng::new(key(3, 0, 0, Purpose::Resample));
        let mut counts = [0_u32; 7];
        for _ in 0..7000 {
            counts[rng.below(7) as usize] += 1;
        }
        assert!(
            counts.iter().all(|&n| (850..1150).contains(&n)),
            "{counts:?}"
        );
    }
}

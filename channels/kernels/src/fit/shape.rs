//! Run lengths and autocorrelation of a loss sequence.
//!
//! Does not depend on models. Plots compare the fitted models with the sequence at the same lengths and lags.

use super::runs::Runs;

/// Points per factor of two on the logarithmic scales of lengths and lags.
const POINTS: f64 = 3.0;

/// The maximum lag of the autocorrelation.
const MAX_LAG: u64 = 1024;

/// Run lengths and autocorrelation of a sequence.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Lengths of runs of deliveries and of losses, ascending from 1 to the longest run.
    pub lengths: [Vec<u64>; 2],
    /// The share of runs longer than each length.
    pub longer: [Vec<f64>; 2],
    /// Lags, ascending from 1.
    pub lags: Vec<u64>,
    /// Autocorrelation of the losses at each lag; empty if all packets or none are lost.
    pub autocorrelation: Vec<f64>,
}

impl Shape {
    /// The shape of a sequence.
    pub fn of(runs: &Runs) -> Self {
        let mut shape = Self::default();
        for lost in 0..2 {
            let longest = runs.lengths[lost].last().copied().unwrap_or(0);
            let grid = grid(longest);
            let total: u64 = runs.counts[lost].iter().sum();
            let share = grid.iter().map(|length| {
                let first = runs.lengths[lost].partition_point(|known| known <= length);
                let longer: u64 = runs.counts[lost][first..].iter().sum();
                longer as f64 / total as f64
            });
            shape.longer[lost] = share.collect();
            shape.lengths[lost] = grid;
        }
        if runs.losses > 0 && runs.losses < runs.packets {
            shape.lags = grid(MAX_LAG.min(runs.packets / 4));
            shape.autocorrelation = autocorrelation(runs, &shape.lags);
        }
        shape
    }
}

/// 1, 2, 3, 4, 5, 6, 8, 10, … up to `max`.
fn grid(max: u64) -> Vec<u64> {
    let mut points: Vec<u64> = Vec::new();
    let mut step = 0.0;
    loop {
        let point = libm::round(libm::exp2(step / POINTS)) as u64;
        if point > max {
            break;
        }
        if points.last() != Some(&point) {
            points.push(point);
        }
        step += 1.0;
    }
    if max > 0 && points.last() != Some(&max) {
        points.push(max);
    }
    points
}

/// The autocorrelation about the mean of the whole sequence; the sum of products is divided by the number of pairs.
fn autocorrelation(runs: &Runs, lags: &[u64]) -> Vec<f64> {
    let words = bits(runs);
    let (n, rate) = (runs.packets, runs.loss_rate());
    let variance = rate * (1.0 - rate);
    let at = lags.iter().map(|&lag| {
        let (skip, shift) = ((lag / 64) as usize, (lag % 64) as u32);
        let both: u64 = words
            .iter()
            .zip(
                words[skip..]
                    .iter()
                    .zip(words[skip..].iter().skip(1).chain([&0])),
            )
            .map(|(here, (low, high))| {
                let later = if shift == 0 {
                    *low
                } else {
                    low >> shift | high << (64 - shift)
                };
                u64::from((here & later).count_ones())
            })
            .sum();
        (both as f64 / (n - lag) as f64 - rate * rate) / variance
    });
    at.collect()
}

/// The sequence with one bit per packet, 1 for lost.
fn bits(runs: &Runs) -> Vec<u64> {
    let mut words = vec![0_u64; runs.packets.div_ceil(64) as usize];
    let mut at = 0;
    for (lost, length) in runs.iter() {
        if lost {
            for bit in at..at + length {
                words[(bit / 64) as usize] |= 1 << (bit % 64);
            }
        }
        at += length;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_lags_agree_with_direct_sums() {
        let losses: Vec<u8> = (0..1000_u32)
            .map(|i| u8::from(i % 10 < 2 || i % 77 == 5))
            .collect();
        let runs = Runs::new(&losses);
        let shape = Shape::of(&runs);
        let mean = losses.iter().map(|&f| f64::from(f)).sum::<f64>() / 1000.0;
        for (&lag, got) in shape.lags.iter().zip(&shape.autocorrelation) {
            let lag = lag as usize;
            let pairs = losses.iter().zip(&losses[lag..]);
            let both = pairs.map(|(a, b)| f64::from(a * b)).sum::<f64>() / (1000 - lag) as f64;
            let expected = (both - mean * mean) / (mean * (1.0 - mean));
            assert!(
                (got - expected).abs() < 1e-12,
                "lag {lag}: {got} {expected}"
            );
        }
        assert!(shape.lags.contains(&64) && shape.lags.last() == Some(&250));
        for lost in 0..2 {
            for (length, share) in shape.lengths[lost].iter().zip(&shape.longer[lost]) {
                let mine = || runs.iter().filter(|(of, _)| usize::from(*of) == lost);
                let longer = mine().filter(|(_, n)| n > length).count();
                assert!((share - longer as f64 / mine().count() as f64).abs() < 1e-12);
            }
            assert!(shape.longer[lost].last().is_some_and(|share| *share == 0.0));
        }
    }

    #[test]
    fn without_losses_there_is_no_autocorrelation() {
        let shape = Shape::of(&Runs::new(&[0; 50]));
        assert!(shape.autocorrelation.is_empty() && shape.lengths[1].is_empty());
        assert_eq!(shape.lengths[0].last(), Some(&50));
    }
}

//! A loss sequence as alternating runs of deliveries and losses: the form in which likelihoods are computed.
//!
//! Does not depend on models. Ten million packets with a loss rate of 1 % are at most 200 000 runs.

use super::continuous_time::Spacings;

/// Alternating runs of deliveries and losses.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Whether the first run is a run of losses.
    pub first_lost: bool,
    /// For each run the index of its length in `lengths`.
    pub index: Vec<u32>,
    /// The distinct lengths, ascending, of runs of deliveries and of runs of losses.
    pub lengths: [Vec<u64>; 2],
    /// The number of runs of each length in `lengths`.
    pub counts: [Vec<u64>; 2],
    /// Number of packets.
    pub packets: u64,
    /// Number of lost packets.
    pub losses: u64,
    /// The spacings between packets, if their times are known.
    pub spacings: Option<Spacings>,
}

impl Runs {
    /// Counts the runs of a loss sequence: one octet per packet, 0 for delivered.
    pub fn new(lost: &[u8]) -> Self {
        let mut raw: Vec<u64> = Vec::new();
        let first_lost = lost.first().is_some_and(|&lost| lost != 0);
        let mut current = first_lost;
        let mut length = 0;
        for &lost in lost {
            if (lost != 0) == current {
                length += 1;
            } else {
                raw.push(length);
                current = !current;
                length = 1;
            }
        }
        if length > 0 {
            raw.push(length);
        }
        Self::from_lengths(&raw, first_lost)
    }

    /// Counts the runs of a loss sequence, and the spacings of the packets, sent at `t_ns`.
    pub fn in_time(lost: &[u8], t_ns: &[i64]) -> Self {
        Self {
            spacings: Spacings::new(lost, t_ns),
            ..Self::new(lost)
        }
    }

    fn from_lengths(raw: &[u64], first_lost: bool) -> Self {
        let mut runs = Self {
            first_lost,
            index: vec![0; raw.len()],
            packets: raw.iter().sum(),
            ..Self::default()
        };
        for lost in [false, true] {
            let mine = || raw.iter().enumerate().skip(usize::from(lost != first_lost));
            let mut distinct: Vec<u64> = mine().step_by(2).map(|(_, &n)| n).collect();
            distinct.sort_unstable();
            distinct.dedup();
            let mut counts = vec![0; distinct.len()];
            for (at, length) in mine().step_by(2) {
                let number = distinct.partition_point(|known| known < length);
                runs.index[at] = number as u32;
                counts[number] += 1;
                runs.losses += if lost { *length } else { 0 };
            }
            runs.lengths[usize::from(lost)] = distinct;
            runs.counts[usize::from(lost)] = counts;
        }
        runs
    }

    /// The first `count` runs.
    #[must_use]
    pub fn head(&self, count: usize) -> Self {
        let raw: Vec<u64> = self.iter().take(count).map(|(_, length)| length).collect();
        let mut head = Self::from_lengths(&raw, self.first_lost);
        let losses = self
            .iter()
            .flat_map(|(lost, length)| (0..length).map(move |_| lost));
        let spacings = self.spacings.as_ref();
        head.spacings = spacings.map(|spacings| spacings.head(losses, head.packets as usize));
        head
    }

    /// The runs in order: whether the packets are lost, and how many they are.
    pub fn iter(&self) -> impl Iterator<Item = (bool, u64)> + '_ {
        self.index.iter().enumerate().map(|(at, &number)| {
            let lost = self.first_lost ^ (at % 2 == 1);
            (lost, self.lengths[usize::from(lost)][number as usize])
        })
    }

    /// The number of runs.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no packet.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The share of lost packets.
    pub fn loss_rate(&self) -> f64 {
        self.losses as f64 / (self.packets as f64).max(1.0)
    }

    /// The mean length of the runs of losses; 0 without a loss.
    pub fn mean_burst(&self) -> f64 {
        let bursts: u64 = self.counts[1].iter().sum();
        self.losses as f64 / (bursts as f64).max(1.0)
    }

    /// The number of loss periods, and of packets in them. Losses with fewer than `max_gap` deliveries between them
    /// belong to the same period.
    pub fn loss_periods(&self, max_gap: u64) -> (u64, u64) {
        let (mut periods, mut packets, mut open) = (0, 0, false);
        for (lost, length) in self.iter() {
            if lost {
                periods += u64::from(!open);
                packets += length;
                open = true;
            } else if length < max_gap && open {
                packets += length;
            } else {
                open = false;
            }
        }
        (periods, packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_deliveries_and_losses_are_counted() {
        let runs = Runs::new(&[0, 0, 1, 1, 1, 0, 1, 0, 0]);
        let all: Vec<_> = runs.iter().collect();
        assert_eq!(
            all,
            [(false, 2), (true, 3), (false, 1), (true, 1), (false, 2)]
        );
        assert_eq!((runs.packets, runs.losses), (9, 4));
        assert_eq!(runs.lengths, [vec![1, 2], vec![1, 3]]);
        assert_eq!(runs.counts, [vec![1, 2], vec![1, 1]]);
        assert!((runs.mean_burst() - 2.0).abs() < 1e-12);
        assert_eq!(runs.head(2).packets, 5);
    }

    #[test]
    fn losses_close_to_each_other_are_one_period() {
        let runs = Runs::new(&[1, 0, 1, 0, 0, 0, 1, 1]);
        assert_eq!(runs.loss_periods(1), (3, 4));
        assert_eq!(runs.loss_periods(2), (2, 5));
        assert_eq!(runs.loss_periods(9), (1, 8));
    }

    #[test]
    fn an_empty_sequence_has_no_runs() {
        let runs = Runs::new(&[]);
        assert_eq!((runs.len(), runs.packets, runs.losses), (0, 0, 0));
    }
}

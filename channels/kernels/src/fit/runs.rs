//! A sequence of packets' fates as runs of equal fates: what likelihoods are summed over.
//!
//! Must not know models. A trace of ten million packets with one loss in a hundred is at most 200 000 runs.

use super::in_time::Times;

/// Alternating runs of delivered and lost packets.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Whether the first run is one of losses.
    pub first_lost: bool,
    /// Number of each run's length in `lengths` of its fate.
    pub index: Vec<u32>,
    /// Distinct lengths, ascending: of runs of delivered packets, of runs of lost ones.
    pub lengths: [Vec<u64>; 2],
    /// How often each length occurs, as `lengths`.
    pub counts: [Vec<u64>; 2],
    /// Packets in all.
    pub packets: u64,
    /// Packets lost.
    pub losses: u64,
    /// Times between packets, where they are known.
    pub times: Option<Times>,
}

impl Runs {
    /// Counts the runs of `fates`, one octet per packet, 0 for delivered.
    pub fn new(fates: &[u8]) -> Self {
        let mut raw: Vec<u64> = Vec::new();
        let first_lost = fates.first().is_some_and(|&fate| fate != 0);
        let mut current = first_lost;
        let mut length = 0;
        for &fate in fates {
            if (fate != 0) == current {
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

    /// Counts the runs of `fates` of packets that were sent at `t_ns`.
    pub fn in_time(fates: &[u8], t_ns: &[i64]) -> Self {
        Self {
            times: Times::new(fates, t_ns),
            ..Self::new(fates)
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
        let fates = self
            .iter()
            .flat_map(|(lost, length)| (0..length).map(move |_| lost));
        let times = self.times.as_ref();
        head.times = times.map(|times| times.head(fates, head.packets as usize));
        head
    }

    /// Every run in order: whether lost, and its length.
    pub fn iter(&self) -> impl Iterator<Item = (bool, u64)> + '_ {
        self.index.iter().enumerate().map(|(at, &number)| {
            let lost = self.first_lost ^ (at % 2 == 1);
            (lost, self.lengths[usize::from(lost)][number as usize])
        })
    }

    /// How many runs.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no packet.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Share of packets lost.
    pub fn loss_rate(&self) -> f64 {
        self.losses as f64 / (self.packets as f64).max(1.0)
    }

    /// Mean length of the runs of lost packets; 0 without a loss.
    pub fn mean_burst(&self) -> f64 {
        let bursts: u64 = self.counts[1].iter().sum();
        self.losses as f64 / (bursts as f64).max(1.0)
    }

    /// Share of bad periods, mean bad period and loss rate within them, if losses with fewer than `reach` delivered
    /// packets between them belong to one period: (periods, packets in them).
    pub fn periods(&self, reach: u64) -> (u64, u64) {
        let (mut periods, mut packets, mut open) = (0, 0, false);
        for (lost, length) in self.iter() {
            if lost {
                periods += u64::from(!open);
                packets += length;
                open = true;
            } else if length < reach && open {
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
    fn counts_runs_of_both_fates() {
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
    fn losses_near_each_other_are_one_period() {
        let runs = Runs::new(&[1, 0, 1, 0, 0, 0, 1, 1]);
        assert_eq!(runs.periods(1), (3, 4));
        assert_eq!(runs.periods(2), (2, 5));
        assert_eq!(runs.periods(9), (1, 8));
    }

    #[test]
    fn nothing_has_no_runs() {
        let runs = Runs::new(&[]);
        assert_eq!((runs.len(), runs.packets, runs.losses), (0, 0, 0));
    }
}

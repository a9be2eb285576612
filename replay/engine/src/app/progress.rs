//! How data arrive over time: octets in each second, the longest gap, and how soon they arrive again after an outage.
//!
//! Does not depend on the application. Data arrive when the receiver has them in order.

use crate::sim::time::{Nanos, SECOND};

/// Progress of a flow at its receiver.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Octet after the last one that has arrived in order.
    arrived: u64,
    /// When the latest of them arrived; none before the first.
    last_at: Option<Nanos>,
    longest_gap: Nanos,
    /// Start of the flow, and end of its current second.
    second_end: Nanos,
    /// Octets of the current second.
    octets: u64,
    /// Octets of the seconds before it.
    seconds: Vec<u64>,
    /// Ends of outages that are still to come, the next one last.
    outages: Vec<Nanos>,
    restarts: Restarts,
}

/// Times from the end of an outage to the next arrival.
#[derive(Clone, Copy, Debug, Default)]
struct Restarts {
    count: u64,
    sum: Nanos,
    max: Nanos,
}

impl Restarts {
    fn add(&mut self, time: Nanos) {
        self.count += 1;
        self.sum += time;
        self.max = self.max.max(time);
    }
}

/// What the progress of a flow comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgressSummary {
    /// Longest time between two arrivals, or from the last one to the end of a flow that has not finished; none: nothing has
    /// arrived.
    pub longest_gap_ns: Option<Nanos>,
    /// Mean time from the end of an outage to the next arrival, over the outages that end after the first arrival; where none
    /// follows, to the end of the flow. None: there are none.
    pub restart_mean_ns: Option<Nanos>,
    /// Maximum of these times.
    pub restart_max_ns: Option<Nanos>,
    /// Rate of arrival in whole seconds since the start of the flow; none: it is shorter than one.
    pub seconds: Option<SecondsSummary>,
}

/// Rates of arrival in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SecondsSummary {
    /// Mean.
    pub mean_bps: f64,
    /// Standard deviation of the sample; none: there is one second.
    pub sd_bps: Option<f64>,
    /// 10th percentile (the smallest rate that is not exceeded in at least a tenth of the seconds).
    pub p10_bps: f64,
    /// Median, by the same rule.
    pub p50_bps: f64,
    /// 90th percentile.
    pub p90_bps: f64,
    /// Share of the seconds in which nothing arrived.
    pub idle_share: f64,
}

impl Progress {
    /// Of a flow that starts at `start`, over links whose outages end at `outages`, in ascending order.
    pub fn new(start: Nanos, mut outages: Vec<Nanos>) -> Self {
        outages.reverse();
        Self {
            arrived: 1,
            second_end: start + SECOND,
            outages,
            ..Self::default()
        }
    }

    /// Data have arrived in order up to octet `end`.
    #[inline(always)]
    pub fn note(&mut self, end: u64, now: Nanos) {
        if end > self.arrived {
            self.add(end, now);
        }
    }

    #[inline]
    fn add(&mut self, end: u64, now: Nanos) {
        if now >= self.second_end {
            self.close_seconds(now);
        }
        if self.outages.last().is_some_and(|&over| over <= now) {
            self.restart(now);
        }
        self.octets += end - self.arrived;
        self.arrived = end;
        if let Some(last) = self.last_at.replace(now) {
            self.longest_gap = self.longest_gap.max(now - last);
        }
    }

    #[cold]
    fn close_seconds(&mut self, now: Nanos) {
        while now >= self.second_end {
            self.seconds.push(std::mem::take(&mut self.octets));
            self.second_end += SECOND;
        }
    }

    #[cold]
    fn restart(&mut self, now: Nanos) {
        while let Some(over) = self.outages.last().copied().filter(|&over| over <= now) {
            self.outages.pop();
            if self.last_at.is_some() {
                self.restarts.add(now - over);
            }
        }
    }

    /// What it comes to at `stop`, the end of the flow, which has `finished` if all its data have arrived.
    pub fn summary(&self, stop: Nanos, finished: bool) -> ProgressSummary {
        let Some(last) = self.last_at else {
            return ProgressSummary {
                seconds: self.seconds_to(stop),
                ..ProgressSummary::default()
            };
        };
        let mut restarts = self.restarts;
        let open = if finished {
            0
        } else {
            stop.saturating_sub(last)
        };
        let without = self
            .outages
            .iter()
            .filter(|&&over| !finished && over > last && over < stop);
        without.for_each(|&over| restarts.add(stop - over));
        ProgressSummary {
            longest_gap_ns: Some(self.longest_gap.max(open)),
            restart_mean_ns: restarts.sum.checked_div(restarts.count),
            restart_max_ns: (restarts.count > 0).then_some(restarts.max),
            seconds: self.seconds_to(stop),
        }
    }

    fn seconds_to(&self, stop: Nanos) -> Option<SecondsSummary> {
        let mut all = self.clone();
        all.close_seconds(stop);
        // What arrives after a reset belongs to no second of the flow.
        let beyond = all
            .second_end
            .saturating_sub(SECOND)
            .saturating_sub(stop)
            .div_ceil(SECOND);
        all.seconds
            .truncate(all.seconds.len().saturating_sub(beyond as usize));
        SecondsSummary::of(all.seconds)
    }
}

impl SecondsSummary {
    fn of(mut octets: Vec<u64>) -> Option<Self> {
        octets.sort_unstable();
        let count = octets.len();
        let bps = |octets: u64| octets as f64 * 8.0;
        let quantile = |tenths: usize| {
            let rank = (count * tenths).div_ceil(10).max(1);
            octets.get(rank - 1).copied().map(bps)
        };
        let mean_bps = bps(octets.iter().sum()) / count.max(1) as f64;
        let squares = octets
            .iter()
            .map(|&octets| (bps(octets) - mean_bps).powi(2));
        let variance = squares.sum::<f64>() / (count.max(2) - 1) as f64;
        Some(Self {
            mean_bps,
            sd_bps: (count > 1).then(|| variance.sqrt()),
            p10_bps: quantile(1)?,
            p50_bps: quantile(5)?,
            p90_bps: quantile(9)?,
            idle_share: octets.partition_point(|&octets| octets == 0) as f64 / count as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    #[test]
    fn seconds_count_from_the_start_of_the_flow_and_only_whole_ones() {
        let mut progress = Progress::new(SECOND / 2, Vec::new());
        progress.note(1001, SECOND);
        progress.note(2001, 5 * SECOND);
        progress.note(2001, 5 * SECOND + 1);
        progress.note(4001, 5 * SECOND + 2);
        progress.note(9001, 6 * SECOND);
        let seconds = progress
            .summary(6 * SECOND, true)
            .seconds
            .expect("five seconds");
        // 1000, 0, 0, 0 and 3000 octets.
        assert!((seconds.mean_bps - 6400.0).abs() < 1e-9, "{seconds:?}");
        let sd = (f64::from(1600 * 1600 + 3 * 6400 * 6400 + 17_600 * 17_600) / 4.0).sqrt();
        assert!(
            (seconds.sd_bps.expect("five") - sd).abs() < 1e-9,
            "{seconds:?}"
        );
        assert_eq!(
            (seconds.p10_bps, seconds.p50_bps, seconds.p90_bps),
            (0.0, 0.0, 24_000.0)
        );
        assert!((seconds.idle_share - 0.6).abs() < 1e-12);
        assert_eq!(
            Progress::new(0, Vec::new())
                .summary(SECOND - 1, false)
                .seconds,
            None
        );
        // A reset at 2.5 s: what arrives afterwards is in none of the two seconds.
        let early = progress
            .summary(2 * SECOND + SECOND / 2, false)
            .seconds
            .expect("two");
        assert!((early.mean_bps - 4000.0).abs() < 1e-9, "{early:?}");
    }

    #[test]
    fn the_longest_gap_may_be_the_last_one() {
        let mut progress = Progress::new(0, Vec::new());
        assert_eq!(progress.summary(SECOND, false).longest_gap_ns, None);
        for (end, ms) in [(11, 100), (21, 150), (31, 400)] {
            progress.note(end, ms * MILLISECOND);
        }
        let gap = |progress: &Progress, ms, finished| {
            let summary = progress.summary(ms * MILLISECOND, finished);
            summary.longest_gap_ns.map(|ns| ns / MILLISECOND)
        };
        assert_eq!(gap(&progress, 500, false), Some(250));
        assert_eq!(gap(&progress, 900, false), Some(500));
        assert_eq!(gap(&progress, 900, true), Some(250));
    }

    #[test]
    fn a_restart_is_the_first_arrival_after_an_outage() {
        // Over before the first arrival; 100 ms and 300 ms before the next one; none after the last.
        let ends = [50, 200, 600, 5000].map(|ms| ms * MILLISECOND);
        let mut progress = Progress::new(0, ends.to_vec());
        for (end, ms) in [(11, 100), (21, 300), (31, 900), (41, 950)] {
            progress.note(end, ms * MILLISECOND);
        }
        let restarts = |stop_ms, finished| {
            let summary = progress.summary(stop_ms * MILLISECOND, finished);
            [summary.restart_mean_ns, summary.restart_max_ns]
                .map(|ns| ns.map(|ns| ns / MILLISECOND))
        };
        assert_eq!(restarts(4000, false), [Some(200), Some(300)]);
        assert_eq!(restarts(6400, false), [Some(600), Some(1400)]);
        assert_eq!(restarts(6400, true), [Some(200), Some(300)]);
        assert_eq!(
            Progress::new(0, Vec::new())
                .summary(9, false)
                .restart_max_ns,
            None
        );
    }
}

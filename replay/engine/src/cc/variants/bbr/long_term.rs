//! BBR's long-term bandwidth: two intervals in a row that end with losses above a fifth and had about the same
//! throughput mean that a policer drops what is above its rate; then that rate is used for a while.
//!
//! Does not depend on gains or the cycle. Facts: Linux 6.x, tcp_bbr.c, "long-term bw".

use super::fixed::{UNIT, bandwidth, rate_pkts_per_s};
use crate::sim::time::{MILLISECOND, Nanos};

/// Rounds that an interval lasts at least; four times as many at most.
const MIN_ROUNDS: u32 = 4;
/// Lost of delivered, in 256ths, that speak of a policer.
const LOSS_THRESHOLD: u64 = 50;
/// Two intervals agree within an eighth …
const AGREEMENT: u64 = UNIT / 8;
/// … or within 4 kbit/s.
const AGREEMENT_BYTES_PER_S: f64 = 500.0;
/// Rounds for which the long-term rate is used.
const MAX_ROUNDS_IN_USE: u32 = 48;

/// What is counted so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// When segments were delivered last.
    pub delivered_at: Nanos,
    /// Segments delivered.
    pub delivered: u64,
    /// Segments lost.
    pub lost: u64,
}

/// What an ACK, or a timeout, means to the sampling.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Counters now.
    pub counts: Counts,
    /// Segments were found lost by it.
    pub losses: bool,
    /// Its rate sample was limited by the application.
    pub app_limited: bool,
    /// It began a round.
    pub round_start: bool,
    /// BBR is cycling its gain.
    pub probing: bool,
    /// Octets of a segment.
    pub smss_bytes: f64,
}

/// What the sender has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    None,
    /// A policer has been found: its rate is used from now on.
    Policed,
    /// The rate has been used long enough: probe again.
    ProbeAgain,
}

/// State of the sampling.
#[derive(Clone, Copy, Debug, Default)]
pub struct LongTerm {
    stage: Stage,
    /// Bandwidth of the last interval; 0 if there is none.
    bw: u64,
    rounds: u32,
    start: Counts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Waiting for the first loss.
    #[default]
    Waiting,
    Sampling,
    InUse,
}

impl LongTerm {
    /// The rate in use, if one is.
    #[inline]
    pub fn bw(&self) -> Option<u64> {
        self.is_in_use().then_some(self.bw)
    }

    /// Whether its rate is in use.
    #[inline]
    pub fn is_in_use(&self) -> bool {
        self.stage == Stage::InUse
    }

    /// Whether an ACK with or without `losses` says nothing to it: it waits for the first loss.
    #[inline]
    pub fn waits_on(&self, losses: bool) -> bool {
        self.stage == Stage::Waiting && !losses
    }

    /// Starts anew.
    pub fn reset(&mut self, counts: Counts) {
        *self = Self::default();
        self.begin_interval(counts);
    }

    fn begin_interval(&mut self, counts: Counts) {
        self.start = counts;
        self.rounds = 0;
    }

    /// Takes an ACK with a valid rate sample, or a timeout.
    pub fn sample(&mut self, step: &Step) -> Verdict {
        match self.stage {
            Stage::InUse => return self.use_up(step),
            Stage::Waiting if self.waits_on(step.losses) => return Verdict::None,
            Stage::Waiting => {
                self.begin_interval(step.counts);
                self.stage = Stage::Sampling;
            }
            Stage::Sampling => {}
        }
        if step.app_limited {
            self.reset(step.counts);
            return Verdict::None;
        }
        self.rounds += u32::from(step.round_start);
        if self.rounds > 4 * MIN_ROUNDS {
            self.reset(step.counts);
        } else if self.rounds >= MIN_ROUNDS
            && step.losses
            && let Some(bw) = self.interval_bw(&step.counts)
        {
            return self.end_interval(bw, step);
        }
        Verdict::None
    }

    fn use_up(&mut self, step: &Step) -> Verdict {
        if step.probing && step.round_start {
            self.rounds += 1;
            if self.rounds >= MAX_ROUNDS_IN_USE {
                self.reset(step.counts);
                return Verdict::ProbeAgain;
            }
        }
        Verdict::None
    }

    /// Bandwidth of the interval, if it lost enough and lasted a millisecond.
    fn interval_bw(&self, now: &Counts) -> Option<u64> {
        let lost = now.lost - self.start.lost;
        let delivered = now.delivered - self.start.delivered;
        if delivered == 0 || lost * UNIT < LOSS_THRESHOLD * delivered {
            return None;
        }
        let millis = now.delivered_at / MILLISECOND - self.start.delivered_at / MILLISECOND;
        (millis > 0).then(|| bandwidth(delivered, millis * MILLISECOND))
    }

    fn end_interval(&mut self, bw: u64, step: &Step) -> Verdict {
        if self.bw > 0 {
            let difference = bw.abs_diff(self.bw);
            let bytes_per_s = rate_pkts_per_s(difference, UNIT, 0.0) * step.smss_bytes;
            if difference * UNIT <= AGREEMENT * self.bw || bytes_per_s <= AGREEMENT_BYTES_PER_S {
                self.bw = u64::midpoint(bw, self.bw);
                self.stage = Stage::InUse;
                self.rounds = 0;
                return Verdict::Policed;
            }
        }
        self.bw = bw;
        self.begin_interval(step.counts);
        Verdict::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::SECOND;

    /// A round a second: `delivered` and `lost` more each.
    struct Flow {
        state: LongTerm,
        counts: Counts,
    }

    impl Flow {
        fn new() -> Self {
            Self {
                state: LongTerm::default(),
                counts: Counts::default(),
            }
        }

        fn round(&mut self, delivered: u64, lost: u64) -> Verdict {
            self.counts.delivered_at += SECOND;
            self.counts.delivered += delivered;
            self.counts.lost += lost;
            self.state.sample(&Step {
                counts: self.counts,
                losses: lost > 0,
                app_limited: false,
                round_start: true,
                probing: true,
                smss_bytes: 1448.0,
            })
        }

        fn decisions(&mut self, rounds: u32, delivered: u64, lost: u64) -> Vec<Verdict> {
            let all = (0..rounds).map(|_| self.round(delivered, lost));
            all.filter(|&verdict| verdict != Verdict::None).collect()
        }
    }

    #[test]
    fn two_lossy_intervals_of_like_throughput_are_a_policer() {
        let mut flow = Flow::new();
        // The first interval ends with its fourth round, the second four rounds later.
        assert_eq!(flow.decisions(7, 100, 25), []);
        assert_eq!(flow.decisions(1, 100, 25), [Verdict::Policed]);
        let per_s = rate_pkts_per_s(flow.state.bw().unwrap_or(0), UNIT, 0.0);
        assert!((95.0..105.0).contains(&per_s), "{per_s}");
    }

    #[test]
    fn less_loss_or_another_throughput_is_none() {
        // 50/256 of 100 delivered: 19.5 lost.
        assert_eq!(Flow::new().decisions(16, 100, 19), []);
        assert_eq!(Flow::new().decisions(8, 100, 21), [Verdict::Policed]);
        let mut flow = Flow::new();
        flow.decisions(4, 100, 25);
        assert_eq!(flow.decisions(4, 150, 40), [], "half as much again");
        assert_eq!(flow.state.bw(), None);
    }

    #[test]
    fn the_rate_is_used_for_forty_eight_rounds() {
        let mut flow = Flow::new();
        flow.decisions(8, 100, 25);
        assert_eq!(flow.decisions(47, 100, 0), []);
        assert!(flow.state.bw().is_some());
        assert_eq!(flow.decisions(1, 100, 0), [Verdict::ProbeAgain]);
        assert_eq!(flow.state.bw(), None);
    }

    #[test]
    fn an_interval_without_end_or_without_data_starts_anew() {
        let mut flow = Flow::new();
        flow.round(100, 25);
        assert_eq!(flow.decisions(15, 100, 0), []);
        assert_eq!(flow.state.stage, Stage::Sampling);
        flow.round(100, 0);
        assert_eq!(flow.state.stage, Stage::Waiting, "more than sixteen rounds");
        flow.round(100, 25);
        let step = Step {
            counts: flow.counts,
            losses: false,
            app_limited: true,
            round_start: false,
            probing: true,
            smss_bytes: 1448.0,
        };
        assert_eq!(flow.state.sample(&step), Verdict::None);
        assert_eq!(flow.state.stage, Stage::Waiting);
    }
}

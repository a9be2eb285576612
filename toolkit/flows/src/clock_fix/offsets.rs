//! The difference of two clocks over the time of a capture, and the steps of each.
//!
//! The clock that is corrected is ahead of the other one by θ. A host with the first answers a question of the second
//! after at least 0: θ is at most the delay of the answer, by the times of the capture. In the other direction, θ is at
//! least minus the delay. All connections together give an interval as wide as the shortest round trip; its middle is
//! the estimate. Where answers contradict the interval, θ has changed (a step, or drift), and another interval begins.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hindflight_decoder::Segment;

use super::exchange::{Answer, Exchanges};
use super::flows::{Flows, Ticks};
use super::is_step;
use crate::artefacts::clocks::{MIN_COUNT, TOLERANCE_NS};

/// Stretches of a capture that are corrected at most. Clocks do not change more often; a damaged file may.
pub const MAX_STRETCHES: usize = 1 << 12;

/// Answers among which [`MIN_COUNT`] have to contradict an interval to end it.
const MAX_BETWEEN: u32 = 64;

/// An interval of θ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Lower limit, by answers of hosts whose times are kept.
    pub low_ns: i64,
    /// Upper limit, by answers of hosts whose times are corrected.
    pub high_ns: i64,
    /// Answers that gave it.
    pub answers: u64,
}

impl Interval {
    const ALL: Self = Self {
        low_ns: i64::MIN,
        high_ns: i64::MAX,
        answers: 0,
    };

    fn narrow(&mut self, other: Self) {
        self.low_ns = self.low_ns.max(other.low_ns);
        self.high_ns = self.high_ns.min(other.high_ns);
        self.answers += other.answers;
    }

    fn contradicts(&self, other: &Self) -> bool {
        let apart = |low: i64, high: i64| low > high.saturating_add(TOLERANCE_NS);
        apart(self.low_ns, other.high_ns) || apart(other.low_ns, self.high_ns)
    }

    /// Whether both directions have answered.
    pub fn is_known(&self) -> bool {
        self.low_ns != i64::MIN && self.high_ns != i64::MAX && self.answers >= MIN_COUNT
    }

    /// Its middle, or 0 if that is within; where only one direction has answered, the value next to `before`.
    pub fn offset_ns(&self, before: i64) -> i64 {
        if self.low_ns <= TOLERANCE_NS && self.high_ns >= -TOLERANCE_NS && self.is_known() {
            0
        } else if self.is_known() {
            self.low_ns + (self.high_ns - self.low_ns) / 2
        } else if self.answers >= MIN_COUNT {
            before.max(self.low_ns).min(self.high_ns)
        } else {
            before
        }
    }
}

/// A part of the capture in which neither clock steps, and θ is in one interval.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// Its first record.
    pub from_record: u64,
    /// What corrects the steps of the clock that is kept.
    pub kept_fix_ns: i64,
    /// Step of the corrected clock, less that of the kept one, since the stretch before; 0 if it began otherwise.
    pub step_ns: i64,
    /// The interval.
    pub interval: Interval,
}

/// Answers that contradict the interval.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    from_record: u64,
    interval: Interval,
    left: u32,
}

/// A step of which the timestamps of no connection have shown yet how much time passed.
#[derive(Clone, Copy, Debug)]
struct OpenStep {
    /// The stretch that it began.
    stretch: usize,
    /// Last time before it, and first time after it.
    around_ns: [i64; 2],
}

impl OpenStep {
    /// By how much the clock was set, of which the `ticks` before the step show the time of the timestamp `val`, which
    /// has the time `t_ns` after it; `None` if their rate is not known.
    ///
    /// Ahead, the clock may be right and nobody sent for so long. The timestamps contradict this if less than half of
    /// that time passed by them: the rate is an estimate. An idle time in which they wrap, which is 24 days or more
    /// (RFC 7323 §5.4), is not assumed.
    fn set_by_ns(&self, ticks: &Ticks, val: u32, t_ns: i64) -> Option<i64> {
        let shown_ns = ticks.time_of(val)?;
        let [last_ns, first_ns] = self.around_ns;
        let step_ns = first_ns.saturating_sub(last_ns);
        let passed_ns = shown_ns.saturating_sub(ticks.last_ns());
        if step_ns > 0 && passed_ns >= t_ns.saturating_sub(ticks.last_ns()) / 2 {
            return Some(0);
        }
        Some(t_ns.saturating_sub(shown_ns).min(step_ns))
    }

    /// By how much the clock was set if nothing shows how much time passed: a clock that went back by its whole step;
    /// one that went ahead not at all, unless this leads back to where it was before it went back.
    fn assumed_ns(&self, kept_fix_ns: i64) -> i64 {
        let [last_ns, first_ns] = self.around_ns;
        let step_ns = first_ns.saturating_sub(last_ns);
        if step_ns < 0 {
            step_ns
        } else if is_step(last_ns.saturating_add(kept_fix_ns), first_ns) {
            0
        } else {
            kept_fix_ns
        }
    }
}

/// Collects the stretches.
#[derive(Debug)]
pub struct Offsets<'a> {
    behind: &'a BTreeMap<IpAddr, bool>,
    /// Whether the clock that is kept is the one behind; that of the first host.
    kept: Option<bool>,
    flows: Flows,
    /// By clock.
    last_ns: [Option<i64>; 2],
    steps: [u32; 2],
    open_steps: [Option<OpenStep>; 2],
    stretches: Vec<Stretch>,
    candidate: Option<Candidate>,
}

impl<'a> Offsets<'a> {
    /// Of the hosts `behind`, as [`super::hosts::HostSurvey::behind`] gives them.
    pub fn new(behind: &'a BTreeMap<IpAddr, bool>) -> Self {
        Self {
            behind,
            kept: None,
            flows: Flows::default(),
            last_ns: [None; 2],
            steps: [0; 2],
            open_steps: [None; 2],
            stretches: vec![Stretch {
                from_record: 0,
                kept_fix_ns: 0,
                step_ns: 0,
                interval: Interval::ALL,
            }],
            candidate: None,
        }
    }

    /// The hosts of which the clock is not kept.
    pub fn corrected(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let other = |found: &(&IpAddr, &bool)| Some(*found.1) != self.kept;
        self.behind.iter().filter(other).map(|(host, _)| *host)
    }

    /// The stretches in the order of the capture; `None` if there are too many.
    pub fn stretches(&self) -> Option<&[Stretch]> {
        (self.stretches.len() <= MAX_STRETCHES).then_some(&self.stretches)
    }

    /// Whether the times of `host` are corrected; `None` if that is unknown.
    fn is_corrected(&mut self, host: IpAddr) -> Option<bool> {
        if self.behind.is_empty() {
            return Some(false);
        }
        let behind = *self.behind.get(&host)?;
        Some(*self.kept.get_or_insert(behind) != behind)
    }

    /// Processes the next segment of the capture.
    pub fn push(&mut self, segment: &Segment) {
        if self.stretches.len() > MAX_STRETCHES {
            return;
        }
        let Some(corrected) = self.is_corrected(segment.src) else {
            return;
        };
        let clock = usize::from(corrected);
        let last_ns = self.last_ns[clock].replace(segment.t_ns);
        if let Some(last_ns) = last_ns.filter(|&last_ns| is_step(last_ns, segment.t_ns)) {
            self.step(segment, last_ns, corrected);
        }
        let all_steps = self.steps[0].wrapping_add(self.steps[1]);
        let Some((index, flow)) = self.flows.find(segment) else {
            return;
        };
        if flow.steps != all_steps {
            flow.steps = all_steps;
            flow.exchanges = Exchanges::default();
        }
        let mut set = None;
        if let Some((val, _)) = segment.options.timestamps {
            let steps = std::mem::replace(&mut flow.ticks_steps[index], self.steps[clock]);
            let before = flow.ticks[index].take_if(|_| steps != self.steps[clock]);
            flow.ticks[index] = Some(Ticks::with(flow.ticks[index], val, segment.t_ns));
            if let (Some(open), Some(ticks)) = (self.open_steps[clock], before)
                && steps.wrapping_add(1) == self.steps[clock]
            {
                let by_ns = open.set_by_ns(&ticks, val, segment.t_ns);
                set = by_ns.map(|by_ns| (open.stretch, by_ns));
            }
        }
        let answers = flow.exchanges.observe(index, segment);
        if self.is_corrected(segment.dst) == Some(!corrected) {
            for answer in answers.into_iter().flatten() {
                let by_corrected = (answer.by == index) == corrected;
                let own = if corrected { index } else { 1 - index };
                self.bound(&answer, by_corrected, answer.records[own]);
            }
        }
        if let Some((stretch, by_ns)) = set {
            self.open_steps[clock] = None;
            self.set(stretch, corrected, by_ns);
        }
    }

    /// Begins a stretch with `segment`, before which the clock was at `last_ns`.
    fn step(&mut self, segment: &Segment, last_ns: i64, corrected: bool) {
        let clock = usize::from(corrected);
        self.steps[clock] = self.steps[clock].wrapping_add(1);
        self.candidate = None;
        let stretch = self.stretches.len();
        let kept_fix_ns = self.stretches[stretch - 1].kept_fix_ns;
        self.stretches.push(Stretch {
            from_record: segment.record,
            kept_fix_ns,
            step_ns: 0,
            interval: Interval::ALL,
        });
        let open = OpenStep {
            stretch,
            around_ns: [last_ns, segment.t_ns],
        };
        self.open_steps[clock] = Some(open);
        let kept_fix_ns = if corrected { 0 } else { kept_fix_ns };
        self.set(stretch, corrected, open.assumed_ns(kept_fix_ns));
    }

    /// Notes that the clock was set by `by_ns` where the stretch of index `stretch` begins.
    fn set(&mut self, stretch: usize, corrected: bool, by_ns: i64) {
        if corrected {
            self.stretches[stretch].step_ns = by_ns;
            return;
        }
        let fix_ns = self.stretches[stretch - 1]
            .kept_fix_ns
            .saturating_sub(by_ns);
        let more_ns = fix_ns.saturating_sub(self.stretches[stretch].kept_fix_ns);
        self.stretches[stretch].step_ns = by_ns.saturating_neg();
        for later in &mut self.stretches[stretch..] {
            later.kept_fix_ns = later.kept_fix_ns.saturating_add(more_ns);
        }
    }

    /// Narrows the interval by an answer; `record` is the segment of the corrected clock in the exchange.
    fn bound(&mut self, answer: &Answer, by_corrected: bool, record: u64) {
        let mut bound = Interval {
            answers: 1,
            ..Interval::ALL
        };
        if by_corrected {
            bound.high_ns = answer.delay_ns;
        } else {
            bound.low_ns = answer.delay_ns.saturating_neg();
        }
        let last = self.stretches.len() - 1;
        let stretch = &mut self.stretches[last];
        if !bound.contradicts(&stretch.interval) {
            stretch.interval.narrow(bound);
            self.candidate = self.candidate.filter(|candidate| candidate.left > 0);
            if let Some(candidate) = &mut self.candidate {
                candidate.left -= 1;
            }
            return;
        }
        let candidate = self.candidate.get_or_insert(Candidate {
            from_record: record.max(stretch.from_record),
            interval: Interval::ALL,
            left: MAX_BETWEEN,
        });
        candidate.interval.narrow(bound);
        if candidate.interval.answers >= MIN_COUNT {
            let stretch = Stretch {
                from_record: candidate.from_record,
                kept_fix_ns: stretch.kept_fix_ns,
                step_ns: 0,
                interval: candidate.interval,
            };
            self.candidate = None;
            self.stretches.push(stretch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hosts::segment;
    use super::*;

    /// The stretches of a capture with these times, all from one host.
    fn stretches(times_ns: &[i64]) -> Vec<Stretch> {
        let behind = BTreeMap::new();
        let mut offsets = Offsets::new(&behind);
        for (record, &t_ns) in (1..).zip(times_ns) {
            offsets.push(&segment(record, t_ns, 1, 2));
        }
        offsets.stretches().expect("few stretches").to_vec()
    }

    #[test]
    fn the_longest_step_does_not_overflow() {
        let found = stretches(&[i64::MAX, i64::MIN, i64::MIN + 1]);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[1].step_ns, found[1].kept_fix_ns),
            (i64::MAX, i64::MAX)
        );
        let found = stretches(&[i64::MIN, i64::MAX]);
        assert_eq!((found[1].step_ns, found[1].kept_fix_ns), (0, 0));
    }
}

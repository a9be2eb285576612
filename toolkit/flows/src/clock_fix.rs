//! Corrects the times of a capture whose clock was set, or that has two clocks: `--fix-clock`.
//!
//! [`ClockFix::survey`] reads the capture twice, [`Corrected`] gives its segments with the corrected times and in their
//! order. Memory depends neither on the length of the capture nor on the difference of the clocks; with the number of
//! hosts that show two clocks it grows to a limit, from which on nothing is corrected.

mod exchange;
mod flows;
mod hosts;
mod offsets;
mod reader;

use std::collections::HashSet;
use std::io::Read;
use std::net::IpAddr;

use hindflight_decoder::{Issue, IssueKind, Reader};

use hosts::{HostSurvey, MAX_HOSTS};
use offsets::{Interval, MAX_STRETCHES, Offsets, Stretch};
pub use reader::Corrected;

/// Issues about corrections at most.
const MAX_ISSUES: usize = 100;

/// Whether a clock was set between two of its times: back by more than a second or ahead by more than a day, as the
/// decoder reports it.
fn is_step(last_ns: i64, t_ns: i64) -> bool {
    !hindflight_decoder::CLOCK_STEP_NS.contains(&t_ns.saturating_sub(last_ns))
}

/// What is added to the times from a record on: to those that are kept but for steps of their clock, and to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    from_record: u64,
    fix_ns: [i64; 2],
}

/// What corrects the times of a capture.
#[derive(Clone, Debug, Default)]
pub struct ClockFix {
    /// Hosts with the clock that is not kept.
    hosts: HashSet<IpAddr>,
    rows: Vec<Row>,
    issues: Vec<Issue>,
    /// Those past [`MAX_ISSUES`].
    more_issues: usize,
}

impl ClockFix {
    /// Finds what corrects the capture that `open` opens.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn survey<R: Read, E>(mut open: impl FnMut() -> Result<Reader<R>, E>) -> Result<Self, E> {
        let mut hosts = HostSurvey::default();
        each_segment(open()?, |segment| hosts.push(segment));
        let Some(behind) = hosts.behind() else {
            return Ok(Self::refused(&format!(
                "the times of more than {MAX_HOSTS} hosts show two clocks"
            )));
        };
        let mut offsets = Offsets::new(&behind);
        each_segment(open()?, |segment| offsets.push(segment));
        let Some(stretches) = offsets.stretches() else {
            return Ok(Self::refused(&format!(
                "the clocks change more than {MAX_STRETCHES} times, which no clock does"
            )));
        };
        let mut fix = Self::of(stretches, offsets.corrected().collect());
        if fix.rows.iter().all(|row| row.fix_ns[1] == row.fix_ns[0]) {
            fix.hosts.clear();
        }
        if fix.rows.iter().all(|row| row.fix_ns == [0; 2]) {
            fix.rows.clear();
        }
        Ok(fix)
    }

    fn refused(why: &str) -> Self {
        Self {
            issues: vec![issue(0, format!("{why}; kept as they are"))],
            ..Self::default()
        }
    }

    fn of(stretches: &[Stretch], hosts: HashSet<IpAddr>) -> Self {
        let mut fix = Self {
            hosts,
            ..Self::default()
        };
        // The first stretch has nothing before it: it takes what the first known one says.
        let known = |stretch: &&Stretch| stretch.interval.is_known();
        let mut offset_ns = stretches
            .iter()
            .find(known)
            .filter(|first| first.step_ns == 0)
            .map_or(0, |first| first.interval.offset_ns(0));
        let mut kept_fix_ns = 0;
        for stretch in stretches {
            let before = offset_ns;
            offset_ns = stretch
                .interval
                .offset_ns(before.saturating_add(stretch.step_ns));
            let kept = stretch.kept_fix_ns;
            fix.rows.push(Row {
                from_record: stretch.from_record,
                fix_ns: [kept, kept.saturating_sub(offset_ns)],
            });
            if kept != kept_fix_ns {
                fix.report_step(stretch.from_record, kept.saturating_sub(kept_fix_ns));
            }
            if !fix.hosts.is_empty()
                && (offset_ns != before || stretch.from_record == 0)
                && offset_ns != 0
            {
                fix.report_offset(stretch.from_record, offset_ns, &stretch.interval);
            }
            kept_fix_ns = kept;
        }
        fix.end_report();
        fix
    }

    fn report_step(&mut self, record: u64, by_ns: i64) {
        let (way, seconds) = (if by_ns > 0 { "back" } else { "ahead" }, secs(by_ns));
        let text =
            format!("the clock was set {way} by {seconds:.6} s; all times from here are corrected");
        self.report(record, text);
    }

    fn report_offset(&mut self, record: u64, offset_ns: i64, interval: &Interval) {
        let way = if offset_ns > 0 { "ahead" } else { "behind" };
        let within = if interval.is_known() {
            let half_ns = interval.high_ns.abs_diff(interval.low_ns) / 2;
            format!(
                "by {:.6} s, within {:.6} s",
                secs(offset_ns),
                half_ns as f64 / 1e9
            )
        } else {
            format!(
                "by {:.6} s, of which one direction tells nothing",
                secs(offset_ns)
            )
        };
        let hosts = self.hosts.len();
        let example = self
            .hosts
            .iter()
            .min()
            .map_or_else(String::new, IpAddr::to_string);
        let text = format!(
            "two clocks: that of the segments from {hosts} hosts, among them {example}, is {way} {within}; corrected from here"
        );
        self.report(record, text);
    }

    fn report(&mut self, record: u64, text: String) {
        if self.issues.len() < MAX_ISSUES {
            self.issues.push(issue(record, text));
        } else {
            self.more_issues += 1;
        }
    }

    fn end_report(&mut self) {
        if self.more_issues > 0 {
            let text = format!("{} more corrections like those listed", self.more_issues);
            self.issues.push(issue(0, text));
        }
    }

    /// How often the capture has to be open to read it in the order of the corrected times.
    pub fn cursors(&self) -> usize {
        1 + usize::from(!self.hosts.is_empty())
    }

    /// Which of its clocks the times of `host` are from.
    fn clock_of(&self, host: IpAddr) -> usize {
        usize::from(self.hosts.contains(&host))
    }

    /// What is added to the time of `record`, which is of `clock`.
    fn fix_ns(&self, clock: usize, record: u64) -> i64 {
        let after = self.rows.partition_point(|row| row.from_record <= record);
        after
            .checked_sub(1)
            .map_or(0, |at| self.rows[at].fix_ns[clock])
    }
}

fn secs(ns: i64) -> f64 {
    ns.unsigned_abs() as f64 / 1e9
}

fn issue(record: u64, text: String) -> Issue {
    Issue {
        file: 0,
        record,
        offset: 0,
        kind: IssueKind::Clock,
        text,
    }
}

fn each_segment<R: Read>(
    mut reader: Reader<R>,
    mut push: impl FnMut(&hindflight_decoder::Segment),
) {
    while !reader.ended() {
        while let Some(captured) = reader.next_segment() {
            push(captured.segment);
        }
        drop(reader.take_others());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_correction_is_reported() {
        let mut fix = ClockFix::default();
        fix.report_step(1, i64::MIN);
        assert!(fix.issues[0].text.contains("ahead by 9223372036.854776 s"));
    }
}

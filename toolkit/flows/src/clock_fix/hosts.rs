//! Which hosts have their times from which clock.
//!
//! A host is behind another one if its answers come before the questions, or if the time goes back from the other to it
//! and not from any segment to the next one of the same direction.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hindflight_decoder::Segment;

use super::exchange::Exchanges;
use super::flows::Flows;
use super::is_step;
use crate::artefacts::clocks::{MIN_COUNT, TOLERANCE_NS};

/// Collects which hosts answer too early.
#[derive(Debug, Default)]
pub struct HostSurvey {
    flows: Flows,
    /// Source and time of the last segment, if no step came before it.
    last: Option<(IpAddr, i64)>,
    /// By the host that is behind and the other one: how often.
    early: BTreeMap<(IpAddr, IpAddr), u64>,
}

impl HostSurvey {
    /// Processes the next segment of the capture.
    pub fn push(&mut self, segment: &Segment) {
        let Some((index, flow)) = self.flows.find(segment) else {
            return;
        };
        let last = self.last.take();
        if let Some(last_ns) = flow.last_ns[index].replace(segment.t_ns) {
            if is_step(last_ns, segment.t_ns) {
                // Nothing is compared across a step.
                flow.exchanges = Exchanges::default();
            } else {
                self.last = Some((segment.src, segment.t_ns));
                if let Some((host, before_ns)) = last
                    && host != segment.src
                    && segment.t_ns < before_ns
                    && is_step(before_ns, segment.t_ns)
                {
                    *self.early.entry((segment.src, host)).or_default() += 1;
                }
            }
        }
        for answer in flow.exchanges.observe(index, segment).into_iter().flatten() {
            if answer.delay_ns < -TOLERANCE_NS {
                let ends = if answer.by == index {
                    (segment.src, segment.dst)
                } else {
                    (segment.dst, segment.src)
                };
                *self.early.entry(ends).or_default() += 1;
            }
        }
    }

    /// The hosts with evidence, and whether their clock is behind the other one. Hosts without any have one clock with
    /// those that keep their times.
    pub fn behind(&self) -> BTreeMap<IpAddr, bool> {
        let mut totals: BTreeMap<IpAddr, u64> = BTreeMap::new();
        for ((early, asks), count) in &self.early {
            *totals.entry(*early).or_default() += count;
            *totals.entry(*asks).or_default() += count;
        }
        let mut scores: BTreeMap<IpAddr, i64> = BTreeMap::new();
        for ((early, asks), &count) in &self.early {
            if totals[early].max(totals[asks]) >= MIN_COUNT {
                *scores.entry(*early).or_default() += count as i64;
                *scores.entry(*asks).or_default() -= count as i64;
            }
        }
        let behind = |(host, score)| (host, score > 0);
        scores.into_iter().map(behind).collect()
    }
}

//! Refuses paths that cannot be: nodes, links, and what each direction of a link does.

use super::{Checked, ConfigError, LONGEST_NS, rate, refuse, within};
use crate::config::{ChangeConfig, DirectionConfig, PathConfig, QueueConfig, RateTraceConfig};

const MAX_NODES: usize = 512;

impl PathConfig {
    /// Places on the path of the nodes `from` and `to`, its ends where they are not named.
    ///
    /// # Errors
    /// A name that is none of the path's nodes; `key` is the path of who names it.
    pub fn ends(
        &self,
        key: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<(usize, usize), ConfigError> {
        let site = |role: &str, name: Option<&str>, unnamed: usize| {
            let Some(name) = name else {
                return Ok(unnamed);
            };
            let place = self.nodes.iter().position(|node| node == name);
            place.ok_or_else(|| ConfigError {
                key: format!("{key}.{role}"),
                problem: format!("{name:?} is no node of the path: {}", self.nodes.join(", ")),
            })
        };
        Ok((
            site("from", from, 0)?,
            site("to", to, self.nodes.len() - 1)?,
        ))
    }

    pub(super) fn validate(&self) -> Checked {
        within("path.nodes", self.nodes.len(), 2, MAX_NODES)?;
        if self.links.len() + 1 != self.nodes.len() {
            let (nodes, links) = (self.nodes.len(), self.links.len());
            return refuse(
                "path.links",
                format!("{nodes} nodes need {} links, not {links}", nodes - 1),
            );
        }
        for (i, name) in self.nodes.iter().enumerate() {
            if self.nodes[..i].contains(name) {
                return refuse(
                    format!("path.nodes[{i}]"),
                    format!("node {name:?} is named twice"),
                );
            }
        }
        for (i, link) in self.links.iter().enumerate() {
            link.forward.validate(&format!("path.links[{i}].forward"))?;
            link.reverse.validate(&format!("path.links[{i}].reverse"))?;
        }
        // A round trip that takes no time would let a window double for ever at one instant.
        let takes_time = |d: &DirectionConfig| d.delay_ns > 0 || d.rate_bps.is_some();
        for (i, link) in self.links.iter().enumerate() {
            if !takes_time(&link.forward) && !takes_time(&link.reverse) {
                return refuse(
                    format!("path.links[{i}]"),
                    "a link needs a delay or a rate in one direction at least",
                );
            }
        }
        Ok(())
    }
}

impl DirectionConfig {
    fn validate(&self, key: &str) -> Checked {
        rate(&format!("{key}.rate_bps"), self.rate_bps)?;
        within(&format!("{key}.delay_ns"), self.delay_ns, 0, LONGEST_NS)?;
        self.queue.validate(&format!("{key}.queue"))?;
        if let Some(jitter) = &self.jitter {
            jitter.validate(&format!("{key}.jitter"))?;
        }
        if let Some(trace) = &self.rate_trace {
            trace.validate(&format!("{key}.rate_trace"), self)?;
        }
        let serialises = self.rate_bps.is_some()
            || self.rate_trace.is_some()
            || self.schedule.iter().any(|change| change.rate_bps.is_some());
        if !serialises && !matches!(self.queue, QueueConfig::DropTail(_)) {
            let problem = format!(
                "{} manages a queue, but without rate_bps nothing ever waits",
                self.queue.name()
            );
            return refuse(format!("{key}.queue"), problem);
        }
        self.loss.validate(&format!("{key}.loss"))?;
        let mut last = 0;
        for (i, change) in self.schedule.iter().enumerate() {
            let key = format!("{key}.schedule[{i}]");
            within(&format!("{key}.at_ns"), change.at_ns, last, LONGEST_NS)?;
            last = change.at_ns;
            rate(&format!("{key}.rate_bps"), change.rate_bps)?;
            within(
                &format!("{key}.delay_ns"),
                change.delay_ns.unwrap_or(0),
                0,
                LONGEST_NS,
            )?;
            self.validate_overlap(&key, change)?;
            let stays = change.rate_bps.is_none() && change.delay_ns.is_none();
            let stays = stays && change.overlap_ns.is_none();
            if stays && change.outage.is_none() && change.hold.is_none() {
                return refuse(
                    key,
                    "changes nothing: give rate_bps, delay_ns, outage, hold or overlap_ns",
                );
            }
        }
        Ok(())
    }

    fn validate_overlap(&self, key: &str, change: &ChangeConfig) -> Checked {
        let Some(overlap) = change.overlap_ns else {
            return Ok(());
        };
        let key = format!("{key}.overlap_ns");
        within(&key, overlap, 0, LONGEST_NS)?;
        if self.in_order {
            return refuse(
                key,
                "packets of two links overtake, so in_order must be false",
            );
        }
        if self.rate_trace.is_some() {
            return refuse(key, "a rate trace is that of one link");
        }
        Ok(())
    }
}

impl RateTraceConfig {
    fn validate(&self, key: &str, direction: &DirectionConfig) -> Checked {
        if direction.rate_bps.is_some() || direction.schedule.iter().any(|c| c.rate_bps.is_some()) {
            return refuse(key, "stands beside rate_bps; one of them gives the rate");
        }
        if self.starts_ns.len() != self.rates_bps.len() || self.starts_ns.first() != Some(&0) {
            return refuse(
                key,
                "needs as many starts_ns as rates_bps, the first start 0",
            );
        }
        within(&format!("{key}.end_ns"), self.end_ns, 1, LONGEST_NS)?;
        let ends = self.starts_ns.iter().skip(1).chain([&self.end_ns]);
        if let Some(i) = self
            .starts_ns
            .iter()
            .zip(ends)
            .position(|(start, end)| start >= end)
        {
            return refuse(
                format!("{key}.starts_ns[{i}]"),
                "starts must ascend and lie before end_ns",
            );
        }
        for (i, &bps) in self.rates_bps.iter().enumerate() {
            if bps != 0.0 {
                rate(&format!("{key}.rates_bps[{i}]"), Some(bps))?;
            }
        }
        if self.rates_bps.iter().all(|&bps| bps == 0.0) {
            return refuse(key, "never sends anything");
        }
        Ok(())
    }
}

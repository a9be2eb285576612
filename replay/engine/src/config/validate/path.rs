//! Checks of a path: its nodes, its links, and each direction of a link.

use std::collections::HashSet;

use super::{MAX_NS, Place};
use crate::config::error::{ConfigErrorKind, ConfigErrors, KeyPath, PathStep};
use crate::config::tree::{Misplaced, Tree};
use crate::config::{ChangeConfig, DirectionConfig, PathConfig, QueueConfig, RateTraceConfig};

const MAX_NODES: usize = 4096;

/// Which end of a flow or a stream of datagrams a key names.
type Role = &'static str;

impl PathConfig {
    /// Indices of the nodes `from` and `to`; if one is not named, it is that end of the chain that begins with the first one.
    ///
    /// # Errors
    /// A node that the path does not have; `key` names the object that has the two keys.
    pub fn ends(
        &self,
        key: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<(usize, usize), ConfigErrors> {
        self.find_ends(from, to).map_err(|mut errors| {
            let (role, kind) = errors.swap_remove(0);
            let steps = [key, role].map(|key| PathStep::Key(key.to_owned()));
            ConfigErrors::one(KeyPath(steps.to_vec()), kind)
        })
    }

    /// The same of the object at `place`, which must be two nodes.
    pub(in crate::config) fn ends_at(
        &self,
        place: &Place,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Option<(usize, usize)> {
        let refuse = |errors: Vec<(Role, ConfigErrorKind)>| {
            for (role, kind) in errors {
                place.key(role).refuse(kind);
            }
        };
        let (from, to) = self.find_ends(from, to).map_err(refuse).ok()?;
        if from == to {
            place.key("to").refuse(ConfigErrorKind::SameNode);
            return None;
        }
        Some((from, to))
    }

    fn find_ends(
        &self,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<(usize, usize), Vec<(Role, ConfigErrorKind)>> {
        let find = |role: Role, name: Option<&str>, unnamed: usize| {
            let Some(name) = name else {
                return Ok(unnamed);
            };
            let index = self.nodes.iter().position(|node| node == name);
            index.ok_or_else(|| {
                let (name, nodes) = (name.to_owned(), self.nodes.clone());
                (role, ConfigErrorKind::UnknownNode { name, nodes })
            })
        };
        match (find("from", from, 0), find("to", to, self.last())) {
            (Ok(from), Ok(to)) => Ok((from, to)),
            (from, to) => Err([from.err(), to.err()].into_iter().flatten().collect()),
        }
    }

    /// Checks every value; returns the tree that the links make of the nodes, unless they make none.
    pub(super) fn validate(&self, place: &Place) -> Option<Tree> {
        let tree = self.validate_nodes(place);
        for (i, link) in self.links.iter().enumerate() {
            let list = place.key("links");
            let place = list.index(i);
            link.forward.validate(&place.key("forward"));
            link.reverse.validate(&place.key("reverse"));
            if !link.forward.always_takes_time() && !link.reverse.always_takes_time() {
                place.refuse(ConfigErrorKind::NoDelayOrRate);
            }
        }
        tree
    }

    fn validate_nodes(&self, place: &Place) -> Option<Tree> {
        let nodes = place.key("nodes");
        if !nodes.within(self.nodes.len(), 2, MAX_NODES) {
            return None;
        }
        let mut seen = HashSet::new();
        for (i, name) in self.nodes.iter().enumerate() {
            if !seen.insert(name) {
                let name = name.clone();
                let duplicate = ConfigErrorKind::DuplicateNode { name };
                nodes.index(i).refuse(duplicate);
            }
        }
        let links = place.key("links");
        if self.links.len() + 1 != self.nodes.len() {
            links.refuse(ConfigErrorKind::LinkCount {
                nodes: self.nodes.len(),
                links: self.links.len(),
            });
        }
        if seen.len() != self.links.len() + 1 {
            return None;
        }
        let refuse = |(number, key, kind): Misplaced| {
            let link = links.index(number);
            key.map_or(link, |key| link.key(key)).refuse(kind);
        };
        Tree::of(self).map_err(refuse).ok()
    }
}

impl DirectionConfig {
    /// Whether a packet takes time at any time of the run. A round trip that takes none would let an endless flow send
    /// for ever at one instant.
    fn always_takes_time(&self) -> bool {
        let has_delay = |change: &ChangeConfig| change.delay_ns != Some(0);
        let delays = self.delay_ns > 0 && self.schedule.iter().all(has_delay);
        delays || self.rate_bps.is_some() || self.rate_trace.is_some()
    }

    fn validate(&self, place: &Place) {
        place.key("rate_bps").rate_if_given(self.rate_bps);
        place.key("delay_ns").within(self.delay_ns, 0, MAX_NS);
        self.queue.validate(&place.key("queue"));
        if let Some(jitter) = &self.jitter {
            jitter.validate(&place.key("jitter"));
        }
        if let Some(trace) = &self.rate_trace {
            trace.validate(&place.key("rate_trace"), self);
        }
        let serialises = self.rate_bps.is_some()
            || self.rate_trace.is_some()
            || self.schedule.iter().any(|change| change.rate_bps.is_some());
        if !serialises && !matches!(self.queue, QueueConfig::DropTail(_)) {
            let queue = self.queue.name();
            let kind = ConfigErrorKind::QueueWithoutRate { queue };
            place.key("queue").refuse(kind);
        }
        self.loss.validate_at(&place.key("loss"));
        let mut last = 0;
        for (i, change) in self.schedule.iter().enumerate() {
            let list = place.key("schedule");
            let place = list.index(i);
            place.key("at_ns").within(change.at_ns, last, MAX_NS);
            last = last.max(change.at_ns.min(MAX_NS));
            self.validate_change(&place, change);
        }
    }

    fn validate_change(&self, place: &Place, change: &ChangeConfig) {
        place.key("rate_bps").rate_if_given(change.rate_bps);
        let delay = place.key("delay_ns");
        delay.within_if_given(change.delay_ns, 0, MAX_NS);
        self.validate_overlap(&place.key("overlap_ns"), change);
        let path_stays = change.rate_bps.is_none() && change.delay_ns.is_none();
        let link_stays = change.overlap_ns.is_none() && change.outage.is_none();
        if path_stays && link_stays && change.hold.is_none() {
            place.refuse(ConfigErrorKind::ChangesNothing);
        }
    }

    fn validate_overlap(&self, place: &Place, change: &ChangeConfig) {
        let Some(overlap) = change.overlap_ns else {
            return;
        };
        place.within(overlap, 0, MAX_NS);
        if self.in_order {
            place.refuse(ConfigErrorKind::Conflicts { with: "in_order" });
        }
        if self.rate_trace.is_some() {
            place.refuse(ConfigErrorKind::Conflicts { with: "rate_trace" });
        }
    }
}

impl RateTraceConfig {
    fn validate(&self, place: &Place, direction: &DirectionConfig) {
        if direction.rate_bps.is_some() || direction.schedule.iter().any(|c| c.rate_bps.is_some()) {
            place.refuse(ConfigErrorKind::Conflicts { with: "rate_bps" });
        }
        if self.starts_ns.len() != self.rates_bps.len() {
            place.refuse(ConfigErrorKind::UnequalLengths {
                keys: ["starts_ns", "rates_bps"],
                lengths: [self.starts_ns.len(), self.rates_bps.len()],
            });
        } else if self.starts_ns.first() != Some(&0) {
            place.refuse(ConfigErrorKind::FirstNotZero);
        }
        place.key("end_ns").within(self.end_ns, 1, MAX_NS);
        let ends = self.starts_ns.iter().skip(1).chain([&self.end_ns]);
        let intervals = self.starts_ns.iter().zip(ends).enumerate();
        for (i, (&start, end)) in intervals {
            if start >= *end {
                let value = start.into();
                let starts = place.key("starts_ns");
                starts
                    .index(i)
                    .refuse(ConfigErrorKind::NotAscending { value });
                break;
            }
        }
        let rates = place.key("rates_bps");
        for (i, &bps) in self.rates_bps.iter().enumerate() {
            if bps != 0.0 && !rates.index(i).rate(bps) {
                break;
            }
        }
        if self.rates_bps.iter().all(|&bps| bps == 0.0) {
            place.refuse(ConfigErrorKind::NeverSends);
        }
    }
}

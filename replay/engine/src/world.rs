//! The run: hands over the earliest event until the end. Ties go to the lower source: link directions in the order
//! of the path, then nodes.
//!
//! Must not know TCP. Read ARCHITECTURE.md, "The engine", first.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::assembly::{Leg, Parts, build};
use crate::calendar::Calendar;
use crate::config::{Config, ConfigError};
use crate::link::{DropCause, LinkDirection, Verdict};
use crate::node::Node;
use crate::segment::{Direction, Segment};
use crate::sender::SenderSample;
use crate::summary::{FlowTally, RunSummary, summarise};
use crate::tap::{Event, Tap};
use crate::time::Nanos;

/// Events between two looks at the interrupt.
const INTERRUPT_EVERY: u32 = 4096;

/// Why a run gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The configuration makes no sense.
    Config(ConfigError),
    /// Someone asked it to stop.
    Interrupted,
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<ConfigError> for RunError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

/// A run in progress.
pub struct World<'a, T: Tap> {
    links: Vec<LinkDirection>,
    nodes: Vec<Node>,
    legs: Vec<Leg>,
    calendar: Calendar,
    tallies: Vec<FlowTally>,
    /// Last state told to the tap, by leg.
    told: Vec<Option<SenderSample>>,
    end: Nanos,
    /// Flows of a fixed size that have not finished; none if a flow is endless.
    unfinished: Option<usize>,
    tap: &'a mut T,
}

impl<'a, T: Tap> World<'a, T> {
    /// Sets up a run of `config` with `seed`.
    ///
    /// # Errors
    /// The first value that makes no sense.
    pub fn new(config: &Config, seed: u64, tap: &'a mut T) -> Result<Self, ConfigError> {
        let Parts { links, nodes, legs } = build(config, seed)?;
        let mut calendar = Calendar::new(links.len() + nodes.len());
        for (number, node) in nodes.iter().enumerate() {
            calendar.set(links.len() + number, node.next_deadline());
        }
        let tallies: Vec<_> = config.flows.iter().map(FlowTally::new).collect();
        let endless = config.flows.iter().any(|flow| flow.size_bytes.is_none());
        Ok(Self {
            told: vec![None; legs.len()],
            end: config.duration_ns,
            unfinished: (!endless).then_some(tallies.len()),
            links,
            nodes,
            legs,
            calendar,
            tallies,
            tap,
        })
    }

    /// Runs to the end, or until `interrupt` is raised.
    ///
    /// # Errors
    /// [`RunError::Interrupted`].
    pub fn run(&mut self, interrupt: &AtomicBool) -> Result<RunSummary, RunError> {
        let mut until_look = INTERRUPT_EVERY;
        while self.unfinished != Some(0) {
            let (source, now) = self.calendar.earliest();
            if now > self.end {
                break;
            }
            self.step(source, now);
            until_look -= 1;
            if until_look == 0 {
                if interrupt.load(Ordering::Relaxed) {
                    return Err(RunError::Interrupted);
                }
                until_look = INTERRUPT_EVERY;
            }
        }
        Ok(summarise(
            &self.tallies,
            &self.legs,
            &self.nodes,
            &self.links,
            self.end,
        ))
    }

    /// Introduces the tap to the legs before the run.
    pub fn introduce(&mut self, introduction: impl FnOnce(&mut T, &[Leg])) {
        introduction(self.tap, &self.legs);
    }

    /// The legs, for a tap that wants to know what the numbers in segments mean.
    pub fn legs(&self) -> &[Leg] {
        &self.legs
    }

    /// The link directions: `2 i` forward, `2 i + 1` reverse.
    pub fn links(&self) -> &[LinkDirection] {
        &self.links
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    #[inline]
    fn step(&mut self, source: usize, now: Nanos) {
        if let Some(link) = self.links.get_mut(source) {
            let segment = link.take();
            self.calendar.set(source, link.next_arrival());
            if let Some(segment) = segment {
                let site = source / 2 + usize::from(segment.direction == Direction::Forward);
                self.route(segment, site, now);
            }
        } else {
            let node = source - self.links.len();
            self.nodes[node].on_deadline(now);
            self.serve(node, now);
        }
    }

    /// Hands a segment at `site` to the node that it is for, or to the next link.
    #[inline]
    fn route(&mut self, segment: Segment, site: usize, now: Nanos) {
        let leg = &self.legs[usize::from(segment.leg)];
        let (goal, node) = match segment.direction {
            Direction::Forward => (leg.sink_site, leg.sink),
            Direction::Reverse => (leg.source_site, leg.source),
        };
        if site == goal {
            if T::LISTENS {
                self.tap.event(now, Event::Arrived(&segment));
            }
            self.nodes[node].receive(&segment, now);
            self.serve(node, now);
        } else {
            self.offer(segment, site, now);
        }
    }

    /// Sends what a node has to send, and notes when it wants to be called.
    #[inline]
    fn serve(&mut self, node: usize, now: Nanos) {
        while let Some(segment) = self.nodes[node].poll_transmit(now) {
            let leg = &self.legs[usize::from(segment.leg)];
            let site = match segment.direction {
                Direction::Forward => leg.source_site,
                Direction::Reverse => leg.sink_site,
            };
            if T::LISTENS {
                self.tap.event(now, Event::Sent(&segment));
            }
            self.offer(segment, site, now);
        }
        let at = self.links.len() + node;
        self.calendar.set(at, self.nodes[node].next_deadline());
        if T::LISTENS {
            self.tell_state(node, now);
        }
        if let Node::Sink(receiver) = &self.nodes[node] {
            let flow = self.legs[usize::from(receiver.leg())].flow;
            if self.tallies[flow].finishes(receiver, now, self.end) {
                self.unfinished = self.unfinished.map(|flows| flows - 1);
            }
        }
    }

    #[inline]
    fn offer(&mut self, segment: Segment, site: usize, now: Nanos) {
        let number = match segment.direction {
            Direction::Forward => 2 * site,
            Direction::Reverse => 2 * (site - 1) + 1,
        };
        let link = &mut self.links[number];
        let before = link.next_arrival();
        match link.offer(segment, now) {
            Verdict::Passed => {
                let first = link.next_arrival();
                if first != before {
                    self.calendar.set(number, first);
                }
            }
            Verdict::Dropped(cause) => self.note_drop(&segment, number, cause, now),
        }
    }

    #[cold]
    fn note_drop(&mut self, segment: &Segment, number: usize, cause: DropCause, now: Nanos) {
        let flow = self.legs[usize::from(segment.leg)].flow;
        self.tallies[flow].note_drop(segment, cause);
        if T::LISTENS {
            self.tap.event(
                now,
                Event::Dropped {
                    link: number / 2,
                    cause,
                    segment,
                },
            );
        }
    }

    fn tell_state(&mut self, node: usize, now: Nanos) {
        let Some(sender) = self.nodes[node].sender() else {
            return;
        };
        if sender.established_at().is_none() {
            return;
        }
        let (leg, sample) = (sender.leg(), sender.sample());
        let told = &mut self.told[usize::from(leg)];
        if told.as_ref().is_none_or(|last| last.differs(&sample)) {
            *told = Some(sample);
            self.tap.event(
                now,
                Event::State {
                    leg,
                    sample: &sample,
                },
            );
        }
    }
}

/// Runs `config` with `seed` to its end without a listener.
///
/// # Errors
/// The first value of the configuration that makes no sense.
pub fn run(config: &Config, seed: u64) -> Result<RunSummary, RunError> {
    World::new(config, seed, &mut ())?.run(&AtomicBool::new(false))
}

//! The run: hands over the earliest event until the end. Ties go to the lower source: link directions in the order
//! of the path, then nodes.
//!
//! Must not know TCP. Read ARCHITECTURE.md, "The engine", first.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::arena::{Arena, Ticket};
use crate::assembly::{Leg, Parts, build};
use crate::calendar::Calendar;
use crate::config::{Config, ConfigError, FlowConfig};
use crate::link::{DropCause, LinkDirection, Passage};
use crate::node::Node;
use crate::segment::Segment;
use crate::sender::Headline;
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

/// The way of the segments of a leg in one direction.
#[derive(Clone, Copy, Debug)]
struct Route {
    /// Link directions on which it begins and ends.
    first: usize,
    last: usize,
    /// Node that it leads to.
    node: usize,
    /// What its packets are marked with.
    dscp: u8,
}

impl Route {
    /// The ways there and back of a leg. Link `i` leads from place `i` to place `i + 1`; forward directions have even
    /// numbers.
    fn both(leg: &Leg) -> [Self; 2] {
        let (from, to) = (leg.source_site, leg.sink_site);
        let there = Self {
            first: 2 * from,
            last: 2 * to - 2,
            node: leg.sink,
            dscp: leg.dscp,
        };
        let back = Self {
            first: 2 * to - 1,
            last: 2 * from + 1,
            node: leg.source,
            ..there
        };
        [there, back]
    }

    /// Number of the way that a segment takes.
    #[inline]
    fn number(segment: &Segment) -> usize {
        2 * usize::from(segment.leg) + segment.direction as usize
    }
}

/// A run in progress.
pub struct World<'a, T: Tap> {
    links: Vec<LinkDirection>,
    nodes: Vec<Node>,
    legs: Vec<Leg>,
    /// Ways of segments, by [`Route::number`].
    routes: Vec<Route>,
    arena: Arena,
    /// The slot into which the next segment is written.
    spare: Ticket,
    /// By link direction: what leaves it is all that the next one takes, in the same order.
    runs_on: Vec<bool>,
    calendar: Calendar,
    tallies: Vec<FlowTally>,
    /// Node that sends the data, by flow.
    sources: Vec<usize>,
    /// Flow of each node.
    flows: Vec<usize>,
    /// Last state told to the tap, by leg.
    told: Vec<Option<Headline>>,
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
        let sources = legs
            .iter()
            .filter(|leg| leg.index == 0)
            .map(|leg| leg.source)
            .collect();
        let flows = config.flows.iter().map(|flow| flow.start_ns);
        let datagrams = config.datagrams.iter().map(|datagrams| datagrams.start_ns);
        let tallies: Vec<_> = flows.chain(datagrams).map(FlowTally::new).collect();
        let mut arena = Arena::default();
        let endless = config.flows.iter().any(FlowConfig::is_endless);
        Ok(Self {
            told: vec![None; legs.len()],
            runs_on: runs_on(&links, &legs),
            routes: legs.iter().flat_map(Route::both).collect(),
            flows: flows_of(&legs, nodes.len()),
            spare: arena.take(),
            arena,
            end: config.duration_ns,
            unfinished: (!endless).then_some(config.flows.len()),
            links,
            nodes,
            legs,
            calendar,
            tallies,
            sources,
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

    /// Segments that are on their way.
    pub fn in_flight(&self) -> impl Iterator<Item = &Segment> + '_ {
        let tickets = self.links.iter().flat_map(LinkDirection::in_flight);
        tickets.map(|ticket| self.arena.segment(ticket))
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    #[inline]
    fn step(&mut self, source: usize, now: Nanos) {
        if let Some(link) = self.links.get_mut(source) {
            if link.serves(now) {
                return self.release(source, now);
            }
            let ticket = link.take();
            self.calendar.set(source, link.next_event());
            if let Some(ticket) = ticket {
                self.hand_over(ticket, source, now);
            }
        } else {
            let node = source - self.links.len();
            self.nodes[node].on_deadline(now);
            self.serve(node, now);
        }
    }

    /// Hands a segment that comes out of link direction `number` to the node that it is for, or to the next link.
    #[inline]
    fn hand_over(&mut self, ticket: Ticket, number: usize, now: Nanos) {
        let segment = self.arena.segment(ticket);
        let route = self.routes[Route::number(segment)];
        if number != route.last {
            return self.travel(ticket, route, next_link(number), now);
        }
        if T::LISTENS {
            self.tap.event(now, Event::Arrived(segment));
        }
        self.nodes[route.node].receive(segment, now);
        self.arena.free(ticket);
        self.serve(route.node, now);
    }

    /// Sends what a node has to send, and notes when it wants to be called.
    #[inline]
    fn serve(&mut self, node: usize, now: Nanos) {
        while self.nodes[node].transmit(now, self.arena.slot(self.spare)) {
            let ticket = self.spare;
            let segment = self.arena.slot(ticket);
            let route = self.routes[Route::number(segment)];
            segment.dscp = route.dscp;
            if T::LISTENS {
                self.tap.event(now, Event::Sent(segment));
            }
            self.spare = self.arena.take();
            self.travel(ticket, route, route.first, now);
        }
        let at = self.links.len() + node;
        self.calendar.set(at, self.nodes[node].next_deadline());
        if T::LISTENS {
            self.tell_state(node, now);
        }
        self.account(node, now);
    }

    /// If data may have reached its end at `node`: how long they took, and whether they were the last.
    #[inline]
    fn account(&mut self, node: usize, now: Nanos) {
        // A flow's nodes stand in the order of the path.
        let (before, after) = self.nodes.split_at_mut(node);
        let Node::Sink(sink) = &after[0] else {
            return;
        };
        let flow = self.flows[node];
        if self.tallies[flow].finishes(sink, now, self.end) {
            self.unfinished = self.unfinished.map(|flows| flows - 1);
        }
        if let Node::Source(source) = &mut before[self.sources[flow]] {
            let receiver = sink.receiver();
            source.note_arrived(receiver.rcv_nxt(), |end| receiver.read_at(end, now));
        }
    }

    /// Sends a segment over link direction `number` and on. Over a place where nobody joins, the order in which one
    /// link delivers is the order in which the next one takes, so both are worked out at once and cost one event.
    #[inline]
    fn travel(&mut self, ticket: Ticket, route: Route, mut number: usize, mut now: Nanos) {
        loop {
            let segment = self.arena.slot(ticket);
            let arrival = match self.links[number].pass(ticket, segment, now) {
                Passage::Arrives(arrival) => arrival,
                passage => match self.settle(ticket, number, passage, now) {
                    Passage::Arrives(arrival) => arrival,
                    _ => return,
                },
            };
            if number == route.last || !self.runs_on[number] {
                if let Some(arrival) = self.links[number].launch(ticket, arrival) {
                    self.calendar.set(number, arrival);
                }
                return;
            }
            (number, now) = (next_link(number), arrival);
        }
    }

    /// The serialiser behind a queue that is asked for packets is idle: asks, and sends on what comes.
    #[cold]
    fn release(&mut self, number: usize, now: Nanos) {
        let released = self.links[number].release(&mut self.arena, now);
        self.note_given_up(number, now);
        if let Some((ticket, passage)) = released {
            let passage = self.settle(ticket, number, passage, now);
            if let Passage::Arrives(arrival) = passage {
                self.links[number].launch(ticket, arrival);
            }
        }
        self.calendar.set(number, self.links[number].next_event());
    }

    /// Notes what a link did to a segment besides letting it pass; a marked one arrives like any other.
    #[cold]
    fn settle(&mut self, ticket: Ticket, number: usize, passage: Passage, now: Nanos) -> Passage {
        match passage {
            Passage::Arrives(_) => {}
            Passage::Marked(arrival) => {
                self.note_mark(ticket, number, now);
                return Passage::Arrives(arrival);
            }
            Passage::Lost(cause) => self.note_drop(ticket, number, cause, now),
            Passage::Waits => {
                self.note_given_up(number, now);
                self.calendar.set(number, self.links[number].next_event());
            }
        }
        passage
    }

    /// Notes the packets that a queue took and gave up.
    fn note_given_up(&mut self, number: usize, now: Nanos) {
        while let Some((ticket, cause)) = self.links[number].take_dropped() {
            self.note_drop(ticket, number, cause, now);
        }
    }

    fn note_mark(&mut self, ticket: Ticket, number: usize, now: Nanos) {
        let segment = self.arena.segment(ticket);
        let flow = self.legs[usize::from(segment.leg)].flow;
        if now <= self.end {
            self.tallies[flow].note_mark();
        }
        if T::LISTENS {
            let link = number / 2;
            self.tap.event(now, Event::Marked { link, segment });
        }
    }

    #[cold]
    fn note_drop(&mut self, ticket: Ticket, number: usize, cause: DropCause, now: Nanos) {
        let segment = self.arena.segment(ticket);
        let flow = self.legs[usize::from(segment.leg)].flow;
        // Worked out ahead: what would happen after the end does not happen.
        if now <= self.end {
            self.tallies[flow].note_drop(segment, cause);
        }
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
        self.arena.free(ticket);
    }

    fn tell_state(&mut self, node: usize, now: Nanos) {
        let Some(sender) = self.nodes[node].sender() else {
            return;
        };
        if sender.established_at().is_none() {
            return;
        }
        let (leg, headline) = (sender.leg(), sender.headline());
        let told = &mut self.told[usize::from(leg)];
        if told.as_ref() != Some(&headline) {
            *told = Some(headline);
            let sample = &sender.sample();
            self.tap.event(now, Event::State { leg, sample });
        }
    }
}

/// The flow that each node belongs to.
fn flows_of(legs: &[Leg], nodes: usize) -> Vec<usize> {
    let mut flows = vec![0; nodes];
    for leg in legs {
        (flows[leg.source], flows[leg.sink]) = (leg.flow, leg.flow);
    }
    flows
}

/// The link direction that leads on from the far end of `number`: forward ones are even.
#[inline]
fn next_link(number: usize) -> usize {
    if number % 2 == 0 {
        number + 2
    } else {
        number.wrapping_sub(2)
    }
}

/// Which link directions lead over their far end without anyone joining there.
fn runs_on(links: &[LinkDirection], legs: &[Leg]) -> Vec<bool> {
    let joined = |number: usize| {
        let site = number / 2;
        legs.iter().any(|leg| match number % 2 {
            0 => leg.source_site == site + 1,
            _ => leg.sink_site == site,
        })
    };
    let numbered = links.iter().enumerate();
    numbered
        .map(|(number, link)| {
            // A queue that is asked for packets must get them at their own time.
            let next = links.get(next_link(number));
            let ahead = next.is_some_and(|next| !next.is_scheduled());
            ahead && !link.is_scheduled() && link.keeps_order() && !joined(number)
        })
        .collect()
}

/// Runs `config` with `seed` to its end without a listener.
///
/// # Errors
/// The first value of the configuration that makes no sense.
pub fn run(config: &Config, seed: u64) -> Result<RunSummary, RunError> {
    World::new(config, seed, &mut ())?.run(&AtomicBool::new(false))
}

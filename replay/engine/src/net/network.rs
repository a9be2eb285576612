//! The links of a run: their directions, the segments on their way over them, and the calendar of what happens next.
//!
//! Does not depend on what a node is beyond [`Endpoint`], nor TCP. Read `link` first.

mod lane;
mod onward;

use super::link::{DropCause, FastOutcome, Flight, LinkDirection, LinkOutcome};
use crate::sim::assembly::Leg;
use crate::sim::calendar::Calendar;
use crate::sim::node::{Endpoint, Sent};
use crate::sim::packet_pool::{PacketHandle, PacketPool, RoutedPacket};
use crate::sim::summary::FlowTally;
use crate::sim::time::Nanos;
use crate::sim::trace::{Event, Tap};
use crate::tcp::segment::{Segment, flags};
use onward::Onward;

/// The way of the segments of a leg in one direction.
#[derive(Clone, Copy, Debug)]
struct Route {
    /// Link directions on which it begins and ends.
    first: usize,
    last: usize,
    /// Node that it leads to.
    node: usize,
    /// Flow that its packets belong to.
    flow: usize,
    /// What they are marked with.
    dscp: u8,
}

impl Route {
    /// The ways there and back of a leg, over the link directions `way` and over their opposites, whose numbers differ in the
    /// last bit.
    fn both(leg: &Leg, way: &[usize]) -> [Self; 2] {
        let (first, last) = (
            way.first().copied().unwrap_or(0),
            way.last().copied().unwrap_or(0),
        );
        let there = Self {
            first,
            last,
            node: leg.sink,
            flow: leg.flow,
            dscp: leg.dscp,
        };
        let back = Self {
            first: last ^ 1,
            last: first ^ 1,
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

/// A segment that is to travel, with what the links ask of it.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    packet: RoutedPacket,
    /// Link directions on which its way begins and ends.
    first: usize,
    last: usize,
    ip_bytes: u16,
    carries_data: bool,
    /// One past the last octet of its payload.
    pub end: u64,
}

impl Outgoing {
    /// `segment`, in slot `handle`, on `route`, the way of this number.
    #[inline]
    fn new(handle: PacketHandle, segment: &Segment, (number, route): (usize, &Route)) -> Self {
        Self {
            packet: RoutedPacket::new(handle, number as u32),
            first: route.first,
            last: route.last,
            ip_bytes: segment.ip_bytes,
            carries_data: segment.payload_bytes > 0,
            end: segment.end(),
        }
    }
}

/// How far the fast path took a segment.
enum Reach {
    /// Over link direction `number`, whose far end is its end or a place where others join.
    Over { number: usize, arrival: Nanos },
    /// To link direction `number`, where it did not go on.
    Before {
        number: usize,
        now: Nanos,
        outcome: FastOutcome,
    },
}

/// A segment that has come to the node that it is for.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// The node.
    pub node: usize,
    /// The segment, whose slot is the receiver's to free.
    pub handle: PacketHandle,
}

/// The path with all that is on it.
pub struct Network<'a, T: Tap> {
    links: Vec<LinkDirection>,
    /// Ways of segments, by [`Route::number`].
    routes: Vec<Route>,
    /// What follows on each link direction.
    onward: Onward,
    pool: PacketPool,
    /// The slot into which the next segment is written.
    spare: PacketHandle,
    calendar: Calendar,
    /// Link directions that are not in the calendar (see `lane`), there and back; [`NO_LINK`] for none.
    lane: usize,
    lane_back: usize,
    tallies: Vec<FlowTally>,
    end: Nanos,
    tap: &'a mut T,
}

const NO_LINK: usize = usize::MAX;

impl<'a, T: Tap> Network<'a, T> {
    /// `links` that `legs` use, each over its way, with `nodes` nodes on them. What happens after `end` counts for nothing.
    pub fn new(
        mut links: Vec<LinkDirection>,
        (legs, ways): (&[Leg], &[Vec<usize>]),
        nodes: usize,
        (tallies, end): (Vec<FlowTally>, Nanos),
        tap: &'a mut T,
    ) -> Self {
        let onward = Onward::of(links.len(), ways);
        let ahead: Vec<Option<u32>> = (0..links.len())
            .map(|number| onward.ahead(number, &links))
            .collect();
        for (link, ahead) in links.iter_mut().zip(ahead) {
            link.onward = ahead;
        }
        let mut pool = PacketPool::default();
        let pairs = legs.iter().zip(ways);
        Self {
            calendar: Calendar::new(links.len() + nodes),
            lane: NO_LINK,
            lane_back: NO_LINK,
            links,
            routes: pairs.flat_map(|(leg, way)| Route::both(leg, way)).collect(),
            onward,
            spare: pool.take(),
            pool,
            tallies,
            end,
            tap,
        }
    }

    /// The link directions.
    pub fn links(&self) -> &[LinkDirection] {
        &self.links
    }

    /// What has been counted of each flow.
    pub fn tallies(&self) -> &[FlowTally] {
        &self.tallies
    }

    /// What has been counted of flow number `flow`.
    #[inline]
    pub fn tally(&mut self, flow: usize) -> &mut FlowTally {
        &mut self.tallies[flow]
    }

    /// The listener.
    pub fn tap(&mut self) -> &mut T {
        self.tap
    }

    /// Segments that are on their way.
    pub fn in_flight(&self) -> impl Iterator<Item = &Segment> + '_ {
        let handles = self.links.iter().flat_map(LinkDirection::in_flight);
        handles.map(|handle| self.pool.segment(handle))
    }

    /// What happens next, and when: of a link direction by its number, or of a node by its number behind those.
    #[inline]
    pub fn next(&self) -> (usize, Nanos) {
        let scheduled = self.calendar.earliest();
        match self.links.get(self.lane_back) {
            Some(link) if (link.next_event(), self.lane_back) < (scheduled.1, scheduled.0) => {
                (self.lane_back, link.next_event())
            }
            _ => scheduled,
        }
    }

    /// Notes when a node needs to be called.
    #[inline]
    pub fn call(&mut self, node: usize, deadline: Nanos) {
        self.calendar.set(self.links.len() + node, deadline);
    }

    /// It is time for link direction `number`: a segment leaves it, perhaps for a node, or its queue is asked for one.
    #[inline]
    pub fn turn(&mut self, number: usize, now: Nanos) -> Option<Delivery> {
        let link = &mut self.links[number];
        if link.serves(now) {
            self.release(number, now);
            return None;
        }
        let flight = link.take();
        if number != self.lane_back {
            self.calendar.set(number, link.next_event());
        }
        let packet = flight?.packet;
        let Route { last, node, .. } = self.routes[packet.route() as usize];
        if number != last {
            let next = self.onward.next(number, packet.route() as usize);
            self.travel(packet, next, now);
            return None;
        }
        let handle = packet.handle();
        self.notify_arrival(handle, now);
        Some(Delivery { node, handle })
    }

    #[inline]
    fn notify_arrival(&mut self, handle: PacketHandle, now: Nanos) {
        if T::LISTENS {
            let segment = self.pool.segment(handle);
            self.tap.event(now, Event::Arrived(segment));
        }
    }

    /// Hands what has come to node number `node`, whose end is `end`, or calls it at its deadline; sends what it
    /// has to send and notes when it needs to be called.
    #[inline]
    pub fn exchange(
        &mut self,
        end: &mut impl Endpoint,
        node: usize,
        came: Option<PacketHandle>,
        now: Nanos,
    ) {
        self.serve(end, came, now);
        self.call(node, end.next_deadline());
    }

    /// Like `exchange`, without that note.
    #[inline]
    pub fn serve(&mut self, end: &mut impl Endpoint, came: Option<PacketHandle>, now: Nanos) {
        self.hand(end, came, now);
        self.send_all(end, came, now);
    }

    /// Hands what has come to `end`, or calls it at its deadline.
    #[inline(always)]
    pub fn hand(&mut self, end: &mut impl Endpoint, came: Option<PacketHandle>, now: Nanos) {
        match came {
            Some(handle) => end.receive(self.pool.segment(handle), now),
            None => end.on_deadline(now),
        }
    }

    /// Sends what `end` has to send; `free` is a slot that is no longer needed.
    #[inline(always)]
    pub fn send_all(
        &mut self,
        end: &mut impl Endpoint,
        mut free: Option<PacketHandle>,
        now: Nanos,
    ) {
        while let Some((outgoing, last)) = self.write(end, &mut free, now) {
            self.go(&outgoing, outgoing.first, now);
            if last {
                break;
            }
        }
        self.free(free);
    }

    /// Lets `end` write its next segment, if it has one, into the spare slot, which `free` then takes the place of. Says
    /// where it goes, and whether it is the last one now.
    #[inline(always)]
    pub fn write(
        &mut self,
        end: &mut impl Endpoint,
        free: &mut Option<PacketHandle>,
        now: Nanos,
    ) -> Option<(Outgoing, bool)> {
        let segment = self.pool.slot(self.spare);
        let sent = end.transmit(now, segment);
        if sent == Sent::Nothing {
            return None;
        }
        let number = Route::number(segment);
        let route = &self.routes[number];
        // A segment of low priority keeps its own.
        if !segment.has(flags::DUMMY) {
            segment.dscp = route.dscp;
        }
        let outgoing = Outgoing::new(self.spare, segment, (number, route));
        if T::LISTENS {
            self.tap.event(now, Event::Sent(segment));
        }
        self.spare = free.take().unwrap_or_else(|| self.pool.take());
        Some((outgoing, sent == Sent::Last))
    }

    /// Gives back a slot that nothing was written into.
    #[inline]
    pub fn free(&mut self, free: Option<PacketHandle>) {
        if let Some(handle) = free {
            self.pool.free(handle);
        }
    }

    /// Sends a segment over link direction `number` and on.
    #[inline(never)]
    fn travel(&mut self, packet: RoutedPacket, number: usize, now: Nanos) {
        let (handle, route) = (packet.handle(), packet.route() as usize);
        let segment = self.pool.segment(handle);
        let outgoing = Outgoing::new(handle, segment, (route, &self.routes[route]));
        self.go(&outgoing, number, now);
    }

    #[inline(always)]
    fn go(&mut self, outgoing: &Outgoing, number: usize, now: Nanos) {
        let packet = outgoing.packet;
        match self.pass_on(outgoing, number, now) {
            Reach::Over { number, arrival } => self.launch(number, Flight { arrival, packet }),
            Reach::Before {
                number,
                now,
                outcome,
            } => self.travel_on(packet, (number, outcome), now),
        }
    }

    /// The fast path over link direction `number` and on. Over a place where nobody joins, the order in which one link
    /// delivers is the order in which the next one takes, so both are worked out at once and cost one event.
    #[inline(always)]
    fn pass_on(&mut self, outgoing: &Outgoing, mut number: usize, mut now: Nanos) -> Reach {
        let &Outgoing {
            last,
            ip_bytes,
            carries_data,
            ..
        } = outgoing;
        loop {
            let link = &mut self.links[number];
            let outcome = link.pass_fast(ip_bytes, carries_data, now);
            let FastOutcome::Arrives(arrival) = outcome else {
                return Reach::Before {
                    number,
                    now,
                    outcome,
                };
            };
            match link.onward {
                Some(onward) if number != last => (number, now) = (onward as usize, arrival),
                _ => return Reach::Over { number, arrival },
            }
        }
    }

    /// Lets a segment fly over link direction `number`.
    #[inline(always)]
    fn launch(&mut self, number: usize, flight: Flight) {
        let first = self.links[number].launch(flight);
        if let Some(next) = first.filter(|_| number != self.lane && number != self.lane_back) {
            self.calendar.set(number, next);
        }
    }

    /// The way on from link direction `number`, which the fast path did not take.
    #[inline(never)]
    fn travel_on(
        &mut self,
        packet: RoutedPacket,
        (number, outcome): (usize, FastOutcome),
        now: Nanos,
    ) {
        let handle = packet.handle();
        let segment = self.pool.slot(handle);
        let link = &mut self.links[number];
        let outcome = match outcome {
            FastOutcome::Arrives(arrival) => LinkOutcome::Arrives(arrival),
            FastOutcome::Lost => LinkOutcome::Lost(DropCause::Channel),
            FastOutcome::Unknown => link.pass(handle, segment, now),
        };
        let LinkOutcome::Arrives(arrival) = self.settle(handle, number, outcome, now) else {
            return;
        };
        let last = self.routes[packet.route() as usize].last;
        if let Some(onward) = self.links[number].onward.filter(|_| number != last) {
            return self.travel(packet, onward as usize, arrival);
        }
        self.launch(number, Flight { arrival, packet });
    }

    /// The serialiser behind a queue that is asked for packets is idle: asks, and sends on what comes.
    #[cold]
    fn release(&mut self, number: usize, now: Nanos) {
        let released = self.links[number].release(&mut self.pool, now);
        self.note_given_up(number, now);
        if let Some((handle, outcome)) = released {
            let outcome = self.settle(handle, number, outcome, now);
            if let LinkOutcome::Arrives(arrival) = outcome {
                let route = Route::number(self.pool.segment(handle)) as u32;
                let packet = RoutedPacket::new(handle, route);
                self.links[number].launch(Flight { arrival, packet });
            }
        }
        self.calendar.set(number, self.links[number].next_event());
    }

    /// Notes a mark or a drop of a segment by a link; a marked one arrives like any other.
    #[inline]
    fn settle(
        &mut self,
        handle: PacketHandle,
        number: usize,
        outcome: LinkOutcome,
        now: Nanos,
    ) -> LinkOutcome {
        match outcome {
            LinkOutcome::Arrives(_) => {}
            LinkOutcome::Marked(arrival) => {
                self.note_mark(handle, number, now);
                return LinkOutcome::Arrives(arrival);
            }
            LinkOutcome::Lost(cause) => self.note_drop(handle, number, cause, now),
            LinkOutcome::Waits => {
                self.note_given_up(number, now);
                self.calendar.set(number, self.links[number].next_event());
            }
        }
        outcome
    }

    /// Notes the packets that a queue took and gave up.
    fn note_given_up(&mut self, number: usize, now: Nanos) {
        while let Some((handle, cause)) = self.links[number].take_dropped() {
            self.note_drop(handle, number, cause, now);
        }
    }

    fn note_mark(&mut self, handle: PacketHandle, number: usize, now: Nanos) {
        let segment = self.pool.segment(handle);
        let flow = self.routes[Route::number(segment)].flow;
        if now <= self.end {
            self.tallies[flow].note_mark();
        }
        if T::LISTENS {
            let link = number / 2;
            self.tap.event(now, Event::Marked { link, segment });
        }
    }

    #[cold]
    fn note_drop(&mut self, handle: PacketHandle, number: usize, cause: DropCause, now: Nanos) {
        let segment = self.pool.segment(handle);
        let flow = self.routes[Route::number(segment)].flow;
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
        self.pool.free(handle);
    }
}

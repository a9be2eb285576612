//! The lane: the path of a run's only connection. The receiving end takes segments from it ahead of their arrival (see
//! `world::ahead`), and the sending end takes the ACKs from it one after another.
//!
//! Does not depend on what either end does with them.

use super::{NO_LINK, Network, Outgoing, Reach};
use crate::net::link::Flight;
use crate::sim::node::Endpoint;
use crate::sim::packet_pool::PacketHandle;
use crate::sim::time::{NEVER, Nanos};
use crate::sim::trace::Tap;
use crate::tcp::segment::Segment;

impl<T: Tap> Network<'_, T> {
    /// Whether segments over `way` arrive in the order in which they are sent, at times that are known when they are sent, and
    /// whether its ACKs may be put on their links early, because no other traffic uses these.
    pub fn is_foreseeable(&self, way: &[usize]) -> bool {
        let Some((&last, before)) = way.split_last() else {
            return false;
        };
        let scheduled = |number: usize| self.links[number].is_scheduled();
        before
            .iter()
            .all(|&number| self.links[number].onward.is_some())
            && self.links[last].keeps_order()
            && !way
                .iter()
                .any(|&number| scheduled(number) || scheduled(number ^ 1))
    }

    /// Opens the lane: from now on the caller takes the segments of the only leg ahead of their arrival, and may take the ACKs one
    /// after another.
    pub fn open_lane(&mut self) {
        let [there, back] = [self.routes[0].last, self.routes[1].last];
        (self.lane, self.lane_back) = (there, back);
        self.calendar.set(self.lane_back, NEVER);
    }

    /// Closes the lane.
    pub fn close_lane(&mut self) {
        for lane in [&mut self.lane, &mut self.lane_back] {
            let number = std::mem::replace(lane, NO_LINK);
            self.calendar.set(number, self.links[number].next_event());
        }
    }

    /// Takes the next ACK if it arrives before `time`, before any other event and before the end of the run. Returns its
    /// arrival time.
    #[inline(always)]
    pub fn take_answer(&mut self, time: Nanos) -> Option<(PacketHandle, Nanos)> {
        let before = self.next_reported().min(time);
        let link = self.links.get_mut(self.lane_back)?;
        let Flight { arrival, packet } = link.take_before(before)?;
        let handle = packet.handle();
        self.notify_arrival(handle, arrival);
        Some((handle, arrival))
    }

    /// The time of the next event in the calendar, or of the end of the run.
    #[inline]
    pub fn next_reported(&self) -> Nanos {
        let (_, time) = self.calendar.earliest();
        time.min(self.end + 1)
    }

    /// Whether the lane is open.
    #[inline]
    pub fn has_lane(&self) -> bool {
        self.lane != NO_LINK
    }

    /// Sends a segment that has just been written over the lane; if nothing that was sent before is still on it, the
    /// segment itself is not, but in the hands of the one who takes it: at its time, or puts it on the lane.
    #[inline(always)]
    pub fn send_over_lane(&mut self, outgoing: &Outgoing, now: Nanos) -> Option<Flight> {
        let packet = outgoing.packet;
        match self.pass_on(outgoing, outgoing.first, now) {
            Reach::Over { number, arrival } => {
                let flight = Flight { arrival, packet };
                if number == self.lane && self.links[number].is_clear() {
                    return Some(flight);
                }
                self.launch(number, flight);
            }
            Reach::Before {
                number,
                now,
                outcome,
            } => self.travel_on(packet, (number, outcome), now),
        }
        None
    }

    /// Puts on the lane what was not taken ahead of its time.
    pub fn put_on_lane(&mut self, flight: Flight) {
        self.links[self.lane].launch(flight);
    }

    /// Hands to `end` what came over the lane, but was not put on it.
    #[inline(always)]
    pub fn hand_from_lane(&mut self, end: &mut impl Endpoint, flight: Flight) -> PacketHandle {
        let handle = flight.packet.handle();
        self.notify_arrival(handle, flight.arrival);
        end.receive(self.pool.segment(handle), flight.arrival);
        handle
    }

    /// Whether something is on the lane.
    #[inline]
    pub fn lane_is_clear(&self) -> bool {
        self.links[self.lane].is_clear()
    }

    /// What arrives next over the lane, and when.
    #[inline]
    pub fn first_on_lane(&self) -> Option<(&Segment, Nanos)> {
        let flight = self.links[self.lane].first()?;
        Some((self.pool.segment(flight.packet.handle()), flight.arrival))
    }

    /// Takes it.
    #[inline]
    pub fn take_from_lane(&mut self) -> Option<PacketHandle> {
        let flight = self.links[self.lane].take()?;
        let handle = flight.packet.handle();
        self.notify_arrival(handle, flight.arrival);
        Some(handle)
    }

    /// Notes when what is left on the lane arrives.
    pub fn call_lane(&mut self) {
        self.calendar
            .set(self.lane, self.links[self.lane].next_event());
    }
}

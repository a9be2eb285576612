//! The events of a run, passed to a tap as they happen. The unit tap `()` ignores them, at no cost.
//!
//! Does not depend on what a tap does with them. A drop is reported when the packet reaches the link that will drop it.

use super::assembly::Leg;
use super::time::Nanos;
use crate::net::link::DropCause;
use crate::tcp::segment::Segment;
use crate::tcp::sender::SenderSample;

/// An event of a run.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// An endpoint or proxy sent a segment.
    Sent(&'a Segment),
    /// A segment arrived at the endpoint or proxy that it was for.
    Arrived(&'a Segment),
    /// A link lost a packet.
    Dropped {
        /// Number of the link on the path.
        link: usize,
        /// Why.
        cause: DropCause,
        /// The packet.
        segment: &'a Segment,
    },
    /// A queue marked a packet: congestion experienced.
    Marked {
        /// Number of the link on the path.
        link: usize,
        /// The packet.
        segment: &'a Segment,
    },
    /// The state of a leg's sender changed.
    State {
        /// The leg.
        leg: u16,
        /// Its state now.
        sample: &'a SenderSample,
    },
}

/// A listener.
pub trait Tap {
    /// Whether it listens at all; a constant, so that a run without listener compiles to one.
    const LISTENS: bool = true;

    /// Whether it needs the events at receiving ends in the order of the run. If not, it may get those,
    /// and of what links do to acknowledgements, ahead of the rest; and the run is faster.
    const FOLLOWS_RECEIVERS: bool = true;

    /// Called for each event, in the order of the run (but see `FOLLOWS_RECEIVERS`).
    fn event(&mut self, now: Nanos, event: Event<'_>);

    /// Called when leg number `number`, to which it was introduced, has become a part of another connection.
    fn leg_changes(&mut self, _number: u16, _leg: &Leg) {}
}

impl Tap for () {
    const LISTENS: bool = false;
    const FOLLOWS_RECEIVERS: bool = false;

    fn event(&mut self, _now: Nanos, _event: Event<'_>) {}
}

/// Two that listen to one run.
impl<A: Tap, B: Tap> Tap for (A, B) {
    const LISTENS: bool = A::LISTENS || B::LISTENS;
    const FOLLOWS_RECEIVERS: bool = A::FOLLOWS_RECEIVERS || B::FOLLOWS_RECEIVERS;

    fn event(&mut self, now: Nanos, event: Event<'_>) {
        self.0.event(now, event);
        self.1.event(now, event);
    }

    fn leg_changes(&mut self, number: u16, leg: &Leg) {
        self.0.leg_changes(number, leg);
        self.1.leg_changes(number, leg);
    }
}

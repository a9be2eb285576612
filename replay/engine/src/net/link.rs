//! One direction of a link: queue and serialiser, then loss, then propagation. Where the queue allows it (see `queue`),
//! each packet's whole way is worked out when it arrives: nothing later can change it.
//!
//! Does not depend on TCP: it sees sizes, marks and whether there is payload. Read the link model in `docs/scenario.md`
//! first: loss strikes after serialisation, so a lost packet has used the link.

use hindflight_kernels::{LossProcess, StreamRng};

use super::handover::{DrainingLink, LinkHandovers};
use super::jitter::Jitter;
use super::queue::{Arrival, Dropped, Queue, Verdict, Waiting};
use super::serialiser::{Epoch, Serialiser};
use crate::config::{DirectionConfig, LossScope};
use crate::sim::packet_pool::{PacketHandle, PacketPool, RoutedPacket};
use crate::sim::ring::Ring;
use crate::sim::time::{NEVER, Nanos};
use crate::tcp::segment::{Ecn, Segment};

/// Of a link over which no packet takes the short way.
const SLOW_PATH: (Nanos, Nanos) = (NEVER, 0);

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue was full.
    Queue,
    /// The queue's management dropped it before the queue was full.
    Aqm,
    /// The loss process.
    Channel,
    /// The link was down.
    Outage,
}

/// A packet in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight {
    /// When it arrives at the far end.
    pub arrival: Nanos,
    /// Its slot, and its way for the one who takes it.
    pub packet: RoutedPacket,
}

/// What the short way of a packet over a link comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// It arrives at the far end.
    Arrives(Nanos),
    /// The loss process took it.
    Lost,
    /// The long way has to find out, and nothing has been done.
    Unknown,
}

/// What becomes of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It arrives at the far end.
    Arrives(Nanos),
    /// It arrives there, and the queue has marked it.
    Marked(Nanos),
    /// It waits for a service that is not decided yet.
    Waits,
    /// It never arrives.
    Lost(DropCause),
}

/// One direction of one link.
pub struct LinkDirection {
    serialiser: Serialiser,
    queue: Queue,
    /// When a queue that is asked for packets will be asked next, and that or the one of a former link.
    next_service: Nanos,
    next_ask: Nanos,
    /// Packets that such a queue gave up since the run last asked.
    dropped: Dropped,
    loss: LossProcess,
    /// Whether it strikes what carries no data, and what does.
    strikes: [bool; 2],
    loss_applies_to: LossScope,
    in_order: bool,
    jitter: Option<Jitter>,
    /// Latest arrival, kept where the delay changes.
    last_arrival: Nanos,
    /// Packets in flight by time of arrival, and the latest such time so far.
    flying: Ring<Flight>,
    latest: Nanos,
    /// Links that take over from this one, and those before it that still serve what they had.
    handovers: LinkHandovers,
    /// Something may add to a delay: a repair, jitter.
    adds_delay: bool,
    /// Where a packet may take the short way: a service that begins at or after the first time, an arrival before the
    /// second.
    plain: (Nanos, Nanos),
    /// The next one, if what leaves this one is all that it takes, in the same order; for the one who knows the path.
    pub onward: Option<u32>,
}

impl LinkDirection {
    /// Builds the direction; `loss` is its process, `rng` the stream of its queue.
    pub fn new(config: &DirectionConfig, loss: LossProcess, rng: StreamRng) -> Self {
        let handovers = LinkHandovers::new(config, &loss, &rng);
        let mut link = Self {
            serialiser: Serialiser::new(handovers.first(config)),
            queue: Queue::new(&config.queue, rng),
            next_service: NEVER,
            next_ask: NEVER,
            dropped: Dropped::new(),
            adds_delay: loss.repairs(),
            strikes: strikes(&loss, config.loss_applies_to),
            loss,
            loss_applies_to: config.loss_applies_to,
            in_order: config.in_order,
            jitter: None,
            last_arrival: 0,
            flying: Ring::default(),
            latest: 0,
            plain: SLOW_PATH,
            handovers,
            onward: None,
        };
        link.plain = link.steady_span();
        link
    }

    /// The same, with a delay that varies.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Option<Jitter>) -> Self {
        self.adds_delay |= jitter.is_some();
        self.jitter = jitter;
        self.plain = self.steady_span();
        self
    }

    /// See `plain`: a rate and a drop-tail queue, nothing that adds to the delay, no change of the schedule, no packet
    /// before it that arrives later, no link that takes over.
    fn steady_span(&self) -> (Nanos, Nanos) {
        let serialiser = &self.serialiser;
        if self.adds_delay
            || !serialiser.on_fast_path()
            || !matches!(self.queue, Queue::DropTail(_))
        {
            return SLOW_PATH;
        }
        let Epoch { start, delay, .. } = serialiser.now;
        let from = start.max(self.last_arrival.saturating_sub(delay));
        (from, serialiser.next_change.min(self.handovers.next))
    }

    /// The way of nearly every packet: within `plain`, into a queue that surely has room. It stands in for `pass` under
    /// that condition.
    #[allow(
        clippy::inline_always,
        reason = "the whole of a hop; a hint is not heard"
    )]
    #[inline(always)]
    pub fn pass_fast(&mut self, ip_bytes: u16, carries_data: bool, now: Nanos) -> Plain {
        let Queue::DropTail(queue) = &mut self.queue else {
            return Plain::Unknown;
        };
        let start = now.max(self.serialiser.busy_until);
        let departure = start + self.serialiser.service_again(ip_bytes);
        let arrival = departure + self.serialiser.now.delay;
        let (from, until) = self.plain;
        if start < from || arrival >= until || !queue.joins_fast(now, departure) {
            return Plain::Unknown;
        }
        self.serialiser.busy_until = departure;
        if self.repaired(ip_bytes, carries_data, departure).is_none() {
            Plain::Lost
        } else {
            Plain::Arrives(arrival)
        }
    }

    /// What the loss process adds to the delay of a packet that leaves at `departure`; none if it takes it.
    #[allow(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn repaired(&mut self, ip_bytes: u16, carries_data: bool, departure: Nanos) -> Option<Nanos> {
        if !self.strikes[usize::from(carries_data)] {
            return Some(0);
        }
        match &mut self.loss {
            LossProcess::Bernoulli(process) => (!process.lost()).then_some(0),
            process => process.pass(u32::from(ip_bytes), departure),
        }
    }

    /// Takes a packet that arrives at the queue and says what becomes of it.
    pub fn pass(&mut self, handle: PacketHandle, segment: &mut Segment, now: Nanos) -> Passage {
        let passage = self.pass_any(handle, segment, now);
        self.note_change();
        passage
    }

    fn pass_any(&mut self, handle: PacketHandle, segment: &mut Segment, now: Nanos) -> Passage {
        if now >= self.handovers.next {
            self.hand_over(now);
        }
        let Queue::DropTail(queue) = &mut self.queue else {
            return self.pass_managed(handle, segment, now);
        };
        let mut departure = self.serialiser.open(now.max(self.serialiser.busy_until));
        if departure == NEVER {
            return Passage::Lost(DropCause::Outage);
        }
        if self.serialiser.now.ns_per_byte == 0 {
            self.serialiser.busy_until = departure;
        } else {
            if !queue.has_room(now) {
                return Passage::Lost(DropCause::Queue);
            }
            departure = self.serialiser.serve(segment.ip_bytes, departure);
            queue.join(departure);
        }
        self.propagate(segment, departure, false)
    }

    /// Like `pass`, for queues that do more than to count packets.
    fn pass_managed(&mut self, handle: PacketHandle, segment: &mut Segment, now: Nanos) -> Passage {
        if let Queue::Scheduled(_) = self.queue {
            return self.pass_scheduled(handle, segment, now);
        }
        let start = self.serialiser.open(now.max(self.serialiser.busy_until));
        if start == NEVER {
            return Passage::Lost(DropCause::Outage);
        }
        if self.serialiser.now.ns_per_byte == 0 {
            self.serialiser.busy_until = start;
            return self.propagate(segment, start, false);
        }
        self.pass_early(segment, now, start)
    }

    fn pass_early(&mut self, segment: &mut Segment, now: Nanos, start: Nanos) -> Passage {
        let Queue::Early(queue) = &mut self.queue else {
            return Passage::Waits;
        };
        let arrival = Arrival {
            now,
            busy_until: self.serialiser.busy_until,
            ip_bytes: u32::from(segment.ip_bytes),
            ect: segment.ecn != Ecn::NotEct,
        };
        let marked = match queue.judge(&arrival, self.serialiser.ns_per_byte()) {
            Verdict::Refuse(cause) => return Passage::Lost(cause),
            Verdict::Admit => false,
            Verdict::Mark => true,
        };
        if marked {
            segment.ecn = Ecn::Ce;
        }
        let departure = self.serialiser.serve(segment.ip_bytes, start);
        queue.join(arrival.ip_bytes, departure);
        self.propagate(segment, departure, marked)
    }

    fn pass_scheduled(
        &mut self,
        handle: PacketHandle,
        segment: &mut Segment,
        now: Nanos,
    ) -> Passage {
        let Queue::Scheduled(queue) = &mut self.queue else {
            return Passage::Waits;
        };
        let idle = queue.is_empty() && self.serialiser.busy_until <= now;
        if idle && self.serialiser.open(now) == now {
            queue.pass_by();
            let departure = self.serialiser.serve(segment.ip_bytes, now);
            return self.propagate(segment, departure, false);
        }
        let refused = queue.push(Waiting {
            handle,
            since: now,
            leg: segment.leg,
            ip_bytes: segment.ip_bytes,
            dscp: segment.dscp,
            ect: segment.ecn != Ecn::NotEct,
        });
        match refused {
            Some(packet) if packet.handle == handle => return Passage::Lost(DropCause::Queue),
            Some(packet) => self.dropped.push((packet.handle, DropCause::Queue)),
            None => {}
        }
        let free = self.serialiser.busy_until.max(now);
        self.next_service = self.serialiser.open(free);
        Passage::Waits
    }

    /// The next link takes over; the queue of this one is asked for what it holds as before.
    #[cold]
    fn hand_over(&mut self, now: Nanos) {
        while let Some(next) = self.handovers.take(now) {
            let before = DrainingLink {
                serialiser: std::mem::replace(&mut self.serialiser, next.serialiser),
                queue: std::mem::replace(&mut self.queue, next.queue),
                next_service: std::mem::replace(&mut self.next_service, NEVER),
            };
            self.handovers.retire(before);
            if let Some(loss) = next.loss {
                self.strikes = strikes(&loss, self.loss_applies_to);
                self.loss = loss;
            }
        }
    }

    /// Draws the conclusions from what the long way may have changed.
    fn note_change(&mut self) {
        self.plain = self.steady_span();
        self.next_ask = self.next_service.min(self.handovers.next_service);
    }

    /// Whether it is time to ask the queue for a packet.
    #[inline]
    pub fn serves(&self, now: Nanos) -> bool {
        self.next_ask <= now
    }

    /// Takes the next packet out of a queue that is asked for packets, and says what becomes of it.
    pub fn release(
        &mut self,
        pool: &mut PacketPool,
        now: Nanos,
    ) -> Option<(PacketHandle, Passage)> {
        let released = self.release_due(pool, now);
        self.note_change();
        released
    }

    fn release_due(
        &mut self,
        pool: &mut PacketPool,
        now: Nanos,
    ) -> Option<(PacketHandle, Passage)> {
        let Some(mut before) = self.handovers.due(now) else {
            return self.release_own(pool, now);
        };
        before.exchange(
            &mut self.serialiser,
            &mut self.queue,
            &mut self.next_service,
        );
        let released = self.release_own(pool, now);
        before.exchange(
            &mut self.serialiser,
            &mut self.queue,
            &mut self.next_service,
        );
        self.handovers.retire(before);
        released
    }

    fn release_own(
        &mut self,
        pool: &mut PacketPool,
        now: Nanos,
    ) -> Option<(PacketHandle, Passage)> {
        self.next_service = self.serialiser.open(now);
        if self.next_service > now {
            return None;
        }
        self.next_service = NEVER;
        let Queue::Scheduled(queue) = &mut self.queue else {
            return None;
        };
        let served = queue.pop(now, &mut self.dropped)?;
        let empty = queue.is_empty();
        let handle = served.packet.handle;
        let segment = pool.slot(handle);
        if served.marked {
            segment.ecn = Ecn::Ce;
        }
        let departure = self.serialiser.serve(segment.ip_bytes, now);
        if !empty {
            self.next_service = departure;
        }
        Some((handle, self.propagate(segment, departure, served.marked)))
    }

    /// A packet that a queue gave up after it had taken it, if there is one.
    pub fn take_dropped(&mut self) -> Option<(PacketHandle, DropCause)> {
        self.dropped.pop()
    }

    /// Loss and propagation of a packet whose service ends at `departure`.
    fn propagate(&mut self, segment: &Segment, departure: Nanos, marked: bool) -> Passage {
        let carries_data = segment.payload_bytes > 0;
        let Some(added) = self.repaired(segment.ip_bytes, carries_data, departure) else {
            return Passage::Lost(DropCause::Channel);
        };
        let added = added + self.jitter.as_mut().map_or(0, Jitter::draw);
        let mut arrival = departure + added + self.serialiser.now.delay;
        // `last_arrival` is past once all that left before the last change, or came late, have arrived.
        let overtakes = self.in_order && (arrival < self.last_arrival || added > 0);
        if arrival >= self.serialiser.next_change || self.serialiser.now.down || overtakes {
            let Some(later) = self.arrival_over_changes(departure, added) else {
                return Passage::Lost(DropCause::Outage);
            };
            arrival = later;
        }
        if marked {
            Passage::Marked(arrival)
        } else {
            Passage::Arrives(arrival)
        }
    }

    /// When something happens next: a packet arrives at the far end, or the queue is asked for one.
    #[inline]
    pub fn next_event(&self) -> Nanos {
        let arrival = self.flying.front().map_or(NEVER, |flight| flight.arrival);
        arrival.min(self.next_ask)
    }

    /// The packet that arrives next.
    #[inline]
    pub fn first(&self) -> Option<Flight> {
        self.flying.front().copied()
    }

    /// Whether no packet is in flight.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.flying.is_empty()
    }

    /// Takes it.
    #[inline]
    pub fn take(&mut self) -> Option<Flight> {
        self.flying.pop_front()
    }

    /// Takes it, if it arrives before `time`.
    #[inline]
    pub fn take_before(&mut self, time: Nanos) -> Option<Flight> {
        self.flying.pop_front_if(|flight| flight.arrival < time)
    }

    /// Packets on their way or waiting.
    pub fn in_flight(&self) -> impl Iterator<Item = PacketHandle> + '_ {
        let flying = self.flying.iter().map(|flight| flight.packet.handle());
        flying.chain(self.queue.held()).chain(self.handovers.held())
    }

    /// Whether packets must come at their own time, not ahead of it.
    pub fn is_scheduled(&self) -> bool {
        self.queue.is_scheduled()
    }

    /// Packets that lay beyond the end of a replayed loss trace.
    pub fn beyond_pkts(&self) -> u64 {
        self.loss.beyond_pkts()
    }

    /// Arrival of a packet that leaves at `departure`, when a change may come before; none if an outage takes it.
    #[cold]
    fn arrival_over_changes(&mut self, departure: Nanos, added: Nanos) -> Option<Nanos> {
        let leaving = self.serialiser.at(departure);
        let mut arrival = departure + added + leaving.delay;
        if leaving.down || self.serialiser.at(arrival).down {
            return None;
        }
        if self.in_order {
            arrival = arrival.max(self.last_arrival);
        }
        self.last_arrival = arrival;
        Some(arrival)
    }

    /// Lets a packet fly; says when the next one arrives, if that is this one.
    #[inline]
    pub fn launch(&mut self, flight: Flight) -> Option<Nanos> {
        if flight.arrival < self.latest {
            self.overtake(flight);
            return Some(self.next_event());
        }
        self.latest = flight.arrival;
        let first = self.flying.is_empty();
        self.flying.push_back(flight);
        first.then_some(flight.arrival)
    }

    /// The delay fell: this packet overtakes those that arrive later.
    #[cold]
    fn overtake(&mut self, flight: Flight) {
        self.flying
            .insert_before(flight, |other| other.arrival > flight.arrival);
    }

    /// Whether packets always arrive in the order in which they were taken.
    pub fn keeps_order(&self) -> bool {
        let steady = self.serialiser.is_constant() && self.handovers.next == NEVER;
        self.in_order || (steady && self.loss.keeps_order() && self.jitter.is_none())
    }
}

/// Whether `loss` strikes what carries no data, and what does.
fn strikes(loss: &LossProcess, scope: LossScope) -> [bool; 2] {
    let any = !matches!(loss, LossProcess::None);
    [any && scope == LossScope::All, any]
}

#[cfg(test)]
mod tests;

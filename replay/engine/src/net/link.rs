//! One direction of a link: queue and serialiser, then loss, then propagation. If the queue allows it (see `queue`),
//! the departure and arrival of a packet are computed when it arrives at the queue: nothing later can change them.
//!
//! Does not depend on TCP: a link sees sizes, marks and whether there is payload. Read the link model in
//! `docs/scenario.md` first: loss applies after serialisation, so a lost packet has used the link.

use hindflight_kernels::{LossProcess, StreamRng};

use super::handover::{DrainingLink, LinkHandovers};
use super::jitter::Jitter;
use super::queue::{Arrival, Dropped, Queue, Verdict, Waiting};
use super::serialiser::{Epoch, Serialiser};
use crate::config::{DirectionConfig, LossScope};
use crate::sim::packet_pool::{PacketHandle, PacketPool, RoutedPacket};
use crate::sim::ring::Ring;
use crate::sim::time::{NEVER, Nanos};
use crate::tcp::segment::{Direction, Ecn, Segment, flags};

/// For a link without a fast path.
const SLOW_PATH: (Nanos, Nanos) = (NEVER, 0);

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue was full.
    Queue,
    /// Active queue management dropped it.
    Aqm,
    /// The loss process.
    Channel,
    /// The link was down.
    Outage,
    /// An ACK that a newer one covers was removed from the queue.
    Filtered,
}

/// A packet in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight {
    /// When it arrives.
    pub arrival: Nanos,
    /// Its slot, and its remaining path.
    pub packet: RoutedPacket,
}

/// Result of the fast path of a packet over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOutcome {
    /// It arrives at this time.
    Arrives(Nanos),
    /// The loss process lost it.
    Lost,
    /// The slow path decides; nothing has been done.
    Unknown,
}

/// What happens to a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOutcome {
    /// It arrives at this time.
    Arrives(Nanos),
    /// It arrives at this time, and the queue has marked it.
    Marked(Nanos),
    /// It waits, and its departure is not known yet.
    Waits,
    /// It is lost.
    Lost(DropCause),
}

/// One direction of one link.
pub struct LinkDirection {
    serialiser: Serialiser,
    queue: Queue,
    /// When a queue that holds packets is asked for one next; the same, over all draining links as well.
    next_service: Nanos,
    next_ask: Nanos,
    /// Packets that such a queue has dropped since the run last asked.
    dropped: Dropped,
    loss: LossProcess,
    /// Whether the loss process applies to packets without data, and to packets with data.
    applies_to: [bool; 2],
    loss_applies_to: LossScope,
    in_order: bool,
    jitter: Option<Jitter>,
    /// Latest arrival, maintained if the delay changes.
    last_arrival: Nanos,
    /// Packets in flight in order of arrival, and the latest arrival so far.
    flying: Ring<Flight>,
    latest: Nanos,
    /// Links that will take over, and draining links.
    handovers: LinkHandovers,
    /// Whether something may add to the delay: a link-layer retransmission, or jitter.
    adds_delay: bool,
    /// The fast path applies to a service that begins at or after the first time and to an arrival before the second.
    fast_path_span: (Nanos, Nanos),
    /// The only link that packets of this one enter, and nothing else does, in the same order; set by the network.
    pub onward: Option<u32>,
}

impl LinkDirection {
    /// A direction with this configuration; `loss` is its loss process, `rng` the random stream of its queue.
    pub fn new(config: &DirectionConfig, loss: LossProcess, rng: StreamRng) -> Self {
        let handovers = LinkHandovers::new(config, &loss, &rng);
        let mut link = Self {
            serialiser: Serialiser::new(handovers.first(config)),
            queue: Queue::new(&config.queue, rng),
            next_service: NEVER,
            next_ask: NEVER,
            dropped: Dropped::new(),
            adds_delay: loss.adds_delay(),
            applies_to: applies_to(&loss, config.loss_applies_to),
            loss,
            loss_applies_to: config.loss_applies_to,
            in_order: config.in_order,
            jitter: None,
            last_arrival: 0,
            flying: Ring::default(),
            latest: 0,
            fast_path_span: SLOW_PATH,
            handovers,
            onward: None,
        };
        link.fast_path_span = link.find_fast_path_span();
        link
    }

    /// The same, with jitter.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Option<Jitter>) -> Self {
        self.adds_delay |= jitter.is_some();
        self.jitter = jitter;
        self.fast_path_span = self.find_fast_path_span();
        self
    }

    /// See `fast_path_span`: the fast path needs a rate, a drop-tail queue, a constant delay until the next change of the
    /// schedule, and no earlier packet that arrives later.
    fn find_fast_path_span(&self) -> (Nanos, Nanos) {
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

    /// The fast path, taken by nearly every packet: within `fast_path_span`, into a queue that certainly has space. Under
    /// this condition it replaces `pass`.
    #[inline(always)]
    pub fn pass_fast(&mut self, ip_bytes: u16, carries_data: bool, now: Nanos) -> FastOutcome {
        let Queue::DropTail(queue) = &mut self.queue else {
            return FastOutcome::Unknown;
        };
        let start = now.max(self.serialiser.busy_until);
        let departure = start + self.serialiser.service_again(ip_bytes);
        let arrival = departure + self.serialiser.now.delay;
        let (from, until) = self.fast_path_span;
        if start < from || arrival >= until || !queue.joins_fast(now, departure) {
            return FastOutcome::Unknown;
        }
        self.serialiser.busy_until = departure;
        if self.loss_delay(ip_bytes, carries_data, departure).is_none() {
            FastOutcome::Lost
        } else {
            FastOutcome::Arrives(arrival)
        }
    }

    /// What the loss process adds to the delay of a packet that leaves at `departure`; none if the packet is lost.
    #[inline(always)]
    fn loss_delay(&mut self, ip_bytes: u16, carries_data: bool, departure: Nanos) -> Option<Nanos> {
        if !self.applies_to[usize::from(carries_data)] {
            return Some(0);
        }
        match &mut self.loss {
            LossProcess::Bernoulli(process) => (!process.lost()).then_some(0),
            process => process.pass(u32::from(ip_bytes), departure),
        }
    }

    /// A packet arrives at the queue. Returns what happens to it.
    pub fn pass(&mut self, handle: PacketHandle, segment: &mut Segment, now: Nanos) -> LinkOutcome {
        let outcome = self.pass_any(handle, segment, now);
        self.note_change();
        outcome
    }

    fn pass_any(&mut self, handle: PacketHandle, segment: &mut Segment, now: Nanos) -> LinkOutcome {
        if now >= self.handovers.next {
            self.hand_over(now);
        }
        let Queue::DropTail(queue) = &mut self.queue else {
            return self.pass_managed(handle, segment, now);
        };
        let mut departure = self.serialiser.open(now.max(self.serialiser.busy_until));
        if departure == NEVER {
            return LinkOutcome::Lost(DropCause::Outage);
        }
        if self.serialiser.now.ns_per_byte == 0 {
            self.serialiser.busy_until = departure;
        } else {
            if !queue.has_space(now) {
                return LinkOutcome::Lost(DropCause::Queue);
            }
            departure = self.serialiser.serve(segment.ip_bytes, departure);
            queue.join(departure);
        }
        self.propagate(segment, departure, false)
    }

    /// As `pass`, for all queues but drop-tail in packets.
    fn pass_managed(
        &mut self,
        handle: PacketHandle,
        segment: &mut Segment,
        now: Nanos,
    ) -> LinkOutcome {
        if let Queue::Scheduled(_) = self.queue {
            return self.pass_scheduled(handle, segment, now);
        }
        let start = self.serialiser.open(now.max(self.serialiser.busy_until));
        if start == NEVER {
            return LinkOutcome::Lost(DropCause::Outage);
        }
        if self.serialiser.now.ns_per_byte == 0 {
            self.serialiser.busy_until = start;
            return self.propagate(segment, start, false);
        }
        self.pass_fifo(segment, now, start)
    }

    fn pass_fifo(&mut self, segment: &mut Segment, now: Nanos, start: Nanos) -> LinkOutcome {
        let Queue::Fifo(queue) = &mut self.queue else {
            return LinkOutcome::Waits;
        };
        let arrival = Arrival {
            now,
            busy_until: self.serialiser.busy_until,
            ip_bytes: u32::from(segment.ip_bytes),
            ect: segment.ecn != Ecn::NotEct,
        };
        let marked = match queue.judge(&arrival, self.serialiser.ns_per_byte()) {
            Verdict::Refuse(cause) => return LinkOutcome::Lost(cause),
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
    ) -> LinkOutcome {
        let Queue::Scheduled(queue) = &mut self.queue else {
            return LinkOutcome::Waits;
        };
        let idle = queue.is_empty() && self.serialiser.busy_until <= now;
        let pure = segment.flags == flags::ACK && segment.payload_bytes == 0;
        let packet = Waiting {
            handle,
            since: now,
            leg: segment.leg,
            ip_bytes: segment.ip_bytes,
            dscp: segment.dscp,
            ect: segment.ecn != Ecn::NotEct,
            ack: (pure && segment.direction == Direction::Reverse).then_some(segment.ack),
            is_plain_ack: pure && segment.sack_len == 0,
        };
        if idle && self.serialiser.open(now) == now {
            queue.pass_by(packet);
            let departure = self.serialiser.serve(segment.ip_bytes, now);
            return self.propagate(segment, departure, false);
        }
        let refused = queue.push(packet, &mut self.dropped);
        match refused {
            Some(packet) if packet.handle == handle => return LinkOutcome::Lost(DropCause::Queue),
            Some(packet) => self.dropped.push((packet.handle, DropCause::Queue)),
            None => {}
        }
        let free = self.serialiser.busy_until.max(now);
        self.next_service = self.serialiser.open(free);
        LinkOutcome::Waits
    }

    /// The next link takes over. The queue of this one is still asked for the packets that it holds.
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
                self.applies_to = applies_to(&loss, self.loss_applies_to);
                self.loss = loss;
            }
        }
    }

    /// Updates what is derived from state that the slow path may have changed.
    fn note_change(&mut self) {
        self.fast_path_span = self.find_fast_path_span();
        self.next_ask = self.next_service.min(self.handovers.next_service);
    }

    /// Whether a queue must be asked for a packet.
    #[inline]
    pub fn serves(&self, now: Nanos) -> bool {
        self.next_ask <= now
    }

    /// Takes the next packet out of a queue that holds packets. Returns what happens to it.
    pub fn release(
        &mut self,
        pool: &mut PacketPool,
        now: Nanos,
    ) -> Option<(PacketHandle, LinkOutcome)> {
        let released = self.release_due(pool, now);
        self.note_change();
        released
    }

    fn release_due(
        &mut self,
        pool: &mut PacketPool,
        now: Nanos,
    ) -> Option<(PacketHandle, LinkOutcome)> {
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
    ) -> Option<(PacketHandle, LinkOutcome)> {
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

    /// A packet that a queue dropped after it had accepted it, if there is one.
    pub fn take_dropped(&mut self) -> Option<(PacketHandle, DropCause)> {
        self.dropped.pop()
    }

    /// Loss and propagation of a packet whose service ends at `departure`.
    fn propagate(&mut self, segment: &Segment, departure: Nanos, marked: bool) -> LinkOutcome {
        let carries_data = segment.payload_bytes > 0;
        let Some(added) = self.loss_delay(segment.ip_bytes, carries_data, departure) else {
            return LinkOutcome::Lost(DropCause::Channel);
        };
        let added = added + self.jitter.as_mut().map_or(0, Jitter::next_ns);
        let mut arrival = departure + added + self.serialiser.now.delay;
        // `last_arrival` is in the past once all packets that left before the last change, or arrived late, have
        // arrived.
        let overtakes = self.in_order && (arrival < self.last_arrival || added > 0);
        if arrival >= self.serialiser.next_change || self.serialiser.now.down || overtakes {
            let Some(later) = self.arrival_over_changes(departure, added) else {
                return LinkOutcome::Lost(DropCause::Outage);
            };
            arrival = later;
        }
        if marked {
            LinkOutcome::Marked(arrival)
        } else {
            LinkOutcome::Arrives(arrival)
        }
    }

    /// Time of the next event: a packet arrives at the far end, or a queue must be asked for one.
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

    /// Takes the packet that arrives next.
    #[inline]
    pub fn take(&mut self) -> Option<Flight> {
        self.flying.pop_front()
    }

    /// Takes the packet that arrives next, if that is before `time`.
    #[inline]
    pub fn take_before(&mut self, time: Nanos) -> Option<Flight> {
        self.flying.pop_front_if(|flight| flight.arrival < time)
    }

    /// Packets in flight or in a queue.
    pub fn in_flight(&self) -> impl Iterator<Item = PacketHandle> + '_ {
        let flying = self.flying.iter().map(|flight| flight.packet.handle());
        flying
            .chain(self.queue.queued())
            .chain(self.handovers.queued())
    }

    /// Whether packets must enter the queue in order of time, and not ahead of it.
    pub fn is_scheduled(&self) -> bool {
        self.queue.is_scheduled()
    }

    /// Packets after the end of a replayed loss trace.
    pub fn beyond_pkts(&self) -> u64 {
        self.loss.beyond_pkts()
    }

    /// Arrival of a packet that leaves at `departure` if the schedule may change before; none if an outage loses it.
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

    /// Puts a packet in flight. Returns the time of the next arrival, if that is this packet's.
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

    /// The delay decreased: this packet overtakes those that arrive later.
    #[cold]
    fn overtake(&mut self, flight: Flight) {
        self.flying
            .insert_before(flight, |other| other.arrival > flight.arrival);
    }

    /// Whether packets always arrive in the order in which they enter.
    pub fn keeps_order(&self) -> bool {
        let steady = self.serialiser.is_constant() && self.handovers.next == NEVER;
        self.in_order || (steady && self.loss.keeps_order() && self.jitter.is_none())
    }
}

/// Whether `loss` applies to packets without data, and to packets with data.
fn applies_to(loss: &LossProcess, scope: LossScope) -> [bool; 2] {
    let any = !matches!(loss, LossProcess::None);
    [any && scope == LossScope::All, any]
}

#[cfg(test)]
mod tests;

//! One direction of a link: queue and serialiser, then loss, then propagation. Where the queue allows it (see `queue`),
//! each packet's whole way is worked out when it arrives: nothing later can change it.
//!
//! Must not know TCP: it sees sizes, marks and whether there is payload. Read the link model in `docs/scenario.md`
//! first: loss strikes after serialisation, so a lost packet has used the link.

use hindflight_kernels::{LossProcess, StreamRng};

use crate::arena::{Arena, Ticket};
use crate::config::{DirectionConfig, LossScope};
use crate::queue::{Arrival, Dropped, Queue, Verdict, Waiting};
use crate::ring::Ring;
use crate::segment::{Ecn, Segment};
use crate::serialiser::Serialiser;
use crate::time::{NEVER, Nanos};

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
    /// When a queue that is asked for packets will be asked next.
    next_service: Nanos,
    /// Packets that such a queue gave up since the run last asked.
    dropped: Dropped,
    loss: LossProcess,
    loss_applies_to: LossScope,
    in_order: bool,
    /// Latest arrival, kept where the delay changes.
    last_arrival: Nanos,
    /// Packets in flight by time of arrival, and the latest such time so far.
    flying: Ring<(Nanos, Ticket)>,
    latest: Nanos,
}

impl LinkDirection {
    /// Builds the direction; `loss` is its process, `rng` the stream of its queue.
    pub fn new(config: &DirectionConfig, loss: LossProcess, rng: StreamRng) -> Self {
        Self {
            serialiser: Serialiser::new(config),
            queue: Queue::new(&config.queue, rng),
            next_service: NEVER,
            dropped: Dropped::new(),
            loss,
            loss_applies_to: config.loss_applies_to,
            in_order: config.in_order,
            last_arrival: 0,
            flying: Ring::default(),
            latest: 0,
        }
    }

    /// Takes a packet that arrives at the queue and says what becomes of it.
    #[inline]
    pub fn pass(&mut self, ticket: Ticket, segment: &mut Segment, now: Nanos) -> Passage {
        match self.pass_plainly(segment, now) {
            Some(passage) => passage,
            None => self.pass_any(ticket, segment, now),
        }
    }

    /// The way of nearly every packet: a drop-tail queue that surely has room, a rate, and a delay that no change of
    /// the schedule touches before the packet arrives. None, and nothing done, where that does not hold.
    #[allow(
        clippy::inline_always,
        reason = "the whole of a hop; a hint is not heard"
    )]
    #[inline(always)]
    fn pass_plainly(&mut self, segment: &Segment, now: Nanos) -> Option<Passage> {
        let departure = self.serialiser.plain_end(segment.ip_bytes, now)?;
        let arrival = departure + self.serialiser.now.delay;
        let Queue::DropTail(queue) = &mut self.queue else {
            return None;
        };
        if arrival >= self.serialiser.next_change || arrival < self.last_arrival || !queue.fits(now)
        {
            return None;
        }
        queue.join(departure);
        self.serialiser.busy_until = departure;
        Some(if self.is_lost(segment, departure) {
            Passage::Lost(DropCause::Channel)
        } else {
            Passage::Arrives(arrival)
        })
    }

    /// Whether the loss process takes a packet that leaves at `departure`.
    #[inline]
    fn is_lost(&mut self, segment: &Segment, departure: Nanos) -> bool {
        let seen = segment.payload_bytes > 0 || self.loss_applies_to == LossScope::All;
        seen && match &mut self.loss {
            LossProcess::None => false,
            LossProcess::Bernoulli(process) => process.lost(),
            process => process.lost(u32::from(segment.ip_bytes), departure),
        }
    }

    #[inline(never)]
    fn pass_any(&mut self, ticket: Ticket, segment: &mut Segment, now: Nanos) -> Passage {
        let Queue::DropTail(queue) = &mut self.queue else {
            return self.pass_managed(ticket, segment, now);
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
    fn pass_managed(&mut self, ticket: Ticket, segment: &mut Segment, now: Nanos) -> Passage {
        if let Queue::Scheduled(_) = self.queue {
            return self.pass_scheduled(ticket, segment, now);
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

    fn pass_scheduled(&mut self, ticket: Ticket, segment: &mut Segment, now: Nanos) -> Passage {
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
            ticket,
            since: now,
            leg: segment.leg,
            ip_bytes: segment.ip_bytes,
            dscp: segment.dscp,
            ect: segment.ecn != Ecn::NotEct,
        });
        match refused {
            Some(packet) if packet.ticket == ticket => return Passage::Lost(DropCause::Queue),
            Some(packet) => self.dropped.push((packet.ticket, DropCause::Queue)),
            None => {}
        }
        let free = self.serialiser.busy_until.max(now);
        self.next_service = self.serialiser.open(free);
        Passage::Waits
    }

    /// Whether it is time to ask the queue for a packet.
    #[inline]
    pub fn serves(&self, now: Nanos) -> bool {
        self.next_service <= now
    }

    /// Takes the next packet out of a queue that is asked for packets, and says what becomes of it.
    pub fn release(&mut self, arena: &mut Arena, now: Nanos) -> Option<(Ticket, Passage)> {
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
        let ticket = served.packet.ticket;
        let segment = arena.slot(ticket);
        if served.marked {
            segment.ecn = Ecn::Ce;
        }
        let departure = self.serialiser.serve(segment.ip_bytes, now);
        if !empty {
            self.next_service = departure;
        }
        Some((ticket, self.propagate(segment, departure, served.marked)))
    }

    /// A packet that a queue gave up after it had taken it, if there is one.
    pub fn take_dropped(&mut self) -> Option<(Ticket, DropCause)> {
        self.dropped.pop()
    }

    /// Loss and propagation of a packet whose service ends at `departure`.
    fn propagate(&mut self, segment: &Segment, departure: Nanos, marked: bool) -> Passage {
        if self.is_lost(segment, departure) {
            return Passage::Lost(DropCause::Channel);
        }
        let mut arrival = departure + self.serialiser.now.delay;
        // `last_arrival` is past once all that left before the last change have arrived.
        let overtakes = self.in_order && arrival < self.last_arrival;
        if arrival >= self.serialiser.next_change || self.serialiser.now.down || overtakes {
            let Some(later) = self.arrival_over_changes(departure) else {
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
        let arrival = self.flying.front().map_or(NEVER, |&(time, _)| time);
        arrival.min(self.next_service)
    }

    /// Takes the packet that arrives next.
    #[inline]
    pub fn take(&mut self) -> Option<Ticket> {
        self.flying.pop_front().map(|(_, ticket)| ticket)
    }

    /// Packets on their way or waiting.
    pub fn in_flight(&self) -> impl Iterator<Item = Ticket> + '_ {
        let flying = self.flying.iter().map(|&(_, ticket)| ticket);
        flying.chain(self.queue.held())
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
    fn arrival_over_changes(&mut self, departure: Nanos) -> Option<Nanos> {
        let leaving = self.serialiser.at(departure);
        let mut arrival = departure + leaving.delay;
        if leaving.down || self.serialiser.at(arrival).down {
            return None;
        }
        if self.in_order {
            arrival = arrival.max(self.last_arrival);
        }
        self.last_arrival = arrival;
        Some(arrival)
    }

    /// Lets a packet fly until `arrival`; says so if it will be the next to arrive.
    #[inline]
    pub fn launch(&mut self, ticket: Ticket, arrival: Nanos) -> Option<Nanos> {
        if arrival < self.latest {
            self.overtake(ticket, arrival);
            return Some(self.next_event());
        }
        self.latest = arrival;
        let first = self.flying.is_empty();
        self.flying.push_back((arrival, ticket));
        first.then_some(arrival)
    }

    /// The delay fell: this packet overtakes those that arrive later.
    #[cold]
    fn overtake(&mut self, ticket: Ticket, arrival: Nanos) {
        self.flying
            .insert_before((arrival, ticket), |&(time, _)| time > arrival);
    }

    /// Whether packets always arrive in the order in which they were taken.
    pub fn keeps_order(&self) -> bool {
        self.in_order || self.serialiser.is_constant()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::config::{ChangeConfig, LossConfig, QueueConfig};
    use crate::segment::Direction;
    use crate::time::MILLISECOND;
    use hindflight_kernels::{Purpose, StreamKey};

    fn config(rate_bps: Option<f64>, delay_ms: u64, queue_pkts: u32) -> DirectionConfig {
        DirectionConfig {
            rate_bps,
            rate_trace: None,
            delay_ns: delay_ms * MILLISECOND,
            queue: QueueConfig::packets(queue_pkts),
            loss: LossConfig::None,
            loss_applies_to: LossScope::Data,
            in_order: false,
            schedule: Vec::new(),
        }
    }

    fn link(config: &DirectionConfig) -> LinkDirection {
        let key = StreamKey {
            seed: 1,
            owner: 0,
            direction: 0,
            purpose: Purpose::Queue,
        };
        LinkDirection::new(config, LossProcess::None, StreamRng::new(key))
    }

    /// Offers a full packet at `now`; packets are told apart by the order in which they are offered.
    fn offer(link: &mut LinkDirection, arena: &mut Arena, now: Nanos) -> Result<Nanos, DropCause> {
        let ticket = arena.take();
        *arena.slot(ticket) = Segment {
            ip_bytes: 1500,
            payload_bytes: 1448,
            ..Segment::new(0, Direction::Forward)
        };
        match link.pass(ticket, arena.slot(ticket), now) {
            Passage::Arrives(arrival) | Passage::Marked(arrival) => {
                link.launch(ticket, arrival);
                Ok(arrival)
            }
            Passage::Lost(cause) => Err(cause),
            Passage::Waits => Ok(NEVER),
        }
    }

    fn arrivals(link: &mut LinkDirection) -> Vec<(u32, Nanos)> {
        let mut out = Vec::new();
        while let Some(&(time, ticket)) = link.flying.front() {
            out.push((ticket.number(), time / MILLISECOND));
            link.take();
        }
        out
    }

    #[test]
    fn serialises_at_the_rate_and_then_propagates() {
        let mut link = link(&config(Some(1e6), 100, 10));
        let mut arena = Arena::default();
        for _ in 0..3 {
            assert!(offer(&mut link, &mut arena, 0).is_ok());
        }
        assert_eq!(arrivals(&mut link), [(0, 112), (1, 124), (2, 136)]);
    }

    #[test]
    fn the_limit_counts_those_that_wait_besides_the_one_in_service() {
        let mut link = link(&config(Some(1e6), 0, 2));
        let mut arena = Arena::default();
        let fates: Vec<_> = (0..4).map(|_| offer(&mut link, &mut arena, 0)).collect();
        assert!(fates[..3].iter().all(|&fate| fate.is_ok()));
        assert_eq!(fates[3], Err(DropCause::Queue));
        // One leaves at 12 ms: exactly one more fits from then on.
        assert!(offer(&mut link, &mut arena, 12 * MILLISECOND).is_ok());
        assert_eq!(
            offer(&mut link, &mut arena, 12 * MILLISECOND),
            Err(DropCause::Queue)
        );
    }

    #[test]
    fn without_a_rate_there_is_only_delay() {
        let mut link = link(&config(None, 5, 0));
        let mut arena = Arena::default();
        for _ in 0..3 {
            assert!(offer(&mut link, &mut arena, 0).is_ok());
        }
        assert_eq!(arrivals(&mut link), [(0, 5), (1, 5), (2, 5)]);
    }

    fn at(ms: u64) -> ChangeConfig {
        ChangeConfig {
            at_ns: ms * MILLISECOND,
            rate_bps: None,
            delay_ns: None,
            outage: None,
            hold: None,
        }
    }

    #[test]
    fn a_new_rate_holds_from_the_next_packet_in_service() {
        let mut config = config(Some(1e6), 0, 10);
        config.schedule = vec![ChangeConfig {
            rate_bps: Some(2e6),
            ..at(6)
        }];
        let mut link = link(&config);
        let mut arena = Arena::default();
        for _ in 0..3 {
            assert!(offer(&mut link, &mut arena, 0).is_ok());
        }
        assert_eq!(arrivals(&mut link), [(0, 12), (1, 18), (2, 24)]);
    }

    #[test]
    fn when_the_delay_falls_packets_overtake_unless_in_order() {
        for (in_order, expected) in [(false, [(1, 24), (0, 112)]), (true, [(0, 112), (1, 112)])] {
            let mut config = config(Some(1e6), 100, 10);
            config.in_order = in_order;
            config.schedule = vec![ChangeConfig {
                delay_ns: Some(0),
                ..at(20)
            }];
            let mut link = link(&config);
            let mut arena = Arena::default();
            assert!(offer(&mut link, &mut arena, 0).is_ok());
            assert!(offer(&mut link, &mut arena, 0).is_ok());
            assert_eq!(arrivals(&mut link), expected);
        }
    }

    #[test]
    fn in_order_holds_for_what_enters_long_after_the_change() {
        let mut config = config(None, 100, 10);
        config.in_order = true;
        config.schedule = vec![ChangeConfig {
            delay_ns: Some(0),
            ..at(20)
        }];
        let mut link = link(&config);
        let mut arena = Arena::default();
        for entered in [15, 30, 60, 120] {
            assert!(offer(&mut link, &mut arena, entered * MILLISECOND).is_ok());
        }
        assert_eq!(
            arrivals(&mut link),
            [(0, 115), (1, 115), (2, 115), (3, 120)]
        );
    }

    #[test]
    fn an_outage_takes_what_ends_its_service_or_would_arrive_in_it() {
        let mut config = config(Some(1e6), 10, 10);
        config.schedule = vec![
            ChangeConfig {
                outage: Some(true),
                ..at(30)
            },
            ChangeConfig {
                outage: Some(false),
                ..at(50)
            },
        ];
        let mut link = link(&config);
        let mut arena = Arena::default();
        // Service ends at 12, 24, 36, 48, 60; arrivals at 22, 34 (down), -, -, 70.
        let fates: Vec<_> = (0..5)
            .map(|_| offer(&mut link, &mut arena, 0).is_ok())
            .collect();
        assert_eq!(fates, [true, false, false, false, true]);
    }

    #[test]
    fn a_link_that_is_held_keeps_what_is_queued_until_it_opens() {
        for scheduled in [false, true] {
            let mut config = config(Some(1e6), 10, 10);
            if scheduled {
                config.queue = serde_json::from_str(r#"{"kind":"codel"}"#).expect("a queue");
            }
            config.schedule = vec![
                ChangeConfig {
                    hold: Some(true),
                    ..at(20)
                },
                ChangeConfig {
                    hold: Some(false),
                    delay_ns: Some(5 * MILLISECOND),
                    ..at(100)
                },
            ];
            let mut link = link(&config);
            let mut arena = Arena::default();
            for _ in 0..3 {
                assert!(offer(&mut link, &mut arena, 0).is_ok());
            }
            let mut now = 0;
            while now < 200 * MILLISECOND {
                if now == 50 * MILLISECOND {
                    assert!(offer(&mut link, &mut arena, now).is_ok());
                }
                while link.serves(now) {
                    let Some((ticket, passage)) = link.release(&mut arena, now) else {
                        break;
                    };
                    if let Passage::Arrives(arrival) = passage {
                        link.launch(ticket, arrival);
                    }
                }
                now += MILLISECOND;
            }
            // Two are served before and while it closes; the others wait for 100 ms.
            assert_eq!(arrivals(&mut link), [(0, 22), (1, 34), (2, 117), (3, 129)]);
        }
    }

    #[test]
    fn a_link_that_never_opens_again_loses_what_comes() {
        let mut config = config(Some(1e6), 10, 10);
        config.schedule = vec![ChangeConfig {
            hold: Some(true),
            ..at(5)
        }];
        let mut link = link(&config);
        let mut arena = Arena::default();
        assert!(offer(&mut link, &mut arena, 0).is_ok());
        assert_eq!(
            offer(&mut link, &mut arena, 6 * MILLISECOND),
            Err(DropCause::Outage)
        );
    }
}

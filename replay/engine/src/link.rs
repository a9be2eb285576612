//! One direction of a link: queue and serialiser, then loss, then propagation. Each packet's whole way is worked out
//! when it arrives: first in, first out, so nothing later can change it.
//!
//! Must not know TCP: it sees sizes and whether there is payload. Read `shared` data notes' link model in
//! `docs/scenario.md` first: loss strikes after serialisation, so a lost packet has used the link.

use std::collections::VecDeque;

use hindflight_kernels::LossProcess;

use crate::arena::Ticket;
use crate::config::{DirectionConfig, LossScope};
use crate::ring::Ring;
use crate::segment::Segment;
use crate::time::{NEVER, Nanos, SECOND};

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue was full.
    Queue,
    /// The loss process.
    Channel,
    /// The link was down.
    Outage,
}

/// Rate, delay and availability from `start` on.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Nanos,
    /// Serialisation time of one octet in 2^-32 ns; 0 without a serialiser.
    ns_per_byte: u64,
    delay: Nanos,
    down: bool,
}

/// Bits behind the point of `ns_per_byte`.
const FRACTION_BITS: u32 = 32;

/// One direction of one link.
pub struct LinkDirection {
    /// What holds for the packet whose service began last; services begin in order.
    now: Epoch,
    /// Start of the next epoch.
    next_change: Nanos,
    /// The epochs that are to come.
    changes: VecDeque<Epoch>,
    queue_pkts: usize,
    /// When the serialiser falls idle.
    busy_until: Nanos,
    /// Ends of service of the packet in service and of those that wait.
    departures: Ring<Nanos>,
    loss: LossProcess,
    loss_applies_to: LossScope,
    in_order: bool,
    /// Latest arrival, kept where the delay changes.
    last_arrival: Nanos,
    /// Packets in flight by time of arrival.
    flying: Ring<(Nanos, Ticket)>,
}

impl LinkDirection {
    /// Builds the direction; `loss` is its process with its own random stream.
    pub fn new(config: &DirectionConfig, loss: LossProcess) -> Self {
        let (now, changes) = epochs(config);
        Self {
            now,
            next_change: changes.front().map_or(NEVER, |next| next.start),
            changes,
            queue_pkts: config.queue_pkts as usize,
            busy_until: 0,
            departures: Ring::default(),
            loss,
            loss_applies_to: config.loss_applies_to,
            in_order: config.in_order,
            last_arrival: 0,
            flying: Ring::default(),
        }
    }

    /// Takes a packet that arrives at the queue and says when it will arrive at the far end.
    ///
    /// # Errors
    /// Why it never will.
    #[inline]
    pub fn pass(&mut self, segment: &Segment, now: Nanos) -> Result<Nanos, DropCause> {
        let departure = self
            .serialise(u64::from(segment.ip_bytes), now)
            .ok_or(DropCause::Queue)?;
        let seen = segment.payload_bytes > 0 || self.loss_applies_to == LossScope::All;
        if seen && self.loss.lost(u32::from(segment.ip_bytes), departure) {
            return Err(DropCause::Channel);
        }
        let arrival = departure + self.now.delay;
        if arrival < self.next_change && !self.now.down {
            return Ok(arrival);
        }
        self.arrival_over_changes(departure)
            .ok_or(DropCause::Outage)
    }

    /// When the next packet arrives at the far end.
    #[inline]
    pub fn next_arrival(&self) -> Nanos {
        self.flying.front().map_or(NEVER, |&(time, _)| time)
    }

    /// Takes the packet that arrives next.
    #[inline]
    pub fn take(&mut self) -> Option<Ticket> {
        self.flying.pop_front().map(|(_, ticket)| ticket)
    }

    /// Packets on their way.
    pub fn in_flight(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.flying.iter().map(|&(_, ticket)| ticket)
    }

    /// Packets that lay beyond the end of a replayed loss trace.
    pub fn beyond_pkts(&self) -> u64 {
        self.loss.beyond_pkts()
    }

    /// End of service of a packet that arrives now; none if the queue is full.
    #[inline]
    fn serialise(&mut self, size_bytes: u64, now: Nanos) -> Option<Nanos> {
        let start = now.max(self.busy_until);
        if start >= self.next_change {
            self.take_changes(start);
        }
        if self.now.ns_per_byte == 0 {
            self.busy_until = start;
            return Some(start);
        }
        while self
            .departures
            .front()
            .is_some_and(|&departure| departure <= now)
        {
            self.departures.pop_front();
        }
        // The packet in service does not count in the limit.
        if self.departures.len() > self.queue_pkts {
            return None;
        }
        let service = u128::from(size_bytes) * u128::from(self.now.ns_per_byte);
        self.busy_until =
            start + ((service + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS) as Nanos;
        self.departures.push_back(self.busy_until);
        Some(self.busy_until)
    }

    /// Brings the epoch up to `time`.
    #[cold]
    fn take_changes(&mut self, time: Nanos) {
        while let Some(next) = self.changes.front().filter(|next| next.start <= time) {
            self.now = *next;
            self.changes.pop_front();
        }
        self.next_change = self.changes.front().map_or(NEVER, |next| next.start);
    }

    /// Arrival of a packet that leaves at `departure`, when a change may come before; none if an outage takes it.
    #[cold]
    fn arrival_over_changes(&mut self, departure: Nanos) -> Option<Nanos> {
        let at = |time: Nanos| {
            let passed = self.changes.iter().take_while(|epoch| epoch.start <= time);
            passed.last().unwrap_or(&self.now)
        };
        let leaving = at(departure);
        let mut arrival = departure + leaving.delay;
        if leaving.down || at(arrival).down {
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
        let last = self.flying.back().map(|&(time, _)| time);
        if last.is_some_and(|last| arrival < last) {
            self.overtake(ticket, arrival);
            return Some(self.next_arrival());
        }
        self.flying.push_back((arrival, ticket));
        last.is_none().then_some(arrival)
    }

    /// The delay fell: this packet overtakes those that arrive later.
    #[cold]
    fn overtake(&mut self, ticket: Ticket, arrival: Nanos) {
        self.flying
            .insert_before((arrival, ticket), |&(time, _)| time > arrival);
    }

    /// Whether packets always arrive in the order in which they were taken.
    pub fn keeps_order(&self) -> bool {
        self.in_order || self.changes.is_empty()
    }
}

/// The first epoch and those that follow.
fn epochs(config: &DirectionConfig) -> (Epoch, VecDeque<Epoch>) {
    let first = Epoch {
        start: 0,
        ns_per_byte: ns_per_byte(config.rate_bps),
        delay: config.delay_ns,
        down: false,
    };
    let mut epoch = first;
    let mut changes = VecDeque::new();
    for change in &config.schedule {
        epoch.start = change.at_ns;
        if change.rate_bps.is_some() {
            epoch.ns_per_byte = ns_per_byte(change.rate_bps);
        }
        epoch.delay = change.delay_ns.unwrap_or(epoch.delay);
        epoch.down = change.outage.unwrap_or(epoch.down);
        changes.push_back(epoch);
    }
    (first, changes)
}

fn ns_per_byte(rate_bps: Option<f64>) -> u64 {
    let scale = (1_u64 << FRACTION_BITS) as f64;
    rate_bps.map_or(0, |bps| ((8.0 * SECOND as f64 * scale / bps) as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::config::{ChangeConfig, LossConfig};
    use crate::segment::Direction;
    use crate::time::MILLISECOND;

    fn config(rate_bps: Option<f64>, delay_ms: u64, queue_pkts: u32) -> DirectionConfig {
        DirectionConfig {
            rate_bps,
            delay_ns: delay_ms * MILLISECOND,
            queue_pkts,
            loss: LossConfig::None,
            loss_applies_to: LossScope::Data,
            in_order: false,
            schedule: Vec::new(),
        }
    }

    /// Offers a full packet at `now`; packets are told apart by the order in which they are offered.
    fn offer(link: &mut LinkDirection, arena: &mut Arena, now: Nanos) -> Result<Nanos, DropCause> {
        let ticket = arena.take();
        let segment = Segment {
            ip_bytes: 1500,
            payload_bytes: 1448,
            ..Segment::new(0, Direction::Forward)
        };
        let arrival = link.pass(&segment, now)?;
        link.launch(ticket, arrival);
        Ok(arrival)
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
        let mut link = LinkDirection::new(&config(Some(1e6), 100, 10), LossProcess::None);
        let mut arena = Arena::default();
        for _ in 0..3 {
            assert!(offer(&mut link, &mut arena, 0).is_ok());
        }
        assert_eq!(arrivals(&mut link), [(0, 112), (1, 124), (2, 136)]);
    }

    #[test]
    fn the_limit_counts_those_that_wait_besides_the_one_in_service() {
        let mut link = LinkDirection::new(&config(Some(1e6), 0, 2), LossProcess::None);
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
        let mut link = LinkDirection::new(&config(None, 5, 0), LossProcess::None);
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
        }
    }

    #[test]
    fn a_new_rate_holds_from_the_next_packet_in_service() {
        let mut config = config(Some(1e6), 0, 10);
        config.schedule = vec![ChangeConfig {
            rate_bps: Some(2e6),
            ..at(6)
        }];
        let mut link = LinkDirection::new(&config, LossProcess::None);
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
            let mut link = LinkDirection::new(&config, LossProcess::None);
            let mut arena = Arena::default();
            assert!(offer(&mut link, &mut arena, 0).is_ok());
            assert!(offer(&mut link, &mut arena, 0).is_ok());
            assert_eq!(arrivals(&mut link), expected);
        }
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
        let mut link = LinkDirection::new(&config, LossProcess::None);
        let mut arena = Arena::default();
        // Service ends at 12, 24, 36, 48, 60; arrivals at 22, 34 (down), -, -, 70.
        let fates: Vec<_> = (0..5)
            .map(|_| offer(&mut link, &mut arena, 0).is_ok())
            .collect();
        assert_eq!(fates, [true, false, false, false, true]);
    }
}

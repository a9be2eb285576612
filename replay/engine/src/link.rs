//! One direction of a link: queue and serialiser, then loss, then propagation. Each packet's whole way is worked out
//! when it arrives (first in, first out: nothing later can change it), so a hop costs one event.
//!
//! Must not know TCP: it sees sizes and whether there is payload. Read `shared` data notes' link model in
//! `docs/channels/link.md` first: loss strikes after serialisation, so a lost packet has used the link.

use std::collections::VecDeque;

use hindflight_kernels::LossProcess;

use crate::config::{DirectionConfig, LossScope};
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

/// What became of a packet offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It will arrive.
    Passed,
    /// It will not.
    Dropped(DropCause),
}

/// Rate, delay and availability from `start` on.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Nanos,
    /// Serialisation time of one octet; 0 without a serialiser.
    ns_per_byte: f64,
    delay: Nanos,
    down: bool,
}

/// One direction of one link.
pub struct LinkDirection {
    epochs: Vec<Epoch>,
    /// Epoch in which the last packet's service began; services begin in order.
    current: usize,
    queue_pkts: usize,
    /// When the serialiser falls idle.
    busy_until: Nanos,
    /// Ends of service of the packet in service and of those that wait.
    departures: VecDeque<Nanos>,
    loss: LossProcess,
    loss_applies_to: LossScope,
    in_order: bool,
    /// Packets in flight by time of arrival.
    flying: VecDeque<(Nanos, Segment)>,
}

impl LinkDirection {
    /// Builds the direction; `loss` is its process with its own random stream.
    pub fn new(config: &DirectionConfig, loss: LossProcess) -> Self {
        Self {
            epochs: epochs(config),
            current: 0,
            queue_pkts: config.queue_pkts as usize,
            busy_until: 0,
            departures: VecDeque::new(),
            loss,
            loss_applies_to: config.loss_applies_to,
            in_order: config.in_order,
            flying: VecDeque::new(),
        }
    }

    /// Takes a packet that arrives at the queue.
    #[inline]
    pub fn offer(&mut self, segment: Segment, now: Nanos) -> Verdict {
        let Some(departure) = self.serialise(u32::from(segment.ip_bytes), now) else {
            return Verdict::Dropped(DropCause::Queue);
        };
        let seen = segment.payload_bytes > 0 || self.loss_applies_to == LossScope::All;
        if seen && self.loss.lost(u32::from(segment.ip_bytes)) {
            return Verdict::Dropped(DropCause::Channel);
        }
        let leaving = self.epoch_at(departure);
        let arrival = departure + self.epochs[leaving].delay;
        if self.epochs.len() > 1 && (self.epochs[leaving].down || self.is_down_at(leaving, arrival))
        {
            return Verdict::Dropped(DropCause::Outage);
        }
        self.launch(segment, arrival);
        Verdict::Passed
    }

    /// When the next packet arrives at the far end.
    #[inline]
    pub fn next_arrival(&self) -> Nanos {
        self.flying.front().map_or(NEVER, |&(time, _)| time)
    }

    /// Takes the packet that arrives next.
    #[inline]
    pub fn take(&mut self) -> Option<Segment> {
        self.flying.pop_front().map(|(_, segment)| segment)
    }

    /// Packets on their way.
    pub fn in_flight(&self) -> impl Iterator<Item = &Segment> {
        self.flying.iter().map(|(_, segment)| segment)
    }

    /// Packets that lay beyond the end of a replayed loss trace.
    pub fn beyond_pkts(&self) -> u64 {
        self.loss.beyond_pkts()
    }

    /// End of service of a packet that arrives now; none if the queue is full.
    #[inline]
    fn serialise(&mut self, size_bytes: u32, now: Nanos) -> Option<Nanos> {
        let start = now.max(self.busy_until);
        while self
            .epochs
            .get(self.current + 1)
            .is_some_and(|next| next.start <= start)
        {
            self.current += 1;
        }
        let ns_per_byte = self.epochs[self.current].ns_per_byte;
        if ns_per_byte == 0.0 {
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
        self.busy_until = start + (f64::from(size_bytes) * ns_per_byte + 0.5) as Nanos;
        self.departures.push_back(self.busy_until);
        Some(self.busy_until)
    }

    /// Index of the epoch that holds at `time`, not before the one in which service began.
    #[inline]
    fn epoch_at(&self, time: Nanos) -> usize {
        let mut index = self.current;
        while self
            .epochs
            .get(index + 1)
            .is_some_and(|next| next.start <= time)
        {
            index += 1;
        }
        index
    }

    fn is_down_at(&self, from: usize, time: Nanos) -> bool {
        self.epochs[from..]
            .iter()
            .take_while(|epoch| epoch.start <= time)
            .last()
            .is_some_and(|epoch| epoch.down)
    }

    #[inline]
    fn launch(&mut self, segment: Segment, arrival: Nanos) {
        let last = self.flying.back().map_or(0, |&(time, _)| time);
        if arrival >= last || self.in_order {
            self.flying.push_back((arrival.max(last), segment));
            return;
        }
        // The delay fell: this packet overtakes those that arrive later.
        let place = self.flying.partition_point(|&(time, _)| time <= arrival);
        self.flying.insert(place, (arrival, segment));
    }
}

fn epochs(config: &DirectionConfig) -> Vec<Epoch> {
    let ns_per_byte = |rate: Option<f64>| rate.map_or(0.0, |bps| 8.0 * SECOND as f64 / bps);
    let mut epochs = vec![Epoch {
        start: 0,
        ns_per_byte: ns_per_byte(config.rate_bps),
        delay: config.delay_ns,
        down: false,
    }];
    for change in &config.schedule {
        let mut epoch = epochs[epochs.len() - 1];
        epoch.start = change.at_ns;
        if change.rate_bps.is_some() {
            epoch.ns_per_byte = ns_per_byte(change.rate_bps);
        }
        epoch.delay = change.delay_ns.unwrap_or(epoch.delay);
        epoch.down = change.outage.unwrap_or(epoch.down);
        epochs.push(epoch);
    }
    epochs
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn packet(seq: u64) -> Segment {
        Segment {
            seq,
            ip_bytes: 1500,
            payload_bytes: 1448,
            ..Segment::new(0, Direction::Forward)
        }
    }

    fn arrivals(link: &mut LinkDirection) -> Vec<(u64, Nanos)> {
        let mut out = Vec::new();
        while let Some(&(time, segment)) = link.flying.front() {
            out.push((segment.seq, time / MILLISECOND));
            link.take();
        }
        out
    }

    #[test]
    fn serialises_at_the_rate_and_then_propagates() {
        let mut link = LinkDirection::new(&config(Some(1e6), 100, 10), LossProcess::None);
        for seq in 0..3 {
            assert_eq!(link.offer(packet(seq), 0), Verdict::Passed);
        }
        assert_eq!(arrivals(&mut link), [(0, 112), (1, 124), (2, 136)]);
    }

    #[test]
    fn the_limit_counts_those_that_wait_besides_the_one_in_service() {
        let mut link = LinkDirection::new(&config(Some(1e6), 0, 2), LossProcess::None);
        let fates: Vec<_> = (0..4).map(|seq| link.offer(packet(seq), 0)).collect();
        assert_eq!(fates[..3], [Verdict::Passed; 3]);
        assert_eq!(fates[3], Verdict::Dropped(DropCause::Queue));
        // One leaves at 12 ms: exactly one more fits from then on.
        assert_eq!(link.offer(packet(4), 12 * MILLISECOND), Verdict::Passed);
        assert_eq!(
            link.offer(packet(5), 12 * MILLISECOND),
            Verdict::Dropped(DropCause::Queue)
        );
    }

    #[test]
    fn without_a_rate_there_is_only_delay() {
        let mut link = LinkDirection::new(&config(None, 5, 0), LossProcess::None);
        for seq in 0..3 {
            link.offer(packet(seq), 0);
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
        for seq in 0..3 {
            link.offer(packet(seq), 0);
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
            link.offer(packet(0), 0);
            link.offer(packet(1), 0);
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
        // Service ends at 12, 24, 36, 48, 60; arrivals at 22, 34 (down), -, -, 70.
        let fates: Vec<_> = (0..5)
            .map(|seq| link.offer(packet(seq), 0) == Verdict::Passed)
            .collect();
        assert_eq!(fates, [true, false, false, false, true]);
    }
}

//! Cross traffic: sources and sinks of datagrams without congestion control, with their delay, jitter and loss.
//!
//! Does not depend on links. A datagram carries its number in `seq` and the time of its transmission in `ack`.

use hindflight_kernels::StreamRng;

use crate::app::{Clocked, Periods};
use crate::config::{DATAGRAM_HEADER_BYTES, DatagramConfig, RecordedConfig};
use crate::sim::histogram::Histogram;
use crate::sim::time::{NEVER, Nanos};
use crate::tcp::segment::{Direction, Purpose, Segment};

/// Sends datagrams at a fixed rate, in periods on and off if it has any, or as they were recorded.
pub struct DatagramSource {
    leg: u16,
    direction: Direction,
    packet_bytes: u16,
    clocked: Clocked,
    /// Those that were recorded, which then leave instead of those of a rate.
    recorded: Option<RecordedConfig>,
    next: Nanos,
    /// When it stops; `NEVER` if it does not.
    pub stop: Nanos,
    due: u64,
    /// Number of datagrams sent.
    pub sent: u64,
}

impl DatagramSource {
    /// A source of leg `leg` that sends in `direction`.
    pub fn new(leg: u16, direction: Direction, config: &DatagramConfig, rng: StreamRng) -> Self {
        let periods = config.bursts.map(|bursts| Periods {
            on_ns: bursts.on_ns,
            off_ns: bursts.off_ns,
            spread: bursts.spread,
        });
        let packet_bytes = u64::from(config.packet_bytes);
        let mut clocked = Clocked::new(packet_bytes, config.rate_bps, periods, rng);
        clocked.begin(config.start_ns);
        let stop = config.stop_ns.unwrap_or(NEVER);
        let first = match &config.recorded {
            None => config.start_ns,
            Some(recorded) => recorded.first_ns(),
        };
        Self {
            leg,
            direction,
            packet_bytes: config.packet_bytes,
            clocked,
            next: if first < stop { first } else { NEVER },
            recorded: config.recorded.clone(),
            stop,
            due: 0,
            sent: 0,
        }
    }

    /// When it sends next.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        self.next
    }

    /// Its deadline has expired.
    pub fn on_deadline(&mut self, now: Nanos) {
        if self.next > now {
            return;
        }
        let (due, next) = match &self.recorded {
            None => self.clocked.take_due(now),
            Some(recorded) => recorded.take_due(self.sent + self.due, now),
        };
        self.due += due;
        self.next = if next < self.stop { next } else { NEVER };
    }

    /// Writes the next datagram that is due into a slot. Returns whether there is one.
    #[inline]
    pub fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        if self.due == 0 {
            return false;
        }
        let ip_bytes = match &self.recorded {
            None => self.packet_bytes,
            Some(recorded) => recorded.ip_bytes(self.sent),
        };
        self.due -= 1;
        self.sent += 1;
        slot.write(Segment {
            seq: self.sent,
            ack: now,
            payload_bytes: ip_bytes - DATAGRAM_HEADER_BYTES,
            ip_bytes,
            purpose: Purpose::Datagram,
            ..Segment::new(self.leg, self.direction)
        });
        true
    }
}

/// Receives datagrams and measures them.
#[derive(Default)]
pub struct DatagramSink {
    /// Number of datagrams received.
    pub received: u64,
    /// Octets of payload received.
    pub octets: u64,
    /// Times from transmission to arrival.
    pub delays: Histogram,
    last_delay: Option<Nanos>,
    /// When the last one arrived; 0 before the first.
    pub last_at: Nanos,
    /// Sum of the differences between the delays of consecutive datagrams.
    differences: u128,
}

impl DatagramSink {
    /// Receives a datagram.
    pub fn receive(&mut self, datagram: &Segment, now: Nanos) {
        let delay = now - datagram.ack;
        self.received += 1;
        self.octets += u64::from(datagram.payload_bytes);
        self.delays.add(delay, 1);
        self.last_at = now;
        if let Some(last) = self.last_delay.replace(delay) {
            self.differences += u128::from(last.abs_diff(delay));
        }
    }

    /// Mean difference between the delays of two datagrams that arrived one after the other.
    ///
    /// Deviation: RFC 3550 §6.4.1 smooths the same differences with a gain of 1/16; this is their mean over the run.
    pub fn jitter(&self) -> Option<Nanos> {
        let pairs = self.received.checked_sub(1).filter(|&pairs| pairs > 0)?;
        Some((self.differences / u128::from(pairs)) as Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(sent: Nanos) -> Segment {
        Segment {
            ack: sent,
            payload_bytes: 172,
            ..Segment::new(0, Direction::Forward)
        }
    }

    #[test]
    fn jitter_is_the_mean_difference_of_consecutive_delays() {
        let mut sink = DatagramSink::default();
        assert_eq!((sink.jitter(), sink.delays.max()), (None, None));
        for (sent, arrived) in [(0, 100), (1000, 1130), (2000, 2110)] {
            sink.receive(&datagram(sent), arrived);
        }
        assert_eq!(sink.jitter(), Some(25));
        assert_eq!(
            (sink.delays.max(), sink.received, sink.octets),
            (Some(130), 3, 516)
        );
    }
}

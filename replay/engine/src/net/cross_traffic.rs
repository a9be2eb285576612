//! Sources of datagrams and what collects them: delay, jitter and loss of traffic that heeds no window.
//!
//! Does not depend on links. A datagram carries its number in `seq` and the time it was sent in `ack`.

use hindflight_kernels::StreamRng;

use crate::app::Clocked;
use crate::config::{DATAGRAM_HEADER_BYTES, DatagramConfig};
use crate::sim::histogram::Histogram;
use crate::sim::time::{NEVER, Nanos, SECOND};
use crate::tcp::segment::{Direction, Purpose, Segment};

/// Sends datagrams by the clock.
pub struct DatagramSource {
    leg: u16,
    direction: Direction,
    packet_bytes: u16,
    clocked: Clocked,
    next: Nanos,
    stop: Nanos,
    due: u32,
    sent: u64,
}

impl DatagramSource {
    /// A source of leg `leg` that sends in `direction`.
    pub fn new(leg: u16, direction: Direction, config: &DatagramConfig, rng: StreamRng) -> Self {
        let every_ns = f64::from(config.packet_bytes) * 8.0 * SECOND as f64 / config.rate_bps;
        let periods = config
            .bursts
            .map(|bursts| (bursts.on_ns, bursts.off_ns, bursts.spread));
        let mut clocked = Clocked::new(u64::from(config.packet_bytes), every_ns, periods, rng);
        clocked.begin(config.start_ns);
        Self {
            leg,
            direction,
            packet_bytes: config.packet_bytes,
            clocked,
            next: config.start_ns,
            stop: config.stop_ns.unwrap_or(NEVER),
            due: 0,
            sent: 0,
        }
    }

    /// When it sends next.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        self.next
    }

    /// Its time has come.
    pub fn on_deadline(&mut self, now: Nanos) {
        while self.next <= now {
            let (due, next) = self.clocked.advance();
            self.due += u32::from(due);
            self.next = next;
            if self.next >= self.stop {
                self.next = NEVER;
            }
        }
    }

    /// Writes the next datagram that is due into a slot; says whether there is one.
    #[inline]
    pub fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        if self.due == 0 {
            return false;
        }
        self.due -= 1;
        self.sent += 1;
        slot.write(Segment {
            seq: self.sent,
            ack: now,
            payload_bytes: self.packet_bytes - DATAGRAM_HEADER_BYTES,
            ip_bytes: self.packet_bytes,
            purpose: Purpose::Datagram,
            ..Segment::new(self.leg, self.direction)
        });
        true
    }

    /// Datagrams sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// From when on it sends no more; `NEVER` if it goes on.
    pub fn stop(&self) -> Nanos {
        self.stop
    }
}

/// Takes datagrams and measures them.
#[derive(Default)]
pub struct DatagramSink {
    received: u64,
    octets: u64,
    delays: Histogram,
    last_delay: Option<Nanos>,
    last_at: Nanos,
    /// Sum of the differences of the delays of neighbours.
    differences: u128,
}

impl DatagramSink {
    /// Takes a datagram.
    pub fn receive(&mut self, datagram: &Segment, now: Nanos) {
        let delay = now - datagram.ack;
        self.received += 1;
        self.octets += u64::from(datagram.payload_bytes);
        self.delays.add(delay);
        self.last_at = now;
        if let Some(last) = self.last_delay.replace(delay) {
            self.differences += u128::from(last.abs_diff(delay));
        }
    }

    /// Datagrams received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Octets of payload received.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// When the last one arrived; 0 before the first.
    pub fn last_at(&self) -> Nanos {
        self.last_at
    }

    /// Times from sending to arrival.
    pub fn delays(&self) -> &Histogram {
        &self.delays
    }

    /// Mean difference of the delays of two datagrams that arrived one after the other.
    ///
    /// Deviation: RFC 3550 §6.4.1 smooths the same differences over the last 16; the mean speaks of the whole run.
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
    fn jitter_is_the_mean_difference_of_neighbouring_delays() {
        let mut sink = DatagramSink::default();
        assert_eq!((sink.jitter(), sink.delays().max()), (None, None));
        for (sent, arrived) in [(0, 100), (1000, 1130), (2000, 2110)] {
            sink.receive(&datagram(sent), arrived);
        }
        assert_eq!(sink.jitter(), Some(25));
        assert_eq!(
            (sink.delays().max(), sink.received(), sink.octets()),
            (Some(130), 3, 516)
        );
    }
}

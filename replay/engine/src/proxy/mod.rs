//! A split proxy: a receiver towards the data sender, a sender towards the data receiver, and one bounded buffer
//! between them. Back-pressure is the advertised window alone; nothing is ever dropped inside.
//!
//! Does not depend on links. Read RFC 3135 §2 and Luglio et al.'s forwarding agent (half of the free memory is
//! advertised) in `docs/proxies.md` first.

use crate::app::sink::add_request;
use crate::config::AdvertisePolicy;
use crate::sim::time::Nanos;
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{Direction, Purpose, Segment, flags};
use crate::tcp::sender::Sender;

/// The relay buffer's size and how much of it is promised.
#[derive(Clone, Copy, Debug)]
pub struct RelayBuffer {
    /// Packets that fit.
    pub capacity_pkts: u64,
    /// Octets per packet: the upstream connection's full segment.
    pub packet_bytes: u64,
    /// How much of the free part is advertised.
    pub advertise: AdvertisePolicy,
}

impl RelayBuffer {
    /// Octets to advertise with `stored_bytes` in the buffer.
    ///
    /// Never more than is free, and what was promised before stays promised: so nothing overflows.
    pub fn window_bytes(&self, stored_bytes: u64) -> u64 {
        let free_pkts = self
            .capacity_pkts
            .saturating_sub(stored_bytes.div_ceil(self.packet_bytes));
        let promised_pkts = match self.advertise {
            AdvertisePolicy::HalfFree => free_pkts / 2,
            AdvertisePolicy::Free => free_pkts,
            AdvertisePolicy::Third => free_pkts.min(self.capacity_pkts / 3),
        };
        promised_pkts * self.packet_bytes
    }

    /// Octets that may be unacknowledged downstream, whatever the window there.
    pub fn downstream_bytes(&self) -> u64 {
        match self.advertise {
            AdvertisePolicy::HalfFree | AdvertisePolicy::Free => u64::MAX,
            AdvertisePolicy::Third => self.capacity_pkts / 3 * self.packet_bytes,
        }
    }

    /// Octets that fit.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_pkts * self.packet_bytes
    }
}

/// A proxy on one flow.
pub struct Proxy {
    upstream: Receiver,
    downstream: Sender,
    buffer: RelayBuffer,
    /// Window that the next receiver promises before it has said so (no handshake).
    next_window_bytes: u64,
    /// End of the data that upstream asked to pass on at once.
    pushed_to: Option<u64>,
    /// First octet and octets of a request on its way to the data sender.
    request: Option<(u64, u16)>,
    /// Offset after the last octet of the requests that came by.
    requested_to: u64,
    held_max_bytes: u64,
    stored_max_bytes: u64,
}

impl Proxy {
    /// A proxy between `upstream` and `downstream`, both new.
    pub fn new(
        upstream: Receiver,
        downstream: Sender,
        buffer: RelayBuffer,
        next_window_bytes: u64,
    ) -> Self {
        Self {
            upstream,
            downstream,
            buffer,
            next_window_bytes,
            pushed_to: None,
            request: None,
            requested_to: 1,
            held_max_bytes: 0,
            stored_max_bytes: 0,
        }
    }

    /// Takes a segment of either connection.
    pub fn receive(&mut self, segment: &Segment, now: Nanos) {
        match segment.direction {
            Direction::Forward => {
                if segment.has(flags::PSH) {
                    self.pushed_to = Some(segment.end());
                }
                self.upstream.receive(segment, now);
            }
            Direction::Reverse => {
                if segment.purpose == Purpose::Request {
                    self.request = Some((segment.seq, segment.payload_bytes));
                    self.requested_to = segment.end();
                    self.upstream.note_request(self.requested_to);
                }
                self.downstream.receive(segment, now);
            }
        }
        self.relay(now);
    }

    /// Passes on what has arrived in order, frees what has been acknowledged, and says how much room there is.
    fn relay(&mut self, now: Nanos) {
        if self.upstream.is_established() && !self.downstream.is_opening() {
            self.downstream.open(now, self.next_window_bytes);
        }
        let arrived = self.upstream.rcv_nxt();
        let edge = self.downstream.snd_una();
        let passed = arrived.min(edge.saturating_add(self.buffer.downstream_bytes()));
        self.downstream
            .write_to(passed, self.pushed_to.is_some_and(|end| passed >= end));
        if self.upstream.has_fin() && passed == arrived {
            self.downstream.close();
        }
        // Out-of-order data takes room as well.
        let stored =
            arrived.saturating_sub(self.downstream.snd_una()) + self.upstream.held_octets();
        self.stored_max_bytes = self.stored_max_bytes.max(stored);
        self.upstream.grant(self.buffer.window_bytes(stored));
        self.pass_on_reset(now);
    }

    /// Where one connection is gone, the other has no use.
    fn pass_on_reset(&mut self, now: Nanos) {
        if self.upstream.was_reset() && !self.downstream.has_ended() {
            self.downstream.abort(now);
        } else if self.downstream.reset_at().is_some() {
            self.upstream.abort();
        }
    }

    /// When it wants to be called.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        self.upstream
            .next_deadline()
            .min(self.downstream.next_deadline())
    }

    /// Its time has come.
    pub fn on_deadline(&mut self, now: Nanos) {
        if self.upstream.next_deadline() <= now {
            self.upstream.on_deadline(now);
        }
        if self.downstream.next_deadline() <= now {
            self.downstream.on_deadline(now);
            self.pass_on_reset(now);
        }
    }

    /// Writes the next segment of either connection into a slot; says whether there is one.
    #[inline]
    pub fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        if self.transmit_upstream(now, slot) {
            let held = self
                .upstream
                .last_ack_sent()
                .saturating_sub(self.downstream.snd_una());
            self.held_max_bytes = self.held_max_bytes.max(held);
            return true;
        }
        let sends = self.downstream.transmit(now, slot);
        if sends {
            slot.ack = self.downstream.ack_for(self.requested_to);
        }
        sends
    }

    /// Deviation: a request is passed on as it comes and repeated from end to end, not by the proxy.
    fn transmit_upstream(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        if let Some((seq, octets)) = self.request.take() {
            self.upstream.acknowledge(now, slot);
            add_request(slot, seq, octets);
            return true;
        }
        self.upstream.transmit(now, slot)
    }

    /// Its receiving half.
    pub fn upstream(&self) -> &Receiver {
        &self.upstream
    }

    /// Its sending half.
    pub fn downstream(&self) -> &Sender {
        &self.downstream
    }

    /// Most octets that it had acknowledged upstream but not yet seen acknowledged downstream.
    pub fn held_max_bytes(&self) -> u64 {
        self.held_max_bytes
    }

    /// Most octets that the buffer held, and how many fit.
    pub fn stored_max_bytes(&self) -> (u64, u64) {
        (self.stored_max_bytes, self.buffer.capacity_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_free_packets_rounded_down() {
        let buffer = RelayBuffer {
            capacity_pkts: 200,
            packet_bytes: 1448,
            advertise: AdvertisePolicy::HalfFree,
        };
        assert_eq!(buffer.window_bytes(0), 100 * 1448);
        assert_eq!(buffer.window_bytes(1), 99 * 1448);
        assert_eq!(buffer.window_bytes(198 * 1448), 1448);
        assert_eq!(buffer.window_bytes(199 * 1448), 0);
        let whole = RelayBuffer {
            advertise: AdvertisePolicy::Free,
            ..buffer
        };
        assert_eq!(whole.window_bytes(150 * 1448), 50 * 1448);
        assert_eq!(whole.downstream_bytes(), u64::MAX);
    }

    #[test]
    fn a_third_at_most_on_either_side_and_never_more_than_is_free() {
        let buffer = RelayBuffer {
            capacity_pkts: 200,
            packet_bytes: 1448,
            advertise: AdvertisePolicy::Third,
        };
        let window = |stored: u64| buffer.window_bytes(stored * 1448) / 1448;
        assert_eq!(
            [0, 133, 134, 135, 199, 200].map(window),
            [66, 66, 66, 65, 1, 0]
        );
        assert_eq!(buffer.downstream_bytes(), 66 * 1448);
    }
}

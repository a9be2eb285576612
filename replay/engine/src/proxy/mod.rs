//! A split-connection proxy: a receiver towards the data sender, a sender towards the data receiver, and one bounded
//! buffer between them. Only the advertised window exerts back-pressure; the proxy never drops data.
//!
//! Does not depend on links. Read RFC 3135 §2 and, in `docs/proxies.md`, Luglio et al.'s forwarding agent, which
//! advertises half of its free buffer.

use crate::app::sink::add_request;
use crate::config::AdvertisePolicy;
use crate::sim::time::Nanos;
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{Direction, Purpose, Segment, flags};
use crate::tcp::sender::Sender;

/// Size of the relay buffer, and the policy of its advertised window.
#[derive(Clone, Copy, Debug)]
pub struct RelayBuffer {
    /// Size in packets.
    pub capacity_pkts: u64,
    /// Octets per packet: a full segment of the upstream connection.
    pub packet_bytes: u64,
    /// Policy of the advertised window.
    pub advertise: AdvertisePolicy,
}

impl RelayBuffer {
    /// Window to advertise with `stored_bytes` in the buffer.
    ///
    /// It never exceeds the free space, and the right edge never moves left, so that the buffer cannot overflow.
    pub fn window_bytes(&self, stored_bytes: u64) -> u64 {
        let free_pkts = self
            .capacity_pkts
            .saturating_sub(stored_bytes.div_ceil(self.packet_bytes));
        let advertised_pkts = match self.advertise {
            AdvertisePolicy::HalfFree => free_pkts / 2,
            AdvertisePolicy::Free => free_pkts,
            AdvertisePolicy::Third => free_pkts.min(self.capacity_pkts / 3),
        };
        advertised_pkts * self.packet_bytes
    }

    /// Maximum number of octets that may be unacknowledged downstream, whatever the window there.
    pub fn downstream_bytes(&self) -> u64 {
        match self.advertise {
            AdvertisePolicy::HalfFree | AdvertisePolicy::Free => u64::MAX,
            AdvertisePolicy::Third => self.capacity_pkts / 3 * self.packet_bytes,
        }
    }

    /// Size in octets.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_pkts * self.packet_bytes
    }
}

/// A proxy of one flow.
pub struct Proxy {
    upstream: Receiver,
    downstream: Sender,
    buffer: RelayBuffer,
    /// Initial window of the next receiver if there is no handshake.
    next_window_bytes: u64,
    /// End of the data that arrived with PSH.
    pushed_to: Option<u64>,
    /// A request on its way to the data sender: first octet and number of octets.
    request: Option<(u64, u16)>,
    /// Offset after the last octet of the requests that have passed.
    requested_to: u64,
    buffered_max_bytes: u64,
    stored_max_bytes: u64,
}

impl Proxy {
    /// A proxy with the new halves `upstream` and `downstream`.
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
            buffered_max_bytes: 0,
            stored_max_bytes: 0,
        }
    }

    /// Receives a segment of either connection.
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

    /// Passes on what has arrived in order, frees what has been acknowledged, and updates the advertised window.
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
        // Out-of-order data take space as well.
        let stored =
            arrived.saturating_sub(self.downstream.snd_una()) + self.upstream.out_of_order_octets();
        self.stored_max_bytes = self.stored_max_bytes.max(stored);
        self.upstream.grant(self.buffer.window_bytes(stored));
        self.pass_on_reset(now);
    }

    /// When one connection has been reset, the other one is reset too.
    fn pass_on_reset(&mut self, now: Nanos) {
        if self.upstream.was_reset() && !self.downstream.has_ended() {
            self.downstream.abort(now);
        } else if self.downstream.reset_at().is_some() {
            self.upstream.abort();
        }
    }

    /// When it must be called.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        self.upstream
            .next_deadline()
            .min(self.downstream.next_deadline())
    }

    /// Its deadline has expired.
    pub fn on_deadline(&mut self, now: Nanos) {
        if self.upstream.next_deadline() <= now {
            self.upstream.on_deadline(now);
        }
        if self.downstream.next_deadline() <= now {
            self.downstream.on_deadline(now);
            self.pass_on_reset(now);
        }
    }

    /// Writes the next segment of either connection into a slot. Returns whether there is one.
    #[inline]
    pub fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        if self.transmit_upstream(now, slot) {
            let buffered = self
                .upstream
                .last_ack_sent()
                .saturating_sub(self.downstream.snd_una());
            self.buffered_max_bytes = self.buffered_max_bytes.max(buffered);
            return true;
        }
        let sends = self.downstream.transmit(now, slot);
        if sends {
            slot.ack = self.downstream.ack_for(self.requested_to);
        }
        sends
    }

    /// Deviation: the proxy passes requests on as they arrive; the client repeats lost ones end to end.
    fn transmit_upstream(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        if let Some((seq, octets)) = self.request.take() {
            self.upstream.acknowledge(now, slot);
            add_request(slot, seq, octets);
            return true;
        }
        self.upstream.transmit(now, slot)
    }

    /// Its receiver, towards the data sender.
    pub fn upstream(&self) -> &Receiver {
        &self.upstream
    }

    /// Its sender, towards the data receiver.
    pub fn downstream(&self) -> &Sender {
        &self.downstream
    }

    /// Maximum number of octets that it had acknowledged upstream and that were unacknowledged downstream.
    pub fn buffered_max_bytes(&self) -> u64 {
        self.buffered_max_bytes
    }

    /// Maximum number of octets in the buffer, and its size.
    pub fn stored_max_bytes(&self) -> (u64, u64) {
        (self.stored_max_bytes, self.buffer.capacity_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_free_buffer_is_advertised_in_whole_packets() {
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
    fn at_most_a_third_is_advertised_and_unacknowledged_and_never_more_than_is_free() {
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

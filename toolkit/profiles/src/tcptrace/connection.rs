//! A connection as tcptrace counts it: one packet after another, both directions.

use hindflight_decoder::flags;

use super::direction::Direction;
use super::sequence_space::{Added, elapsed_us};
use crate::pack::packed;
use crate::packet::{NO_SCALE, Packet};

packed! {
    /// A connection.
    #[derive(Debug, Default)]
    pub struct Connection {
        /// Time of the last packet.
        pub last_us: i64,
        /// Time of the first packet.
        pub first_us: i64,
        /// The direction of the first packet.
        pub a2b: Direction,
        /// The other direction.
        pub b2a: Direction,
    }
}

/// Time without a packet after which the next one starts another connection.
pub const MAX_IDLE_US: u64 = 240_000_000;

impl Connection {
    /// A connection whose first packet comes at `t_us`.
    pub fn new(t_us: i64) -> Self {
        Self {
            first_us: t_us,
            last_us: t_us,
            ..Self::default()
        }
    }

    /// Whether both sides sent FIN and everything was acknowledged, or one reset the connection.
    pub fn is_closed(&self) -> bool {
        self.is_finished()
            && (self.is_reset()
                || self.a2b.space.is_acknowledged() && self.b2a.space.is_acknowledged())
    }

    /// Whether both sides sent FIN, or one reset the connection.
    pub fn is_finished(&self) -> bool {
        self.a2b.fins > 0 && self.b2a.fins > 0 || self.is_reset()
    }

    /// Whether a side reset the connection.
    pub fn is_reset(&self) -> bool {
        self.a2b.resets > 0 || self.b2a.resets > 0
    }

    /// Counts the idle time from the last packets to `end_us`, the end of the capture, unless the connection is finished.
    pub fn end(&mut self, end_us: i64) {
        if !self.is_finished() {
            self.a2b.end_idle(end_us);
            self.b2a.end_idle(end_us);
        }
    }

    /// Whether `packet` starts another connection between the same ends: after four minutes, as a SYN outside the
    /// window of a connection with FIN or RST, or as a third SYN with another sequence number.
    #[inline]
    pub fn is_followed_by(&self, packet: &Packet, forward: bool) -> bool {
        if elapsed_us(self.last_us, packet.t_us) > MAX_IDLE_US {
            return true;
        }
        packet.has(flags::SYN) && self.is_followed_by_syn(packet, forward)
    }

    #[cold]
    fn is_followed_by_syn(&self, packet: &Packet, forward: bool) -> bool {
        let (sender, receiver) = if forward {
            (&self.a2b, &self.b2a)
        } else {
            (&self.b2a, &self.a2b)
        };
        let closing = self.a2b.fins > 0 || self.b2a.fins > 0 || self.is_reset();
        closing && (packet.seq > receiver.window_end || packet.seq < sender.syn)
            || sender.syns > 1 && sender.syn != packet.seq
    }

    /// Counts a packet.
    #[inline]
    pub fn push(&mut self, packet: &Packet, forward: bool) {
        self.last_us = packet.t_us;
        if forward {
            count(packet, &mut self.a2b, &mut self.b2a);
        } else {
            count(packet, &mut self.b2a, &mut self.a2b);
        }
    }
}

/// Counts a packet from `sender` to `receiver`.
#[inline]
fn count(packet: &Packet, sender: &mut Direction, receiver: &mut Direction) {
    let syn = packet.has(flags::SYN);
    let window = count_header(packet, sender, receiver);
    count_options(packet, sender, receiver);
    if packet.payload_bytes > 0 {
        sender.count_data(packet, packet.has(flags::PSH), packet.has(flags::URG));
    }
    sender.packets += 1;
    sender.scaled_packets += u64::from(sender.scaled_windows);
    sender.latest = packet.seq.wrapping_add(packet.payload_bytes);
    sender.count_copy(packet);
    let added = if packet.length() > 0 {
        count_sent(packet, sender, receiver)
    } else {
        Added::default()
    };
    if packet.has(flags::ACK) {
        receiver.acknowledge(packet, sender, window);
        if packet.ack == receiver.syn.wrapping_add(1) && receiver.syns == 1 {
            receiver.handshake_rtt_us = receiver.answers.last_rtt_us;
        }
    }
    if added.repeated > 0 {
        sender.retransmitted_packets += 1;
        sender.retransmitted_bytes += u64::from(added.repeated);
    }
    if packet.has(flags::RST) {
        sender.acks += u64::from(packet.has(flags::ACK));
        return;
    }
    sender.last_window = window;
    if packet.has(flags::ACK | flags::SYN) {
        let scales = sender.asked_scale && receiver.asked_scale && !syn;
        sender.count_window(window, scales);
    }
    if packet.has(flags::ACK) {
        count_ack(packet, sender, window);
        if receiver.syn.wrapping_add(1) != packet.ack {
            receiver.data_acknowledged = true;
        }
    }
    if packet.payload_bytes > 0 && !sender.data_acknowledged && added.repeated == 0 {
        sender.initial_bytes += u64::from(packet.payload_bytes);
        sender.initial_packets += 1;
    }
    if !syn && !added.out_of_order && added.repeated == 0 {
        sender.count_owin(owin(packet, sender, receiver), packet.t_us);
    }
}

/// Octets in flight after the packet: from the number before the last acknowledgement on.
#[inline]
fn owin(packet: &Packet, sender: &Direction, receiver: &Direction) -> u64 {
    if receiver.ack == 0 {
        return u64::from(packet.payload_bytes);
    }
    // Deviation: tcptrace subtracts 32-bit numbers as 64-bit ones, so that its value is off by 2^32 around a wrap and
    // above 2^63 where more is acknowledged than was sent.
    let in_flight = sender.latest.wrapping_sub(receiver.ack.wrapping_sub(1));
    u64::try_from(in_flight as i32).unwrap_or(0)
}

/// Counts control bits, times and the numbers of SYN and FIN. Returns the advertised window in octets.
#[inline]
fn count_header(packet: &Packet, sender: &mut Direction, receiver: &mut Direction) -> u64 {
    let syn = packet.has(flags::SYN);
    sender.syns += u32::from(syn);
    sender.resets += u32::from(packet.has(flags::RST));
    let fin = packet.has(flags::FIN);
    sender.fins += u32::from(fin);
    let mut window = 0;
    if packet.has(flags::ACK | flags::SYN) {
        window = u64::from(packet.window);
        if sender.asked_scale && receiver.asked_scale && !syn {
            window <<= sender.wscale & 63;
        }
    }
    sender.end_idle(packet.t_us);
    sender.last_us = Some(packet.t_us);
    let end = packet.seq.wrapping_add(packet.payload_bytes);
    sender.count_wrap(packet.seq, end);
    if syn {
        sender.syn = packet.seq;
        receiver.ack = packet.seq;
    }
    if fin {
        sender.fin = end;
    }
    if packet.has(flags::ACK) {
        sender.window_end = packet.ack.wrapping_add(window as u32);
    }
    window
}

#[inline]
fn count_options(packet: &Packet, sender: &mut Direction, receiver: &mut Direction) {
    if packet.mss > 0 {
        sender.mss = packet.mss;
    }
    if packet.wscale != NO_SCALE {
        sender.wscale = packet.wscale;
        sender.asked_scale = true;
    }
    sender.asked_timestamps |= packet.timestamps;
    let scales = sender.asked_scale && receiver.asked_scale;
    if !packet.has(flags::SYN) && !scales {
        (sender.wscale, receiver.wscale) = (0, 0);
    }
    sender.asked_sack |= packet.sack_permitted;
    sender.sacks += u64::from(packet.sack_blocks > 0);
}

/// Counts what a packet with data, SYN or FIN sends, for the first time or again. Returns what it repeats.
#[inline]
fn count_sent(packet: &Packet, sender: &mut Direction, receiver: &Direction) -> Added {
    let (syn, fin) = (packet.has(flags::SYN), packet.has(flags::FIN));
    if receiver.last_window == 0 && receiver.packets > 0 && !syn {
        sender.probe_packets += 1;
        sender.probe_bytes += u64::from(packet.payload_bytes);
        return Added::default();
    }
    let mut on = (&mut sender.resent, &mut sender.max_resent);
    let added = sender
        .space
        .add(packet.seq, packet.length(), packet.t_us, &mut on);
    sender.out_of_order_packets += u64::from(added.out_of_order);
    let mut repeated = i64::from(added.repeated);
    repeated -= i64::from(syn && sender.syns > 1) + i64::from(fin && sender.fins > 1);
    let unique = i64::from(packet.payload_bytes) - repeated;
    sender.unique_bytes += u64::try_from(unique).unwrap_or(0);
    added
}

/// Counts a packet with ACK.
#[inline]
fn count_ack(packet: &Packet, sender: &mut Direction, window: u64) {
    sender.zero_windows += u64::from(window == 0);
    sender.acks += 1;
    let pure = packet.length() == 0;
    sender.pure_acks += u64::from(pure);
    if packet.sack_blocks > 0 {
        sender.sack_packets += 1;
        sender.max_sack_blocks = sender.max_sack_blocks.max(packet.sack_blocks);
        sender.dsack_packets += u64::from(is_dsack(packet));
    }
    sender.ack = packet.ack;
}

/// Whether the first SACK block reports a duplicate (RFC 2883 §4), by plain comparison of numbers.
fn is_dsack(packet: &Packet) -> bool {
    let [(left, right), (next_left, next_right)] = packet.sack;
    right <= packet.ack
        || packet.sack_blocks > 1
            && (right <= next_right && left >= next_left
                || left <= next_left && right > next_left
                || right >= next_right && left < next_right)
}

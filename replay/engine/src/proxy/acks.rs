//! Acknowledgements that a proxy withholds until it has passed the octets on: it rewrites those of its receiver, and drops
//! those that would report nothing new.
//!
//! Does not depend on buffers. Read RFC 5681 §2 (duplicate ACK) and RFC 9293 §3.8.6.2.2 first.

use crate::tcp::segment::{Segment, flags};

/// What has been sent of acknowledgements, and what is owed.
#[derive(Clone, Copy, Debug)]
pub struct WithheldAcks {
    smss_bytes: u64,
    /// Octet that the last ACK on the wire awaited, and the right edge that it advertised.
    ack: u64,
    edge: u64,
    /// The receiver acknowledged more than that.
    owes: bool,
    /// What arrived has to be answered, whether or not there is anything new to report.
    must_answer: bool,
}

impl WithheldAcks {
    /// Nothing has been sent yet on a connection with these full segments, whose right edge is `edge` without a handshake.
    pub fn new(smss_bytes: u32, edge: u64) -> Self {
        Self {
            smss_bytes: smss_bytes.into(),
            ack: 1,
            edge,
            owes: false,
            must_answer: false,
        }
    }

    /// A segment arrived on a connection whose next octet is `rcv_nxt` and whose right edge is `edge`. One of old octets,
    /// or beyond the window, is a probe or a retransmission, whose sender waits for an answer.
    pub fn note_arrival(&mut self, segment: &Segment, rcv_nxt: u64, edge: u64) {
        self.must_answer |= segment.seq < rcv_nxt || segment.end() > edge;
    }

    /// Octet that the last ACK on the wire awaited.
    pub fn last_ack_sent(&self) -> u64 {
        self.ack
    }

    /// Whether an acknowledgement is owed now that octets up to `limit` may be acknowledged.
    pub fn releases(&self, limit: u64) -> bool {
        self.owes && limit > self.ack
    }

    /// Rewrites an acknowledgement of the receiver so that it covers nothing from `limit` on, without octets of options
    /// beyond `header_bytes`. Returns whether it leaves.
    pub fn pass(&mut self, slot: &mut Segment, limit: u64, header_bytes: u32) -> bool {
        if slot.flags & (flags::SYN | flags::RST) != 0 {
            self.edge = slot.ack + u64::from(slot.wnd_bytes);
            return true;
        }
        let withheld = slot.ack > limit;
        if withheld {
            // What is out of order lies behind octets that have arrived: reported, they would be retransmitted.
            slot.ip_bytes -=
                (slot.ip_bytes - slot.payload_bytes).saturating_sub(header_bytes as u16);
            slot.sack_len = 0;
            slot.wnd_bytes += (slot.ack - limit) as u32;
            slot.ack = limit;
        }
        self.owes = withheld;
        let edge = slot.ack + u64::from(slot.wnd_bytes);
        let leaves = !withheld
            || slot.ack > self.ack
            || slot.payload_bytes > 0
            || slot.has(flags::DUMMY)
            || std::mem::take(&mut self.must_answer)
            || self.opens(edge);
        if leaves {
            self.must_answer = false;
            (self.ack, self.edge) = (slot.ack, self.edge.max(edge));
        }
        leaves
    }

    /// RFC 9293 §3.8.6.2.2: a window update, where the receiver's silly window avoidance counts from what the other end
    /// knows.
    fn opens(&self, edge: u64) -> bool {
        let gain = edge.saturating_sub(self.edge);
        gain >= 2 * self.smss_bytes || gain > 0 && self.edge < self.ack + self.smss_bytes
    }
}

//! Spoofing: acknowledges data on behalf of the receiver, which does not know, keeps them until the receiver acknowledges
//! them, and retransmits those that get lost.
//!
//! The sequence numbers are end to end. SYN and FIN pass, and the receiver answers them itself. The window that the sender
//! sees never exceeds that of the receiver, nor the free memory, and its right edge never moves left. Read RFC 3135 §2.1.1
//! and RFC 2488 §4 first.

use super::Agent;
use super::local_cache::LocalCache;
use crate::sim::time::{Nanos, timestamp};
use crate::tcp::reassembly::Reassembly;
use crate::tcp::segment::{Direction, Purpose, Segment, flags};

/// RFC 5681 §3.2: duplicate ACKs that report a loss.
const DUP_THRESHOLD: u32 = 3;

/// State of a connection.
#[derive(Debug)]
pub struct Spoofing {
    pub cache: LocalCache,
    capacity_bytes: u64,
    /// Octet after the last one acknowledged to the sender, and what lies beyond it.
    acked: u64,
    beyond: Reassembly,
    /// Octet after the last one that the receiver acknowledged, and the right edge of its window.
    una: u64,
    receiver_edge: u64,
    /// Right edge that the sender knows.
    edge: u64,
    dupacks: u32,
    /// An ACK below it is a partial one.
    recovery_point: u64,
    /// A full segment, header of an ACK and number of SACK blocks of the connection.
    smss_bytes: u64,
    header_bytes: u32,
    sack_blocks: usize,
    ip_id: u16,
}

impl Spoofing {
    /// Nothing has come yet; without a handshake the receiver promises `window_bytes`.
    pub fn new(
        capacity_bytes: u64,
        window_bytes: u64,
        params: &crate::config::StackParams,
    ) -> Self {
        let sack_blocks = if params.sack_enabled() {
            params.sack_blocks()
        } else {
            0
        };
        Self {
            cache: LocalCache::new(capacity_bytes),
            capacity_bytes,
            acked: 1,
            beyond: Reassembly::default(),
            una: 1,
            receiver_edge: 1 + window_bytes,
            edge: 1 + window_bytes.min(capacity_bytes),
            dupacks: 0,
            recovery_point: 0,
            smss_bytes: params.smss_bytes.into(),
            header_bytes: params.header_bytes,
            sack_blocks,
            ip_id: 0,
        }
    }

    /// Octets that the sender takes for delivered and that the receiver has not acknowledged.
    pub fn undelivered_bytes(&self) -> u64 {
        self.acked.saturating_sub(self.una)
    }

    /// The right edge that may be advertised now: that of the receiver, within the memory.
    fn move_edge(&mut self) -> u64 {
        let edge = self.receiver_edge.min(self.una + self.capacity_bytes);
        self.edge = self.edge.max(edge);
        self.edge
    }

    /// Data towards the receiver.
    pub fn on_data(&mut self, agent: &mut Agent, segment: &Segment, now: Nanos) {
        let known = segment.end() <= self.acked;
        let mut answers = true;
        if !known {
            if self.cache.insert(segment, false, now) {
                self.beyond.insert(segment.seq, segment.end());
                self.acked = self.beyond.advance(self.acked);
            } else {
                // What is not kept the receiver acknowledges; beyond the window it may be a probe (RFC 9293 §3.8.6.1).
                answers = segment.end() > self.edge;
            }
            agent.push(segment);
        } else if segment.has(flags::FIN) {
            // The receiver answers it.
            agent.push(segment);
        }
        if answers {
            self.acknowledge(agent, segment, now);
        }
    }

    /// Acknowledges as the receiver would, an ACK for each segment.
    fn acknowledge(&mut self, agent: &mut Agent, segment: &Segment, now: Nanos) {
        self.ip_id = self.ip_id.wrapping_add(1);
        let mut ack = Segment {
            seq: agent.reverse_nxt,
            ack: self.acked,
            wnd_bytes: (self.move_edge() - self.acked) as u32,
            ts_val: timestamp(now),
            ts_ecr: segment.ts_val,
            ip_bytes: self.header_bytes as u16,
            ip_id: self.ip_id,
            flags: flags::ACK,
            purpose: Purpose::Ack,
            ..Segment::new(segment.leg, Direction::Reverse)
        };
        let base = self.acked;
        self.beyond.report(self.sack_blocks, |left, right| {
            ack.sack[usize::from(ack.sack_len)] = ((left - base) as i32, (right - base) as i32);
            ack.sack_len += 1;
        });
        if ack.sack_len > 0 {
            // RFC 2018 §3 with two octets of padding.
            ack.ip_bytes += 4 + 8 * u16::from(ack.sack_len);
        }
        agent.counts.spoofed_acks += 1;
        agent.push(&ack);
    }

    /// The receiver opens the connection: the window that it promises is unscaled, and within the memory.
    pub fn on_syn_ack(&mut self, agent: &mut Agent, segment: &Segment) {
        self.receiver_edge = self
            .receiver_edge
            .max(segment.ack + u64::from(segment.wnd_bytes));
        let edge = self.move_edge();
        let wnd_bytes = (edge - segment.ack.min(edge)) as u32;
        agent.push(&Segment {
            wnd_bytes,
            ..*segment
        });
    }

    /// An acknowledgement of the receiver; `alone`: it carries nothing else.
    pub fn on_ack(&mut self, agent: &mut Agent, ack: &Segment, alone: bool, now: Nanos) {
        let wnd = u64::from(ack.wnd_bytes);
        self.receiver_edge = self.receiver_edge.max(ack.ack + wnd);
        // What is not kept here is between the two ends.
        let passes = !alone
            || ack.has(flags::ECE)
            || ack.ack > self.acked
            || ack.ack == self.una && self.cache.len() == 0;
        if ack.ack > self.una {
            self.una = ack.ack;
            self.cache.acknowledge(ack.ack, now);
            self.dupacks = 0;
            if ack.ack > self.acked {
                self.acked = self.beyond.advance(ack.ack);
            }
            if ack.ack < self.recovery_point {
                // RFC 6582 §3.2: a partial ACK reports the next loss.
                self.retransmit(agent, now);
            }
        } else if alone && ack.ack == self.una && self.cache.first_with(ack.ack).is_some() {
            self.dupacks += 1;
            if self.dupacks == DUP_THRESHOLD && self.una >= self.recovery_point {
                self.recovery_point = self.cache.end();
                self.retransmit(agent, now);
            }
        }
        self.report(agent, ack, passes);
    }

    /// Passes on an acknowledgement that the sender must know of, and a window that opens (RFC 9293 §3.8.6.2.2).
    fn report(&mut self, agent: &mut Agent, ack: &Segment, passes: bool) {
        let known = self.edge;
        let edge = self.move_edge();
        let gain = edge - known;
        let opens = gain >= 2 * self.smss_bytes || gain > 0 && known < self.acked + self.smss_bytes;
        if !passes && !opens {
            self.edge = known;
            agent.counts.suppressed_acks += 1;
            return;
        }
        let to = self.acked.max(ack.ack);
        let mut shown = *ack;
        shown.ip_bytes -= if shown.sack_len > 0 {
            4 + 8 * u16::from(shown.sack_len)
        } else {
            0
        };
        shown.sack_len = 0;
        shown.ack = to;
        shown.wnd_bytes = edge.saturating_sub(to) as u32;
        agent.push(&shown);
    }

    /// The local timeout.
    pub fn on_timeout(&mut self, agent: &mut Agent, now: Nanos) {
        self.cache.back_off();
        self.recovery_point = self.cache.end();
        self.dupacks = 0;
        self.retransmit(agent, now);
    }

    fn retransmit(&mut self, agent: &mut Agent, now: Nanos) {
        if let Some(segment) = self.cache.take_again(now) {
            agent.counts.local_retransmissions += 1;
            agent.push(&segment);
        }
    }
}

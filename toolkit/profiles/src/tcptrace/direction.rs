//! The counters of one direction of a connection.

use super::samples::{FullSize, Samples};
use super::sequence_space::{OnAck, OnRetransmission, Sent, SequenceSpace, elapsed_us};
use crate::pack::packed;
use crate::packet::Packet;

/// Packets that are remembered to find duplicates by the hardware.
const REMEMBERED: usize = 8;

packed! {
    /// What the acknowledgements of one side's data show.
    #[derive(Debug, Default)]
    pub struct Answers {
        /// Round-trip times: of segments sent once, of the largest of them, of segments sent again.
        pub rtt: Samples,
        pub full_size: FullSize,
        pub rtt_resent: Samples,
        /// That of the last segment that an acknowledgement ended with; 0 without a sample.
        pub last_rtt_us: u64,
        /// Segments without a sample because an earlier one was sent after them.
        pub unsampled: u64,
        /// Segments that an acknowledgement covered without ending there.
        pub cumulative: u64,
        /// Duplicate acknowledgements, and third ones.
        pub duplicates: u64,
        pub third_duplicates: u64,
    }
}

packed! {
    /// What tcptrace counts of the segments of one side, and of the acknowledgements that it receives.
    #[derive(Debug, Default)]
    pub struct Direction {
        /// Segments, before those that its own rules leave out.
        pub packets: u64,
        /// Segments with RST, SYN and FIN.
        pub resets: u32,
        pub syns: u32,
        pub fins: u32,
        /// Segments with ACK, and those with nothing else.
        pub acks: u64,
        pub pure_acks: u64,
        /// Segments with SACK blocks: all, those that are not resets, those with D-SACK.
        pub sacks: u64,
        pub sack_packets: u64,
        pub dsack_packets: u64,
        pub max_sack_blocks: u8,
        /// Payload, without and with what was sent again.
        pub unique_bytes: u64,
        pub data_packets: u64,
        pub data_bytes: u64,
        pub pushed_packets: u64,
        pub retransmitted_packets: u64,
        pub retransmitted_bytes: u64,
        pub out_of_order_packets: u64,
        /// Segments while the other side's window is 0.
        pub probe_packets: u64,
        pub probe_bytes: u64,
        pub urgent_packets: u64,
        pub urgent_bytes: u64,
        pub max_segment_bytes: u32,
        pub min_segment_bytes: u32,
        /// Payload that was not captured.
        pub missing_bytes: u64,
        pub missing_packets: u64,
        /// Options.
        pub mss: u16,
        pub wscale: u8,
        pub asked_scale: bool,
        pub asked_timestamps: bool,
        pub asked_sack: bool,
        /// Windows advertised, in octets.
        pub max_window: u64,
        pub min_window: u64,
        pub window_sum: u64,
        pub last_window: u64,
        pub zero_windows: u64,
        pub scaled_windows: bool,
        pub scaled_packets: u64,
        /// Octets in flight.
        pub max_owin: u64,
        pub min_owin: u64,
        pub owin_sum: u64,
        pub owin_count: u64,
        pub owin_octet_seconds: u64,
        pub last_owin: u64,
        pub last_owin_us: Option<i64>,
        /// Data before the first acknowledgement of data.
        pub initial_bytes: u64,
        pub initial_packets: u64,
        pub data_acknowledged: bool,
        /// Sequence numbers: of SYN and FIN, after the last segment, last one acknowledged by this side, end of the
        /// window that this side offers.
        pub syn: u32,
        pub fin: u32,
        pub latest: u32,
        pub ack: u32,
        pub window_end: u32,
        /// Quarters of the sequence space seen since the last wrap; wraps.
        pub quarters: u8,
        pub wraps: u32,
        /// Times.
        pub last_us: Option<i64>,
        pub idle_max_us: u64,
        pub first_data_us: Option<i64>,
        pub last_data_us: i64,
        /// Copies of a packet.
        pub copies: u64,
        pub recent_seq: [u32; REMEMBERED],
        pub recent_id: [u16; REMEMBERED],
        pub recent_at: u8,
        /// Acknowledgements of this side's data.
        pub answers: Answers,
        pub handshake_rtt_us: u64,
        /// Times between transmissions of a segment.
        pub resent: Samples,
        pub max_resent: u32,
        /// What was sent.
        pub space: SequenceSpace,
    }
}

impl Direction {
    /// Counts a packet among the last ones with this sequence number and IP identification.
    #[inline]
    pub fn count_copy(&mut self, packet: &Packet) {
        let same =
            |at: usize| self.recent_seq[at] == packet.seq && self.recent_id[at] == packet.ip_id;
        if packet.seq != 0 && packet.ip_id != 0 && (0..REMEMBERED).any(same) {
            self.copies += 1;
            return;
        }
        let at = usize::from(self.recent_at);
        (self.recent_seq[at], self.recent_id[at]) = (packet.seq, packet.ip_id);
        self.recent_at = ((at + 1) % REMEMBERED) as u8;
    }

    /// Marks the quarters of the sequence space that hold `start` and `end`, and counts a wrap.
    #[inline]
    pub fn count_wrap(&mut self, start: u32, end: u32) {
        const ALL: u8 = 0b1111;
        if self.quarters == ALL && self.syn >> 30 == end >> 30 && end >= self.syn {
            self.wraps += 1;
            self.quarters = 0;
        }
        self.quarters |= 1 << (start >> 30) | 1 << (end >> 30);
    }

    /// Takes the idle time before `t_us` into account.
    #[inline]
    pub fn end_idle(&mut self, t_us: i64) {
        if let Some(last_us) = self.last_us {
            self.idle_max_us = self.idle_max_us.max(elapsed_us(last_us, t_us));
        }
    }

    /// Counts the payload of a segment.
    #[inline]
    pub fn count_data(&mut self, packet: &Packet, pushed: bool, urgent: bool) {
        let bytes = packet.payload_bytes;
        self.data_packets += 1;
        self.data_bytes += u64::from(bytes);
        self.pushed_packets += u64::from(pushed);
        if urgent {
            self.urgent_packets += 1;
            self.urgent_bytes += u64::from(packet.urgent);
        }
        self.max_segment_bytes = self.max_segment_bytes.max(bytes);
        if self.min_segment_bytes == 0 || bytes < self.min_segment_bytes {
            self.min_segment_bytes = bytes;
        }
        self.first_data_us.get_or_insert(packet.t_us);
        self.last_data_us = packet.t_us;
        if packet.missing_bytes > 0 {
            self.missing_bytes += u64::from(packet.missing_bytes);
            self.missing_packets += 1;
        }
    }

    /// Counts an advertised window of `window` octets; `scales` if it is scaled.
    #[inline]
    pub fn count_window(&mut self, window: u64, scales: bool) {
        self.max_window = self.max_window.max(window);
        if window > 0 && scales && !self.scaled_windows {
            self.scaled_windows = true;
            (self.min_window, self.max_window) = (window, window);
            (self.window_sum, self.scaled_packets) = (0, 1);
        } else if window > 0 && (self.min_window == 0 || window < self.min_window) {
            self.min_window = window;
        }
        self.window_sum += window;
    }

    /// Counts a sample of the octets in flight at `t_us`.
    #[inline]
    pub fn count_owin(&mut self, owin: u64, t_us: i64) {
        self.max_owin = self.max_owin.max(owin);
        if owin > 0 && (self.min_owin == 0 || owin < self.min_owin) {
            self.min_owin = owin;
        }
        self.owin_sum += owin;
        self.owin_count += 1;
        if let Some(last_us) = self.last_owin_us {
            let seconds = elapsed_us(last_us, t_us) as f64 / 1e6;
            self.owin_octet_seconds += (self.last_owin as f64 * seconds) as u64;
        }
        (self.last_owin, self.last_owin_us) = (owin, Some(t_us));
    }

    /// Takes an acknowledgement of this direction's data: `packet`, whose sender is `receiver`, with a window of
    /// `window` octets.
    #[inline]
    pub fn acknowledge(&mut self, packet: &Packet, receiver: &Direction, window: u64) {
        let repeats = packet.payload_bytes == 0
            && packet.ack == receiver.ack
            && window == receiver.last_window
            && self.owin_sum > 0;
        let mut on = Acknowledged {
            answers: &mut self.answers,
            t_us: packet.t_us,
            repeats,
        };
        self.space.acknowledge(packet.ack, &mut on);
    }

    /// Length of the stream from SYN to FIN, or to the last segment after a reset. `None` without SYN or FIN.
    pub fn stream_bytes(&self) -> Option<u64> {
        const SPACE: u64 = 1 << 32;
        if self.syns == 0 || self.fins == 0 {
            return None;
        }
        let last = if self.resets > 0 {
            self.latest
        } else {
            self.fin
        };
        let wraps = u64::from(self.wraps) + u64::from(last <= self.syn);
        Some((u64::from(last) + SPACE * wraps).wrapping_sub(u64::from(self.syn) + 1))
    }
}

impl OnRetransmission for (&mut Samples, &mut u32) {
    fn retransmission(&mut self, count: u32, elapsed_us: u64) {
        *self.1 = count.max(*self.1);
        self.0.add(elapsed_us);
    }
}

/// An acknowledgement at `t_us`; `repeats` the last one and fulfils the other conditions of a duplicate.
struct Acknowledged<'a> {
    answers: &'a mut Answers,
    t_us: i64,
    repeats: bool,
}

impl OnAck for Acknowledged<'_> {
    #[inline]
    fn cumulative(&mut self) {
        self.answers.cumulative += 1;
    }

    #[inline]
    fn exact(&mut self, sent: &Sent, later: bool) {
        let answers = &mut *self.answers;
        let sample_us = elapsed_us(sent.t_us, self.t_us);
        answers.last_rtt_us = 0;
        if later {
            answers.unsampled += 1;
        } else if sent.retransmissions > 0 {
            answers.rtt_resent.add(sample_us);
        } else {
            answers.last_rtt_us = sample_us;
            answers.rtt.add(sample_us);
            answers.full_size.add(sent.full_size(), sample_us);
        }
    }

    #[inline]
    fn again(&mut self) -> bool {
        self.answers.duplicates += u64::from(self.repeats);
        self.repeats
    }

    fn third(&mut self) {
        self.answers.third_duplicates += 1;
    }
}

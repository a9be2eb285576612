//! A segment on its way: `Copy`, SACK inline, 80 octets. Sequence numbers are 64-bit stream offsets (SYN = 0, first
//! octet of data = 1); only what leaves the engine as a capture folds them into 32 bits.
//!
//! Does not depend on endpoints. Read RFC 9293 §3.1 and RFC 2018 first.

/// Which way a segment travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the data sender: data.
    Forward,
    /// Towards the data sender: acknowledgements.
    Reverse,
}

/// Why a segment was sent. Not on the wire: for taps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Opening or closing.
    Control,
    /// Data for the first time.
    Data,
    /// Data again, found lost by duplicate ACKs, SACK or RACK.
    FastRetransmission,
    /// Data again, after a retransmission timeout.
    TimeoutRetransmission,
    /// A probe: of a tail loss, of a zero window, or of the path's room (a dummy segment).
    Probe,
    /// An acknowledgement.
    Ack,
    /// Data of the receiving end: its application asks for a page.
    Request,
    /// No TCP at all: cross traffic.
    Datagram,
}

/// The ECN field of an IP packet (RFC 3168 §5), as far as the engine uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The transport does not understand marks.
    #[default]
    NotEct,
    /// It does: ECT(0).
    Ect0,
    /// Congestion experienced: a queue has marked it.
    Ce,
}

/// TCP flag bits that the engine uses (RFC 9293 §3.1).
pub mod flags {
    /// No more data from the sender.
    pub const FIN: u8 = 1;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 2;
    /// Reset the connection.
    pub const RST: u8 = 4;
    /// What opens or ends a connection.
    pub const CONTROL: u8 = FIN | SYN | RST;
    /// Push.
    pub const PSH: u8 = 8;
    /// The acknowledgement field is significant.
    pub const ACK: u8 = 16;
    /// A low-priority segment that probes for capacity, or its answer (TCP-Peach takes a bit that TCP leaves unused; here
    /// that of URG, which the engine does not use).
    pub const DUMMY: u8 = 32;
    /// ECN-Echo (RFC 3168 §6.1).
    pub const ECE: u8 = 64;
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: u8 = 128;
}

/// One TCP segment in its IP packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// First octet.
    pub seq: u64,
    /// Next octet expected by the one who sends this.
    pub ack: u64,
    /// SACK blocks as offsets from `ack` (a DSACK block may lie before it).
    pub sack: [(i32, i32); 4],
    /// Advertised window in octets, rounded as the window scale makes it.
    pub wnd_bytes: u32,
    /// Timestamp value.
    pub ts_val: u32,
    /// Timestamp echo reply.
    pub ts_ecr: u32,
    /// Connection of the path it belongs to.
    pub leg: u16,
    /// Octets of payload.
    pub payload_bytes: u16,
    /// Octets of the IP packet.
    pub ip_bytes: u16,
    /// IPv4 identification.
    pub ip_id: u16,
    /// Flag bits.
    pub flags: u8,
    /// Blocks of `sack` in use.
    pub sack_len: u8,
    /// Which way it travels.
    pub direction: Direction,
    /// Why it was sent.
    pub purpose: Purpose,
    /// DSCP (RFC 2474 §3).
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// The sender reports that it is in slow start (RFC 2760 §3.2.3). Not on the wire: nobody has named an option for it.
    pub slow_start: bool,
    /// An ACK that no arrival triggered: an RTT sample from it would be too long. On the wire it echoes no timestamp
    /// (TSecr 0, RFC 7323 §3.2).
    pub waited: bool,
    /// Octets at its beginning that a proxy's memory has damaged. Not on the wire, where nothing shows it.
    pub damaged_bytes: u16,
}

impl Segment {
    /// An empty segment of `leg`.
    #[inline]
    pub fn new(leg: u16, direction: Direction) -> Self {
        Self {
            seq: 0,
            ack: 0,
            sack: [(0, 0); 4],
            wnd_bytes: 0,
            ts_val: 0,
            ts_ecr: 0,
            leg,
            payload_bytes: 0,
            ip_bytes: 0,
            ip_id: 0,
            flags: 0,
            sack_len: 0,
            direction,
            purpose: Purpose::Control,
            dscp: 0,
            ecn: Ecn::NotEct,
            slow_start: false,
            waited: false,
            damaged_bytes: 0,
        }
    }

    /// Makes a slot a segment without SACK blocks. Blocks beyond `sack_len` mean nothing: what they held stays.
    #[inline]
    pub fn write(&mut self, segment: Self) {
        let Self {
            seq,
            ack,
            sack: _,
            wnd_bytes,
            ts_val,
            ts_ecr,
            leg,
            payload_bytes,
            ip_bytes,
            ip_id,
            flags,
            sack_len: _,
            direction,
            purpose,
            dscp,
            ecn,
            slow_start,
            waited,
            damaged_bytes,
        } = segment;
        (self.seq, self.ack, self.wnd_bytes) = (seq, ack, wnd_bytes);
        (self.ts_val, self.ts_ecr, self.leg) = (ts_val, ts_ecr, leg);
        (self.payload_bytes, self.ip_bytes, self.ip_id) = (payload_bytes, ip_bytes, ip_id);
        (self.flags, self.sack_len, self.direction) = (flags, 0, direction);
        (self.purpose, self.dscp, self.ecn) = (purpose, dscp, ecn);
        (self.slow_start, self.waited) = (slow_start, waited);
        self.damaged_bytes = damaged_bytes;
    }

    /// One past the last octet of payload.
    #[inline]
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.payload_bytes)
    }

    /// The sequence number behind it: a FIN takes one (RFC 9293 §3.4).
    #[inline]
    pub fn seq_end(&self) -> u64 {
        self.end() + u64::from(self.flags & flags::FIN)
    }

    /// Whether it has all bits of `flag`.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag == flag
    }

    /// The SACK blocks as stream offsets.
    pub fn sack_blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ack = self.ack;
        self.sack[..usize::from(self.sack_len)]
            .iter()
            .map(move |&(left, right)| {
                (
                    ack.wrapping_add_signed(left.into()),
                    ack.wrapping_add_signed(right.into()),
                )
            })
    }

    /// RFC 2883 §4: the octets that arrived twice: a first block below the ACK, or within the second.
    pub fn dsack(&self) -> Option<(u64, u64)> {
        let mut blocks = self.sack_blocks();
        let (left, right) = blocks.next()?;
        let repeated = left < self.ack
            || (blocks.next()).is_some_and(|(start, end)| start <= left && right <= end);
        (left < right && repeated).then_some((left, right))
    }
}

const _: () = assert!(
    size_of::<Segment>() < 96,
    "a segment moves by value through every ring"
);

#[cfg(test)]
mod tests {
    use crate::tcp::ladder::{SMSS, parse};

    #[test]
    fn rfc2883_what_arrived_twice_lies_below_the_ack_or_within_the_second_block() {
        let twice = |ack: &str| {
            let octets = parse(ack, 0).dsack();
            octets.map(|(left, right)| (left / SMSS + 1, right / SMSS))
        };
        assert_eq!(twice("ack 4 sack 2-3,6-7"), Some((2, 3)));
        assert_eq!(twice("ack 4 sack 3-3"), Some((3, 3)));
        assert_eq!(twice("ack 4 sack 6-6,6-8,10-10"), Some((6, 6)));
        assert_eq!(twice("ack 4 sack 6-8,10-10"), None);
        assert_eq!(twice("ack 4 sack 6-8"), None);
        assert_eq!(twice("ack 4"), None);
    }
}

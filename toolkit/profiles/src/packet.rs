//! A segment reduced to what a profile counts, small enough to be handed from one thread to another.

use std::net::IpAddr;

use hindflight_decoder::{Segment, flags};

/// One end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Upper and lower half of the address; IPv4 addresses are mapped into IPv6 (RFC 4291 §2.5.5.2).
    address: [u64; 2],
    /// Port.
    pub port: u16,
}

const V4_MAPPED: u64 = 0xffff << 32;

impl End {
    #[inline]
    fn new(address: IpAddr, port: u16) -> Self {
        let address = match address {
            IpAddr::V4(v4) => [0, V4_MAPPED | u64::from(v4.to_bits())],
            IpAddr::V6(v6) => [(v6.to_bits() >> 64) as u64, v6.to_bits() as u64],
        };
        Self { address, port }
    }

    /// The address; an IPv4 address mapped into IPv6 is an IPv4 address.
    pub fn address(&self) -> IpAddr {
        IpAddr::from(
            (u128::from(self.address[0]) << 64 | u128::from(self.address[1])).to_be_bytes(),
        )
        .to_canonical()
    }

    #[inline]
    fn hash(&self) -> u64 {
        const FIRST: u64 = 0x9E37_79B9_7F4A_7C15;
        const SECOND: u64 = 0xD6E8_FEB8_6659_FD93;
        let upper = self.address[0].rotate_left(17) ^ u64::from(self.port) ^ FIRST;
        let product = u128::from(upper) * u128::from(self.address[1] ^ SECOND);
        (product >> 64) as u64 ^ product as u64
    }
}

/// Source and destination of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Source of the segment, or of the first one of a connection.
    pub a: End,
    /// Destination.
    pub b: End,
}

impl Ends {
    /// The ends of a segment, its source first.
    #[inline]
    pub fn of(segment: &Segment) -> Self {
        Self {
            a: End::new(segment.src, segment.src_port),
            b: End::new(segment.dst, segment.dst_port),
        }
    }

    /// A hash that is the same for both directions.
    #[inline]
    pub fn hash(&self) -> u64 {
        const MIX: u64 = 0xA076_1D64_78BD_642F;
        let product =
            u128::from(self.a.hash().wrapping_add(self.b.hash()) ^ MIX) * u128::from(MIX | 1);
        (product >> 64) as u64 ^ product as u64
    }

    /// The same ends in the other direction.
    #[inline]
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            a: self.b,
            b: self.a,
        }
    }
}

/// What a profile reads of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Time since 1970-01-01 UTC in microseconds, rounded down.
    pub t_us: i64,
    /// Source and destination.
    pub ends: Ends,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Payload length.
    pub payload_bytes: u32,
    /// Octets of the payload that were not captured.
    pub missing_bytes: u32,
    /// SACK blocks: left and right edge of the first two.
    pub sack: [(u32, u32); 2],
    /// Number of SACK blocks.
    pub sack_blocks: u8,
    /// Window scale shift; [`NO_SCALE`] without the option.
    pub wscale: u8,
    /// Window field.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// IPv4 identification; 0 for IPv6.
    pub ip_id: u16,
    /// Maximum segment size; 0 without the option.
    pub mss: u16,
    /// The lower eight control bits.
    pub flags: u8,
    /// Has timestamps.
    pub timestamps: bool,
    /// Permits SACK.
    pub sack_permitted: bool,
}

/// Value of [`Packet::wscale`] of a segment without the option.
pub const NO_SCALE: u8 = u8::MAX;

impl Packet {
    /// The packet of a segment.
    #[inline]
    pub fn of(segment: &Segment) -> Self {
        let options = &segment.options;
        let blocks = options.sack.as_slice();
        Self {
            t_us: segment.t_ns.div_euclid(1000),
            ends: Ends::of(segment),
            seq: segment.seq,
            ack: segment.ack,
            payload_bytes: segment.payload_bytes,
            missing_bytes: segment.missing_bytes,
            sack: [0, 1].map(|at| blocks.get(at).copied().unwrap_or_default()),
            sack_blocks: blocks.len() as u8,
            wscale: options.wscale.unwrap_or(NO_SCALE),
            window: segment.window,
            urgent: segment.urgent,
            ip_id: segment.ip_id.unwrap_or(0),
            mss: options.mss.unwrap_or(0),
            flags: segment.flags as u8,
            timestamps: options.timestamps.is_some(),
            sack_permitted: options.sack_permitted,
        }
    }

    /// Whether any of the control bits of `mask` is set.
    #[inline]
    pub fn has(&self, mask: u16) -> bool {
        u16::from(self.flags) & mask != 0
    }

    /// Sequence numbers that the segment takes: its payload, SYN and FIN.
    #[inline]
    pub fn length(&self) -> u32 {
        self.payload_bytes + u32::from(self.has(flags::SYN)) + u32::from(self.has(flags::FIN))
    }
}

//! A segment of the engine as it would stand in a capture at one end of its leg. Decides nothing but addresses.

use std::net::{IpAddr, Ipv4Addr};

use hindflight_decoder::{Checksum, Segment as WireSegment, TcpOptions};
use hindflight_engine::{Direction, Ecn, Leg, Segment, flags};

/// Hop limit that hosts set.
const TTL: u8 = 64;
/// Ethernet header of a frame.
const FRAME_HEADER_BYTES: u32 = 14;
/// First port of senders, and the port of receivers.
const SENDER_PORT: u16 = 40_000;
const RECEIVER_PORT: u16 = 5001;
/// Octets of a timestamps option with its padding (RFC 7323 appendix A), which the MSS option does not deduct.
const TIMESTAMPS_BYTES: u32 = 12;

/// Where a capture is taken: the end of a leg from which segments of this direction leave.
pub const DATA_SENDER: Direction = Direction::Forward;
/// See [`DATA_SENDER`].
pub const DATA_RECEIVER: Direction = Direction::Reverse;

/// `segment` of `leg` as record number `record` of a capture at the end `at`.
pub fn wire(leg: &Leg, segment: &Segment, record: u64, now: i64, at: Direction) -> WireSegment {
    let forward = segment.direction == Direction::Forward;
    let source = (address(leg.source_site), SENDER_PORT + leg.flow as u16);
    let sink = (address(leg.sink_site), RECEIVER_PORT);
    let ((src, src_port), (dst, dst_port)) = if forward {
        (source, sink)
    } else {
        (sink, source)
    };
    let [own_isn, other_isn] = if forward {
        leg.isn
    } else {
        [leg.isn[1], leg.isn[0]]
    };
    let routers = leg.routers;
    // RFC 7323 §2.2: the window of a SYN is not scaled.
    let shift = if forward || segment.has(flags::SYN) {
        0
    } else {
        leg.wscale
    };
    let ip_bytes = u32::from(segment.ip_bytes);
    WireSegment {
        record,
        t_ns: now,
        frame_bytes: ip_bytes + FRAME_HEADER_BYTES,
        captured_bytes: ip_bytes + FRAME_HEADER_BYTES,
        src,
        dst,
        src_port,
        dst_port,
        ip_id: Some(segment.ip_id),
        ttl: if segment.direction == at {
            TTL
        } else {
            TTL.saturating_sub(routers)
        },
        dscp_ecn: segment.dscp << 2 | ecn_bits(segment.ecn),
        ip_bytes,
        seq: own_isn.wrapping_add(if segment.has(flags::SYN) {
            0
        } else {
            segment.seq as u32
        }),
        ack: if segment.has(flags::ACK) {
            other_isn.wrapping_add(segment.ack as u32)
        } else {
            0
        },
        flags: u16::from(segment.flags),
        window: (segment.wnd_bytes >> shift) as u16,
        urgent: 0,
        payload_bytes: u32::from(segment.payload_bytes),
        missing_bytes: u32::from(segment.payload_bytes),
        ip_checksum: Checksum::NotChecked,
        tcp_checksum: Checksum::NotChecked,
        options: options(leg, segment, other_isn),
    }
}

fn options(leg: &Leg, segment: &Segment, other_isn: u32) -> TcpOptions {
    let params = &leg.params;
    let mut options = TcpOptions {
        timestamps: params
            .timestamps
            .then_some((segment.ts_val, segment.ts_ecr)),
        ..TcpOptions::default()
    };
    if segment.has(flags::SYN) {
        let deducted = if params.timestamps {
            TIMESTAMPS_BYTES
        } else {
            0
        };
        options.mss = Some((params.smss_bytes + deducted) as u16);
        options.wscale = Some(if segment.direction == Direction::Forward {
            0
        } else {
            leg.wscale
        });
        options.sack_permitted = params.sack_enabled();
    }
    for (left, right) in segment.sack_blocks() {
        options.sack.push(
            other_isn.wrapping_add(left as u32),
            other_isn.wrapping_add(right as u32),
        );
    }
    options
}

/// Address of the node at `site`, out of a private range.
fn address(site: usize) -> IpAddr {
    let host = site as u32 + 1;
    IpAddr::V4(Ipv4Addr::from_bits(
        Ipv4Addr::new(10, 0, 0, 0).to_bits() + host,
    ))
}

/// RFC 3168 §5.
fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

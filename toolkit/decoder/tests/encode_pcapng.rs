//! Packets written as pcapng decode to the segments that they were made of, IPv4 and IPv6, and keep their comments.
#![allow(missing_docs)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hindflight_decoder::{
    Checksum, EncodeError, Reader, Segment, TcpOptions, encode_packet, flags, pcapng_header,
};
use proptest::prelude::*;

fn segment(v6: bool, options: TcpOptions, header_bytes: u32, payload_bytes: u32) -> Segment {
    let (src, dst): (IpAddr, IpAddr) = if v6 {
        let host = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0xa00, last).into();
        (host(1), host(2))
    } else {
        (
            Ipv4Addr::new(10, 0, 0, 1).into(),
            Ipv4Addr::new(10, 0, 0, 3).into(),
        )
    };
    let ip_bytes = header_bytes + payload_bytes;
    Segment {
        record: 1,
        t_ns: 1_700_000_000_123_456_789,
        frame_bytes: ip_bytes + 14,
        captured_bytes: header_bytes + 14,
        src,
        dst,
        src_port: 40_000,
        dst_port: 5001,
        ip_id: (!v6).then_some(77),
        ttl: 63,
        dscp_ecn: 0xb9,
        ip_bytes,
        seq: 0xFFFF_FFF0,
        ack: 5,
        flags: flags::ACK | flags::AE,
        window: 512,
        urgent: 0,
        payload_bytes,
        missing_bytes: payload_bytes,
        ip_checksum: Checksum::NotChecked,
        tcp_checksum: Checksum::NotChecked,
        options,
    }
}

fn file(packets: &[(Segment, &[u8], &str)]) -> Vec<u8> {
    let mut out = pcapng_header("hindflight 1", "a test");
    for (segment, others, comment) in packets {
        encode_packet(segment, others, comment, &mut out).expect("encodable");
    }
    out
}

#[test]
fn blocks_have_their_length_at_both_ends_and_comments_are_options() {
    let plain = segment(false, TcpOptions::default(), 40, 100);
    let octets = file(&[(plain, &[], "lost: channel"), (plain, &[], "")]);
    let mut at = 0;
    let mut kinds = Vec::new();
    while at < octets.len() {
        let field =
            |at: usize| u32::from_le_bytes(octets[at..at + 4].try_into().expect("4 octets"));
        let length = field(at + 4) as usize;
        assert_eq!(field(at + length - 4) as usize, length);
        assert_eq!(length % 4, 0);
        kinds.push(field(at));
        at += length;
    }
    assert_eq!(kinds, [0x0A0D_0D0A, 1, 6, 6]);
    let comment: &[u8] = &[1, 0, 13, 0, b'l', b'o', b's', b't', b':'];
    assert_eq!(
        octets
            .windows(9)
            .filter(|window| *window == comment)
            .count(),
        1
    );
}

#[test]
fn unusual_options_and_lengths_are_kept() {
    let timestamps = TcpOptions {
        timestamps: Some((9, 8)),
        ..TcpOptions::default()
    };
    // An unknown option; 38 octets that fit only without alignment; an IPv6 packet with extension headers of 8 octets;
    // a super-segment, whose IP length is 0.
    let fast_open: &[u8] = &[34, 10, 1, 2, 3, 4, 5, 6, 7, 8];
    let long: Vec<u8> = [254, 28].into_iter().chain([7; 26]).collect();
    let cases: [(Segment, &[u8]); 4] = [
        (segment(false, timestamps, 64, 0), fast_open),
        (segment(false, timestamps, 80, 1000), &long),
        (segment(true, timestamps, 40 + 60 + 8, 100), &[]),
        (segment(false, timestamps, 52, 100_000), &[]),
    ];
    let packets: Vec<_> = cases.iter().map(|(s, others)| (*s, *others, "")).collect();
    let octets = file(&packets);
    let mut reader = Reader::new(&octets[..])
        .expect("a capture")
        .without_checksums();
    for (expected, others) in cases {
        let found = reader.next_segment().expect("a segment");
        assert_eq!(found.options_other, others);
        assert_eq!(
            Segment {
                record: 1,
                captured_bytes: expected.captured_bytes,
                ..*found.segment
            },
            expected
        );
    }
    assert!(reader.next_segment().is_none());
}

#[test]
fn what_cannot_be_encoded_leaves_the_output_unchanged() {
    let mut out = vec![1, 2, 3, 4];
    let good = segment(false, TcpOptions::default(), 40, 0);
    let mixed = Segment {
        dst: Ipv6Addr::LOCALHOST.into(),
        ..good
    };
    assert_eq!(
        encode_packet(&mixed, &[], "", &mut out),
        Err(EncodeError::MixedVersions)
    );
    let early = Segment { t_ns: -1, ..good };
    assert_eq!(
        encode_packet(&early, &[], "", &mut out),
        Err(EncodeError::Time)
    );
    for header_bytes in [36, 42, 124] {
        let wrong = segment(false, TcpOptions::default(), header_bytes, 0);
        let ended = encode_packet(&wrong, &[], "", &mut out);
        assert!(
            matches!(ended, Err(EncodeError::HeaderLength { .. })),
            "{header_bytes}"
        );
    }
    assert_eq!(out, [1, 2, 3, 4]);
}

proptest! {
    #[test]
    fn any_packet_decodes_to_itself(
        v6 in any::<bool>(),
        syn in any::<Option<(u16, u8, bool)>>(),
        timestamps in any::<Option<(u32, u32)>>(),
        padding_words in 0_u32..8,
        payload_bytes in 0_u32..9000,
        comment in ".{0,40}",
        t_ns in 0_i64..1 << 62,
    ) {
        let mut options = TcpOptions { timestamps, ..TcpOptions::default() };
        if let Some((mss, shift, permitted)) = syn {
            options.mss = Some(mss);
            options.wscale = Some(shift % 15);
            options.sack_permitted = permitted;
        }
        let ip = if v6 { 40 } else { 20 };
        let option_bytes = syn.map_or(0, |syn| 8 + if syn.2 && timestamps.is_none() { 4 } else { 0 })
            + timestamps.map_or(0, |_| 12);
        let header_bytes = ip + 20 + option_bytes + 4 * padding_words.min((40 - option_bytes) / 4);
        let expected = Segment { t_ns, ..segment(v6, options, header_bytes, payload_bytes) };
        let octets = file(&[(expected, &[], &comment)]);
        let mut reader = Reader::new(&octets[..]).expect("a capture").without_checksums();
        prop_assert_eq!(*reader.next_segment().expect("a segment").segment, expected);
        prop_assert!(reader.next_segment().is_none());
        prop_assert!(reader.issues().is_empty());
    }
}

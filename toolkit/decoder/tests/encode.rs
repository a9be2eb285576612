//! Encoded segments decode to themselves, for all fields and header lengths, and have valid checksums.
#![allow(missing_docs)]

use std::net::{IpAddr, Ipv4Addr};

use hindflight_decoder::{
    Checksum, EncodeError, Reader, Segment, TcpOptions, capture_header, encode_record, flags,
};
use proptest::prelude::*;

const RECORD_HEADER_BYTES: usize = 16;
const ETHERNET_BYTES: usize = 14;

fn data_segment() -> Segment {
    Segment {
        record: 1,
        t_ns: 3_000_000_007,
        frame_bytes: 14 + 1500,
        captured_bytes: 14 + 52,
        src: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
        dst: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)),
        src_port: 40_000,
        dst_port: 5001,
        ip_id: Some(77),
        ttl: 64,
        dscp_ecn: 0x2a,
        ip_bytes: 1500,
        seq: 0xFFFF_FFF0,
        ack: 5,
        flags: flags::ACK | flags::ECE,
        window: 512,
        urgent: 3,
        payload_bytes: 1448,
        missing_bytes: 1448,
        ip_checksum: Checksum::NotChecked,
        tcp_checksum: Checksum::NotChecked,
        options: TcpOptions {
            timestamps: Some((9, 8)),
            ..TcpOptions::default()
        },
    }
}

fn capture(segments: &[Segment]) -> Vec<u8> {
    let mut out = capture_header();
    for segment in segments {
        encode_record(segment, &mut out).expect("encodable");
    }
    out
}

/// Ones' complement sum of the 16-bit words: 0xFFFF if the checksum among them is valid (RFC 1071 §1).
fn ones_complement_sum(octets: &[u8]) -> u64 {
    let mut sum: u64 = octets
        .chunks(2)
        .map(|word| u64::from(word[0]) * 256 + u64::from(*word.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xFFFF {
        sum = sum % 0x1_0000 + sum / 0x1_0000;
    }
    sum
}

fn assert_checksums(record: &[u8], segment: &Segment) {
    let packet = &record[RECORD_HEADER_BYTES + ETHERNET_BYTES..];
    let ip_header = usize::from(packet[0] & 15) * 4;
    assert_eq!(
        ones_complement_sum(&packet[..ip_header]),
        0xFFFF,
        "IP checksum"
    );
    let tcp_bytes = segment.ip_bytes - ip_header as u32;
    let mut covered = packet[12..20].to_vec();
    covered.extend([0, 6]);
    covered.extend((tcp_bytes as u16).to_be_bytes());
    covered.extend(&packet[ip_header..]);
    assert_eq!(ones_complement_sum(&covered), 0xFFFF, "TCP checksum");
}

#[test]
fn an_encoded_segment_decodes_to_itself() {
    let octets = capture(&[data_segment()]);
    let mut reader = Reader::new(&octets[..])
        .expect("a capture")
        .without_checksums();
    assert_eq!(reader.header().snaplen_bytes, 134);
    assert_eq!(reader.header().resolution_ns, 1);
    let found = reader.next_segment().expect("one segment");
    assert_eq!(*found.segment, data_segment());
    assert!(found.options_other.is_empty());
    assert!(reader.next_segment().is_none());
    assert!(reader.issues().is_empty());
    assert_checksums(&octets[24..], &data_segment());
}

#[test]
fn a_linux_syn_has_sixty_octets() {
    let options = TcpOptions {
        mss: Some(1460),
        wscale: Some(7),
        sack_permitted: true,
        timestamps: Some((1, 0)),
        ..TcpOptions::default()
    };
    let mut syn = Segment {
        flags: flags::SYN,
        payload_bytes: 0,
        ip_bytes: 60,
        options,
        ..data_segment()
    };
    let octets = capture(&[syn]);
    let wire: &[u8] = &[
        2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    assert!(octets.ends_with(wire));
    for wrong in [56, 62, 1500, 0] {
        syn.ip_bytes = wrong;
        let error = encode_record(&syn, &mut Vec::new());
        let expected = EncodeError::HeaderLength {
            header_bytes: i64::from(wrong),
            min_bytes: 60,
            max_bytes: 120,
        };
        assert_eq!(error, Err(expected), "{wrong} B");
    }
}

#[test]
fn a_segment_that_cannot_be_encoded_leaves_the_output_unchanged() {
    let mut out = vec![1, 2, 3];
    let v6 = Segment {
        dst: IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        ..data_segment()
    };
    assert_eq!(
        encode_record(&v6, &mut out),
        Err(EncodeError::MixedVersions)
    );
    for t_ns in [-1, (1 << 32) * 1_000_000_000] {
        let segment = Segment {
            t_ns,
            ..data_segment()
        };
        assert_eq!(encode_record(&segment, &mut out), Err(EncodeError::Time));
    }
    let last = Segment {
        t_ns: (1 << 32) * 1_000_000_000 - 1,
        ..data_segment()
    };
    assert_eq!(out, [1, 2, 3]);
    encode_record(&last, &mut out).expect("the last representable time");
}

fn options() -> impl Strategy<Value = TcpOptions> {
    let parts = (
        any::<Option<(u16, u8)>>(),
        any::<bool>(),
        any::<Option<(u32, u32)>>(),
        prop::collection::vec(any::<(u32, u32)>(), 0..4),
    );
    parts.prop_map(|(syn, permitted, timestamps, blocks)| {
        let mut options = TcpOptions {
            timestamps,
            ..TcpOptions::default()
        };
        if let Some((mss, shift)) = syn {
            options.mss = Some(mss);
            options.wscale = Some(shift % 15);
            options.sack_permitted = permitted;
        } else {
            for (left, right) in blocks {
                options.sack.push(left, right);
            }
        }
        options
    })
}

fn min_header_bytes(options: &TcpOptions) -> u32 {
    let syn = if options.mss.is_some() { 8 } else { 0 };
    let blocks = options.sack.as_slice().len() as u32;
    let sack = if blocks > 0 { 4 + 8 * blocks } else { 0 };
    let timestamps = match (options.timestamps, options.sack_permitted) {
        (Some(_), _) => 12,
        (None, true) => 4,
        (None, false) => 0,
    };
    40 + syn + sack + timestamps
}

proptest! {
    #[test]
    fn any_encoded_segment_decodes_to_itself(
        options in options(),
        padding_words in 0_u32..11,
        payload_bytes in 0_u32..9000,
        numbers in any::<(u32, u32, u16, u16)>(),
        bits in (0_u16..512, any::<u8>(), any::<u8>()),
        t_ns in 0_i64..1 << 61,
    ) {
        let header_bytes = min_header_bytes(&options) + 4 * padding_words;
        let segment = Segment {
            t_ns,
            seq: numbers.0,
            ack: if bits.0 & flags::ACK == 0 { 0 } else { numbers.1 },
            window: numbers.2,
            ip_id: Some(numbers.3),
            flags: bits.0,
            ttl: bits.1,
            dscp_ecn: bits.2,
            payload_bytes,
            missing_bytes: payload_bytes,
            ip_bytes: header_bytes + payload_bytes,
            frame_bytes: header_bytes + payload_bytes + 14,
            captured_bytes: header_bytes + 14,
            options,
            ..data_segment()
        };
        let octets = capture(&[segment, segment]);
        assert_checksums(&octets[24..24 + (octets.len() - 24) / 2], &segment);
        let mut reader = Reader::new(&octets[..]).expect("a capture").without_checksums();
        for record in [1, 2] {
            let found = *reader.next_segment().expect("a segment").segment;
            prop_assert_eq!(found, Segment { record, ..segment });
        }
        prop_assert!(reader.next_segment().is_none());
        prop_assert!(reader.issues().is_empty());
    }
}

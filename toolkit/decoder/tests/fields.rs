//! Fields of a segment over all link types, IP versions and TCP options.
#![allow(missing_docs)]

mod support;

use std::net::IpAddr;

use hindflight_decoder::{Checksum, Format, IssueKind, Other, Reader, Segment};
use support::{Capture, Tcp, ethernet, ipv4, ipv6, tcp_frame};

type Decoded = (Vec<(Segment, Vec<u8>)>, Vec<(u64, IssueKind)>);

fn decode(capture: &Capture) -> Decoded {
    let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
    let mut segments = Vec::new();
    while let Some(found) = reader.next_segment() {
        segments.push((*found.segment, found.options_other.to_vec()));
    }
    let issues = reader.issues().iter().map(|i| (i.record, i.kind)).collect();
    (segments, issues)
}

fn only(frame: &[u8]) -> (Segment, Vec<u8>) {
    let (segments, issues) = decode(Capture::plain().frame(frame));
    assert_eq!(issues, []);
    assert_eq!(segments.len(), 1);
    segments[0].clone()
}

fn only_on(link: u32, frame: &[u8]) -> Segment {
    let (segments, issues) = decode(Capture::new(false, false, 65_535, link).frame(frame));
    assert_eq!(issues, [], "link type {link}");
    assert_eq!(segments.len(), 1, "link type {link}");
    segments[0].0
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn every_field_of_an_ipv4_segment() {
    let frame = tcp_frame(&Tcp {
        flags: 0x1ff,
        ..Tcp::default()
    });
    let (segment, other) = only(&frame);
    let expected = Segment {
        record: 1,
        t_ns: 1_700_000_000_000_000_000,
        frame_bytes: 64,
        captured_bytes: 64,
        src: address("10.77.0.1"),
        dst: address("10.77.0.2"),
        src_port: 40_000,
        dst_port: 5001,
        ip_id: Some(0x1234),
        ttl: 61,
        dscp_ecn: 0x2a,
        ip_bytes: 50,
        seq: 1_000_000_007,
        ack: 2_000_000_011,
        flags: 0x1ff,
        window: 512,
        urgent: 0,
        payload_bytes: 10,
        missing_bytes: 0,
        ip_checksum: Checksum::Bad,
        tcp_checksum: Checksum::Bad,
        options: segment.options,
    };
    assert_eq!(segment, expected);
    assert_eq!(other, []);
}

#[test]
fn every_field_that_differs_in_ipv6() {
    let (segment, _) = only(&ethernet(0x86dd, &ipv6(6, &Tcp::default().octets())));
    assert_eq!(segment.src, address("2001:db8::1"));
    assert_eq!(segment.dst, address("2001:db8::2"));
    assert_eq!(
        (segment.ip_id, segment.ttl, segment.dscp_ecn),
        (None, 59, 0x2a)
    );
    assert_eq!((segment.ip_bytes, segment.payload_bytes), (70, 10));
}

#[test]
fn byte_orders_and_resolutions_give_the_same_times() {
    for big_endian in [false, true] {
        for (nanosecond, fraction) in [(false, 123_456), (true, 123_456_000)] {
            let mut capture = Capture::new(big_endian, nanosecond, 100, 1);
            capture.record(1_600_000_000, fraction, 64, &tcp_frame(&Tcp::default()));
            let (segments, issues) = decode(&capture);
            assert_eq!(segments[0].0.t_ns, 1_600_000_000_123_456_000);
            assert_eq!(issues, []);
        }
    }
}

/// A file of one frame of 64 octets, of which 60 were captured, with the length fields as given.
fn one_record(version: [u8; 4], lengths: [u32; 2], extra: &[u8]) -> Vec<u8> {
    let mut octets = Capture::plain().octets;
    octets[4..8].copy_from_slice(&version);
    for field in [1_600_000_000, 123_456, lengths[0], lengths[1]] {
        octets.extend(u32::to_le_bytes(field));
    }
    octets.extend(extra);
    octets.extend(&tcp_frame(&Tcp::default())[..60]);
    octets
}

fn lengths_of(octets: &[u8]) -> (u32, u32) {
    let mut reader = Reader::new(octets).expect("a capture");
    let segment = *reader.next_segment().expect("a segment").segment;
    assert!(reader.next_segment().is_none());
    assert_eq!(reader.issues(), []);
    assert_eq!(segment.t_ns, 1_600_000_000_123_456_000);
    (segment.captured_bytes, segment.frame_bytes)
}

#[test]
fn old_versions_put_the_frame_length_first() {
    for (version, lengths) in [
        ([2, 0, 4, 0], [60, 64]),
        ([2, 0, 3, 0], [60, 64]),
        ([2, 0, 3, 0], [64, 60]),
        ([2, 0, 2, 0], [64, 60]),
        ([2, 0, 1, 0], [64, 60]),
        ([2, 0, 0, 0], [64, 60]),
        // Version 543.0 of DG/UX.
        ([0x1f, 2, 0, 0], [64, 60]),
    ] {
        let octets = one_record(version, lengths, &[]);
        assert_eq!(lengths_of(&octets), (60, 64), "version {version:?}");
    }
}

#[test]
fn an_unknown_version_is_an_issue() {
    let octets = one_record([2, 0, 5, 0], [60, 64], &[]);
    let mut reader = Reader::new(&octets[..]).expect("a capture");
    assert!(reader.next_segment().is_some());
    assert_eq!(
        reader.issues()[0].text,
        "the version is 2.5, not 2.4; read as 2.4"
    );
}

#[test]
fn the_modified_format_has_longer_record_headers() {
    // Interface index, protocol, packet type and padding follow the lengths.
    let extra = [2, 0, 0, 0, 8, 0, 4, 0];
    let mut octets = one_record([2, 0, 4, 0], [60, 64], &extra);
    octets[..4].copy_from_slice(&[0x34, 0xcd, 0xb2, 0xa1]);
    assert_eq!(lengths_of(&octets), (60, 64));
    let reader = Reader::new(&octets[..]).expect("a capture");
    assert_eq!(reader.header().format, Format::ModifiedPcap);
    drop(reader);
    octets.truncate(24 + 20);
    let mut reader = Reader::new(&octets[..]).expect("a capture");
    assert!(reader.next_segment().is_none());
    assert_eq!(
        reader.issues()[0].text,
        "the input ends within a record header, after 20 of 24 octets"
    );
}

#[test]
fn every_link_type_that_carries_ip() {
    let packet = ipv4(6, &[], 0, &Tcp::default().octets());
    let packet6 = ipv6(6, &Tcp::default().octets());
    let after = |start: &[u8], packet: &[u8]| [start, packet].concat();
    let sll = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
    let mut sll2 = [0; 20];
    sll2[0] = 8;
    let mut sll2_tagged = [0; 20];
    sll2_tagged[0] = 0x81;
    for (link, frame) in [
        (0, after(&[2, 0, 0, 0], &packet)),
        (0, after(&[0, 0, 0, 2], &packet)),
        (0, after(&[30, 0, 0, 0], &packet6)),
        (108, after(&[0, 0, 0, 2], &packet)),
        (9, after(&[0xff, 3, 0, 0x21], &packet)),
        (9, after(&[0x21], &packet)),
        (9, after(&[0, 0x57], &packet6)),
        (51, after(&[0x11, 0, 0, 1, 0, 0, 0, 0x21], &packet)),
        (12, packet.clone()),
        (101, packet.clone()),
        (101, packet6.clone()),
        (228, packet.clone()),
        (229, packet6.clone()),
        (113, after(&sll, &packet)),
        (276, after(&sll2, &packet)),
        (
            276,
            [&sll2_tagged[..], &[0, 5, 0x86, 0xdd], &packet6].concat(),
        ),
    ] {
        let segment = only_on(link, &frame);
        assert_eq!(segment.seq, 1_000_000_007, "link type {link}");
        assert_eq!(segment.payload_bytes, 10, "link type {link}");
    }
}

#[test]
fn vlan_tags_pppoe_and_snap_are_skipped() {
    let packet = ipv4(6, &[], 0, &Tcp::default().octets());
    let after = |start: &[u8]| [start, &packet[..]].concat();
    for frame in [
        ethernet(0x8100, &after(&[0x20, 5, 8, 0])),
        ethernet(0x88a8, &after(&[0, 7, 0x81, 0, 0, 9, 8, 0])),
        ethernet(0x9100, &after(&[0, 7, 0x81, 0, 0, 9, 8, 0])),
        ethernet(0x8864, &after(&[0x11, 0, 0, 1, 0, 0, 0, 0x21])),
        ethernet(58, &after(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0])),
    ] {
        assert_eq!(only(&frame).0.payload_bytes, 10);
    }
}

#[test]
fn the_payload_length_comes_from_ip_not_from_the_frame() {
    let mut padded = tcp_frame(&Tcp {
        payload: vec![],
        ..Tcp::default()
    });
    padded.resize(60, 0);
    assert_eq!(only(&padded).0.payload_bytes, 0);

    let frame = tcp_frame(&Tcp {
        payload: vec![1; 1000],
        ..Tcp::default()
    });
    let mut capture = Capture::new(false, false, 54, 1);
    capture.record(1, 0, frame.len() as u32, &frame[..54]);
    let (segments, issues) = decode(&capture);
    assert_eq!(segments[0].0.payload_bytes, 1000);
    assert_eq!(
        (segments[0].0.frame_bytes, segments[0].0.captured_bytes),
        (1054, 54)
    );
    assert_eq!(issues, []);
}

#[test]
fn ip_options_move_the_tcp_header() {
    let packet = ipv4(6, &[1, 1, 1, 0, 7, 3, 4, 0], 0, &Tcp::default().octets());
    let (segment, _) = only(&ethernet(0x0800, &packet));
    assert_eq!(
        (segment.src_port, segment.payload_bytes, segment.ip_bytes),
        (40_000, 10, 58)
    );
}

#[test]
fn ipv6_extension_headers_are_followed() {
    let tcp = Tcp::default().octets();
    let hop_by_hop = [&[60, 0, 1, 4, 0, 0, 0, 0][..], &[43, 1, 1, 12], &[0; 12]].concat();
    let rest = [
        &[51, 0, 0, 0, 0, 0, 0, 0][..],
        &[44, 1, 0, 0],
        &[0; 8],
        &[6, 0, 0, 0, 0, 0, 0, 9],
    ];
    let body = [hop_by_hop, rest.concat(), tcp].concat();
    let (segment, _) = only(&ethernet(0x86dd, &ipv6(0, &body)));
    assert_eq!((segment.src_port, segment.payload_bytes), (40_000, 10));
    assert_eq!(segment.ip_bytes, 40 + body.len() as u32);
}

#[test]
fn an_ip_length_of_zero_takes_the_length_of_the_frame() {
    let tcp = Tcp {
        payload: vec![3; 3000],
        ..Tcp::default()
    };
    let mut v4 = tcp_frame(&tcp);
    v4[16..18].fill(0);
    let mut v6 = ethernet(0x86dd, &ipv6(6, &tcp.octets()));
    v6[18..20].fill(0);
    let mut capture = Capture::plain();
    let second = 1_700_000_000;
    capture
        .record(second, 0, v4.len() as u32, &v4[..100])
        .frame(&v6);
    let (segments, issues) = decode(&capture);
    assert_eq!(
        segments
            .iter()
            .map(|s| s.0.payload_bytes)
            .collect::<Vec<_>>(),
        [3000, 3000]
    );
    assert_eq!(
        issues,
        [(1, IssueKind::IpLengthZero), (2, IssueKind::IpLengthZero)]
    );
}

#[test]
fn a_jumbo_option_gives_the_length() {
    let tcp = Tcp {
        payload: vec![3; 70_000],
        ..Tcp::default()
    };
    let jumbo = 70_000_u32 + 20 + 8;
    let body = [&[6, 0, 0xc2, 4][..], &jumbo.to_be_bytes(), &tcp.octets()].concat();
    let mut frame = ethernet(0x86dd, &ipv6(0, &body));
    frame[18..20].fill(0);
    let (segment, _) = only(&frame);
    assert_eq!(
        (segment.payload_bytes, segment.ip_bytes),
        (70_000, jumbo + 40)
    );
}

#[test]
fn other_traffic_is_counted() {
    let mut capture = Capture::plain();
    capture
        .frame(&ethernet(0x0800, &ipv4(17, &[], 0, &[0; 30])))
        .frame(&ethernet(0x86dd, &ipv6(17, &[0; 30])))
        .frame(&ethernet(0x0800, &ipv4(1, &[], 0, &[0; 8])))
        .frame(&ethernet(0x86dd, &ipv6(58, &[0; 8])))
        .frame(&ethernet(0x0800, &ipv4(47, &[], 0, &[0; 8])))
        .frame(&ethernet(0x0806, &[0; 28]))
        .frame(&ethernet(0x88cc, &[0; 28]))
        .frame(&tcp_frame(&Tcp::default()));
    let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
    let mut segments = 0;
    while reader.next_segment().is_some() {
        segments += 1;
    }
    let tally = reader.tally();
    assert_eq!(
        (segments, tally.packets, tally.tcp.packets, tally.tcp.bytes),
        (1, 8, 1, 64)
    );
    let counts = Other::ALL.map(|kind| (tally.of(kind).packets, tally.of(kind).bytes));
    assert_eq!(
        counts,
        [
            (2, 148),
            (2, 104),
            (1, 42),
            (0, 0),
            (1, 42),
            (1, 42),
            (0, 0)
        ]
    );
    assert_eq!(
        tally.span_ns.map(|(first, last)| last - first),
        Some(7_000_000)
    );
    let texts: Vec<&str> = reader.issues().iter().map(|i| i.text.as_str()).collect();
    assert_eq!(
        texts,
        ["1 GRE packets of protocol type 0x0000 are not decoded: TCP inside them is not counted"]
    );
}

#[test]
fn known_options_are_parsed_and_others_kept_verbatim() {
    let options = [
        &[2, 4, 5, 0xb4][..],
        &[1, 3, 3, 7],
        &[4, 2],
        &[8, 10, 0, 1, 2, 3, 4, 5, 6, 7],
        &[254, 4, 0xf9, 0x89],
        &[34, 2],
        &[30, 4, 1, 2],
    ]
    .concat();
    let (segment, other) = only(&tcp_frame(&Tcp::with_options(&options)));
    assert_eq!(segment.options.mss, Some(1460));
    assert_eq!(segment.options.wscale, Some(7));
    assert!(segment.options.sack_permitted);
    assert_eq!(segment.options.timestamps, Some((0x0001_0203, 0x0405_0607)));
    assert_eq!(segment.options.sack.as_slice(), []);
    assert_eq!(other, [254, 4, 0xf9, 0x89, 34, 2, 30, 4, 1, 2]);
}

#[test]
fn one_to_four_sack_blocks() {
    for blocks in 1..=4_u32 {
        let mut options = vec![1, 1, 5, (2 + 8 * blocks) as u8];
        let edges: Vec<(u32, u32)> = (0..blocks).map(|n| (n * 100, n * 100 + 50)).collect();
        for (left, right) in &edges {
            options.extend(left.to_be_bytes());
            options.extend(right.to_be_bytes());
        }
        let (segment, other) = only(&tcp_frame(&Tcp::with_options(&options)));
        assert_eq!(segment.options.sack.as_slice(), edges);
        assert_eq!(other, []);
        assert_eq!(segment.payload_bytes, 10);
    }
}

#[test]
fn repeated_options_and_unexpected_lengths_are_kept_verbatim() {
    let options = [2, 4, 5, 0, 2, 4, 6, 0, 3, 4, 1, 1, 5, 2, 1, 0];
    let (segment, other) = only(&tcp_frame(&Tcp::with_options(&options)));
    assert_eq!(segment.options.mss, Some(0x500));
    assert_eq!(segment.options.wscale, None);
    assert_eq!(other, [2, 4, 6, 0, 3, 4, 1, 1, 5, 2]);
}

#[test]
fn options_after_the_end_of_the_list_are_ignored() {
    let (segment, other) = only(&tcp_frame(&Tcp::with_options(&[0, 0, 3, 3, 7, 1, 1, 1])));
    assert_eq!((segment.options.wscale, other), (None, vec![]));
}

#[test]
fn the_acknowledgement_number_is_zero_without_ack() {
    let tcp = Tcp {
        flags: 2,
        ..Tcp::default()
    };
    assert_eq!(only(&tcp_frame(&tcp)).0.ack, 0);
}

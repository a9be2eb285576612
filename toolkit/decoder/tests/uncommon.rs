//! Uncommon link types and tunnels, by octets written by hand: the inner segment, cut at every octet.
#![allow(missing_docs)]

mod support;

use hindflight_decoder::{IssueKind, Other, Reader, Segment};
use support::{Capture, Tcp, ethernet, ipv4, ipv6};

const SNAP_IPV4: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
const ADDRESSES: [u8; 18] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3];

fn inner() -> Vec<u8> {
    ipv4(6, &[], 0, &Tcp::default().octets())
}

fn snap() -> Vec<u8> {
    [&SNAP_IPV4[..], &inner()].concat()
}

/// A frame of wireless LAN: control octets, what follows the sequence number, and the body.
fn wlan(control: u8, flags: u8, rest: &[u8], body: &[u8]) -> Vec<u8> {
    [
        &[control, flags, 0, 0][..],
        &ADDRESSES,
        &[0x10, 0],
        rest,
        body,
    ]
    .concat()
}

fn decode(link: u32, frame: &[u8], captured: usize) -> (Vec<Segment>, Vec<IssueKind>, u64) {
    let mut capture = Capture::new(false, false, 0, link);
    capture.record(1, 0, frame.len() as u32, &frame[..captured]);
    let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
    let mut segments = Vec::new();
    while !reader.ended() {
        segments.extend(reader.next_segment().map(|found| *found.segment));
    }
    let kinds = reader.issues().iter().map(|issue| issue.kind).collect();
    (segments, kinds, reader.tally().of(Other::Udp).packets)
}

/// One segment and no issue; cut at every octet, a segment or an issue or a UDP header that is cut.
fn check(name: &str, link: u32, frame: &[u8]) {
    let (segments, issues, _) = decode(link, frame, frame.len());
    assert_eq!(issues, [], "{name}");
    let found: Vec<(u32, u32)> = segments.iter().map(|s| (s.seq, s.payload_bytes)).collect();
    assert_eq!(found, [(1_000_000_007, 10)], "{name}");
    for length in 0..frame.len() {
        let (segments, issues, udp) = decode(link, frame, length);
        assert!(
            segments.len() + issues.len() + udp as usize > 0,
            "{name} at {length}"
        );
    }
}

fn skipped(name: &str, link: u32, frame: &[u8]) {
    let (segments, issues, _) = decode(link, frame, frame.len());
    assert!(segments.is_empty(), "{name}");
    assert_eq!(issues, [IssueKind::Skipped], "{name}");
}

#[test]
fn wireless_lan() {
    check(
        "to the distribution system",
        105,
        &wlan(0x08, 1, &[], &snap()),
    );
    check(
        "with quality of service",
        105,
        &wlan(0x88, 2, &[0, 0], &snap()),
    );
    check(
        "with HT control",
        105,
        &wlan(0x88, 0x82, &[0, 0, 1, 2, 3, 4], &snap()),
    );
    check(
        "four addresses",
        105,
        &wlan(0x08, 3, &[2, 0, 0, 0, 0, 4], &snap()),
    );
    check(
        "four addresses and quality of service",
        105,
        &wlan(0x88, 3, &[2, 0, 0, 0, 0, 4, 0, 0], &snap()),
    );
    for (name, frame) in [
        ("management", wlan(0x80, 0, &[], &snap())),
        ("no data", wlan(0x48, 1, &[], &[])),
    ] {
        let (segments, issues, _) = decode(105, &frame, frame.len());
        assert_eq!((segments.len(), issues.len()), (0, 0), "{name}");
    }
    skipped("encrypted", 105, &wlan(0x08, 0x41, &[], &snap()));
}

#[test]
fn headers_of_devices_before_wireless_lan() {
    let frame = wlan(0x08, 1, &[], &snap());
    // Length 8 and no field; time, flags and rate; two words of presence; padding after the header of the frame.
    let plain = [0, 0, 8, 0, 0, 0, 0, 0];
    check("radiotap", 127, &[&plain[..], &frame].concat());
    let fields = [0, 0, 18, 0, 7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x10, 2];
    check("radiotap with fields", 127, &[&fields[..], &frame].concat());
    let words = [0, 0, 13, 0, 2, 0, 0, 0x80, 0, 0, 0, 0, 0x20];
    let padded = wlan(0x88, 1, &[0, 0, 0, 0], &snap());
    check(
        "radiotap with two words, padded",
        127,
        &[&words[..], &padded].concat(),
    );
    let bad = [0, 0, 9, 0, 2, 0, 0, 0, 0x40];
    skipped("radiotap, bad checksum", 127, &[&bad[..], &frame].concat());

    let mut prism = vec![0; 144];
    (prism[0], prism[4]) = (0x44, 144);
    check("prism", 119, &[prism, frame.clone()].concat());
    let avs = [&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[0; 56]].concat();
    check("avs", 163, &[avs, frame.clone()].concat());
    check(
        "ppi",
        192,
        &[&[0, 0, 8, 0, 105, 0, 0, 0][..], &frame].concat(),
    );
}

#[test]
fn an_aggregate_holds_several_segments() {
    let mut body = Vec::new();
    for seq in [1_u32, 2, 3] {
        let tcp = Tcp {
            seq,
            payload: vec![5; seq as usize],
            ..Tcp::default()
        };
        let part = [&SNAP_IPV4[..], &ipv4(6, &[], 0, &tcp.octets())].concat();
        body.extend(&ADDRESSES[..12]);
        body.extend((part.len() as u16).to_be_bytes());
        body.extend(part);
        if seq < 3 {
            body.resize(body.len().next_multiple_of(4), 0);
        }
    }
    let frame = wlan(0x88, 1, &[0x80, 0], &body);
    let (segments, issues, _) = decode(105, &frame, frame.len());
    let found: Vec<(u32, u32, u64)> = segments
        .iter()
        .map(|s| (s.seq, s.payload_bytes, s.record))
        .collect();
    assert_eq!(
        (found, issues.len()),
        (vec![(1, 1, 1), (2, 2, 1), (3, 3, 1)], 0)
    );
    for length in 0..frame.len() {
        let (segments, issues, _) = decode(105, &frame, length);
        assert!(segments.len() == 3 || !issues.is_empty(), "at {length}");
    }
}

#[test]
fn other_link_types() {
    // The length without padding, IPv4, and the rest of the header.
    for (length, padded) in [(61, 64), (100, 100)] {
        let mut header = vec![0; padded];
        header[..2].copy_from_slice(&[length, 2]);
        check("packet filter log", 117, &[header, inner()].concat());
    }
    let ring = [&[0x10, 0x40][..], &ADDRESSES[..12]].concat();
    check("token ring", 6, &[ring.clone(), snap()].concat());
    let mut routed = ring;
    routed[8] |= 0x80;
    check(
        "token ring with a route",
        6,
        &[routed, vec![0x06, 0x80, 0, 1, 0, 2], snap()].concat(),
    );
    check(
        "fddi",
        10,
        &[&[0x57][..], &ADDRESSES[..12], &snap()].concat(),
    );
    check("fibre channel", 122, &[&[1; 16][..], &snap()].concat());
    check(
        "frame relay",
        107,
        &[&[0x18, 0x41, 3, 0xcc][..], &inner()].concat(),
    );
    check(
        "frame relay, snap",
        107,
        &[&[0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0][..], &inner()].concat(),
    );
    check(
        "frame relay, cisco",
        107,
        &[&[0x18, 0x41, 8, 0][..], &inner()].concat(),
    );
    check("pppd", 166, &[&[1, 3, 0, 0x21][..], &inner()].concat());
    check(
        "ppp with direction",
        204,
        &[&[1, 0xff, 3, 0, 0x21][..], &inner()].concat(),
    );
    let packet = inner();
    let attribute = [8, 0, 1, 0, 8, 0, 3, 0, (packet.len() + 4) as u8, 0, 9, 0];
    check(
        "nflog",
        239,
        &[&[2, 0, 0, 0][..], &attribute, &packet].concat(),
    );
    skipped(
        "frame relay, other",
        107,
        &[&[0x18, 0x41, 3, 0x81][..], &inner()].concat(),
    );
}

/// A record of an Endace card: time, type, flags, lengths.
fn erf(kind: u8, lost: u16, extensions: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = 0x6553_f100_8000_0000_u64.to_le_bytes().to_vec();
    let pad: &[u8] = if kind & 0x7f == 2 { &[0, 0] } else { &[] };
    let length = 16 + extensions.len() + pad.len() + data.len();
    out.extend([kind, 4]);
    for field in [length as u16, lost, data.len() as u16] {
        out.extend(field.to_be_bytes());
    }
    [&out[..], extensions, pad, data].concat()
}

#[test]
fn records_of_endace_cards_in_pcap() {
    let frame = ethernet(0x0800, &inner());
    check("ethernet", 197, &erf(2, 0, &[], &frame));
    check(
        "ethernet with two extensions",
        197,
        &erf(
            0x82,
            0,
            &[[0x80, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat(),
            &frame,
        ),
    );
    check(
        "ppp",
        197,
        &erf(1, 0, &[], &[&[0xff, 3, 0, 0x21][..], &inner()].concat()),
    );
    check(
        "cisco",
        197,
        &erf(1, 0, &[], &[&[0x0f, 0, 8, 0][..], &inner()].concat()),
    );
    check("ip", 197, &erf(22, 0, &[], &inner()));
    skipped("atm", 197, &erf(3, 0, &[], &inner()));
}

/// Record, time and frame length of a segment.
type Read = (u64, i64, u32);

fn read(octets: &[u8]) -> (Vec<Read>, Vec<(u64, IssueKind)>) {
    let mut reader = Reader::new(octets).expect("a capture");
    let mut segments = Vec::new();
    while !reader.ended() {
        let found = reader.next_segment().map(|found| *found.segment);
        segments.extend(found.map(|s| (s.record, s.t_ns, s.frame_bytes)));
    }
    let issues = reader.issues().iter().map(|i| (i.record, i.kind)).collect();
    (segments, issues)
}

#[test]
fn a_file_of_erf_records() {
    let frame = ethernet(0x0800, &inner());
    let mut octets = Vec::new();
    octets.extend(erf(2, 0, &[], &frame));
    octets.extend(erf(27, 0, &[], &[9; 24]));
    octets.extend(erf(0x82, 3, &[0; 8], &frame));
    let ends = [82, 82 + 40, octets.len()];
    octets.extend(erf(2, 4, &[], &frame));
    let t_ns = 1_700_000_000_500_000_000;
    let length = frame.len() as u32;
    let (segments, issues) = read(&octets);
    assert_eq!(
        segments,
        [(1, t_ns, length), (2, t_ns, length), (3, t_ns, length)]
    );
    assert_eq!(issues, [(0, IssueKind::CaptureDrop)]);
    assert_eq!(ends[0], erf(2, 0, &[], &frame).len());
    for cut in ends[0] + 16..octets.len() {
        let (segments, issues) = read(&octets[..cut]);
        let whole = [ends[0], ends[2], octets.len()]
            .iter()
            .filter(|&&end| end <= cut)
            .count();
        assert_eq!(segments.len(), whole, "at {cut}");
        let cut_issue = ends.contains(&cut) || issues.iter().any(|issue| issue.1 == IssueKind::Cut);
        assert!(cut_issue, "at {cut}: {issues:?}");
    }
    // Damage in a later record: the one after it is found again.
    let mut damaged = octets.repeat(2);
    let at = octets.len();
    damaged[at + 10..at + 12].copy_from_slice(&[0, 3]);
    let (segments, issues) = read(&damaged);
    assert_eq!(segments.len(), 5);
    assert!(issues.contains(&(4, IssueKind::RecordHeader)));
}

#[test]
fn a_file_of_snoop_records() {
    let frame = ethernet(0x0800, &inner());
    let mut octets = b"snoop\0\0\0\0\0\0\x02\0\0\0\x04".to_vec();
    let mut ends = Vec::new();
    for number in 0..3_u32 {
        let padded = frame.len().next_multiple_of(4);
        let lengths = [
            frame.len() as u32 + 5,
            frame.len() as u32,
            24 + padded as u32,
        ];
        for field in lengths
            .iter()
            .chain(&[2 * number, 1_700_000_000 + number, 500_000])
        {
            octets.extend(field.to_be_bytes());
        }
        octets.extend(&frame);
        octets.resize(octets.len().next_multiple_of(4), 0);
        ends.push(octets.len());
    }
    let expected: Vec<(u64, i64, u32)> = (0..3)
        .map(|n| {
            (
                n + 1,
                1_700_000_000_500_000_000 + n as i64 * 1_000_000_000,
                frame.len() as u32 + 5,
            )
        })
        .collect();
    assert_eq!(
        read(&octets),
        (expected.clone(), vec![(0, IssueKind::CaptureDrop)])
    );
    for cut in 16..octets.len() {
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        let (segments, issues) = read(&octets[..cut]);
        assert_eq!(segments, expected[..whole], "at {cut}");
        let at_end = cut == 16 || ends.contains(&cut);
        assert_ne!(
            issues.iter().any(|issue| issue.1 == IssueKind::Cut),
            at_end,
            "at {cut}"
        );
    }
    let mut other = octets;
    other[15] = 18;
    assert!(Reader::new(&other[..]).is_err(), "ATM");
}

/// A UDP datagram to `port`.
fn udp(port: u16, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0xc0, 1];
    out.extend(port.to_be_bytes());
    out.extend((body.len() as u16 + 8).to_be_bytes());
    out.extend([0, 0]);
    out.extend(body);
    ethernet(0x0800, &ipv4(17, &[], 0, &out))
}

#[test]
fn more_tunnels() {
    let ppp = [&[0xff, 3, 0, 0x21][..], &inner()].concat();
    check(
        "l2tp",
        1,
        &udp(1701, &[&[0, 2, 0, 1, 0, 2][..], &ppp].concat()),
    );
    let long = [0x4a, 2, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 2, 9, 9];
    check(
        "l2tp with all fields",
        1,
        &udp(1701, &[&long[..], &ppp].concat()),
    );
    let frame = ethernet(0x0800, &inner());
    check(
        "l2tp 3 over udp",
        1,
        &udp(1701, &[&[0, 3, 0, 0, 0, 0, 0, 9][..], &frame].concat()),
    );
    let session = [0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0];
    check(
        "l2tp 3 with cookie and sublayer",
        1,
        &ethernet(0x0800, &ipv4(115, &[], 0, &[&session[..], &frame].concat())),
    );
    skipped(
        "l2tp 3 with something else",
        1,
        &ethernet(0x0800, &ipv4(115, &[], 0, &[1; 60])),
    );

    let inner6 = ipv6(6, &Tcp::default().octets());
    check("teredo", 1, &udp(3544, &inner6));
    let before = [&[0, 1, 1, 2, 7, 8, 9][..], &[0; 9], &[0, 0], &[1; 6]].concat();
    check(
        "teredo with authentication and origin",
        1,
        &udp(3544, &[before, inner6].concat()),
    );

    let gre = [&[0, 0, 0x82, 0][..], &wlan(0x88, 1, &[0, 0], &snap())].concat();
    check(
        "wireless lan in gre",
        1,
        &ethernet(0x0800, &ipv4(47, &[], 0, &gre)),
    );
}

#[test]
fn outer_flows_leave_tunnels_closed() {
    let mut capture = Capture::plain();
    capture.frame(&udp(3544, &ipv6(6, &Tcp::default().octets())));
    capture.frame(&ethernet(0x0800, &inner()));
    let mut reader = Reader::new(&capture.octets[..])
        .expect("a capture")
        .outer(true);
    assert_eq!(reader.next_segment().expect("a segment").segment.record, 2);
    assert!(reader.next_segment().is_none());
    assert_eq!(reader.take_others().len(), 1);
    let issues: Vec<IssueKind> = reader.issues().iter().map(|issue| issue.kind).collect();
    assert_eq!(issues, [IssueKind::Skipped]);
}

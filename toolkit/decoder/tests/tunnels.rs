//! Tunnels and labels: the inner flow is decoded; what is not read is one issue per protocol.
#![allow(missing_docs)]

mod support;

use hindflight_decoder::{Issue, IssueKind, Other, Reader, Segment};
use support::{Capture, Tcp, ethernet, ipv4, ipv6, summed, tcp_frame};

fn decode_on(link: u32, frame: &[u8]) -> (Vec<Segment>, Vec<Issue>) {
    let mut capture = Capture::new(false, false, 0, link);
    capture.frame(frame);
    let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
    let mut segments = Vec::new();
    while let Some(found) = reader.next_segment() {
        segments.push(*found.segment);
    }
    (segments, reader.issues().to_vec())
}

fn after(start: &[u8], rest: &[u8]) -> Vec<u8> {
    [start, rest].concat()
}

/// A UDP datagram to `port`.
fn udp(port: u16, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0xc0, 1];
    out.extend(port.to_be_bytes());
    out.extend((body.len() as u16 + 8).to_be_bytes());
    out.extend([0, 0]);
    out.extend(body);
    out
}

fn inner() -> Vec<u8> {
    ipv4(6, &[], 0, &Tcp::default().octets())
}

fn inner6() -> Vec<u8> {
    ipv6(6, &Tcp::default().octets())
}

fn check(name: &str, frame: &[u8], ip_bytes: u32) {
    let (segments, issues) = decode_on(1, frame);
    assert_eq!(issues, [], "{name}");
    assert_eq!(segments.len(), 1, "{name}");
    let segment = segments[0];
    assert_eq!(
        (segment.seq, segment.payload_bytes, segment.ip_bytes),
        (1_000_000_007, 10, ip_bytes),
        "{name}"
    );
    assert_eq!(segment.frame_bytes as usize, frame.len(), "{name}");
    // Cut at every octet: the segment, or an issue.
    for length in 0..frame.len() {
        let mut capture = Capture::plain();
        capture.record(1, 0, frame.len() as u32, &frame[..length]);
        let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
        let found = reader.next_segment().is_some();
        assert!(reader.next_segment().is_none());
        let udp_header_cut = reader.tally().of(Other::Udp).packets == 1;
        assert!(
            found || !reader.issues().is_empty() || udp_header_cut,
            "{name} at {length}"
        );
    }
}

#[test]
fn tunnels_over_ip() {
    let over = |protocol: u8, body: &[u8]| ethernet(0x0800, &ipv4(protocol, &[], 0, body));
    let frame = tcp_frame(&Tcp::default());
    for (name, frame, ip_bytes) in [
        ("IP in IP", over(4, &inner()), 50),
        ("IPv6 in IP", over(41, &inner6()), 70),
        ("IPv4 in IPv6", ethernet(0x86dd, &ipv6(4, &inner())), 50),
        ("IPv6 in IPv6", ethernet(0x86dd, &ipv6(41, &inner6())), 70),
        ("Ethernet in IP", over(97, &after(&[0x30, 0], &frame)), 50),
        (
            "MPLS in IP",
            over(137, &after(&[0, 1, 1, 64], &inner())),
            50,
        ),
        (
            "authentication header",
            over(
                51,
                &after(
                    &[
                        6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                    ],
                    &Tcp::default().octets(),
                ),
            ),
            74,
        ),
        (
            "authentication header, IP in IP",
            over(
                51,
                &after(
                    &[
                        4, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                    ],
                    &inner(),
                ),
            ),
            50,
        ),
    ] {
        check(name, &frame, ip_bytes);
    }
}

#[test]
fn tunnels_over_gre() {
    let over = |protocol: u8, body: &[u8]| ethernet(0x0800, &ipv4(protocol, &[], 0, body));
    let frame = tcp_frame(&Tcp::default());
    for (name, frame, ip_bytes) in [
        ("GRE", over(47, &after(&[0, 0, 8, 0], &inner())), 50),
        (
            "GRE, IPv6",
            over(47, &after(&[0, 0, 0x86, 0xdd], &inner6())),
            70,
        ),
        (
            "GRE, checksum, key and sequence",
            over(
                47,
                &after(
                    &[0xb0, 0, 8, 0, 1, 2, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1],
                    &inner(),
                ),
            ),
            50,
        ),
        (
            "GRE, Ethernet",
            over(47, &after(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 9], &frame)),
            50,
        ),
        (
            "GRE, MPLS",
            over(47, &after(&[0, 0, 0x88, 0x47, 0, 1, 1, 64], &inner())),
            50,
        ),
        (
            "GRE, ERSPAN I",
            over(47, &after(&[0, 0, 0x88, 0xbe], &frame)),
            50,
        ),
        (
            "GRE, ERSPAN II",
            over(
                47,
                &after(
                    &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 0, 0, 0, 0, 0],
                    &frame,
                ),
            ),
            50,
        ),
        (
            "GRE, ERSPAN III",
            over(
                47,
                &after(
                    &[
                        0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                    ],
                    &frame,
                ),
            ),
            50,
        ),
        (
            "PPTP",
            over(
                47,
                &after(
                    &[
                        0x30, 0x81, 0x88, 0x0b, 0, 50, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 3, 0,
                        0x21,
                    ],
                    &inner(),
                ),
            ),
            50,
        ),
    ] {
        check(name, &frame, ip_bytes);
    }
}

#[test]
fn tunnels_over_udp() {
    let over = |port: u16, body: &[u8]| ethernet(0x0800, &ipv4(17, &[], 0, &udp(port, body)));
    let frame = tcp_frame(&Tcp::default());
    for (name, frame, ip_bytes) in [
        (
            "VXLAN",
            over(4789, &after(&[8, 0, 0, 0, 0, 0, 5, 0], &frame)),
            50,
        ),
        (
            "VXLAN, port of Linux",
            over(8472, &after(&[8, 0, 0, 0, 0, 0, 5, 0], &frame)),
            50,
        ),
        (
            "VXLAN, a group policy",
            over(4789, &after(&[0x88, 0, 0, 7, 0, 0, 5, 0], &frame)),
            50,
        ),
        (
            "VXLAN, a group policy that was applied",
            over(4789, &after(&[0x88, 0x48, 0x12, 0x34, 0, 0, 5, 0], &frame)),
            50,
        ),
        (
            "VXLAN-GPE, IPv4",
            over(4790, &after(&[0x0c, 0, 0, 1, 0, 0, 5, 0], &inner())),
            50,
        ),
        (
            "VXLAN-GPE, IPv6",
            over(4790, &after(&[0x0c, 0, 0, 2, 0, 0, 5, 0], &inner6())),
            70,
        ),
        (
            "VXLAN-GPE, Ethernet",
            over(4790, &after(&[0x0c, 0, 0, 3, 0, 0, 5, 0], &frame)),
            50,
        ),
        (
            "VXLAN-GPE without a next protocol",
            over(4790, &after(&[0x08, 0, 0, 0, 0, 0, 5, 0], &frame)),
            50,
        ),
        (
            "VXLAN-GPE, NSH, Ethernet",
            over(
                4790,
                &[&[0x0c, 0, 0, 4, 0, 0, 5, 0], &nsh(3)[..], &frame].concat(),
            ),
            50,
        ),
        (
            "Geneve, Ethernet",
            over(6081, &after(&[0, 0, 0x65, 0x58, 0, 0, 5, 0], &frame)),
            50,
        ),
        (
            "Geneve, options and IP",
            over(
                6081,
                &after(&[1, 0, 8, 0, 0, 0, 5, 0, 1, 2, 3, 0], &inner()),
            ),
            50,
        ),
        (
            "GTP-U",
            over(2152, &after(&[0x30, 255, 0, 50, 0, 0, 0, 1], &inner())),
            50,
        ),
        (
            "GTP-U, IPv6",
            over(2152, &after(&[0x30, 255, 0, 50, 0, 0, 0, 1], &inner6())),
            70,
        ),
        (
            "GTP-U, sequence",
            over(
                2152,
                &after(&[0x32, 255, 0, 54, 0, 0, 0, 1, 0, 9, 0, 0], &inner()),
            ),
            50,
        ),
        (
            "GTP-U, extension header",
            over(
                2152,
                &after(
                    &[0x34, 255, 0, 58, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0],
                    &inner(),
                ),
            ),
            50,
        ),
    ] {
        check(name, &frame, ip_bytes);
    }
}

/// A network service header with metadata of type 1 (RFC 8300 §2.4), before the protocol `next`.
fn nsh(next: u8) -> Vec<u8> {
    let mut out = vec![0x0f, 0xc6, 1, next, 0, 0, 7, 255];
    out.extend([0; 16]);
    out
}

#[test]
fn network_service_headers() {
    let frame = tcp_frame(&Tcp::default());
    let over = |head: &[u8], rest: &[u8]| ethernet(0x894f, &after(head, rest));
    // Metadata of type 2 and no length: two words.
    let short = [0x0f, 0xc2, 2, 1, 0, 0, 7, 255];
    for (name, frame, ip_bytes) in [
        ("NSH, IPv4", over(&nsh(1), &inner()), 50),
        ("NSH, IPv6", over(&nsh(2), &inner6()), 70),
        ("NSH, Ethernet", over(&nsh(3), &frame), 50),
        ("NSH, NSH", over(&nsh(4), &after(&nsh(1), &inner())), 50),
        (
            "NSH, MPLS",
            over(&nsh(5), &after(&[0, 1, 1, 64], &inner())),
            50,
        ),
        (
            "NSH, Ethernet, NSH",
            over(&nsh(3), &over(&short, &inner())),
            50,
        ),
    ] {
        check(name, &frame, ip_bytes);
    }
    for (head, what) in [
        (nsh(9), "1 packets of next protocol 9 (NSH, VXLAN-GPE)"),
        (
            vec![0x4f, 0xc6, 1, 1, 0, 0, 7, 255],
            "1 packets of next protocol 0 (NSH, VXLAN-GPE)",
        ),
        (
            vec![0x0f, 0xc1, 1, 1, 0, 0, 7, 255],
            "1 packets of next protocol 0 (NSH, VXLAN-GPE)",
        ),
    ] {
        let (segments, issues) = decode_on(1, &over(&head, &inner()));
        assert_eq!(segments, []);
        assert!(issues[0].text.starts_with(what), "{}", issues[0].text);
    }
    // Deeply nested headers end the frame, not the stack.
    let deep = ethernet(
        0x894f,
        &[&nsh(3)[..], &ethernet(0x894f, &[])].concat().repeat(5000),
    );
    assert_eq!(decode_on(1, &deep).0, []);
}

#[test]
fn ethernet_in_mpls_is_read_if_the_packet_inside_proves_itself() {
    const STACK: [u8; 4] = [0, 1, 1, 64];
    const CONTROL_WORD: [u8; 4] = [0, 0, 0, 9];
    let over = |parts: &[&[u8]]| ethernet(0x8847, &[&[&STACK[..]], parts].concat().concat());
    let v4 = ethernet(0x0800, &summed(inner()));
    let v6 = ethernet(0x86dd, &inner6());
    let tagged = [&v4[..12], &[0x81, 0, 0, 5], &v4[12..]].concat();
    let to = |first: u8, frame: &[u8]| after(&[first], &frame[1..]);
    let padding = [0; 6];
    for (name, frame) in [
        ("a control word", over(&[&CONTROL_WORD, &v4])),
        ("a control word, IPv6", over(&[&CONTROL_WORD, &v6])),
        ("a control word and a tag", over(&[&CONTROL_WORD, &tagged])),
        ("none", over(&[&v4])),
        ("none, and an address like IPv4", over(&[&to(0x48, &v4)])),
        ("none, and an address like IPv6", over(&[&to(0x60, &v6)])),
        (
            "none, and an address like a channel",
            over(&[&to(0x10, &v4)]),
        ),
        (
            "none, IPv6 and the check sequence",
            over(&[&v6, &padding[..4]]),
        ),
    ] {
        let (segments, issues) = decode_on(1, &frame);
        assert_eq!(segments.len(), 1, "{name}: {issues:?}");
        assert_eq!(
            (segments[0].seq, segments[0].payload_bytes),
            (1_000_000_007, 10),
            "{name}"
        );
        assert_eq!(issues.len(), 1, "{name}");
        assert_eq!(issues[0].kind, IssueKind::Pseudowire, "{name}");
        assert!(
            issues[0].text.starts_with(
                "1 MPLS packets hold an Ethernet frame, which no header names: recognised by"
            ),
            "{name}"
        );
    }
    // The same octets with one bit of the inner header changed prove nothing, and are no segment.
    let mut wrong4 = v4.clone();
    wrong4[20] ^= 1;
    let longer6 = after(&v6, &[0; 9]);
    for (name, frame) in [
        ("a wrong checksum", over(&[&CONTROL_WORD, &wrong4])),
        ("a wrong checksum without a control word", over(&[&wrong4])),
        (
            "an IPv6 packet that does not fill the frame",
            over(&[&longer6]),
        ),
        (
            "a longer packet than the frame",
            over(&[&CONTROL_WORD, &v4[..v4.len() - 1]]),
        ),
        ("a circuit emulated", over(&[&CONTROL_WORD, &[0x55; 60]])),
    ] {
        let (segments, issues) = decode_on(1, &frame);
        assert_eq!(segments, [], "{name}");
        assert_eq!(issues[0].kind, IssueKind::Skipped, "{name}");
    }
    // An address that begins as an IP header does, and a frame without IP: its source names TCP, its length is impossible.
    for address in [
        [0x46, 0, 0x7f, 1, 2, 3, 4, 5, 6, 6, 7, 8],
        [0x60, 1, 2, 3, 0x7f, 1, 6, 9, 9, 9, 9, 9],
    ] {
        let arp = [&address[..], &[8, 6], &[0x50; 60]].concat();
        let (segments, issues) = decode_on(1, &over(&[&arp]));
        assert_eq!(segments, []);
        assert_eq!(issues[0].kind, IssueKind::Skipped);
    }
    // In another tunnel, too; the rest of the frame does not count.
    let mut gre = ethernet(
        0x0800,
        &ipv4(47, &[], 0, &[&[0, 0, 0x88, 0x47], &STACK[..], &v6].concat()),
    );
    gre.extend(padding);
    assert_eq!(decode_on(1, &gre).0.len(), 1);
}

#[test]
fn labels_and_framings_of_a_link() {
    let packet = inner();
    check(
        "MPLS",
        &ethernet(0x8847, &after(&[0, 1, 1, 64], &packet)),
        50,
    );
    check(
        "MPLS, two labels",
        &ethernet(0x8848, &after(&[0, 1, 0, 64, 0, 2, 1, 64], &inner6())),
        70,
    );
    check(
        "MPLS in PPPoE",
        &ethernet(
            0x8864,
            &[&[0x11, 0, 0, 1, 0, 0, 2, 0x81, 0, 1, 1, 64], &packet[..]].concat(),
        ),
        50,
    );
    check("LLC", &ethernet(53, &after(&[6, 6, 3], &packet)), 50);
    for (link, frame) in [
        (50, after(&[0xff, 3, 0, 0x21], &packet)),
        (104, after(&[0x0f, 0, 8, 0], &packet)),
        (242, [&[0x60; 40][..], &[8, 0, 0, 0], &packet].concat()),
        (242, [&[0; 40][..], &[0x86, 0xdd, 0, 0], &inner6()].concat()),
    ] {
        let (segments, issues) = decode_on(link, &frame);
        assert_eq!((segments.len(), issues.len()), (1, 0), "link type {link}");
    }
}

#[test]
fn a_tunnel_in_a_tunnel() {
    let gre = after(&[0, 0, 8, 0], &ipv4(4, &[], 0, &inner()));
    check(
        "IP in IP in GRE",
        &ethernet(0x0800, &ipv4(47, &[], 0, &gre)),
        50,
    );
    let mut packet = inner();
    for _ in 0..7 {
        packet = ipv4(4, &[], 0, &packet);
    }
    check("eight headers", &ethernet(0x0800, &packet), 50);
    let (segments, issues) = decode_on(1, &ethernet(0x0800, &ipv4(4, &[], 0, &packet)));
    assert_eq!(segments, []);
    assert_eq!(
        issues[0].text,
        "1 packets with too many tunnels inside one another are not decoded: TCP inside them is not counted"
    );
}

#[test]
fn an_inner_length_of_zero_ends_with_the_outer_packet() {
    let mut packet = inner();
    packet[2..4].fill(0);
    let mut frame = ethernet(0x0800, &ipv4(4, &[], 0, &packet));
    frame.extend([0; 30]);
    let (segments, issues) = decode_on(1, &frame);
    assert_eq!((segments[0].ip_bytes, segments[0].payload_bytes), (50, 10));
    assert_eq!(issues[0].kind, IssueKind::IpLengthZero);
}

#[test]
fn headers_of_vxlan_with_other_flags_are_skipped() {
    let frame = tcp_frame(&Tcp::default());
    // A group without its flag, the flag without a valid identifier, and unknown flags.
    for head in [
        [0x08, 0, 0, 7],
        [0x80, 0, 0, 7],
        [0x89, 0, 0, 7],
        [0x88, 1, 0, 7],
    ] {
        let datagram = udp(4789, &[&head, &[0, 0, 5, 0][..], &frame].concat());
        let (segments, issues) = decode_on(1, &ethernet(0x0800, &ipv4(17, &[], 0, &datagram)));
        assert_eq!(segments, []);
        assert_eq!(issues[0].kind, IssueKind::Skipped);
    }
}

#[test]
fn what_is_skipped_is_one_issue_per_protocol() {
    let over = |protocol: u8, body: &[u8]| ethernet(0x0800, &ipv4(protocol, &[], 0, body));
    let mut capture = Capture::plain();
    for frame in [
        over(50, &[7; 40]),
        over(50, &[8; 40]),
        over(115, &[1; 40]),
        over(47, &after(&[0, 0, 0x93, 0], &[0; 40])),
        over(17, &udp(1701, &[0; 40])),
        over(17, &udp(4789, &[0; 40])),
        over(47, &after(&[0, 0, 0x92, 0], &[0; 40])),
        ethernet(0x8864, &after(&[0x11, 0, 0, 1, 0, 42, 0, 0x2d], &[0; 40])),
        ethernet(0x88e5, &[0; 40]),
        ethernet(40, &[0xe0; 40]),
        ethernet(0x8847, &after(&[0, 1, 1, 64], &[0; 40])),
        // No TCP can be inside these.
        over(17, &udp(53, &[0; 40])),
        over(1, &[0; 40]),
        over(89, &[0; 40]),
        ethernet(0x88cc, &[0; 40]),
        ethernet(40, &[0x42; 40]),
        ethernet(0x0806, &[0; 40]),
    ] {
        capture.frame(&frame);
    }
    let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
    assert!(reader.next_segment().is_none());
    assert!(reader.next_segment().is_none());
    let rows: Vec<(u64, &str)> = reader
        .issues()
        .iter()
        .map(|issue| {
            assert_eq!(issue.kind, IssueKind::Skipped);
            let text = issue
                .text
                .strip_suffix(" are not decoded: TCP inside them is not counted");
            (issue.record, text.expect("the same end"))
        })
        .collect();
    assert_eq!(
        rows,
        [
            (1, "2 encrypted packets (ESP)"),
            (3, "1 packets of IP protocol 115 (L2TP)"),
            (4, "1 GRE packets of protocol type 0x9300"),
            (5, "1 UDP datagrams of port 1701 (L2TP)"),
            (6, "1 UDP datagrams of port 4789 (VXLAN)"),
            (7, "1 GRE packets of protocol type 0x9200"),
            (8, "1 packets of PPP protocol 0x002d"),
            (9, "1 packets of ethertype 0x88e5"),
            (10, "1 IEEE 802.2 frames for access point 0xe0"),
            (
                11,
                "1 MPLS packets with neither IP nor an Ethernet frame whose IP packet is confirmed by its checksum or length"
            ),
        ]
    );
    assert_eq!(reader.tally().packets, 17);
}

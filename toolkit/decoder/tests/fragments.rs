//! IP fragments: one segment with the length of all, or an issue.
#![allow(missing_docs)]

mod support;

use hindflight_decoder::{IssueKind, Other, Reader, Segment};
use support::{Capture, Ng, Tcp, ethernet, ipv4, ipv6, summed, tcp_frame};

const PAYLOAD: usize = 100;

fn segment() -> Vec<u8> {
    Tcp {
        payload: vec![9; PAYLOAD],
        ..Tcp::with_options(&[8, 10, 0, 0, 0, 1, 0, 0, 0, 2])
    }
    .octets()
}

/// The fragments of `octets` cut at the given positions, with an identification.
fn cut(id: u16, octets: &[u8], cuts: &[usize], v6: bool) -> Vec<Vec<u8>> {
    let mut ends = cuts.to_vec();
    ends.push(octets.len());
    let mut start = 0;
    let mut frames = Vec::new();
    for end in ends {
        let more = u16::from(end < octets.len());
        let body = &octets[start..end];
        frames.push(if v6 {
            let field = (start as u16) | more;
            let mut header = vec![6, 0];
            header.extend(field.to_be_bytes());
            header.extend([0, 1]);
            header.extend(id.to_be_bytes());
            ethernet(0x86dd, &ipv6(44, &[&header, body].concat()))
        } else {
            let mut packet = ipv4(6, &[], more << 13 | (start / 8) as u16, body);
            packet[4..6].copy_from_slice(&id.to_be_bytes());
            ethernet(0x0800, &packet)
        });
        start = end;
    }
    frames
}

struct Decoded {
    segments: Vec<Segment>,
    issues: Vec<(u64, IssueKind)>,
    tcp: u64,
    fragments: u64,
    others: usize,
}

fn decode(frames: &[Vec<u8>]) -> Decoded {
    let mut capture = Capture::plain();
    for frame in frames {
        capture.frame(frame);
    }
    decode_capture(&capture)
}

fn decode_capture(capture: &Capture) -> Decoded {
    let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
    let mut segments = Vec::new();
    while !reader.ended() {
        segments.extend(reader.next_segment().map(|found| *found.segment));
    }
    let tally = reader.tally().clone();
    Decoded {
        segments,
        issues: reader.issues().iter().map(|i| (i.record, i.kind)).collect(),
        tcp: tally.tcp.packets,
        fragments: tally.of(Other::TcpFragment).packets,
        others: reader.take_others().len(),
    }
}

#[test]
fn fragments_in_any_order_give_one_segment() {
    for v6 in [false, true] {
        let frames = cut(7, &segment(), &[64, 96, 120], v6);
        let header_bytes = if v6 { 48 } else { 20 };
        let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]];
        for order in orders {
            let ordered: Vec<Vec<u8>> = order.iter().map(|&n| frames[n].clone()).collect();
            let found = decode(&ordered);
            assert_eq!(found.issues, [], "{order:?}");
            assert_eq!((found.tcp, found.fragments, found.others), (1, 3, 3));
            let [one] = found.segments[..] else {
                panic!("{order:?}: {} segments", found.segments.len());
            };
            assert_eq!((one.record, one.payload_bytes), (4, PAYLOAD as u32));
            assert_eq!(one.options.timestamps, Some((1, 2)));
            assert_eq!(one.ip_bytes, header_bytes + 32 + PAYLOAD as u32);
            let frame_bytes: usize = frames.iter().map(Vec::len).sum();
            assert_eq!(one.frame_bytes as usize, frame_bytes);
        }
    }
}

#[test]
fn a_header_split_between_fragments_is_put_together() {
    let two = decode(&cut(7, &segment(), &[8], false));
    assert_eq!((two.tcp, two.fragments, two.others), (1, 1, 1));
    let found = decode(&cut(7, &segment(), &[8, 24], false));
    assert_eq!(found.segments.len(), 1);
    assert_eq!(found.segments[0].options.timestamps, Some((1, 2)));
    assert_eq!(found.segments[0].payload_bytes, PAYLOAD as u32);
}

#[test]
fn interleaved_packets_are_told_apart() {
    let (one, two) = (
        cut(1, &segment(), &[64], false),
        cut(2, &segment(), &[80], false),
    );
    // The first ones in turn: the capture has shown that it holds later fragments.
    let frames = [&one[0], &one[1], &two[0], &one[0], &two[1], &one[1]].map(Clone::clone);
    let found = decode(&frames);
    let records: Vec<u64> = found.segments.iter().map(|s| s.record).collect();
    assert_eq!(records, [2, 5, 6]);
    assert_eq!(found.issues, []);
}

#[test]
fn a_fragment_is_a_row_with_its_own_length() {
    let mut capture = Capture::plain();
    for frame in cut(7, &segment(), &[64, 96], false) {
        capture.frame(&frame);
    }
    let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
    assert!(reader.next_segment().is_some());
    let rows: Vec<(u64, Other, u32)> = reader
        .take_others()
        .iter()
        .map(|row| (row.record, row.kind, row.ip_bytes))
        .collect();
    let fragment = Other::TcpFragment;
    assert_eq!(rows, [(1, fragment, 84), (2, fragment, 52)]);
}

#[test]
fn fragments_of_an_unknown_protocol_do_not_show_that_the_capture_holds_all_of_tcp() {
    let mut frames: Vec<Vec<u8>> = (1..3)
        .map(|id| cut(id, &segment(), &[64], false)[0].clone())
        .collect();
    frames.insert(0, cut_v6(60, &[0; 64], &[32])[1].clone());
    let records: Vec<u64> = decode(&frames).segments.iter().map(|s| s.record).collect();
    assert_eq!(records, [2, 3]);
}

#[test]
fn a_capture_of_first_fragments_gives_a_segment_each() {
    let firsts: Vec<Vec<u8>> = (1..4)
        .map(|id| cut(id, &segment(), &[64], false)[0].clone())
        .collect();
    let mut frames = firsts.clone();
    frames.insert(1, tcp_frame(&Tcp::default()));
    let found = decode(&frames);
    let records: Vec<u64> = found.segments.iter().map(|s| s.record).collect();
    assert_eq!(records, [1, 2, 3, 4], "in the order of the capture");
    assert_eq!((found.tcp, found.fragments), (4, 0));
    let payloads: Vec<u32> = found.segments.iter().map(|s| s.payload_bytes).collect();
    assert_eq!(payloads, [32, 10, 32, 32]);
    let fragment = IssueKind::Fragment;
    assert_eq!(found.issues, [(1, fragment), (3, fragment), (4, fragment)]);
}

#[test]
fn what_is_missing_or_wrong_is_an_issue() {
    let frames = cut(7, &segment(), &[64, 96], false);
    let missing = decode(&[frames[0].clone(), frames[2].clone()]);
    assert!(missing.segments.is_empty());
    assert_eq!(missing.issues, [(2, IssueKind::Fragment)]);
    assert_eq!(missing.fragments, 2);

    let other = cut(7, &segment(), &[56, 104], false);
    let overlap = decode(&[
        frames[0].clone(),
        other[1].clone(),
        frames[1].clone(),
        frames[2].clone(),
    ]);
    assert_eq!(overlap.issues, [(2, IssueKind::Fragment)]);
    assert_eq!(overlap.segments.len(), 1, "the fragments that fit are used");

    let twice = decode(&[
        frames[0].clone(),
        frames[0].clone(),
        frames[1].clone(),
        frames[1].clone(),
        frames[2].clone(),
    ]);
    assert_eq!((twice.segments.len(), twice.issues.len()), (1, 0));
    assert_eq!(twice.tcp + twice.fragments, 5);

    let mut beyond = frames[1].clone();
    beyond[20..22].copy_from_slice(&0x1fff_u16.to_be_bytes());
    let beyond = decode(&[beyond]);
    assert_eq!(beyond.issues, [(1, IssueKind::Fragment)]);
}

#[test]
fn an_incomplete_packet_is_given_up_after_30_seconds() {
    let frames = cut(7, &segment(), &[64, 96], false);
    for (last_s, segments) in [(25, 1), (35, 0)] {
        let mut capture = Capture::plain();
        for (second, frame) in [(0, &frames[0]), (1, &frames[1]), (last_s, &frames[2])] {
            capture.record(1_700_000_000 + second, 0, frame.len() as u32, frame);
        }
        assert_eq!(decode_capture(&capture).segments.len(), segments);
    }
}

#[test]
fn many_incomplete_packets_are_bounded() {
    let mut capture = Capture::plain();
    let second = &cut(7, &segment(), &[64], false)[1];
    for id in 0..5000_u16 {
        let mut frame = second.clone();
        frame[18..20].copy_from_slice(&id.to_be_bytes());
        capture.frame(&frame);
    }
    let found = decode_capture(&capture);
    assert_eq!((found.segments.len(), found.fragments), (0, 5000));
    // Each is an issue, the first hundred by itself.
    assert_eq!(found.issues.len(), 101);
}

#[test]
fn many_incomplete_packets_behind_options_of_ipv6_are_bounded() {
    let mut capture = Capture::plain();
    let second = &cut_v6(60, &[0; 64], &[32])[1];
    for id in 0..5000_u16 {
        let mut frame = second.clone();
        frame[60..62].copy_from_slice(&id.to_be_bytes());
        capture.frame(&frame);
    }
    // One that is whole still becomes a segment, whatever waits.
    for frame in cut(7, &segment(), &[64], true).iter().rev() {
        capture.frame(frame);
    }
    let found = decode_capture(&capture);
    assert_eq!((found.segments.len(), found.others), (1, 5001));
    assert_eq!(found.issues, [(1, IssueKind::Skipped)]);
}

#[test]
fn every_cut_of_every_fragment_is_a_segment_or_an_issue() {
    let frames = cut(7, &segment(), &[64, 96], true);
    for (cut_frame, whole) in frames.iter().enumerate() {
        for length in 0..whole.len() {
            let mut capture = Capture::plain();
            for (number, frame) in frames.iter().enumerate() {
                let kept = if number == cut_frame {
                    length
                } else {
                    frame.len()
                };
                capture.record(1, number as u32, frame.len() as u32, &frame[..kept]);
            }
            let found = decode_capture(&capture);
            assert!(
                found.segments.len() + found.issues.len() > 0,
                "frame {cut_frame} at {length}"
            );
        }
    }
}

/// The outer packet of a tunnel in fragments: the payload of `protocol` cut at the given positions.
fn outer(protocol: u8, payload: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let bounds = [&[0], cuts, &[payload.len()]].concat();
    let pieces = bounds.windows(2).map(|piece| {
        let more = u16::from(piece[1] < payload.len());
        let body = &payload[piece[0]..piece[1]];
        ethernet(
            0x0800,
            &ipv4(protocol, &[], more << 13 | (piece[0] / 8) as u16, body),
        )
    });
    pieces.collect()
}

#[test]
fn a_segment_in_a_fragmented_packet_of_a_tunnel_counts_once_and_whole() {
    let packet = ipv4(6, &[], 0, &segment());
    let gre = [&[0, 0, 8, 0], &packet[..]].concat();
    let mut vxlan = vec![0xc0, 1, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 5, 0];
    vxlan.extend(ethernet(0x0800, &packet));
    for (protocol, payload) in [(47, gre), (17, vxlan)] {
        let frames = outer(protocol, &payload, &[104, 128]);
        let orders = [[0, 1, 2], [0, 2, 1], [2, 1, 0], [1, 0, 2]];
        for order in orders {
            let ordered: Vec<Vec<u8>> = order.iter().map(|&n| frames[n].clone()).collect();
            let found = decode(&ordered);
            assert_eq!(found.segments.len(), 1, "{protocol} {order:?}");
            assert_eq!(found.segments[0].payload_bytes as usize, PAYLOAD);
            assert_eq!(found.issues, [], "{protocol} {order:?}");
            assert_eq!((found.tcp, found.others), (1, 2));
        }
        // The capture holds the first one only, or not the last: the segment counts, and what is missing is an issue.
        for kept in [1, 2] {
            let found = decode(&frames[..kept]);
            assert_eq!(found.segments.len(), 1);
            assert_eq!(found.issues, [(kept as u64, IssueKind::Fragment)]);
        }
        // It does not hold the first one: there is no segment. Of UDP, nobody knows what it was.
        let found = decode(&frames[1..]);
        assert_eq!(found.segments, []);
        let expected: &[(u64, IssueKind)] = match protocol {
            17 => &[],
            _ => &[(2, IssueKind::Skipped)],
        };
        assert_eq!(found.issues, expected);
    }
}

#[test]
fn l2tp_3_and_esp_without_encryption_in_fragments_count_once_and_whole() {
    let packet4 = summed(ipv4(6, &[], 0, &segment()));
    let frame4 = ethernet(0x0800, &packet4);
    let frame6 = ethernet(0x86dd, &ipv6(6, &segment()));
    let session = [0, 0, 0, 9];
    let cookie_and_sublayer = [7, 7, 7, 7, 0, 0, 0, 0];
    let with_cookie = |frame: &[u8]| [&session, &cookie_and_sublayer[..], frame].concat();
    let (mut wrong4, mut short6) = (frame4.clone(), frame6.clone());
    wrong4[20] ^= 1;
    short6[19] -= 132;
    let esp = |packet: &[u8]| [&[0, 0, 0, 9, 0, 0, 0, 1], packet, &[1, 2, 2, 4], &[5; 12]].concat();
    let wrong_packet4 = wrong4[14..].to_vec();
    for (name, protocol, payload, segments) in [
        ("L2TP, IPv4", 115, [&session, &frame4[..]].concat(), 1),
        ("L2TP, IPv6", 115, [&session, &frame6[..]].concat(), 1),
        ("L2TP, a cookie, IPv4", 115, with_cookie(&frame4), 1),
        ("L2TP, a cookie, IPv6", 115, with_cookie(&frame6), 1),
        ("L2TP, a wrong checksum", 115, with_cookie(&wrong4), 0),
        ("L2TP, a short packet", 115, with_cookie(&short6), 0),
        ("ESP", 50, esp(&packet4), 1),
        ("ESP, a wrong checksum", 50, esp(&wrong_packet4), 0),
    ] {
        let frames = outer(protocol, &payload, &[112, 136]);
        let found = decode(&frames);
        assert_eq!(found.segments.len(), segments, "{name}");
        if segments == 1 {
            assert_eq!(found.segments[0].payload_bytes as usize, PAYLOAD, "{name}");
            assert_eq!(found.issues, [], "{name}");
        } else {
            assert_eq!(found.issues[0].1, IssueKind::Skipped, "{name}");
        }
    }
}

#[test]
fn fragments_of_other_packets_are_no_issue() {
    let frames = outer(
        17,
        &[0xc0, 1, 0x20, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
        &[8],
    );
    let found = decode(&frames);
    assert_eq!(
        (found.segments.len(), found.issues.len(), found.others),
        (0, 0, 2)
    );
    assert_eq!(decode(&outer(1, &[0; 64], &[32])[..1]).issues, []);
}

#[test]
fn the_fragments_of_an_ipv6_packet_may_name_different_next_headers() {
    // RFC 2473 §5.1, as Linux sends it: the limit of encapsulation is in a destination option behind the fragment header.
    let inner = [&[41, 0, 4, 1, 4, 1, 1, 0], &ipv6(6, &segment())[..]].concat();
    let pieces = [(&inner[..128], 1_u16), (&inner[128..], 128)].map(|(body, field)| {
        let mut header = vec![60, 0];
        header.extend(field.to_be_bytes());
        header.extend([0, 0, 0, 7]);
        ethernet(0x86dd, &ipv6(44, &[&header, body].concat()))
    });
    let found = decode(&pieces);
    assert_eq!((found.segments.len(), found.issues.len()), (1, 0));
    assert_eq!(found.segments[0].payload_bytes as usize, PAYLOAD);
}

#[test]
fn extension_headers_longer_than_a_packet_are_an_issue() {
    // Of a packet whose length field is 0, the frame gives the length: 33 headers of 2048 octets behind a fragment header.
    let mut body = vec![60, 0, 0, 1, 0, 0, 0, 7];
    for left in (0..33).rev() {
        let next = if left == 0 { 6 } else { 60 };
        body.extend([next, 255]);
        body.resize(body.len() + 2046, 0);
    }
    body.extend(segment());
    let mut packet = ipv6(44, &[]);
    packet.extend(body);
    let found = decode(&[ethernet(0x86dd, &packet)]);
    assert_eq!(found.segments, []);
    assert_eq!(found.issues, [(1, IssueKind::IpHeader)]);
}

#[test]
fn the_sum_of_impossible_frame_lengths_does_not_wrap() {
    let mut file = Ng::new(false);
    file.interface(1, 0, &[]);
    for frame in cut(7, &segment(), &[64], false) {
        file.packet(0, 1, &frame);
        let at = file.octets.len() - (frame.len().next_multiple_of(4) + 4) - 4;
        file.octets[at..at + 4].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    }
    let mut reader = Reader::new(&file.octets[..]).expect("a capture");
    let found = reader.next_segment().expect("a segment");
    assert_eq!(found.segment.frame_bytes, u32::MAX);
}

/// The frames in every order.
fn orders(frames: &[Vec<u8>; 3]) -> Vec<Vec<Vec<u8>>> {
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    let ordered = orders.map(|order| order.map(|n: usize| frames[n].clone()).to_vec());
    ordered.to_vec()
}

#[test]
fn mpls_in_a_fragmented_packet_of_a_tunnel_counts_once_and_whole() {
    const STACK: [u8; 8] = [0, 0, 0x88, 0x47, 0, 1, 1, 64];
    const CONTROL_WORD: [u8; 4] = [0, 0, 0, 9];
    let packet4 = summed(ipv4(6, &[], 0, &segment()));
    let packet6 = ipv6(6, &segment());
    let frame4 = ethernet(0x0800, &packet4);
    let frame6 = ethernet(0x86dd, &packet6);
    let to = |first: u8, frame: &[u8]| [&[first], &frame[1..]].concat();
    let over = |inner: &[u8]| [&STACK, inner].concat();
    let behind_control_word = |frame: &[u8]| over(&[&CONTROL_WORD, frame].concat());
    for (name, payload, pseudowires) in [
        ("IPv4", over(&packet4), 0),
        ("IPv6", over(&packet6), 0),
        ("Ethernet, IPv4", over(&frame4), 1),
        ("Ethernet, IPv6", over(&frame6), 1),
        ("a control word, IPv4", behind_control_word(&frame4), 1),
        ("a control word, IPv6", behind_control_word(&frame6), 1),
        ("an address like IPv6", over(&to(0x60, &frame4)), 1),
        ("an address like IPv4", over(&to(0x48, &frame6)), 1),
        ("an address like IPv6, IPv6", over(&to(0x60, &frame6)), 1),
    ] {
        let frames = outer(47, &payload, &[112, 136]);
        for ordered in orders(&frames.try_into().expect("three")) {
            let found = decode(&ordered);
            assert_eq!(found.segments.len(), 1, "{name}");
            assert_eq!(found.segments[0].payload_bytes as usize, PAYLOAD, "{name}");
            let kinds: Vec<IssueKind> = found.issues.iter().map(|issue| issue.1).collect();
            assert_eq!(kinds, vec![IssueKind::Pseudowire; pseudowires], "{name}");
            assert_eq!((found.tcp, found.others), (1, 2));
        }
    }
    // A frame proves nothing if a bit of its IPv4 header is wrong, or if its IPv6 packet ends within the fragment.
    let (mut wrong4, mut wrong6) = (frame4, frame6);
    wrong4[20] ^= 1;
    wrong6[19] -= 132;
    for frame in [wrong4, wrong6] {
        let found = decode(&outer(47, &over(&frame), &[112, 136]));
        assert_eq!(found.segments, []);
        assert_eq!(found.issues[0].1, IssueKind::Skipped);
    }
}

/// The fragments of `body`, an IPv6 payload that starts with a header of the type `next`, cut at the given positions.
fn cut_v6(next: u8, body: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let bounds = [&[0], cuts, &[body.len()]].concat();
    let pieces = bounds.windows(2).map(|piece| {
        let field = piece[0] as u16 | u16::from(piece[1] < body.len());
        let mut header = vec![next, 0];
        header.extend(field.to_be_bytes());
        header.extend([0, 0, 0, 7]);
        let payload = [&header, &body[piece[0]..piece[1]]].concat();
        ethernet(0x86dd, &ipv6(44, &payload))
    });
    pieces.collect()
}

#[test]
fn fragments_of_a_segment_behind_options_of_ipv6_in_any_order() {
    // Destination options, and an authentication header, whose length is not a multiple of 8.
    let options = [&[6, 0, 1, 4, 0, 0, 0, 0], &segment()[..]].concat();
    let authentication = [&[6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2], &segment()[..]].concat();
    for (next, body) in [(60, options), (51, authentication)] {
        // The TCP header is in the first two.
        let frames = cut_v6(next, &body, &[24, 64]);
        for ordered in orders(&frames.try_into().expect("three")) {
            let found = decode(&ordered);
            assert_eq!((found.segments.len(), &found.issues[..]), (1, &[][..]));
            let segment = found.segments[0];
            assert_eq!(segment.record, 3);
            assert_eq!(segment.payload_bytes as usize, PAYLOAD);
            assert_eq!(segment.options.timestamps, Some((1, 2)));
            assert_eq!((found.tcp, found.others), (1, 2));
        }
    }
}

#[test]
fn fragments_of_a_segment_behind_an_authentication_header_of_ipv4_in_any_order() {
    let header = |next: u8| [next, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
    let transport = [&header(6), &segment()[..]].concat();
    let tunnel = [&header(4), &ipv4(6, &[], 0, &segment())[..]].concat();
    for (body, cuts, header_bytes) in [(transport, [24, 64], 32), (tunnel, [96, 120], 20)] {
        for ordered in orders(&outer(51, &body, &cuts).try_into().expect("three")) {
            let found = decode(&ordered);
            assert_eq!((found.segments.len(), &found.issues[..]), (1, &[][..]));
            let segment = found.segments[0];
            assert_eq!(segment.payload_bytes as usize, PAYLOAD);
            assert_eq!(segment.ip_bytes, header_bytes + 32 + PAYLOAD as u32);
            assert_eq!(segment.options.timestamps, Some((1, 2)));
            assert_eq!((found.tcp, found.others), (1, 2));
        }
    }
}

#[test]
fn a_tunnel_behind_options_of_ipv6_in_fragments_in_any_order() {
    let inner = [&[41, 0, 4, 1, 4, 1, 1, 0], &ipv6(6, &segment())[..]].concat();
    let frames = cut_v6(60, &inner, &[128, 152]);
    for ordered in orders(&frames.clone().try_into().expect("three")) {
        let found = decode(&ordered);
        assert_eq!((found.segments.len(), &found.issues[..]), (1, &[][..]));
        assert_eq!(found.segments[0].payload_bytes as usize, PAYLOAD);
        assert_eq!((found.tcp, found.others), (1, 2));
    }
    // What is missing is an issue, wherever the first one comes.
    let found = decode(&[frames[1].clone(), frames[0].clone()]);
    assert_eq!(found.segments.len(), 1);
    assert_eq!(found.issues, [(2, IssueKind::Fragment)]);
}

#[test]
fn fragments_behind_options_of_ipv6_without_the_first_are_skipped() {
    let body = [&[6, 0, 1, 4, 0, 0, 0, 0], &segment()[..]].concat();
    let frames = cut_v6(60, &body, &[24, 64]);
    let found = decode(&frames[1..]);
    assert_eq!((found.segments.len(), found.tcp, found.others), (0, 0, 2));
    assert_eq!(found.issues, [(2, IssueKind::Skipped)]);
    // The first shows TCP, and the capture lacks another one.
    let found = decode(&[frames[1].clone(), frames[0].clone()]);
    assert_eq!((found.segments.len(), found.others), (0, 2));
    assert_eq!(found.issues, [(2, IssueKind::Fragment)]);
    // It shows UDP, of which nothing was lost.
    let mut datagram = body;
    datagram[0] = 17;
    datagram[8..16].copy_from_slice(&[0xc0, 1, 0, 53, 0, 132, 0, 0]);
    let frames = cut_v6(60, &datagram, &[24, 64]);
    let found = decode(&[frames[1].clone(), frames[0].clone(), frames[2].clone()]);
    assert_eq!((found.segments.len(), found.others), (0, 3));
}

#[test]
fn a_header_split_between_fragments_is_put_together_in_any_order() {
    for v6 in [false, true] {
        let frames = cut(7, &segment(), &[8, 24], v6);
        for ordered in orders(&frames.try_into().expect("three")) {
            let found = decode(&ordered);
            assert_eq!((found.segments.len(), &found.issues[..]), (1, &[][..]));
            assert_eq!(found.segments[0].options.timestamps, Some((1, 2)));
        }
    }
    // Of many small ones, the header is in those that come last.
    let cuts: Vec<usize> = (8..128).step_by(8).collect();
    let mut frames = cut(7, &segment(), &cuts, false);
    frames.reverse();
    let found = decode(&frames);
    assert_eq!(found.segments[0].options.timestamps, Some((1, 2)));
}

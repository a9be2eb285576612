//! pcapng: files written octet by octet as draft-ietf-opsawg-pcapng describes them.
#![allow(missing_docs)]

mod support;

use hindflight_decoder::{DecodeError, Format, Issue, IssueKind, Reader, Segment};
use support::{Ng, Tcp, ipv4, tcp_frame};

fn decode(octets: &[u8]) -> (Vec<Segment>, Vec<Issue>) {
    let mut reader = Reader::new(octets).expect("a capture");
    let mut segments = Vec::new();
    while let Some(found) = reader.next_segment() {
        segments.push(*found.segment);
    }
    (segments, reader.issues().to_vec())
}

fn kinds(issues: &[Issue]) -> Vec<(u64, IssueKind)> {
    issues.iter().map(|i| (i.record, i.kind)).collect()
}

fn frame(seq: u32) -> Vec<u8> {
    tcp_frame(&Tcp {
        seq,
        ..Tcp::default()
    })
}

/// 2020-09-13 12:26:40 UTC and 123456789 ns.
const T_S: u64 = 1_600_000_000;
const T_NS: i64 = 1_600_000_000_123_456_789;

#[test]
fn a_section_written_by_hand() {
    // §4.1, §4.2 and §4.3, little endian, every octet spelt out.
    let mut octets = vec![0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a];
    octets.extend([
        1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 28, 0, 0, 0,
    ]);
    octets.extend([1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0, 20, 0, 0, 0]);
    octets.extend([6, 0, 0, 0, 96, 0, 0, 0, 0, 0, 0, 0]);
    // 1 600 000 000 123 456 µs = 0x0005AF30_F42F4240.
    octets.extend([
        0x30, 0xaf, 0x05, 0, 0x40, 0x42, 0x2f, 0xf4, 64, 0, 0, 0, 64, 0, 0, 0,
    ]);
    octets.extend(frame(9));
    octets.extend([96, 0, 0, 0]);
    let ticks = (0x0005_af30_u64 << 32) | 0xf42f_4240;
    let (segments, issues) = decode(&octets);
    assert_eq!(issues, []);
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].t_ns as u64, ticks * 1_000);
    assert_eq!((segments[0].record, segments[0].seq), (1, 9));
    assert_eq!(
        (segments[0].frame_bytes, segments[0].captured_bytes),
        (64, 64)
    );
}

#[test]
fn resolutions_and_offsets_of_interfaces() {
    for big_endian in [false, true] {
        for (options, ticks, t_ns) in [
            (vec![], T_S * 1_000_000 + 123_456, T_NS / 1_000 * 1_000),
            (
                vec![(9, vec![6])],
                T_S * 1_000_000 + 123_456,
                T_NS / 1_000 * 1_000,
            ),
            (vec![(9, vec![9])], T_NS as u64, T_NS),
            (
                vec![(9, vec![3])],
                T_S * 1_000 + 123,
                T_NS / 1_000_000 * 1_000_000,
            ),
            (vec![(9, vec![0])], T_S, T_S as i64 * 1_000_000_000),
            (vec![(9, vec![10])], T_NS as u64 * 10 + 7, T_NS),
            // 2^-10 s, 2^-32 s as NTP.
            (
                vec![(9, vec![0x8a])],
                T_S << 10 | 512,
                T_S as i64 * 1_000_000_000 + 500_000_000,
            ),
            (
                vec![(9, vec![0xa0])],
                T_S << 32 | 1 << 30,
                T_S as i64 * 1_000_000_000 + 250_000_000,
            ),
        ] {
            let mut file = Ng::new(big_endian);
            file.interface(1, 0, &options);
            file.packet(0, ticks, &frame(1));
            let (segments, issues) = decode(&file.octets);
            assert_eq!(issues, []);
            assert_eq!(segments[0].t_ns, t_ns, "{options:?}");
        }
        for (offset_s, t_ns) in [(T_S as i64, T_NS), (-1, -876_543_211)] {
            let offset = if big_endian {
                offset_s.to_be_bytes()
            } else {
                offset_s.to_le_bytes()
            };
            let mut file = Ng::new(big_endian);
            file.interface(1, 0, &[(9, vec![9]), (14, offset.to_vec())]);
            file.packet(0, 123_456_789, &frame(1));
            assert_eq!(decode(&file.octets).0[0].t_ns, t_ns);
        }
    }
}

#[test]
fn interfaces_have_their_own_link_type_resolution_and_snapshot_length() {
    let packet = ipv4(6, &[], 0, &Tcp::default().octets());
    let mut file = Ng::new(false);
    file.interface(1, 262_144, &[(2, b"eth0".to_vec()), (9, vec![6])]);
    file.interface(101, 60, &[(9, vec![9])]);
    file.packet(0, T_S * 1_000_000, &frame(1));
    file.packet(1, T_NS as u64, &packet);
    file.interface(113, 0, &[]);
    file.packet(
        2,
        T_S * 1_000_000 + 2,
        &[
            &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0][..],
            &packet,
        ]
        .concat(),
    );
    let (segments, issues) = decode(&file.octets);
    assert_eq!(issues, []);
    let times: Vec<i64> = segments.iter().map(|s| s.t_ns).collect();
    let start = T_S as i64 * 1_000_000_000;
    assert_eq!(times, [start, T_NS, start + 2_000]);
    assert_eq!(segments[1].captured_bytes, 50);

    let mut reader = Reader::new(&file.octets[..]).expect("a capture");
    assert_eq!(reader.header().format, Format::Pcapng);
    assert_eq!(
        (reader.header().resolution_ns, reader.header().snaplen_bytes),
        (1_000, 262_144)
    );
    assert_eq!(reader.link_names(), ["EN10MB", "RAW"]);
    while reader.next_segment().is_some() {}
    assert_eq!(reader.link_names(), ["EN10MB", "RAW", "LINUX_SLL"]);
}

#[test]
fn a_section_ends_the_interfaces_and_the_byte_order_of_the_one_before() {
    let mut file = Ng::new(false);
    file.interface(1, 0, &[]);
    file.packet(0, 1, &frame(1));
    file.section(true);
    file.interface(101, 0, &[(9, vec![9])]);
    file.packet(0, 2_000, &ipv4(6, &[], 0, &Tcp::default().octets()));
    file.packet(1, 3_000, &frame(3));
    let (segments, issues) = decode(&file.octets);
    let times: Vec<(u64, i64)> = segments.iter().map(|s| (s.record, s.t_ns)).collect();
    assert_eq!(times, [(1, 1_000), (2, 2_000)]);
    assert_eq!(kinds(&issues), [(3, IssueKind::RecordHeader)]);
    assert!(
        issues[0]
            .text
            .contains("names interface 1, but the section defines 1")
    );
}

#[test]
fn simple_and_obsolete_packet_blocks() {
    for big_endian in [false, true] {
        let mut file = Ng::new(big_endian);
        file.interface(1, 60, &[]);
        let data = frame(7);
        // Obsolete: interface 0, 3 drops, time, lengths, data.
        let mut body = Vec::new();
        file.u16_into(&mut body, 0);
        file.u16_into(&mut body, 3);
        for field in [0, 5_000, 64, 64] {
            file.u32_into(&mut body, field);
        }
        body.extend(&data);
        file.block(2, &body);
        // Simple: only the frame length; the snapshot length gives the captured length.
        let mut body = Vec::new();
        file.u32_into(&mut body, 64);
        body.extend(&data[..60]);
        file.block(3, &body);
        let (segments, issues) = decode(&file.octets);
        let found: Vec<_> = segments
            .iter()
            .map(|s| (s.t_ns, s.frame_bytes, s.captured_bytes))
            .collect();
        assert_eq!(found, [(5_000_000, 64, 64), (5_000_000, 64, 60)]);
        assert_eq!(
            kinds(&issues),
            [(1, IssueKind::RecordLength), (2, IssueKind::RecordTime)]
        );
    }
}

#[test]
fn blocks_without_packets_are_skipped() {
    let mut file = Ng::new(false);
    file.interface(1, 0, &[(1, b"a comment".to_vec())]);
    file.block(4, &[0, 0, 0, 0]);
    file.block(10, b"TLSK\x04\0\0\0keys");
    file.block(0xbad, &[0; 40]);
    file.block(0x4000_0bad, &[0; 4]);
    file.block(0x8000_0001, &[]);
    file.packet_with(0, 1, &frame(1), &[(1, b"comment of a packet".to_vec())]);
    // Statistics: interface 0, time, 40 packets received, 2 lost by the interface, 3 by the system.
    let mut body = vec![0; 12];
    for (code, count) in [(4_u16, 40_u64), (5, 2), (7, 3)] {
        body.extend(code.to_le_bytes());
        body.extend(8_u16.to_le_bytes());
        body.extend(count.to_le_bytes());
    }
    file.block(5, &body);
    file.packet(0, 2, &frame(2));
    let (segments, issues) = decode(&file.octets);
    assert_eq!(segments.iter().map(|s| s.seq).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(kinds(&issues), [(1, IssueKind::CaptureDrop)]);
    assert_eq!(issues[0].text, "the capture lost 5 packets on interface 0");
}

#[test]
fn unsupported_link_types() {
    let mut file = Ng::new(false);
    file.interface(143, 0, &[]);
    let error = Reader::new(&file.octets[..]).err().expect("an error");
    assert!(matches!(error, DecodeError::LinkType { number: 143 }));
    file.interface(1, 0, &[]);
    file.packet(0, 1, &frame(1));
    file.packet(1, 2, &frame(2));
    let (segments, issues) = decode(&file.octets);
    assert_eq!(segments.len(), 1);
    assert_eq!(kinds(&issues), [(1, IssueKind::LinkType)]);
    let reader = Reader::new(&file.octets[..]).expect("a capture");
    assert_eq!(reader.link_names(), ["143", "EN10MB"]);
}

#[test]
fn an_empty_section_is_a_capture_without_packets() {
    let file = Ng::new(true);
    assert_eq!(decode(&file.octets), (vec![], vec![]));
    for have in 1..28 {
        let error = Reader::new(&file.octets[..have]).err().expect("an error");
        assert!(matches!(error, DecodeError::HeaderCut { .. }), "{have}");
    }
}

fn file_of(count: u32, big_endian: bool) -> Ng {
    let mut file = Ng::new(big_endian);
    file.interface(1, 0, &[(9, vec![9])]);
    for n in 0..count {
        let data = tcp_frame(&Tcp {
            seq: n,
            payload: vec![n as u8 | 1; n as usize * 37 % 200],
            ..Tcp::default()
        });
        file.packet_with(
            0,
            T_NS as u64 + u64::from(n),
            &data,
            &[(1, b"note".to_vec())],
        );
    }
    file
}

#[test]
fn truncation_at_every_octet_keeps_all_complete_packets() {
    let file = file_of(8, true);
    for length in 28..=file.octets.len() {
        let (segments, issues) = decode(&file.octets[..length]);
        let complete = file.ends.iter().filter(|&&end| end <= length).count();
        let packets = complete.saturating_sub(2);
        assert_eq!(segments.len(), packets, "truncated at {length}");
        if file.ends.contains(&length) {
            assert_eq!(issues, [], "truncated at {length}");
        } else {
            assert_eq!(
                kinds(&issues),
                [(packets as u64 + 1, IssueKind::Cut)],
                "truncated at {length}"
            );
        }
    }
}

#[test]
fn reading_resumes_after_a_damaged_block() {
    let file = file_of(20, false);
    for damaged in 2..21 {
        for damage in [0..8, 4..8] {
            let mut octets = file.octets.clone();
            let at = file.ends[damaged - 1];
            octets[at + damage.start..at + damage.end].fill(0xff);
            let (segments, issues) = decode(&octets);
            assert_eq!(segments.len(), 19, "packet {} damaged", damaged - 1);
            assert_eq!(
                kinds(&issues),
                [(damaged as u64 - 1, IssueKind::RecordHeader)]
            );
            assert_eq!(issues[0].offset, at as u64);
        }
    }
}

#[test]
fn fields_that_contradict_one_another() {
    let mut file = Ng::new(false);
    // An invalid resolution; the interface keeps the default.
    file.interface(1, 0, &[(9, vec![127])]);
    let mut body = Vec::new();
    for field in [0, 0, 5, 100, 100] {
        file.u32_into(&mut body, field);
    }
    body.extend(frame(1));
    file.block(6, &body);
    file.packet(0, u64::MAX, &frame(2));
    let (segments, issues) = decode(&file.octets);
    assert_eq!(
        segments
            .iter()
            .map(|s| (s.record, s.t_ns))
            .collect::<Vec<_>>(),
        [(2, 0)]
    );
    assert_eq!(
        kinds(&issues),
        [
            (0, IssueKind::FileHeader),
            (1, IssueKind::RecordHeader),
            (2, IssueKind::RecordTime)
        ]
    );
}

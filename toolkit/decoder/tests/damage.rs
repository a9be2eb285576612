//! Damaged captures: intact records are decoded, damage is reported as an issue, and only an input without a valid file
//! header is an error.
#![allow(missing_docs)]

mod support;

use std::io::{self, Read, Write};

use hindflight_decoder::{DecodeError, Issue, IssueKind, Other, Reader, Window};
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
use support::{Capture, Tcp, ethernet, ipv4, tcp_frame};

/// Record numbers of the segments, and the issues.
fn decode(octets: &[u8]) -> (Vec<u64>, Vec<Issue>) {
    let mut reader = Reader::new(octets).expect("a capture");
    let mut records = Vec::new();
    while let Some(found) = reader.next_segment() {
        records.push(found.segment.record);
    }
    (records, reader.issues().to_vec())
}

fn kinds(issues: &[Issue]) -> Vec<(u64, IssueKind)> {
    issues.iter().map(|i| (i.record, i.kind)).collect()
}

/// A capture of `count` records of different lengths and contents.
fn capture_of(count: u32) -> Capture {
    let mut capture = Capture::plain();
    for n in 0..count {
        let octet = (n.wrapping_mul(2_654_435_761) >> 24) as u8;
        capture.frame(&tcp_frame(&Tcp {
            seq: n.wrapping_mul(40_503),
            payload: vec![octet | 1; (n as usize * 37) % 200],
            ..Tcp::default()
        }));
    }
    capture
}

#[test]
fn an_input_other_than_a_capture_is_an_error() {
    let error = |octets: &[u8]| Reader::new(octets).err().expect("an error");
    assert!(matches!(error(b""), DecodeError::Empty));
    assert!(matches!(
        error(&[0xd4]),
        DecodeError::HeaderCut { have_bytes: 1, .. }
    ));
    let header = &Capture::plain().octets;
    for have_bytes in 4..24 {
        let found = error(&header[..have_bytes]);
        assert!(
            matches!(found, DecodeError::HeaderCut { have_bytes: h, need_bytes: 24 } if h == have_bytes)
        );
    }
    assert!(matches!(
        error(b"a text file, long enough for a header"),
        DecodeError::UnknownFormat { .. }
    ));
    assert!(matches!(
        error(b"short text"),
        DecodeError::UnknownFormat { .. }
    ));
    let cable = Capture::new(false, false, 100, 143).octets;
    assert_eq!(
        error(&cable).to_string(),
        "has link type 143 (DOCSIS), which is not supported"
    );
}

#[test]
fn truncation_at_every_octet_keeps_all_complete_records() {
    let capture = capture_of(12);
    for length in 24..=capture.octets.len() {
        let (records, issues) = decode(&capture.octets[..length]);
        let complete = capture.ends.iter().filter(|&&end| end <= length).count() as u64;
        assert_eq!(
            records,
            (1..=complete).collect::<Vec<_>>(),
            "truncated at {length}"
        );
        if length == 24 || capture.ends.contains(&length) {
            assert_eq!(issues, [], "truncated at {length}");
        } else {
            assert_eq!(
                kinds(&issues),
                [(complete + 1, IssueKind::Cut)],
                "truncated at {length}"
            );
        }
    }
}

#[test]
fn reading_resumes_after_a_damaged_record_header() {
    let capture = capture_of(40);
    for damaged in 1..39 {
        let mut octets = capture.octets.clone();
        let at = capture.ends[damaged - 1];
        octets[at..at + 16].fill(0xff);
        let (records, issues) = decode(&octets);
        // The damaged record keeps its number.
        let expected: Vec<u64> = (1..=40).filter(|&n| n != damaged as u64 + 1).collect();
        assert_eq!(records, expected, "record {} damaged", damaged + 1);
        assert_eq!(
            kinds(&issues),
            [(damaged as u64 + 1, IssueKind::RecordHeader)]
        );
        assert_eq!(issues[0].offset, at as u64);
    }
}

#[test]
fn a_captured_length_beyond_the_end_of_the_file_does_not_hide_later_records() {
    let capture = capture_of(40);
    let mut octets = capture.octets.clone();
    let at = capture.ends[19];
    octets[at + 8..at + 12].copy_from_slice(&200_000_u32.to_le_bytes());
    octets[at + 12..at + 16].copy_from_slice(&200_000_u32.to_le_bytes());
    let (records, issues) = decode(&octets);
    assert_eq!(records.len(), 39);
    assert_eq!(kinds(&issues), [(21, IssueKind::Cut)]);
}

#[test]
fn a_damaged_tail_keeps_all_earlier_records() {
    let mut octets = capture_of(5).octets;
    octets.extend(vec![0xee; 3_000_000]);
    let (records, issues) = decode(&octets);
    assert_eq!(records, [1, 2, 3, 4, 5]);
    assert_eq!(kinds(&issues), [(6, IssueKind::RecordHeader)]);
}

#[test]
fn zeros_at_the_end_of_a_file_are_not_records() {
    for zeros in [16, 17, 31, 32, 1 << 20] {
        let mut octets = capture_of(5).octets;
        octets.extend(vec![0; zeros]);
        let mut reader = Reader::new(&octets[..]).expect("a capture");
        while reader.next_segment().is_some() {}
        assert_eq!(kinds(reader.issues()), [(6, IssueKind::RecordHeader)]);
        let tally = reader.tally();
        assert_eq!(tally.packets, 5, "{zeros} zeros");
        let start_ns = tally.span_ns.map(|span| span.0);
        assert_eq!(start_ns, Some(1_700_000_000_000_000_000));
    }
}

#[test]
fn an_invalid_record_header_before_a_valid_one_is_kept_with_an_issue() {
    let frame = tcp_frame(&Tcp::default());
    let mut capture = Capture::new(false, true, 60, 1);
    capture
        .record(100, 2_147_483_649, 64, &frame[..60])
        .record(101, 0, 64, &frame)
        .record(102, 0, 30, &frame[..60])
        .record(103, 0, 64, &frame[..60]);
    let (records, issues) = decode(&capture.octets);
    assert_eq!(records, [1, 2, 3, 4]);
    let expected = [
        (1, IssueKind::RecordTime),
        (2, IssueKind::RecordLength),
        // The fraction made the first record later than the second.
        (2, IssueKind::Clock),
        (3, IssueKind::RecordLength),
    ];
    assert_eq!(kinds(&issues)[..4], expected);
}

#[test]
fn an_unexpected_version_is_an_issue() {
    let mut octets = capture_of(2).octets;
    octets[4] = 9;
    let (records, issues) = decode(&octets);
    assert_eq!(
        (records.len(), kinds(&issues)),
        (2, vec![(0, IssueKind::FileHeader)])
    );
}

#[test]
fn an_invalid_ip_or_tcp_header_affects_its_record_only() {
    let good = tcp_frame(&Tcp::default());
    let mut version = good.clone();
    version[14] = 0x55;
    let mut header = good.clone();
    header[14] = 0x43;
    let mut offset = good.clone();
    offset[46] = 0x40;
    let mut beyond = good.clone();
    beyond[46] = 0xf0;
    let short = ethernet(0x0800, &ipv4(6, &[], 0, &[0; 12]));
    let mut capture = Capture::plain();
    for frame in [&version, &header, &offset, &beyond, &short, &good] {
        capture.frame(frame);
    }
    for cut in [5, 20, 40] {
        capture.record(1_700_000_001, 0, 64, &good[..cut]);
    }
    let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
    assert_eq!(
        reader.next_segment().expect("the good one").segment.record,
        6
    );
    assert!(reader.next_segment().is_none());
    let expected = [
        (1, IssueKind::IpHeader),
        (2, IssueKind::IpHeader),
        (3, IssueKind::TcpHeader),
        (4, IssueKind::TcpHeader),
        (5, IssueKind::TcpHeader),
        (7, IssueKind::FrameCut),
        (8, IssueKind::FrameCut),
        (9, IssueKind::FrameCut),
    ];
    assert_eq!(kinds(reader.issues()), expected);
    assert_eq!(reader.tally().of(Other::Undecoded).packets, 8);
}

#[test]
fn a_malformed_option_keeps_the_segment_and_earlier_options() {
    let mss = [2, 4, 5, 0xb4];
    let mut capture = Capture::plain();
    for options in [&[3, 0, 1, 1], &[3, 1, 1, 1], &[3, 9, 1, 1], &[1, 1, 1, 8]] {
        capture.frame(&tcp_frame(&Tcp::with_options(
            &[&mss[..], options].concat(),
        )));
    }
    let frame = tcp_frame(&Tcp::with_options(&[&mss[..], &[8, 10], &[7; 8]].concat()));
    capture.record(1_700_000_001, 0, frame.len() as u32, &frame[..62]);
    let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
    let mut segments = 0;
    while let Some(found) = reader.next_segment() {
        segments += 1;
        assert_eq!(found.segment.options.mss, Some(1460));
        assert_eq!(found.segment.payload_bytes, 10);
    }
    assert_eq!(segments, 5);
    let mut expected = vec![IssueKind::TcpOptions; 4];
    expected.push(IssueKind::OptionsCut);
    let found: Vec<IssueKind> = reader.issues().iter().map(|i| i.kind).collect();
    assert_eq!(found, expected);
}

#[test]
fn an_ip_length_beyond_the_frame_is_kept_with_an_issue() {
    let mut frame = tcp_frame(&Tcp::default());
    frame[16..18].copy_from_slice(&1500_u16.to_be_bytes());
    let mut capture = Capture::plain();
    capture.frame(&frame);
    let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
    assert_eq!(
        reader.next_segment().expect("one").segment.payload_bytes,
        1460
    );
    assert_eq!(reader.issues()[0].kind, IssueKind::IpLength);
}

#[test]
fn at_most_a_hundred_issues_of_a_kind_are_listed() {
    let mut frame = tcp_frame(&Tcp::default());
    frame[16..18].fill(0);
    let mut capture = Capture::plain();
    for _ in 0..250 {
        capture.frame(&frame);
    }
    let (records, issues) = decode(&capture.octets);
    assert_eq!((records.len(), issues.len()), (250, 101));
    assert_eq!(issues[100].record, 0);
    assert_eq!(issues[100].text, "150 more like the 100 listed");
}

#[test]
fn packets_outside_the_time_window_are_skipped() {
    let capture = capture_of(10);
    let window = Window {
        from_ns: Some(1_700_000_000_003_000_000),
        to_ns: Some(1_700_000_000_006_000_000),
    };
    let mut reader = Reader::new(&capture.octets[..])
        .expect("a capture")
        .within(window);
    let mut records = Vec::new();
    while let Some(found) = reader.next_segment() {
        records.push(found.segment.record);
    }
    assert_eq!(records, [4, 5, 6]);
    assert_eq!(
        (
            reader.tally().packets,
            reader.tally().outside_window_packets
        ),
        (3, 7)
    );
}

type Compress = fn(&[u8]) -> io::Result<Vec<u8>>;

fn xz(octets: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = liblzma::write::XzEncoder::new(Vec::new(), 6);
    writer.write_all(octets)?;
    writer.finish()
}

fn gzip(octets: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    writer.write_all(octets)?;
    writer.finish()
}

fn zstd(octets: &[u8]) -> io::Result<Vec<u8>> {
    zstd::stream::encode_all(octets, 3)
}

fn bzip2(octets: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(octets)?;
    encoder.finish()
}

fn lz4(octets: &[u8]) -> io::Result<Vec<u8>> {
    let blocks = FrameInfo::new().block_size(BlockSize::Max64KB);
    let mut encoder = FrameEncoder::with_frame_info(blocks, Vec::new());
    encoder.write_all(octets)?;
    Ok(encoder.finish()?)
}

#[test]
fn compressed_inputs_of_several_members_decode_like_plain_ones() {
    let capture = capture_of(2000);
    let (one, two) = capture.octets.split_at(capture.octets.len() / 3);
    for compress in [xz as Compress, gzip, zstd, bzip2, lz4] {
        let octets = [
            compress(one).expect("compressed"),
            compress(two).expect("compressed"),
        ]
        .concat();
        let (records, issues) = decode(&octets);
        assert_eq!((records.len(), issues), (2000, vec![]));
    }
}

#[test]
fn a_truncated_compressed_stream_keeps_the_records_before_the_end() {
    let capture = capture_of(2000);
    for compress in [xz as Compress, gzip, zstd, bzip2, lz4] {
        let octets = compress(&capture.octets).expect("compressed");
        let mut previous = 0;
        for length in (64..octets.len()).step_by(97) {
            let mut reader = match Reader::new(&octets[..length]) {
                Ok(reader) => reader,
                Err(DecodeError::Compression { .. }) => continue,
                Err(other) => panic!("{other}"),
            };
            let mut records = 0;
            while reader.next_segment().is_some() {
                records += 1;
            }
            assert!(
                (previous..=2000).contains(&records),
                "truncated at {length}"
            );
            previous = records;
            let kinds = kinds(reader.issues());
            assert_eq!(kinds.len(), 1, "truncated at {length}");
            assert_eq!(kinds[0].1, IssueKind::Compression, "truncated at {length}");
        }
        assert!(
            previous > 500,
            "{previous} of 2000 records from nearly the whole stream"
        );
    }
}

#[test]
fn a_corrupt_xz_stream_keeps_the_records_before_the_damage() {
    let capture = capture_of(20_000);
    let mut octets = xz(&capture.octets).expect("compressed");
    let middle = octets.len() / 2;
    octets[middle..middle + 64].fill(0x5a);
    let (records, issues) = decode(&octets);
    assert!(
        records.len() > 5000 && records.len() < 20_000,
        "{} records",
        records.len()
    );
    assert!(
        issues
            .iter()
            .any(|issue| issue.kind == IssueKind::Compression)
    );
}

/// Returns its octets one at a time, then an error of the operating system.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.split_first() {
            Some((first, rest)) => {
                buffer[0] = *first;
                self.0 = rest;
                Ok(1)
            }
            None => Err(io::Error::from_raw_os_error(5)),
        }
    }
}

#[test]
fn a_read_error_is_an_error_at_the_start_and_an_issue_later() {
    assert!(matches!(Reader::new(Failing(&[])), Err(DecodeError::Io(_))));
    let capture = capture_of(4);
    let cut = capture.ends[2] + 30;
    let mut reader = Reader::new(Failing(&capture.octets[..cut])).expect("a capture");
    let mut records = 0;
    while reader.next_segment().is_some() {
        records += 1;
    }
    assert_eq!(records, 3);
    let kinds: Vec<IssueKind> = reader.issues().iter().map(|i| i.kind).collect();
    assert_eq!(kinds, [IssueKind::ReadError]);
}

#[test]
fn a_long_stretch_without_tcp_is_interrupted() {
    let mut capture = Capture::plain();
    for _ in 0..70_000 {
        capture.frame(&ethernet(0x0800, &ipv4(17, &[], 0, &[0; 8])));
    }
    capture.frame(&tcp_frame(&Tcp::default()));
    let mut reader = Reader::new(&capture.octets[..]).expect("a capture");
    assert!(reader.next_segment().is_none());
    assert!(!reader.ended());
    assert_eq!(reader.take_others().len(), 65_536);
    assert_eq!(
        reader.next_segment().expect("the segment").segment.record,
        70_001
    );
    assert!(reader.next_segment().is_none());
    assert!(reader.ended());
    assert_eq!(reader.take_others().len(), 70_000 - 65_536);
}

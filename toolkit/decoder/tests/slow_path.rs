//! Link layers that a dissector goes through, here one that strips a header of four octets.
#![allow(missing_docs)]

mod support;

use hindflight_decoder::{DecodeError, Dissector, IssueKind, Other, Reader, Segment};
use support::{Capture, Tcp, ipv4};

const KNOWN: u16 = 147;
const HEADER: [u8; 4] = [9, 9, 9, 9];

struct Stripping;

impl Dissector for Stripping {
    fn knows(&self, link_number: u16) -> bool {
        link_number == KNOWN
    }

    fn ip_packet(&mut self, link_number: u16, frame: &[u8]) -> Option<Vec<u8>> {
        assert_eq!(link_number, KNOWN);
        frame.strip_prefix(&HEADER[..]).map(<[u8]>::to_vec)
    }
}

fn frame() -> Vec<u8> {
    [&HEADER[..], &ipv4(6, &[], 0, &Tcp::default().octets())].concat()
}

fn decode(capture: &Capture) -> (Vec<Segment>, Vec<(u64, IssueKind, String)>, u64) {
    let mut reader =
        Reader::with_dissector(&capture.octets[..], Box::new(Stripping)).expect("a capture");
    let mut segments = Vec::new();
    while !reader.ended() {
        segments.extend(reader.next_segment().map(|found| *found.segment));
    }
    let issues = reader.issues().iter();
    (
        segments,
        issues
            .map(|issue| (issue.record, issue.kind, issue.text.clone()))
            .collect(),
        reader.tally().of(Other::NotIp).packets,
    )
}

#[test]
fn segments_keep_the_record_and_the_lengths_of_their_frame() {
    let mut capture = Capture::new(false, false, 0, KNOWN.into());
    let frame = frame();
    capture.record(1, 0, 3, &[1, 2, 3]);
    capture.record(2, 0, frame.len() as u32, &frame);
    // Cut after six octets of the payload of ten.
    capture.record(3, 0, frame.len() as u32, &frame[..frame.len() - 4]);
    let (segments, issues, not_ip) = decode(&capture);
    let found: Vec<_> = segments
        .iter()
        .map(|s| {
            (
                s.record,
                s.frame_bytes,
                s.captured_bytes,
                s.payload_bytes,
                s.missing_bytes,
            )
        })
        .collect();
    let bytes = frame.len() as u32;
    assert_eq!(
        found,
        [(2, bytes, bytes, 10, 0), (3, bytes, bytes - 4, 10, 4)]
    );
    assert_eq!(not_ip, 1);
    let text = "3 frames of link type 147 (private use) were read on the slow path; \
                1 of them hold no IP packet that it finds";
    assert_eq!(issues, [(1, IssueKind::SlowPath, text.to_owned())]);
}

#[test]
fn cut_at_every_octet() {
    let frame = frame();
    for length in 0..frame.len() {
        let mut capture = Capture::new(false, false, 0, KNOWN.into());
        capture.record(1, 0, frame.len() as u32, &frame[..length]);
        let (segments, issues, not_ip) = decode(&capture);
        assert_eq!(issues[issues.len() - 1].1, IssueKind::SlowPath, "{length}");
        assert!(
            segments.len() + issues.len() - 1 + not_ip as usize > 0,
            "{length}"
        );
    }
}

#[test]
fn what_nobody_knows_is_refused() {
    let capture = Capture::new(false, false, 0, 148);
    let error = Reader::with_dissector(&capture.octets[..], Box::new(Stripping)).err();
    assert!(matches!(error, Some(DecodeError::LinkType { number: 148 })));
    let capture = Capture::new(false, false, 0, KNOWN.into());
    let error = Reader::new(&capture.octets[..]).err();
    assert!(matches!(
        error,
        Some(DecodeError::LinkType { number: KNOWN })
    ));
}

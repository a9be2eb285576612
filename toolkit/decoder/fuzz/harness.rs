//! What a fuzz target does with its input: reads it to the end, follows its connections, and checks that the counts add
//! up. `toolkit/flows/tests/seeds.rs` does the same with the seeds, so that `make test` holds them.

use std::io::Read;

use hindflight_decoder::{Other, Reader};
use hindflight_flows::{ClockFix, Corrected, Tracker};

/// Link types of a family, by name of the target.
#[allow(dead_code, reason = "some targets are containers")]
pub const FAMILIES: &[(&str, &[u16])] = &[
    ("ethernet", &[1]),
    ("cooked", &[113, 276, 239, 117]),
    ("raw", &[0, 12, 101, 108, 228, 229]),
    ("ppp", &[9, 50, 51, 104, 107, 166, 204]),
    ("wlan", &[105, 119, 127, 163, 192]),
    ("rings", &[6, 10, 122, 197, 242]),
    ("tunnels", &[1, 101]),
];

/// Reads a file in any container.
#[allow(dead_code, reason = "some targets are frames")]
pub fn container(file: &[u8]) {
    if let Ok(reader) = Reader::new(file) {
        drain(reader, Some(file.len() as u64));
    }
}

/// Reads a file in any container as it is, then with its times corrected: no segment is lost, none comes twice.
#[allow(dead_code, reason = "of the target whose times vary")]
pub fn clocks(file: &[u8]) {
    let Ok(reader) = Reader::new(file) else {
        return;
    };
    let segments = drain(reader, Some(file.len() as u64));
    let Ok(fix) = ClockFix::survey(|| Reader::new(file)) else {
        return;
    };
    let readers = (0..fix.cursors()).filter_map(|_| Reader::new(file).ok());
    let mut reader = Corrected::new(readers.collect(), fix);
    let mut found = 0;
    while !reader.ended() {
        found += u64::from(reader.next_segment().is_some());
        reader.take_others();
    }
    assert!(found == segments || reader.tally().packets > MAX_PACKETS);
}

/// Reads a compressed file, of which no more than a megabyte once it is unpacked.
pub fn compressed(file: &[u8]) {
    if let Ok(reader) = Reader::new(file) {
        drain(reader, None);
    }
}

/// Reads the input of the target `name`, one of [`FAMILIES`].
pub fn family(name: &str, input: &[u8]) {
    if let Some((_, links)) = FAMILIES.iter().find(|(known, _)| *known == name) {
        frames(links, input);
    }
}

/// Reads frames of one family: an octet that selects the link type, then frames, each after its length in two octets.
fn frames(links: &[u16], input: &[u8]) {
    let Some((&selector, mut rest)) = input.split_first() else {
        return;
    };
    let link = links[usize::from(selector) % links.len()];
    let mut file = Vec::with_capacity(input.len() * 2 + 64);
    for word in [
        0xa1b2_c3d4_u32,
        0x0004_0002,
        0,
        0,
        0x0004_0000,
        u32::from(link),
    ] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    let mut second = 1_700_000_000_u32;
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (frame, after) = after.split_at(length);
        for word in [second, 0, length as u32, length as u32] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(frame);
        second += 1;
        rest = after;
    }
    container(&file);
}

/// Most packets that are read of one input: a short archive can hold very many.
const MAX_PACKETS: u64 = 1 << 14;

fn drain<R: Read>(mut reader: Reader<R>, length: Option<u64>) -> u64 {
    let mut tracker = Tracker::new(1);
    let (mut segments, mut pieces) = (0, 0);
    while !reader.ended() {
        while let Some(captured) = reader.next_segment() {
            segments += 1;
            let segment = captured.segment;
            assert!(segment.payload_bytes < segment.ip_bytes);
            assert!(captured.options_other.len() <= 40);
            // A record of more than the MSS counts as several segments.
            pieces += u64::from(tracker.push(segment).segments_n);
            if reader.tally().packets > MAX_PACKETS {
                return segments;
            }
        }
        if reader.tally().packets > MAX_PACKETS {
            return segments;
        }
    }
    tracker.finish();
    let flows = tracker.take_finished_flows();
    let counted: u64 = flows
        .iter()
        .flat_map(|flow| flow.directions)
        .map(|direction| direction.segments)
        .sum();
    assert_eq!(counted, pieces);
    let tally = reader.tally();
    let others: u64 = Other::ALL.iter().map(|kind| tally.of(*kind).packets).sum();
    assert_eq!(tally.tcp.packets, segments);
    if let Some(length) = length {
        assert!(reader.issues().iter().all(|issue| issue.offset <= length));
    }
    // An aggregate of wireless LAN is one record with several packets.
    assert!(tally.packets <= segments + others);
    segments
}

//! Random and mutated inputs: the reader terminates, does not panic, and counts every packet.
#![allow(missing_docs)]

mod support;

use hindflight_decoder::{Other, Reader};
use proptest::prelude::*;
use support::{Capture, Ng, Tcp, ethernet, ipv4, ipv6, tcp_frame};

/// Reads to the end and checks that the counts add up and that no segment is longer than its packet.
fn drain(octets: &[u8]) -> Result<(), TestCaseError> {
    let Ok(mut reader) = Reader::new(octets) else {
        return Ok(());
    };
    let mut segments = 0;
    let mut last_record = 0;
    while let Some(found) = reader.next_segment() {
        segments += 1;
        let segment = *found.segment;
        prop_assert!(segment.record > last_record);
        prop_assert!(segment.payload_bytes < segment.ip_bytes);
        prop_assert!(segment.captured_bytes as usize <= octets.len());
        prop_assert!(found.options_other.len() <= 40);
        last_record = segment.record;
    }
    prop_assert!(reader.next_segment().is_none());
    let tally = reader.tally();
    let others: u64 = Other::ALL.iter().map(|kind| tally.of(*kind).packets).sum();
    prop_assert_eq!(tally.tcp.packets, segments);
    prop_assert_eq!(tally.packets, segments + others);
    prop_assert!(
        reader
            .issues()
            .iter()
            .all(|i| i.offset <= octets.len() as u64)
    );
    Ok(())
}

/// A capture with several protocols and options.
fn sample() -> Capture {
    let tcp = Tcp::with_options(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    let sack = Tcp::with_options(&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 254, 4, 1, 2]);
    let mut capture = Capture::plain();
    capture
        .frame(&tcp_frame(&tcp))
        .frame(&ethernet(
            0x8100,
            &[&[0, 1, 8, 0][..], &ipv4(6, &[], 0, &sack.octets())].concat(),
        ))
        .frame(&ethernet(0x86dd, &ipv6(6, &tcp.octets())))
        .frame(&ethernet(
            0x86dd,
            &ipv6(0, &[&[6, 0, 1, 4, 0, 0, 0, 0][..], &tcp.octets()].concat()),
        ))
        .frame(&ethernet(0x0800, &ipv4(17, &[], 0, &[7; 90])))
        .frame(&tcp_frame(&sack));
    capture
}

/// The frames of [`sample`] in pcapng: two sections, three interfaces, all kinds of packet block.
fn sample_ng() -> Ng {
    let tcp = tcp_frame(&Tcp::default());
    let mut file = Ng::new(false);
    file.interface(1, 0, &[(9, vec![9]), (14, vec![1, 0, 0, 0, 0, 0, 0, 0])]);
    file.interface(127, 60, &[(9, vec![0x8a])]);
    file.packet_with(0, 1 << 40, &tcp, &[(1, b"comment".to_vec())]);
    file.packet(1, 5, &tcp);
    file.block(3, &[&[64, 0, 0, 0][..], &tcp].concat());
    file.section(true);
    file.interface(101, 0, &[]);
    file.block(5, &[0; 40]);
    file.packet(0, 1 << 50, &tcp[14..]);
    file.block(4, b"names");
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_octets(octets in proptest::collection::vec(any::<u8>(), 0..600)) {
        drain(&octets)?;
    }

    #[test]
    fn random_octets_after_a_file_header(
        octets in proptest::collection::vec(any::<u8>(), 0..900),
        link in prop::sample::select(vec![0_u32, 1, 9, 12, 51, 101, 108, 113, 228, 276]),
    ) {
        let mut capture = Capture::new(false, false, 65_535, link);
        capture.octets.extend(octets);
        drain(&capture.octets)?;
    }

    #[test]
    fn random_frames(
        frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 0..12),
        link in prop::sample::select(vec![0_u32, 1, 9, 12, 51, 101, 108, 113, 228, 276]),
    ) {
        let mut capture = Capture::new(true, true, 0, link);
        for frame in &frames {
            capture.frame(frame);
        }
        drain(&capture.octets)?;
    }

    #[test]
    fn mutated_captures(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut octets = sample().octets;
        for (at, value) in changes {
            let at = at.index(octets.len());
            octets[at] = value;
        }
        drain(&octets)?;
        octets.truncate(cut.index(octets.len()));
        drain(&octets)?;
    }

    #[test]
    fn removed_and_inserted_octets(
        at in any::<prop::sample::Index>(),
        removed in 0_usize..40,
        inserted in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut octets = sample().octets;
        let at = at.index(octets.len());
        let end = octets.len().min(at + removed);
        octets.splice(at..end, inserted);
        drain(&octets)?;
    }

    #[test]
    fn mutated_pcapng(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
        removed in 0_usize..40,
        inserted in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut octets = sample_ng().octets;
        for (at, value) in changes {
            let at = at.index(octets.len());
            octets[at] = value;
        }
        drain(&octets)?;
        let at = cut.index(octets.len());
        let end = octets.len().min(at + removed);
        drain(&octets[..at])?;
        octets.splice(at..end, inserted);
        drain(&octets)?;
    }

    #[test]
    fn random_blocks(
        blocks in proptest::collection::vec(
            (
                prop::sample::select(vec![1_u32, 2, 3, 4, 5, 6, 10, 0x0a0d_0d0a, 0xbad]),
                proptest::collection::vec(any::<u8>(), 0..120),
            ),
            0..12,
        ),
        big_endian in any::<bool>(),
    ) {
        let mut file = Ng::new(big_endian);
        file.interface(1, 0, &[]);
        for (kind, body) in &blocks {
            file.block(*kind, body);
        }
        drain(&file.octets)?;
    }

    #[test]
    fn random_records_of_old_and_modified_formats(
        octets in proptest::collection::vec(any::<u8>(), 0..900),
        minor in 0_u8..5,
        modified in any::<bool>(),
    ) {
        let mut capture = Capture::plain();
        capture.octets[6] = minor;
        if modified {
            capture.octets[..4].copy_from_slice(&[0x34, 0xcd, 0xb2, 0xa1]);
        }
        capture.octets.extend(octets);
        drain(&capture.octets)?;
    }
}

#[test]
fn every_truncation_of_the_samples() {
    for octets in [sample().octets, sample_ng().octets] {
        for length in 0..octets.len() {
            drain(&octets[..length]).expect("counts that add up");
        }
    }
}

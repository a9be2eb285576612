//! Properties of the output for arbitrary segments: no panic, consistent counters, and independence of the initial
//! sequence numbers.

mod support;

use hindflight_decoder::{SackBlocks, Segment, TcpOptions, flags};
use hindflight_flows::{EventCause, EventKind, FlowRow, Note, Tracker};
use proptest::prelude::*;
use support::{Outcome, blank, track, track_with};

/// Before this time has passed, a record without IPv4 ID and timestamps that equals the one before is a copy that the
/// capture made (`docs/captures.md`): no sender retransmits that soon.
const MAX_COPY_DELAY_NS: i64 = 10_000;

/// A segment of one of a few connections. Most sequence numbers are small and overlap; some are arbitrary.
fn any_segment() -> impl Strategy<Value = Segment> {
    let number =
        prop_oneof![8 => 0..20_000_u32, 1 => any::<u32>(), 1 => 0xFFFF_F000_u32..0xFFFF_FFFF];
    let sack = prop::collection::vec((0..20_000_u32, 0..20_000_u32), 0..=4);
    let timestamps = prop::option::of((0..5000_u32, 0..5000_u32));
    (
        (any_gap(), any::<bool>(), 0..3_u16, 0..512_u16),
        (
            number.clone(),
            number,
            prop_oneof![3 => Just(0_u32), 5 => 1..3000_u32],
            any::<u16>(),
        ),
        (
            sack,
            timestamps,
            prop::option::of(any::<u16>()),
            prop::option::of(0..20_u8),
        ),
    )
        .prop_map(
            |(
                (gap_ns, from_a, port, flag),
                (seq, ack, payload, window),
                (sack, ts, ip_id, wscale),
            )| {
                let mut segment = blank(0, gap_ns, from_a, 5000 + port);
                let mut blocks = SackBlocks::default();
                for (left, right) in sack {
                    blocks.push(left, right);
                }
                // Few segments have SYN or RST, so that connections last.
                segment.flags = if flag & 0x1C0 == 0 {
                    flag & 0x3F
                } else {
                    (flag & 0x39) | flags::ACK
                };
                (
                    segment.seq,
                    segment.ack,
                    segment.payload_bytes,
                    segment.window,
                ) = (seq, ack, payload, window);
                segment.ip_id = ip_id;
                segment.options = TcpOptions {
                    timestamps: ts,
                    sack: blocks,
                    wscale,
                    ..TcpOptions::default()
                };
                segment
            },
        )
}

/// Time to the next segment: mostly within a few RTTs; sometimes the clock jumps, also backwards.
fn any_gap() -> impl Strategy<Value = i64> {
    prop_oneof![
        40 => 0..400_000_000_i64,
        1 => -10_000_000_000..100_000_000_000_000_i64,
        1 => Just(i64::from(u32::MAX) * 500_000_000),
        1 => Just(i64::from(u32::MAX) * -500_000_000),
    ]
}

/// In one of four captures no segment has more than four octets, so that a gap may have as many segments as octets.
fn any_capture() -> impl Strategy<Value = Vec<Segment>> {
    let max_payload_bytes = prop_oneof![3 => Just(3000), 1 => Just(4)];
    (
        prop::collection::vec(any_segment(), 0..250),
        max_payload_bytes,
    )
        .prop_map(|(mut segments, max_payload_bytes)| {
            let mut t_ns = 0;
            for (record, segment) in (1..).zip(&mut segments) {
                segment.payload_bytes = segment.payload_bytes.min(max_payload_bytes);
                // The range of pcap: 32 bits of seconds since 1970.
                t_ns = (t_ns + segment.t_ns).clamp(0, i64::from(u32::MAX) * 1_000_000_000);
                (segment.record, segment.t_ns) = (record, t_ns);
            }
            segments
        })
}

/// A connection with new data, retransmissions, ACKs and SACK blocks. Some segments follow each other so closely that
/// one may be a copy of the other.
fn any_transfer() -> impl Strategy<Value = Vec<Segment>> {
    prop::collection::vec(
        (
            any::<bool>(),
            0..40_u32,
            1..4_u32,
            0..8_u32,
            prop_oneof![4 => 1..90_000_000_i64, 1 => 1..=2 * MAX_COPY_DELAY_NS],
        ),
        1..200,
    )
    .prop_map(|steps| {
        let mut segments = vec![blank(1, 0, true, 5000), blank(2, 50_000_000, false, 5000)];
        (segments[0].flags, segments[0].options.sack_permitted) = (flags::SYN, true);
        (segments[1].flags, segments[1].ack) = (flags::SYN | flags::ACK, 1);
        segments[1].options.sack_permitted = true;
        let (mut t_ns, mut next, mut una) = (50_100_000, 1_u32, 1_u32);
        for (forward, place, count, sack, gap_ns) in steps {
            t_ns += gap_ns;
            let mut segment = blank(segments.len() as u64 + 1, t_ns, forward, 5000);
            segment.flags = flags::ACK;
            if forward {
                let retransmission = place < 10 && next > una;
                segment.seq = if retransmission {
                    una + (place * 100).min(next - una - 1)
                } else {
                    next
                };
                segment.payload_bytes = count * 100;
                segment.ack = 1;
                next = next.max(segment.seq + segment.payload_bytes);
            } else {
                una += (place * 50).min(next - una);
                (segment.seq, segment.ack) = (1, una);
                let left = una + 100 * count;
                let right = (left + sack * 100).min(next);
                if sack > 0 && left < right {
                    segment.options.sack.push(left, right);
                }
            }
            segments.push(segment);
        }
        segments
    })
}

/// Checks the row of a flow against notes and events.
fn assert_consistent(flow: &FlowRow, outcome: &Outcome, segments: &[Segment]) {
    for (index, row) in flow.directions.iter().enumerate() {
        let of = |note: &Note| note.flow_id == flow.flow_id && note.direction as usize == index;
        let sent = || {
            outcome
                .notes
                .iter()
                .zip(segments)
                .filter(|(note, _)| of(note))
        };
        let count = |wanted: &dyn Fn(&Note, &Segment) -> bool| {
            sent()
                .filter(|(note, segment)| wanted(note, segment))
                .count() as u64
        };
        // A record of more than the MSS counts as several segments.
        let pieces = |wanted: &dyn Fn(&Note, &Segment) -> bool| -> u64 {
            sent()
                .filter(|(note, segment)| wanted(note, segment))
                .map(|(note, _)| u64::from(note.segments_n))
                .sum()
        };
        assert_eq!(row.segments, pieces(&|_, _| true));
        assert_eq!(row.dup_acks, count(&|note, _| note.dup_ack));
        assert_eq!(
            row.sack_segments,
            count(&|note, segment| !note.sack.as_slice().is_empty()
                && !note.copy
                && segment.flags & flags::RST == 0)
        );
        assert!(row.dsack_segments <= row.sack_segments);
        let data = |note: &Note, segment: &Segment| segment.payload_bytes > 0 && !note.copy;
        assert_eq!(row.data_segments, pieces(&data));
        let repeats =
            |note: &Note, segment: &Segment| note.retransmission && segment.payload_bytes > 0;
        // Of a record that repeats some of its octets, only these count.
        let repeated = count(&repeats)..=pieces(&repeats);
        assert!(repeated.contains(&row.retransmitted_segments));
        assert!(row.out_of_order_segments + row.retransmitted_segments <= row.data_segments);
        let payload: u64 = sent()
            .filter(|pair| data(pair.0, pair.1))
            .map(|pair| u64::from(pair.1.payload_bytes))
            .sum();
        assert_eq!(row.payload_bytes, payload);
        assert!(
            row.unique_bytes + row.retransmitted_bytes >= row.payload_bytes
                && row.unique_bytes <= row.payload_bytes
        );
        let events = |kind: EventKind| {
            let of = |event: &&hindflight_flows::Event| {
                event.flow_id == flow.flow_id && event.direction as usize == index
            };
            outcome
                .events
                .iter()
                .filter(of)
                .filter(move |event| event.kind == kind)
        };
        let retransmissions = count(&|note, _| note.retransmission);
        assert_eq!(
            events(EventKind::Retransmission).count() as u64,
            retransmissions
        );
        assert_eq!(events(EventKind::Rto).count() as u64, row.rtos);
        assert_eq!(events(EventKind::Recovery).count() as u64, row.recoveries);
        assert!(events(EventKind::Loss).all(|event| event.cause == EventCause::Unknown));
        assert_eq!(row.rtt_samples > 0, row.rtt_mean_ns.is_some());
    }
}

/// Checks which segments of a transfer are retransmissions: all that repeat octets, except copies.
fn assert_retransmissions(notes: &[Note], segments: &[Segment]) {
    let mut snd_nxt = 1;
    let mut last: Option<&Segment> = None;
    let sent = |pair: &(&Note, &Segment)| pair.1.src_port == 5000 && pair.1.payload_bytes > 0;
    for (note, segment) in notes.iter().zip(segments).filter(sent) {
        let copy = last.is_some_and(|last| {
            (last.seq, last.payload_bytes) == (segment.seq, segment.payload_bytes)
                && segment.t_ns - last.t_ns < MAX_COPY_DELAY_NS
        });
        let retransmission = segment.seq < snd_nxt && !copy;
        let record = segment.record;
        assert_eq!(
            (note.copy, note.retransmission),
            (copy, retransmission),
            "record {record}"
        );
        snd_nxt = snd_nxt.max(segment.seq + segment.payload_bytes);
        last = Some(segment);
    }
}

/// Output of the tracker that must not depend on the initial sequence numbers.
fn relative_output(outcome: &Outcome) -> (Vec<Note>, String, Vec<(u64, u64, u64)>) {
    let counts = outcome.flows.iter().flat_map(|flow| flow.directions);
    let counts = counts
        .map(|row| (row.unique_bytes, row.retransmitted_bytes, row.acked_bytes))
        .collect();
    (outcome.notes.clone(), outcome.event_log(), counts)
}

/// The same segment twice: from [`MAX_COPY_DELAY_NS`] on, the second is a retransmission. Before, it is a copy, which
/// adds to no counter of data.
#[test]
fn equal_segments_are_copies_or_retransmissions() {
    for (delay_ns, retransmitted) in [
        (1, 0),
        (MAX_COPY_DELAY_NS - 1, 0),
        (MAX_COPY_DELAY_NS, 1),
        (90_000_000, 1),
    ] {
        let mut segments = support::segments(support::HANDSHAKE_WITHOUT_SACK, [0, 0]);
        for (record, t_ns) in [(4, 100_100_000), (5, 100_100_000 + delay_ns)] {
            let mut segment = blank(record, t_ns, true, 5000);
            (segment.flags, segment.seq, segment.ack) = (flags::ACK, 1, 1);
            segment.payload_bytes = 100;
            segments.push(segment);
        }
        let outcome = track(&segments);
        let flow = &outcome.flows[0];
        assert_consistent(flow, &outcome, &segments);
        assert_retransmissions(&outcome.notes, &segments);
        let row = &flow.directions[0];
        assert_eq!(
            (row.data_segments, row.retransmitted_segments),
            (1 + retransmitted, retransmitted),
            "{delay_ns} ns"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_captures_have_consistent_counters(segments in any_capture()) {
        let outcome = track(&segments);
        prop_assert_eq!(outcome.notes.len(), segments.len());
        for flow in &outcome.flows {
            prop_assert!(flow.start_ns <= flow.end_ns);
            assert_consistent(flow, &outcome, &segments);
        }
        prop_assert!(outcome.notes.iter().all(|note| note.flight_bytes.is_none_or(|octets| octets >= 0)));
    }

    #[test]
    fn packing_silent_connections_changes_nothing(segments in any_capture()) {
        let (whole, packed) = (track(&segments), track_with(Tracker::new(1).with_whole(1), &segments));
        prop_assert_eq!(whole.notes, packed.notes);
        prop_assert_eq!(whole.events, packed.events);
        prop_assert_eq!(whole.samples, packed.samples);
        prop_assert_eq!(whole.flows, packed.flows);
    }

    #[test]
    fn flows_do_not_depend_on_the_congestion_window(segments in any_capture()) {
        let outcome = track_with(Tracker::new(1).without_instruments(), &segments);
        prop_assert!(outcome.samples.is_empty());
        prop_assert_eq!(outcome.flows, track(&segments).flows);
    }

    #[test]
    fn transfers_have_consistent_counters(segments in any_transfer()) {
        let outcome = track(&segments);
        prop_assert_eq!(outcome.flows.len(), 1);
        let flow = &outcome.flows[0];
        assert_consistent(flow, &outcome, &segments);
        let row = &flow.directions[0];
        let highest = segments.iter().filter(|s| s.src_port == 5000).map(|s| s.seq + s.payload_bytes).max().unwrap_or(1);
        prop_assert_eq!(row.unique_bytes, u64::from(highest.max(1) - 1), "the transfer has no gaps");
        prop_assert_eq!(row.retransmitted_bytes, row.payload_bytes - row.unique_bytes);
        prop_assert!(row.acked_bytes <= row.unique_bytes);
        prop_assert_eq!(row.out_of_order_segments, 0);
        assert_retransmissions(&outcome.notes, &segments);
    }

    #[test]
    fn the_output_does_not_depend_on_the_initial_sequence_numbers(segments in any_transfer(), isn in any::<u32>(), peer_isn in any::<u32>()) {
        let mut moved = segments.clone();
        for segment in &mut moved {
            let (isn, peer_isn) = if segment.src_port == 5000 { (isn, peer_isn) } else { (peer_isn, isn) };
            segment.seq = segment.seq.wrapping_add(isn);
            if segment.flags & flags::ACK != 0 {
                segment.ack = segment.ack.wrapping_add(peer_isn);
            }
            let mut blocks = SackBlocks::default();
            for &(left, right) in segment.options.sack.as_slice() {
                blocks.push(left.wrapping_add(peer_isn), right.wrapping_add(peer_isn));
            }
            segment.options.sack = blocks;
        }
        prop_assert_eq!(relative_output(&track(&segments)), relative_output(&track(&moved)));
    }

    #[test]
    fn a_truncated_capture_has_the_same_notes(segments in any_transfer(), part in 0.0..1.0_f64) {
        let cut = (segments.len() as f64 * part) as usize;
        let whole = track(&segments);
        prop_assert_eq!(&track(&segments[..cut]).notes[..], &whole.notes[..cut]);
    }
}

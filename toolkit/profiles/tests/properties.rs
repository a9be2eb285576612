//! Any packets: no panic, every packet counted once, and the same rows whether state was packed or not.

use std::net::{IpAddr, Ipv4Addr};

use hindflight_decoder::{Checksum, Segment, TcpOptions, flags};
use hindflight_profiles::{Format, Packet, Tcptrace, Wireshark, WiresharkRows};
use proptest::prelude::*;

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
}

fn blank() -> Segment {
    Segment {
        record: 1,
        t_ns: 0,
        frame_bytes: 54,
        captured_bytes: 54,
        src: address(1),
        dst: address(2),
        src_port: 1000,
        dst_port: 80,
        ip_id: Some(7),
        ttl: 64,
        dscp_ecn: 0,
        ip_bytes: 40,
        seq: 0,
        ack: 0,
        flags: 0,
        window: 1000,
        urgent: 0,
        payload_bytes: 0,
        missing_bytes: 0,
        ip_checksum: Checksum::NotChecked,
        tcp_checksum: Checksum::NotChecked,
        options: TcpOptions::default(),
    }
}

/// Few ends, numbers near the quarters of the sequence space, any control bits, time that may run backwards.
fn segments() -> impl Strategy<Value = Vec<Segment>> {
    let numbers =
        || (0_u32..4, -3000_i32..3000).prop_map(|(q, at)| (q << 30).wrapping_add_signed(at));
    let one = (
        (any::<bool>(), 0_u16..3, -2_000_000_000_i64..400_000_000_000),
        (numbers(), numbers(), 0_u32..1500),
        (
            any::<u8>(),
            prop_oneof![Just(0_u16), Just(1000)],
            proptest::option::of(0_u8..40),
        ),
        proptest::option::of((numbers(), numbers())),
    );
    proptest::collection::vec(one, 0..120).prop_map(|rows| {
        let mut t_ns = 1_000_000_000_000;
        rows.into_iter()
            .enumerate()
            .map(
                |(
                    at,
                    (
                        (forward, port, step_ns),
                        (seq, ack, payload_bytes),
                        (bits, window, wscale),
                        sack,
                    ),
                )| {
                    t_ns += step_ns / 50;
                    let mut segment = Segment {
                        record: at as u64 + 1,
                        t_ns,
                        frame_bytes: 54 + payload_bytes,
                        missing_bytes: payload_bytes,
                        ip_bytes: 40 + payload_bytes,
                        src_port: 1000 + port,
                        ack: if u16::from(bits) & flags::ACK == 0 {
                            0
                        } else {
                            ack
                        },
                        flags: u16::from(bits),
                        seq,
                        window,
                        payload_bytes,
                        ..blank()
                    };
                    segment.options.wscale = wscale;
                    if let Some((left, right)) = sack {
                        segment.options.sack.push(left, right);
                    }
                    if !forward {
                        std::mem::swap(&mut segment.src, &mut segment.dst);
                        std::mem::swap(&mut segment.src_port, &mut segment.dst_port);
                    }
                    segment
                },
            )
            .collect()
    })
}

fn rows(segments: &[Segment], format: Format) -> String {
    let mut profile = Tcptrace::new(format);
    let packets: Vec<Packet> = segments.iter().map(Packet::of).collect();
    profile.push(&packets);
    profile.finish(packets.last().map_or(0, |packet| packet.t_us));
    let mut text = Vec::new();
    loop {
        let part = profile.take_text();
        if part.is_empty() {
            return String::from_utf8(text).expect("ASCII");
        }
        text.extend(part);
    }
}

proptest! {
    #[test]
    fn every_packet_is_counted_once(segments in segments()) {
        let text = rows(&segments, Format::Csv);
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().expect("names").split(',').collect();
        let column = |name: &str| names.iter().position(|&other| other == name).expect("a column");
        let (a, b, number) = (column("total_packets_a2b"), column("total_packets_b2a"), column("conn_#"));
        let mut packets = 0;
        for (at, line) in lines.enumerate() {
            let cells: Vec<&str> = line.split(',').collect();
            prop_assert_eq!(cells.len(), names.len());
            prop_assert_eq!(cells[number], (at + 1).to_string());
            packets += cells[a].parse::<usize>().expect("a count") + cells[b].parse::<usize>().expect("a count");
        }
        prop_assert_eq!(packets, segments.len());
    }

    #[test]
    fn both_formats_have_the_same_values(segments in segments()) {
        let csv = rows(&segments, Format::Csv);
        let json = rows(&segments, Format::Json);
        let values = |line: &str| {
            let cells = line.trim_matches(['{', '}', ',']).split(",\"");
            let values = cells.map(|cell| cell.rsplit_once("\":").map_or("", |(_, value)| value).trim_matches('"'));
            values.map(|value| if value == "null" { "NA" } else { value }).collect::<Vec<_>>().join(",")
        };
        let lines: Vec<String> = json.lines().filter(|line| !line.is_empty()).map(values).collect();
        prop_assert_eq!(lines, csv.lines().skip(1).map(str::to_owned).collect::<Vec<_>>());
    }

    #[test]
    fn wireshark_says_something_of_every_segment(segments in segments()) {
        let mut wireshark = Wireshark::default();
        let mut text = WiresharkRows::new(Format::Csv);
        let mut streams = 0;
        for segment in &segments {
            let verdict = wireshark.push(segment);
            prop_assert!(verdict.stream <= streams);
            streams = streams.max(verdict.stream + 1);
            text.push(segment);
        }
        let text = String::from_utf8(text.take_text()).expect("ASCII");
        prop_assert_eq!(text.lines().count(), segments.len() + 1);
    }
}

fn exchange() -> Vec<Segment> {
    let data = |seq: u32, t_ms: i64, payload_bytes| Segment {
        t_ns: t_ms * 1_000_000,
        flags: flags::ACK | flags::PSH,
        seq,
        ack: 501,
        payload_bytes,
        ip_bytes: 40 + payload_bytes,
        frame_bytes: 54 + payload_bytes,
        missing_bytes: payload_bytes,
        ..blank()
    };
    let ack = |ack: u32, t_ms: i64| Segment {
        t_ns: t_ms * 1_000_000,
        src: address(2),
        dst: address(1),
        src_port: 80,
        dst_port: 1000,
        flags: flags::ACK,
        seq: 501,
        ack,
        ..blank()
    };
    let mut all = vec![
        data(101, 0, 100),
        data(201, 1, 100),
        data(301, 2, 100),
        ack(201, 50),
        ack(201, 51),
        ack(201, 52),
        ack(201, 53),
        data(201, 54, 100),
        ack(401, 100),
    ];
    for (at, segment) in all.iter_mut().enumerate() {
        segment.record = at as u64 + 1;
    }
    all
}

#[test]
fn a_lost_segment_as_tcptrace_counts_it() {
    let text = rows(&exchange(), Format::Csv);
    let (names, row) = text.split_once('\n').expect("two lines");
    let cells: Vec<&str> = row.trim_end().split(',').collect();
    let cell = |name: &str| {
        cells[names
            .split(',')
            .position(|other| other == name)
            .expect(name)]
    };
    assert_eq!(cell("actual_data_pkts_a2b"), "4");
    assert_eq!(cell("unique_bytes_sent_a2b"), "300");
    assert_eq!(cell("rexmt_data_bytes_a2b"), "100");
    assert_eq!(cell("duplicate_acks_a2b"), "3");
    assert_eq!(cell("triple_dupacks_a2b"), "1");
    assert_eq!(cell("RTT_samples_a2b"), "1");
    assert_eq!(cell("RTT_max_a2b"), "50.0");
    assert_eq!(cell("post-loss_acks_a2b"), "1");
    assert_eq!(cell("max_retr_time_a2b"), "53.0");
    assert_eq!(cell("complete_conn"), "no");
}

#[test]
fn a_lost_segment_as_wireshark_flags_it() {
    use hindflight_profiles::flag;
    let mut wireshark = Wireshark::default();
    let verdicts: Vec<_> = exchange()
        .iter()
        .map(|segment| wireshark.push(segment))
        .collect();
    let flags: Vec<u32> = verdicts.iter().map(|verdict| verdict.flags).collect();
    let dup = flag::DUPLICATE_ACK;
    let fast = flag::FAST_RETRANSMISSION | flag::RETRANSMISSION;
    assert_eq!(flags, [0, 0, 0, 0, dup, dup, dup, fast, 0]);
    assert_eq!(verdicts[6].dupack, Some((3, 4)));
    assert_eq!(verdicts[3].acks, Some((1, 50_000_000)));
    assert_eq!(verdicts[2].bytes_in_flight, 300);
}

#[test]
fn closed_connections_are_packed_and_still_count_what_comes_late() {
    let mut all = Vec::new();
    for port in 0..6000_u16 {
        for (flag, forward) in [(flags::SYN, true), (flags::RST | flags::ACK, false)] {
            let mut segment = Segment {
                t_ns: i64::from(port) * 1000,
                src_port: 1000 + port,
                flags: flag,
                ..blank()
            };
            if !forward {
                std::mem::swap(&mut segment.src, &mut segment.dst);
                std::mem::swap(&mut segment.src_port, &mut segment.dst_port);
            }
            all.push(segment);
        }
    }
    let late = Segment {
        t_ns: 7_000_000,
        flags: flags::ACK,
        ..blank()
    };
    all.push(late);
    let text = rows(&all, Format::Csv);
    let first: Vec<&str> = text.lines().nth(1).expect("a row").split(',').collect();
    assert_eq!(text.lines().count(), 6001);
    assert_eq!(first[7..9], ["2", "1"]);
}

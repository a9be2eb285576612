//! Applications in runs: which segments leave, and when.

use std::sync::atomic::AtomicBool;

use crate::config::Config;
use crate::sim::summary::RunSummary;
use crate::sim::time::Nanos;
use crate::sim::trace::{Event, Tap};
use crate::sim::world::World;
use crate::tcp::segment::{Direction, Purpose};

/// New data segments: time, first octet, octets.
#[derive(Default)]
struct Departures(Vec<(Nanos, u64, u16)>);

impl Tap for Departures {
    fn event(&mut self, now: Nanos, event: Event<'_>) {
        if let Event::Sent(segment) = event
            && segment.direction == Direction::Forward
            && segment.purpose == Purpose::Data
        {
            self.0.push((now, segment.seq, segment.payload_bytes));
        }
    }
}

/// Runs one flow over one clean link of 5 Mbit/s and 40 ms each way.
fn run(flow: &str, stack: &str) -> (Vec<(Nanos, u64, u16)>, RunSummary) {
    let config = format!(
        r#"{{"duration_ns": 10000000000, "path": {{"nodes": ["a", "b"], "links": [{{"name": "ab",
            "forward": {{"rate_bps": 5e6, "delay_ns": 40000000, "queue": {{"kind": "drop_tail", "limit_pkts": 400}}}},
            "reverse": {{"rate_bps": 5e6, "delay_ns": 40000000}}}}]}},
            "flows": [{{"name": "f", "variant": "linux-reno", "profile": "linux", {flow}
            "stack": {{{stack}}}}}]}}"#
    );
    let config: Config = serde_json::from_str(&config).expect("well-formed");
    let mut departures = Departures::default();
    let summary = World::new(&config, 1, &mut departures)
        .expect("valid")
        .run(&AtomicBool::new(false))
        .expect("nobody interrupts");
    (departures.0, summary)
}

fn small(departures: &[(Nanos, u64, u16)]) -> Vec<(u64, u16)> {
    departures
        .iter()
        .filter(|(_, _, octets)| *octets < 1448)
        .map(|&(_, seq, octets)| (seq, octets))
        .collect()
}

/// A real Linux sender with these values sent 56 octets before octet 262,144 in recorded runs: the buffer takes four
/// writes, slow start empties it, and only then does it grow, until slow start empties it again.
#[test]
fn a_buffer_that_slow_start_empties_ends_in_a_small_segment_each_time() {
    let greedy = r#""application": {"kind": "greedy", "write_bytes": 65536},"#;
    let grows = r#""send_buffer_bytes": 262144, "send_buffer_max_bytes": 33554432, "receive_buffer_bytes": 16777216"#;
    let (departures, _) = run(greedy, grows);
    assert_eq!(small(&departures)[0], (1 + 262_144 - 56, 56));
    let ends_a_write = |&(seq, octets): &(u64, u16)| (seq - 1 + u64::from(octets)) % 65_536 == 0;
    assert!(small(&departures).iter().all(ends_a_write));
    assert!(small(&departures).len() <= 3, "{:?}", small(&departures));
    let (departures, _) = run("", "");
    assert_eq!(small(&departures), []);
}

/// A real Linux sender with this buffer wrote 46,336 octets in recorded runs, which filled it, and 65,536 at a time from there
/// on: what is left of the first write is not written.
#[test]
fn a_full_buffer_ends_a_write_and_the_next_one_is_whole() {
    let greedy = r#""application": {"kind": "greedy", "write_bytes": 65536},"#;
    let grows =
        r#""send_buffer_bytes": 46080, "send_buffer_max_bytes": 4194304, "smss_bytes": 1448"#;
    let (departures, _) = run(greedy, grows);
    let (seq, octets) = small(&departures)[0];
    assert_eq!((seq - 1 + u64::from(octets) - 46_336) % 65_536, 0);
}

/// Real Linux senders with this buffer and this first window wrote 46,336 octets in some recorded runs and all 65,536
/// in others: when ten segments of the first write had left and when six had, so that a piece of 22 left memory for
/// another one.
#[test]
fn a_first_write_that_goes_on_before_it_has_left_is_written_whole() {
    let first_small = |left: &str| {
        let greedy = r#""application": {"kind": "greedy", "write_bytes": 65536"#;
        let stack =
            r#""send_buffer_bytes": 46080, "smss_bytes": 1448, "receive_buffer_bytes": 1048576"#;
        small(&run(&format!("{greedy}{left}}},"), stack).0)[0]
    };
    let end_after = |octets: u64| (1 + octets - 376, 376);
    assert_eq!(first_small(r#", "first_left_pkts": 6"#), end_after(65_536));
    // What the socket took of the first write, and all of the second one.
    let later = end_after(46_336 + 65_536);
    assert_eq!(first_small(r#", "first_left_pkts": 10"#), later);
    assert_eq!(first_small(""), later);
}

/// The buffer refuses the rest of the first write after 32 segments: a piece of 22 beyond the ten that have left.
#[test]
fn what_leaves_of_a_first_write_decides_nothing_once_that_write_has_ended() {
    let departures = |left: &str| {
        let greedy = r#""application": {"kind": "greedy", "write_bytes": 131072"#;
        let stack =
            r#""send_buffer_bytes": 20000, "smss_bytes": 1448, "receive_buffer_bytes": 1048576"#;
        run(&format!("{greedy}{left}}},"), stack).0
    };
    let unset = departures("");
    for pkts in [38, 44, 50] {
        let got = departures(&format!(r#", "first_left_pkts": {pkts}"#));
        assert!(got == unset, "{pkts}");
    }
    let in_time = departures(r#", "first_left_pkts": 2"#);
    assert!(in_time != unset, "the first write was under way");
}

#[test]
fn nagle_delays_the_rest_of_a_write_and_without_it_writes_end_in_small_segments() {
    let flow = r#""size_bytes": 40000, "application": {"kind": "greedy", "write_bytes": 4000},"#;
    let count = |nagle: &str| {
        let stack = format!(r#""send_buffer_bytes": 100000, "nagle": "{nagle}""#);
        small(&run(flow, &stack).0)
    };
    // 4000 = 2 x 1448 + 1104: each write ends so while cwnd allows it, which is not for long.
    let off = count("off");
    assert_eq!(off[..2], [(1 + 2896, 1104), (1 + 6896, 1104)]);
    // Minshall's rule allows one small segment in flight; the next ones are filled by the next write.
    let minshall = count("minshall");
    assert_eq!(minshall[0], (1 + 2896, 1104));
    assert!(minshall.len() < off.len(), "{minshall:?} {off:?}");
    // Nagle's rule allows none before the end of the stream.
    assert_eq!(count("rfc"), [(1 + 27 * 1448, 40_000 - 27 * 1448)]);
}

#[test]
fn a_small_send_buffer_limits_the_flight() {
    let flow = r#""application": {"kind": "greedy", "write_bytes": 1448},"#;
    let (_, summary) = run(flow, r#""send_buffer_bytes": 20000"#);
    // A packet takes 1448 octets and 832 for its structures. The application writes while a third of 20,000 is free:
    // the sixth packet is the last one, and the round-trip time is 84 ms.
    let per_round_trip = summary.flows[0].goodput_bps * 0.084 / 8.0 / 1448.0;
    assert!((5.5..6.5).contains(&per_round_trip), "{per_round_trip}");
}

const MS: Nanos = 1_000_000;

fn off(application: &str) -> (Vec<(Nanos, u64, u16)>, RunSummary) {
    run(
        &format!(r#""application": {application},"#),
        r#""nagle": "off""#,
    )
}

#[test]
fn recorded_writes_leave_at_their_times() {
    let list =
        r#"{"kind": "writes", "at_ns": [0, 1000000000, 1500000000], "bytes": [100, 1448, 2000]}"#;
    let (departures, summary) = off(list);
    // SYN and SYN-ACK take 80 ms and the transmission of 52 octets each at 5 Mbit/s.
    let (first, rest) = (departures[0], &departures[1..]);
    assert!(
        (80..81).contains(&(first.0 / MS)) && first.2 == 100,
        "{first:?}"
    );
    let expected = [
        (1000 * MS, 101, 1448),
        (1500 * MS, 1549, 1448),
        (1500 * MS, 2997, 552),
    ];
    assert_eq!(rest, expected);
    assert!(summary.flows[0].completed);
    assert_eq!(summary.flows[0].delivered_bytes, 3548);
}

#[test]
fn bursts_fill_the_link_and_nothing_leaves_between_them() {
    let (departures, summary) = off(
        r#"{"kind": "bursts", "from_ns": [0, 3000000000], "until_ns": [1000000000, 4000000000]}"#,
    );
    let ms: Vec<_> = departures.iter().map(|d| d.0 / MS).collect();
    // One write may be under way at the end of a burst; what it wrote takes 0.11 s at 5 Mbit/s.
    assert!(ms.iter().all(|at| *at < 1200 || (3000..4200).contains(at)));
    assert!(ms.contains(&3000) && ms.iter().any(|at| (980..1200).contains(at)));
    let delivered = summary.flows[0].delivered_bytes;
    // Each burst fills 1 s of the link, less slow start; 1.2 s of it, its queue of 400 packets and 80 ms of path at most.
    assert!((1_100_000..2_706_000).contains(&delivered), "{delivered}");
    assert!(!summary.flows[0].completed);
}

#[test]
fn an_on_off_source_keeps_its_rate_and_its_pauses() {
    let (departures, summary) = off(
        r#"{"kind": "on_off", "rate_bps": 800000, "on_ns": 1000000000, "off_ns": 500000000, "write_bytes": 1000}"#,
    );
    // 100 writes at intervals of 10 ms, from 0, 1.5, 3 … s; seven periods on by 10 s.
    let delivered = summary.flows[0].delivered_bytes;
    assert!((695_000..=700_000).contains(&delivered), "{delivered}");
    let late: Vec<_> = departures
        .iter()
        .map(|d| d.0)
        .filter(|at| (1500..1530).contains(&(at / MS)))
        .collect();
    assert_eq!(late, [1500 * MS, 1510 * MS, 1520 * MS]);
    assert!(
        !departures
            .iter()
            .any(|d| (1000..1500).contains(&(d.0 / MS))),
        "it pauses"
    );
    assert!(!summary.flows[0].completed);
}

#[test]
fn the_delay_of_a_write_is_the_delay_of_the_path() {
    let (_, summary) =
        off(r#"{"kind": "writes", "at_ns": [1000000000, 2000000000], "bytes": [1448, 1448]}"#);
    let flow = &summary.flows[0];
    // 40 ms and 1500 octets at 5 Mbit/s.
    assert_eq!(flow.app_delay_max_ns, Some(42_400_000));
    let p50 = flow.app_delay_p50_ns.unwrap_or(0);
    assert!(p50.abs_diff(42_400_000) < 42_400_000 / 64, "{p50}");
}

#[test]
fn a_page_takes_a_round_trip_and_its_transmission_time() {
    let (departures, summary) = off(
        r#"{"kind": "pages", "page_bytes": 14480, "think_ns": 1000000000, "request_bytes": 448, "pages": 3}"#,
    );
    let flow = &summary.flows[0];
    assert_eq!(
        (flow.pages, flow.delivered_bytes, flow.completed),
        (Some(3), 3 * 14_480, true)
    );
    // The request: 500 octets and 40 ms; the page: ten packets of 2.4 ms and 40 ms.
    let exact = 800_000 + 80 * MS + 10 * 2_400_000;
    for load in [flow.page_load_p50_ns, flow.page_load_p95_ns] {
        let load = load.unwrap_or(0);
        assert!(load.abs_diff(exact) <= exact / 64, "{load} {exact}");
    }
    // One second of think time after the last octet of the first page.
    let second = departures[10].0 - departures[9].0;
    assert!(
        second.abs_diff(1000 * MS + exact) < 5 * MS,
        "{second} {exact}"
    );
}

#[test]
fn a_stream_above_the_rate_of_the_path_stalls_and_one_below_does_not() {
    let stalls = |rate_bps: u64| {
        let (_, summary) = off(&format!(r#"{{"kind": "stream", "rate_bps": {rate_bps}}}"#));
        (summary.flows[0].stalls, summary.flows[0].stalled_ns)
    };
    assert_eq!(stalls(4_000_000), (Some(0), Some(0)));
    // The payload rate is 4.83 Mbit/s: six of ten seconds of media at 8 Mbit/s arrive in time.
    let (count, time) = stalls(8_000_000);
    assert!(count > Some(1), "{count:?}");
    let time = time.unwrap_or(0);
    assert!((2_000 * MS..4_500 * MS).contains(&time), "{time}");
    let (_, plain) = run("", "");
    assert_eq!((plain.flows[0].stalls, plain.flows[0].pages), (None, None));
}

#[test]
fn the_application_delay_of_a_greedy_flow_is_that_of_its_segments() {
    let (_, summary) = run("", "");
    let flow = &summary.flows[0];
    // The queue of 400 packets fills: from the delay of the empty path to 400 x 2.4 ms more.
    assert!(flow.app_delay_p50_ns > Some(42 * MS) && flow.app_delay_p95_ns > flow.app_delay_p50_ns);
    assert!(flow.app_delay_max_ns >= Some(900 * MS), "{flow:?}");
}

/// Flows and streams of datagrams over two links of 1 Mbit/s and 20 ms.
fn run_shared(datagrams: &str, flows: &str) -> RunSummary {
    run_shared_in(
        r#"{"kind": "drop_tail", "limit_pkts": 20}"#,
        datagrams,
        flows,
    )
}

fn run_shared_in(queue: &str, datagrams: &str, flows: &str) -> RunSummary {
    let config = format!(
        r#"{{"duration_ns": 20000000000, "path": {{"nodes": ["a", "b", "c"], "links": [
            {{"name": "ab", "forward": {{"rate_bps": 1e6, "delay_ns": 20000000, "queue": {queue}}},
              "reverse": {{"rate_bps": 1e6, "delay_ns": 20000000}}}},
            {{"name": "bc", "forward": {{"rate_bps": 1e6, "delay_ns": 20000000, "queue": {queue}}},
              "reverse": {{"rate_bps": 1e6, "delay_ns": 20000000}}}}]}},
            "flows": [{flows}], "datagrams": [{datagrams}]}}"#
    );
    let config: Config = serde_json::from_str(&config).expect("well-formed");
    crate::sim::world::run(&config, 1).expect("valid")
}

const IDLE: &str = r#"{"name": "f", "variant": "reno", "start_ns": 19000000000, "size_bytes": 1}"#;

#[test]
fn datagrams_of_constant_rate_cross_an_empty_path_without_jitter() {
    for (ends, delay) in [("", 41_600_000), (r#""from": "c", "to": "b","#, 20_800_000)] {
        let datagrams = format!(
            r#"{{"name": "voice", {ends} "packet_bytes": 100, "rate_bps": 40000, "stop_ns": 10000000000}}"#
        );
        let summary = run_shared(&datagrams, IDLE);
        let voice = &summary.datagrams[0];
        // One every 20 ms for ten seconds; 0.8 ms and 20 ms per link.
        assert_eq!(
            (voice.sent, voice.received, voice.jitter_ns),
            (500, 500, Some(0))
        );
        assert_eq!(
            (voice.delay_max_ns, voice.delivered_bytes),
            (Some(delay), 500 * 72)
        );
    }
}

#[test]
fn a_greedy_flow_delays_and_drops_the_datagrams_of_its_path() {
    let datagrams = r#"{"name": "voice", "packet_bytes": 100, "rate_bps": 40000}"#;
    let summary = run_shared(datagrams, r#"{"name": "f", "variant": "reno"}"#);
    let voice = &summary.datagrams[0];
    assert!(
        voice.links.queue_losses > 0 && voice.jitter_ns > Some(0),
        "{voice:?}"
    );
    // A full queue holds 20 packets of 12 ms.
    assert!(
        (200 * MS..300 * MS).contains(&voice.delay_max_ns.unwrap_or(0)),
        "{voice:?}"
    );
    assert!(voice.received + voice.links.queue_losses <= voice.sent);
    assert!(
        voice.sent - voice.received - voice.links.queue_losses < 20,
        "all but those on their way"
    );
}

#[test]
fn recorded_datagrams_that_come_after_the_stop_are_not_sent() {
    let stops = |stop_ns: u64| {
        let datagrams = format!(
            r#"{{"name": "other", "packet_bytes": 1500, "rate_bps": 1e6, "stop_ns": {stop_ns},
            "recorded": {{"at_ns": [20, 1000], "bytes": [100, 100]}}}}"#
        );
        run_shared(&datagrams, IDLE).datagrams[0].sent
    };
    assert_eq!([20, 21, 1000, 1001].map(stops), [0, 1, 1, 2]);
}

#[test]
fn recorded_datagrams_leave_at_their_times_with_their_sizes() {
    let datagrams = r#"{"name": "other", "packet_bytes": 1500, "rate_bps": 1e6, "stop_ns": 1000000001,
        "recorded": {"at_ns": [0, 0, 1000000000], "bytes": [100, 1500, 100]}}"#;
    let summary = run_shared(datagrams, IDLE);
    let other = &summary.datagrams[0];
    assert_eq!((other.sent, other.received), (3, 3));
    assert_eq!(other.delivered_bytes, 2 * 72 + 1472);
    // The large one waits for the small one, and takes 12 ms on each link.
    assert_eq!(other.delay_max_ns, Some(64_800_000));
    assert_eq!(other.duration_ns, 1_041_600_000);
}

#[test]
fn datagrams_take_their_rate_from_a_flow() {
    let alone = run_shared("", r#"{"name": "f", "variant": "reno"}"#);
    let datagrams = r#"{"name": "video", "packet_bytes": 1000, "rate_bps": 500000}"#;
    let summary = run_shared(datagrams, r#"{"name": "f", "variant": "reno"}"#);
    let share = summary.flows[0].goodput_bps / alone.flows[0].goodput_bps;
    assert!((0.35..0.55).contains(&share), "{share}");
}

#[test]
fn a_flow_between_inner_nodes_uses_only_the_links_between_them() {
    let flow = r#"{"name": "f", "variant": "reno", "from": "b", "size_bytes": 1448, "stack": {"handshake": false}}"#;
    let summary = run_shared("", flow);
    assert_eq!(
        summary.flows[0].app_delay_max_ns,
        Some(32_000_000),
        "12 ms and one link"
    );
}

#[test]
fn a_lost_syn_ack_is_retransmitted() {
    let flow = |lost: &str| {
        let config = format!(
            r#"{{"duration_ns": 20000000000, "path": {{"nodes": ["a", "b"], "links": [{{"name": "ab",
                "forward": {{"delay_ns": 50000000, "loss_applies_to": "all", "loss": {{"kind": "trace",
                  "positions": [{lost}], "known_pkts": 1000, "mode": "replayed"}}}},
                "reverse": {{"delay_ns": 50000000}}}}]}},
                "flows": [{{"name": "f", "variant": "reno",
                "application": {{"kind": "pages", "page_bytes": 1000, "think_ns": 0, "pages": 1}}}}]}}"#
        );
        let config: Config = serde_json::from_str(&config).expect("well-formed");
        crate::sim::world::run(&config, 1).expect("valid").flows[0].duration_ns / MS
    };
    // SYN, SYN-ACK, ACK, request, page: 250 ms. The SYN-ACK is retransmitted after a second.
    assert_eq!(flow(""), 250);
    assert_eq!(flow("1"), 50 + 1000 + 200);
}

#[test]
fn a_priority_queue_serves_datagrams_by_their_dscp() {
    let delay = |dscp: u8| {
        let datagrams = format!(
            r#"{{"name": "voice", "dscp": {dscp}, "packet_bytes": 100, "rate_bps": 40000}}"#
        );
        let queue = r#"{"kind": "priority", "classes": [[46]], "limit_pkts": 20}"#;
        let summary = run_shared_in(queue, &datagrams, r#"{"name": "f", "variant": "reno"}"#);
        summary.datagrams[0].delay_max_ns.unwrap_or(0)
    };
    // 41.6 ms, and at most one full packet of 12 ms in service on each link.
    assert!((42 * MS..66 * MS).contains(&delay(46)), "{}", delay(46));
    assert!(delay(0) > 200 * MS, "{}", delay(0));
}

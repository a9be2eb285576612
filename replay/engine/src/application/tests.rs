//! Applications at work: what leaves, when, and in which pieces.

use std::sync::atomic::AtomicBool;

use crate::config::Config;
use crate::segment::{Direction, Purpose};
use crate::summary::RunSummary;
use crate::tap::{Event, Tap};
use crate::time::Nanos;
use crate::world::World;

/// New data as it leaves: time, first octet, octets.
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
            "forward": {{"rate_bps": 5e6, "delay_ns": 40000000, "queue_pkts": 400}},
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

/// The runs of a real Linux sender with these values send 56 octets before octet 262,144: the buffer holds four
/// writes, slow start empties it, and only then does it grow.
#[test]
fn a_buffer_that_slow_start_empties_leaves_a_small_segment_once() {
    let greedy = r#""application": {"kind": "greedy", "write_bytes": 65536},"#;
    let grows = r#""send_buffer_bytes": 262144, "send_buffer_max_bytes": 33554432"#;
    let (departures, _) = run(greedy, grows);
    assert_eq!(small(&departures)[0], (1 + 262_144 - 56, 56));
    assert!(small(&departures).len() <= 2, "{:?}", small(&departures));
    let (departures, _) = run("", "");
    assert_eq!(small(&departures), []);
}

#[test]
fn nagle_holds_the_rest_of_a_write_and_without_it_every_write_ends_in_a_small_segment() {
    let flow = r#""size_bytes": 40000, "application": {"kind": "greedy", "write_bytes": 4000},"#;
    let count = |nagle: &str| {
        let stack = format!(r#""send_buffer_bytes": 100000, "nagle": "{nagle}""#);
        small(&run(flow, &stack).0)
    };
    // 4000 = 2 x 1448 + 1104: each write ends so while cwnd lets it, which is not for long.
    let off = count("off");
    assert_eq!(off[..2], [(1 + 2896, 1104), (1 + 6896, 1104)]);
    // With Minshall's rule one may be on its way; what follows fills up with the next write.
    let minshall = count("minshall");
    assert_eq!(minshall[0], (1 + 2896, 1104));
    assert!(minshall.len() < off.len(), "{minshall:?} {off:?}");
    // With Nagle's own none leaves before the end of the stream.
    assert_eq!(count("rfc"), [(1 + 27 * 1448, 40_000 - 27 * 1448)]);
}

#[test]
fn a_small_send_buffer_bounds_the_flight() {
    let flow = r#""application": {"kind": "greedy", "write_bytes": 1448},"#;
    let (_, summary) = run(flow, r#""send_buffer_bytes": 20000"#);
    // 20,000 octets hold 9 packets of 1448 with 640 of book-keeping, and a tenth begins below the limit. The woken
    // application fills it again when a third is free: 7 to 10 packets per round trip of 84 ms.
    let per_round_trip = summary.flows[0].goodput_bps * 0.084 / 8.0 / 1448.0;
    assert!((7.0..10.0).contains(&per_round_trip), "{per_round_trip}");
}

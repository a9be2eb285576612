//! What docs/queues.md shows, as CSV (`picture,series,x,y`): the queueing delay of one greedy flow under each
//! discipline, and the shares of two flows with packets of different sizes. Run with `--release`.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use hindflight_engine::{Config, Direction, Event, Nanos, SECOND, Segment, Tap, World};

const SECONDS: u64 = 40;
/// Propagation from the data sender to the data receiver.
const PROPAGATION_NS: Nanos = 25_000_000;
const BIN_NS: Nanos = 200_000_000;

const QUEUES: &[(&str, &str, &str)] = &[
    (
        "drop-tail",
        r#"{"kind": "drop_tail", "limit_pkts": 200}"#,
        "false",
    ),
    (
        "RED, drops",
        r#"{"kind": "red", "min_pkts": 10, "max_pkts": 60}"#,
        "false",
    ),
    (
        "RED, marks",
        r#"{"kind": "red", "min_pkts": 10, "max_pkts": 60}"#,
        "true",
    ),
    ("PIE, drops", r#"{"kind": "pie"}"#, "false"),
    ("PIE, marks", r#"{"kind": "pie"}"#, "true"),
    ("CoDel, drops", r#"{"kind": "codel"}"#, "false"),
    ("CoDel, marks", r#"{"kind": "codel"}"#, "true"),
];

/// Sums over the packets that arrive in a bin of time.
#[derive(Default)]
struct Bins {
    sent_at: HashMap<(u16, u16), Nanos>,
    /// By leg and bin: packets, their queueing delay, their octets.
    sums: HashMap<(u16, u64), (u64, Nanos, u64)>,
}

impl Bins {
    fn arrived(&mut self, segment: &Segment, now: Nanos) {
        if let Some(sent_at) = self.sent_at.remove(&(segment.leg, segment.ip_id)) {
            let sum = self.sums.entry((segment.leg, now / BIN_NS)).or_default();
            sum.0 += 1;
            sum.1 += (now - sent_at).saturating_sub(PROPAGATION_NS);
            sum.2 += u64::from(segment.ip_bytes);
        }
    }
}

impl Tap for Bins {
    fn event(&mut self, now: Nanos, event: Event<'_>) {
        match event {
            Event::Sent(segment) if segment.direction == Direction::Forward => {
                self.sent_at.insert((segment.leg, segment.ip_id), now);
            }
            Event::Arrived(segment) if segment.direction == Direction::Forward => {
                self.arrived(segment, now);
            }
            _ => {}
        }
    }
}

/// Runs flows with these stack parameters over 10 Mbit/s and 50 ms of round trip behind `queue`.
fn bins(queue: &str, stacks: &[&str]) -> Bins {
    let flows: Vec<String> = stacks
        .iter()
        .map(|stack| format!(r#"{{"name": "f", "variant": "sack", "stack": {{{stack}}}}}"#))
        .collect();
    let text = format!(
        r#"{{"duration_ns": {SECONDS}000000000, "path": {{"nodes": ["a", "b"], "links": [{{"name": "ab",
            "forward": {{"delay_ns": {PROPAGATION_NS}, "rate_bps": 10e6, "queue": {queue}}},
            "reverse": {{"delay_ns": {PROPAGATION_NS}}}}}]}}, "flows": [{}]}}"#,
        flows.join(", ")
    );
    let config: Config = serde_json::from_str(&text).expect("the case is well-formed");
    let mut bins = Bins::default();
    let mut world = World::new(&config, 1, &mut bins).expect("the case is valid");
    world
        .run(&AtomicBool::new(false))
        .expect("nobody interrupts");
    bins
}

fn main() {
    println!("picture,series,x,y");
    let times =
        || (0..SECONDS * SECOND / BIN_NS).map(|bin| (bin, bin as f64 * BIN_NS as f64 / 1e9));
    for (name, queue, ecn) in QUEUES {
        let bins = bins(queue, &[&format!(r#""ecn": {ecn}"#)]);
        for (bin, time) in times() {
            if let Some((pkts, delay, _)) = bins.sums.get(&(0, bin)) {
                let mean_ms = *delay as f64 / *pkts as f64 / 1e6;
                println!("delay,\"{name}\",{time},{mean_ms}");
            }
        }
    }
    for (name, queue) in [
        ("drop-tail", r#"{"kind": "drop_tail", "limit_pkts": 100}"#),
        (
            "deficit round robin",
            r#"{"kind": "drr", "limit_pkts": 100}"#,
        ),
    ] {
        let bins = bins(queue, &["", r#""smss_bytes": 448"#]);
        for (leg, size) in [(0, 1500), (1, 500)] {
            let mut octets = 0;
            for (bin, time) in times() {
                octets += bins.sums.get(&(leg, bin)).map_or(0, |sum| sum.2);
                let share_bps = octets as f64 * 8.0 / (time + BIN_NS as f64 / 1e9);
                println!("share,\"{name}, {size} B\",{time},{}", share_bps / 1e6);
            }
        }
    }
}

//! Packet ladders of a flow through a proxy.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use hindflight_engine::{Config, Direction, Event, Nanos, RunSummary, Segment, Tap, World, flags};

/// The packets that the proxy of the only flow sends, and what the data sender sends again: `TIME up` for the connection of
/// the sender, `TIME on` for the one onward. Segments of 1000 octets count from 1.
#[derive(Default)]
struct Ladder(String);

impl Ladder {
    fn note(&mut self, now: Nanos, side: &str, what: &str) {
        let head = format!("{:.3} {side} ", now as f64 / 1e9);
        if let Some(line) = self.0.lines().last()
            && line.starts_with(&head)
        {
            self.0.pop();
            self.0.push_str(", ");
        } else {
            self.0.push_str(&head);
        }
        writeln!(self.0, "{what}").expect("writes to a string");
    }
}

fn number(octet: u64) -> u64 {
    1 + octet.saturating_sub(1) / 1000
}

fn shown(segment: &Segment) -> String {
    let control = match segment.flags & flags::CONTROL {
        0 => "",
        flags::SYN => "SYN ",
        flags::FIN => "FIN ",
        _ => "RST ",
    };
    if segment.payload_bytes > 0 {
        format!("{control}{}", number(segment.seq))
    } else if segment.direction == Direction::Reverse {
        let window = segment.wnd_bytes / 1000;
        format!("{control}ack {} wnd {window}", number(segment.ack))
    } else if control.is_empty() {
        "ACK".to_owned()
    } else {
        control.trim_end().to_owned()
    }
}

impl Tap for Ladder {
    fn event(&mut self, now: Nanos, event: Event<'_>) {
        if let Event::Sent(segment) = event {
            let side = match (segment.leg, segment.direction) {
                (0, Direction::Reverse) => "up",
                (1, Direction::Forward) => "on",
                _ => return,
            };
            self.note(now, side, &shown(segment));
        }
    }
}

/// Six segments of 1000 octets at once, each acknowledged.
pub const STACK: &str = r#""handshake": false, "smss_bytes": 1000, "delayed_ack": false, "initial_window_pkts": 6,
    "timestamps": false"#;

/// A flow of `flow` over two hops of 10 ms each way, with a proxy of `policies` between them.
pub fn config(flow: &str, policies: &str) -> Config {
    let way = r#"{"delay_ns": 10000000}"#;
    let text = format!(
        r#"{{"duration_ns": 30000000000, "path": {{"nodes": ["a", "p", "b"], "links": [
            {{"name": "ap", "forward": {way}, "reverse": {way}}},
            {{"name": "pb", "forward": {way}, "reverse": {way}}}]}},
            "flows": [{{"name": "f", "variant": "linux-reno", {flow}, "proxies": [{{"node": "p", {policies}}}]}}]}}"#
    );
    serde_json::from_str(&text).expect("well-formed")
}

/// The run of such a flow, and its ladder.
#[allow(dead_code, reason = "not every test file that has ladders needs it")]
pub fn ladder(flow: &str, policies: &str) -> (RunSummary, String) {
    run_of(&config(flow, policies))
}

/// The run of a configuration, and the ladder of its first flow.
pub fn run_of(config: &Config) -> (RunSummary, String) {
    let mut ladder = Ladder::default();
    let summary = World::new(config, 1, &mut ladder)
        .expect("valid")
        .run(&AtomicBool::new(false))
        .expect("nobody interrupts");
    (summary, ladder.0)
}

//! Nanoseconds per data packet: two hops of 125 ms, 20 Mbit/s, one flow, packet loss 1e-6 and 1 %; and windows of 100
//! and of 100,000 segments that the receiver bounds. Run with `--release`; an argument picks the variant.

#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::fs;
use std::sync::OnceLock;
use std::time::Instant;

use hindflight_engine::{Config, run};

struct Case {
    name: &'static str,
    seconds: u64,
    rate: &'static str,
    delay_ms: u64,
    per: f64,
    stack: &'static str,
}

const CASES: &[Case] = &[
    Case {
        name: "packet loss 1e-6",
        seconds: 1000,
        rate: "20e6",
        delay_ms: 125,
        per: 1e-6,
        stack: "",
    },
    Case {
        name: "same, every segment acknowledged",
        seconds: 1000,
        rate: "20e6",
        delay_ms: 125,
        per: 1e-6,
        stack: r#""delayed_ack": false"#,
    },
    Case {
        name: "packet loss 1 %",
        seconds: 20_000,
        rate: "20e6",
        delay_ms: 125,
        per: 0.01,
        stack: "",
    },
    Case {
        name: "window of 100",
        seconds: 400,
        rate: "null",
        delay_ms: 10,
        per: 0.0,
        stack: r#""receive_buffer_bytes": 144800"#,
    },
    Case {
        name: "window of 100,000",
        seconds: 10,
        rate: "null",
        delay_ms: 250,
        per: 0.0,
        stack: r#""receive_buffer_bytes": 144800000, "initial_window_pkts": 100000"#,
    },
];

fn config(case: &Case, variant: &str) -> String {
    let Case {
        seconds,
        rate,
        delay_ms,
        per,
        stack,
        ..
    } = case;
    let hop = format!(
        r#""rate_bps": {rate}, "delay_ns": {delay_ms}000000, "queue": {{"kind": "drop_tail", "limit_pkts": 100}}"#
    );
    let loss = format!(r#""loss": {{"kind": "bernoulli", "per": {per}}}"#);
    format!(
        r#"{{"duration_ns": {seconds}000000000, "path": {{"nodes": ["a", "b", "c"], "links": [
            {{"name": "ab", "forward": {{{hop}, {loss}}}, "reverse": {{{hop}}}}},
            {{"name": "bc", "forward": {{{hop}}}, "reverse": {{{hop}}}}}]}},
            "flows": [{{"name": "f", "variant": "{variant}", "stack": {{{stack}}}}}]}}"#
    )
}

/// Time on the processor so far, so that neighbours on the machine do not count; the wall clock where the system
/// does not tell.
fn cpu_ns() -> f64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let begin = BEGIN.get_or_init(Instant::now);
    let on_cpu = fs::read_to_string("/proc/self/schedstat").ok();
    let on_cpu = on_cpu.and_then(|text| text.split(' ').next()?.parse().ok());
    on_cpu.unwrap_or_else(|| begin.elapsed().as_nanos() as f64)
}

fn main() {
    let variant = std::env::args().nth(1).unwrap_or_else(|| "newreno".into());
    for case in CASES {
        let config: Config =
            serde_json::from_str(&config(case, &variant)).expect("the case is well-formed");
        let mut best = f64::INFINITY;
        let mut packets = 0;
        for _ in 0..3 {
            let start = cpu_ns();
            let summary = run(&config, 1).expect("the case is valid");
            packets = summary.flows[0].sender.segments_out;
            best = best.min((cpu_ns() - start) / packets as f64);
        }
        println!(
            "{variant:10} {:34} {packets:>9} data packets {best:7.1} ns each",
            case.name
        );
    }
}

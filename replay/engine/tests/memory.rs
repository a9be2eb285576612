//! The memory of a run is bounded by its windows and flows, never by rate times time.
//!
//! A process has one peak of memory: there is one test.

use hindflight_engine::{Config, run};
use serde_json::{Value, json};

/// Peak of the resident memory of this process; none where the system has no `/proc`.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// A flow with this application, and other traffic, over a link of 2 Mbit/s and 250 ms for 20 s.
fn config(application: &Value, stack: &Value, datagrams: &Value) -> Config {
    let direction = json!({"rate_bps": 2e6, "delay_ns": 250_000_000});
    let config = json!({
        "duration_ns": 20_000_000_000_u64,
        "path": {"nodes": ["a", "b"], "links": [{"name": "l", "forward": direction, "reverse": direction}]},
        "flows": [{"name": "f", "variant": "newreno", "stack": stack, "application": application}],
        "datagrams": datagrams,
    });
    serde_json::from_value(config).expect("well-formed")
}

#[test]
fn a_sender_far_above_the_rate_of_its_path_takes_no_memory() {
    let Some(before) = peak_kib() else {
        return;
    };
    let on_off = |off_ns: u64| json!({"kind": "on_off", "rate_bps": 1e13, "on_ns": 1_000_000_000, "off_ns": off_ns});
    let stream = json!({"kind": "stream", "rate_bps": 1e13, "write_every_ns": 1000});
    let often = json!({"kind": "stream", "rate_bps": 1e8, "write_every_ns": 1000});
    let buffer = json!({"send_buffer_bytes": 100_000});
    for (application, stack) in [
        (on_off(1_000_000_000), json!({})),
        (on_off(0), buffer.clone()),
        (stream, json!({})),
        (often, buffer),
    ] {
        let summary = run(&config(&application, &stack, &json!([])), 1).expect("valid");
        let goodput_bps = summary.flows[0].goodput_bps;
        assert!(
            (0.5e6..2e6).contains(&goodput_bps),
            "{application} {goodput_bps}"
        );
    }
    // A million datagrams a second through a queue of 1000.
    let datagrams =
        json!([{"name": "d", "packet_bytes": 125, "rate_bps": 1e9, "stop_ns": 2_000_000_000}]);
    let greedy = json!({"kind": "greedy"});
    let summary = run(&config(&greedy, &json!({}), &datagrams), 1).expect("valid");
    assert_eq!(summary.datagrams[0].sent, 2_000_000);
    let grown_kib = peak_kib().unwrap_or(u64::MAX) - before;
    assert!(grown_kib < 32_000, "{grown_kib} KiB");
}

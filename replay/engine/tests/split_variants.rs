//! The variants for a leg of one's own, over whole runs: AeroTCP's shared window, and Super TCP under losses; and the
//! proxy's policies, by what a buffer lets through.

use hindflight_engine::{Config, RunSummary, run};

/// A satellite hop of 20 Mbit/s and 480 ms, with losses of packets, under these flows.
fn satellite(packet_loss: f64, seconds: u64, flows: &[String]) -> RunSummary {
    let hop = r#""rate_bps": 20e6, "delay_ns": 240000000, "queue": {"kind": "drop_tail", "limit_pkts": 2000}"#;
    let json = format!(
        r#"{{"duration_ns": {seconds}000000000, "path": {{"nodes": ["a", "b"], "links": [{{"name": "ab",
            "forward": {{{hop}, "loss": {{"kind": "bernoulli", "per": {packet_loss}}}}}, "reverse": {{{hop}}}}}]}},
            "flows": [{}]}}"#,
        flows.join(",")
    );
    let config: Config = serde_json::from_str(&json).expect("well-formed");
    run(&config, 1).expect("valid")
}

fn flow(name: &str, variant: &str, rest: &str) -> String {
    format!(r#"{{"name": "{name}", "variant": "{variant}", {rest}}}"#)
}

#[test]
fn an_adaptive_aerotcp_has_the_window_to_itself_once_the_other_has_ended() {
    let delivered = |params: &str| -> Vec<u64> {
        let params = format!(r#""params": {{"satellite_rate": 4e6, {params}}}"#);
        let endless = flow("a", "aerotcp", &params);
        let short = flow(
            "b",
            "aerotcp",
            &format!(r#"{params}, "size_bytes": 1000000"#),
        );
        let summary = satellite(0.0, 40, &[endless, short]);
        summary.flows.iter().map(|f| f.delivered_bytes).collect()
    };
    let shared = delivered(r#""connections": 2"#);
    let adaptive = delivered(r#""allocation": "adaptive""#);
    assert_eq!((shared[1], adaptive[1]), (1_000_000, 1_000_000));
    // Half of 4 Mbit/s for 4 s or so and all of it for the other 36, less a round trip at either end.
    let ratio = adaptive[0] as f64 / shared[0] as f64;
    assert!((1.75..1.97).contains(&ratio), "{ratio}");
}

#[test]
fn over_a_lossy_satellite_hop_fixed_windows_hold_their_rate() {
    let goodput = |variant: &str, params: &str, loss: f64| {
        let flows = [flow("f", variant, params)];
        satellite(loss, 60, &flows).flows[0].goodput_bps / 1e6
    };
    let own = r#""params": {"satellite_rate": 20e6, "connections": 1}"#;
    let newreno = goodput("newreno", r#""profile": "rfc""#, 0.001);
    let supertcp = goodput("supertcp", own, 0.001);
    assert!(supertcp > 4.0 * newreno, "{supertcp} and {newreno}");
}

/// Goodput in packets a second through a proxy with room for 60, between hops of 50 ms and of 250 ms there and back.
fn through_proxy(policies: &str, far_hop: usize) -> f64 {
    let hop = |number: usize| {
        let one_way_ms = if number == far_hop { 125 } else { 25 };
        let way = format!(r#"{{"rate_bps": 100e6, "delay_ns": {one_way_ms}000000}}"#);
        format!(r#"{{"name": "hop", "forward": {way}, "reverse": {way}}}"#)
    };
    let json = format!(
        r#"{{"duration_ns": 60000000000, "path": {{"nodes": ["a", "relay", "b"], "links": [{}, {}]}},
            "flows": [{{"name": "f", "variant": "newreno", "profile": "linux",
                "stack": {{"smss_bytes": 1250, "receive_buffer_bytes": 4000000}},
                "proxies": [{{"node": "relay", "receive_buffer": {{"pkts": 60}}, {policies}}}]}}]}}"#,
        hop(0),
        hop(1)
    );
    let config: Config = serde_json::from_str(&json).expect("well-formed");
    run(&config, 1).expect("valid").flows[0].goodput_bps / 10_000.0
}

#[test]
fn a_third_of_the_buffer_per_round_trip_gets_through_either_hop() {
    // 20 packets of 60 per 250 ms, whichever hop is the long one: the rule's halves upstream and downstream.
    for far_hop in [0, 1] {
        let third = through_proxy(
            r#""advertise": "third", "forward_window": "third""#,
            far_hop,
        );
        assert!((74.0..80.1).contains(&third), "hop {far_hop}: {third}");
        assert!(through_proxy(r#""advertise": "free""#, far_hop) > 1.4 * third);
    }
}

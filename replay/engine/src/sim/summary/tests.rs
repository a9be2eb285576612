//! Summaries of whole runs: which time, which legs and which octets they cover.

use super::{FlowSummary, RunSummary};
use crate::config::Config;
use crate::sim::time::{MILLISECOND, SECOND};

/// Two links of 10 Mbit/s and 50 ms; the second one loses packets.
fn over(loss: &str, seconds: u64, flows: &str, datagrams: &str) -> RunSummary {
    let hop = r#""rate_bps": 10e6, "delay_ns": 50000000"#;
    let config = format!(
        r#"{{"duration_ns": {seconds}000000000, "path": {{"nodes": ["a", "b", "c"], "links": [
            {{"name": "ab", "forward": {{{hop}}}, "reverse": {{{hop}}}}},
            {{"name": "bc", "forward": {{{hop} {loss}}}, "reverse": {{{hop}}}}}]}},
            "flows": [{flows}], "datagrams": [{datagrams}]}}"#
    );
    let config: Config = serde_json::from_str(&config).expect("well-formed");
    crate::sim::world::run(&config, 1).expect("valid")
}

fn one(seconds: u64, flow: &str) -> FlowSummary {
    let flow = format!(r#"{{"name": "f", "variant": "sack", {flow}}}"#);
    over("", seconds, &flow, "").flows.remove(0)
}

const FILE: &str = r#"{"name": "f", "variant": "sack", "size_bytes": 100000}"#;

#[test]
fn datagrams_continue_after_the_flows_and_their_rate_refers_to_their_own_time() {
    let source = |rest: &str| {
        let datagrams =
            format!(r#"{{"name": "u", "packet_bytes": 1000, "rate_bps": 800000, {rest}}}"#);
        let mut summary = over("", 100, FILE, &datagrams);
        (summary.flows.remove(0), summary.datagrams.remove(0))
    };
    let payload_bps = 800_000.0 * 972.0 / 1000.0;
    for (rest, sent, span) in [
        // The last one leaves as the run ends.
        (r#""start_ns": 0"#, 10_001, 100 * SECOND),
        (r#""start_ns": 50000000000"#, 5001, 50 * SECOND),
        // Until the last one has arrived, 101.6 ms after it left.
        (r#""stop_ns": 20000000000"#, 2000, 20_091_600_000),
    ] {
        let (_, reported) = source(rest);
        assert_eq!(
            (reported.sent, reported.duration_ns),
            (sent, span),
            "{reported:?}"
        );
        let share = reported.goodput_bps / payload_bps;
        assert!((0.995..1.0).contains(&share), "{share} of {reported:?}");
    }
    // What arrives after the end of a flow does not change its numbers.
    let (flow, _) = source(r#""start_ns": 50000000000"#);
    assert_eq!(flow, over("", 100, FILE, "").flows[0]);
}

#[test]
fn a_flow_keeps_its_numbers_while_others_continue() {
    // Both at full speed: after the end of the first flow the second one fills queues and lengthens round trips.
    let late = r#"{"name": "g", "variant": "sack", "start_ns": 1000000000}"#;
    let alone = &over("", 30, FILE, "").flows[0];
    assert!(alone.duration_ns < SECOND);
    assert_eq!(
        &over("", 30, &format!("{FILE}, {late}"), "").flows[0],
        alone
    );
    let proxied = FILE.replace("size", r#"proxies": [{"node": "b"}], "size"#);
    let alone = &over("", 30, &proxied, "").flows[0];
    assert_eq!(
        &over("", 30, &format!("{proxied}, {late}"), "").flows[0],
        alone
    );
}

#[test]
fn a_reset_ends_a_flow() {
    let down = r#", "schedule": [{"at_ns": 3000000000, "outage": true}]"#;
    for size in ["", r#""size_bytes": 100000000,"#] {
        let flow = format!(
            r#"{{"name": "f", "variant": "sack", "start_ns": 1000000000, {size}
                "stack": {{"user_timeout_ns": 2500000000}}}}"#
        );
        for datagrams in [
            "",
            r#"{"name": "u", "packet_bytes": 1000, "rate_bps": 8000}"#,
        ] {
            let flow = over(down, 100, &flow, datagrams).flows.remove(0);
            let reset = flow.reset_ns.expect("reset");
            assert!((6 * SECOND..9 * SECOND).contains(&reset), "{flow:?}");
            assert_eq!(flow.duration_ns, reset - SECOND);
            let bits = flow.delivered_bytes as f64 * 8.0;
            let rate = bits / (flow.duration_ns as f64 / 1e9);
            assert!((flow.goodput_bps / rate - 1.0).abs() < 1e-9);
            assert!(bits > 2e6 && !flow.completed, "{flow:?}");
        }
    }
}

#[test]
fn only_writes_that_were_read_have_an_application_delay() {
    // 1000 octets each second, read at 500 octets a second from 0.3 s on: write n, from 0, is read at 2 n + 2.3 s.
    let writes = |seconds| {
        let times: Vec<String> = (0..20).map(|n| (n * SECOND).to_string()).collect();
        let flow = format!(
            r#""application": {{"kind": "writes", "at_ns": [{}], "bytes": [{}]}},
                "stack": {{"read_rate_bps": 4000, "nagle": "off"}}"#,
            times.join(","),
            ["1000"; 20].join(","),
        );
        one(seconds, &flow)
    };
    // By 13 s write 5 has been read, by 21 s write 9, in the end write 19.
    for (seconds, longest) in [(13, 7), (21, 11), (60, 21)] {
        let flow = writes(seconds);
        let reported = flow.app_delay_max_ns.unwrap_or(0);
        assert!(
            reported.abs_diff(longest * SECOND) < 400 * MILLISECOND,
            "{seconds} s: {reported}"
        );
        assert!(reported <= flow.duration_ns);
    }
}

#[test]
fn only_pages_that_were_read_by_the_end_count() {
    let pages = |seconds| {
        let flow = one(
            seconds,
            r#""application": {"kind": "pages", "page_bytes": 10000, "think_ns": 0, "pages": 2},
                "stack": {"read_rate_bps": 8000}"#,
        );
        (flow.pages, flow.page_load_p95_ns.is_some(), flow.completed)
    };
    // Each page takes ten seconds to read.
    assert_eq!(pages(10), (Some(0), false, false));
    assert_eq!(pages(12), (Some(1), true, false));
    assert_eq!(pages(20), (Some(1), true, false));
    assert_eq!(pages(22), (Some(2), true, true));
}

#[test]
fn with_a_proxy_counters_cover_both_legs() {
    let loss = r#", "loss": {"kind": "bernoulli", "per": 0.01}"#;
    let flow = |proxies: &str| {
        let flow = format!(
            r#"{{"name": "f", "variant": "sack", "size_bytes": 1448000, "proxies": [{proxies}]}}"#
        );
        over(loss, 100, &flow, "").flows.remove(0)
    };
    for (proxies, legs) in [("", 1), (r#"{"node": "b"}"#, 2)] {
        let reported = flow(proxies);
        let sender = reported.sender;
        assert!(
            reported.completed && reported.links.channel_losses > 3,
            "{reported:?}"
        );
        assert_eq!(sender.segments_out - sender.retransmissions, legs * 1000);
        // Each lost packet is retransmitted, and a timeout may retransmit packets that were not lost.
        assert!(
            sender.retransmissions >= reported.links.channel_losses,
            "{reported:?}"
        );
        assert!(sender.rtos > 0 || sender.retransmissions == reported.links.channel_losses);
        assert!(sender.recoveries > 0 && sender.recoveries <= reported.links.channel_losses);
    }
}

#[test]
fn the_first_reset_of_a_connection_resets_the_flow() {
    // The proxy's sender gives up behind the outage; the data sender's connection stays, with a closed window.
    let down = r#", "schedule": [{"at_ns": 3000000000, "outage": true}]"#;
    let flow = r#"{"name": "f", "variant": "sack", "proxies": [{"node": "b"}],
        "stack": {"user_timeout_ns": 2500000000}}"#;
    let reported = over(down, 100, flow, "").flows.remove(0);
    let reset = reported.reset_ns.expect("reset");
    assert!((5 * SECOND..9 * SECOND).contains(&reset), "{reported:?}");
    assert_eq!(reported.duration_ns, reset);
}

#[test]
fn losses_of_data_are_counted_by_cause_and_those_of_control_packets_together() {
    let lost = |outage: &str| {
        let reported = over(outage, 100, FILE, "").flows.remove(0);
        assert!(reported.completed);
        (reported.links.outage_losses, reported.control_losses)
    };
    let until = |from_ms: u64, until_ms: u64| {
        format!(
            r#", "schedule": [{{"at_ns": {from_ms}000000, "outage": true}}, {{"at_ns": {until_ms}000000, "outage": false}}]"#
        )
    };
    assert_eq!(lost(""), (0, 0));
    // The SYN passes the second link at 51 ms.
    assert_eq!(lost(&until(1, 500)), (0, 1));
    // The ACK of the handshake and the initial window of ten pass it from 251 ms on.
    assert_eq!(lost(&until(240, 300)), (10, 1));
}

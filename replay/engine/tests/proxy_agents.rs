//! Agents that do not split: what they send and keep back, as packet ladders and over lossy links.

mod ladder;

use hindflight_engine::{Config, FlowSummary, ProxyCounts, run};
use ladder::{STACK, config};

fn counts(flow: &FlowSummary) -> ProxyCounts {
    flow.proxy_counts.expect("there is an agent")
}

/// The ladder of so many segments past an agent of `kind`, without the data packets of these numbers, which the second link
/// loses.
fn losing(kind: &str, segments: u64, lost: &str) -> (FlowSummary, String) {
    let flow = format!(r#""size_bytes": {}, "stack": {{{STACK}}}"#, 1000 * segments);
    let mut config = config(&flow, &format!(r#""kind": "{kind}""#));
    let text = format!(
        r#"{{"kind": "trace", "mode": "replayed", "positions": [{lost}], "known_pkts": 1000000, "block_pkts": 1,
            "late": []}}"#
    );
    config.path.links[1].forward.loss = serde_json::from_str(&text).expect("well-formed");
    let (summary, got) = ladder::run_of(&config);
    (summary.flows[0].clone(), got)
}

fn lines(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn snoop_retransmits_at_the_first_duplicate_ack_and_suppresses_those_that_it_expects() {
    let (flow, got) = losing("snoop", 6, "1");
    let expected = "0.010 on 1, 2, 3, 4, 5, 6
        0.030 up ack 2 wnd 16777
        0.030 on 2";
    assert_eq!(got, lines(expected));
    assert_eq!(
        (
            counts(&flow).local_retransmissions,
            counts(&flow).suppressed_acks
        ),
        (1, 4)
    );
    assert_eq!(
        (flow.sender.retransmissions, flow.delivered_bytes),
        (0, 6000)
    );
    assert_eq!(flow.proxy_held_max_bytes, Some(0));
    assert_eq!(flow.proxy_stored_max_bytes, Some(6000));
}

#[test]
fn snoop_retransmits_after_its_local_timeout_when_nothing_reports_the_loss() {
    let (flow, got) = losing("snoop", 3, "2");
    let expected = "0.010 on 1, 2, 3
        0.030 up ack 2 wnd 16777, ack 3 wnd 16777
        0.130 on 3";
    assert_eq!(got, lines(expected));
    assert_eq!(
        (flow.sender.rtos, counts(&flow).local_retransmissions),
        (0, 1)
    );
}

#[test]
fn snoop_leaves_losses_before_it_to_the_sender() {
    let flow = format!(r#""size_bytes": 6000, "stack": {{{STACK}}}"#);
    let mut config = config(&flow, r#""kind": "snoop""#);
    config.path.links[0].forward.loss = serde_json::from_str(
        r#"{"kind": "trace", "mode": "replayed", "positions": [1], "known_pkts": 1000000, "block_pkts": 1, "late": []}"#,
    )
    .expect("well-formed");
    let with = run(&config, 1).expect("valid").flows[0].clone();
    assert_eq!(counts(&with).local_retransmissions, 0);
    config.flows[0].proxies.clear();
    let without = run(&config, 1).expect("valid").flows[0].clone();
    assert!(without.sender.retransmissions > 0 && with.completed);
    assert_eq!(
        (with.sender, with.duration_ns),
        (without.sender, without.duration_ns)
    );
}

#[test]
fn spoofing_acknowledges_what_arrives_and_retransmits_it_itself() {
    let (flow, got) = losing("spoofing", 6, "1");
    assert!(got.starts_with("0.010 on 1\n0.010 up ack 2 wnd "), "{got}");
    assert!(got.contains("0.030 on 2\n"), "{got}");
    assert_eq!(counts(&flow).spoofed_acks, 6);
    assert_eq!(
        (
            flow.sender.retransmissions,
            counts(&flow).local_retransmissions
        ),
        (0, 1)
    );
    assert_eq!(flow.proxy_held_max_bytes, Some(6000));
    assert!(flow.completed && flow.proxy_lost_bytes == Some(0));
}

/// A transfer of 2 MB past an agent of `keys`: 2 Mbit/s, then a link of 10 ms that loses this share of its packets.
fn lossy(keys: &str, per: f64) -> FlowSummary {
    lossy_with("", keys, per)
}

/// The same with more keys of its stack.
fn lossy_with(stack: &str, keys: &str, per: f64) -> FlowSummary {
    let stack =
        format!(r#""min_rto_ns": 1000000000, "retry_limit": 3, "delayed_ack": false{stack}"#);
    let flow = format!(r#""size_bytes": 2000000, "stack": {{{stack}}}"#);
    let mut config = config(&flow, keys);
    config.duration_ns = 600_000_000_000;
    for link in &mut config.path.links {
        link.forward.rate_bps = Some(2e6);
    }
    let near = &mut config.path.links[0];
    (near.forward.delay_ns, near.reverse.delay_ns) = (100_000_000, 100_000_000);
    let loss = format!(r#"{{"kind": "bernoulli", "per": {per}}}"#);
    config.path.links[1].forward.loss = serde_json::from_str(&loss).expect("well-formed");
    if keys == WITHOUT {
        config.flows[0].proxies.clear();
    }
    run(&config, 1).expect("valid").flows[0].clone()
}

/// No agent.
const WITHOUT: &str = r#""kind": "split""#;

/// A random loss behind the agent halves the window of the sender only where nobody retransmits it there.
#[test]
fn agents_hide_losses_of_the_link_behind_them_from_the_sender() {
    let whole = lossy(WITHOUT, 0.02);
    for kind in ["snoop", "spoofing"] {
        let flow = lossy(&format!(r#""kind": "{kind}""#), 0.02);
        assert!(flow.completed && whole.completed, "{kind}");
        assert!(
            flow.duration_ns < whole.duration_ns / 2,
            "{kind}: {flow:?} {whole:?}"
        );
        assert!(
            flow.sender.retransmissions < whole.sender.retransmissions / 4,
            "{kind}"
        );
        let again = counts(&flow).local_retransmissions;
        assert!(
            again >= flow.links.channel_losses - flow.sender.retransmissions,
            "{kind}: {again}"
        );
    }
}

#[test]
fn spoofing_that_loses_its_state_loses_what_it_acknowledged_and_snoop_does_not() {
    let fault = r#""faults": [{"at_ns": 3000000000, "kind": "restart"}]"#;
    let spoofing = lossy(&format!(r#""kind": "spoofing", {fault}"#), 0.1);
    assert!(
        !spoofing.completed && spoofing.proxy_lost_bytes > Some(0),
        "{spoofing:?}"
    );
    assert!(spoofing.proxy_lost_bytes <= spoofing.proxy_held_max_bytes);
    let snoop = lossy(&format!(r#""kind": "snoop", {fault}"#), 0.02);
    assert!(
        snoop.completed && snoop.proxy_lost_bytes == Some(0),
        "{snoop:?}"
    );
}

#[test]
fn caches_of_few_packets_still_deliver_everything() {
    for kind in ["snoop", "spoofing"] {
        for pkts in [1, 2, 5] {
            let flow = lossy(
                &format!(r#""kind": "{kind}", "receive_buffer": {{"pkts": {pkts}}}"#),
                0.02,
            );
            assert!(flow.completed, "{kind} {pkts}");
            assert!(
                flow.proxy_stored_max_bytes <= Some(pkts * 1448),
                "{kind} {pkts}"
            );
        }
    }
}

#[test]
fn a_spoofing_cache_that_no_handshake_announces_is_not_exceeded() {
    let stack = r#", "handshake": false, "sack": false, "initial_window_pkts": 10"#;
    for pkts in [1, 2, 5] {
        let keys = format!(r#""kind": "spoofing", "receive_buffer": {{"pkts": {pkts}}}"#);
        let flow = lossy_with(stack, &keys, 0.0);
        assert!(flow.completed, "{pkts}");
        // Nothing gets lost: duplicate ACKs would be false.
        assert_eq!(flow.sender.retransmissions, 0, "{pkts}");
        assert!(lossy_with(stack, &keys, 0.02).completed, "{pkts}");
    }
}

/// Two greedy flows over a slow way back, one of them with ACKs filtered at the receiver's end of it.
fn asymmetric(policies: &str) -> Config {
    let mut config = config(r#""dscp": 0"#, policies);
    for link in &mut config.path.links {
        link.forward.rate_bps = Some(10e6);
        link.reverse.rate_bps = Some(10e6);
        link.forward.queue =
            serde_json::from_str(r#"{"kind": "drop_tail", "limit_pkts": 40}"#).expect("known");
    }
    let slow = &mut config.path.links[0].reverse;
    slow.rate_bps = Some(64e3);
    slow.queue = serde_json::from_str(r#"{"kind": "drop_tail", "limit_pkts": 50}"#).expect("known");
    if policies == WITHOUT {
        config.flows[0].proxies.clear();
    }
    config
}

#[test]
fn filtered_acks_do_not_wait_for_those_that_they_cover() {
    let plain = run(&asymmetric(WITHOUT), 1).expect("valid").flows[0].clone();
    let filtered = run(&asymmetric(r#""kind": "ack_filter""#), 1)
        .expect("valid")
        .flows[0]
        .clone();
    // 50 ACKs of 52 octets wait 325 ms at 64 kbit/s, and the queue drops the newest of them.
    assert!(
        plain.rtt_mean_ns > Some(250_000_000) && plain.control_losses > 100,
        "{plain:?}"
    );
    assert!(filtered.rtt_mean_ns < Some(120_000_000), "{filtered:?}");
    assert!(
        filtered.goodput_bps >= 0.98 * plain.goodput_bps,
        "{}",
        filtered.goodput_bps
    );
    assert!(counts(&filtered).filtered_acks > 1000 && plain.proxy_counts.is_none());
    // What the full queue still drops are ACKs with SACK blocks, which are not filtered.
    assert!(filtered.sender.recoveries > 0);
    assert!(
        filtered.control_losses * 10 < plain.control_losses,
        "{} and {}",
        filtered.control_losses,
        plain.control_losses
    );
}

#[test]
fn a_filter_that_filters_nothing_counts_nothing() {
    let mut config = asymmetric(r#""kind": "ack_filter""#);
    // One segment: its ACK meets no other.
    config.flows[0].size_bytes = Some(1000);
    let flow = run(&config, 1).expect("valid").flows[0].clone();
    assert_eq!(flow.proxy_counts, Some(ProxyCounts::default()));
}

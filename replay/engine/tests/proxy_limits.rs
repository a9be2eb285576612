//! Limits of a proxy: how many connections it handles, and for how long.

mod ladder;

use std::sync::atomic::AtomicBool;

use hindflight_engine::{
    Config, Event, FlowSummary, Leg, LossScope, Nanos, ProxyCounts, Tap, World, flags, run,
};
use ladder::{STACK, config, ladder, run_of};

/// A stack of the same that opens and closes its connections.
fn closing() -> String {
    STACK.replace(
        "\"handshake\": false",
        "\"handshake\": true, \"close\": true",
    )
}

/// Flows of 20 segments that start at these times (ms), through a proxy with the keys of `policies`.
fn flows(policies: &str, starts_ms: &[u64]) -> Config {
    let flow = format!(r#""size_bytes": 20000, "stack": {{{}}}"#, closing());
    let mut config = config(&flow, policies);
    let first = config.flows[0].clone();
    config.flows = starts_ms
        .iter()
        .map(|ms| {
            let mut flow = first.clone();
            flow.start_ns = ms * 1_000_000;
            flow
        })
        .collect();
    config
}

fn limited(beyond: &str) -> String {
    format!(
        r#""limit": {{"name": "p", "max_connections": 1, "beyond": "{beyond}"}},
            "stack": {{"overrides": {{"smss_bytes": 700, "delayed_ack": true, "sack": false}}}}"#
    )
}

fn counts(flow: &FlowSummary) -> ProxyCounts {
    flow.proxy_counts.expect("there is a proxy")
}

#[test]
fn a_connection_beyond_the_limit_is_refused_until_another_has_ended() {
    let config = flows(&limited("refuse"), &[0, 1, 2000]);
    let summary = run(&config, 1).expect("valid");
    let [first, second, third] = &summary.flows[..] else {
        panic!("three flows");
    };
    assert!(first.completed && third.completed);
    assert_eq!(second.established_ns, None);
    // The SYN takes 10 ms to the proxy; the run goes on for the third.
    assert_eq!(second.reset_ns, Some(11_000_000));
    assert_eq!(
        (second.delivered_bytes, second.proxy_lost_bytes),
        (0, Some(0))
    );
    assert_eq!(
        [first, second, third].map(|flow| counts(flow).refused),
        [0, 1, 0]
    );
}

#[test]
fn a_refused_syn_is_answered_with_a_reset() {
    let flow = format!(r#""size_bytes": 2000, "stack": {{{}}}"#, closing());
    let full = limited("refuse").replace("\"max_connections\": 1", "\"max_connections\": 2");
    let (_, open) = ladder(&flow, &full);
    assert!(open.starts_with("0.010 up SYN ack 1"), "{open}");
    // The ladder shows the legs of the first flow, which comes second.
    let mut config = flows(&limited("refuse"), &[5, 0]);
    config.duration_ns = 1_000_000_000;
    assert_eq!(ladder::run_of(&config).1, "0.015 up RST ack 1 wnd 100\n");
}

/// Links without a rate do not let one flow delay another: what passes unsplit must come to what it would without a proxy.
#[test]
fn a_connection_that_passes_unsplit_is_the_one_without_a_proxy() {
    // Both times are longer than what the split connection needs, and shorter than the one that passes lives.
    let times = r#""idle_timeout_ns": 100000000, "pending_timeout_ns": 50000000"#;
    let mut config = flows(&format!("{}, {times}", limited("pass")), &[0, 1]);
    // A second proxy further on takes the passed connection for one with its stack.
    let passed = run(&config, 1).expect("valid").flows[1].clone();
    assert_eq!((counts(&passed).unsplit, counts(&passed).timeouts), (1, 0));
    config.flows[1].proxies.clear();
    let whole = run(&config, 1).expect("valid").flows[1].clone();
    let same = FlowSummary {
        proxy_held_max_bytes: None,
        proxy_stored_max_bytes: None,
        proxy_stored_mean_bytes: None,
        proxy_lost_bytes: None,
        proxy_corrupted_bytes: None,
        proxy_counts: None,
        ..passed
    };
    assert_eq!(same, whole);
    assert!(whole.rtt_mean_ns >= Some(40_000_000), "end to end");
}

#[test]
fn a_proxy_behind_one_that_passes_a_connection_splits_it() {
    let mut config = flows(&limited("pass"), &[0, 1]);
    config.path.nodes.insert(2, "q".into());
    let link = config.path.links[1].clone();
    config.path.links.push(link);
    for flow in &mut config.flows {
        let mut second = flow.proxies[0].clone();
        (second.node, second.limit) = ("q".into(), None);
        flow.proxies.push(second);
    }
    let summary = run(&config, 1).expect("valid");
    for flow in &summary.flows {
        assert!(flow.completed && flow.delivered_bytes == 20_000, "{flow:?}");
    }
    assert_eq!(
        summary
            .flows
            .iter()
            .map(|flow| counts(flow).unsplit)
            .sum::<u64>(),
        1
    );
    let [split, passed] = [0, 1].map(|i| summary.flows[i].rtt_mean_ns.expect("sampled"));
    assert!((20_000_000..21_000_000).contains(&split), "{split}");
    assert!((40_000_000..41_000_000).contains(&passed), "{passed}");
}

/// Legs as a tap knows them when the first SYN onward leaves, and the number of that leg.
#[derive(Default)]
struct Parts(Vec<Leg>, Option<(u16, Leg)>);

impl Tap for Parts {
    fn event(&mut self, _now: Nanos, event: Event<'_>) {
        if let Event::Sent(segment) = event
            && segment.has(flags::SYN)
            && segment.leg == 3
        {
            self.1.get_or_insert((segment.leg, self.0[3]));
        }
    }

    fn leg_changes(&mut self, number: u16, leg: &Leg) {
        self.0[usize::from(number)] = *leg;
    }
}

#[test]
fn the_parts_of_a_connection_that_passes_unsplit_have_its_parameters_before_its_syn_leaves() {
    let mut config = flows(&limited("pass"), &[0, 1]);
    // The window scale that the receiver of a split connection onward would announce.
    for proxy in config.flows.iter_mut().flat_map(|flow| &mut flow.proxies) {
        let stack = proxy.stack.as_mut().expect("it has one");
        stack.overrides.receive_buffer_bytes = Some(100_000_000);
    }
    let mut parts = Parts::default();
    let mut world = World::new(&config, 1, &mut parts).expect("valid");
    world.introduce(|parts, legs| parts.0 = legs.to_vec());
    let before = world.legs().to_vec();
    assert!(before[3].wscale > before[2].wscale && before[3].isn != before[2].isn);
    world.run(&AtomicBool::new(false)).expect("not interrupted");
    let (_, onward) = parts.1.expect("the SYN went on");
    let own = |leg: &Leg| (leg.isn, leg.params.smss_bytes);
    assert_eq!(own(&onward), own(&before[2]));
    // The window is that of the end, whose stack is the one upstream.
    assert_eq!(onward.wscale, parts.0[2].wscale);
    assert!(onward.wscale < before[3].wscale);
    // The other flow was split.
    assert_eq!(parts.0[..2], before[..2]);
}

#[test]
fn a_spoofing_agent_behind_an_unsplit_connection_counts_in_its_segments() {
    let mut config = flows(&limited("pass"), &[0, 1]);
    config.path.nodes.insert(2, "q".into());
    let link = config.path.links[1].clone();
    config.path.links.push(link);
    let agent = r#"{"node": "q", "kind": "spoofing", "receive_buffer": {"pkts": 1}}"#;
    for flow in &mut config.flows {
        let agent = serde_json::from_str(agent).expect("well-formed");
        flow.proxies.push(agent);
    }
    let summary = run(&config, 1).expect("valid");
    let stored = summary.flows.iter().map(|flow| {
        assert!(flow.completed, "{flow:?}");
        let passed = counts(flow).unsplit == 1;
        (passed, flow.proxy_stored_max_bytes)
    });
    // One full segment of each connection: 700 octets onward from the proxy, and 1000 end to end.
    let stored: Vec<_> = stored.collect();
    assert!(stored.contains(&(true, Some(1000))), "{stored:?}");
}

#[test]
fn a_proxy_that_fails_keeps_what_passed_it_unsplit_where_it_is() {
    let mut config = flows(&limited("pass"), &[0, 1]);
    // The first six segments arrive at 61 ms, the next ones would at 101 ms.
    config.flows[1].proxies[0].faults =
        serde_json::from_str(r#"[{"at_ns": 75000000, "kind": "failure"}]"#).expect("well-formed");
    config.duration_ns = 3_000_000_000;
    let flow = run(&config, 1).expect("valid").flows[1].clone();
    assert_eq!((flow.delivered_bytes, flow.completed), (6000, false));
    assert_eq!(flow.proxy_lost_bytes, Some(0));
}

#[test]
fn a_refused_connection_is_refused_again_when_the_reset_was_lost() {
    let mut config = flows(&limited("refuse"), &[0, 1, 5000]);
    // The first packet back is the SYN-ACK of the first flow, the second one the reset.
    let back = &mut config.path.links[0].reverse;
    back.loss = serde_json::from_str(
        r#"{"kind": "trace", "mode": "replayed", "positions": [1], "known_pkts": 1000000, "block_pkts": 1, "late": []}"#,
    )
    .expect("well-formed");
    back.loss_applies_to = hindflight_engine::LossScope::All;
    let summary = run(&config, 1).expect("valid");
    let [first, second, third] = &summary.flows[..] else {
        panic!("three flows");
    };
    assert!(first.completed && third.completed);
    // The place is free when the SYN comes again after a second.
    assert_eq!((second.established_ns, counts(second).refused), (None, 1));
    let reset = second.reset_ns.expect("it was reset");
    assert!((1_011_000_000..1_100_000_000).contains(&reset), "{reset}");
    assert_eq!(second.proxy_lost_bytes, Some(0));
}

#[test]
fn an_idle_connection_is_reset_and_makes_room() {
    let idle = format!(r#"{}, "idle_timeout_ns": 300000000"#, limited("refuse"));
    let mut config = flows(&idle, &[0, 2000]);
    // The first one writes for 100 ms and then not for 10 s; it does not close before.
    config.flows[0].size_bytes = None;
    config.flows[0].stack.close = Some(false);
    config.flows[0].application = serde_json::from_str(
        r#"{"kind": "on_off", "rate_bps": 800000, "on_ns": 100000000, "off_ns": 10000000000}"#,
    )
    .expect("well-formed");
    let summary = run(&config, 1).expect("valid");
    let [first, second] = &summary.flows[..] else {
        panic!("two flows");
    };
    assert_eq!((counts(first).timeouts, counts(second).timeouts), (1, 0));
    let reset = first.reset_ns.expect("it was reset") as f64 / 1e6;
    // The delayed ACK of the last segment is 200 ms later.
    assert!((600.0..700.0).contains(&reset), "{reset} ms");
    assert!(second.completed && counts(second).refused == 0);
    // Without the timeout its place stays taken.
    for proxy in config.flows.iter_mut().flat_map(|flow| &mut flow.proxies) {
        proxy.idle_timeout_ns = None;
    }
    let kept = run(&config, 1).expect("valid");
    assert_eq!(counts(&kept.flows[1]).refused, 1);
}

#[test]
fn a_connection_onward_that_nobody_answers_is_given_up_after_the_pending_time() {
    let mut config = flows(r#""pending_timeout_ns": 5000000000"#, &[0]);
    config.path.links[1].forward.loss =
        serde_json::from_str(r#"{"kind": "bernoulli", "per": 1.0}"#).expect("well-formed");
    config.path.links[1].forward.loss_applies_to = hindflight_engine::LossScope::All;
    let flow = run(&config, 1).expect("valid").flows[0].clone();
    assert_eq!(counts(&flow).timeouts, 1);
    assert_eq!(flow.reset_ns, Some(5_010_000_000));
    assert_eq!(flow.proxy_lost_bytes, Some(20_000));
}

/// Its sender writes until the reset reaches it: what is on its way then comes to a connection that is gone.
#[test]
fn what_a_connection_stored_before_its_reset_is_free_for_those_that_share_the_memory() {
    let shared = r#""receive_buffer": {"pkts": 20}, "pool": "p", "pending_timeout_ns": 100000000"#;
    let mut config = flows(shared, &[0, 2000]);
    let outage = r#"[{"at_ns": 0, "outage": true}, {"at_ns": 1000000000, "outage": false}]"#;
    config.path.links[1].forward.schedule = serde_json::from_str(outage).expect("well-formed");
    let writes =
        r#"{"kind": "on_off", "rate_bps": 800000, "on_ns": 1000000000, "off_ns": 10000000000}"#;
    config.flows[0].size_bytes = None;
    config.flows[0].stack.close = Some(false);
    config.flows[0].application = serde_json::from_str(writes).expect("well-formed");
    let (summary, text) = ladder::run_of(&config);
    assert_eq!(counts(&summary.flows[0]).timeouts, 1);
    let (_, gone) = text.split_once("RST").expect("a reset");
    assert!(
        gone.contains("up RST") && !gone.contains("up ack"),
        "{text}"
    );
    // The same with nothing before it.
    config.flows[0].start_ns = 20_000_000_000;
    let alone = run(&config, 1).expect("valid");
    assert!(alone.flows[1].completed);
    assert_eq!(summary.flows[1].duration_ns, alone.flows[1].duration_ns);
}

/// Half of the free memory, and of that an equal part for each connection that is open: the other one ends before 0.080.
#[test]
fn a_shared_memory_is_divided_by_the_connections_that_are_open() {
    let through = |starts: &[u64]| {
        let mut config = flows(r#""receive_buffer": {"pkts": 24}, "pool": "p""#, starts);
        for flow in &mut config.flows {
            flow.size_bytes = Some(3000);
        }
        let text = ladder::run_of(&config).1;
        let upstream = text.lines().filter(|line| line.contains(" up "));
        upstream.collect::<Vec<_>>().join("\n")
    };
    let alone = "0.010 up SYN ack 1 wnd 1
        0.030 up ack 1 wnd 12
        0.030 up ack 2 wnd 11
        0.050 up ack 3 wnd 11, ack 4 wnd 10, ack 4 wnd 10
        0.070 up FIN ack 4 wnd 12";
    assert_eq!(through(&[0]), alone.replace("\n        ", "\n"));
    let after_another = "0.020 up SYN ack 1 wnd 1
        0.040 up ack 1 wnd 5
        0.040 up ack 2 wnd 5
        0.060 up ack 3 wnd 4, ack 4 wnd 4, ack 4 wnd 4
        0.080 up ack 4 wnd 11, FIN ack 4 wnd 12";
    assert_eq!(through(&[10, 0]), after_another.replace("\n        ", "\n"));
}

#[test]
fn flows_that_a_limit_counts_together_agree_on_it() {
    let mut config = flows(&limited("pass"), &[0, 1]);
    let limit = config.flows[1].proxies[0].limit.as_mut().expect("limited");
    limit.max_connections = 2;
    let errors = config.validate().expect_err("1 and 2 connections");
    assert_eq!(
        errors.to_string(),
        r#"flows[1].proxies[0].limit: LimitDiffers { limit: "p" }"#
    );
}

/// RFC 9293 §3.8.6.1: the sender probes the closed window when its timer expires, 1 s where no round-trip time is known.
#[test]
fn the_senders_probe_makes_up_for_a_lost_window_update_of_a_proxy() {
    let flow = format!(r#""size_bytes": 2000, "stack": {{{STACK}}}"#);
    let mut config = config(&flow, r#""receive_buffer": {"pkts": 1}"#);
    // The ACK that closes the window arrives; the one behind it, which opens it again, does not.
    let second = r#"{"kind": "trace", "mode": "replayed", "positions": [1], "known_pkts": 1000}"#;
    let link = &mut config.path.links[0].reverse;
    link.loss = serde_json::from_str(second).expect("well-formed");
    link.loss_applies_to = LossScope::All;
    let (summary, got) = run_of(&config);
    let expected = "0.010 up ack 2 wnd 0
        0.010 on 1
        0.030 up ack 2 wnd 1
        1.030 up ack 2 wnd 1
        1.050 up ack 3 wnd 0
        1.050 on 2";
    let lines: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(got.trim_end(), lines.join("\n"));
    assert_eq!(summary.flows[0].delivered_bytes, 2000);
}

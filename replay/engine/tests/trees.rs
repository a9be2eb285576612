//! Links beside the path: flows over them, in both directions, and what they share.

use hindflight_engine::{Config, FlowSummary, RunSummary, run};

/// 200 packets of queue; with a loss process that only meets data if it has one.
fn direction(rate_bps: f64, delay_ms: u32) -> String {
    let queue = r#"{"kind": "drop_tail", "limit_pkts": 200}"#;
    format!(r#"{{"rate_bps": {rate_bps}, "delay_ns": {delay_ms}000000, "queue": {queue}}}"#)
}

fn link(ends: &str, rate_bps: f64, delay_ms: u32) -> String {
    let way = direction(rate_bps, delay_ms);
    format!(r#"{{"name": "l", {ends} "forward": {way}, "reverse": {way}}}"#)
}

fn config(nodes: &str, links: &[String], flows: &str) -> Config {
    let links = links.join(",");
    let text = format!(
        r#"{{"duration_ns": 30000000000, "path": {{"nodes": [{nodes}], "links": [{links}]}}, "flows": [{flows}]}}"#
    );
    serde_json::from_str(&text).expect("well-formed")
}

fn finished(config: &Config) -> RunSummary {
    run(config, 1).expect("a valid configuration")
}

fn flow(keys: &str) -> String {
    let stack = r#""profile": "linux", "variant": "cubic", "size_bytes": 3000000"#;
    format!(r#"{{"name": "f", {keys} {stack}}}"#)
}

/// The only flow of a run over a-b-c.
fn over_the_chain() -> FlowSummary {
    let links = [link("", 6e6, 2), link("", 3e6, 40)];
    let mut done = finished(&config(r#""a", "b", "c""#, &links, &flow("")));
    done.flows.remove(0)
}

#[test]
fn a_flow_over_links_of_its_own_is_one_over_a_chain_of_the_same_links() {
    // e-d-b-f has the links of a-b-c in the middle of it; e, d and f are joined in either direction.
    let own = [
        link("", 9e6, 1),
        link("", 9e6, 1),
        link(r#""from": "b", "to": "d","#, 6e6, 2),
        link(r#""from": "b", "to": "e","#, 3e6, 40),
    ];
    let nodes = r#""a", "b", "c", "d", "e""#;
    let done = finished(&config(nodes, &own, &flow(r#""from": "d", "to": "e","#)));
    assert_eq!(done.flows[0], over_the_chain());
}

#[test]
fn a_flow_backward_over_a_symmetric_chain_is_one_forward() {
    let links = [link("", 3e6, 40), link("", 6e6, 2)];
    let back = flow(r#""from": "c", "to": "a","#);
    let done = finished(&config(r#""a", "b", "c""#, &links, &back));
    assert_eq!(done.flows[0], over_the_chain());
}

#[test]
fn split_flows_cross_a_tree_in_both_directions_and_share_only_the_trunk() {
    // Two sources, a trunk of 4 Mbit/s, two sinks; proxies at both ends of the trunk.
    let links = [
        link("", 10e6, 1),
        link("", 4e6, 50),
        link("", 10e6, 1),
        link(r#""from": "u2", "to": "gw","#, 10e6, 1),
        link(r#""from": "ground", "to": "k2","#, 10e6, 1),
    ];
    let nodes = r#""u1", "gw", "ground", "k1", "u2", "k2""#;
    let ends = |from: &str, to: &str, between: [&str; 2]| {
        let [one, two] = between;
        // Data backward wait for ACKs behind the data forward: RTT 0.7 s, for which the caches must be large enough.
        let memory = r#""receive_buffer": {"pkts": 2000}"#;
        let proxies = format!(r#"[{{"node": "{one}", {memory}}}, {{"node": "{two}", {memory}}}]"#);
        let endless = r#""profile": "linux", "variant": "cubic""#;
        format!(
            r#"{{"name": "f", "from": "{from}", "to": "{to}", "proxies": {proxies}, {endless}}}"#
        )
    };
    let forth = ["gw", "ground"];
    let flows = [
        ends("u1", "k1", forth),
        ends("u2", "k2", forth),
        ends("k2", "u1", ["ground", "gw"]),
    ];
    let done = finished(&config(nodes, &links, &flows.join(",")));
    let mbps: Vec<f64> = done
        .flows
        .iter()
        .map(|flow| flow.goodput_bps / 1e6)
        .collect();
    let forth = mbps[0] + mbps[1];
    assert!((3.4..=4.0).contains(&forth), "the trunk forward: {mbps:?}");
    // Were the trunk shared by its directions, all three would get 4 Mbit/s together.
    assert!(
        mbps[2] <= 4.0 && forth + mbps[2] > 6.0,
        "the trunk backward is not shared: {mbps:?}"
    );
    assert!(mbps[0] > 1.0 && mbps[1] > 1.0, "{mbps:?}");
}

#[test]
fn losses_of_the_direction_that_its_data_use_hit_a_flow_backward() {
    let lossy = r#""loss": {"kind": "bernoulli", "per": 0.02}"#;
    let one = format!(
        r#"{{"name": "l", "forward": {{"delay_ns": 1000000}}, "reverse": {{"delay_ns": 1000000, {lossy}}}}}"#
    );
    let forth = finished(&config(
        r#""a", "b""#,
        std::slice::from_ref(&one),
        &flow(""),
    ));
    let back = finished(&config(
        r#""a", "b""#,
        &[one],
        &flow(r#""from": "b", "to": "a","#),
    ));
    assert_eq!(forth.flows[0].links.channel_losses, 0);
    assert!(
        back.flows[0].links.channel_losses > 20,
        "{:?}",
        back.flows[0]
    );
}

/// `count` flows of 60 s from sources of their own through a proxy at the gateway that shares `pkts` packets among them, over a
/// trunk of 1 Mbit/s and 250 ms each way: goodput of each in kbit/s, and the maximum that any of them stored.
fn through_shared_memory(count: usize, pkts: u32) -> (Vec<f64>, u64) {
    through_memory(
        count,
        &format!(r#""receive_buffer": {{"pkts": {pkts}}}, "pool": "gateway""#),
    )
}

/// The same with a proxy of these keys.
fn through_memory(count: usize, memory: &str) -> (Vec<f64>, u64) {
    let mut links = vec![link("", 1e6, 1), link("", 1e6, 250)];
    let mut nodes = vec![
        r#""s0""#.to_owned(),
        r#""gw""#.to_owned(),
        r#""sink""#.to_owned(),
    ];
    for i in 1..count {
        links.push(link(&format!(r#""from": "s{i}", "to": "gw","#), 1e6, 1));
        nodes.push(format!(r#""s{i}""#));
    }
    let flows: Vec<String> = (0..count)
        .map(|i| {
            let proxies = format!(r#"[{{"node": "gw", {memory}}}]"#);
            let keys = r#""to": "sink", "profile": "ns2", "variant": "newreno""#;
            let stack = r#""stack": {"receive_buffer_bytes": 1000000}"#;
            format!(r#"{{"name": "f", "from": "s{i}", "proxies": {proxies}, {keys}, {stack}}}"#)
        })
        .collect();
    let mut config = config(&nodes.join(","), &links, &flows.join(","));
    config.duration_ns = 60_000_000_000;
    let done = finished(&config);
    let stored = done
        .flows
        .iter()
        .filter_map(|flow| flow.proxy_stored_max_bytes)
        .max();
    let kbps = done
        .flows
        .iter()
        .map(|flow| flow.goodput_bps / 1e3)
        .collect();
    (kbps, stored.unwrap_or(0))
}

#[test]
fn shared_memory_carries_about_the_same_whoever_uses_it() {
    // The pipe is 42 packets of 1000 octets; a packet over the first hop needs a few more.
    let alone = through_shared_memory(1, 60).0[0];
    assert!(alone > 850.0, "{alone}");
    for count in [2, 5, 10] {
        let (each, stored) = through_shared_memory(count, 60);
        let sum: f64 = each.iter().sum();
        assert!(
            (sum / alone - 1.0).abs() < 0.1,
            "{count}: {each:?} instead of {alone}"
        );
        assert!(stored <= 60_000, "{stored}");
    }
    // Alone, a connection has all of it from the start.
    let own = through_memory(1, r#""receive_buffer": {"pkts": 60}"#).0[0];
    assert!((alone / own - 1.0).abs() < 0.01, "{alone} instead of {own}");
    // A packet for each: slow, but every connection progresses.
    let (each, _) = through_shared_memory(10, 10);
    assert!(each.iter().all(|&kbps| kbps > 5.0), "{each:?}");
}

#[test]
fn shared_memory_needs_a_packet_for_each_connection_and_one_size() {
    let proxy = |pkts: u32| {
        format!(
            r#""proxies": [{{"node": "b", "receive_buffer": {{"pkts": {pkts}}}, "pool": "p"}}],"#
        )
    };
    let refused = |sizes: [u32; 2]| {
        let links = [link("", 1e6, 1), link("", 1e6, 1)];
        let flows = sizes.map(|pkts| flow(&proxy(pkts))).join(",");
        let config = config(r#""a", "b", "c""#, &links, &flows);
        config.validate().map_err(|errors| errors.to_string())
    };
    assert_eq!(refused([2, 2]), Ok(()));
    let small = refused([1, 1]).expect_err("two connections, one packet");
    assert!(
        small.starts_with("flows[0].proxies[0].receive_buffer: PoolTooSmall { connections: 2,"),
        "{small}"
    );
    let differs = refused([2, 3]).expect_err("two sizes");
    assert_eq!(
        differs,
        r#"flows[0].proxies[0].pool: PoolDiffers { pool: "p" }"#
    );
}

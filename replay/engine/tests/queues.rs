//! Queue disciplines at work: whole runs in which each must show what it is for.

use hindflight_engine::{Config, FlowSummary, RunSummary, run};

const DROP_TAIL: &str = r#"{"kind": "drop_tail", "limit_pkts": 200}"#;

struct Flow {
    variant: &'static str,
    stack: &'static str,
    start_s: u32,
    dscp: u8,
}

const SACK: Flow = Flow {
    variant: "sack",
    stack: "",
    start_s: 0,
    dscp: 0,
};

/// Greedy flows over 10 Mbit/s and 50 ms of round trip behind `queue`, for `seconds`.
fn runs(queue: &str, flows: &[Flow], seconds: u32) -> RunSummary {
    let flows: Vec<String> = flows
        .iter()
        .map(|flow| {
            let Flow {
                variant,
                stack,
                start_s,
                dscp,
            } = flow;
            let start_ns = u64::from(*start_s) * 1_000_000_000;
            format!(
                r#"{{"name": "f", "variant": "{variant}", "start_ns": {start_ns}, "dscp": {dscp}, "stack": {{{stack}}}}}"#
            )
        })
        .collect();
    let flows = flows.join(", ");
    let text = format!(
        r#"{{"duration_ns": {seconds}000000000, "path": {{"nodes": ["a", "b", "c"], "links": [
            {{"name": "ab", "forward": {{"delay_ns": 5000000}}, "reverse": {{"delay_ns": 5000000}}}},
            {{"name": "bc", "forward": {{"delay_ns": 20000000, "rate_bps": 10e6, "queue": {queue}}},
                "reverse": {{"delay_ns": 20000000}}}}]}},
            "flows": [{flows}]}}"#
    );
    let config: Config = serde_json::from_str(&text).expect("well-formed");
    run(&config, 1).expect("valid")
}

fn one(queue: &str) -> FlowSummary {
    runs(queue, &[SACK], 60).flows.remove(0)
}

fn delay_ms(flow: &FlowSummary) -> f64 {
    flow.rtt_mean_ns.expect("there were samples") as f64 / 1e6 - 50.0
}

#[test]
fn asked_for_packets_a_single_class_is_the_drop_tail_that_is_worked_out_ahead() {
    let worked_out = runs(DROP_TAIL, &[SACK, Flow { start_s: 3, ..SACK }], 30);
    assert!(worked_out.flows[0].links.queue_losses > 0);
    let asked = r#"{"kind": "priority", "limit_pkts": 200}"#;
    assert_eq!(
        runs(asked, &[SACK, Flow { start_s: 3, ..SACK }], 30),
        worked_out
    );
    let alone = r#"{"kind": "drr", "limit_pkts": 200}"#;
    assert_eq!(runs(alone, &[SACK], 30), runs(DROP_TAIL, &[SACK], 30));
}

#[test]
fn managed_queues_are_short_and_full_links_stay_full() {
    let full = one(DROP_TAIL);
    // 200 packets of 1.2 ms fill and half empty: far more than any target.
    assert!(delay_ms(&full) > 100.0, "{}", delay_ms(&full));
    // (queue, minimum and maximum delay in ms)
    for (queue, min, max) in [
        (r#"{"kind": "codel"}"#, 2.0, 25.0),
        (r#"{"kind": "pie"}"#, 5.0, 35.0),
        (
            r#"{"kind": "red", "min_pkts": 10, "max_pkts": 60}"#,
            5.0,
            50.0,
        ),
    ] {
        let flow = one(queue);
        let delay = delay_ms(&flow);
        assert!(delay > min && delay < max, "{queue}: {delay}");
        assert!(
            flow.links.aqm_losses > 0 && flow.links.queue_losses == 0,
            "{flow:?}"
        );
        assert!(
            flow.goodput_bps > 0.8 * full.goodput_bps,
            "{queue}: {flow:?}"
        );
    }
}

#[test]
fn with_ecn_queues_mark_and_nothing_is_sent_again() {
    let ecn = [Flow {
        stack: r#""ecn": true, "initial_ssthresh_pkts": 20"#,
        ..SACK
    }];
    for queue in [
        r#"{"kind": "codel"}"#,
        r#"{"kind": "pie"}"#,
        r#"{"kind": "red", "max_pkts": 40}"#,
    ] {
        let flow = &runs(queue, &ecn, 60).flows[0];
        assert!(flow.links.ecn_marks > 10, "{queue}: {flow:?}");
        assert_eq!(
            (flow.links.aqm_losses, flow.sender.retransmissions),
            (0, 0),
            "{queue}"
        );
        // One window decrease answers all marks of a round trip.
        let reductions = flow.sender.ecn_reductions;
        assert!(
            reductions > 5 && reductions <= flow.links.ecn_marks,
            "{queue}: {flow:?}"
        );
        let deaf = &runs(&queue.replace('}', r#", "ecn": false}"#), &ecn, 60).flows[0];
        assert_eq!(
            (deaf.links.ecn_marks, deaf.sender.ecn_reductions),
            (0, 0),
            "{queue}"
        );
        assert!(deaf.links.aqm_losses > 0, "{queue}");
    }
}

#[test]
fn round_robin_gives_equal_shares_where_drop_tail_does_not() {
    // Packets of 1500 and of 500 octets: in a common queue a place is a packet, whatever its size.
    let flows = [
        SACK,
        Flow {
            stack: r#""smss_bytes": 448"#,
            ..SACK
        },
    ];
    let share = |queue: &str| {
        let flows = runs(queue, &flows, 60).flows;
        flows[1].sender.segments_out as f64 * 500.0 / (flows[0].sender.segments_out as f64 * 1500.0)
    };
    let (common, fair) = (
        share(DROP_TAIL),
        share(r#"{"kind": "drr", "limit_pkts": 200}"#),
    );
    assert!(common < 0.6, "{common}");
    assert!((fair - 1.0).abs() < 0.06, "{fair}");
}

#[test]
fn the_urgent_class_has_the_link_to_itself() {
    let urgent = Flow {
        stack: r#""receive_buffer_bytes": 20000"#,
        dscp: 46,
        ..SACK
    };
    let alone = runs(DROP_TAIL, &[Flow { ..urgent }], 30).flows.remove(0);
    let share = |queue: &str| runs(queue, &[Flow { ..urgent }, SACK], 30).flows;
    let among = share(r#"{"kind": "priority", "limit_pkts": 200}"#);
    // It meets at most the packet in service: 1.2 ms on 50.
    assert!(among[0].goodput_bps > 0.95 * alone.goodput_bps, "{among:?}");
    assert!(among[0].goodput_bps + among[1].goodput_bps > 9e6);
    let common = share(DROP_TAIL);
    assert!(
        common[0].goodput_bps < 0.5 * alone.goodput_bps,
        "{common:?}"
    );
}

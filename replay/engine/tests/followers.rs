//! Runs that are known from the run of another variant, because a proxy next to the sender splits the connection.

use std::sync::atomic::AtomicBool;

use hindflight_engine::{Config, RunSummary, run, run_alike};

/// A flow over a short network without a rate, and over 20 Mbit/s and 40 ms with losses; a proxy is between both.
fn config(variant: &str, access_loss: f64, proxy: &str) -> Config {
    let json = format!(
        r#"{{"duration_ns": 30000000000, "path": {{"nodes": ["sender", "near", "receiver"], "links": [
            {{"name": "access", "forward": {{"delay_ns": 100000, "loss": {{"kind": "bernoulli", "per": {access_loss}}}}},
                "reverse": {{"delay_ns": 100000}}}},
            {{"name": "uplink", "forward": {{"rate_bps": 20e6, "delay_ns": 20000000,
                "loss": {{"kind": "bernoulli", "per": 0.001}}, "queue": {{"kind": "drop_tail", "limit_pkts": 80}}}},
                "reverse": {{"rate_bps": 20e6, "delay_ns": 20000000}}}}]}},
            "flows": [{{"name": "flow", "variant": "{variant}", "profile": "linux", "proxies": [
                {{"node": "near", "receive_buffer": {{"bytes": 200000}}, "advertise": "free" {proxy}}}]}}]}}"#
    );
    serde_json::from_str(&json).expect("well-formed")
}

const OWN_VARIANT: &str = r#", "variant": "bbr""#;

/// What is known of the runs of `others` from that of `first`.
fn known(first: &Config, others: &[Config]) -> Vec<Option<RunSummary>> {
    let others: Vec<&Config> = others.iter().collect();
    let (summary, known) =
        run_alike(first, &others, 5, &AtomicBool::new(false)).expect("valid configurations");
    assert_eq!(summary, run(first, 5).expect("valid"));
    known
}

#[test]
fn runs_behind_a_proxy_next_to_the_sender_are_those_of_another_variant() {
    let first = config("linux-reno", 0.0, OWN_VARIANT);
    let others = ["newreno", "sack"].map(|name| config(name, 0.0, OWN_VARIANT));
    for (other, known) in others.iter().zip(known(&first, &others)) {
        assert!(first.differs_in_first_sender(other));
        assert_eq!(known, Some(run(other, 5).expect("valid")));
    }
}

#[test]
fn a_variant_that_sends_anything_else_has_a_run_of_its_own() {
    let first = config("linux-reno", 0.001, OWN_VARIANT);
    let others = ["newreno", "cubic"].map(|name| config(name, 0.001, OWN_VARIANT));
    assert_eq!(known(&first, &others), [None, None]);
    let paced = config("bbr", 0.0, OWN_VARIANT);
    assert_eq!(
        known(&config("linux-reno", 0.0, OWN_VARIANT), &[paced]),
        [None]
    );
}

#[test]
fn only_the_variant_of_the_first_sender_may_differ() {
    let first = config("linux-reno", 0.0, OWN_VARIANT);
    assert!(!first.differs_in_first_sender(&first));
    assert!(!first.differs_in_first_sender(&config("cubic", 0.001, OWN_VARIANT)));
    let reads_slowly = r#", "variant": "bbr", "first_read_ns": 1000000"#;
    assert!(!first.differs_in_first_sender(&config("cubic", 0.0, reads_slowly)));
    // The proxy sends onward with the variant of the flow.
    let [ours, theirs] = ["linux-reno", "cubic"].map(|name| config(name, 0.0, ""));
    assert!(!ours.differs_in_first_sender(&theirs));
    // The receiver of one without SACK does not show what that of another would report.
    let [ours, theirs] = ["newreno", "linux-reno"].map(|name| config(name, 0.0, OWN_VARIANT));
    assert!(!ours.differs_in_first_sender(&theirs));
}

//! Errors as data: all of them, each at a place that the configuration has, in a form that another language reads.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::config::{Config, ConfigError, ConfigErrorKind, ConfigErrors, PathStep};

/// A configuration that uses every kind of object.
fn rich() -> Value {
    let change =
        json!({"at_ns": 5, "rate_bps": 1e6, "delay_ns": 7, "outage": false, "overlap_ns": 3});
    let chain = json!({"kind": "chain", "clock": "time", "states": [
        {"stay": {"exponential_ns": 9e7}}, {"per": 1.0, "stay": {"log_normal": {"median_ns": 1e7, "sigma": 1.0}}}],
        "jumps": [[0.0, 1.0], [1.0, 0.0]], "start": [1.0, 0.0]});
    let fec = json!({"kind": "fec", "over": chain, "block": 10, "repair": 2, "packet_ns": 1000, "in_order": false});
    let arq = json!({"kind": "arq", "over": {"kind": "ber", "ber": 1e-6}, "retries": 3, "try_ns": 9, "in_order": true});
    let trace = json!({"kind": "trace", "positions": [1, 4], "known_pkts": 9, "mode": "resampled", "block_pkts": 3,
        "late": [[2, 5], [3, 6]]});
    let timeline = json!({"kind": "timeline", "spans": [{"start_ns": 0, "per": 0.1}, {"start_ns": 9, "ber": 0.1}]});
    let direction = |loss: &Value, queue: Value| {
        json!({"rate_bps": 1e6, "delay_ns": 1000, "loss": loss, "queue": queue,
            "jitter": {"kind": "recorded", "delays_ns": [1, 2]}, "schedule": [change]})
    };
    let rate_trace = json!({"starts_ns": [0, 10], "rates_bps": [1e6, 0.0], "end_ns": 20});
    let traced = json!({"rate_trace": rate_trace, "delay_ns": 5, "loss": timeline,
        "queue": {"kind": "priority", "classes": [[46], [10, 12]]}});
    let stack = json!({"smss_bytes": 1000, "header_bytes": 40, "initial_window_pkts": 4, "initial_ssthresh_pkts": 90,
        "min_rto_ns": 200_000_000, "max_rto_ns": 60_000_000_000_u64, "initial_rto_ns": 1_000_000_000, "ecn": true,
        "ecn_beta": 0.8, "receive_buffer_bytes": 100_000, "receive_buffer_max_bytes": 200_000, "read_rate_bps": 1e6,
        "send_buffer_bytes": 50_000, "send_buffer_max_bytes": 90_000, "notsent_lowat_bytes": 5000, "retry_limit": 5,
        "syn_retry_limit": 4, "user_timeout_ns": 9_000_000_000_u64, "quick_start_bps": 1e6, "freeze_warning_ns": 100,
        "delayed_ack_timeout_ns": 40_000_000, "clock_granularity_ns": 1_000_000, "slow_start_limit_pkts": 2});
    let proxies = json!([{"node": "b", "receive_buffer": {"pkts": 50}, "send_buffer": {"bytes": 5000}, "variant": "cubic",
            "params": {"beta": 0.6}, "stack": {"profile": "rfc", "overrides": {"min_rto_ns": 300_000_000}},
            "handshake": "hold", "acknowledge": "on_delivery", "forward_window": "third", "advertise": "free",
            "faults": [{"at_ns": 5, "kind": "restart"}]}]);
    let on_off =
        json!({"kind": "on_off", "rate_bps": 1e6, "on_ns": 5000, "off_ns": 10, "write_bytes": 100});
    let pages = json!({"kind": "pages", "page_bytes": 100, "think_ns": 1, "request_bytes": 100, "pages": 3});
    let stream = json!({"kind": "stream", "rate_bps": 1e6, "write_every_ns": 5000, "startup_ns": 1, "resume_ns": 1});
    let writes = json!({"kind": "writes", "at_ns": [0, 5], "bytes": [10, 20]});
    let flow = |name: &str, application: Value| json!({"name": name, "variant": "sack", "application": application});
    json!({
        "duration_ns": 1_000_000_000_u64,
        "path": {"nodes": ["a", "b", "c"], "links": [
            {"name": "ab", "forward": direction(&fec, json!({"kind": "red", "min_pkts": 5.0, "max_pkts": 9.0})),
             "reverse": direction(&arq, json!({"kind": "codel", "target_ns": 5_000_000, "interval_ns": 9_000_000}))},
            {"name": "bc", "forward": direction(&trace, json!({"kind": "pie", "alpha": 0.1, "update_ns": 5_000_000})),
             "reverse": traced}]},
        "flows": [
            {"name": "f", "variant": "hybla", "params": {"rtt_0": 0.025}, "dscp": 10, "start_ns": 5, "stack": stack,
             "proxies": proxies, "application": {"kind": "greedy", "write_bytes": 100, "first_write_ns": 9}},
            flow("g", on_off), flow("h", pages), flow("i", stream), flow("j", writes)],
        "datagrams": [{"name": "d", "packet_bytes": 100, "rate_bps": 1e5, "start_ns": 3, "stop_ns": 9, "dscp": 46,
            "bursts": {"on_ns": 5000, "off_ns": 5}}],
    })
}

fn errors_of(config: &Value) -> Option<Vec<ConfigError>> {
    let config: Config = serde_json::from_value(config.clone()).ok()?;
    let errors = config
        .validate()
        .map_or_else(ConfigErrors::into_vec, |()| Vec::new());
    Some(errors)
}

/// JSON pointers of all numbers.
fn numbers(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(pointer.to_owned()),
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                numbers(item, &format!("{pointer}/{i}"), found);
            }
        }
        Value::Object(keys) => {
            for (key, item) in keys {
                numbers(item, &format!("{pointer}/{key}"), found);
            }
        }
        _ => {}
    }
}

fn pointer(error: &ConfigError) -> String {
    let steps = error.path.0.iter().map(|step| match step {
        PathStep::Key(key) => format!("/{key}"),
        PathStep::Index(index) => format!("/{index}"),
    });
    steps.collect()
}

/// Extremes of every type, and a number that fits none.
fn extremes() -> Vec<Value> {
    let mut extremes: Vec<Value> = [0_u64, 1, 2, 255, 65_535, u64::from(u32::MAX), u64::MAX]
        .map(Value::from)
        .into();
    extremes.extend([-1.0, 0.0, 1e-300, 0.5, 1e300].map(Value::from));
    extremes
}

#[test]
fn a_configuration_with_every_kind_of_object_is_sound() {
    let errors = errors_of(&rich()).expect("well-formed");
    assert!(errors.is_empty(), "{errors:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The path of every error leads to a value of the configuration, or to a key that its object leaves out.
    #[test]
    fn whatever_the_numbers_are_nothing_panics_and_every_path_leads_to_a_value(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..5)
    ) {
        let (mut config, mut found) = (rich(), Vec::new());
        numbers(&config, "", &mut found);
        let extremes = extremes();
        for (place, value) in changes {
            let at: &String = place.get(&found);
            let place = config.pointer_mut(at).expect("found there");
            *place = value.get(&extremes).clone();
        }
        for error in errors_of(&config).into_iter().flatten() {
            let pointer = pointer(&error);
            let (owner, _) = pointer.rsplit_once('/').expect("no error stands at the root");
            let owner = config.pointer(owner);
            prop_assert!(owner.is_some_and(|owner| owner.is_object() || config.pointer(&pointer).is_some()), "{error:?}");
            prop_assert!(serde_json::to_value(&error).is_ok_and(|value| value["kind"].is_string()));
        }
    }
}

#[test]
fn every_error_is_reported_and_not_the_first_alone() {
    let mut config = rich();
    for (pointer, value) in [
        ("/duration_ns", json!(0)),
        ("/path/nodes/1", json!("a")),
        ("/path/links/0/forward/delay_ns", json!(u64::MAX)),
        ("/path/links/1/reverse/rate_trace/end_ns", json!(10)),
        ("/flows/0/params/rtt_0", json!("fast")),
        ("/flows/0/stack/min_rto_ns", json!(61_000_000_000_u64)),
        ("/flows/1/variant", json!("sackk")),
        ("/flows/4/application/bytes", json!([1])),
        ("/datagrams/0/packet_bytes", json!(28)),
    ] {
        *config.pointer_mut(pointer).expect("there") = value;
    }
    let errors = errors_of(&config).expect("well-formed");
    let pointers: Vec<String> = errors.iter().map(pointer).collect();
    for expected in [
        "/duration_ns",
        "/path/nodes/1",
        "/path/links/0/forward/delay_ns",
        "/path/links/1/reverse/rate_trace/starts_ns/1",
        "/flows/0/start_ns",
        "/flows/0/params/rtt_0",
        "/flows/0/stack/max_rto_ns",
        "/flows/1/variant",
        "/flows/4/application",
        "/datagrams/0/start_ns",
        "/datagrams/0/packet_bytes",
    ] {
        let count = pointers.iter().filter(|found| *found == expected).count();
        assert_eq!(count, 1, "{expected}: {pointers:?}");
    }
}

/// A list of a million wrong values is one error, not a million.
#[test]
fn a_list_reports_its_first_wrong_value() {
    let mut config = rich();
    config["path"]["links"][1]["forward"]["loss"]["positions"] = json!(vec![8; 1000]);
    let errors = errors_of(&config).expect("well-formed");
    let pointers: Vec<String> = errors.iter().map(pointer).collect();
    assert_eq!(pointers, ["/path/links/1/forward/loss/positions/1"]);
}

#[test]
fn errors_serialise_to_path_kind_and_fields() {
    let mut config = rich();
    config["duration_ns"] = json!(0);
    config["flows"][0]["params"] = json!({"rtt_0": 1e9, "rtt_1": 1.0});
    config["flows"][0]["stack"] = json!({"min_rto_ns": 61_000_000_000_u64});
    config["flows"][0]["proxies"] = json!([]);
    config["flows"][0]["application"] = json!({"kind": "greedy", "write_bytes": 100});
    config["flows"][1]["application"] =
        json!({"kind": "on_off", "rate_bps": 0.5, "on_ns": 5000, "off_ns": 10});
    let config: Config = serde_json::from_value(config).expect("well-formed");
    let errors = config.validate().expect_err("refused");
    let errors = serde_json::to_value(&errors).expect("plain values");
    let expected = json!([
        {"path": ["duration_ns"], "kind": "out_of_range",
         "fields": {"value": 0, "min": 1, "max": 2_592_000_000_000_000_u64}},
        {"path": ["flows", 0, "start_ns"], "kind": "out_of_range", "fields": {"value": 5, "min": 0, "max": 0}},
        {"path": ["flows", 0, "params", "rtt_0"], "kind": "parameter", "fields": {"variant": "hybla", "profile": "rfc",
         "problem": "out_of_range", "value": 1e9, "min": 0.001, "max": 10.0, "unit": "s"}},
        {"path": ["flows", 0, "params", "rtt_1"], "kind": "parameter", "fields": {"variant": "hybla", "profile": "rfc",
         "problem": "unknown", "nearest": "rtt_0", "known": errors[3]["fields"]["known"]}},
        {"path": ["flows", 0, "stack", "min_rto_ns"], "kind": "order", "fields": {"value": 61_000_000_000_u64,
         "must_be": "at_most", "other": "max_rto_ns", "other_value": 60_000_000_000_u64, "profile": "rfc"}},
        {"path": ["flows", 0, "application", "write_bytes"], "kind": "requires",
         "fields": {"key": "send_buffer_bytes"}},
        {"path": ["flows", 1, "application", "rate_bps"], "kind": "out_of_range",
         "fields": {"value": 0.5, "min": 8.0, "max": 1e13}},
        {"path": ["datagrams", 0, "start_ns"], "kind": "out_of_range", "fields": {"value": 3, "min": 0, "max": 0}},
    ]);
    assert_eq!(errors, expected);
}

/// A kind without fields is its name alone.
#[test]
fn an_error_without_fields_has_a_kind() {
    let error = ConfigErrors::one(
        crate::config::KeyPath::root("flows"),
        ConfigErrorKind::NoFlows,
    );
    let error = serde_json::to_value(&error).expect("plain values");
    assert_eq!(error, json!([{"path": ["flows"], "kind": "no_flows"}]));
}

/// What the calendar cannot hold is the first thing that is checked, and then the only one.
#[test]
fn too_many_flows_are_refused_before_anything_else() {
    let mut config: Config = serde_json::from_value(rich()).expect("well-formed");
    config.datagrams.clear();
    config.flows.truncate(2);
    config.flows.remove(0);
    config.flows[0].variant = "unknown".into();
    config.duration_ns = 0;
    // Two ends each, two links of two directions.
    for (flows, refused) in [(2045, false), (2046, false), (2047, true), (100_000, true)] {
        config.flows.resize(flows, config.flows[0].clone());
        let errors = config.validate().expect_err("no such variant").into_vec();
        let too_many = ConfigErrorKind::TooManySources {
            count: 2 * flows + 4,
            max: 4096,
        };
        assert_eq!(errors[0].kind == too_many, refused, "{flows}");
        assert_eq!(errors.len() == 1, refused, "{flows}");
    }
}

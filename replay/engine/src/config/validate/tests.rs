mod typed;

use super::*;

fn problem(change: &str, to: &str) -> String {
    let good = r#"{"duration_ns": 1000000000,
        "path": {"nodes": ["a", "b", "c"], "links": [
            {"name": "ab", "forward": {"delay_ns": 1000, "rate_bps": 1e6}, "reverse": {"delay_ns": 1000}},
            {"name": "bc", "forward": {"delay_ns": 1000}, "reverse": {"delay_ns": 1000}}]},
        "flows": [{"name": "f", "variant": "cubic", "proxies": [{"node": "b"}]}]}"#;
    assert!(good.contains(change), "{change}");
    let config: Config = serde_json::from_str(&good.replace(change, to)).expect("well-formed");
    let mut errors = config
        .validate()
        .map_or_else(ConfigErrors::into_vec, |()| Vec::new());
    errors.extend(config.ineffective_options());
    let first = errors.into_iter().next();
    first.map_or_else(String::new, |error| error.to_string())
}

#[test]
fn a_good_configuration_passes() {
    assert_eq!(problem("cubic", "cubic"), "");
}

#[test]
fn every_mistake_names_its_key() {
    for (change, to, expected) in [
        (
            "1e6",
            "-1",
            "path.links[0].forward.rate_bps: OutOfRange { value: Real(-1.0), min: Real(8.0), max: Real(10000000000000.0) }",
        ),
        (
            "\"cubic\"",
            "\"cubik\"",
            "flows[0].variant: UnknownVariant { name: \"cubik\", nearest: \"cubic\"",
        ),
        (
            "\"node\": \"b\"",
            "\"node\": \"c\"",
            "flows[0].proxies[0].node: NodeOutsideFlow { name: \"c\", nodes: [\"b\"] }",
        ),
        (
            "[\"a\", \"b\", \"c\"]",
            "[\"a\", \"b\"]",
            "path.links: LinkCount { nodes: 2, links: 2 }",
        ),
        (
            "[\"a\", \"b\", \"c\"]",
            "[\"a\", \"b\", \"a\"]",
            "path.nodes[2]: DuplicateNode { name: \"a\" }",
        ),
        (
            "1000000000",
            "0",
            "duration_ns: OutOfRange { value: Integer(0), min: Integer(1), max: Integer(2592000000000000) }",
        ),
        (
            "\"rate_bps\": 1e6",
            "\"loss\": {\"kind\": \"bernoulli\", \"per\": 1.5}",
            "path.links[0].forward.loss.per: OutOfRange { value: Real(1.5), min: Real(0.0), max: Real(1.0) }",
        ),
        (
            "\"rate_bps\": 1e6",
            "\"loss\": {\"kind\": \"trace\", \"positions\": [3, 3], \"known_pkts\": 9, \"mode\": \"replayed\"}",
            "path.links[0].forward.loss.positions[1]: NotAscending { value: Integer(3) }",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"params\": {\"betta\": 0.7}",
            "flows[0].params.betta: Parameter { variant: \"cubic\", profile: Rfc, problem: Unknown { nearest: \"beta\"",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"params\": {\"beta\": 1}",
            "flows[0].params.beta: Parameter { variant: \"cubic\", profile: Rfc, problem: OutOfRange { value: 1.0, min: 0.1, max: 0.99, unit: \"\" } }",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"newreno\", \"params\": {\"beta\": 0.7}",
            "flows[0].params.beta: Parameter { variant: \"newreno\", profile: Rfc, problem: NoParameters }",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"profile\": \"linux\", \"params\": {\"beta\": 0.7}",
            "flows[0].params.beta: Parameter { variant: \"cubic\", profile: Linux, problem: OtherProfiles { profiles: [\"rfc\", \"ns2\"] } }",
        ),
        (
            "\"node\": \"b\"",
            "\"node\": \"b\", \"params\": {\"beta\": 0.7}",
            "flows[0].proxies[0].params: ParametersWithoutVariant",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"newreno\", \"stack\": {\"recovery\": \"sack\"}",
            "flows[0].stack.recovery: FixedRecovery { variant: \"newreno\" }",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"application\": {\"kind\": \"greedy\", \"write_bytes\": 65536}",
            "flows[0].application.write_bytes: Requires { key: \"send_buffer_bytes\", value: None }",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"stack\": {\"send_buffer_max_bytes\": 65536}",
            "flows[0].stack.send_buffer_max_bytes: Requires { key: \"send_buffer_bytes\", value: None }",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"stack\": {\"notsent_lowat_bytes\": 65536}",
            "flows[0].stack.notsent_lowat_bytes: Requires { key: \"send_buffer_bytes\", value: None }",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"stack\": {\"send_buffer_bytes\": 9000, \"notsent_lowat_bytes\": 0}",
            "flows[0].stack.notsent_lowat_bytes: OutOfRange { value: Integer(0), min: Integer(1)",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"stack\": {\"send_buffer_bytes\": 9000, \"send_buffer_max_bytes\": 8999}",
            "flows[0].stack.send_buffer_max_bytes: Order { value: Integer(8999), must_be: AtLeast, other: \"send_buffer_bytes\", other_value: Integer(9000), profile: Some(Rfc) }",
        ),
    ] {
        let got = problem(change, to);
        assert!(got.starts_with(expected), "{got}\nexpected {expected}");
    }
}

#[test]
fn what_leaves_of_a_first_write_needs_writes() {
    let greedy = "\"application\": {\"kind\": \"greedy\", \"first_left_pkts\": 6}";
    assert_eq!(
        problem("\"variant\"", &format!("{greedy}, \"variant\"")),
        "flows[0].application.first_left_pkts: Requires { key: \"write_bytes\", value: None }"
    );
    assert_eq!(
        problem("\"node\"", "\"first_left_pkts\": 6, \"node\""),
        "flows[0].proxies[0].first_left_pkts: Requires { key: \"advertise\", value: None }"
    );
}

#[test]
fn of_a_first_write_a_part_leaves_and_a_part_does_not() {
    let greedy = |write_bytes: u32, pkts: u32| {
        let to = format!(
            "\"application\": {{\"kind\": \"greedy\", \"write_bytes\": {write_bytes}, \"first_left_pkts\": {pkts}}},
             \"stack\": {{\"send_buffer_bytes\": 100000, \"smss_bytes\": 1000}}, \"variant\""
        );
        problem("\"variant\"", &to)
    };
    let refused = |pkts: u32, max: u32| {
        format!(
            "flows[0].application.first_left_pkts: OutOfRange {{ value: Integer({pkts}), min: Integer(1), max: Integer({max}) }}"
        )
    };
    assert_eq!(greedy(4000, 0), refused(0, 3));
    assert_eq!(greedy(4000, 1), "");
    assert_eq!(greedy(4000, 3), "");
    assert_eq!(greedy(4000, 4), refused(4, 3));
    assert_eq!(greedy(4001, 4), "");
    assert_eq!(
        greedy(1000, 1),
        "flows[0].application.first_left_pkts: Conflicts { with: \"write_bytes\" }"
    );
    let relay = |pkts: u32| {
        let to = format!("\"advertise\": \"sockets\", \"first_left_pkts\": {pkts}, \"node\"");
        problem("\"node\"", &to)
    };
    assert_eq!(relay(1), "");
    assert!(relay(0).starts_with("flows[0].proxies[0].first_left_pkts: OutOfRange"));
}

/// An endless flow over a path without delay would send for ever at one instant.
#[test]
fn a_link_whose_schedule_takes_its_delay_away_needs_a_rate() {
    let link = "{\"delay_ns\": 1000}, \"reverse\": {\"delay_ns\": 1000}}]";
    let with = |rate: &str| {
        let schedule = "\"schedule\": [{\"at_ns\": 5, \"delay_ns\": 0}]";
        let to = format!(
            "{{\"delay_ns\": 1000, {rate} {schedule}}}, \"reverse\": {{\"delay_ns\": 0}}}}]"
        );
        problem(link, &to)
    };
    let expected = "path.links[1]: NoDelayOrRate";
    assert_eq!(with(""), expected);
    assert_eq!(with("\"rate_bps\": 1e6,"), "");
}

#[test]
fn not_a_number_is_out_of_every_range() {
    let found = Found::default();
    assert!(!found.root().within(f64::NAN, 0.0, 1.0));
    assert_eq!(found.count(), 1);
}

#[test]
fn mechanisms_that_contradict_other_options_name_their_key() {
    let stack = |profile: &str, given: &str| {
        let to =
            format!("\"variant\": \"cubic\", \"profile\": \"{profile}\", \"stack\": {{{given}}}");
        problem("\"variant\": \"cubic\"", &to)
    };
    for (profile, given, expected) in [
        (
            "ns2",
            "\"delayed_ack_after_slow_start\": true",
            "delayed_ack_after_slow_start: Requires { key: \"delayed_ack\", value: Some(true) }",
        ),
        ("rfc", "\"delayed_ack_after_slow_start\": true", ""),
        (
            "ns2",
            "\"fast_open\": true",
            "fast_open: Requires { key: \"handshake\", value: Some(true) }",
        ),
        ("rfc", "\"fast_open\": true", ""),
        (
            "ns2",
            "\"quick_start_bps\": 1e6",
            "quick_start_bps: Requires { key: \"handshake\", value: Some(true) }",
        ),
        ("rfc", "\"quick_start_bps\": 1e6", ""),
        (
            "rfc",
            "\"quick_start_bps\": 1",
            "quick_start_bps: OutOfRange { value: Real(1.0), min: Real(80000.0)",
        ),
        ("rfc", "\"quick_start_bps\": 80000", ""),
        (
            "rfc",
            "\"quick_start_bps\": 79999",
            "quick_start_bps: OutOfRange { value: Real(79999.0)",
        ),
        ("rfc", "\"freeze_warning_ns\": 1", ""),
        (
            "rfc",
            "\"freeze_warning_ns\": 0",
            "freeze_warning_ns: OutOfRange { value: Integer(0), min: Integer(1)",
        ),
    ] {
        let got = stack(profile, given);
        let key = if expected.is_empty() {
            ""
        } else {
            "flows[0].stack."
        };
        assert!(got.starts_with(&format!("{key}{expected}")), "{got}");
        assert_eq!(got.is_empty(), expected.is_empty(), "{got}");
    }
}

#[test]
fn of_two_contradicting_values_the_error_names_the_given_one_first() {
    let stack = |profile: &str, given: &str| {
        let to =
            format!("\"variant\": \"cubic\", \"profile\": \"{profile}\", \"stack\": {{{given}}}");
        problem("\"variant\": \"cubic\"", &to)
    };
    for (profile, given, expected) in [
        (
            "rfc",
            "\"min_rto_ns\": 300000000000",
            "min_rto_ns: Order { value: Integer(300000000000), must_be: AtMost, other: \"max_rto_ns\", other_value: Integer(60000000000), profile: Some(Rfc) }",
        ),
        (
            "rfc",
            "\"initial_rto_ns\": 100000000000",
            "initial_rto_ns: Order { value: Integer(100000000000), must_be: AtMost, other: \"max_rto_ns\", other_value: Integer(60000000000), profile: Some(Rfc) }",
        ),
        (
            "linux",
            "\"max_rto_ns\": 199000000",
            "max_rto_ns: Order { value: Integer(199000000), must_be: AtLeast, other: \"min_rto_ns\", other_value: Integer(200000000), profile: Some(Linux) }",
        ),
        ("linux", "\"max_rto_ns\": 200000000", ""),
        (
            "rfc",
            "\"receive_buffer_max_bytes\": 65536",
            "receive_buffer_max_bytes: Order { value: Integer(65536), must_be: AtLeast, other: \"receive_buffer_bytes\", other_value: Integer(16777216), profile: Some(Rfc) }",
        ),
        (
            "rfc",
            "\"receive_buffer_bytes\": 2895",
            "receive_buffer_bytes: BufferBelowTwoSegments { value: 2895, smss_bytes: 1448 }",
        ),
        ("rfc", "\"receive_buffer_bytes\": 2896", ""),
        (
            "rfc",
            "\"send_buffer_bytes\": 2",
            "send_buffer_bytes: BufferBelowTwoSegments { value: 2, smss_bytes: 1448 }",
        ),
        (
            "rfc",
            "\"smss_bytes\": 65000, \"header_bytes\": 120, \"timestamps\": true",
            "",
        ),
    ] {
        let got = stack(profile, given);
        let key = if expected.is_empty() {
            ""
        } else {
            "flows[0].stack."
        };
        assert_eq!(got, format!("{key}{expected}"));
    }
}

#[test]
fn options_without_effect_on_the_variant_name_their_key() {
    let problem = |variant: &str, given: &str| {
        let (name, profile) = variant.split_once(' ').unwrap_or((variant, "rfc"));
        let to =
            format!("\"variant\": \"{name}\", \"profile\": \"{profile}\", \"stack\": {{{given}}}");
        problem("\"variant\": \"cubic\"", &to)
    };
    let (probe, fixed) = ("\"tail_loss_probe\": true", "\"fixed_window_pkts\": 20");
    let (plus, hystart) = (
        "\"slow_start\": \"hystartpp\"",
        "\"slow_start\": \"hystart\"",
    );
    let with = |more: &str| format!("{fixed}, {more}");
    for (variant, given, expected) in [
        ("cubic", probe, "tail_loss_probe: NeedsRackPrr"),
        ("reno linux", probe, "tail_loss_probe: NeedsRackPrr"),
        ("cubic linux", probe, ""),
        ("cubic", &format!("{probe}, \"recovery\": \"rack_prr\""), ""),
        (
            "cubic linux",
            &format!("{probe}, \"sack\": false"),
            "tail_loss_probe: NeedsRackPrr",
        ),
        ("cubic", "\"tail_loss_probe\": false", ""),
        ("bbr", plus, "slow_start: OwnSlowStart"),
        ("vegas", plus, "slow_start: OwnSlowStart"),
        ("newreno ns2", plus, "slow_start: Ns2SlowStart"),
        ("vegas", hystart, "slow_start: OwnSlowStart"),
        ("newreno", hystart, ""),
        ("newreno", plus, ""),
        ("cubic ns2", plus, "slow_start: Ns2SlowStart"),
        (
            "bbr",
            fixed,
            "fixed_window_pkts: FixedWindowVariant { variant: \"bbr\"",
        ),
        (
            "cubic",
            fixed,
            "fixed_window_pkts: FixedWindowVariant { variant: \"cubic\", suitable: [\"reno\", \"newreno\", \"sack\", \"fack\", \
             \"freeze-tcp\", \"linux-reno\", \"aerotcp\", \"supertcp\"] }",
        ),
        ("aerotcp", fixed, ""),
        ("sack linux", &with("\"pacing\": true"), ""),
        (
            "sack",
            &with(hystart),
            "slow_start: Conflicts { with: \"fixed_window_pkts\" }",
        ),
        (
            "sack",
            &with("\"initial_window_pkts\": 4"),
            "initial_window_pkts: Conflicts { with: \"fixed_window_pkts\" }",
        ),
    ] {
        let got = problem(variant, given);
        let key = if expected.is_empty() {
            ""
        } else {
            "flows[0].stack."
        };
        let (option, kind) = expected.split_once(": ").unwrap_or_default();
        assert!(
            got.starts_with(&format!("{key}{option}")) && got.contains(kind),
            "{variant} {given}: {got}"
        );
        assert_eq!(
            got.is_empty(),
            expected.is_empty(),
            "{variant} {given}: {got}"
        );
    }
}

/// The error of option `given` for `variant`, a name and perhaps a profile.
fn refusal(variant: &str, given: &str) -> String {
    let (name, profile) = variant.split_once(' ').unwrap_or((variant, "rfc"));
    let to = format!("\"variant\": \"{name}\", \"profile\": \"{profile}\", \"stack\": {{{given}}}");
    problem("\"variant\": \"cubic\"", &to)
}

#[test]
fn options_of_slow_start_without_effect_are_refused() {
    let marks = "\"ecn_beta\": 0.9, \"ecn\": true";
    for (uses, ignores, given, why) in [
        ("cubic", "bbr", "\"pacing\": false", "AlwaysPaced"),
        ("vegas", "scps-tp", "\"pacing\": false", "AlwaysPaced"),
        (
            "hybla",
            "ledbat",
            "\"initial_ssthresh_pkts\": 8",
            "NoSsthresh",
        ),
        (
            "cubic",
            "hybla",
            "\"slow_start_limit_pkts\": 8",
            "OwnSlowStart",
        ),
        (
            "cubic",
            "supertcp",
            "\"initial_window_pkts\": 8",
            "OwnWindow",
        ),
        ("peach", "bbr3", marks, "IgnoresMarks"),
        ("peach", "aerotcp", marks, "IgnoresMarks"),
        ("cubic", "aerotcp", "\"min_rto_ns\": 3000000000", "OwnTimer"),
        (
            "cubic",
            "aerotcp linux",
            "\"rto_rule\": \"rfc6298\"",
            "OwnTimer",
        ),
    ] {
        let key = given[1..].split('"').next().unwrap_or("");
        assert_eq!(refusal(uses, given), "", "{uses} {given}");
        let name = ignores.split(' ').next().unwrap_or("");
        let got = refusal(ignores, given);
        let expected = format!("flows[0].stack.{key}: NoEffect {{ variant: \"{name}\"");
        assert!(
            got.starts_with(&expected) && got.contains(why),
            "{ignores} {given}: {got}"
        );
    }
}

#[test]
fn options_of_timer_and_recovery_without_effect_are_refused() {
    let syn = "\"syn_retry_limit\": 3";
    for (uses, ignores, given, why) in [
        (
            "cubic",
            "cubic linux",
            "\"clock_granularity_ns\": 9000000",
            "UnroundedTimer",
        ),
        (
            "newreno",
            "sack",
            "\"reset_timer_on_each_partial_ack\": true",
            "variant: \"sack\", recovery: \"sack\", reason: NeedsNewreno",
        ),
        (
            "newreno",
            "cubic",
            "\"limited_transmit\": false",
            "variant: \"cubic\", recovery: \"sack\", reason: NeedsDupacks",
        ),
        (
            "sack ns2",
            "bbr linux",
            "\"limited_transmit\": false",
            "variant: \"bbr\", recovery: \"rack_prr\", reason: NeedsDupacks",
        ),
        ("cubic", "aerotcp", "\"undo\": false", "NoUndo"),
        (
            "cubic linux",
            "cubic",
            "\"frto\": false",
            "NeedsUndoWithoutTimestamps",
        ),
        (
            "newreno ns2",
            "bbr ns2",
            "\"limited_transmit\": false",
            "variant: \"bbr\", recovery: \"sack\", reason: NeedsDupacks",
        ),
        (
            "fack ns2",
            "cubic ns2",
            "\"slow_start_limit_pkts\": 8",
            "Ns2IncreasePerAck",
        ),
        ("cubic", "cubic ns2", syn, "NoHandshake"),
        (
            "cubic",
            "newreno",
            "\"dsack\": true",
            "variant: \"newreno\", recovery: \"newreno\", reason: RecoveryWithoutSack",
        ),
    ] {
        let key = given[1..].split('"').next().unwrap_or("");
        assert_eq!(refusal(uses, given), "", "{uses} {given}");
        let got = refusal(ignores, given);
        assert!(
            got.starts_with(&format!("flows[0].stack.{key}: ")) && got.contains(why),
            "{ignores} {given}: {got}"
        );
    }
}

#[test]
fn an_option_needs_an_effect_on_one_leg_and_a_parameter_may_decide() {
    let ssthresh = "\"stack\": {\"initial_ssthresh_pkts\": 8}";
    let ledbat = |params: &str, proxy: &str| {
        let to = format!("\"variant\": \"ledbat\", \"params\": {{{params}}}, {ssthresh}, {proxy}");
        problem(
            "\"variant\": \"cubic\", \"proxies\": [{\"node\": \"b\"}]",
            &to,
        )
    };
    let relay = "\"proxies\": [{\"node\": \"b\"}]";
    assert!(ledbat("", relay).contains("NoSsthresh"));
    assert_eq!(ledbat("\"slow_start\": true", relay), "");
    let other = "\"proxies\": [{\"node\": \"b\", \"variant\": \"cubic\"}]";
    assert_eq!(ledbat("", other), "");
    assert_eq!(refusal("newreno", "\"dsack\": false"), "");
}

#[test]
fn a_recovery_that_reads_sack_blocks_needs_sack() {
    for variant in ["fack", "sack", "fack linux", "sack linux", "fack ns2"] {
        let name = variant.split(' ').next().unwrap_or(variant);
        let says = format!("flows[0].stack.recovery: FixedRecovery {{ variant: \"{name}\" }}");
        assert_eq!(refusal(variant, "\"sack\": false"), says);
    }
    for variant in ["reno", "newreno", "cubic", "reno linux", "cubic ns2"] {
        assert_eq!(refusal(variant, "\"sack\": false"), "", "{variant}");
    }
}

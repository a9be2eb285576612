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
            "path.links[0].forward.rate_bps: -1 bit/s is not between 8 bit/s and 10000 Gbit/s",
        ),
        (
            "\"cubic\"",
            "\"cubik\"",
            "flows[0].variant: no variant \"cubik\"; did you mean \"cubic\"?",
        ),
        (
            "\"node\": \"b\"",
            "\"node\": \"c\"",
            "flows[0].proxies[0].node: \"c\" is no node between the ends",
        ),
        (
            "[\"a\", \"b\", \"c\"]",
            "[\"a\", \"b\"]",
            "path.links: 2 nodes need 1 links, not 2",
        ),
        (
            "[\"a\", \"b\", \"c\"]",
            "[\"a\", \"b\", \"a\"]",
            "path.nodes[2]: node \"a\" is named twice",
        ),
        (
            "1000000000",
            "0",
            "duration_ns: 0 ns is not between 1 ns and 720 h",
        ),
        (
            "\"rate_bps\": 1e6",
            "\"loss\": {\"kind\": \"bernoulli\", \"per\": 1.5}",
            "path.links[0].forward.loss.per: 1.5 is not between 0 and 1",
        ),
        (
            "\"rate_bps\": 1e6",
            "\"loss\": {\"kind\": \"trace\", \"positions\": [3, 3], \"known_pkts\": 9, \"mode\": \"replayed\"}",
            "path.links[0].forward.loss.positions[1]: 3 does not ascend",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"params\": {\"betta\": 0.7}",
            "flows[0].params.betta: no such parameter; did you mean \"beta\"?",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"params\": {\"beta\": 1}",
            "flows[0].params.beta: 1 is not between 0.1 and 0.99 (cubic under rfc)",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"newreno\", \"params\": {\"beta\": 0.7}",
            "flows[0].params.beta: the variant has no parameters (newreno under rfc)",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"profile\": \"linux\", \"params\": {\"beta\": 0.7}",
            "flows[0].params.beta: cubic has parameters under rfc, ns2 alone, none under linux",
        ),
        (
            "\"node\": \"b\"",
            "\"node\": \"b\", \"params\": {\"beta\": 0.7}",
            "flows[0].proxies[0].params: a proxy that names no variant takes the flow's",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"newreno\", \"stack\": {\"recovery\": \"sack\"}",
            "flows[0].stack.recovery: variant \"newreno\" fixes its own recovery",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"application\": {\"kind\": \"greedy\", \"write_bytes\": 65536}",
            "flows[0].application.write_bytes: means nothing without send_buffer_bytes",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"stack\": {\"send_buffer_max_bytes\": 65536}",
            "flows[0].stack.send_buffer_max_bytes: means nothing without send_buffer_bytes",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"stack\": {\"notsent_lowat_bytes\": 65536}",
            "flows[0].stack.notsent_lowat_bytes: means nothing without send_buffer_bytes",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"stack\": {\"send_buffer_bytes\": 9000, \"notsent_lowat_bytes\": 0}",
            "flows[0].stack.notsent_lowat_bytes: 0 B is not between 1 B and",
        ),
        (
            "\"variant\": \"cubic\"",
            "\"variant\": \"cubic\", \"stack\": {\"send_buffer_bytes\": 9000, \"send_buffer_max_bytes\": 8999}",
            "flows[0].stack.send_buffer_max_bytes: 8999 B is less than send_buffer_bytes, which is 9 kB (rfc)",
        ),
    ] {
        let got = problem(change, to);
        assert!(got.starts_with(expected), "{got}\nexpected {expected}");
    }
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
    let expected = "path.links[1]: a link needs a delay or a rate in one direction at least";
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
            "delayed_ack_after_slow_start: means nothing without delayed_ack = true",
        ),
        ("rfc", "\"delayed_ack_after_slow_start\": true", ""),
        (
            "ns2",
            "\"quick_start_bps\": 1e6",
            "quick_start_bps: means nothing without handshake = true",
        ),
        ("rfc", "\"quick_start_bps\": 1e6", ""),
        (
            "rfc",
            "\"quick_start_bps\": 1",
            "quick_start_bps: 1 bit/s is not between 80 kbit/s and",
        ),
        ("rfc", "\"quick_start_bps\": 80000", ""),
        (
            "rfc",
            "\"quick_start_bps\": 79999",
            "quick_start_bps: 79.999 kbit/s is not",
        ),
        ("rfc", "\"freeze_warning_ns\": 1", ""),
        (
            "rfc",
            "\"freeze_warning_ns\": 0",
            "freeze_warning_ns: 0 ns is not between 1 ns",
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
            "min_rto_ns: 300 s is more than max_rto_ns, which is 60 s (rfc)",
        ),
        (
            "rfc",
            "\"initial_rto_ns\": 100000000000",
            "initial_rto_ns: 100 s is more than max_rto_ns, which is 60 s (rfc)",
        ),
        (
            "linux",
            "\"max_rto_ns\": 199000000",
            "max_rto_ns: 199 ms is less than min_rto_ns, which is 200 ms (linux)",
        ),
        ("linux", "\"max_rto_ns\": 200000000", ""),
        (
            "rfc",
            "\"receive_buffer_max_bytes\": 65536",
            "receive_buffer_max_bytes: 64 KiB is less than receive_buffer_bytes, which is 16 MiB (rfc)",
        ),
        (
            "rfc",
            "\"receive_buffer_bytes\": 2895",
            "receive_buffer_bytes: 2895 B is less than two segments of 1448 B",
        ),
        ("rfc", "\"receive_buffer_bytes\": 2896", ""),
        (
            "rfc",
            "\"send_buffer_bytes\": 2",
            "send_buffer_bytes: 2 B is less than two segments of 1448 B",
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
    let (probe, held) = ("\"tail_loss_probe\": true", "\"fixed_window_pkts\": 20");
    let (plus, hystart) = (
        "\"slow_start\": \"hystartpp\"",
        "\"slow_start\": \"hystart\"",
    );
    let with = |more: &str| format!("{held}, {more}");
    for (variant, given, expected) in [
        (
            "cubic",
            probe,
            "tail_loss_probe: needs recovery rack_prr with sack",
        ),
        (
            "reno linux",
            probe,
            "tail_loss_probe: needs recovery rack_prr",
        ),
        ("cubic linux", probe, ""),
        ("cubic", &format!("{probe}, \"recovery\": \"rack_prr\""), ""),
        (
            "cubic linux",
            &format!("{probe}, \"sack\": false"),
            "tail_loss_probe: needs recovery rack_prr with sack",
        ),
        ("cubic", "\"tail_loss_probe\": false", ""),
        (
            "bbr",
            plus,
            "slow_start: variant \"bbr\" has a start of its own",
        ),
        (
            "vegas",
            plus,
            "slow_start: variant \"vegas\" has a start of its own",
        ),
        (
            "newreno ns2",
            plus,
            "slow_start: profile \"ns2\" starts as ns-2",
        ),
        (
            "vegas",
            hystart,
            "slow_start: variant \"vegas\" has a start of its own",
        ),
        ("newreno", hystart, ""),
        ("newreno", plus, ""),
        (
            "cubic ns2",
            plus,
            "slow_start: profile \"ns2\" starts as ns-2",
        ),
        (
            "bbr",
            held,
            "fixed_window_pkts: nothing is left of variant \"bbr\"",
        ),
        (
            "cubic",
            held,
            "fixed_window_pkts: nothing is left of variant \"cubic\" over a window that nothing moves; \
             take one of reno, newreno, sack, fack, freeze-tcp, linux-reno, aerotcp, supertcp",
        ),
        ("aerotcp", held, ""),
        ("sack linux", &with("\"pacing\": true"), ""),
        (
            "sack",
            &with(hystart),
            "slow_start: means nothing over a fixed_window_pkts",
        ),
        (
            "sack",
            &with("\"initial_window_pkts\": 4"),
            "initial_window_pkts: means nothing over a fixed_window_pkts",
        ),
    ] {
        let got = problem(variant, given);
        let key = if expected.is_empty() {
            ""
        } else {
            "flows[0].stack."
        };
        assert!(
            got.starts_with(&format!("{key}{expected}")),
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
        ("cubic", "bbr", "\"pacing\": false", "paces"),
        ("vegas", "scps-tp", "\"pacing\": false", "paces"),
        ("hybla", "ledbat", "\"initial_ssthresh_pkts\": 8", "has no"),
        (
            "cubic",
            "hybla",
            "\"slow_start_limit_pkts\": 8",
            "has a start",
        ),
        (
            "cubic",
            "supertcp",
            "\"initial_window_pkts\": 8",
            "has a window",
        ),
        ("peach", "bbr3", marks, "keeps its window"),
        ("peach", "aerotcp", marks, "keeps its window"),
        (
            "cubic",
            "aerotcp",
            "\"min_rto_ns\": 3000000000",
            "has a timer",
        ),
        (
            "cubic",
            "aerotcp linux",
            "\"rto_rule\": \"rfc6298\"",
            "has a timer",
        ),
    ] {
        let key = given[1..].split('"').next().unwrap_or("");
        assert_eq!(refusal(uses, given), "", "{uses} {given}");
        let name = ignores.split(' ').next().unwrap_or("");
        let got = refusal(ignores, given);
        let expected = format!("flows[0].stack.{key}: variant \"{name}\" {why}");
        assert!(got.starts_with(&expected), "{ignores} {given}: {got}");
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
            "means nothing to rto_rule linux",
        ),
        (
            "newreno",
            "sack",
            "\"reset_timer_on_each_partial_ack\": true",
            "needs recovery newreno; variant \"sack\" has sack",
        ),
        (
            "newreno",
            "cubic",
            "\"limited_transmit\": false",
            "needs a recovery that counts duplicate ACKs; variant \"cubic\" has sack",
        ),
        (
            "sack ns2",
            "bbr linux",
            "\"limited_transmit\": false",
            "needs a recovery that counts duplicate ACKs; variant \"bbr\" has rack_prr",
        ),
        (
            "cubic",
            "aerotcp",
            "\"undo\": false",
            "variant \"aerotcp\" has a recovery that takes nothing back",
        ),
        (
            "cubic linux",
            "cubic",
            "\"frto\": false",
            "means nothing without undo, nor beside timestamps",
        ),
        (
            "newreno ns2",
            "bbr ns2",
            "\"limited_transmit\": false",
            "needs a recovery that counts duplicate ACKs; variant \"bbr\" has sack",
        ),
        (
            "fack ns2",
            "cubic ns2",
            "\"slow_start_limit_pkts\": 8",
            "profile \"ns2\" grows by one segment per ACK",
        ),
        ("cubic", "cubic ns2", syn, "means nothing without handshake"),
        (
            "cubic",
            "newreno",
            "\"dsack\": true",
            "is a SACK block, and variant \"newreno\" has recovery newreno, which reads none",
        ),
    ] {
        let key = given[1..].split('"').next().unwrap_or("");
        assert_eq!(refusal(uses, given), "", "{uses} {given}");
        let got = refusal(ignores, given);
        assert!(
            got.starts_with(&format!("flows[0].stack.{key}: {why}")),
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
    assert!(ledbat("", relay).contains("has no slow start threshold"));
    assert_eq!(ledbat("\"slow_start\": true", relay), "");
    let other = "\"proxies\": [{\"node\": \"b\", \"variant\": \"cubic\"}]";
    assert_eq!(ledbat("", other), "");
    assert_eq!(refusal("newreno", "\"dsack\": false"), "");
}

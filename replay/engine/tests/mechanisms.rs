//! What a stack may have besides its variant (`docs/mechanisms.md`): whole runs over a path of 100 ms without a queue,
//! counted round trip by round trip.

use std::sync::atomic::AtomicBool;

use hindflight_engine::{
    Config, Direction, Event, FlowSummary, MILLISECOND, Nanos, Segment, Tap, VARIANTS, World,
    ineffective_in_all, run,
};

/// A path of 100 ms and a flow with this stack, for so many milliseconds.
fn config(ms: u64, stack: &str) -> Config {
    let text = format!(
        r#"{{"duration_ns": {ms}000000, "path": {{"nodes": ["a", "b"], "links": [
            {{"name": "ab", "forward": {{"delay_ns": 50000000}}, "reverse": {{"delay_ns": 50000000}}}}]}},
            "flows": [{{"name": "f", "variant": "newreno", "stack": {{"smss_bytes": 1000, {stack}}}}}]}}"#
    );
    serde_json::from_str(&text).expect("well-formed")
}

/// Data segments that leave the sender, and ACKs that leave the receiver, by round trip.
#[derive(Default)]
struct Rounds {
    data: Vec<u32>,
    acks: Vec<u32>,
}

impl Tap for Rounds {
    fn event(&mut self, now: Nanos, event: Event<'_>) {
        let Event::Sent(segment) = event else {
            return;
        };
        let (counts, after) = match segment.direction {
            Direction::Forward => (&mut self.data, now),
            Direction::Reverse => (&mut self.acks, now - 50 * MILLISECOND),
        };
        let round = (after / (100 * MILLISECOND)) as usize;
        counts.resize(counts.len().max(round + 1), 0);
        counts[round] += u32::from(carries(segment));
    }
}

/// Data, or an acknowledgement of it.
fn carries(segment: &Segment) -> bool {
    segment.payload_bytes > 0 || segment.direction == Direction::Reverse
}

fn rounds(config: &Config) -> Rounds {
    let mut rounds = Rounds::default();
    World::new(config, 1, &mut rounds)
        .expect("valid")
        .run(&AtomicBool::new(false))
        .expect("nobody interrupts");
    rounds
}

const START: &str =
    r#""handshake": false, "initial_window_pkts": 2, "delayed_ack_timeout_ns": 1000000"#;

#[test]
fn rfc2760_delayed_acks_after_slow_start_cost_slow_start_nothing_and_halve_the_acks_after_it() {
    let with = |more: &str| rounds(&config(750, &format!("{START}, {more}")));
    let prompt = with(r#""delayed_ack": false"#);
    let always = with(r#""delayed_ack": true"#);
    let after = with(r#""delayed_ack_after_slow_start": true"#);
    // Twofold per round trip, or by half.
    assert_eq!(prompt.data, [2, 4, 8, 16, 32, 64, 128, 256]);
    assert_eq!(always.data, [2, 3, 5, 8, 12, 18, 27, 41]);
    assert_eq!((after.data, after.acks), (prompt.data, prompt.acks));
    let with = |more: &str| rounds(&config(1350, &format!("{START}, {more}")));
    let ssthresh = r#""initial_ssthresh_pkts": 16"#;
    let after = with(&format!(
        r#"{ssthresh}, "delayed_ack_after_slow_start": true"#
    ));
    let prompt = with(&format!(r#"{ssthresh}, "delayed_ack": false"#));
    assert_eq!(after.data[..4], [2, 4, 8, 16]);
    assert_eq!(after.acks[..3], [2, 4, 8]);
    assert_eq!(prompt.acks[6], prompt.data[6]);
    assert_eq!(after.acks[6], after.data[6].div_ceil(2));
}

#[test]
fn initial_windows_by_rfc3390_and_rfc6928_leave_at_once() {
    for window in [2, 4, 10, 64] {
        let first = rounds(&config(
            50,
            &format!(r#""handshake": false, "initial_window_pkts": {window}"#),
        ));
        assert_eq!(first.data, [window]);
    }
}

/// A path whose first link changes by `schedule` both ways, and a flow with this variant and stack.
fn changing(seconds: u64, link: &str, schedule: &str, variant: &str, stack: &str) -> Config {
    let text = format!(
        r#"{{"duration_ns": {seconds}000000000, "path": {{"nodes": ["a", "b"], "links": [
            {{"name": "ab", "forward": {{{link}, "schedule": [{schedule}]}},
                "reverse": {{"delay_ns": 50000000, "schedule": [{schedule}]}}}}]}},
            "flows": [{{"name": "f", "variant": "{variant}", "stack": {{"smss_bytes": 1000, "header_bytes": 40,
                "receive_buffer_bytes": 400000, {stack}}}}}]}}"#
    );
    serde_json::from_str(&text).expect("well-formed")
}

const OUTAGE: &str =
    r#"{"at_ns": 2000000000, "outage": true}, {"at_ns": 5000000000, "outage": false}"#;
const SLOW: &str =
    r#""rate_bps": 832000, "delay_ns": 50000000, "queue": {"kind": "drop_tail", "limit_pkts": 60}"#;

/// Windows that ACKs tell, with when they leave.
#[derive(Default)]
struct Windows(Vec<(Nanos, u32)>);

impl Tap for Windows {
    fn event(&mut self, now: Nanos, event: Event<'_>) {
        if let Event::Sent(segment) = event
            && segment.direction == Direction::Reverse
        {
            self.0.push((now, segment.wnd_bytes));
        }
    }
}

fn outcome(config: &Config) -> FlowSummary {
    run(config, 1).expect("valid").flows.swap_remove(0)
}

#[test]
fn a_receiver_that_knows_of_an_outage_spares_the_sender_its_timeouts() {
    let stack = |more: &str| format!(r#""initial_ssthresh_pkts": 20{more}"#);
    let with = |variant, more| changing(8, SLOW, OUTAGE, variant, &stack(more));
    let config = with("freeze-tcp", "");
    let mut windows = Windows::default();
    World::new(&config, 1, &mut windows)
        .expect("valid")
        .run(&AtomicBool::new(false))
        .expect("nobody interrupts");
    // Closed from half a second before the outage to its end, when three ACKs open it.
    let closed: Vec<Nanos> = windows.0.iter().filter(|w| w.1 == 0).map(|w| w.0).collect();
    assert_eq!(closed.first(), Some(&(1500 * MILLISECOND)));
    assert!(closed.iter().all(|&at| at < 5000 * MILLISECOND));
    let at_end = windows.0.iter().filter(|w| w.0 == 5000 * MILLISECOND);
    assert_eq!(at_end.map(|w| w.1 > 0).collect::<Vec<_>>(), [true; 3]);
    let (frozen, plain) = (outcome(&config), outcome(&with("sack", "")));
    assert_eq!(
        (frozen.sender.rtos, frozen.sender.retransmissions),
        (0, 0),
        "all that was in flight came before the outage"
    );
    assert!(plain.sender.rtos >= 2);
    // It stops half a second early, and goes on at once: 4.5 s of 8 s at 100 segments a second.
    assert!((440..=460).contains(&(frozen.delivered_bytes / 1000)));
    assert!(plain.delivered_bytes < frozen.delivered_bytes);
    // So it is under Linux's rules.
    let linux = outcome(&with("freeze-tcp\", \"profile\": \"linux", ""));
    assert_eq!((linux.sender.rtos, linux.sender.retransmissions), (0, 0));
    assert!((430..=460).contains(&(linux.delivered_bytes / 1000)));
    let late = r#", "freeze_warning_ns": 80000000"#;
    let linux = outcome(&with("freeze-tcp\", \"profile\": \"linux", late));
    assert_eq!((linux.sender.rtos, linux.sender.recoveries), (0, 1));
    // After a late warning some segments are lost; the third ACK triggers their retransmission.
    let late = outcome(&with("freeze-tcp", r#", "freeze_warning_ns": 80000000"#));
    assert_eq!((late.sender.rtos, late.sender.recoveries), (0, 1));
    assert!(late.sender.retransmissions > 0);
}

#[test]
fn a_handover_to_a_longer_path_fills_it_at_once_where_the_sender_has_a_forecast() {
    // From 8 packets' product to 50 at 4 s.
    let longer = r#"{"at_ns": 4000000000, "delay_ns": 250000000}"#;
    let with = |rule: &str| {
        let stack = format!(r#""initial_ssthresh_pkts": 8, "handover_adaptation": "{rule}""#);
        outcome(&changing(10, SLOW, longer, "newreno", &stack)).delivered_bytes
    };
    let (off, slow_start, jump) = (with("off"), with("slow_start"), with("jump"));
    assert!(
        off < slow_start && slow_start < jump,
        "{off} {slow_start} {jump}"
    );
}

#[test]
fn rfc4782_quick_start_sends_its_first_window_at_what_the_slowest_link_grants() {
    // Of 2 Mbit/s asked for, 1.28 are a rate that a request can name: 15 packets in 100 ms. The SYN takes the first.
    let with = |more: &str| rounds(&config(499, &format!(r#""delayed_ack": false, {more}"#))).data;
    assert_eq!(with(r#""quick_start_bps": 2000000"#), [0, 15, 30, 60, 120]);
    assert_eq!(with(r#""limited_transmit": true"#), [0, 10, 20, 40, 80]);
    // A link of 832 kbit/s grants 640: the window of ten is larger than 100 ms of that.
    let slow = changing(1, SLOW, "", "newreno", r#""quick_start_bps": 2000000"#);
    assert_eq!(rounds(&slow).data[1], 10);
    let fast = SLOW.replace("832000", "2000000");
    let fast = changing(1, &fast, "", "newreno", r#""quick_start_bps": 5000000"#);
    // 1.28 Mbit/s, of packets of 1040 octets, in 104 ms with the service of the SYN and its answer.
    assert_eq!(rounds(&fast).data[1], 15);
}

/// Five seconds of `variant` over a queue that delays and overflows.
fn queued(variant: &str, profile: &str, stack: &str) -> Option<FlowSummary> {
    let text = format!(
        r#"{{"duration_ns": 5000000000, "path": {{"nodes": ["a", "b"], "links": [{{"name": "ab",
            "forward": {{"rate_bps": 10e6, "delay_ns": 50000000, "queue": {{"kind": "drop_tail", "limit_pkts": 150}}}},
            "reverse": {{"rate_bps": 10e6, "delay_ns": 50000000}}}}]}},
            "flows": [{{"name": "f", "variant": "{variant}", "profile": "{profile}", "stack": {{{stack}}}}}]}}"#
    );
    let config: Config = serde_json::from_str(&text).expect("well-formed");
    config.validate().ok()?;
    if !ineffective_in_all(std::slice::from_ref(&config)).is_empty() {
        return None;
    }
    Some(run(&config, 1).expect("valid").flows.remove(0))
}

#[test]
fn options_that_are_accepted_do_something() {
    let mut without_effect = Vec::new();
    for info in VARIANTS.iter().map(|variant| variant.info()) {
        for profile in ["rfc", "linux"] {
            let plain = queued(info.name, profile, "");
            for (option, already) in [
                // These pace by themselves.
                (
                    r#""pacing": true"#,
                    matches!(info.name, "bbr" | "bbr3" | "scps-tp"),
                ),
                (
                    r#""slow_start": "hystart""#,
                    (info.name, profile) == ("cubic", "linux"),
                ),
                (r#""slow_start": "hystartpp""#, false),
            ] {
                let with = queued(info.name, profile, option);
                if with.is_some() && (with == plain) != already {
                    without_effect.push(format!("{} {profile} {option}", info.name));
                }
            }
        }
    }
    assert_eq!(without_effect, Vec::<String>::new());
}

#[test]
fn a_fixed_window_is_paced_where_that_is_asked_for() {
    let paced = |pacing: bool| {
        let stack = format!(r#""fixed_window_pkts": 40, "pacing": {pacing}"#);
        queued("sack", "rfc", &stack).expect("valid")
    };
    let (paced, plain) = (paced(true), paced(false));
    // 40 packets take 48 ms of the 100 ms: in one burst the last one waits for all others, at 1.2 windows per round trip
    // for none.
    assert!(plain.app_delay_max_ns > Some(95 * MILLISECOND), "{plain:?}");
    assert!(paced.app_delay_max_ns < Some(65 * MILLISECOND), "{paced:?}");
    let share = paced.goodput_bps / plain.goodput_bps;
    assert!((0.9..1.05).contains(&share), "{share}");
}

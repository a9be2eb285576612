//! Connections from their first segment to their last: closed, given up, reset. Whole runs, written out segment by segment.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use hindflight_engine::{
    Config, Direction, Event, Nanos, RunSummary, SECOND, Segment, Tap, World, flags,
};

/// Writes a line per segment that is sent: `TIME > F seq ack`, `>` from the data sender, the flags' initials before the
/// numbers, octets of payload behind `+`.
#[derive(Default)]
struct Ladder {
    flow: u16,
    control_only: bool,
    text: String,
}

fn initials(segment: &Segment) -> String {
    let named = [(flags::SYN, 'S'), (flags::FIN, 'F'), (flags::RST, 'R')];
    named
        .iter()
        .filter(|(flag, _)| segment.has(*flag))
        .map(|(_, initial)| *initial)
        .collect()
}

impl Tap for Ladder {
    fn event(&mut self, now: Nanos, event: Event<'_>) {
        let Event::Sent(segment) = event else {
            return;
        };
        let initials = initials(segment);
        if segment.leg != self.flow || self.control_only && initials.is_empty() {
            return;
        }
        let way = if segment.direction == Direction::Forward {
            '>'
        } else {
            '<'
        };
        let mut line = format!("{:.2} {way} {initials} {}", seconds(now), segment.seq);
        if segment.has(flags::ACK) {
            write!(line, " ack {}", segment.ack).expect("writes to a string");
        }
        if segment.payload_bytes > 0 {
            write!(line, " +{}", segment.payload_bytes).expect("writes to a string");
        }
        self.text += line.replace("  ", " ").trim();
        self.text += "\n";
    }
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

/// A path of 100 ms, down forwards for the times of `down_s`, and `flows`.
fn config(down_s: &[(f64, f64)], flows: &str) -> Config {
    let change = |at: f64, outage: bool| {
        format!(r#"{{"at_ns": {}, "outage": {outage}}}"#, (at * 1e9) as u64)
    };
    let schedule: Vec<String> = down_s
        .iter()
        .flat_map(|&(from, to)| [change(from, true), change(to, false)])
        .collect();
    let text = format!(
        r#"{{"duration_ns": 2000000000000, "path": {{"nodes": ["a", "b"], "links": [
            {{"name": "ab", "forward": {{"delay_ns": 50000000, "schedule": [{}]}},
                "reverse": {{"delay_ns": 50000000}}}}]}},
            "flows": [{flows}]}}"#,
        schedule.join(", ")
    );
    serde_json::from_str(&text).expect("well-formed")
}

fn flow(size_bytes: &str, profile: &str, stack: &str) -> String {
    format!(
        r#"{{"name": "f", "variant": "sack", "size_bytes": {size_bytes}, "profile": "{profile}",
            "stack": {{"smss_bytes": 1000, "delayed_ack": false, {stack}}}}}"#
    )
}

fn run(config: &Config, ladder: Ladder) -> (RunSummary, String) {
    let mut ladder = ladder;
    let summary = World::new(config, 1, &mut ladder)
        .expect("valid")
        .run(&AtomicBool::new(false))
        .expect("nobody interrupts");
    (summary, ladder.text)
}

fn check(config: &Config, ladder: Ladder, want: &str) -> RunSummary {
    let (summary, got) = run(config, ladder);
    let want: String = want
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .fold(String::new(), |text, line| text + line + "\n");
    assert!(got == want, "ladder:\n{got}\nexpected:\n{want}");
    summary
}

fn control() -> Ladder {
    Ladder {
        control_only: true,
        ..Ladder::default()
    }
}

#[test]
fn rfc9293_figure_12_a_close_takes_a_sequence_number_each_way() {
    // The FIN leaves with the last octets, as where an application writes and closes.
    let config = config(&[], &flow("1500", "rfc", r#""close": true"#));
    let summary = check(
        &config,
        Ladder::default(),
        "0.00 > S 0
         0.05 < S 0 ack 1
         0.10 > 1 ack 1
         0.10 > 1 ack 1 +1000
         0.10 > F 1001 ack 1 +500
         0.15 < 1 ack 1001
         0.15 < F 1 ack 1502
         0.20 > 1502 ack 2",
    );
    let flow = &summary.flows[0];
    assert!(flow.completed && flow.reset_ns.is_none());
    assert_eq!(flow.delivered_bytes, 1500, "the FIN is no octet");
    assert_eq!(flow.duration_ns, 150_000_000, "up to the last octet");
}

/// Lengths of the packets that open connections.
#[derive(Default)]
struct Openings(Vec<u16>);

impl Tap for Openings {
    fn event(&mut self, _: Nanos, event: Event<'_>) {
        if let Event::Sent(segment) = event
            && segment.has(flags::SYN)
        {
            self.0.push(segment.ip_bytes);
        }
    }
}

#[test]
fn rfc7323_appendix_a_a_syn_is_as_long_as_its_options() {
    // IP and TCP 40, MSS 4, window scale 4 with padding; SACK-permitted 4 with padding, or none in addition to timestamps
    // (12).
    for (profile, stack, bytes) in [
        ("linux", "", 60),
        ("linux", r#", "timestamps": false"#, 52),
        ("rfc", r#", "sack": false, "recovery": "newreno""#, 60),
        ("rfc", r#", "timestamps": false"#, 52),
        (
            "rfc",
            r#", "timestamps": false, "sack": false, "recovery": "newreno""#,
            48,
        ),
        ("rfc", r#", "header_bytes": 60"#, 68),
    ] {
        let variant = r#""variant": "linux-reno""#;
        let text = flow("1000", profile, &format!(r#""close": false{stack}"#));
        let config = config(&[], &text.replace(r#""variant": "sack""#, variant));
        let mut openings = Openings::default();
        let mut world = World::new(&config, 1, &mut openings).expect("valid");
        world.run(&AtomicBool::new(false)).expect("not interrupted");
        assert_eq!(openings.0, [bytes, bytes], "{profile}{stack}");
    }
}

#[test]
fn a_fin_behind_full_segments_leaves_alone_and_without_close_none_does() {
    let last = |stack| {
        let (summary, text) = run(&config(&[], &flow("2000", "rfc", stack)), control());
        assert_eq!(
            summary.flows[0].sender.segments_out,
            2 + u64::from(stack.contains("true"))
        );
        text.lines().skip(2).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        last(r#""close": true"#),
        "0.10 > F 2001 ack 1, 0.15 < F 1 ack 2002"
    );
    assert_eq!(last(r#""close": false"#), "");
}

#[test]
fn a_lost_fin_and_the_lost_answer_to_one_come_again() {
    // The first FIN, at 0.10, meets the outage, the one that the timeout sends does not. The last ACK, at 1.20, meets
    // another; the FIN that asks for it again is answered.
    let config = config(
        &[(0.11, 0.4), (1.22, 1.3)],
        &flow(
            "1000",
            "rfc",
            r#""handshake": false, "close": true, "initial_window_pkts": 1"#,
        ),
    );
    let summary = check(
        &config,
        control(),
        "0.10 > F 1001 ack 1
         1.10 > F 1001 ack 1
         1.15 < F 1 ack 1002
         2.15 < F 1 ack 1002",
    );
    assert!(summary.flows[0].completed);
}

#[test]
fn rfc5482_a_user_timeout_resets_when_it_has_passed() {
    // Down for good. Timeouts strike at 1.1 and 2.1 (RTO 1 s, then 2 s): 2.5 s after the first of them it gives up.
    let stack = r#""handshake": false, "initial_window_pkts": 1, "user_timeout_ns": 2500000000"#;
    let summary = check(
        &config(&[(0.1, 1999.0)], &flow("50000", "rfc", stack)),
        control(),
        "3.60 > R 3001",
    );
    let flow = &summary.flows[0];
    assert_eq!(flow.reset_ns, Some(3_600_000_000));
    assert!(!flow.completed);
    assert_eq!((flow.sender.rtos, flow.delivered_bytes), (2, 1000));
}

#[test]
fn a_retry_limit_is_the_time_that_its_timeouts_take() {
    let reset_at = |profile, limit: &str| {
        let stack = format!(r#""handshake": false, "retry_limit": {limit}"#);
        let (summary, _) = run(
            &config(&[(0.0, 1999.0)], &flow("5000", profile, &stack)),
            control(),
        );
        summary.flows[0].reset_ns.expect("reset")
    };
    // Timeouts at 1, 3, 7, 15, 31 s; three of them take 1 + 2 + 4 + 8 s, which have passed 30 s after the first.
    assert_eq!(reset_at("rfc", "3"), 31 * SECOND);
    assert_eq!(reset_at("rfc", "2"), 15 * SECOND);
}

#[test]
fn linux_gives_up_opening_after_four_syns_at_equal_distance_and_six_at_doubling_ones() {
    let (summary, text) = run(
        &config(&[(0.0, 1999.0)], &flow("5000", "linux", r#""ecn": false"#)),
        control(),
    );
    let times: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(
        times,
        [
            "0.00", "1.00", "2.00", "3.00", "4.00", "5.00", "7.00", "11.00", "19.00", "35.00",
            "67.00"
        ]
    );
    assert_eq!(summary.flows[0].reset_ns, Some(131 * SECOND));
    let rfc = flow("5000", "rfc", r#""syn_retry_limit": 2"#);
    let (summary, text) = run(&config(&[(0.0, 1999.0)], &rfc), control());
    assert_eq!(
        (text.lines().count(), summary.flows[0].reset_ns),
        (3, Some(7 * SECOND))
    );
}

fn window_of_four(timestamps: bool) -> String {
    format!(r#""initial_window_pkts": 4, "timestamps": {timestamps}"#)
}

/// Data segments that leave together first.
fn first_flight(config: &Config) -> usize {
    let (_, text) = run(config, Ladder::default());
    let data = |line: &&str| line.contains('>') && line.contains('+');
    let time = |line: &str| line.split(' ').next().map(str::to_owned);
    let first = text.lines().find(data).and_then(time);
    let together = |line: &&str| data(line) && time(line) == first;
    text.lines().filter(together).count()
}

#[test]
fn rfc5681_a_lost_syn_leaves_a_window_of_one_segment_and_linux_forgives_the_first() {
    let first_flight = |profile: &str, timestamps: bool, down_s: f64| {
        let flow = flow("5000", profile, &window_of_four(timestamps));
        first_flight(&config(&[(0.0, down_s)], &flow))
    };
    let flights = |profile, timestamps| {
        [0.0, 0.5, 1.5].map(|down_s| first_flight(profile, timestamps, down_s))
    };
    assert_eq!(flights("rfc", false), [4, 1, 1]);
    assert_eq!(flights("linux", false), [4, 4, 1]);
    assert_eq!(flights("linux", true), [4, 4, 1]);
    assert_eq!(flights("ns2", false), [4, 4, 4]);
}

/// The first SYN is lost, and the first flight. Times and numbers of the data that leaves.
fn after_a_lost_syn(profile: &str, stack: &str) -> Vec<String> {
    let variant = if profile == "linux" {
        "linux-reno"
    } else {
        "reno"
    };
    let flow = flow("5000", profile, stack).replace(r#": "sack""#, &format!(r#": "{variant}""#));
    let (_, text) = run(
        &config(&[(0.0, 0.5), (1.08, 1.5)], &flow),
        Ladder::default(),
    );
    let data = text.lines().filter(|line| line.contains('+'));
    data.map(|line| {
        line.split(' ')
            .step_by(2)
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    })
    .collect()
}

#[test]
fn rfc6298_after_a_lost_syn_the_first_data_has_three_seconds() {
    let second = |profile: &str, timestamps: bool| {
        let stack = format!(r#"{}, "sack": false"#, window_of_four(timestamps));
        let all = after_a_lost_syn(profile, &stack);
        all.iter()
            .filter(|line| line.ends_with(" 1"))
            .nth(1)
            .cloned()
    };
    assert_eq!(second("rfc", false).as_deref(), Some("4.10 1"));
    // 750 ticks from tick 275 on the timer fires at the next step of 64.
    assert_eq!(second("linux", false).as_deref(), Some("4.35 1"));
    // The echo of the second SYN is a sample.
    assert!(second("linux", true).is_some_and(|line| line.starts_with("1.")));
}

#[test]
fn linux_without_sack_tries_no_new_data_after_the_timeouts_of_syn_and_data() {
    let first = |stack: &str| {
        let all = after_a_lost_syn("linux", &format!("{}, {stack}", window_of_four(false)));
        all.iter()
            .skip_while(|line| !line.starts_with("4.45"))
            .take(2)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(first(r#""sack": false"#), ["4.45 1001", "4.45 2001"]);
    assert_eq!(first(r#""tail_loss_probe": false"#)[0], "4.45 4001");
}

/// A path of 2.6 s: the SYN that comes again was not lost.
#[test]
fn a_timestamp_shows_that_a_syn_was_late_and_not_lost() {
    let late = |profile: &str, timestamps: bool| {
        let mut config = config(&[], &flow("5000", profile, &window_of_four(timestamps)));
        config.path.links[0].forward.delay_ns = 2_550_000_000;
        first_flight(&config)
    };
    assert_eq!(
        [
            ("rfc", false),
            ("rfc", true),
            ("linux", false),
            ("linux", true)
        ]
        .map(|(profile, timestamps)| late(profile, timestamps)),
        [1, 4, 1, 4]
    );
}

#[test]
fn rfc5961_a_reset_that_does_not_fit_is_asked_about() {
    // Everything from 0.1 s on is lost but the RST at 3.6 s, which says 3001 where 1001 is awaited. The question is answered
    // with what the other end believes. A second flow keeps the run going.
    let stack = r#""handshake": false, "initial_window_pkts": 1, "user_timeout_ns": 2500000000"#;
    let flows = [
        flow("50000", "rfc", stack),
        flow("1000000", "rfc", r#""initial_window_pkts": 2"#),
    ]
    .join(", ");
    let (_, text) = run(&config(&[(0.1, 3.55)], &flows), Ladder::default());
    let ending: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.contains('R'))
        .collect();
    assert_eq!(
        ending,
        ["3.60 > R 3001", "3.65 < 1 ack 1001", "3.70 > R 1001"]
    );
}

#[test]
fn rfc9293_a_closed_window_is_probed_while_probes_are_answered_unless_the_user_has_enough() {
    // The reader takes an octet a second: the window of two segments stays shut for half an hour.
    let run = |limits: &str| {
        let stack = format!(
            r#""handshake": false, "receive_buffer_bytes": 2000, "read_rate_bps": 8, {limits}"#
        );
        let (summary, _) = run(&config(&[], &flow("3000", "rfc", &stack)), control());
        summary.flows[0].reset_ns.map(seconds)
    };
    assert_eq!(run(r#""retry_limit": 3"#), None);
    // Probes are due at 1.1 and 3.2 s and, each answered, at 7.3 s; but when so long has passed since the first, the user
    // has had enough (Linux: tcp_clamp_probe0_to_user_timeout).
    for (limit_ns, at_s) in [
        (3_000_000_000_u64, 4.1),
        (1_999_000_000, 3.099),
        (4_500_000_000, 5.6),
    ] {
        let given_up = run(&format!(r#""user_timeout_ns": {limit_ns}"#)).expect("given up");
        assert!((given_up - at_s).abs() < 0.01, "at {given_up} s");
    }
}

#[test]
fn a_proxy_passes_on_a_close_and_a_reset() {
    let run = |down_s: f64, stack: &str| {
        let text = format!(
            r#"{{"duration_ns": 100000000000, "path": {{"nodes": ["a", "b", "c"], "links": [
                {{"name": "ab", "forward": {{"delay_ns": 50000000}}, "reverse": {{"delay_ns": 50000000}}}},
                {{"name": "bc", "forward": {{"delay_ns": 50000000, "schedule": [{{"at_ns": {}, "outage": true}}]}},
                    "reverse": {{"delay_ns": 50000000}}}}]}},
                "flows": [{{"name": "f", "variant": "sack", "size_bytes": 20000, "proxies": [{{"node": "b"}}],
                    "stack": {{"smss_bytes": 1000, {stack}}}}}]}}"#,
            (down_s * 1e9) as u64
        );
        let config: Config = serde_json::from_str(&text).expect("well-formed");
        let (summary, near) = run(&config, control());
        let (_, far) = run(
            &config,
            Ladder {
                flow: 1,
                ..control()
            },
        );
        (summary, near, far)
    };
    let (summary, near, far) = run(99.0, r#""close": true"#);
    assert!(summary.flows[0].completed);
    let opening: Vec<&str> = near.lines().take(2).collect();
    assert_eq!(opening, ["0.00 > S 0", "0.05 < S 0 ack 1"]);
    for text in [near, far] {
        assert_eq!(text.matches(" F ").count(), 2, "{text}");
    }
    let (summary, near, far) = run(0.3, r#""user_timeout_ns": 1000000000"#);
    assert!(!summary.flows[0].completed);
    assert!(far.contains("> R "), "{far}");
    assert!(near.contains("< R "), "{near}");
    assert!(
        summary.flows[0].reset_ns.is_some(),
        "the sender received the RST"
    );
}

#[test]
fn rfc7413_a_syn_carries_data_which_its_answer_acknowledges() {
    // A packet of 1052 octets less the 60 of the SYN's header.
    let config = config(&[], &flow("2500", "rfc", r#""fast_open": true"#));
    let summary = check(
        &config,
        Ladder::default(),
        "0.00 > S 1 +992
         0.05 < S 0 ack 993
         0.10 > 993 ack 1
         0.10 > 993 ack 1 +1000
         0.10 > 1993 ack 1 +508
         0.15 < 1 ack 1993
         0.15 < 1 ack 2501",
    );
    assert_eq!(summary.flows[0].delivered_bytes, 2500);
    assert_eq!(summary.flows[0].sender.retransmissions, 0);
}

#[test]
fn rfc7413_a_syn_that_is_sent_again_carries_none_and_one_may_carry_all() {
    check(
        &config(&[(0.0, 0.5)], &flow("1500", "rfc", r#""fast_open": true"#)),
        Ladder::default(),
        "0.00 > S 1 +992
         1.00 > S 0
         1.05 < S 0 ack 1
         1.10 > 1 ack 1
         1.10 > 1 ack 1 +1000
         1.15 < 1 ack 1001
         1.20 > 1001 ack 1 +500
         1.25 < 1 ack 1501",
    );
    let (summary, ladder) = run(
        &config(&[], &flow("500", "rfc", r#""fast_open": true"#)),
        Ladder::default(),
    );
    assert_eq!(ladder, "0.00 > S 1 +500\n0.05 < S 0 ack 501\n");
    assert_eq!(summary.flows[0].duration_ns, 50_000_000);
}

#[test]
fn rfc7413_through_a_proxy_each_connection_saves_its_round_trip() {
    let sockets = r#""advertise": "sockets""#;
    let times = |policies: &str| {
        [false, true].map(|fast_open| {
        let stack = format!(r#""smss_bytes": 1000, "fast_open": {fast_open}"#);
        let text = format!(
            r#"{{"duration_ns": 10000000000, "path": {{"nodes": ["a", "p", "b"], "links": [
                {{"name": "ap", "forward": {{"delay_ns": 50000000}}, "reverse": {{"delay_ns": 50000000}}}},
                {{"name": "pb", "forward": {{"delay_ns": 100000000}}, "reverse": {{"delay_ns": 100000000}}}}]}},
                "flows": [{{"name": "f", "variant": "sack", "size_bytes": 500, "profile": "rfc", "stack": {{{stack}}},
                    "proxies": [{{"node": "p", {policies}}}]}}]}}"#
        );
        let config = serde_json::from_str(&text).expect("well-formed");
        run(&config, Ladder::default()).0.flows[0].duration_ns
    })
    };
    // A round trip of 100 ms and one of 200 ms, and half of each; or the halves alone.
    for policies in [sockets, r#""receive_buffer": {"pkts": 20}"#] {
        assert_eq!(times(policies), [450_000_000, 150_000_000], "{policies}");
    }
}

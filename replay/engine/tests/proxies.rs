//! The policies of a proxy as packet ladders, and what faults, resets and a stop do to a split flow.

mod ladder;

use std::sync::atomic::AtomicBool;

use hindflight_engine::{Config, Direction, Event, FlowSummary, Nanos, Tap, World, run};
use ladder::{STACK, config, ladder};

/// So many segments through a proxy of `policies`.
fn check(policies: &str, segments: u64, expected: &str) {
    let size_bytes = 1000 * segments;
    let flow = format!(r#""size_bytes": {size_bytes}, "stack": {{{STACK}}}"#);
    let (summary, got) = ladder(&flow, policies);
    let lines: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(got.trim_end(), lines.join("\n"), "{policies}");
    assert_eq!(summary.flows[0].delivered_bytes, size_bytes);
}

#[test]
fn on_receipt_acknowledges_what_arrives_and_advertises_half_of_what_is_free() {
    check(
        r#""receive_buffer": {"pkts": 20}"#,
        6,
        "0.010 up ack 2 wnd 9
         0.010 on 1
         0.010 up ack 3 wnd 9
         0.010 on 2
         0.010 up ack 4 wnd 8
         0.010 on 3
         0.010 up ack 5 wnd 8
         0.010 on 4
         0.010 up ack 6 wnd 7
         0.010 on 5
         0.010 up ack 7 wnd 7
         0.010 on 6",
    );
}

#[test]
fn after_forwarding_acknowledges_what_has_left_once() {
    check(
        r#""receive_buffer": {"pkts": 12}, "advertise": "free", "acknowledge": "after_forwarding",
            "forward_window": "third""#,
        6,
        "0.010 on 1
         0.010 up ack 2 wnd 11
         0.010 on 2
         0.010 up ack 3 wnd 10
         0.010 on 3
         0.010 up ack 4 wnd 9
         0.010 on 4
         0.010 up ack 5 wnd 8
         0.030 on 5
         0.030 up ack 6 wnd 8
         0.030 on 6
         0.030 up ack 7 wnd 8",
    );
}

#[test]
fn on_delivery_acknowledges_what_the_receiver_has() {
    check(
        r#""receive_buffer": {"pkts": 12}, "advertise": "free", "acknowledge": "on_delivery""#,
        8,
        "0.010 on 1, 2, 3, 4, 5, 6
         0.030 up ack 2 wnd 12, ack 3 wnd 12, ack 4 wnd 12, ack 5 wnd 12, ack 6 wnd 12, ack 7 wnd 12
         0.050 on 7, 8",
    );
}

#[test]
fn a_third_of_the_cache_comes_in_and_goes_on() {
    check(
        r#""receive_buffer": {"pkts": 9}, "advertise": "third", "forward_window": "third""#,
        6,
        "0.010 up ack 2 wnd 3
         0.010 on 1
         0.010 up ack 3 wnd 3
         0.010 on 2
         0.010 up ack 4 wnd 3
         0.010 on 3
         0.030 up ack 5 wnd 3, ack 6 wnd 3, ack 7 wnd 3
         0.030 on 4, 5, 6",
    );
}

#[test]
fn a_blocking_write_moves_octets_to_a_separate_send_buffer() {
    check(
        r#""receive_buffer": {"pkts": 4}, "send_buffer": {"pkts": 2}, "advertise": "free""#,
        6,
        "0.010 up ack 2 wnd 4
         0.010 on 1
         0.010 up ack 3 wnd 4
         0.010 on 2
         0.010 up ack 4 wnd 3, ack 5 wnd 2
         0.030 up ack 6 wnd 1, ack 7 wnd 0, ack 7 wnd 1
         0.030 on 3, 4
         0.050 up ack 7 wnd 3
         0.050 on 5, 6",
    );
}

#[test]
fn sockets_read_nothing_before_the_next_connection_is_there() {
    let flow =
        format!(r#""size_bytes": 6000, "stack": {{{STACK}, "receive_buffer_bytes": 12000}}"#);
    let onward = r#""advertise": "sockets", "stack": {"overrides": {"smss_bytes": 1000, "delayed_ack": false,
        "timestamps": false, "initial_window_pkts": 2}}"#;
    let expected = "0.000 on SYN
        0.010 up ack 2 wnd 11, ack 3 wnd 10, ack 4 wnd 9, ack 5 wnd 8, ack 6 wnd 7, ack 7 wnd 6
        0.020 on ACK
        0.020 up ack 7 wnd 12
        0.020 on 1, 2
        0.040 on 3, 4, 5, 6\n";
    assert_eq!(
        ladder(&flow, onward).1,
        expected.replace("\n        ", "\n")
    );
}

/// Data segments of the connection onward, and those of them that are not full.
#[derive(Default)]
struct Onward {
    segments: u32,
    small: u32,
}

impl Tap for Onward {
    fn event(&mut self, _now: Nanos, event: Event<'_>) {
        if let Event::Sent(segment) = event
            && (segment.leg, segment.direction) == (1, Direction::Forward)
            && segment.payload_bytes > 0
        {
            self.segments += 1;
            self.small += u32::from(segment.payload_bytes < 1400);
        }
    }
}

/// Linux pushes the end of each burst, which is no end of the data: what follows it may fill the segment.
#[test]
fn a_push_is_for_what_precedes_it_and_not_for_all_that_follows() {
    let mut config = config(
        r#""profile": "linux", "size_bytes": 2000000, "stack": {"smss_bytes": 1000}"#,
        r#""receive_buffer": {"pkts": 100}, "advertise": "free",
            "stack": {"profile": "rfc", "overrides": {"smss_bytes": 1400, "nagle": "rfc"}}"#,
    );
    for link in &mut config.path.links {
        link.forward.rate_bps = Some(10e6);
    }
    let mut onward = Onward::default();
    World::new(&config, 1, &mut onward)
        .expect("valid")
        .run(&AtomicBool::new(false))
        .expect("nobody interrupts");
    let full = 2_000_000 / 1400;
    assert!(onward.segments < full + full / 20, "{}", onward.segments);
    assert!(onward.small < full / 20, "{}", onward.small);
}

#[test]
fn a_cache_of_one_packet_passes_one_packet_at_a_time() {
    check(
        r#""receive_buffer": {"pkts": 1}"#,
        3,
        "0.010 up ack 2 wnd 0
         0.010 on 1
         0.030 up ack 2 wnd 1
         0.050 up ack 3 wnd 0
         0.050 on 2
         0.070 up ack 3 wnd 1
         0.090 up ack 4 wnd 0
         0.090 on 3",
    );
}

/// The same with a handshake and a FIN.
fn opened(policies: &str) -> String {
    let stack = STACK.replace("false, \"smss", "true, \"close\": true, \"smss");
    let flow = format!(r#""size_bytes": 2000, "stack": {{{stack}}}"#);
    ladder(&flow, policies).1
}

#[test]
fn an_accepting_proxy_answers_at_once_and_a_holding_one_when_the_receiver_has() {
    let shown = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n") + "\n";
    // The FIN upstream waits for the receiver's: meanwhile the connection is half closed.
    let accepted = "0.010 up SYN ack 1 wnd 65
        0.030 on SYN
        0.030 up ack 2 wnd 99, ack 3 wnd 99, ack 3 wnd 99
        0.050 on ACK, 1, 2, FIN
        0.070 up FIN ack 3 wnd 100
        0.070 on ACK";
    assert_eq!(opened(r#""handshake": "accept""#), shown(accepted));
    let held = "0.010 on SYN
        0.030 up SYN ack 1 wnd 65
        0.030 on ACK
        0.050 up ack 2 wnd 99
        0.050 on 1
        0.050 up ack 3 wnd 99
        0.050 on 2
        0.050 up ack 3 wnd 99
        0.050 on FIN
        0.070 up FIN ack 3 wnd 100
        0.070 on ACK";
    assert_eq!(opened(r#""handshake": "hold""#), shown(held));
}

#[test]
fn a_receiver_that_does_not_answer_is_a_refused_connection_where_the_syn_is_held() {
    let text = r#""size_bytes": 2000, "stack": {"syn_retry_limit": 1, "smss_bytes": 1000}"#;
    let run_of = |handshake: &str| {
        let mut config = config(text, &format!(r#""handshake": "{handshake}""#));
        config.path.links[1].forward.loss =
            serde_json::from_str(r#"{"kind": "bernoulli", "per": 1.0}"#).expect("well-formed");
        config.path.links[1].forward.loss_applies_to = hindflight_engine::LossScope::All;
        run(&config, 1).expect("valid").flows[0].clone()
    };
    let held = run_of("hold");
    assert_eq!(
        (held.established_ns, held.proxy_lost_bytes),
        (None, Some(0))
    );
    assert!(held.reset_ns.is_some());
    // Accepted, the connection is reset with what it had acknowledged.
    let accepted = run_of("accept");
    assert!(accepted.established_ns.is_some() && accepted.reset_ns.is_some());
    assert_eq!(accepted.proxy_lost_bytes, Some(2000));
}

/// A transfer of 10 MB at 10 Mbit/s and then 5 Mbit/s, whose proxy suffers a fault after 2 s.
fn faulty(policies: &str) -> FlowSummary {
    let mut config = config(
        r#""size_bytes": 10000000, "stack": {"retry_limit": 3, "min_rto_ns": 200000000}"#,
        policies,
    );
    config.path.links[0].forward.rate_bps = Some(10e6);
    config.path.links[1].forward.rate_bps = Some(5e6);
    run(&config, 1).expect("valid").flows[0].clone()
}

#[test]
fn a_fault_loses_what_was_acknowledged_and_not_delivered_and_the_summary_names_it() {
    // What has left for the link onward still arrives: the cache holds more than that.
    let faults = |kind: &str| {
        format!(
            r#""forward_window": "third", "faults": [{{"at_ns": 2000000000, "kind": "{kind}"}}]"#
        )
    };
    for kind in ["restart", "failure"] {
        let flow = faulty(&faults(kind));
        assert!(
            !flow.completed && flow.reset_ns == Some(2_000_000_000),
            "{kind}"
        );
        let lost = flow.proxy_lost_bytes.expect("there is a proxy");
        let held = flow.proxy_held_max_bytes.expect("there is a proxy");
        assert!(lost > 0 && lost <= held, "{kind}: {lost} of {held}");
        // With acknowledgements end to end nothing is lost that the sender does not know of.
        let safe = faulty(&format!(
            r#"{}, "acknowledge": "on_delivery""#,
            faults(kind)
        ));
        assert!(!safe.completed, "{kind}");
        assert_eq!(
            (safe.proxy_lost_bytes, safe.proxy_held_max_bytes),
            (Some(0), Some(0))
        );
    }
    let whole = faulty(r#""receive_buffer": {"pkts": 200}"#);
    assert!(whole.completed && whole.proxy_lost_bytes == Some(0));
}

#[test]
fn a_fault_before_the_flow_starts_finds_no_connection_with_or_without_a_handshake() {
    for handshake in [true, false] {
        let run_of = |kind: &str| {
            let stack = r#""retry_limit": 3, "syn_retry_limit": 3, "min_rto_ns": 200000000"#;
            let flow = format!(
                r#""size_bytes": 100000, "start_ns": 1000000000, "stack": {{"handshake": {handshake}, {stack}}}"#
            );
            let faults = format!(r#""faults": [{{"at_ns": 500000000, "kind": "{kind}"}}]"#);
            run(&config(&flow, &faults), 1).expect("valid").flows[0].clone()
        };
        for kind in ["restart", "corruption", "move"] {
            let flow = run_of(kind);
            assert!(flow.completed && flow.reset_ns.is_none(), "{kind}");
            assert_eq!(
                (flow.proxy_lost_bytes, flow.proxy_corrupted_bytes),
                (Some(0), Some(0)),
                "{kind}"
            );
        }
        // It never answers: the sender gives up.
        let failed = run_of("failure");
        assert_eq!(
            (failed.delivered_bytes, failed.proxy_lost_bytes),
            (0, Some(0))
        );
        assert!(failed.reset_ns > Some(1_000_000_000), "{handshake}");
    }
}

/// The damaged octets of that transfer, and whether it was complete.
fn damaged(policies: &str) -> (u64, bool) {
    let fault = r#""faults": [{"at_ns": 2000000000, "kind": "corruption"}]"#;
    let flow = faulty(&format!("{policies}, {fault}"));
    let bytes = flow.proxy_corrupted_bytes.expect("there is a proxy");
    assert!(bytes <= flow.proxy_stored_max_bytes.expect("there is a proxy"));
    assert_eq!((flow.proxy_lost_bytes, flow.reset_ns), (Some(0), None));
    (bytes, flow.completed)
}

#[test]
fn corruption_damages_what_the_receiver_has_not_got_yet_and_nobody_notices() {
    let (few, completed) = damaged(r#""receive_buffer": {"pkts": 40}, "forward_window": "third""#);
    // A third of the cache, 13 packets, is on the way and was sent before.
    assert!(completed && (1448..=27 * 1448).contains(&few), "{few}");
    let (more, _) = damaged(r#""receive_buffer": {"pkts": 200}, "forward_window": "third""#);
    assert!(more > 4 * few, "{more} {few}");
    // It cannot be told from the acknowledgements of the receiver either.
    let (safe, completed) = damaged(r#""acknowledge": "on_delivery", "forward_window": "third""#);
    assert!(safe > 0 && completed);
    assert_eq!(
        faulty(r#""receive_buffer": {"pkts": 20}"#).proxy_corrupted_bytes,
        Some(0)
    );
}

/// Nothing queues behind this proxy.
const UNQUEUED: &str = r#""receive_buffer": {"pkts": 40}, "forward_window": "third""#;

#[test]
fn a_move_loses_the_state_or_takes_the_time_of_its_transfer() {
    let moves = |transfer: &str| {
        faulty(&format!(
            r#"{UNQUEUED}, "faults": [{{"at_ns": 2000000000, "kind": "move"{transfer}}}]"#
        ))
    };
    let lost = moves("");
    assert_eq!(lost.reset_ns, Some(2_000_000_000));
    assert!(lost.proxy_lost_bytes > Some(0) && !lost.completed);
    // A proxy that restarts meanwhile has nothing left to take anywhere.
    let restart = faulty(&format!(
        r#"{UNQUEUED}, "faults": [{{"at_ns": 2000000000, "kind": "move", "transfer_ns": 30000000000}},
            {{"at_ns": 3000000000, "kind": "restart"}}]"#
    ));
    let reset = restart.reset_ns.expect("it was reset");
    assert!((3_000_000_000..20_000_000_000).contains(&reset), "{reset}");
    let still = faulty(UNQUEUED);
    let short = moves(r#", "transfer_ns": 100000000"#);
    let long = moves(r#", "transfer_ns": 1000000000"#);
    for (flow, ms) in [(&short, 100), (&long, 1000)] {
        assert!(flow.completed && flow.proxy_lost_bytes == Some(0));
        assert!(flow.proxy_counts.expect("there is a proxy").dropped > 0);
        // Nothing leaves for so long.
        assert!(
            flow.progress.longest_gap_ns >= Some(ms * 1_000_000),
            "{ms}: {flow:?}"
        );
        assert!(
            flow.duration_ns >= still.duration_ns + ms * 1_000_000 / 2,
            "{ms}"
        );
    }
}

#[test]
fn occupancy_and_delay_are_those_of_a_full_cache() {
    // 10 Mbit/s in, 2 Mbit/s out: the cache of 40 fills to where half of what is free is in flight, and stays there.
    let mut config = config(
        r#""size_bytes": 3000000, "stack": {"smss_bytes": 1000, "timestamps": false}"#,
        r#""receive_buffer": {"pkts": 40}, "advertise": "free""#,
    );
    config.path.links[0].forward.rate_bps = Some(10e6);
    config.path.links[1].forward.rate_bps = Some(2e6);
    let flow = run(&config, 1).expect("valid").flows[0].clone();
    let stored = flow.proxy_stored_max_bytes.expect("there is a proxy");
    let mean = flow.proxy_stored_mean_bytes.expect("there is a proxy");
    assert!((35_000..=40_000).contains(&stored), "{stored}");
    assert!((30_000..=stored).contains(&mean), "{mean}");
    // Little: 40 packets of 1040 octets at 2 Mbit/s are 166 ms.
    let delay_ms = flow.proxy_delay_mean_ns.expect("octets have passed") as f64 / 1e6;
    assert!((125.0..167.0).contains(&delay_ms), "{delay_ms}");
}

#[test]
fn a_flow_that_stops_delivers_what_it_has_written_and_ends() {
    for (application, writes) in [
        (r#"{"kind": "greedy"}"#, None),
        (
            r#"{"kind": "on_off", "rate_bps": 800000, "on_ns": 1000000000, "off_ns": 0, "write_bytes": 1000}"#,
            Some(200),
        ),
    ] {
        for policies in [
            r#""receive_buffer": {"pkts": 20}"#,
            r#""acknowledge": "on_delivery""#,
        ] {
            let flow = format!(
                r#""stop_ns": 2000000000, "application": {application}, "stack": {{{STACK}, "close": true}}"#
            );
            let (summary, _) = ladder(&flow, policies);
            let flow = &summary.flows[0];
            assert!(flow.completed, "{application} {policies}");
            assert!(
                (2_000_000_000..2_200_000_000).contains(&flow.duration_ns),
                "{flow:?}"
            );
            if let Some(writes) = writes {
                assert!(
                    flow.delivered_bytes.abs_diff(writes * 1000) <= 1000,
                    "{flow:?}"
                );
            }
        }
    }
}

/// Goodput in Mbit/s of a greedy flow of `linux` over 10 ms at 100 Mbit/s and 250 ms at `rate_bps`, split by PEPsal's
/// sockets with `onward` in the stack of the second connection; and the maximum in the proxy's memory.
fn by_sockets(rate_bps: f64, onward: &str) -> (f64, u64) {
    let mut config = config(
        r#""profile": "linux""#,
        &format!(
            r#""advertise": "sockets", "variant": "hybla",
                "stack": {{"profile": "linux", "overrides": {{{onward}}}}}"#
        ),
    );
    config.path.links[0].forward.rate_bps = Some(100e6);
    config.path.links[1].forward.rate_bps = Some(rate_bps);
    let far = &mut config.path.links[1];
    (far.forward.delay_ns, far.reverse.delay_ns) = (250_000_000, 250_000_000);
    let flow = run(&config, 1).expect("valid").flows[0].clone();
    let stored = flow.proxy_stored_max_bytes.expect("there is a proxy");
    (flow.goodput_bps / 1e6, stored)
}

#[test]
fn sockets_fill_a_long_link_as_far_as_the_send_buffer_reaches() {
    let (full, stored) = by_sockets(5e6, r#""dsack": true"#);
    // Less the first seconds: 5 Mbit/s are 4.83 of payload.
    assert!((3.8..4.83).contains(&full), "{full}");
    // Grown to two windows of the link and a receive buffer that grows with what is read, as Linux's does: the backlog
    // that is read at once when the socket onward has room counts as one round trip, so that it grows to all it may.
    assert!((300_000..40_000_000).contains(&stored), "{stored}");
    // 64 KiB of memory are 28 full segments of 2304 octets; in flight is what a write leaves: 28 and 832 octets for
    // each piece.
    let (bounded, small) = by_sockets(5e6, r#""send_buffer_bytes": 65536"#);
    assert!(bounded < 65_536.0 * 8.0 / 0.5 / 1e6, "{bounded}");
    assert!(bounded > 0.5 && small < stored, "{bounded} {small}");
}

/// Maximum stored by sockets with a receive buffer of `receive_bytes` and a send buffer of 46,080, neither of which
/// grows, before a link of 100 kbit/s that is away until `back_ns`, after 8 s.
fn stored_by_small_sockets(receive_bytes: u64, back_ns: u64) -> u64 {
    let stack = format!(r#""stack": {{"receive_buffer_bytes": {receive_bytes}}}"#);
    let mut config = config(
        &format!(r#""profile": "linux", {stack}"#),
        r#""advertise": "sockets",
            "stack": {"profile": "linux", "overrides": {"send_buffer_bytes": 46080}}"#,
    );
    config.duration_ns = 8_000_000_000;
    let away =
        format!(r#"[{{"at_ns": 0, "outage": true}}, {{"at_ns": {back_ns}, "outage": false}}]"#);
    let far = &mut config.path.links[1].forward;
    far.rate_bps = Some(100e3);
    far.schedule = serde_json::from_str(&away).expect("well-formed");
    let flow = run(&config, 1).expect("valid").flows[0].clone();
    flow.proxy_stored_max_bytes.expect("there is a proxy")
}

#[test]
fn sockets_hold_a_pipe_of_16_segments_and_read_nothing_before_they_are_connected() {
    let (receive, pipe) = (40_000, 16 * 1448);
    let unconnected = stored_by_small_sockets(receive, 9_000_000_000);
    assert!(
        (receive - 1448..=receive).contains(&unconnected),
        "{unconnected}"
    );
    let stored = stored_by_small_sockets(receive, 1);
    // What has been written leaves before more is: ten segments. The socket onward then takes octets as long as its
    // last piece has room, which is full with 45. Then a segment waits in the pipe, and all that comes after it in the
    // receive buffer.
    let taken = (10 + 45) * 1448;
    assert!(
        (receive + pipe..=receive + pipe + taken).contains(&stored),
        "{stored}"
    );
}

/// The socket onward has no memory left once it has filled a piece of 45 segments, and takes a part of the pipe: the
/// process fills the pipe again before it waits. Of the ten segments that left before the piece was full, three are
/// acknowledged when the receive buffer is full, too.
#[test]
fn the_pipe_is_full_while_the_sockets_wait_for_room() {
    let (receive, pipe, piece) = (200_000, 16 * 1448, 45 * 1448);
    let left = 7 * 1448;
    let stored = stored_by_small_sockets(receive, 1);
    assert!(fills(receive, stored - pipe - piece - left), "{stored}");
}

/// Whether `held` octets in full segments fill a receive buffer of `receive` octets, in which 1448 of them take 1440.
fn fills(receive: u64, held: u64) -> bool {
    (receive + 1..=receive * 1448 / 1440).contains(&held)
}

/// Maximum stored until `end_ns` by sockets that read nothing before 1 s, when the receive buffer of `receive_bytes` is
/// full. ACKs come from 1.6 s on, one in 120 ms; the send buffer may grow from 46,080.
fn stored_by_late_sockets(receive_bytes: u64, end_ns: u64, first_left_pkts: Option<u32>) -> u64 {
    let mut config = config(
        &format!(r#""profile": "linux", "stack": {{"receive_buffer_bytes": {receive_bytes}}}"#),
        r#""advertise": "sockets", "first_read_ns": 1000000000, "variant": "linux-reno",
            "stack": {"profile": "linux", "overrides":
                {"send_buffer_bytes": 46080, "send_buffer_max_bytes": 4194304}}"#,
    );
    config.flows[0].proxies[0].first_left_pkts = first_left_pkts;
    config.duration_ns = end_ns;
    config.path.links[0].forward.rate_bps = Some(100e6);
    let far = &mut config.path.links[1];
    far.forward.rate_bps = Some(100e3);
    (far.forward.delay_ns, far.reverse.delay_ns) = (250_000_000, 250_000_000);
    let flow = run(&config, 1).expect("valid").flows[0].clone();
    flow.proxy_stored_max_bytes.expect("there is a proxy")
}

/// The first write of 16 segments, what the pipe holds, leaves as far as the initial window of ten allows. The second
/// one fills what is left of it to a piece, half of the largest window: 22 segments in 32,767 octets. The socket then
/// has no memory left: ten segments in flight and a piece. Each ACK lets two leave, so that the socket finds room in
/// the window, and grows, only when all has left: eleven ACKs let 22 leave, and the twelfth finds 20 in flight where 22
/// are allowed.
#[test]
fn what_may_leave_leaves_before_the_process_writes_more() {
    let (receive, pipe) = (200_000, 16 * 1448);
    let (in_flight, piece) = (10 * 1448, 65_535 / 2 / 1448 * 1448);
    let stored = stored_by_late_sockets(receive, 2_900_000_000, None);
    let held = stored - pipe - in_flight - piece;
    assert!(fills(receive, held), "{stored}");
    let later = stored_by_late_sockets(receive, 3_500_000_000, None);
    assert!(later > stored + in_flight + piece, "{later}");
}

/// The second write comes when six segments of the first have left: it fills the piece whose other ten still wait, and
/// the socket has memory for one more piece (three sent ones and one of 22 take less than 46,080 octets).
#[test]
fn a_process_that_goes_on_before_its_first_write_has_left_fills_another_piece() {
    let (receive, pipe) = (200_000, 16 * 1448);
    let (left, piece) = (6 * 1448, 65_535 / 2 / 1448 * 1448);
    let stored = stored_by_late_sockets(receive, 1_590_000_000, Some(6));
    assert!(fills(receive, stored - pipe - left - 2 * piece), "{stored}");
    let unknown = stored_by_late_sockets(receive, 1_590_000_000, None);
    let held = unknown - pipe - 10 * 1448 - piece;
    assert!(fills(receive, held), "{unknown}");
}

/// The first write has 16 segments: 25 leave in the second one, while the process waits for room.
#[test]
fn what_leaves_of_a_first_write_decides_nothing_about_the_next_one() {
    let stored = |left| stored_by_late_sockets(200_000, 2_900_000_000, left);
    assert_eq!(stored(Some(25)), stored(None));
}

/// 1000 connections of `linux` through one gateway, 100 Mbit/s and 250 ms behind it.
fn thousand() -> Config {
    let near = r#"{"rate_bps": 1e9, "delay_ns": 10000000, "queue": {"kind": "drop_tail", "limit_pkts": 20000}}"#;
    let far = r#"{"rate_bps": 100e6, "delay_ns": 125000000, "queue": {"kind": "drop_tail", "limit_pkts": 2000}}"#;
    let flows: Vec<String> = (0..1000)
        .map(|number| {
            format!(
                r#"{{"name": "f{number}", "variant": "cubic", "profile": "linux", "start_ns": {},
                    "proxies": [{{"node": "p", "receive_buffer": {{"pkts": 50}}, "advertise": "free"}}]}}"#,
                number * 1_000_000
            )
        })
        .collect();
    let text = format!(
        r#"{{"duration_ns": 60000000000, "path": {{"nodes": ["a", "p", "b"], "links": [
            {{"name": "ap", "forward": {near}, "reverse": {near}}},
            {{"name": "pb", "forward": {far}, "reverse": {far}}}]}}, "flows": [{}]}}"#,
        flows.join(",")
    );
    serde_json::from_str(&text).expect("well-formed")
}

#[test]
fn a_thousand_connections_fill_the_link_behind_one_gateway() {
    let delivered = |seconds: u64| -> u64 {
        let mut config = thousand();
        config.duration_ns = seconds * 1_000_000_000;
        let summary = run(&config, 1).expect("valid");
        summary.flows.iter().map(|flow| flow.delivered_bytes).sum()
    };
    // Octets of IP: 1500 for 1448 of payload.
    let octets = (delivered(20) - delivered(10)) as f64 * 1500.0 / 1448.0;
    let used = octets * 8.0 / 10.0 / 100e6;
    assert!(used >= 0.95, "{used}");
}

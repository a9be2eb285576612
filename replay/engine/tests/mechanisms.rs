//! What a stack may have besides its variant (`docs/mechanisms.md`): whole runs over a path of 100 ms without a queue,
//! counted round trip by round trip.

use std::sync::atomic::AtomicBool;

use hindflight_engine::{Config, Direction, Event, MILLISECOND, Nanos, Segment, Tap, World};

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

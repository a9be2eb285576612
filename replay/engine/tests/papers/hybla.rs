//! Hybla's increase as in Linux: rho from the minimum smoothed round-trip time, 2^rho - 1 per ACK in slow start, rho^2/cwnd
//! in congestion avoidance, the initial window scaled by rho.

use hindflight_engine::cc::{AckEvidence, Controller, Signal};

use crate::support::{ack, controller, near, near_both, signal, windows};

/// The window after each of `acks` ACKs at a round-trip time in ms.
fn grown(params: &str, start: (u32, Option<u32>), rtt_ms: u64, acks: usize) -> Vec<f64> {
    let mut controller = controller("hybla", params, start.0, start.1);
    let mut on_event = || {
        controller.on_ack(&ack(0, 1, rtt_ms));
        controller.window().cwnd
    };
    (0..acks).map(|_| on_event()).collect()
}

#[track_caller]
fn same(windows: &[f64], expected: &[f64]) {
    assert_eq!(windows.len(), expected.len());
    for (&window, &expected) in windows.iter().zip(expected) {
        near(window, expected);
    }
}

#[test]
fn slow_start_by_rho() {
    // rho 2: three segments per ACK. rho 1.5: 2^1.5 - 1. Shorter paths than RTT_0: rho 1, as Reno.
    same(&grown("{}", (4, None), 50, 3), &[7.0, 10.0, 13.0]);
    same(
        &grown(r#"{"rtt_0": 0.1}"#, (4, None), 150, 2),
        &[5.828_427_125, 7.656_854_249],
    );
    for rtt_ms in [5, 25] {
        same(&grown("{}", (4, None), rtt_ms, 2), &[5.0, 6.0]);
    }
    // rho 20 counts as 16, or what is asked for; the initial window becomes rho.
    same(&grown("{}", (4, None), 500, 1), &[20.0 + 65_535.0]);
    same(
        &grown(r#"{"max_exponent": 3}"#, (4, None), 500, 2),
        &[27.0, 34.0],
    );
}

#[test]
fn slow_start_ends_at_ssthresh() {
    same(&grown("{}", (4, Some(12)), 50, 3), &[7.0, 10.0, 12.0]);
    same(&grown("{}", (4, Some(100)), 500, 1), &[100.0]);
}

#[test]
fn the_initial_window_is_rho_at_least_and_no_more_than_ssthresh() {
    let unscaled = r#"{"max_exponent": 1, "scale_initial_window": false}"#;
    let scaled = r#"{"max_exponent": 1}"#;
    same(&grown(unscaled, (4, None), 260, 1), &[5.0]);
    // rho 10.4: whole segments.
    same(&grown(scaled, (4, None), 260, 1), &[11.0]);
    same(&grown(scaled, (30, None), 260, 1), &[31.0]);
    // At 8 avoidance begins, in which the first ACK buys 10.4^2 / 8 = 13.52.
    same(&grown(scaled, (4, Some(8)), 260, 1), &[21.0]);
}

#[test]
fn avoidance_by_rho_squared() {
    // rho 4: 16/32 per ACK, 16/33, then 16/34; whole segments are paid out.
    same(
        &grown("{}", (32, Some(2)), 100, 7),
        &[32.0, 33.0, 33.0, 33.0, 34.0, 34.0, 35.0],
    );
    // rho 1: a segment per 32 ACKs.
    let short = grown("{}", (32, Some(2)), 25, 32);
    near(short[30], 32.0);
    near(short[31], 33.0);
}

#[test]
fn the_increment_is_by_the_ack_and_only_under_a_window_that_is_used() {
    let mut controller = controller("hybla", "{}", 4, None);
    let unused = AckEvidence {
        cwnd_limited: false,
        ..ack(0, 1, 50)
    };
    controller.on_ack(&unused);
    near(controller.window().cwnd, 4.0);
    controller.on_ack(&ack(0, 2, 50));
    near(controller.window().cwnd, 7.0);
}

#[test]
fn rho_follows_the_least_smoothed_round_trip_down_only() {
    let mut controller = controller("hybla", "{}", 100, None);
    let mut step = |rtt_ms| {
        let before = controller.window().cwnd;
        controller.on_ack(&ack(0, 1, rtt_ms));
        controller.window().cwnd - before
    };
    for (rtt_ms, expected) in [(100, 15.0), (200, 15.0), (75, 7.0), (100, 7.0), (50, 3.0)] {
        near(step(rtt_ms), expected);
    }
}

#[test]
fn a_loss_halves_the_flight_and_what_was_saved_for_a_segment_is_gone() {
    let half = |controller: &mut Controller| {
        // rho 4, window 32: half a segment is saved, then as much again buys one.
        controller.on_ack(&ack(0, 1, 100));
        controller.on_congestion(&signal(Signal::Loss, 64.0));
        near_both(windows(controller), (32.0, 32.0));
        controller.on_ack(&ack(0, 1, 100));
        near(controller.window().cwnd, 32.0);
        controller.on_ack(&ack(0, 1, 100));
        near(controller.window().cwnd, 33.0);
    };
    half(&mut controller("hybla", "{}", 32, Some(2)));
    let mut late = controller("hybla", "{}", 32, Some(2));
    late.on_timeout(&signal(Signal::Timeout, 64.0));
    near_both(windows(&late), (1.0, 32.0));
}

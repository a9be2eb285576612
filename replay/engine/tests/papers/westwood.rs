//! Westwood+: one sample per round trip, two stages of a filter with weights 7/8 and 1/8, and what a loss and a timeout
//! make of rate times minimum round-trip time (Grieco and Mascolo 2004; Linux's tcp_westwood).

use hindflight_engine::cc::Signal;

use crate::support::{ack, after_loss, controller, near, near_both, signal, windows};

#[test]
fn samples_and_both_stages_of_the_filter() {
    // Minimum round-trip time 1 s, so that ssthresh is the rate. The ACK that closes a sample belongs to the next one.
    let table = [
        (0, 100, 1000, 2.0),
        (600, 100, 1000, 2.0),
        // No longer than the round trip: nothing yet.
        (1000, 50, 1000, 2.0),
        // 250 in 1.25 s fill both stages.
        (1250, 40, 1000, 200.0),
        (1800, 60, 1000, 200.0),
        // 100 in 1.25 s are 80: first stage 185, then 200 7/8 + 185/8.
        (2500, 30, 1000, 198.125),
        // A longer round trip makes the sample longer: 30 + 70 in 2.5 s are 40: 166.875, then 194.21875.
        (4000, 70, 2000, 198.125),
        (5000, 10, 2000, 194.218_75),
    ];
    let mut controller = controller("westwood-plus", "{}", 300, None);
    for (n, (t_ms, delivered, rtt_ms, expected)) in table.into_iter().enumerate() {
        controller.observe(&ack(t_ms, delivered, rtt_ms));
        if n == 0 {
            continue;
        }
        near(after_loss(&controller).1, expected);
    }
}

#[test]
fn the_filter_and_the_least_interval_are_parameters() {
    let rate = |params: &str| {
        let mut controller = controller("westwood-plus", params, 300, None);
        // Ten segments every 20 ms over 10 ms, then half of that.
        for n in 0..=3_u64 {
            controller.observe(&ack(20 * n, 10, 10));
        }
        for n in 4..=6_u64 {
            controller.observe(&ack(20 * n, 5, 10));
        }
        after_loss(&controller).1 / 0.01
    };
    // Samples of 60 ms: 30 segments, 500/s; then 10 + 5 + 5, 333.3/s: 479.17, 497.40.
    near(rate("{}"), 497.395_833_333);
    // Half and half: 416.67, 458.33.
    near(rate(r#"{"filter": 0.5}"#), 458.333_333_333);
    // Samples of 20 ms: 500 four times, then 250 twice (each ACK counts in the next sample).
    let first = [468.75, 441.406_25];
    let second = 0.875 * (0.875 * 500.0 + 0.125 * first[0]) + 0.125 * first[1];
    near(rate(r#"{"min_interval": 0.001}"#), second);
}

#[test]
fn a_loss_never_raises_the_window_and_two_segments_are_the_least() {
    let steady = |cwnd, rtt_ms| {
        let mut controller = controller("westwood-plus", "{}", cwnd, None);
        for n in 0..2000 {
            controller.observe(&ack(10 * n, 1, rtt_ms));
        }
        controller
    };
    // 100 segments/s.
    near_both(after_loss(&steady(60, 205)), (20.5, 20.5));
    near_both(after_loss(&steady(12, 205)), (12.0, 20.5));
    near_both(after_loss(&steady(12, 5)), (2.0, 2.0));
}

#[test]
fn a_timeout_measures_the_least_round_trip_anew() {
    let mut controller = controller("westwood-plus", "{}", 60, None);
    for n in 0..2000 {
        controller.observe(&ack(10 * n, 1, 205));
    }
    controller.on_timeout(&signal(Signal::Timeout, 10.0));
    near_both(windows(&controller), (1.0, 20.5));
    // A path twice as long: before the timeout the old minimum would have stayed.
    for n in 2000..4000 {
        controller.observe(&ack(10 * n, 1, 405));
    }
    let longer = after_loss(&controller).1;
    assert!((40.0..41.0).contains(&longer), "{longer}");
    controller.on_timeout(&signal(Signal::RepeatedTimeout, 10.0));
    near_both(windows(&controller), (1.0, 20.5));
}

#[test]
fn without_a_round_trip_a_loss_costs_half_the_flight() {
    let controller = controller("westwood-plus", "{}", 60, None);
    near_both(after_loss(&controller), (5.0, 5.0));
}

//! ASRAN's Algorithm 1 over both bases, with both readings of its window rule and both of its timeout rule: ssthresh =
//! max(the base's, the window before the loss before), and what is remembered when.

use hindflight_engine::cc::{AckEvidence, Adjustment, Controller, Signal};

use crate::support::{ack, controller, near, near_both, signal, windows};

/// What happens at a window of so many segments, and cwnd and ssthresh after it.
type Step = (Signal, f64, (f64, f64));

fn asran(base: &str, mode: &str, on_timeout: &str, cwnd: u32) -> Controller {
    let params = format!(r#"{{"base": "{base}", "mode": "{mode}", "on_timeout": "{on_timeout}"}}"#);
    controller("asran", &params, cwnd, None)
}

#[track_caller]
fn check(base: &str, mode: &str, on_timeout: &str, steps: &[Step]) {
    let mut controller = asran(base, mode, on_timeout, 40);
    for &(kind, cwnd, expected) in steps {
        // Above what the step before left: the window had grown.
        controller.adjust(Adjustment::AtLeast(cwnd));
        near(controller.window().cwnd, cwnd);
        let signal = signal(kind, 7.0);
        match kind {
            Signal::Loss => controller.on_congestion(&signal),
            Signal::EcnEcho => controller.on_mark(&signal, None),
            Signal::Timeout | Signal::RepeatedTimeout => controller.on_timeout(&signal),
        }
        near_both(windows(&controller), expected);
    }
}

use Signal::{EcnEcho, Loss, RepeatedTimeout, Timeout};

#[test]
fn newreno_halves_and_slow_start_leads_back() {
    // The first loss is the base's. The second, below the window of the first, is taken for an unstable link. The third
    // is at more than twice the window of the second: congestion. The fourth, at the same window, is not. One at 61.9
    // halves to whole segments, as the base does.
    check(
        "newreno",
        "halve_then_slow_start",
        "original",
        &[
            (Loss, 40.0, (20.0, 20.0)),
            (Loss, 24.0, (12.0, 40.0)),
            (Loss, 60.0, (30.0, 30.0)),
            (Loss, 60.0, (30.0, 60.0)),
            (Loss, 61.9, (30.0, 60.0)),
            (EcnEcho, 40.0, (20.0, 61.9)),
            // The base's; 40 stays remembered, not 50.
            (Timeout, 50.0, (1.0, 25.0)),
            (RepeatedTimeout, 1.0, (1.0, 25.0)),
            (Loss, 30.0, (15.0, 40.0)),
        ],
    );
}

#[test]
fn newreno_halves_and_a_timeout_is_revised() {
    check(
        "newreno",
        "halve_then_slow_start",
        "revise",
        &[
            (Loss, 40.0, (20.0, 20.0)),
            (Timeout, 24.0, (1.0, 40.0)),
            // The timer goes off again: nothing is revised, nothing remembered.
            (RepeatedTimeout, 1.0, (1.0, 40.0)),
            (Loss, 30.0, (15.0, 24.0)),
            (Timeout, 70.0, (1.0, 35.0)),
            (Loss, 36.0, (18.0, 70.0)),
        ],
    );
}

#[test]
fn newreno_as_a_kernels_hook_has_it() {
    check(
        "newreno",
        "hook",
        "original",
        &[
            (Loss, 40.0, (20.0, 20.0)),
            (Loss, 24.0, (40.0, 40.0)),
            (Loss, 60.0, (30.0, 30.0)),
            (Timeout, 50.0, (1.0, 25.0)),
            (Loss, 30.0, (60.0, 60.0)),
        ],
    );
    check(
        "newreno",
        "hook",
        "revise",
        &[
            (Loss, 40.0, (20.0, 20.0)),
            (Timeout, 24.0, (1.0, 40.0)),
            (Loss, 44.0, (24.0, 24.0)),
        ],
    );
}

#[test]
fn cubic_keeps_seven_tenths() {
    check(
        "cubic",
        "halve_then_slow_start",
        "original",
        &[
            (Loss, 40.0, (28.0, 28.0)),
            (Loss, 30.0, (21.0, 40.0)),
            // At 4/3 of the window remembered, not at twice it, the base's share is the more.
            (Loss, 50.0, (35.0, 35.0)),
            (Loss, 50.0, (35.0, 50.0)),
            (Timeout, 60.0, (1.0, 42.0)),
            (Loss, 44.0, (30.0, 50.0)),
        ],
    );
    check(
        "cubic",
        "halve_then_slow_start",
        "revise",
        &[
            (Loss, 40.0, (28.0, 28.0)),
            (Timeout, 30.0, (1.0, 40.0)),
            (Loss, 45.0, (31.0, 31.0)),
        ],
    );
}

#[test]
fn cubic_as_a_kernels_hook_has_it() {
    check(
        "cubic",
        "hook",
        "original",
        &[
            (Loss, 40.0, (28.0, 28.0)),
            (Loss, 30.0, (40.0, 40.0)),
            (Timeout, 60.0, (1.0, 42.0)),
            (Loss, 44.0, (30.0, 30.0)),
        ],
    );
    check(
        "cubic",
        "hook",
        "revise",
        &[
            (Loss, 40.0, (28.0, 28.0)),
            (Timeout, 30.0, (1.0, 40.0)),
            (Loss, 41.0, (30.0, 30.0)),
        ],
    );
}

#[test]
fn a_spurious_loss_is_not_remembered() {
    let mut controller = asran("newreno", "halve_then_slow_start", "original", 40);
    controller.on_congestion(&signal(Loss, 7.0));
    controller.adjust(Adjustment::AtLeast(60.0));
    controller.on_congestion(&signal(Loss, 7.0));
    controller.adjust(Adjustment::Undo);
    near_both(windows(&controller), (60.0, 20.0));
    // 40, of the loss before the one that was undone, and half of 60.
    controller.on_congestion(&signal(Loss, 7.0));
    near_both(windows(&controller), (30.0, 40.0));
}

#[test]
fn slow_start_leads_to_the_window_remembered_and_avoidance_on() {
    let mut controller = asran("newreno", "halve_then_slow_start", "original", 40);
    controller.on_congestion(&signal(Loss, 7.0));
    controller.adjust(Adjustment::AtLeast(24.0));
    controller.on_congestion(&signal(Loss, 7.0));
    // 28 segments from 12 to 40, then one for a window of 40.
    for n in 1..=28 {
        controller.on_ack(&ack(n, 1, 100));
        near(controller.window().cwnd, 12.0 + n as f64);
    }
    for n in 29..68 {
        controller.on_ack(&ack(n, 1, 100));
        near(controller.window().cwnd, 40.0);
    }
    controller.on_ack(&ack(68, 1, 100));
    near(controller.window().cwnd, 41.0);
}

/// A second of ACKs over a round trip of one, a window of them.
fn second(controller: &mut Controller, start_s: u64) -> f64 {
    let acks = controller.window().cwnd as u64;
    for n in 0..acks {
        let now = AckEvidence {
            min_rtt: Some(1_000_000_000),
            ..ack(1000 * start_s + 1000 * n / acks, 1, 1000)
        };
        controller.on_ack(&now);
    }
    controller.window().cwnd
}

#[test]
fn over_cubic_an_epoch_begins_where_slow_start_ends() {
    // W_max 68 after a loss at 80 below one at 100 (fast convergence), far below where slow start ends: the epoch starts
    // at 100 with K = 0, and W(t) = 100 + 0.4 t^3 (papers.md 002(a) 6), a round trip ahead: 150 to 186 after 5 s.
    let mut controller = asran("cubic", "halve_then_slow_start", "original", 100);
    controller.on_congestion(&signal(Loss, 100.0));
    controller.adjust(Adjustment::AtLeast(80.0));
    controller.on_congestion(&signal(Loss, 80.0));
    near_both(windows(&controller), (56.0, 100.0));
    for n in 0..44 {
        controller.on_ack(&ack(n, 1, 1000));
    }
    near(controller.window().cwnd, 100.0);
    let windows: Vec<f64> = (1..=5).map(|s| second(&mut controller, s)).collect();
    assert!((100.4..=104.0).contains(&windows[0]), "{windows:?}");
    assert!((140.0..=187.0).contains(&windows[4]), "{windows:?}");
    // Where ssthresh is the base's, CUBIC's own W_max governs: K = cbrt(30 / 0.4) = 4.2 s back to 100.
    let mut plain = asran("cubic", "halve_then_slow_start", "original", 100);
    plain.on_congestion(&signal(Loss, 100.0));
    near_both(crate::support::windows(&plain), (70.0, 70.0));
    let windows: Vec<f64> = (1..=5).map(|s| second(&mut plain, s)).collect();
    assert!((70.0..99.5).contains(&windows[1]), "{windows:?}");
    assert!((98.0..102.0).contains(&windows[4]), "{windows:?}");
}

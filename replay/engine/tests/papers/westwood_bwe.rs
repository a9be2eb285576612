//! Westwood of 2001: the sample per ACK b_k = d_k / dt, its mean with the one before through a low pass, samples of zero
//! in silence (Mascolo et al. 2001 §2), and what a loss and a timeout make of the estimate.

use hindflight_engine::cc::{Controller, Signal};

use crate::support::{ack, after_loss, controller, near, near_both, signal, windows};

/// Instants with ACKs: their time in ms and the segments that each ACK delivers.
const INSTANTS: [(u64, &[u32]); 10] = [
    (0, &[100]),
    (100, &[1000]),
    (200, &[1000]),
    (400, &[600]),
    (450, &[2000]),
    (500, &[3000, 800]),
    (520, &[200]),
    (1800, &[1200]),
    (1810, &[100]),
    (1820, &[2500]),
];

/// What the table says of an instant after the first: samples of zero before it, seconds left after them, the sample, the
/// estimate in segments per second.
type Row = (u32, f64, f64, f64);

/// The estimate, read from the window after a loss: the minimum round-trip time is 1 s.
fn bwe(controller: &Controller) -> f64 {
    after_loss(controller).1
}

#[track_caller]
fn check(params: &str, tau_s: f64, m: f64, table: &[Row; 9]) {
    let mut controller = controller("westwood-bwe", params, 60, None);
    let (mut estimate, mut last_sample) = (0.0, 0.0);
    for (n, (t_ms, delivered)) in INSTANTS.iter().enumerate() {
        for &delivered in *delivered {
            controller.observe(&ack(*t_ms, delivered, 1000));
        }
        if n == 0 {
            continue;
        }
        let (zeros, left_s, sample, expected) = table[n - 1];
        let mut step = |sample: f64, dt_s: f64| {
            let gain = (2.0 * tau_s - dt_s) / (2.0 * tau_s + dt_s);
            estimate = gain * estimate + (1.0 - gain) * (sample + last_sample) / 2.0;
            last_sample = sample;
        };
        for _ in 0..zeros {
            step(0.0, tau_s / m);
        }
        step(sample, left_s);
        near(estimate, expected);
        near(bwe(&controller), expected);
    }
}

#[test]
fn samples_and_filter() {
    // Row 1: b = 1000 / 0.1 s and the one before 0, through a gain of 9/11. Row 6: the ACK with 800 segments came at
    // the instant of another and waited for this one: (800 + 200) / 0.02 s. Row 7: five samples of zero in 1.28 s.
    let table = [
        (0, 0.1, 10_000.0, 909.090_909_091),
        (0, 0.1, 10_000.0, 2_561.983_471_074),
        (0, 0.2, 3_000.0, 3_874.655_647_383),
        (0, 0.05, 40_000.0, 5_553.259_871_442),
        (0, 0.05, 60_000.0, 9_786.282_740_828),
        (0, 0.02, 50_000.0, 11_559.369_692_168),
        (5, 0.03, 937.5, 2_094.306_688_976),
        (0, 0.01, 10_000.0, 2_161.127_348_600),
        (0, 0.01, 250_000.0, 4_692.590_173_380),
    ];
    check("{}", 0.5, 2.0, &table);
}

#[test]
fn another_time_constant() {
    let table = [
        (0, 0.1, 10_000.0, 1_666.666_666_667),
        (0, 0.1, 10_000.0, 4_444.444_444_444),
        (1, 0.075, 3_000.0, 3_840.579_710_145),
        (0, 0.05, 40_000.0, 7_051.383_399_209),
        (0, 0.05, 60_000.0, 14_860.222_781_171),
        (0, 0.02, 50_000.0, 17_947.897_951_851),
        (10, 0.03, 937.5, 238.672_616_510),
        (0, 0.01, 10_000.0, 443.773_690_372),
        (0, 0.01, 250_000.0, 5_524.410_016_240),
    ];
    check(r#"{"tau": 0.25}"#, 0.25, 2.0, &table);
}

#[test]
fn silence_is_sampled_the_more_often_the_greater_m_is() {
    let table = [
        (0, 0.1, 10_000.0, 909.090_909_091),
        (0, 0.1, 10_000.0, 2_561.983_471_074),
        (1, 0.075, 3_000.0, 2_879.983_770_047),
        (0, 0.05, 40_000.0, 4_653.318_649_090),
        (0, 0.05, 60_000.0, 8_972.050_206_320),
        (0, 0.02, 50_000.0, 10_777.067_845_288),
        (10, 0.03, 937.5, 1_394.486_788_830),
        (0, 0.01, 10_000.0, 1_475.165_268_259),
        (0, 0.01, 250_000.0, 4_020.211_500_571),
    ];
    check(r#"{"m": 4}"#, 0.5, 4.0, &table);
}

#[test]
fn a_loss_and_a_timeout_take_the_estimate() {
    // 100 segments/s by 0.2 s are 20 segments.
    let steady = |cwnd| {
        let mut controller = controller("westwood-bwe", "{}", cwnd, None);
        for n in 0..3000 {
            controller.observe(&ack(10 * n, 1, 200));
        }
        controller
    };
    near_both(after_loss(&steady(60)), (20.0, 20.0));
    near_both(after_loss(&steady(12)), (12.0, 20.0));
    let mut late = steady(60);
    late.on_timeout(&signal(Signal::Timeout, 10.0));
    near_both(windows(&late), (1.0, 20.0));
    // Nothing delivered for long: two segments, RFC 5681 §3.1.
    late.observe(&ack(60_000, 0, 200));
    near_both(after_loss(&late), (1.0, 2.0));
}

//! Westwood-ABSE: interval, sample, gain and estimate per ACK (the HAPS/UAV paper, equations (1) to (3); Wang et al. 2002
//! for the adaptive time constant), and what a loss and a timeout make of the estimate.

use hindflight_engine::MILLISECOND;
use hindflight_engine::cc::{AckEvidence, Adjustment, Controller, Signal};

use crate::support::{ack, after_loss, controller, near, near_both, signal, windows};

const FIXED: &str = r#"{"tau": "fixed"}"#;
/// The window throughout: only `observe` is called, so that nothing moves it.
const CWND: u32 = 2000;
/// The minimum of all round-trip times below, in seconds.
const MIN_RTT_S: f64 = 0.5;

/// An instant with ACKs: its time and round-trip time in ms, segments delivered.
struct Instant {
    t_ms: u64,
    delivered: &'static [u32],
    rtt_ms: u64,
}

const fn at(t_ms: u64, delivered: &'static [u32], rtt_ms: u64) -> Instant {
    Instant {
        t_ms,
        delivered,
        rtt_ms,
    }
}

/// A long first interval, a rising and a falling round-trip time, two ACKs of one instant, an interval of one ACK
/// spacing, a pause longer than the round-trip time and than two time constants.
const INSTANTS: [Instant; 10] = [
    at(0, &[100], 500),
    at(100, &[1000], 500),
    at(200, &[1000], 500),
    at(400, &[400], 800),
    at(450, &[2000], 750),
    at(500, &[3000, 800], 700),
    at(520, &[200], 700),
    at(1800, &[1200], 600),
    at(1810, &[100], 600),
    at(1820, &[2500], 600),
];

/// What the table says of an instant after the first: interval in ms, segments delivered within it, time constant in
/// seconds, estimate in segments per second.
type Row = (f64, u32, f64, f64);

/// The estimate, read from what a loss makes of it.
fn ere(controller: &Controller) -> f64 {
    after_loss(controller).1 / MIN_RTT_S
}

/// Plays the instants and compares the estimate with the table, whose rows must follow from one another.
#[track_caller]
fn check(params: &str, table: &[Row; 9]) {
    let mut controller = controller("westwood-abse", params, CWND, None);
    let virtual_samples = params.contains("virtual_samples");
    let mut before = 0.0;
    for (n, instant) in INSTANTS.iter().enumerate() {
        for &delivered in instant.delivered {
            controller.observe(&ack(instant.t_ms, delivered, instant.rtt_ms));
        }
        if n == 0 {
            continue;
        }
        let (interval_ms, within, tau_s, expected) = table[n - 1];
        let mut dt_s = (instant.t_ms - INSTANTS[n - 1].t_ms) as f64 / 1e3;
        if virtual_samples {
            // Samples of zero at tau / 2: the gain is (2 - 1/2) / (2 + 1/2).
            while dt_s > tau_s / 2.0 {
                before *= 0.6;
                dt_s -= tau_s / 2.0;
            }
        }
        let gain = ((2.0 * tau_s - dt_s) / (2.0 * tau_s + dt_s)).max(0.0);
        let sample = f64::from(within) / (interval_ms / 1e3);
        near(gain * before + (1.0 - gain) * sample, expected);
        near(ere(&controller), expected);
        before = expected;
    }
}

#[test]
fn interval_and_filter_with_a_fixed_time_constant() {
    // Row 1: no estimate, so the interval is the round-trip time. Row 2: 500 (2000 - 400 · 0.5) / 2000 = 450 ms.
    // Row 6: 6247 · 0.5 > 2000, so one ACK spacing. Row 7: 1280 ms cut to one round trip; 1.28 s > 2 tau, gain 0.
    let table = [
        (500.0, 1100, 0.5, 400.0),
        (450.0, 2100, 0.5, 1_175.757_575_758),
        (564.848_484_848, 2500, 0.5, 2_259.160_272_25),
        (326.407_448_953, 3400, 0.5, 3_036.043_003_24),
        (168.692_474_433, 6200, 0.5, 6_247.207_445_358),
        (20.0, 200, 0.5, 6_394.375_780_834),
        (600.0, 1200, 0.5, 2_000.0),
        (300.0, 1300, 0.5, 2_046.204_620_462),
        (293.069_306_931, 3800, 0.5, 2_262.442_473_843),
    ];
    check(FIXED, &table);
}

#[test]
fn another_time_constant() {
    let table = [
        (500.0, 1100, 0.25, 733.333_333_333),
        (408.333_333_333, 2100, 0.25, 2_203.174_603_175),
        (359.365_079_365, 2400, 0.25, 4_760.472_104_036),
        (50.0, 2000, 0.25, 11_167.658_994_211),
        (50.0, 3800, 0.25, 22_955.357_358_9),
        (20.0, 200, 0.25, 21_958.791_408_215),
        (600.0, 1200, 0.25, 2_000.0),
        (300.0, 1300, 0.25, 2_091.503_267_974),
        (286.274_509_804, 3800, 0.25, 2_530.031_477_18),
    ];
    check(r#"{"tau": "fixed", "tau_fixed": 0.25}"#, &table);
}

#[test]
fn without_bounds_the_pause_is_the_interval() {
    let table = [
        (500.0, 1100, 0.5, 400.0),
        (450.0, 2100, 0.5, 1_175.757_575_758),
        (564.848_484_848, 2500, 0.5, 2_259.160_272_25),
        (326.407_448_953, 3400, 0.5, 3_036.043_003_24),
        (168.692_474_433, 6200, 0.5, 6_247.207_445_358),
        (20.0, 200, 0.5, 6_394.375_780_834),
        (1_280.0, 1200, 0.5, 937.5),
        (459.375, 1300, 0.5, 974.973_900_451),
        (453.753_914_932, 3800, 0.5, 1_121.500_821_074),
    ];
    check(r#"{"tau": "fixed", "clamp_interval": false}"#, &table);
}

#[test]
fn virtual_samples_fill_the_pause() {
    // Row 7: five samples of zero at 0.25 s, which leave 0.03 s of the pause.
    let table = [
        (500.0, 1100, 0.5, 400.0),
        (450.0, 2100, 0.5, 1_175.757_575_758),
        (564.848_484_848, 2500, 0.5, 2_259.160_272_25),
        (326.407_448_953, 3400, 0.5, 3_036.043_003_24),
        (168.692_474_433, 6200, 0.5, 6_247.207_445_358),
        (20.0, 200, 0.5, 6_394.375_780_834),
        (600.0, 1200, 0.5, 584.766_855_239),
        (512.284_971_714, 1300, 0.5, 623.437_810_206),
        (506.484_328_469, 3800, 0.5, 759.660_824_991),
    ];
    check(r#"{"tau": "fixed", "late_ack": "virtual_samples"}"#, &table);
}

#[test]
fn the_adaptive_time_constant() {
    // Row 1: U = 0.4 · 2200, the maximum so far: 0.5 + 10 · 0.5. Row 3: U = 1216.6 of 1344.8.
    let table = [
        (500.0, 1100, 5.5, 39.639_639_64),
        (495.045_045_045, 2100, 5.5, 115.358_532_917),
        (776.928_293_417, 2500, 8.037_183_574, 191.611_983_898),
        (714.072_753_019, 4500, 8.25, 228.532_025_558),
        (660.006_895_527, 8300, 7.7, 308.448_492_632),
        (646.021_513_789, 8500, 5.341_778_862, 356.466_201_855),
        (600.0, 1200, 6.6, 647.035_713_13),
        (502.944_643_031, 1300, 4.436_665_183, 651.398_360_274),
        (502.290_245_959, 3800, 4.917_684_354, 665.443_438_39),
    ];
    check("{}", &table);
}

#[test]
fn the_greatest_instability_is_forgotten_after_so_many_samples() {
    // Row 9 differs: among the last two samples it is the maximum, among the last ten row 7 is.
    let table = [
        (500.0, 1100, 5.5, 39.639_639_64),
        (495.045_045_045, 2100, 5.5, 115.358_532_917),
        (776.928_293_417, 2500, 8.037_183_574, 191.611_983_898),
        (714.072_753_019, 4500, 8.25, 228.532_025_558),
        (660.006_895_527, 8300, 7.7, 308.448_492_632),
        (646.021_513_789, 8500, 5.341_778_862, 356.466_201_855),
        (600.0, 1200, 6.6, 647.035_713_13),
        (502.944_643_031, 1300, 4.436_665_183, 651.398_360_274),
        (502.290_245_959, 3800, 6.6, 661.866_109_901),
    ];
    check(r#"{"tau": "adaptive", "instability_samples": 2}"#, &table);
}

#[test]
fn weights_of_the_adaptive_time_constant() {
    let table = [
        (500.0, 1100, 2.0, 107.317_073_171),
        (486.585_365_854, 2100, 2.0, 312.608_409_781),
        (737.478_318_044, 2500, 3.2, 499.112_758_881),
        (656.416_357_71, 4500, 3.0, 604.175_441_037),
        (594.269_297_818, 8300, 2.8, 840.680_866_31),
        (552.880_848_396, 8500, 2.8, 944.120_986_776),
        (600.0, 1200, 2.4, 1_388.701_623_923),
        (391.694_756_412, 1300, 2.311_474_363, 1_397.034_154_236),
        (390.444_876_865, 3800, 2.4, 1_431.693_005_147),
    ];
    check(r#"{"tau": "adaptive", "n": 3, "beta": 0.9}"#, &table);
}

/// ACKs of one segment every 10 ms over half a second of round trip, under a window that they fill exactly.
fn steady(params: &str, acks: u64) -> Controller {
    let mut controller = controller("westwood-abse", params, 50, None);
    for n in 0..acks {
        controller.observe(&ack(10 * n, 1, 500));
    }
    controller
}

#[test]
fn an_interval_shorter_than_the_ack_spacing_is_lengthened_to_it() {
    // The estimate comes near 50 / 0.5 s from below, where (2) gives next to no interval.
    near(ere(&steady(FIXED, 200)), 99.674_943_123);
    near(
        ere(&steady(r#"{"tau": "fixed", "clamp_interval": false}"#, 200)),
        100.161_849_870,
    );
}

#[test]
fn the_shortest_interval() {
    // 300 segments/s fill a window of 20 over 100 ms; then two ACKs, 0.2 ms apart, with 2 segments each.
    let table = [
        (0.001, 393.069_307, 523.899_618),
        (0.0001, 492.079_208, 680.354_867),
        (0.002, 343.564_356, 406.068_033),
    ];
    for (min_s, first, second) in table {
        let params = format!(r#"{{"tau": "fixed", "tau_fixed": 0.01, "min_interval": {min_s}}}"#);
        let mut controller = controller("westwood-abse", &params, 20, None);
        let rate = |controller: &Controller| after_loss(controller).1 / 0.1;
        for n in 0..40 {
            controller.observe(&ack(10 * n, 3, 100));
        }
        near(rate(&controller), 300.0);
        for (tenth_ms, expected) in [(3902, first), (3904, second)] {
            let tight = AckEvidence {
                now: tenth_ms * MILLISECOND / 10,
                ..ack(0, 2, 100)
            };
            controller.observe(&tight);
            near(rate(&controller), expected);
        }
    }
}

#[test]
fn acks_of_one_instant_are_one_ack() {
    for tau in ["fixed", "adaptive"] {
        let params = format!(r#"{{"tau": "{tau}", "instability_samples": 3}}"#);
        let [mut single, mut split] =
            [0, 1].map(|_| controller("westwood-abse", &params, 60, None));
        for n in 0..40 {
            // The window's edge moves, so that the interval is now long, now short.
            let rtt_ms = if n % 7 == 0 { 140 } else { 100 };
            single.observe(&ack(10 * n, 12, rtt_ms));
            for part in [5, 4, 3] {
                split.observe(&ack(10 * n, part, rtt_ms));
            }
        }
        near_both(after_loss(&split), after_loss(&single));
        assert!(after_loss(&single).1 > 20.0);
    }
}

#[test]
fn a_loss_takes_the_estimate_and_never_raises_the_window() {
    // 100 segments/s by 0.5 s are 50 segments.
    let mut controller = steady(FIXED, 2000);
    let with_cwnd = |controller: &mut Controller, cwnd: f64| {
        controller.adjust(Adjustment::AtLeast(cwnd));
        let after = after_loss(controller);
        assert!((after.1 - 50.0).abs() < 0.1, "{after:?}");
        after.0
    };
    assert!((with_cwnd(&mut controller, 80.0) - 50.0).abs() < 0.1);
    // A timeout leaves a window of one, which a loss then leaves alone.
    controller.on_timeout(&signal(Signal::Timeout, 10.0));
    assert!((controller.window().ssthresh - 50.0).abs() < 0.1);
    near(controller.window().cwnd, 1.0);
    near(with_cwnd(&mut controller, 8.0), 8.0);
}

#[test]
fn ssthresh_is_two_segments_at_least_and_holds_when_a_timeout_repeats() {
    for kind in [Signal::Loss, Signal::Timeout] {
        let mut slow = controller("westwood-abse", FIXED, 10, None);
        for n in 0..100 {
            slow.observe(&ack(1000 * n, 1, 500));
        }
        match kind {
            Signal::Timeout => slow.on_timeout(&signal(kind, 10.0)),
            _ => slow.on_congestion(&signal(kind, 10.0)),
        }
        near(slow.window().ssthresh, 2.0);
    }
    let mut controller = steady(FIXED, 2000);
    controller.on_timeout(&signal(Signal::Timeout, 10.0));
    let before = controller.window().ssthresh;
    for n in 2000..2100 {
        controller.observe(&ack(10 * n, 2, 500));
    }
    controller.on_timeout(&signal(Signal::RepeatedTimeout, 10.0));
    near_both(windows(&controller), (1.0, before));
    controller.on_timeout(&signal(Signal::Timeout, 10.0));
    assert!(controller.window().ssthresh > before + 10.0);
}

#[test]
fn the_least_round_trip_is_that_of_the_connection_and_karns_rule_leaves_it() {
    let mut controller = steady(FIXED, 2000);
    let before = after_loss(&controller).1;
    // One lower sample among higher ones halves what the estimate is multiplied by; an ACK without a sample does not.
    let karn = AckEvidence {
        rtt: None,
        srtt: None,
        ..ack(20_000, 1, 1)
    };
    controller.observe(&karn);
    assert!((after_loss(&controller).1 - before).abs() < 0.5);
    controller.observe(&ack(20_010, 1, 250));
    controller.observe(&ack(20_020, 1, 500));
    assert!((after_loss(&controller).1 - before / 2.0).abs() < 0.5);
}

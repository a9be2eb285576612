//! Compound TCP: the delay window per round trip, the increase of the sum per ACK, and the decrease on a loss and a timeout
//! (draft-sridharan-tcpm-ctcp-02 §3).

use hindflight_engine::cc::{AckEvidence, Adjustment, ConnectionEvent, Controller, Signal};

use crate::support::{SMSS, ack, controller, near, near_both, signal, windows};

/// A Compound flow whose every ACK acknowledges a window, so that each ends a round trip.
struct Flow {
    controller: Controller,
    now_ms: u64,
    snd_una: u64,
}

impl Flow {
    fn new(params: &str, cwnd: u32, ssthresh: u32) -> Self {
        Self {
            controller: controller("compound", params, cwnd, Some(ssthresh)),
            now_ms: 0,
            snd_una: 1,
        }
    }

    /// One segment is acknowledged and a round trip of `rtt_ms` is over; the window after it.
    fn round(&mut self, rtt_ms: u64) -> f64 {
        self.snd_una += SMSS;
        self.acknowledge(rtt_ms)
    }

    /// The same in the middle of a round trip.
    fn acknowledge(&mut self, rtt_ms: u64) -> f64 {
        self.now_ms += rtt_ms;
        let ack = AckEvidence {
            snd_una: self.snd_una,
            snd_nxt: self.snd_una,
            ..ack(self.now_ms, 1, rtt_ms)
        };
        self.controller.observe(&ack);
        self.controller.on_ack(&ack);
        self.controller.window().cwnd
    }

    fn lose(&mut self) -> f64 {
        self.controller.on_congestion(&signal(Signal::Loss, 10.0));
        self.controller.window().cwnd
    }
}

/// Round-trip times in ms: three at the base, a queue that builds up and goes, a new base.
const ROUNDS: [u64; 9] = [100, 100, 100, 110, 125, 115, 100, 90, 100];

/// Each round trip's window, from 256 segments: 1/win, then + 0.125 win^0.75 - 1 or - zeta diff.
#[track_caller]
fn check(params: &str, expected: [f64; 9]) {
    let mut flow = Flow::new(params, 256, 2);
    for (rtt_ms, expected) in ROUNDS.into_iter().zip(expected) {
        near(flow.round(rtt_ms), expected);
    }
}

#[test]
fn the_delay_window_by_round_trips() {
    // At 125 ms a fifth of 285 segments waits, more than the delay window of 29 has; at 110 ms 25, less than gamma.
    check(
        "{}",
        [
            263.003_998,
            270.171_490,
            277.505_174,
            285.007_772,
            256.018_522,
            256.022_428,
            263.026_951,
            270.194_977,
            277.529_204,
        ],
    );
}

#[test]
fn each_constant_reaches_its_place() {
    check(
        r#"{"alpha": 0.25}"#,
        [
            271.004_089,
            286.706_236,
            303.128_668,
            320.293_973,
            256.237_676,
            256.021_408,
            271.026_500,
            286.729_682,
            303.153_182,
        ],
    );
    check(
        r#"{"k": 0.5}"#,
        [
            257.003_922,
            258.011_745,
            259.023_479,
            260.039_131,
            256.019_379,
            256.023_285,
            257.027_297,
            258.035_212,
            259.047_037,
        ],
    );
    // Nothing ever reaches 60; 20 is reached at 110 ms and, over the new base, at 100.
    check(
        r#"{"gamma": 60}"#,
        [
            263.003_998,
            270.171_490,
            277.505_174,
            285.007_772,
            292.682_029,
            300.530_710,
            308.556_608,
            316.762_534,
            325.151_325,
        ],
    );
    check(
        r#"{"gamma": 20}"#,
        [
            263.003_998,
            270.171_490,
            277.505_174,
            256.015_013,
            256.018_919,
            256.022_825,
            263.027_358,
            270.195_393,
            256.034_234,
        ],
    );
    check(
        r#"{"zeta": 0.1}"#,
        [
            263.003_998,
            270.171_490,
            277.505_174,
            285.007_772,
            279.311_055,
            275.671_401,
            283.131_868,
            290.763_311,
            298.568_491,
        ],
    );
}

#[test]
fn a_small_window_has_no_delay_window() {
    // 0.125 · 16^0.75 = 1: nothing is left of it.
    let mut flow = Flow::new("{}", 15, 2);
    near(flow.round(100), 15.0 + 1.0 / 15.0);
}

#[test]
fn within_a_round_trip_an_ack_buys_its_share_of_a_segment() {
    let mut flow = Flow::new("{}", 256, 2);
    let first = flow.round(100);
    near(flow.acknowledge(100), first + 1.0 / first);
}

#[test]
fn a_loss_halves_renos_part_and_fills_up_to_the_rest() {
    // Three round trips: win 277.505, of it dwnd 21.494. The rest of the columns: after the loss, a round trip later,
    // after another loss. With beta 0.8 half of Reno's part is more than is left, and dwnd ends.
    for (beta, first, grown, second) in [
        (0.5, 138.752_587, 142.813_474, 71.406_737),
        (0.3, 194.253_622, 199.762_994, 139.834_096),
        (0.8, 128.005_705, 131.770_722, 64.006_759),
    ] {
        let mut flow = Flow::new(&format!(r#"{{"beta": {beta}}}"#), 256, 2);
        for _ in 0..3 {
            flow.round(100);
        }
        near(flow.lose(), first);
        near(flow.controller.window().ssthresh, first);
        near(flow.round(100), grown);
        near(flow.lose(), second);
    }
}

#[test]
fn a_spurious_loss_gives_the_delay_window_back() {
    let mut flow = Flow::new(r#"{"beta": 0.8}"#, 256, 2);
    for _ in 0..3 {
        flow.round(100);
    }
    let first = flow.lose();
    flow.controller.adjust(Adjustment::Undo);
    near(flow.controller.window().cwnd, 277.505_174);
    near(flow.lose(), first);
}

#[test]
fn slow_start_has_no_delay_window_and_renos_growth() {
    let mut flow = Flow::new("{}", 10, 40);
    for n in 1..=30 {
        near(flow.round(100), f64::from(10 + n));
    }
    // At ssthresh avoidance begins: the last round trip's delay counts, 0.125 · 40.025^0.75 - 1.
    near(flow.round(100), 40.025 + 0.989_108_707);
}

#[test]
fn a_queue_of_slow_start_does_not_weigh_on_the_first_round_trip_of_avoidance() {
    // 100 to 200 ms while it starts, half of the window in a queue; the last round trip is at the base again.
    let mut flow = Flow::new("{}", 100, 110);
    for n in 0..9 {
        flow.round(if n == 0 { 100 } else { 200 });
    }
    near(flow.round(100), 110.0);
    let win = 110.0 + 1.0 / 110.0;
    near(flow.round(100), win + 3.246_014_225);
}

#[test]
fn a_timeout_ends_the_delay_window() {
    let mut flow = Flow::new(r#"{"beta": 0.9}"#, 256, 2);
    for _ in 0..3 {
        flow.round(100);
    }
    flow.controller.on_timeout(&signal(Signal::Timeout, 100.0));
    near_both(windows(&flow.controller), (1.0, 50.0));
    // Reno's part is the whole of 60 segments: half of it is left.
    flow.controller.adjust(Adjustment::AtLeast(60.0));
    near(flow.lose(), 30.0);
}

#[test]
fn idleness_ends_the_delay_window() {
    let mut flow = Flow::new(r#"{"beta": 0.9}"#, 256, 2);
    for _ in 0..3 {
        flow.round(100);
    }
    flow.controller
        .on_event(&ConnectionEvent::Idle(270.0, 5_000_000_000));
    near(flow.controller.window().cwnd, 270.0);
    near(flow.lose(), 135.0);
}

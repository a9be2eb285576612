//! Every state change of BBR, by evidence made by hand: a path of 100 segments a second and 500 ms.

use hindflight_kernels::{Purpose, StreamKey, StreamRng};
use proptest::prelude::*;

use super::fixed::{UNIT, bandwidth};
use super::*;
use crate::cc::{Adjustment, ConnectionEvent, Controller, ParamValue, ParamValues, RateSample};

const RTT: Nanos = 500 * MILLISECOND;
/// Segments that the path holds.
const PRODUCT: u64 = 50;

fn params(values: &[(&str, f64)]) -> BbrParams {
    let number = |&(name, value): &(&str, f64)| (name.to_string(), ParamValue::Number(value));
    let values: ParamValues = values.iter().map(number).collect();
    BbrParams::default().with(&values)
}

/// BBR with the evidence that its sender would give.
struct Path {
    bbr: Bbr,
    ack: AckEvidence,
}

impl Path {
    fn new(values: &[(&str, f64)], seed: u64) -> Self {
        let draws = StreamRng::new(StreamKey {
            seed,
            owner: 0,
            direction: 0,
            purpose: Purpose::Controller,
        });
        let mut bbr = Bbr::new(params(values), 10, 1448, draws);
        bbr.on_event(&ConnectionEvent::Established {
            now: 0,
            rtt: Some(RTT),
            delivered: 1,
        });
        let ack = AckEvidence {
            delivered_total: 1,
            srtt: Some(RTT),
            ..AckEvidence::default()
        };
        Self { bbr, ack }
    }

    /// An ACK of `delivered` segments after `wait`, at `per_s` segments a second; `edit` has the last word.
    fn ack(
        &mut self,
        wait: Nanos,
        delivered: u32,
        per_s: u64,
        edit: impl FnOnce(&mut AckEvidence),
    ) -> AckOutcome {
        let prior = self.bbr.round.end;
        self.ack.now += wait;
        self.ack.delivered = delivered;
        self.ack.delivered_total += u64::from(delivered);
        let mut ack = AckEvidence {
            rtt: Some(RTT),
            rate: Some(RateSample {
                delivered: per_s / 2,
                interval: RTT,
                // Within the round, unless `edit` begins another.
                prior_delivered: prior.saturating_sub(1),
                app_limited: false,
                ..RateSample::default()
            }),
            ..self.ack
        };
        edit(&mut ack);
        self.ack.lost_total += ack.newly_lost;
        ack.lost_total = self.ack.lost_total;
        self.bbr.on_ack(&ack)
    }

    /// The same, the first of a round.
    fn round(&mut self, per_s: u64) -> AckOutcome {
        let prior = self.bbr.round.end;
        self.ack(RTT, 10, per_s, |ack| start_round(ack, prior))
    }

    /// Past STARTUP and DRAIN, on the first phase of `values`.
    fn probing(values: &[(&str, f64)]) -> Self {
        let mut path = Self::new(values, 1);
        path.ack.flight = 1000;
        for _ in 0..4 {
            path.round(100);
        }
        path.ack.flight = 10;
        path.ack(MILLISECOND, 1, 100, |_| {});
        path
    }

    fn phase(&self) -> Option<u8> {
        match self.bbr.mode {
            Mode::ProbeBw { phase, .. } => Some(phase),
            _ => None,
        }
    }
}

fn start_round(ack: &mut AckEvidence, prior: u64) {
    if let Some(sample) = &mut ack.rate {
        sample.prior_delivered = prior;
    }
}

#[test]
fn the_first_rate_is_that_of_linux() {
    // S1-bbr of the recorded runs: TCP_INFO tells 82382 octets a second after a handshake of 501.163 ms.
    let mut path = Path::new(&[], 1);
    path.bbr.on_event(&ConnectionEvent::Established {
        now: 0,
        rtt: Some(501_163_000),
        delivered: 1,
    });
    assert_eq!(path.bbr.output.pacer.bytes_per_s() as u64, 82_382);
    // Without a handshake a round-trip time of 1 ms is assumed until the first sample.
    path.bbr.on_event(&ConnectionEvent::Established {
        now: 0,
        rtt: None,
        delivered: 1,
    });
    assert!((28_000.0..28_700.0).contains(&path.bbr.output.pace().pkts_per_s));
    path.ack(RTT, 1, 2, |_| {});
    assert!((57.0..57.2).contains(&path.bbr.output.pace().pkts_per_s));
}

#[test]
fn startup_ends_with_three_rounds_of_less_than_a_quarter_more() {
    let mut path = Path::new(&[], 1);
    for per_s in [20, 40, 80, 100, 124, 120] {
        path.round(per_s);
        assert!(path.bbr.in_startup(), "at {per_s}");
    }
    // 100 was a quarter more than 80; 124, 120 and this are less than a quarter more than 100.
    path.ack.flight = 1000;
    path.round(110);
    assert_eq!(path.bbr.mode, Mode::Drain);
    let mut path = Path::new(&[], 1);
    for per_s in [80, 90, 90, 112, 112, 112] {
        path.round(per_s);
    }
    assert!(
        path.bbr.in_startup(),
        "112 was a quarter more than 80 and the search began anew"
    );
}

#[test]
fn application_limited_rounds_neither_end_startup_nor_lower_the_rate() {
    let mut path = Path::new(&[], 1);
    path.round(100);
    for (per_s, expected) in [(20, 100), (20, 100), (20, 100), (20, 100), (120, 120)] {
        let prior = path.bbr.round.end;
        path.ack(RTT, 10, per_s, |ack| {
            start_round(ack, prior);
            if let Some(sample) = &mut ack.rate {
                sample.app_limited = true;
            }
        });
        assert_eq!(path.bbr.bw.value(), bandwidth(expected / 2, RTT));
        assert!(path.bbr.in_startup());
    }
}

#[test]
fn the_window_of_startup_grows_by_what_is_delivered_and_the_rate_never_falls() {
    let mut path = Path::new(&[], 1);
    path.round(100);
    assert_eq!(path.bbr.output.cwnd, 20);
    let rate = path.bbr.output.pace().pkts_per_s;
    assert!((285.0..286.0).contains(&rate), "2.887 * 0.99 * 100: {rate}");
    path.ack(MILLISECOND, 7, 50, |_| {});
    assert_eq!(path.bbr.output.cwnd, 27);
    assert_eq!(path.bbr.output.pace().pkts_per_s.to_bits(), rate.to_bits());
    // The target: ceil(2.887 * 50) = 145 and three bursts of two (413 kB/s) make 151, even 152.
    path.ack(MILLISECOND, 124, 50, |_| {});
    assert_eq!(path.bbr.output.cwnd, 151);
    path.ack(MILLISECOND, 9, 50, |_| {});
    assert_eq!(
        path.bbr.output.cwnd, 160,
        "below the target the whole ACK counts"
    );
    path.ack(MILLISECOND, 9, 50, |_| {});
    assert_eq!(path.bbr.output.cwnd, 160, "above it none");
}

#[test]
fn drain_lasts_until_the_flight_is_down_to_the_product() {
    let mut path = Path::new(&[("first_phases", 2.0)], 1);
    path.ack.flight = 1000;
    for _ in 0..4 {
        path.round(100);
    }
    assert_eq!(path.bbr.mode, Mode::Drain);
    // 50 and three single-segment bursts (below 1.2 Mbit/s while it drains), to an even number.
    assert_eq!(path.bbr.inflight(UNIT), PRODUCT + 4);
    assert_eq!(
        path.bbr.output.ssthresh.to_bits(),
        56.0_f64.to_bits(),
        "taken at STARTUP's rate"
    );
    let rate = path.bbr.output.pace().pkts_per_s;
    assert!((34.0..34.1).contains(&rate), "88/256 * 0.99 * 100: {rate}");
    path.ack.flight = 55;
    path.ack(MILLISECOND, 1, 100, |_| {});
    assert_eq!(path.bbr.mode, Mode::Drain);
    // What is delivered until pacing lets the next one go counts as delivered: 10 ms are one segment.
    path.ack(MILLISECOND, 1, 100, |ack| {
        ack.paced_until = ack.now + 11 * MILLISECOND;
    });
    assert_eq!(path.phase(), Some(2));
}

#[test]
fn the_ack_that_begins_drain_still_counts_a_burst_of_startup() {
    // The product and three bursts of two are 56: a burst on top of 55 is more than that, on top of 54 it is not.
    for (flight, drains) in [(55, true), (54, false)] {
        let mut path = Path::new(&[], 1);
        path.ack.flight = flight;
        for _ in 0..4 {
            path.round(100);
        }
        assert_eq!(path.bbr.mode == Mode::Drain, drains, "{flight}");
    }
}

#[test]
fn a_cruising_phase_lasts_a_least_rtt() {
    let mut path = Path::probing(&[("first_phases", 2.0)]);
    path.ack(RTT, 1, 100, |_| {});
    assert_eq!(path.phase(), Some(2), "not more than a round-trip time");
    path.ack(MILLISECOND, 1, 100, |_| {});
    assert_eq!(path.phase(), Some(3));
}

#[test]
fn probing_goes_on_until_the_flight_has_grown_or_something_is_lost() {
    let probing = || Path::probing(&[("first_phases", 8.0)]);
    // inflight(5/4): ceil(62.5) + 3 bursts of two, even, + 2; one more burst is on its way.
    let mut path = probing();
    assert_eq!(path.bbr.pacing_gain(), 320);
    assert!((123.6..123.8).contains(&path.bbr.output.pace().pkts_per_s));
    let goal = path.bbr.inflight(320);
    let own = path.bbr.output.pacer.burst_goal();
    assert_eq!((goal, own), (72, 2));
    path.ack.prior_flight = (goal - own - 1) as u32;
    path.ack(2 * RTT, 1, 100, |_| {});
    assert_eq!(path.phase(), Some(0));
    path.ack.prior_flight += 1;
    path.ack(MILLISECOND, 1, 100, |_| {});
    assert_eq!(path.phase(), Some(1));
    let mut path = probing();
    path.ack(2 * RTT, 1, 100, |ack| ack.newly_lost = 1);
    assert_eq!(path.phase(), Some(1));
    let mut path = probing();
    path.ack.prior_flight = 1000;
    path.ack(MILLISECOND, 1, 100, |_| {});
    assert_eq!(path.phase(), Some(0), "not within a round-trip time");
}

#[test]
fn draining_ends_early_when_the_flight_fits() {
    for (flight, wait, expected) in [
        (54, MILLISECOND, 2),
        (55, MILLISECOND, 1),
        (1000, RTT + 1000, 2),
    ] {
        let mut path = Path::probing(&[("first_phases", 8.0)]);
        path.ack(2 * RTT, 1, 100, |ack| ack.newly_lost = 1);
        assert_eq!((path.phase(), path.bbr.pacing_gain()), (Some(1), 192));
        path.ack.prior_flight = flight;
        path.ack(wait, 1, 100, |_| {});
        assert_eq!(path.phase(), Some(expected), "{flight} in flight");
    }
}

#[test]
fn the_window_of_probing_is_twice_the_product_with_bursts_and_aggregates() {
    let mut path = Path::probing(&[("first_phases", 2.0)]);
    (path.bbr.aggregation, path.bbr.standing) = (Aggregation::default(), None);
    path.bbr.params.aggregation = false;
    path.bbr.output.cwnd = 500;
    path.ack(MILLISECOND, 1, 100, |_| {});
    assert_eq!(path.bbr.output.pacer.burst_goal(), 1);
    assert_eq!(path.bbr.output.cwnd, 104, "2 * 50 + 3, even");
    path.bbr.output.cwnd = 90;
    path.ack(MILLISECOND, 5, 100, |_| {});
    assert_eq!(path.bbr.output.cwnd, 95);
    // Eight at once where the path gives one in ten milliseconds.
    path.bbr.params.aggregation = true;
    path.bbr.output.cwnd = 500;
    path.ack(MILLISECOND, 8, 100, |_| {});
    assert_eq!(path.bbr.aggregation.extra_acked(), 8);
    assert_eq!(path.bbr.output.cwnd, 112, "2 * 50 + 8 + 3, even");
    path.bbr.output.cwnd = 500;
    path.ack(MILLISECOND, 80, 100, |_| {});
    assert_eq!(
        path.bbr.output.cwnd, 112,
        "at most what 100 ms deliver, 9.9 segments, to an even sum"
    );
}

#[test]
fn a_shorter_rtt_counts_at_once_and_a_longer_one_after_ten_seconds() {
    let mut path = Path::probing(&[("first_phases", 2.0)]);
    path.ack(MILLISECOND, 1, 100, |ack| ack.rtt = Some(400 * MILLISECOND));
    assert_eq!(path.bbr.min_rtt.value, Some(400 * MILLISECOND));
    let seen = path.ack.now;
    path.ack(10 * SECOND, 1, 100, |_| {});
    assert_eq!(path.bbr.min_rtt.value, Some(400 * MILLISECOND));
    path.ack(1, 1, 100, |_| {});
    assert_eq!(path.bbr.min_rtt.value, Some(RTT));
    assert_eq!(path.bbr.min_rtt.seen_at, seen + 10 * SECOND + 1);
}

#[test]
fn probe_rtt_waits_for_four_in_flight_then_200_ms_and_a_round() {
    let mut path = Path::probing(&[("first_phases", 23.0)]);
    path.bbr.output.cwnd = 100;
    path.ack.flight = 80;
    path.ack(10 * SECOND, 1, 100, |_| {});
    let waiting = Mode::ProbeRtt {
        until: None,
        round_done: false,
    };
    assert_eq!((path.bbr.mode, path.bbr.output.cwnd), (waiting, 4));
    assert!(path.bbr.in_probe_rtt());
    path.ack(RTT, 1, 100, |ack| ack.flight = 5);
    assert_eq!(path.bbr.mode, waiting);
    path.ack.flight = 4;
    path.ack(MILLISECOND, 1, 100, |_| {});
    let until = path.ack.now + 200 * MILLISECOND;
    // The time alone does not do, nor the round alone.
    path.ack(201 * MILLISECOND, 1, 100, |_| {});
    assert!(matches!(path.bbr.mode, Mode::ProbeRtt { until: Some(at), .. } if at == until));
    // What this ACK releases still counts as limited by the application (Linux: `bbr_update_min_rtt`).
    assert_eq!(path.round(100), AckOutcome::HoldBack);
    // The window before, and the ten of this ACK.
    assert_eq!((path.phase(), path.bbr.output.cwnd), (Some(3), 110));
    assert_eq!(path.bbr.min_rtt.seen_at, path.ack.now);
    assert_ne!(path.round(100), AckOutcome::HoldBack);
}

#[test]
fn probe_rtt_entered_in_the_open_returns_to_the_greatest_window_kept() {
    let kept = |cwnd: u64, prior: u64| {
        let mut path = Path::probing(&[("first_phases", 2.0)]);
        (path.bbr.output.cwnd, path.bbr.output.prior_cwnd) = (cwnd, prior);
        path.ack.flight = 80;
        path.ack(10 * SECOND, 1, 100, |_| {});
        assert!(matches!(path.bbr.mode, Mode::ProbeRtt { .. }));
        path.bbr.output.prior_cwnd
    };
    assert_eq!(kept(60, 100), 100);
    assert_eq!(kept(100, 60), 100);
}

#[test]
fn after_a_timeout_one_retransmission_may_be_sent_on_top_of_the_flight() {
    let mut path = Path::probing(&[("first_phases", 2.0)]);
    path.bbr.output.cwnd = 100;
    path.bbr.on_timeout(&SignalEvidence {
        now: 0,
        flight: 100.0,
        lost_total: 100,
        signal: Signal::Timeout,
    });
    let mut controller = Controller::from(path.bbr);
    controller.adjust(Adjustment::AtLeast(4.0));
    assert!((controller.window().cwnd - 4.0).abs() < 1e-12);
    controller.adjust(Adjustment::AtLeast(1.0));
    assert!((controller.window().cwnd - 4.0).abs() < 1e-12, "at least");
}

#[test]
fn recovery_conserves_packets_for_a_round_and_gives_the_window_back() {
    let mut path = Path::probing(&[("first_phases", 2.0)]);
    path.bbr.output.cwnd = 100;
    path.bbr.on_congestion();
    path.ack.recovery_phase = RecoveryPhase::Recovery;
    path.ack(MILLISECOND, 1, 100, |ack| {
        (ack.flight, ack.newly_lost) = (60, 3);
    });
    assert_eq!(path.bbr.output.cwnd, 61);
    path.ack(MILLISECOND, 2, 100, |ack| ack.flight = 55);
    assert_eq!(path.bbr.output.cwnd, 61, "no growth in this round");
    path.ack(MILLISECOND, 2, 100, |ack| {
        (ack.flight, ack.newly_lost) = (55, 10);
    });
    assert_eq!(path.bbr.output.cwnd, 57, "but what is delivered may leave");
    path.round(100);
    assert_eq!(
        path.bbr.output.cwnd, 67,
        "the next round grows towards the target"
    );
    path.ack.recovery_phase = RecoveryPhase::None;
    path.ack(MILLISECOND, 1, 100, |_| {});
    assert_eq!(path.bbr.output.cwnd, 101, "the window before, and this ACK");
}

#[test]
fn a_timeout_leaves_one_segment_and_keeps_the_model() {
    let mut path = Path::probing(&[("first_phases", 2.0)]);
    path.bbr.output.cwnd = 100;
    let bw = path.bbr.bw.value();
    let timeout = |signal| SignalEvidence {
        now: 0,
        flight: 100.0,
        lost_total: 100,
        signal,
    };
    path.bbr.on_timeout(&timeout(Signal::Timeout));
    assert_eq!((path.bbr.output.cwnd, path.bbr.output.prior_cwnd), (1, 100));
    path.bbr.on_timeout(&timeout(Signal::RepeatedTimeout));
    assert_eq!((path.bbr.output.cwnd, path.bbr.output.prior_cwnd), (1, 100));
    path.ack.recovery_phase = RecoveryPhase::Loss;
    path.ack(RTT, 1, 100, |_| {});
    assert_eq!(path.bbr.output.cwnd, 4, "the minimum window");
    path.ack(RTT, 3, 100, |_| {});
    assert_eq!(path.bbr.output.cwnd, 7);
    path.ack.recovery_phase = RecoveryPhase::None;
    path.ack(RTT, 1, 100, |_| {});
    assert_eq!((path.bbr.output.cwnd, path.bbr.bw.value()), (101, bw));
}

#[test]
fn an_undone_recovery_begins_the_search_of_startup_anew() {
    let mut path = Path::new(&[], 1);
    for _ in 0..3 {
        path.round(100);
    }
    assert_eq!(path.bbr.full_pipe.rounds, 2);
    path.bbr.undo();
    for _ in 0..3 {
        path.round(100);
        assert!(path.bbr.in_startup());
    }
    path.ack.flight = 1000;
    path.round(100);
    assert_eq!(path.bbr.mode, Mode::Drain);
}

#[test]
fn after_idle_it_paces_at_the_rate_of_the_path_and_does_not_dip() {
    let mut path = Path::probing(&[("first_phases", 8.0)]);
    assert!(path.bbr.output.pace().pkts_per_s > 120.0);
    path.bbr.on_restart(path.ack.now + 20 * SECOND);
    assert!((98.9..99.1).contains(&path.bbr.output.pace().pkts_per_s));
    path.ack(20 * SECOND, 1, 100, |_| {});
    assert!(
        !path.bbr.in_probe_rtt(),
        "the first ACK after idle renews the minimum RTT"
    );
    path.ack(11 * SECOND, 1, 100, |_| {});
    assert!(path.bbr.in_probe_rtt());
}

#[test]
fn a_policer_sets_the_rate_and_stops_the_cycle() {
    let mut path = Path::probing(&[("first_phases", 8.0)]);
    for _ in 0..9 {
        let prior = path.bbr.round.end;
        path.ack(RTT, 20, 100, |ack| {
            start_round(ack, prior);
            ack.newly_lost = 6;
        });
    }
    // 20 segments per 500 ms.
    assert_eq!(path.bbr.pacing_gain(), UNIT);
    let rate = path.bbr.output.pace().pkts_per_s;
    assert!((38.0..41.0).contains(&rate), "{rate}");
    let mut blind = Path::probing(&[("first_phases", 8.0)]);
    blind.bbr.params.long_term = false;
    for _ in 0..9 {
        let prior = blind.bbr.round.end;
        blind.ack(RTT, 20, 100, |ack| {
            start_round(ack, prior);
            ack.newly_lost = 6;
        });
    }
    assert!(blind.bbr.output.pace().pkts_per_s > 70.0);
}

/// What a connection shows BBR next.
#[derive(Clone, Debug)]
enum Shown {
    /// An ACK after so many milliseconds: segments and their rate, the round-trip time, what is in flight, whether a round
    /// begins with it.
    Ack(u64, u32, u64, u64, u32, bool),
    /// The same of a rate that the application limited; of no rate at all; with losses, in recovery or not.
    Limited(u64),
    NoRate,
    Lost(u64, RecoveryPhase),
    /// An idle time of so many milliseconds ends.
    Restart(u64),
    Timeout,
    Undo,
}

fn shown() -> impl Strategy<Value = Shown> {
    let phase = prop::sample::select(vec![
        RecoveryPhase::None,
        RecoveryPhase::Recovery,
        RecoveryPhase::Loss,
    ]);
    prop_oneof![
        20 => (0_u64..60, 0_u32..20, 90_u64..104, 490_u64..530, 0_u32..80, prop::bool::weighted(0.1))
            .prop_map(|(wait, delivered, per_s, rtt, flight, round)| {
                Shown::Ack(wait, delivered, per_s, rtt, flight, round)
            }),
        1 => (500_u64..12_000).prop_map(|wait| Shown::Ack(wait, 1, 100, 500, 0, true)),
        1 => (50_u64..120).prop_map(Shown::Limited),
        1 => Just(Shown::NoRate),
        1 => (1_u64..9, phase).prop_map(|(lost, phase)| Shown::Lost(lost, phase)),
        1 => (1_u64..20_000).prop_map(Shown::Restart),
        1 => Just(Shown::Timeout),
        1 => Just(Shown::Undo),
    ]
}

impl Path {
    fn show(&mut self, shown: &Shown) {
        let prior = self.bbr.round.end;
        match *shown {
            Shown::Ack(wait, delivered, per_s, rtt, flight, round) => {
                self.ack.flight = flight;
                self.ack.prior_flight = flight + delivered;
                self.ack(wait * MILLISECOND, delivered, per_s, |ack| {
                    ack.rtt = Some(rtt * MILLISECOND);
                    if round {
                        start_round(ack, prior);
                    }
                });
            }
            Shown::Limited(per_s) => {
                self.ack(MILLISECOND, 1, per_s, |ack| {
                    if let Some(sample) = &mut ack.rate {
                        sample.app_limited = true;
                    }
                });
            }
            Shown::NoRate => {
                self.ack(MILLISECOND, 1, 1, |ack| ack.rate = None);
            }
            Shown::Lost(lost, phase) => {
                self.ack(MILLISECOND, 1, 100, |ack| {
                    (ack.newly_lost, ack.recovery_phase) = (lost, phase);
                    start_round(ack, prior);
                });
            }
            Shown::Restart(wait) => {
                self.ack.now += wait * MILLISECOND;
                self.bbr.on_restart(self.ack.now);
            }
            Shown::Timeout => self.bbr.on_timeout(&SignalEvidence {
                now: self.ack.now,
                flight: 10.0,
                lost_total: self.ack.lost_total,
                signal: Signal::Timeout,
            }),
            Shown::Undo => self.bbr.undo(),
        }
    }

    fn state(&self) -> String {
        let standing = None;
        format!(
            "{:?}",
            Bbr {
                standing,
                ..self.bbr.clone()
            }
        )
    }
}

proptest! {
    #[test]
    fn steps_are_skipped_only_where_they_would_do_nothing(
        first in 0_u32..9,
        steps in prop::collection::vec(shown(), 1..200),
    ) {
        let values = [("first_phases", f64::from(first))];
        let (mut path, mut thorough) = (Path::probing(&values), Path::probing(&values));
        for step in &steps {
            thorough.bbr.standing = None;
            path.show(step);
            thorough.show(step);
            prop_assert_eq!(path.state(), thorough.state(), "{:?}", step);
        }
    }
}

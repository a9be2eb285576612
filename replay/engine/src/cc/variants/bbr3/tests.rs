//! Every state change of BBR, version 3, by evidence made by hand: a path of 100 segments a second and 500 ms.

use hindflight_kernels::{Purpose, StreamKey, StreamRng};

use super::*;
use crate::cc::{ConnectionEvent, ParamValue, ParamValues, RateSample};
use crate::sim::time::SECOND;

const RTT: Nanos = 500 * MILLISECOND;
/// Segments that the path holds: 50, and one for the rate's rounding up.
const PRODUCT: u64 = 51;

fn params(values: &[(&str, f64)]) -> Bbr3Params {
    let number = |&(name, value): &(&str, f64)| (name.to_string(), ParamValue::Number(value));
    // PROBE_RTT has separate tests.
    let seldom = ("probe_rtt_interval_s", 3600.0);
    let values: ParamValues = std::iter::once(&seldom).chain(values).map(number).collect();
    Bbr3Params::default().with(&values)
}

/// BBR with the evidence that its sender would give.
struct Path {
    bbr: Bbr3,
    ack: AckEvidence,
}

impl Path {
    fn new(values: &[(&str, f64)]) -> Self {
        let draws = StreamRng::new(StreamKey {
            seed: 7,
            owner: 0,
            direction: 0,
            purpose: Purpose::Controller,
        });
        let mut bbr = Bbr3::new(params(values), 10, 1448, draws);
        bbr.on_event(&ConnectionEvent::Established {
            now: 0,
            rtt: Some(RTT),
            delivered: 1,
        });
        let ack = AckEvidence {
            delivered_total: 1,
            srtt: Some(RTT),
            cwnd_limited: true,
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
        edit: impl FnOnce(&mut AckEvidence, &mut RateSample),
    ) -> AckOutcome {
        self.ack.now += wait;
        self.ack.delivered = delivered;
        self.ack.delivered_total += u64::from(delivered);
        // Within the rounds under way, unless `edit` begins another.
        let mut sample = RateSample {
            delivered: per_s / 2,
            interval: RTT,
            tx_in_flight: 40,
            prior_lost: self.ack.lost_total,
            ..RateSample::default()
        };
        let mut ack = AckEvidence {
            rtt: Some(RTT),
            ..self.ack
        };
        edit(&mut ack, &mut sample);
        ack.rate = Some(sample);
        self.ack.lost_total += ack.newly_lost;
        ack.lost_total = self.ack.lost_total;
        self.bbr.on_ack(&ack)
    }

    /// The same, the first of a round.
    fn round_with(
        &mut self,
        per_s: u64,
        edit: impl FnOnce(&mut AckEvidence, &mut RateSample),
    ) -> AckOutcome {
        let prior = self.ack.delivered_total;
        self.ack(RTT, 10, per_s, |ack, sample| {
            sample.prior_delivered = prior;
            edit(ack, sample);
        })
    }

    fn round(&mut self, per_s: u64) -> AckOutcome {
        self.round_with(per_s, |_, _| {})
    }

    /// Past STARTUP and DRAIN, cruising.
    fn cruising(values: &[(&str, f64)]) -> Self {
        let mut path = Self::new(values);
        path.ack.flight = 1000;
        path.ack.prior_flight = 1000;
        for _ in 0..4 {
            path.round(100);
        }
        assert_eq!(path.bbr.mode, Mode::Drain);
        path.ack.flight = 10;
        path.ack.prior_flight = 10;
        path.ack(MILLISECOND, 1, 100, |_, _| {});
        assert_eq!(path.phase(), Some(Phase::Cruise));
        path
    }

    /// The same, after the wait for the next probe and the round that fills the pipe.
    fn probing_up(values: &[(&str, f64)]) -> Self {
        let mut path = Self::cruising(values);
        path.ack(3 * SECOND, 1, 100, |_, _| {});
        assert_eq!(path.phase(), Some(Phase::Refill));
        path.round(100);
        assert_eq!(path.phase(), Some(Phase::Up));
        path
    }

    fn phase(&self) -> Option<Phase> {
        match self.bbr.mode {
            Mode::ProbeBw(phase) => Some(phase),
            _ => None,
        }
    }

    /// Segment `lost` of those in flight since it left, when 100 were.
    fn lose(&mut self, lost: u64, app_limited: bool) {
        self.bbr.on_event(&ConnectionEvent::Lost(LostSegment {
            tx_in_flight: 100,
            lost,
            app_limited,
            delivered_total: self.ack.delivered_total,
        }));
    }

    fn rate(&self) -> f64 {
        self.bbr.output.pace().pkts_per_s
    }
}

#[test]
fn startup_paces_at_277_percent_and_ends_after_three_rounds_without_growth() {
    let mut path = Path::new(&[]);
    // 710/256 * 0.99 * 20 segments per second: ten in the handshake's time.
    assert!((54.8..55.0).contains(&path.rate()), "{}", path.rate());
    for per_s in [20, 40, 80, 100, 124, 120] {
        path.round(per_s);
        assert!(path.bbr.in_startup(), "at {per_s}");
    }
    path.ack.flight = 1000;
    path.round(110);
    assert_eq!(path.bbr.mode, Mode::Drain);
    // 88/256 * 0.99 * 124.
    assert!((42.1..42.3).contains(&path.rate()), "{}", path.rate());
    assert_eq!(path.bbr.output.ssthresh.to_bits(), 63.0_f64.to_bits());
}

#[test]
fn the_window_of_startup_grows_by_what_is_delivered_to_twice_the_product() {
    let mut path = Path::new(&[("full_bw_rounds", 100.0)]);
    path.bbr.params.aggregation = false;
    path.round(100);
    assert_eq!(path.bbr.output.cwnd, 20);
    path.ack(MILLISECOND, 70, 100, |_, _| {});
    path.ack(MILLISECOND, 9, 100, |_, _| {});
    assert_eq!(path.bbr.output.cwnd, 99);
    path.ack(MILLISECOND, 9, 100, |_, _| {});
    path.ack(MILLISECOND, 9, 100, |_, _| {});
    assert_eq!(path.bbr.output.cwnd, 108, "beyond 101 no more");
}

#[test]
fn a_round_of_recovery_with_six_losing_acks_and_two_percent_lost_ends_startup() {
    let startup = |losing: u32, lost: u64, recovery_phase: RecoveryPhase| {
        let mut path = Path::new(&[]);
        path.round(100);
        path.ack.recovery_phase = recovery_phase;
        for _ in 1..losing {
            path.ack(MILLISECOND, 1, 100, |ack, _| ack.newly_lost = 1);
        }
        let total = path.ack.lost_total + 1;
        path.round_with(200, |ack, sample| {
            ack.newly_lost = 1;
            sample.tx_in_flight = 103;
            sample.prior_lost = total - lost;
        });
        (path.bbr.mode, path.bbr.data_volume.inflight_hi)
    };
    // Two of 103 are 1.9 %. The bound: 200 a second in half a second, and one for the rounding.
    let left = (Mode::ProbeBw(Phase::Cruise), 101);
    let stays = (Mode::Startup, UNLIMITED);
    assert_eq!(startup(6, 3, RecoveryPhase::Recovery), left);
    assert_eq!(startup(5, 3, RecoveryPhase::Recovery), stays);
    assert_eq!(startup(6, 2, RecoveryPhase::Recovery), stays);
    assert_eq!(startup(6, 3, RecoveryPhase::None), stays);
}

#[test]
fn it_drains_at_nine_tenths_until_the_flight_leaves_headroom_and_then_cruises() {
    let mut path = Path::cruising(&[]);
    assert!((98.9..99.1).contains(&path.rate()), "{}", path.rate());
    path.bbr.start_down();
    path.ack.prior_flight = PRODUCT as u32 + 1;
    path.ack(MILLISECOND, 1, 100, |_, _| {});
    assert_eq!(path.phase(), Some(Phase::Down));
    // 232/256 * 99.
    assert!((89.6..89.9).contains(&path.rate()), "{}", path.rate());
    path.bbr.data_volume.inflight_hi = 50;
    path.ack.prior_flight = 44;
    path.ack(MILLISECOND, 1, 100, |_, _| {});
    assert_eq!(path.phase(), Some(Phase::Down), "50 less 7 are 43");
    path.ack.prior_flight = 43;
    path.ack(MILLISECOND, 1, 100, |_, _| {});
    assert_eq!(
        (path.phase(), path.bbr.output.cwnd),
        (Some(Phase::Cruise), 43)
    );
}

#[test]
fn it_refills_by_the_clock_or_after_a_round_per_segment_and_then_probes() {
    let mut path = Path::cruising(&[("probe_rand_s", 0.0)]);
    path.ack(2 * SECOND, 1, 100, |_, _| {});
    assert_eq!(path.phase(), Some(Phase::Cruise), "2 s and not longer");
    path.bbr.data_volume.bw_lo = 1;
    path.ack(MILLISECOND, 1, 100, |_, _| {});
    assert_eq!(path.phase(), Some(Phase::Refill));
    assert_eq!(path.bbr.data_volume.bw_lo, UNLIMITED);
    assert!((98.9..99.1).contains(&path.rate()));
    path.ack(MILLISECOND, 1, 100, |_, _| {});
    assert_eq!(path.phase(), Some(Phase::Refill), "within the round");
    path.round(100);
    assert_eq!(path.phase(), Some(Phase::Up));
    assert!((123.7..123.9).contains(&path.rate()));
    // 0.25 more than twice 50.x, and two.
    assert_eq!(path.bbr.gains.cwnd, 576);
    // Where the product is four, four rounds are enough.
    let mut path = Path::cruising(&[("probe_base_s", 3600.0)]);
    path.bbr.output.cwnd = 4;
    path.bbr.data_volume.inflight_lo = 4;
    let rounds = 4 - path.bbr.cycle.rounds;
    for round in 1..=rounds {
        assert_eq!(path.phase(), Some(Phase::Cruise), "before {round}");
        path.round(100);
    }
    assert_eq!(path.phase(), Some(Phase::Refill));
}

#[test]
fn a_probe_ends_when_the_rate_grows_no_more_and_the_rate_of_two_cycles_ago_is_forgotten() {
    let mut path = Path::probing_up(&[]);
    path.ack.cwnd_limited = false;
    path.bbr.max_bw = [fixed::bandwidth_rounded_up(150, SECOND), path.bbr.max_bw[1]];
    for _ in 0..2 {
        path.round(110);
        assert_eq!(path.phase(), Some(Phase::Up));
    }
    path.ack.prior_flight = 1000;
    path.round(110);
    assert_eq!(path.phase(), Some(Phase::Down));
    assert_eq!(path.bbr.bw(), fixed::bandwidth_rounded_up(150, SECOND));
    path.round(110);
    assert_eq!(path.bbr.bw(), fixed::bandwidth_rounded_up(110, SECOND));
}

#[test]
fn a_probe_that_the_bound_limits_raises_it_by_one_then_two_a_round() {
    let mut path = Path::probing_up(&[]);
    path.bbr.data_volume.inflight_hi = 60;
    path.bbr.output.cwnd = 60;
    path.bbr.cycle.refill(0);
    path.bbr.cycle.probe(path.ack.now, 60);
    path.ack(MILLISECOND, 59, 100, |_, _| {});
    assert_eq!(path.bbr.data_volume.inflight_hi, 60);
    path.ack(MILLISECOND, 1, 100, |_, _| {});
    assert_eq!(
        (path.bbr.data_volume.inflight_hi, path.bbr.output.cwnd),
        (61, 61)
    );
    // The next round takes 60 / 2 = 30 for each; it begins with ten that count to the old step.
    path.round(100);
    path.ack(MILLISECOND, 19, 100, |_, _| {});
    assert_eq!(path.bbr.data_volume.inflight_hi, 61);
    path.ack(MILLISECOND, 1, 100, |_, _| {});
    assert_eq!(path.bbr.data_volume.inflight_hi, 62);
    path.ack.cwnd_limited = false;
    path.ack(MILLISECOND, 300, 100, |_, _| {});
    assert_eq!(
        path.bbr.data_volume.inflight_hi, 62,
        "not if it does not limit"
    );
    path.ack(MILLISECOND, 1, 100, |_, sample| sample.tx_in_flight = 80);
    assert_eq!(
        path.bbr.data_volume.inflight_hi, 80,
        "what went well is safe"
    );
}

#[test]
fn a_probe_that_loses_more_than_two_percent_ends_and_sets_the_bound() {
    let mut path = Path::probing_up(&[]);
    path.lose(1, false);
    assert_eq!(path.phase(), Some(Phase::Up), "one of a hundred");
    path.lose(2, false);
    assert_eq!(path.phase(), Some(Phase::Down));
    // 99 before it may have lost two: this one is the 100th.
    assert_eq!(path.bbr.data_volume.inflight_hi, 100);
    path.lose(9, false);
    assert_eq!(path.bbr.data_volume.inflight_hi, 100, "once per probe");
    let mut limited = Path::probing_up(&[]);
    limited.lose(2, true);
    assert_eq!(limited.bbr.data_volume.inflight_hi, UNLIMITED);
    assert_eq!(limited.phase(), Some(Phase::Down));
    let mut cruising = Path::cruising(&[]);
    cruising.lose(50, false);
    assert_eq!(
        cruising.bbr.data_volume.inflight_hi, UNLIMITED,
        "not of a probe"
    );
}

#[test]
fn a_bound_is_never_set_below_seven_tenths_of_the_target() {
    let mut path = Path::probing_up(&[]);
    path.bbr.on_event(&ConnectionEvent::Lost(LostSegment {
        tx_in_flight: 5,
        lost: 2,
        app_limited: false,
        delivered_total: path.ack.delivered_total,
    }));
    // 180/256 of 53: the product, and two while probing.
    assert_eq!(path.bbr.data_volume.inflight_hi, 37);
}

#[test]
fn a_probe_stops_where_the_last_went_too_far_and_goes_on_if_nothing_is_lost() {
    let mut path = Path::probing_up(&[]);
    path.lose(3, false);
    let bound = path.bbr.data_volume.inflight_hi;
    path.ack(MILLISECOND, 1, 100, |_, _| {});
    path.ack(4 * SECOND, 1, 100, |_, _| {});
    path.round(100);
    assert_eq!(path.phase(), Some(Phase::Up));
    path.ack.prior_flight = bound as u32;
    path.ack(MILLISECOND, 1, 100, |_, _| {});
    assert_eq!(path.phase(), Some(Phase::Down));
    path.ack.prior_flight = 1000;
    path.round(100);
    assert_eq!(path.phase(), Some(Phase::Refill), "at once");
    path.round(100);
    path.ack.cwnd_limited = false;
    path.ack(MILLISECOND, 1, 100, |_, _| {});
    assert_eq!(
        path.phase(),
        Some(Phase::Up),
        "the bound is known to be safe"
    );
}

#[test]
fn losses_outside_of_a_probe_cost_three_tenths_a_round_but_not_what_is_delivered() {
    let mut path = Path::cruising(&[]);
    let per_s = |per_s: u64| fixed::bandwidth_rounded_up(per_s / 2, RTT);
    path.bbr.output.cwnd = 90;
    path.lose(1, false);
    path.ack(MILLISECOND, 1, 80, |ack, _| ack.newly_lost = 1);
    assert_eq!(
        path.bbr.data_volume.bw_lo, UNLIMITED,
        "a round is seen first"
    );
    path.round(80);
    // 180/256 of 100 a second are 70, and 80 have been seen; of 90 and the last ACKs 64 or 65.
    assert_eq!(path.bbr.data_volume.bw_lo, per_s(80));
    assert!((63..=70).contains(&path.bbr.data_volume.inflight_lo));
    assert!((79.1..79.3).contains(&path.rate()), "{}", path.rate());
    path.lose(1, false);
    path.round(40);
    assert_eq!(
        path.bbr.data_volume.bw_lo,
        per_s(80),
        "seen at the round's beginning"
    );
    path.lose(1, false);
    path.round(40);
    assert_eq!(
        path.bbr.data_volume.bw_lo,
        per_s(80) * 180 / 256,
        "40 are less"
    );
    let bound = path.bbr.data_volume.inflight_lo;
    path.ack(MILLISECOND, 1, 40, |_, _| {});
    assert_eq!(path.bbr.output.cwnd, bound);
}

#[test]
fn probe_rtt_comes_after_five_seconds_with_half_the_product_for_200_ms_and_a_round() {
    let mut path = Path::cruising(&[("probe_base_s", 3600.0), ("probe_rtt_interval_s", 5.0)]);
    let before = path.bbr.output.cwnd;
    path.ack.flight = 80;
    path.ack(5 * SECOND, 1, 100, |_, _| {});
    let waiting = Mode::ProbeRtt {
        until: None,
        round_done: false,
    };
    // Half of 50 and a bit, rounded up.
    assert_eq!((path.bbr.mode, path.bbr.output.cwnd), (waiting, 26));
    assert!(path.bbr.in_probe_rtt());
    path.bbr.data_volume.bw_lo = path.bbr.bw();
    path.ack(MILLISECOND, 1, 100, |ack, _| ack.flight = 27);
    assert_eq!(path.bbr.mode, waiting);
    path.ack.flight = 26;
    path.ack(MILLISECOND, 1, 100, |_, _| {});
    let until = path.ack.now + 200 * MILLISECOND;
    path.ack(201 * MILLISECOND, 1, 100, |_, _| {});
    assert!(matches!(path.bbr.mode, Mode::ProbeRtt { until: Some(at), .. } if at == until));
    // What this ACK releases still counts as limited by the application.
    assert_eq!(path.round(100), AckOutcome::HoldBack);
    assert_eq!(path.phase(), Some(Phase::Cruise));
    assert!(path.bbr.output.cwnd >= before);
    assert_eq!(path.bbr.data_volume, DataVolume::default());
    assert_ne!(path.round(100), AckOutcome::HoldBack);
}

#[test]
fn a_timeout_leaves_one_segment_and_its_end_the_window_before() {
    let mut path = Path::cruising(&[]);
    path.bbr.output.cwnd = 90;
    let signal = SignalEvidence {
        now: 0,
        flight: 90.0,
        lost_total: 90,
        signal: Signal::Timeout,
    };
    path.bbr.on_timeout(&signal);
    assert_eq!((path.bbr.output.cwnd, path.bbr.output.prior_cwnd), (1, 90));
    assert_eq!(path.bbr.data_volume.inflight_lo, 90);
    path.ack.recovery_phase = RecoveryPhase::Loss;
    path.ack(RTT, 2, 100, |_, _| {});
    assert_eq!(path.bbr.output.cwnd, 4, "the minimum window");
    path.ack(RTT, 3, 100, |_, _| {});
    assert_eq!(path.bbr.output.cwnd, 7);
    path.ack.recovery_phase = RecoveryPhase::None;
    path.ack(RTT, 1, 100, |_, _| {});
    assert_eq!(path.bbr.output.cwnd, 90, "and not beyond the bound");
}

#[test]
fn undone_losses_give_bounds_and_window_back() {
    let mut path = Path::cruising(&[]);
    path.bbr.output.cwnd = 90;
    let signal = SignalEvidence {
        now: 0,
        flight: 90.0,
        lost_total: 1,
        signal: Signal::Loss,
    };
    path.bbr.on_congestion(&signal);
    path.bbr.data_volume = DataVolume {
        bw_lo: 1,
        inflight_lo: 5,
        inflight_hi: 7,
    };
    path.bbr.output.cwnd = 5;
    path.bbr.undo();
    assert_eq!(
        (path.bbr.output.cwnd, path.bbr.data_volume),
        (90, DataVolume::default())
    );
}

#[test]
fn a_loss_recovered_by_a_tail_loss_probe_counts_as_one_of_the_last_flight() {
    let mut path = Path::probing_up(&[]);
    let signal = SignalEvidence {
        now: 0,
        flight: 9.0,
        lost_total: path.ack.lost_total,
        signal: Signal::Loss,
    };
    path.bbr.signals.inflight = 30;
    path.bbr.on_congestion(&signal);
    // One of 31 is more than two percent.
    assert_eq!(path.phase(), Some(Phase::Down));
}

#[test]
fn marks_lower_the_flight_by_a_third_of_their_share_and_leave_the_rate() {
    let mut path = Path::cruising(&[("ecn_max_rtt_ms", 0.0), ("ecn_reprobe_gain", 0.0)]);
    path.bbr.params.ecn = true;
    path.round(100);
    path.bbr.output.cwnd = 90;
    path.ack(MILLISECOND, 1, 100, |ack, _| ack.ecn_echo = true);
    path.round(100);
    let share = path.bbr.ecn.cut(&path.bbr.params);
    assert!((60..85).contains(&share), "{share}");
    let expected = 90 * (256 - share) / 256;
    assert!((expected..=expected + 9).contains(&path.bbr.data_volume.inflight_lo));
    assert_eq!(path.bbr.data_volume.bw_lo, UNLIMITED);
    let mut deaf = Path::cruising(&[]);
    deaf.round_with(100, |ack, _| ack.ecn_echo = true);
    deaf.round(100);
    assert_eq!(deaf.bbr.data_volume, DataVolume::default());
}

#[test]
fn after_idle_it_paces_at_the_rate_of_the_path_and_does_not_look_for_the_rtt() {
    let mut path = Path::probing_up(&[("probe_rtt_interval_s", 10.0)]);
    assert!(path.rate() > 120.0);
    path.bbr.on_restart(path.ack.now + 20 * SECOND);
    assert!((98.9..99.1).contains(&path.rate()));
    path.ack(20 * SECOND, 1, 100, |_, _| {});
    assert!(!path.bbr.in_probe_rtt());
    path.ack(11 * SECOND, 1, 100, |_, _| {});
    assert!(path.bbr.in_probe_rtt());
}

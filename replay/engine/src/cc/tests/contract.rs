//! What every controller of the catalogue must keep, under every profile, over random and hand-made sequences of events.
//!
//! Does not depend on any variant by name.

use std::ops::RangeInclusive;

use proptest::prelude::*;

use super::random_params::drawn;
use crate::cc::catalogue::{VARIANTS, Variant};
use crate::cc::{
    AckEvidence, Adjustment, ConnectionEvent, Controller, LostSegment, ParamValue, ParamValues,
    RateSample, RecoveryPhase, Signal, SignalEvidence,
};
use crate::config::{Profile, StackOverrides, StackParams};
use crate::sim::time::{MILLISECOND, Nanos, SECOND};
use hindflight_kernels::{Purpose, StreamKey, StreamRng};

const SMSS: u64 = 1448;
const PROFILES: [Profile; 3] = [Profile::Rfc, Profile::Linux, Profile::Ns2];

/// An event at a sender.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Ack {
        delivered: u32,
        rtt_ms: u64,
        limited: bool,
    },
    Loss,
    Mark,
    Timeout,
    Idle,
    RecoveryExit,
}

fn happening() -> impl Strategy<Value = Happening> {
    let ack = (1..9_u32, 1..2000_u64, any::<bool>());
    let ack = ack.prop_map(|(delivered, rtt_ms, limited)| Happening::Ack {
        delivered,
        rtt_ms,
        limited,
    });
    prop_oneof![
        40 => ack,
        2 => Just(Happening::Loss),
        2 => Just(Happening::Mark),
        1 => Just(Happening::Timeout),
        1 => Just(Happening::Idle),
        4 => Just(Happening::RecoveryExit),
    ]
}

/// A controller with the state that a sender keeps for it.
struct Model {
    name: (Variant, Profile),
    /// Values of the variant's own parameters.
    values: ParamValues,
    controller: Controller,
    now: Nanos,
    snd_una: u64,
    lost_total: u64,
    delivered_total: u64,
    min_rtt: Nanos,
    recovery_phase: RecoveryPhase,
    /// Maximum window so far, maximum rate in segments per second, maximum round-trip time.
    max: f64,
    fastest: f64,
    longest: Nanos,
}

impl Model {
    fn new(variant: Variant, profile: Profile, start: Nanos) -> Self {
        Self::with((variant, profile), &ParamValues::new(), start)
    }

    fn with((variant, profile): (Variant, Profile), values: &ParamValues, start: Nanos) -> Self {
        let stack = StackParams::resolve(profile, &StackOverrides::default());
        let params = variant.fix(&stack, values);
        let draws = StreamRng::new(StreamKey {
            seed: 7,
            owner: 0,
            direction: 0,
            purpose: Purpose::SequenceNumber,
        });
        let mut controller = variant.controller(&params, values, draws);
        controller.on_event(&ConnectionEvent::Established {
            now: start,
            rtt: Some(100 * MILLISECOND),
            delivered: 1,
        });
        Self {
            name: (variant, profile),
            values: values.clone(),
            max: controller.window().cwnd,
            fastest: 0.0,
            longest: 100 * MILLISECOND,
            controller,
            now: start,
            snd_una: 1,
            lost_total: 0,
            delivered_total: 1,
            min_rtt: Nanos::MAX,
            recovery_phase: RecoveryPhase::None,
        }
    }

    fn flight(&self) -> u32 {
        self.cwnd().min(1e6) as u32
    }

    fn ack(&mut self, delivered: u32, rtt: Nanos, limited: bool) -> AckEvidence {
        self.snd_una += u64::from(delivered) * SMSS;
        self.min_rtt = self.min_rtt.min(rtt);
        self.delivered_total += u64::from(delivered);
        let flight = if limited {
            self.flight()
        } else {
            self.flight() / 4
        };
        let rate = self.rate(flight, rtt, limited);
        AckEvidence {
            rate,
            delivered_total: self.delivered_total,
            now: self.now,
            delivered,
            acked_bytes: u64::from(delivered) * SMSS,
            rtt: Some(rtt),
            srtt: Some(rtt),
            min_rtt: Some(self.min_rtt),
            snd_una: self.snd_una,
            snd_nxt: self.snd_una + u64::from(self.flight()) * SMSS,
            flight,
            lost_total: self.lost_total,
            recovery_phase: self.recovery_phase,
            cwnd_limited: limited,
            ..AckEvidence::default()
        }
    }

    /// A flight per round-trip time, for controllers that look at it.
    fn rate(&mut self, flight: u32, rtt: Nanos, limited: bool) -> Option<RateSample> {
        let segments = u64::from(flight).min(self.delivered_total);
        self.fastest = self
            .fastest
            .max(segments as f64 * SECOND as f64 / rtt.max(1000) as f64);
        self.longest = self.longest.max(rtt);
        (rtt > 0).then_some(RateSample {
            delivered: segments,
            interval: rtt,
            prior_delivered: self.delivered_total - segments,
            app_limited: !limited,
            tx_in_flight: flight,
            prior_lost: self.lost_total.saturating_sub(u64::from(flight % 7)),
            marked: 0,
        })
    }

    /// What a model of the path may have in flight at most: what the fastest rate delivers in the longest round-trip
    /// time at its maximum gain, and in 100 ms for ACKs in lumps, with three bursts and what an ACK delivers. The gain
    /// is that of the defaults.
    fn max_of_model(&self) -> f64 {
        if !self.values.is_empty() {
            return f64::INFINITY;
        }
        let product = self.fastest * self.longest as f64 / SECOND as f64;
        2.9 * product + 0.1 * self.fastest + 3.0 * 127.0 + 20.0
    }

    /// What a loss or a mark may leave of the window `before`: no more; ASRAN's hook takes the window of the loss before.
    fn max_after_signal(&self, before: f64) -> f64 {
        let hook = self.values.get("mode") == Some(&ParamValue::Name("hook".into()));
        if hook { self.max } else { before.max(2.0) }
    }

    fn signal(&self, signal: Signal) -> SignalEvidence {
        SignalEvidence {
            now: self.now,
            flight: f64::from(self.flight()),
            lost_total: self.lost_total,
            signal,
        }
    }

    /// Lets it happen and checks the rule that belongs to it.
    fn step(&mut self, happening: Happening) {
        let before = self.cwnd();
        match happening {
            Happening::Ack {
                delivered,
                rtt_ms,
                limited,
            } => {
                self.now += rtt_ms * MILLISECOND / 4;
                let ack = self.ack(delivered, rtt_ms * MILLISECOND, limited);
                self.acknowledge(&ack);
                self.check_increase(before, limited);
            }
            Happening::Loss if self.recovery_phase == RecoveryPhase::Recovery => {}
            Happening::Loss => self.lose(before),
            Happening::Mark => self.mark(before),
            Happening::Timeout => self.time_out(before),
            Happening::Idle => self.idle(before),
            Happening::RecoveryExit => self.leave_recovery(before),
        }
        self.max = self.max.max(self.cwnd());
        self.check();
    }

    fn lose(&mut self, before: f64) {
        self.lost_total += 1;
        let lost = LostSegment {
            tx_in_flight: self.flight(),
            lost: 1,
            app_limited: false,
            delivered_total: self.delivered_total,
        };
        self.happens(ConnectionEvent::Lost(lost));
        self.controller.on_congestion(&self.signal(Signal::Loss));
        self.recovery_phase = RecoveryPhase::Recovery;
        let max = self.max_after_signal(before);
        self.check_window("a loss", before, 0.0..=max);
    }

    fn mark(&mut self, before: f64) {
        let signal = self.signal(Signal::EcnEcho);
        self.controller.on_mark(&signal, None);
        // Linux's BBR takes note of a mark and keeps its window.
        let min = if self.models_path() { before } else { 1.0 };
        let max = self.max_after_signal(before);
        self.check_window("a mark", before, min..=max);
    }

    fn time_out(&mut self, before: f64) {
        self.now += SECOND;
        self.lost_total += u64::from(self.flight());
        self.controller.on_timeout(&self.signal(Signal::Timeout));
        self.recovery_phase = RecoveryPhase::Loss;
        self.check_window("a timeout", before, 0.0..=before);
    }

    fn idle(&mut self, before: f64) {
        self.now += 5 * SECOND;
        self.happens(ConnectionEvent::Idle(10.0, 5 * SECOND));
        self.happens(ConnectionEvent::Restart(self.now));
        // A model of the path keeps its window, and gives back what it had lowered to measure.
        let allowed = if self.models_path() {
            before..=self.max
        } else {
            1.0..=before
        };
        self.check_window("idleness", before, allowed);
    }

    fn leave_recovery(&mut self, before: f64) {
        self.recovery_phase = RecoveryPhase::None;
        let ack = self.ack(1, self.min_rtt.min(SECOND), true);
        self.observe(&ack);
        self.happens(ConnectionEvent::RecoveryExit(ack, None));
        if self.models_path() {
            self.controller.on_ack(&ack);
            self.check_increase(before, true);
        }
    }

    fn happens(&mut self, event: ConnectionEvent) {
        self.controller.on_event(&event);
    }

    fn cwnd(&self) -> f64 {
        self.controller.window().cwnd
    }

    fn models_path(&self) -> bool {
        self.controller.capabilities().models_path
    }

    fn observe(&mut self, ack: &AckEvidence) {
        if self.controller.capabilities().observes {
            self.controller.observe(ack);
        }
    }

    fn check_window(&self, cause: &str, before: f64, allowed: RangeInclusive<f64>) {
        let after = self.cwnd();
        assert!(
            allowed.contains(&after),
            "{:?}: {cause} took the window from {before} to {after}, not within {allowed:?}",
            self.name
        );
    }

    fn acknowledge(&mut self, ack: &AckEvidence) {
        self.observe(ack);
        if self.recovery_phase != RecoveryPhase::Recovery || self.models_path() {
            self.controller.on_ack(ack);
        }
    }

    /// A window increases only if it was used; that of a controller that models the path, if what was delivered allows it.
    fn check_increase(&self, before: f64, limited: bool) {
        let after = self.cwnd();
        if self.models_path() {
            let max = self.max.max(self.max_of_model());
            assert!(
                after <= max,
                "{:?}: {before} to {after}, which exceeds {max}",
                self.name
            );
        } else if self.name.1 != Profile::Ns2 {
            // ns-2 increases an unused window too. Some variants have a minimum of two segments (RFC 6817 §2.5).
            assert!(
                limited || after <= before.max(2.0),
                "{:?}: a window grew that was not used: {before} to {after}",
                self.name
            );
        }
    }

    fn check(&self) {
        let (cwnd, ssthresh) = (self.cwnd(), self.controller.window().ssthresh);
        let who = (self.name, &self.values);
        assert!(cwnd.is_finite() && cwnd >= 1.0, "{who:?}: cwnd {cwnd}");
        // Two by RFC 5681 §3.1; Linux's Vegas takes one off a window of two.
        assert!(ssthresh >= 1.0, "{who:?}: ssthresh {ssthresh}");
        let pace = self.controller.pace(Some(SECOND), 1);
        assert!(pace.pkts_per_s > 0.0, "{who:?}: {pace:?}");
    }
}

/// The windows after each event.
fn play(
    who: (Variant, Profile),
    values: &ParamValues,
    start: Nanos,
    events: &[Happening],
) -> Vec<f64> {
    let mut model = Model::with(who, values, start);
    let mut windows = vec![model.cwnd()];
    for &event in events {
        model.step(event);
        windows.push(model.cwnd());
    }
    windows
}

fn everyone() -> impl Iterator<Item = (Variant, Profile)> {
    VARIANTS
        .iter()
        .flat_map(|variant| PROFILES.map(|profile| (*variant, profile)))
}

/// For everyone, values of its parameters.
fn everyones_values() -> impl Strategy<Value = Vec<ParamValues>> {
    everyone()
        .map(|(variant, profile)| drawn(variant, profile).boxed())
        .collect::<Vec<_>>()
}

/// Plays twice, and once twenty minutes later: the rules hold, and the windows are the same. Whole minutes, for LEDBAT
/// begins its base delays anew with each (RFC 6817 §2.4.2).
fn check_rules(who: (Variant, Profile), values: &ParamValues, events: &[Happening]) {
    let windows = play(who, values, SECOND, events);
    assert_eq!(
        play(who, values, SECOND, events),
        windows,
        "{who:?} {values:?}: twice"
    );
    let later = play(who, values, 1201 * SECOND, events);
    for (at, (a, b)) in windows.iter().zip(&later).enumerate() {
        let near = (a - b).abs() <= 1e-6 * a.max(*b);
        assert!(
            near,
            "{who:?} {values:?}: event {at}: {a} and, twenty minutes later, {b}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rules_hold_whatever_happens_and_when(events in proptest::collection::vec(happening(), 1..300)) {
        for who in everyone() {
            check_rules(who, &ParamValues::new(), &events);
        }
    }

    #[test]
    fn rules_hold_with_any_parameters(
        events in proptest::collection::vec(happening(), 1..300),
        drawn in everyones_values(),
    ) {
        for (who, values) in everyone().zip(&drawn) {
            check_rules(who, values, &events);
        }
    }

    #[test]
    fn extreme_evidence_leaves_the_window_a_number_with_any_parameters(drawn in everyones_values()) {
        for (who, values) in everyone().zip(&drawn) {
            meet_extremes(who, values);
        }
    }
}

/// AeroTCP and Super TCP have no congestion control.
fn holds_its_window(variant: Variant) -> bool {
    matches!(variant, Variant::Aerotcp | Variant::Supertcp)
}

/// SCPS-TP takes losses for corruption unless configured otherwise.
fn pays_for_losses(variant: Variant) -> bool {
    variant != Variant::ScpsTp
}

#[test]
fn a_held_window_stays_whatever_happens() {
    for (variant, profile) in everyone().filter(|&(variant, _)| holds_its_window(variant)) {
        let mut model = Model::new(variant, profile, SECOND);
        let before = model.cwnd();
        for happening in [
            Happening::Loss,
            Happening::RecoveryExit,
            Happening::Timeout,
            Happening::Idle,
        ] {
            model.step(happening);
            full_acks(&mut model, 40, 100);
            assert_eq!(model.cwnd().to_bits(), before.to_bits());
        }
    }
}

fn full_acks(model: &mut Model, n: usize, rtt_ms: u64) {
    for _ in 0..n {
        model.step(Happening::Ack {
            delivered: 1,
            rtt_ms,
            limited: true,
        });
    }
}

#[test]
fn every_window_grows_while_it_is_used_and_nothing_is_lost() {
    for (variant, profile) in everyone() {
        let mut model = Model::new(variant, profile, SECOND);
        if holds_its_window(variant) {
            continue; // Its own rule is `a_held_window_stays_whatever_happens`.
        }
        let before = model.cwnd();
        full_acks(&mut model, 40, 100);
        let after = model.cwnd();
        assert!(
            after > before,
            "{variant:?} under {profile:?}: {before} to {after}"
        );
    }
}

#[test]
fn a_loss_costs_and_undo_gives_it_back() {
    for (variant, profile) in everyone() {
        let mut model = Model::new(variant, profile, SECOND);
        let pays = pays_for_losses(variant) && !holds_its_window(variant);
        if model.models_path() || !pays {
            continue; // Its own rule is the next one, that of a fixed window, or of SCPS-TP's decrease.
        }
        full_acks(&mut model, 60, 100);
        let (cwnd, ssthresh) = (model.cwnd(), model.controller.window().ssthresh);
        model.step(Happening::Loss);
        let on_congestion = model.cwnd();
        assert!(
            on_congestion < cwnd,
            "{variant:?} under {profile:?}: {cwnd} to {on_congestion}"
        );
        model.controller.adjust(Adjustment::Undo);
        assert_eq!(
            (
                model.cwnd().to_bits(),
                model.controller.window().ssthresh.to_bits()
            ),
            (cwnd.to_bits(), ssthresh.to_bits()),
            "{variant:?} under {profile:?}"
        );
        model.controller.adjust(Adjustment::Undo);
        assert_eq!(model.cwnd().to_bits(), cwnd.to_bits(), "undone once only");
    }
}

#[test]
fn a_loss_costs_a_model_a_round_of_conservation_and_recoverys_end_gives_the_window_back() {
    for (variant, profile) in everyone() {
        let mut model = Model::new(variant, profile, SECOND);
        if !model.models_path() || model.controller.capabilities().wants_losses {
            continue; // Of those that judge each loss, its own rule is the next one.
        }
        full_acks(&mut model, 60, 100);
        let before = model.cwnd();
        assert!(before > 20.0, "{variant:?} has not grown: {before}");
        model.step(Happening::Loss);
        assert_eq!(model.cwnd().to_bits(), before.to_bits());
        // Six segments are in flight, and as many may leave as are delivered; a round does not end meanwhile.
        let conserving = AckEvidence {
            flight: 6,
            rate: None,
            ..model.ack(2, 100 * MILLISECOND, true)
        };
        model.controller.on_ack(&conserving);
        assert_eq!(model.cwnd().to_bits(), 8.0_f64.to_bits());
        model.recovery_phase = RecoveryPhase::None;
        let exit = model.ack(1, 100 * MILLISECOND, true);
        model.controller.on_ack(&exit);
        let after = model.cwnd();
        assert!(
            (before..=before + 1.0).contains(&after),
            "{variant:?} under {profile:?}: {before} to {after}"
        );
        model.controller.adjust(Adjustment::Undo);
        assert_eq!(model.cwnd().to_bits(), after.to_bits());
    }
}

#[test]
fn a_model_that_judges_each_loss_keeps_its_window_and_undo_takes_nothing() {
    for (variant, profile) in everyone() {
        let mut model = Model::new(variant, profile, SECOND);
        if !model.controller.capabilities().wants_losses {
            continue;
        }
        full_acks(&mut model, 60, 100);
        let before = model.cwnd();
        assert!(before > 20.0, "{variant:?} has not grown: {before}");
        model.step(Happening::Loss);
        assert_eq!(model.cwnd().to_bits(), before.to_bits());
        model.controller.adjust(Adjustment::Undo);
        assert_eq!(model.cwnd().to_bits(), before.to_bits());
    }
}

#[test]
fn a_timeout_leaves_the_loss_window_and_idleness_the_initial_one() {
    for (variant, profile) in everyone() {
        let mut model = Model::new(variant, profile, SECOND);
        if holds_its_window(variant) {
            continue;
        }
        full_acks(&mut model, 60, 100);
        let mut idle = Model::new(variant, profile, SECOND);
        full_acks(&mut idle, 60, 100);
        let before = idle.cwnd();
        idle.controller
            .on_event(&ConnectionEvent::Idle(4.0, 5 * SECOND));
        let left = idle.cwnd();
        if idle.models_path() {
            assert_eq!(left.to_bits(), before.to_bits(), "{variant:?} keeps it");
        } else {
            assert!((1.0..=4.0).contains(&left), "{variant:?}");
        }
        model.step(Happening::Timeout);
        assert_eq!(model.cwnd().to_bits(), 1.0_f64.to_bits(), "{variant:?}");
    }
}

#[test]
fn extreme_evidence_leaves_the_window_a_number() {
    for who in everyone() {
        meet_extremes(who, &ParamValues::new());
    }
}

/// Nothing and too much delivered, no round-trip time and an hour's.
fn meet_extremes(who: (Variant, Profile), values: &ParamValues) {
    for (delivered, rtt) in [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (u32::MAX / 4, 1),
        (1, 3600 * SECOND),
    ] {
        let mut model = Model::with(who, values, SECOND);
        for n in 0..50 {
            let ack = model.ack(delivered.min(1 << 20), rtt, true);
            if model.controller.capabilities().observes {
                model.controller.observe(&ack);
            }
            model.controller.on_ack(&ack);
            if n % 17 == 16 {
                model.controller.on_congestion(&SignalEvidence {
                    flight: 0.0,
                    ..model.signal(Signal::Loss)
                });
            }
            model.check();
        }
    }
}

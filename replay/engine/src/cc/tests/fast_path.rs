//! The fast path of the model-based controllers compared with their slow path, over random sequences of events.

use hindflight_kernels::{Purpose, StreamKey, StreamRng};
use proptest::prelude::*;

use crate::cc::variants::bbr::{Bbr, BbrParams};
use crate::cc::variants::bbr3::{Bbr3, Bbr3Params};
use crate::cc::{AckEvidence, Controller, LostSegment, RateSample, Repair, Signal, SignalEvidence};
use crate::sim::time::{MILLISECOND, Nanos};

const RTT: Nanos = 100 * MILLISECOND;

/// What happens to the model next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many ACKs as the path gives them: a segment a millisecond.
    Steady(u32),
    /// One that differs: segments delivered in an RTT, its own RTT in milliseconds above 95 (0: none), whether the application
    /// limited it, whether it bears a mark, and segments lost.
    Odd(u64, u64, bool, bool, u64),
    /// Repair begins or ends.
    Repair(Repair),
    Lost,
    Congestion,
    Mark,
    Timeout,
    Undo,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let odd = (
        50_u64..150,
        0_u64..30,
        any::<bool>(),
        any::<bool>(),
        0_u64..3,
    );
    let repair = prop_oneof![
        3 => Just(Repair::None),
        1 => Just(Repair::Recovery),
        1 => Just(Repair::Loss),
    ];
    prop_oneof![
        20 => (1_u32..400).prop_map(Step::Steady),
        6 => odd.prop_map(|(rate, rtt, app, mark, lost)| Step::Odd(rate, rtt, app, mark, lost)),
        4 => repair.prop_map(Step::Repair),
        1 => Just(Step::Lost),
        1 => Just(Step::Congestion),
        1 => Just(Step::Mark),
        1 => Just(Step::Timeout),
        1 => Just(Step::Undo),
        1 => Just(Step::Restart),
    ]
}

fn bbr() -> Controller {
    Bbr::new(BbrParams::default(), 10, 1448, draws()).into()
}

fn bbr3(ecn: bool) -> Controller {
    let params = Bbr3Params {
        ecn,
        probe_base_s: 0.5,
        ..Bbr3Params::default()
    };
    Bbr3::new(params, 10, 1448, draws()).into()
}

fn draws() -> StreamRng {
    StreamRng::new(StreamKey {
        seed: 7,
        owner: 0,
        direction: 0,
        purpose: Purpose::Controller,
    })
}

fn forget_standing(controller: &mut Controller) {
    match controller {
        Controller::Bbr(bbr) => bbr.forget_standing(),
        Controller::Bbr3(bbr) => bbr.forget_standing(),
        Controller::Windowed(_) | Controller::External(_) => {}
    }
}

fn stands(controller: &Controller) -> bool {
    let mut forgetful = controller.clone();
    forget_standing(&mut forgetful);
    format!("{forgetful:?}") != format!("{controller:?}")
}

/// A model and the path that it is on.
struct Path {
    model: Controller,
    /// Whether every ACK takes the long way.
    long: bool,
    ack: AckEvidence,
}

impl Path {
    fn new(mut model: Controller, long: bool) -> Self {
        model.on_established(0, Some(RTT), 1);
        let ack = AckEvidence {
            delivered: 1,
            delivered_total: 1,
            srtt: Some(RTT),
            cwnd_limited: true,
            ..AckEvidence::default()
        };
        Self { model, long, ack }
    }

    /// A segment is acknowledged; `edit` has the last word.
    fn ack(&mut self, edit: impl FnOnce(&mut AckEvidence, &mut RateSample)) {
        self.ack.now += MILLISECOND;
        self.ack.delivered_total += 1;
        // Now and then there is a queue.
        let max = 90.0 + 20.0 * (self.ack.now / (256 * MILLISECOND) % 2) as f64;
        let flight = self.model.cwnd().min(max) as u32;
        let mut ack = AckEvidence {
            rtt: Some(RTT + MILLISECOND * u64::from(flight.saturating_sub(100))),
            flight,
            prior_flight: flight + 1,
            ..self.ack
        };
        let mut sample = RateSample {
            delivered: 100,
            interval: RTT,
            prior_delivered: ack.delivered_total.saturating_sub(u64::from(flight)),
            tx_in_flight: flight,
            prior_lost: ack.lost_total,
            ..RateSample::default()
        };
        edit(&mut ack, &mut sample);
        ack.lost_total += ack.newly_lost;
        self.ack.lost_total = ack.lost_total;
        ack.rate = Some(sample);
        if self.long {
            forget_standing(&mut self.model);
        }
        self.model.on_ack(&ack);
    }

    fn signal(&mut self, signal: Signal) -> SignalEvidence {
        self.ack.lost_total += 1;
        SignalEvidence {
            now: self.ack.now,
            flight: 100.0,
            lost_total: self.ack.lost_total,
            signal,
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Steady(acks) => (0..acks).for_each(|_| self.ack(|_, _| {})),
            Step::Odd(rate, rtt, app, mark, lost) => self.ack(|ack, sample| {
                sample.delivered = rate;
                ack.rtt = (rtt > 0).then_some(RTT - 5 * MILLISECOND + rtt * MILLISECOND);
                sample.app_limited = app;
                (ack.ecn_echo, sample.marked) = (mark, u64::from(mark));
                ack.newly_lost = lost;
            }),
            Step::Repair(repair) => self.ack.repair = repair,
            Step::Lost => self.model.on_lost(&LostSegment {
                tx_in_flight: 100,
                lost: 5,
                app_limited: false,
                delivered_total: self.ack.delivered_total,
            }),
            Step::Congestion => {
                let signal = self.signal(Signal::Loss);
                self.model.on_congestion(&signal);
            }
            Step::Mark => {
                let signal = self.signal(Signal::EcnEcho);
                self.model.on_mark(&signal, None);
            }
            Step::Timeout => {
                let signal = self.signal(Signal::Timeout);
                self.model.on_timeout(&signal);
            }
            Step::Undo => self.model.undo(),
            Step::Restart => self.model.on_restart(self.ack.now),
        }
    }

    fn state(&self) -> String {
        let mut model = self.model.clone();
        forget_standing(&mut model);
        format!("{model:?}")
    }
}

proptest! {
    #[test]
    fn the_short_way_leaves_what_the_long_one_leaves(
        version in 0..3,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let model = if version == 0 { bbr() } else { bbr3(version == 1) };
        let (mut short, mut long) = (Path::new(model.clone(), false), Path::new(model, true));
        // Past STARTUP.
        for step in std::iter::once(Step::Steady(2000)).chain(steps) {
            short.step(step);
            long.step(step);
            prop_assert_eq!(short.state(), long.state(), "after {:?}", step);
        }
    }
}

#[test]
fn most_acks_of_a_steady_path_find_something_that_stands() {
    for model in [bbr(), bbr3(false)] {
        let mut path = Path::new(model, false);
        path.step(Step::Steady(2000));
        let standing = (0..1000).filter(|_| {
            path.step(Step::Steady(3));
            stands(&path.model)
        });
        let standing = standing.count();
        assert!(standing > 400, "{standing} of 1000: {:?}", path.model);
    }
}

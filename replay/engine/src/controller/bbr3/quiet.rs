//! The short way of most ACKs: they tell the model nothing new, so that what follows from it stands.
//!
//! Stands in for the long way (`learn`) where its condition holds, and leaves the same state behind, to the bit; where the
//! condition does not hold it does nothing and says so. Must not know a rule that the long way does not have.

use super::bounds::UNBOUND;
use super::cycle::Phase;
use super::{Bbr3, Mode};
use crate::controller::bbr::aggregation::MOST_EXTRA;
use crate::controller::bbr::fixed::{self, UNIT};
use crate::controller::evidence::{AckEvidence, RateSample, Repair};

/// What follows from the model as the long way left it, for ACKs in a phase that ends with a round or by the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Cruising: whether the next probe is due is asked at every ACK.
    cruises: bool,
    /// Rate from which on the search for the full pipe begins anew.
    enough: u64,
    bw: u64,
    /// Window of the model without room for aggregated ACKs, and that room at most.
    product: u64,
    most_room: u64,
    /// Bounds of the window.
    least: u64,
    cap: u64,
    /// Segments more while probing.
    extra: u64,
    /// Flight at the model's rate.
    flight: u64,
}

impl Bbr3 {
    /// What stands after an ACK that took the long way; none where the next one has to take it too.
    pub(super) fn stand(&self, ack: &AckEvidence) -> Option<Standing> {
        let Mode::ProbeBw(phase) = self.mode else {
            return None;
        };
        let sample = ack.rate.as_ref()?;
        let calm = ack.repair == Repair::None && ack.lost_total <= sample.prior_lost;
        let known = self.full_pipe.reached
            && self.params.aggregation
            && !self.marks.eligible
            && !self.output.pacer.lacks_rtt()
            && self.least_rtt.is_settled();
        // A probe ends with the search, and raises a bound.
        let searches = !self.full_pipe.now;
        let steady = match phase {
            Phase::Down => false,
            Phase::Cruise | Phase::Refill => true,
            Phase::Up => searches && self.bounds.inflight_hi == UNBOUND,
        };
        if !(calm && known && steady) {
            return None;
        }
        let bw = self.bw();
        Some(Standing {
            cruises: phase == Phase::Cruise,
            enough: if searches {
                self.full_pipe.enough
            } else {
                u64::MAX
            },
            bw,
            product: self.bdp(bw, self.gains.cwnd),
            most_room: fixed::delivered_in(bw, MOST_EXTRA),
            least: self.least_budget(),
            cap: self.cap(),
            extra: self.probe_room(),
            flight: self.inflight(bw, UNIT),
        })
    }

    /// Takes an ACK that shows a rate of `bw`, no greater than those before it, within a round, and no loss, mark or lesser
    /// round-trip time.
    #[inline]
    pub(super) fn take_quietly(&mut self, ack: &AckEvidence, bw: u64) -> bool {
        let (Some(standing), Some(sample)) = (&self.standing, &ack.rate) else {
            return false;
        };
        let standing = *standing;
        if !self.tells_nothing(ack, sample) || bw > self.max_bw[1] || bw >= standing.enough {
            return false;
        }
        let target = standing.flight.min(self.output.cwnd);
        if standing.cruises && self.cycle.is_due(ack.now, &self.params, target) {
            return false;
        }
        (self.now, self.delivered) = (ack.now, ack.delivered_total);
        self.lost_total = ack.lost_total;
        self.app_limited = false;
        (self.round.starts, self.signals.round_starts) = (false, false);
        self.signals.note_delivery(bw, sample.delivered);
        let (acked, cwnd) = (u64::from(ack.delivered), self.output.cwnd);
        self.aggregation
            .update(ack.now, acked, standing.bw, None, cwnd);
        let room = self.aggregation.extra_acked().min(standing.most_room);
        let target = (standing.product + room).max(standing.least) + standing.extra;
        let window = (cwnd + acked).min(target).max(self.least_cwnd());
        self.output.cwnd = window.min(standing.cap);
        true
    }

    #[inline]
    fn tells_nothing(&self, ack: &AckEvidence, sample: &RateSample) -> bool {
        ack.delivered > 0
            && !sample.app_limited
            && sample.prior_delivered < self.round.end
            && self.signals.is_within_round(sample)
            && ack.repair == Repair::None
            && ack.newly_lost == 0
            && ack.lost_total <= sample.prior_lost
            && sample.marked == 0
            && !ack.ecn_echo
            && u64::from(sample.tx_in_flight) <= self.bounds.inflight_hi
            && self.least_rtt.is_told_nothing(ack)
    }
}

#[cfg(test)]
mod tests {
    use hindflight_kernels::{Purpose, StreamKey, StreamRng};
    use proptest::prelude::*;

    use super::*;
    use crate::controller::bbr3::Bbr3Params;
    use crate::controller::evidence::{LostSegment, Signal, SignalEvidence};
    use crate::time::{MILLISECOND, Nanos};

    const RTT: Nanos = 100 * MILLISECOND;

    /// What happens to the model next.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// So many ACKs as the path gives them: a segment a millisecond.
        Steady(u32),
        /// One that differs: its rate in per cent, round-trip time in milliseconds more, whether limited by the
        /// application, whether it bears a mark, and segments lost.
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

    /// A model and the path that it is on.
    struct Path {
        bbr: Bbr3,
        /// Whether every ACK takes the long way.
        long: bool,
        ack: AckEvidence,
        quiet: u32,
    }

    impl Path {
        fn new(params: Bbr3Params, long: bool) -> Self {
            let draws = StreamRng::new(StreamKey {
                seed: 7,
                owner: 0,
                direction: 0,
                purpose: Purpose::Controller,
            });
            let mut bbr = Bbr3::new(params, 10, 1448, draws);
            bbr.on_established(0, Some(RTT), 1);
            let ack = AckEvidence {
                delivered: 1,
                delivered_total: 1,
                srtt: Some(RTT),
                cwnd_limited: true,
                ..AckEvidence::default()
            };
            Self {
                bbr,
                long,
                ack,
                quiet: 0,
            }
        }

        /// A segment is acknowledged; `edit` has the last word.
        fn ack(&mut self, edit: impl FnOnce(&mut AckEvidence, &mut RateSample)) {
            self.ack.now += MILLISECOND;
            self.ack.delivered_total += 1;
            // Now and then there is a queue.
            let most = 90 + 20 * (self.ack.now / (256 * MILLISECOND) % 2);
            let flight = self.bbr.output.cwnd.min(most) as u32;
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
                self.bbr.standing = None;
            }
            let bw = fixed::bandwidth_rounded_up(sample.delivered, sample.interval);
            self.quiet += u32::from(self.bbr.clone().take_quietly(&ack, bw));
            self.bbr.on_ack(&ack);
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
                Step::Lost => self.bbr.on_lost(&LostSegment {
                    tx_in_flight: 100,
                    lost: 5,
                    app_limited: false,
                    delivered_total: self.ack.delivered_total,
                }),
                Step::Congestion => {
                    let signal = self.signal(Signal::Loss);
                    self.bbr.on_congestion(&signal);
                }
                Step::Mark => self.bbr.on_mark(),
                Step::Timeout => {
                    let signal = self.signal(Signal::Timeout);
                    self.bbr.on_timeout(&signal);
                }
                Step::Undo => self.bbr.undo(),
                Step::Restart => self.bbr.on_restart(self.ack.now),
            }
        }

        fn state(&self) -> String {
            let bbr = Bbr3 {
                standing: None,
                ..self.bbr.clone()
            };
            format!("{bbr:?}")
        }
    }

    proptest! {
        #[test]
        fn the_short_way_leaves_what_the_long_one_leaves(
            ecn: bool,
            steps in prop::collection::vec(step(), 1..60),
        ) {
            let params = Bbr3Params { ecn, probe_base_s: 0.5, ..Bbr3Params::default() };
            let (mut short, mut long) = (Path::new(params, false), Path::new(params, true));
            // Past STARTUP.
            for step in std::iter::once(Step::Steady(2000)).chain(steps) {
                short.step(step);
                long.step(step);
                prop_assert_eq!(short.state(), long.state(), "after {:?}", step);
            }
        }
    }

    #[test]
    fn most_acks_of_a_steady_path_are_quiet() {
        let mut path = Path::new(Bbr3Params::default(), false);
        path.step(Step::Steady(2000));
        path.quiet = 0;
        path.step(Step::Steady(4000));
        assert!((1500..4000).contains(&path.quiet), "{}", path.quiet);
    }
}

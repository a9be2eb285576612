//! The sender's fast path: ACKs while nothing is lost, nothing is reported by SACK or duplicates, and no option of the
//! profile needs the slow path.
//!
//! `receive_fast` states the condition under which it replaces the slow path (`receive_any`) and leaves the same state, to
//! the bit, except that a lazy timer may call the sender later, though never after its deadline. Where the condition does
//! not hold it changes nothing and returns false. `transmit.rs` skips steps under the same condition. Read `mod.rs` first.

use super::Sender;
use super::burst::Room;
use super::connection::ConnectionState;
use super::pacing::Pacer;
use super::phase::Phase;
use crate::cc::{AckCount, AckEvidence, AckOutcome, RateSample, RecoveryPhase};
use crate::config::StackParams;
use crate::sim::time::Nanos;
use crate::tcp::recovery::Departure;
use crate::tcp::recovery::undo::Hold;
use crate::tcp::scoreboard::{Covered, Latest};
use crate::tcp::segment::{Segment, flags};
use crate::tcp::stack_rules::StackRules;

/// Whether ordinary segments may take the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum FastPath {
    /// Where its condition holds.
    Allowed,
    /// Not while an outage is near or lasts.
    Suspended,
    /// Never.
    Never,
}

impl FastPath {
    /// Allowed without FIN, ECN, a send buffer, a report of slow start or Quick-Start.
    pub fn of(params: &StackParams, rules: &StackRules) -> Self {
        let allowed = !rules.times_one_segment
            && rules.algorithm.allows_fast_path()
            && !params.close
            && !params.ecn
            && params.send_buffer_bytes.is_none()
            && !params.delayed_ack_after_slow_start
            && params.quick_start_bps.is_none();
        if allowed { Self::Allowed } else { Self::Never }
    }
}

/// What has happened on the fast path since the timers were set last, all of it at one instant. They are set once for it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Untimed {
    acknowledged: bool,
    pub(super) sent: bool,
}

/// An ACK on the fast path.
#[derive(Clone, Copy, Debug)]
struct News {
    covered: Covered,
    acked_bytes: u64,
    prior_flight: u32,
    now: Nanos,
}

impl Sender {
    /// Nothing is lost, reported or retransmitted, the receiver's window is not being probed, and the connection has no other
    /// work than sending.
    #[inline(always)]
    fn on_fast_path_now(&mut self) -> bool {
        self.fast_path_until.is_some()
            || self.fast_path == FastPath::Allowed && self.enter_fast_path()
    }

    /// The condition itself. The fast path does not change the state that it reads; the slow path clears `fast_path_until`
    /// before it changes any of it.
    #[inline(never)]
    fn enter_fast_path(&mut self) -> bool {
        let fast_path_until = self.state == ConnectionState::Established
            && matches!(self.phase, Phase::Open { dup_acks: 0 })
            && self.board.is_unmarked()
            && self.forced.is_none()
            && !self.persist_timer.is_set()
            && !self.persist_due
            && !self.suspects_loss()
            && self.no_low_priority_probe_due()
            && self.window_use.called_early_at.is_none();
        self.fast_path_until = fast_path_until.then(|| self.rarer_deadline());
        fast_path_until
    }

    /// The next ACK may undo a window decrease, end loss recovery, or show a loss.
    ///
    /// That a window decrease can still be undone does not matter: after recovery only a DSACK undoes one, and no ACK
    /// with SACK takes the fast path.
    fn suspects_loss(&self) -> bool {
        self.undo_state.all_spurious()
            || self.rules.keeps_order && self.undo_state.first_sent.is_some()
            || self.undo_state.hold != Hold::Nothing
            || self.rack.probe.is_some()
            || self.rack.probe_due
            || self.rack.reordering_timer.is_set()
    }

    /// Whether only the pacing timer has expired, which is then noted.
    #[inline(always)]
    pub(crate) fn is_released(&mut self, now: Nanos) -> bool {
        let only = self.fast_path_until.is_some_and(|others| others > now)
            && self.timeout_deadline() > now;
        let Some(pacer) = self.pacer.as_mut().filter(|_| only) else {
            return false;
        };
        pacer.timer.fires(now);
        true
    }

    /// Takes an ACK that only acknowledges: it moves `snd_una` over whole segments that were sent once, and carries no
    /// SACK, payload or mark.
    #[inline(always)]
    pub(in crate::tcp) fn receive_fast(&mut self, segment: &Segment, now: Nanos) -> bool {
        let only_acknowledges =
            segment.flags == flags::ACK && segment.sack_len == 0 && segment.payload_bytes == 0;
        let expected = segment.ack > self.snd_una && segment.ack <= self.snd_nxt;
        if !only_acknowledges || !expected || !self.on_fast_path_now() {
            return false;
        }
        let Some(covered) = self.board.covered(self.snd_una, segment.ack) else {
            return false;
        };
        let keeps_order = self.rules.keeps_order;
        if keeps_order && (self.rack).suspects(covered.oldest_sent_at, self.snd_una) {
            return false;
        }
        let prior_flight = self.board.outstanding();
        self.board.acknowledge_covered(&covered);
        let acked_bytes = segment.ack - self.snd_una;
        self.ts_recent = segment.ts_val;
        self.deferred = false;
        self.send_queue.segment_came = true;
        self.snd_una = segment.ack;
        self.window_use.note_increase(now);
        self.timeouts_in_a_row = 0;
        self.limited_transmitted = 0;
        self.edge = segment.ack + u64::from(segment.wnd_bytes);
        self.last_wnd_bytes = segment.wnd_bytes;
        let path = now - covered.oldest_sent_at;
        if keeps_order && self.rules.sack {
            let sent = (covered.newest_sent_at, segment.ack);
            self.rack.note_delivery(sent, now);
        }
        if covered.segments > 1 {
            self.rtt.note_min(now - covered.newest_sent_at);
        }
        self.rtt.sample(path, self.snd_una, self.snd_nxt);
        self.rtt_histogram.add(path, 1);
        let news = || News {
            covered,
            acked_bytes,
            prior_flight,
            now,
        };
        if self.rates.is_some() {
            self.notify_model_fast(&news());
        } else if self.pacer.is_some() {
            self.notify_paced_fast(&news());
        } else if self.has_news(covered, now) {
            self.notify_fast(&news());
        }
        if self.board.outstanding() == 0 {
            self.note_finish();
            self.rto_timer.stop();
            self.rack.stop_timers();
            self.untimed = Untimed::default();
        } else {
            self.untimed.acknowledged = true;
        }
        if self.low_priority_probes.is_some() {
            self.clock_low_priority_probes(covered.segments);
        }
        true
    }

    /// Sets the timers for what has happened since they were set last, at `now`.
    #[inline(always)]
    pub(in crate::tcp) fn set_timers(&mut self, now: Nanos) {
        let Untimed { acknowledged, sent } = std::mem::take(&mut self.untimed);
        if self.rules.keeps_order {
            // The probe for new data replaces that for an ACK.
            if acknowledged && !(sent && self.rules.tail_loss_probe) {
                self.time_new_una(now);
            }
        } else if acknowledged {
            // RFC 6298 §5.3.
            self.rto_timer.set(now + self.rtt.rto());
        }
        if sent {
            (self.rules.algorithm).on_departure(self, Departure::New, now);
        }
    }

    /// A model of the path sees every ACK.
    #[inline(never)]
    fn notify_model_fast(&mut self, news: &News) {
        let Some(rates) = &mut self.rates else {
            return;
        };
        let News { covered, now, .. } = *news;
        let newest = Latest {
            sent_at: covered.newest_sent_at,
            end: self.snd_una,
            number: covered.newest,
            retransmission: false,
        };
        let rate = rates.on_ack(now, covered.segments, Some(newest), self.rtt.min_rtt());
        let delivered_total = rates.delivered();
        let outcome = self.show_fast(news, rate, delivered_total);
        if outcome == AckOutcome::HoldBack {
            self.limit_rates();
        }
        if outcome != AckOutcome::Nothing || !self.paces_for_min_rtt() {
            self.update_pacing();
        }
    }

    /// Whether the controller must see an ACK. Not if the ACK cannot change it, nor if what it counts is all that the
    /// controller needs: it has taken that then.
    #[inline(always)]
    fn has_news(&mut self, covered: Covered, now: Nanos) -> bool {
        let cwnd_limited = self.is_cwnd_limited();
        if !(self.capabilities.observes || self.controller.may_increase(cwnd_limited)) {
            return false;
        }
        !self.controller.try_count_ack(&AckCount {
            now,
            delivered: covered.segments,
            rtt: now - covered.newest_sent_at,
            cwnd_limited,
        })
    }

    #[inline(never)]
    fn notify_paced_fast(&mut self, news: &News) {
        if self.has_news(news.covered, news.now) {
            self.notify_fast(news);
        }
        self.update_pacing();
    }

    #[inline(never)]
    fn notify_fast(&mut self, news: &News) {
        self.show_fast(news, None, 0);
    }

    /// Shows an ACK to the controller. Returns what its `on_ack` does.
    #[inline(always)]
    fn show_fast(
        &mut self,
        news: &News,
        rate: Option<RateSample>,
        delivered_total: u64,
    ) -> AckOutcome {
        let News {
            covered,
            acked_bytes,
            prior_flight,
            now,
        } = *news;
        let observed =
            (self.capabilities.observes).then(|| self.newly_reported(covered.segments, false));
        let evidence = |cwnd: f64, in_slow_start: bool| AckEvidence {
            now,
            delivered: covered.segments,
            acked_bytes,
            rtt: Some(now - covered.newest_sent_at),
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            flight: self.board.outstanding(),
            prior_flight,
            newly_lost: 0,
            lost_total: self.board.lost_total(),
            delivered_total,
            rate,
            paced_until: self.pacer.as_ref().map_or(0, Pacer::release),
            recovery_phase: RecoveryPhase::None,
            ecn_echo: false,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            window_pkts: cwnd,
            cwnd_limited: self.usage.is_limited(cwnd, || in_slow_start),
        };
        if let Some(delivered) = observed {
            let cwnd = self.controller.window().cwnd;
            let seen = evidence(cwnd, self.controller.in_slow_start());
            self.controller.observe(&AckEvidence { delivered, ..seen });
        }
        self.controller.on_ack_by(evidence)
    }

    /// On the fast path: whether only pacing holds back a full segment, as when it was last asked.
    #[inline(always)]
    pub(super) fn awaits_release(&self, room: Room, now: Nanos) -> bool {
        let holds = (self.pacer.as_ref()).is_some_and(|pacer| pacer.holds(now));
        let end = self.snd_nxt + u64::from(self.params.smss_bytes);
        holds && room.left >= 1.0 && end <= self.write_end.min(self.edge)
    }

    /// Whether the connection is on the fast path and has data in flight, so that nothing restarts after an idle time.
    #[inline(always)]
    pub(in crate::tcp) fn sends_on_fast_path(&mut self) -> bool {
        self.on_fast_path_now() && self.board.outstanding() > 0
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::cc::catalogue::Variant;
    use crate::cc::{
        Capabilities, ControllerEvent, Decision, External, Externals, MakeExternal, Window,
    };
    use crate::config::{Profile, StackOverrides};
    use crate::sim::time::{MILLISECOND, timestamp};
    use crate::tcp::ladder::{open_sender, params, sender, window};
    use crate::tcp::segment::Direction;

    const SMSS: u64 = 1000;

    /// The next event at a sender.
    #[derive(Clone, Debug)]
    enum Step {
        /// So many more segments are acknowledged, at most those outstanding.
        Advance(u64),
        /// The same, in the middle of a segment.
        Within,
        /// Nothing new is acknowledged; SACK reports the segment at this distance.
        Duplicate(u64),
        /// Like `Advance(1)`, with a window of so many segments.
        Window(u64),
        /// Like `Advance(1)`, with data.
        Request,
        /// A dummy segment is answered.
        ProbeAnswer,
        /// Nothing arrives for so many milliseconds.
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            12 => (1_u64..4).prop_map(Step::Advance),
            1 => Just(Step::Within),
            2 => (1_u64..6).prop_map(Step::Duplicate),
            1 => (0_u64..30).prop_map(Step::Window),
            1 => Just(Step::Request),
            1 => Just(Step::ProbeAnswer),
            1 => (1_u64..3000).prop_map(Step::Wait),
        ]
    }

    /// The ACK of a step.
    fn answer(step: &Step, sender: &Sender, now: Nanos) -> Option<Segment> {
        let mut ack = Segment::new(0, Direction::Reverse);
        ack.flags = flags::ACK;
        ack.wnd_bytes = 100 * SMSS as u32;
        ack.ts_val = timestamp(now);
        let (una, nxt) = (sender.snd_una(), sender.snd_nxt());
        let mut advance = 1;
        match *step {
            Step::Advance(segments) => advance = segments,
            Step::Within => advance = 0,
            Step::Duplicate(ahead) => {
                advance = 0;
                ack.sack[0] = ((ahead * SMSS) as i32, ((ahead + 1) * SMSS) as i32);
                ack.sack_len = 1;
            }
            Step::Window(pkts) => ack.wnd_bytes = (pkts * SMSS) as u32,
            Step::Request => ack.payload_bytes = 100,
            Step::ProbeAnswer => (advance, ack.flags) = (0, flags::ACK | flags::DUMMY),
            Step::Wait(_) => return None,
        }
        let within = if matches!(step, Step::Within) {
            SMSS / 2
        } else {
            0
        };
        ack.ack = (una + advance * SMSS + within).min(nxt);
        if advance > 0
            && let Some(first) = sender.board.first()
        {
            // What a receiver has reported by SACK it also acknowledges.
            let reached = first + (ack.ack - sender.board.span(first).0) / SMSS;
            let hole = sender.board.next_unacknowledged(reached);
            let edge = hole.map_or(nxt, |hole| sender.board.span(hole).0);
            ack.ack = ack.ack.max(edge);
        }
        Some(ack)
    }

    /// What a sender sends in the steps, and its state after each.
    fn outcome(mut sender: Sender, fast_path: FastPath, steps: &[Step]) -> Vec<String> {
        assert_eq!(
            sender.fast_path,
            FastPath::Allowed,
            "else the test compares slow paths"
        );
        sender.fast_path = fast_path;
        play(&mut sender, steps)
    }

    fn play(sender: &mut Sender, steps: &[Step]) -> Vec<String> {
        let mut out = Vec::new();
        let mut now = 0;
        let mut slot = Segment::new(0, Direction::Forward);
        for step in steps {
            let until = now + if let Step::Wait(ms) = step { *ms } else { 7 } * MILLISECOND;
            while sender.next_deadline() <= until {
                now = sender.next_deadline();
                sender.on_deadline(now);
                while sender.transmit(now, &mut slot) {
                    out.push(format!("{slot:?}"));
                }
            }
            now = until;
            if let Some(ack) = answer(step, sender, now) {
                sender.receive(&ack, now);
            }
            while sender.transmit(now, &mut slot) {
                out.push(format!("{slot:?}"));
            }
            let fast_path_until = format!("fast_path_until: {:?}", sender.fast_path_until);
            let shown = format!("{sender:?}").replace(&fast_path_until, "fast_path_until: None");
            let shown = shown.replace("fast_path: Suspended", "fast_path: Never");
            for timer in [sender.rto_timer, sender.rack.probe_timer] {
                assert!(timer.armed() <= timer.deadline(), "{timer:?}");
            }
            // When a lazy timer calls the sender before its deadline is no part of the state.
            let called = format!("called_early_at: {:?}", sender.window_use.called_early_at);
            let shown: String = shown
                .replace(&called, "")
                .split("armed: ")
                .map(|part| part.trim_start_matches(|digit: char| digit.is_ascii_digit()))
                .collect();
            out.push(shown.replace("fast_path: Allowed", "fast_path: Never"));
        }
        out
    }

    fn variant() -> impl Strategy<Value = Variant> {
        prop::sample::select(vec![
            Variant::Reno,
            Variant::Newreno,
            Variant::Fack,
            Variant::FreezeTcp,
            Variant::Sack,
            Variant::Cubic,
            Variant::Vegas,
            Variant::Hybla,
            Variant::Bbr,
            Variant::LinuxReno,
            Variant::Aerotcp,
            Variant::Bbr3,
            Variant::Peach,
            Variant::Supertcp,
        ])
    }

    #[test]
    fn an_ack_takes_the_fast_path_again_after_a_recovery() {
        use Step::{Advance, Duplicate};
        for (variant, profile) in [
            (Variant::Newreno, Profile::Rfc),
            (Variant::Sack, Profile::Rfc),
            (Variant::LinuxReno, Profile::Linux),
            (Variant::Cubic, Profile::Linux),
            (Variant::Bbr, Profile::Linux),
        ] {
            let mut sender = sender(variant, profile, window(10));
            let mut steps = vec![Duplicate(1), Duplicate(2), Duplicate(3), Duplicate(4)];
            steps.extend([const { Advance(3) }; 20]);
            play(&mut sender, &steps);
            assert!(sender.counters.recoveries > 0, "{variant:?}");
            assert!(sender.fast_path_until.is_some(), "{variant:?}");
        }
    }

    /// A sender whose application has written so many segments, the last of them not full; none: no end of data.
    fn with_data(mut sender: Sender, segments: Option<u64>) -> Sender {
        if let Some(segments) = segments {
            sender.write_end = 1;
            sender.write_to(segments * SMSS - 300, true);
        }
        sender
    }

    /// Compares the fast path with the slow path for equal senders.
    fn compare(make: impl Fn() -> Sender, steps: &[Step]) -> Result<(), TestCaseError> {
        let fast = outcome(make(), FastPath::Allowed, steps);
        let slow = outcome(make(), FastPath::Never, steps);
        for (fast, slow) in fast.iter().zip(&slow) {
            prop_assert_eq!(fast, slow);
        }
        prop_assert_eq!(fast.len(), slow.len());
        Ok(())
    }

    /// A user's controller whose decision is a hash of all events so far, so that any difference between events shows.
    struct Hashing {
        capabilities: Capabilities,
        hash: DefaultHasher,
    }

    impl External for Hashing {
        fn capabilities(&self) -> Capabilities {
            self.capabilities
        }

        fn start(&self) -> Decision {
            let hash = self.hash.finish();
            Decision {
                window: Window {
                    cwnd: 1.0 + (hash % 30) as f64,
                    ssthresh: 2.0 + (hash % 40) as f64,
                },
                pkts_per_s: Some(50.0 + (hash % 2000) as f64),
            }
        }

        fn on_event(&mut self, event: &ControllerEvent, window: Window) -> Decision {
            format!("{event:?} {window:?}").hash(&mut self.hash);
            self.start()
        }
    }

    struct Maker(Capabilities);

    impl MakeExternal for Maker {
        fn names(&self) -> Vec<String> {
            vec!["hashing".into()]
        }

        fn make(&self, _: &str, _: Window) -> Option<Box<dyn External>> {
            let (capabilities, hash) = (self.0, DefaultHasher::new());
            Some(Box::new(Hashing { capabilities, hash }))
        }
    }

    proptest! {
        #[test]
        fn the_fast_path_leaves_what_the_slow_path_leaves(
            variant in variant(),
            initial_window in 1_u32..12,
            ssthresh in prop::option::of(2_u32..20),
            written in prop::option::of(1_u64..60),
            pacing: bool,
            linux: bool,
            steps in prop::collection::vec(step(), 1..80),
        ) {
            let make = || {
                let profile = if linux { Profile::Linux } else { Profile::Rfc };
                let sender = sender(variant, profile, StackOverrides {
                    initial_ssthresh_pkts: ssthresh,
                    pacing: Some(pacing),
                    ..window(initial_window)
                });
                with_data(sender, written)
            };
            compare(make, &steps)?;
        }

        #[test]
        fn the_fast_path_leaves_what_the_slow_path_leaves_with_a_users_controller(
            observes: bool,
            models_path: bool,
            paces: bool,
            written in prop::option::of(1_u64..60),
            profile in prop::sample::select(vec![Profile::Rfc, Profile::Linux]),
            steps in prop::collection::vec(step(), 1..80),
        ) {
            let capabilities = Capabilities { models_path, observes, paces, ..Capabilities::default() };
            let make = || {
                let maker = Externals::new(Arc::new(Maker(capabilities)));
                let controller = maker.make("hashing", Window::at(10.0)).expect("known");
                with_data(open_sender(&params(profile, StackOverrides::default()), controller), written)
            };
            compare(make, &steps)?;
        }
    }
}

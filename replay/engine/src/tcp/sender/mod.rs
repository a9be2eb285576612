//! The sending half of a connection: sequence space, scoreboard, timers and the receiver's window. How losses are
//! detected and retransmitted is in `tcp/recovery`, what is sent next in `transmit`; only the controller decides on cwnd.
//!
//! Does not depend on links or other connections. Read RFC 9293 §3.10.7.4, RFC 5681 and RFC 6298 §5 first.

pub(in crate::tcp) mod burst;
pub(in crate::tcp) mod connection;
pub(in crate::tcp) mod dsack;
pub(in crate::tcp) mod dupacks;
pub(in crate::tcp) mod ecn;
pub(in crate::tcp) mod fast_path;
pub(in crate::tcp) mod freeze;
pub(in crate::tcp) mod handover;
pub(in crate::tcp) mod open_loop;
pub(in crate::tcp) mod pacing;
pub(in crate::tcp) mod phase;
pub(in crate::tcp) mod probe_segments;
pub(in crate::tcp) mod quick_start;
pub(in crate::tcp) mod rate;
pub(in crate::tcp) mod sample;
pub(in crate::tcp) mod send_queue;
pub(in crate::tcp) mod timeout;
pub(in crate::tcp) mod transmit;
pub(in crate::tcp) mod validation;

pub use open_loop::BoardCounts;
pub use phase::Phase;
pub use sample::{Headline, PhaseName, ProxySample, SenderSample};

use std::ops::AddAssign;

use super::recovery::ns2_tcp_linux::Ns2TcpLinux;
use super::recovery::rack::Rack;
use super::recovery::undo::UndoState;
use super::recovery::{Ack, Algorithm};
use connection::{ConnectionState, GiveUpPolicy};
use ecn::Marks;
use fast_path::{FastPath, Untimed};
use freeze::Freeze;
use handover::Handovers;
use pacing::Pacer;
use phase::CwndUsage;
use probe_segments::LowPriorityProbes;
use quick_start::QuickStart;
use rate::RateSampler;
use validation::WindowUse;

use super::rtt::RttEstimator;
use super::scoreboard::{Digest, Scoreboard};
use super::segment::{Segment, flags};
use super::stack_rules::StackRules;
use crate::cc::{
    AckEvidence, AckOutcome, Capabilities, ConnectionEvent, Controller, RateSample, RecoveryPhase,
};
use crate::config::StackParams;
use crate::sim::histogram::Histogram;
use crate::sim::time::{Nanos, since_timestamp};
use crate::tcp::timer::Timer;

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Data segments sent, retransmissions included.
    pub segments_out: u64,
    /// Of these, sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Episodes of fast recovery.
    pub recoveries: u64,
    /// Segments that the receiver reported to have come twice (DSACK).
    pub dsacks_in: u64,
    /// Duplicate acknowledgements received.
    pub dup_acks_in: u64,
    /// Window decreases in response to echoed congestion marks.
    pub ecn_reductions: u64,
}

impl AddAssign for SenderCounters {
    fn add_assign(&mut self, other: Self) {
        self.segments_out += other.segments_out;
        self.retransmissions += other.retransmissions;
        self.rtos += other.rtos;
        self.recoveries += other.recoveries;
        self.dsacks_in += other.dsacks_in;
        self.dup_acks_in += other.dup_acks_in;
        self.ecn_reductions += other.ecn_reductions;
    }
}

/// A sender.
#[derive(Debug)]
pub struct Sender {
    pub(in crate::tcp) leg: u16,
    pub(in crate::tcp) params: StackParams,
    pub(in crate::tcp) rules: StackRules,
    pub(in crate::tcp) fast_path: FastPath,
    /// While the fast path is allowed: the earliest of the timers that it does not set. The slow path clears it (see
    /// `fast_path`).
    pub(in crate::tcp) fast_path_until: Option<Nanos>,
    pub(in crate::tcp) untimed: Untimed,
    pub(in crate::tcp) state: ConnectionState,
    pub(in crate::tcp) give_up: GiveUpPolicy,
    pub(in crate::tcp) established_at: Option<Nanos>,
    pub(in crate::tcp) reset_at: Option<Nanos>,
    pub(in crate::tcp) snd_una: u64,
    pub(in crate::tcp) snd_nxt: u64,
    /// End of the octets that the application has written, and whether it has written its last.
    pub(in crate::tcp) write_end: u64,
    pub(in crate::tcp) finished: bool,
    /// What has been written up to here, and no further, does not wait for more.
    pub(in crate::tcp) pushed_to: u64,
    /// Number of the FIN, which takes the last octet before `write_end`.
    pub(in crate::tcp) fin_seq: Option<u64>,
    pub(in crate::tcp) send_queue: send_queue::SendQueue,
    /// End of the last segment that left without being full.
    pub(in crate::tcp) small_end: u64,
    pub(in crate::tcp) burst: burst::Burst,
    /// What could leave waits for the next ACK, to leave with more.
    pub(in crate::tcp) deferred: bool,
    pub(in crate::tcp) undo_state: UndoState,
    /// Right edge of the receiver's window.
    pub(in crate::tcp) edge: u64,
    pub(in crate::tcp) last_wnd_bytes: u32,
    pub(in crate::tcp) board: Scoreboard,
    pub(in crate::tcp) rtt: RttEstimator,
    pub(in crate::tcp) rtt_histogram: Histogram,
    pub(in crate::tcp) controller: Controller,
    pub(in crate::tcp) capabilities: Capabilities,
    pub(in crate::tcp) phase: Phase,
    /// RFC 6582 §3.2: highest octet sent when the last recovery or timeout began.
    pub(in crate::tcp) recover: u64,
    /// Segments that duplicate ACKs have reported and that are not acknowledged yet (see `dupacks`).
    pub(in crate::tcp) reported_by_dupacks: u32,
    /// New segments sent on duplicate ACKs (RFC 3042): not part of FlightSize.
    pub(in crate::tcp) limited_transmitted: u32,
    /// Segment to be sent again at once, regardless of the window.
    pub(in crate::tcp) forced: Option<u64>,
    /// A second copy after it.
    pub(in crate::tcp) second_copy: Option<u64>,
    pub(in crate::tcp) rack: Rack,
    /// Where this recovery is chosen.
    pub(in crate::tcp) ns2_tcp_linux: Option<Box<Ns2TcpLinux>>,
    /// For controllers that ask for it.
    pub(in crate::tcp) pacer: Option<Pacer>,
    /// Where the variant has them.
    pub(in crate::tcp) low_priority_probes: Option<Box<LowPriorityProbes>>,
    /// See `pacer`.
    pub(in crate::tcp) rates: Option<Box<RateSampler>>,
    pub(in crate::tcp) marks: Marks,
    pub(in crate::tcp) usage: CwndUsage,
    pub(in crate::tcp) window_use: WindowUse,
    pub(in crate::tcp) freeze: Freeze,
    pub(in crate::tcp) handovers: Option<Box<Handovers>>,
    pub(in crate::tcp) quick_start: Option<QuickStart>,
    pub(in crate::tcp) rto_timer: Timer,
    pub(in crate::tcp) persist_timer: Timer,
    pub(in crate::tcp) persist_backoff: u32,
    pub(in crate::tcp) persist_due: bool,
    pub(in crate::tcp) timeouts_in_a_row: u32,
    pub(in crate::tcp) last_sent_at: Nanos,
    pub(in crate::tcp) ip_id: u16,
    pub(in crate::tcp) ts_recent: u32,
    /// Timestamp of the first SYN.
    pub(in crate::tcp) syn_ts_val: u32,
    pub(in crate::tcp) counters: SenderCounters,
}

impl Sender {
    /// A sender of leg `leg` whose window is governed by `controller`.
    pub fn new(leg: u16, params: &StackParams, controller: Controller) -> Self {
        let capabilities = controller.capabilities();
        let rules = StackRules::of(params, capabilities.models_path);
        Self {
            leg,
            params: *params,
            fast_path: FastPath::of(params, &rules),
            rules,
            fast_path_until: None,
            untimed: Untimed::default(),
            state: ConnectionState::Closed,
            give_up: GiveUpPolicy::default(),
            established_at: None,
            reset_at: None,
            snd_una: 1,
            snd_nxt: 1,
            write_end: 1,
            finished: false,
            pushed_to: 0,
            fin_seq: None,
            send_queue: send_queue::SendQueue::default(),
            small_end: 1,
            burst: burst::Burst::default(),
            deferred: false,
            undo_state: UndoState::default(),
            edge: 1,
            last_wnd_bytes: 0,
            board: Scoreboard::new(params.smss_bytes, rules.keeps_order)
                .noting_latest(capabilities.models_path)
                .noting_losses(capabilities.wants_losses)
                .keeping_pieces(params.send_buffer_bytes.is_some()),
            rtt: RttEstimator::new(params),
            rtt_histogram: Histogram::default(),
            phase: Phase::Open { dup_acks: 0 },
            recover: 0,
            reported_by_dupacks: 0,
            limited_transmitted: 0,
            forced: None,
            second_copy: None,
            rack: Rack::default(),
            ns2_tcp_linux: (rules.algorithm == Algorithm::Ns2TcpLinux).then(Box::default),
            pacer: (capabilities.paces || params.quick_start_bps.is_some()).then(Pacer::default),
            low_priority_probes: (params.low_priority_probes)
                .map(|rule| Box::new(LowPriorityProbes::new(rule, controller.window().cwnd))),
            rates: (capabilities.models_path).then(|| Box::new(RateSampler::new())),
            marks: Marks::new(params),
            usage: CwndUsage::default(),
            window_use: WindowUse::default(),
            freeze: Freeze::default(),
            handovers: None,
            quick_start: None,
            rto_timer: Timer::default(),
            persist_timer: Timer::default(),
            persist_backoff: 0,
            persist_due: false,
            timeouts_in_a_row: 0,
            last_sent_at: 0,
            ip_id: 0,
            ts_recent: 0,
            syn_ts_val: 0,
            counters: SenderCounters::default(),
            controller,
            capabilities,
        }
    }

    /// The same sender, whose coarse clock (if it has one) ticks `phase` earlier than time itself.
    #[must_use]
    pub fn with_clock_phase(mut self, phase: Nanos) -> Self {
        self.rtt.set_clock_phase(phase);
        self
    }

    /// Oldest octet not acknowledged.
    #[inline]
    pub fn snd_una(&self) -> u64 {
        self.snd_una
    }

    /// Next octet to be sent.
    pub fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    /// Number of its leg.
    pub fn leg(&self) -> u16 {
        self.leg
    }

    /// Counters.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// RTT samples taken.
    pub fn rtt_histogram(&self) -> &Histogram {
        &self.rtt_histogram
    }

    /// Takes an acknowledgement.
    #[inline(always)]
    pub fn receive(&mut self, segment: &Segment, now: Nanos) {
        // A window that closes may mean more than that: see `freeze`.
        if segment.wnd_bytes == 0 || !self.receive_fast(segment, now) {
            self.receive_any(segment, now);
        }
    }

    #[inline(never)]
    pub(in crate::tcp) fn receive_any(&mut self, segment: &Segment, now: Nanos) {
        self.fast_path_until = None;
        self.window_use.called_early_at = None;
        self.set_timers(now);
        self.ts_recent = segment.ts_val;
        self.deferred = false;
        self.send_queue.segment_came = true;
        if self.state != ConnectionState::Established {
            self.receive_outside(segment, now);
            return;
        }
        if segment.flags & flags::CONTROL != 0 && !self.take_control(segment, now) {
            return;
        }
        if segment.has(flags::DUMMY) {
            self.take_probe_answer();
            return;
        }
        // RFC 9293 §3.10.7.4: old, or of what was never sent.
        if segment.ack < self.snd_una || segment.ack > self.snd_nxt {
            return;
        }
        if let Some(ack) = self.digest_ack(segment, now) {
            self.act_on(&ack);
        }
    }

    /// Takes what the segment acknowledges and what it reports about the window and the path; none if it needs no reaction.
    #[inline]
    pub(in crate::tcp) fn digest_ack(&mut self, segment: &Segment, now: Nanos) -> Option<Ack> {
        let (prior_flight, prior_lost) = (self.board.pipe(), self.board.lost_total());
        let prior_high = self.board.highest_sacked_seq(self.snd_una);
        let prior_una = self.snd_una;
        let advances = segment.ack > prior_una;
        let echo = self.params.timestamps.then_some(segment.ts_ecr);
        let mut digest = Digest {
            echo,
            ..Digest::default()
        };
        let reports = segment.sack_len > 0 && !self.ignores_sack();
        let came_twice = if reports { self.take_dsack(segment) } else { 0 };
        if advances {
            self.board.acknowledge(segment.ack, &mut digest);
            self.snd_una = segment.ack;
            self.timeouts_in_a_row = 0;
            self.note_finish();
        }
        if reports {
            self.take_sack_blocks(segment, &mut digest);
        }
        if self.rules.counts_duplicates {
            digest.delivered += came_twice;
        }
        let duplicate = self.is_duplicate(segment, advances, &digest);
        self.counters.dup_acks_in += u64::from(duplicate);
        self.note_probe_duplicate(segment, advances);
        if self.rules.counts_dup_acks && (advances || duplicate) {
            let algorithm = self.rules.algorithm;
            digest.delivered = algorithm.count_dup_acks(self, advances, duplicate, &digest);
        }
        self.update_window(segment, now);
        let duplicate = self.heed_warning(segment, advances, now) || duplicate;
        let prior_min_rtt = self.rtt.min_rtt();
        let rtt = self.take_rtt_sample(segment, &digest, now);
        let news = advances || duplicate || digest.sacked > 0 || came_twice > 0;
        // ns-2 has no data in the reverse direction: there a segment with data that brings no news is not an ACK.
        let acts = self.rules.acts_on_every_ack && segment.payload_bytes == 0;
        if !(news || acts) {
            return None;
        }
        let ecn_echo = self.marks.echoed(segment);
        Some(Ack {
            now,
            advances,
            acked_bytes: segment.ack - prior_una,
            rtt,
            duplicate,
            prior_flight,
            prior_lost,
            prior_high,
            prior_min_rtt,
            rate: self.sample_rate(&digest, ecn_echo, now),
            ecn_echo,
            digest,
        })
    }

    /// Lets the controller, the recovery and the timers act on an ACK.
    #[inline]
    pub(in crate::tcp) fn act_on(&mut self, ack: &Ack) {
        self.follow_quick_start(ack.prior_flight);
        if self.capabilities.observes {
            let delivered = self.newly_reported(ack.digest.delivered, ack.duplicate);
            let evidence = AckEvidence {
                delivered,
                ..self.evidence(ack)
            };
            self.controller.observe(&evidence);
        }
        if ack.ecn_echo {
            self.react_to_mark(ack);
        }
        self.rules.algorithm.on_ack(self, ack);
        if self.capabilities.models_path {
            self.follow_model(ack);
        }
        self.update_pacing();
        self.rearm_after_ack(ack);
        self.clock_low_priority_probes(ack.digest.delivered);
    }

    /// After a timeout, where ns-2's rules hold.
    #[inline]
    fn ignores_sack(&self) -> bool {
        self.rules.ignores_sack_after_timeout && matches!(self.phase, Phase::Loss { .. })
    }

    pub(in crate::tcp) fn sample_rate(
        &mut self,
        digest: &Digest,
        marked: bool,
        now: Nanos,
    ) -> Option<RateSample> {
        let rates = self.rates.as_mut()?;
        if marked {
            rates.note_marked(digest.delivered);
        }
        rates.on_ack(now, digest.delivered, digest.latest, self.rtt.min_rtt())
    }

    /// A controller that models the path gets every ACK.
    pub(in crate::tcp) fn follow_model(&mut self, ack: &Ack) {
        self.notify_losses();
        let evidence = self.evidence(ack);
        if self.controller.on_ack(&evidence) == AckOutcome::HoldBack {
            self.limit_rates();
        }
    }

    /// What is sent until the segments in the network now have been delivered counts as limited by the application, for lack
    /// of data or of a window.
    #[inline]
    pub(in crate::tcp) fn limit_rates(&mut self) {
        if let Some(rates) = &mut self.rates {
            rates.limit_by_application(self.board.pipe());
        }
    }

    /// The last octet of the application may have been acknowledged.
    pub(in crate::tcp) fn note_finish(&mut self) {
        if self.finished && self.snd_una >= self.write_end {
            self.controller.on_event(&ConnectionEvent::Finished);
        }
    }

    /// Reports to a controller with `wants_losses` each segment marked lost since the last report.
    pub(in crate::tcp) fn notify_losses(&mut self) {
        let Some(rates) = &self.rates else {
            return;
        };
        let mut lost_total = self.board.lost_total() - self.board.lost_lately().len() as u64;
        for &number in self.board.lost_lately() {
            lost_total += 1;
            let lost = rates.lost_segment(number, lost_total);
            self.controller.on_event(&ConnectionEvent::Lost(lost));
        }
        self.board.forget_lost_lately();
    }

    pub(in crate::tcp) fn take_sack_blocks(&mut self, segment: &Segment, digest: &mut Digest) {
        for (left, right) in segment.sack_blocks() {
            // RFC 2883 §4: a block below the ACK is a DSACK; it does not show what is missing.
            if left > segment.ack && right <= self.snd_nxt && left < right {
                self.board.sack(left, right, digest);
            }
        }
    }

    /// RFC 5681 §2; with SACK, RFC 6675 §2: an ACK that reports octets not known to have arrived.
    pub(in crate::tcp) fn is_duplicate(
        &self,
        segment: &Segment,
        advances: bool,
        digest: &Digest,
    ) -> bool {
        if advances || segment.payload_bytes > 0 || self.board.outstanding() == 0 {
            return false;
        }
        if self.rules.sack {
            digest.sacked > 0
        } else {
            segment.wnd_bytes == self.last_wnd_bytes
        }
    }

    pub(in crate::tcp) fn update_window(&mut self, segment: &Segment, now: Nanos) {
        self.edge = segment.ack + u64::from(segment.wnd_bytes);
        self.last_wnd_bytes = segment.wnd_bytes;
        let wanted = u64::from(self.params.smss_bytes).min(self.write_end - self.snd_nxt);
        if self.persist_timer.is_set() && self.edge >= self.snd_nxt + wanted {
            self.persist_timer.stop();
            self.persist_backoff = 0;
        } else if self.persist_timer.is_set() && segment.payload_bytes == 0 {
            // The probe was answered: the window is still closed, the receiver is alive.
            self.give_up.probes = 0;
            self.arm_persist(now);
        }
    }

    /// Samples the path for the timeout; returns the round-trip time of the newest segment delivered.
    pub(in crate::tcp) fn take_rtt_sample(
        &mut self,
        segment: &Segment,
        digest: &Digest,
        now: Nanos,
    ) -> Option<Nanos> {
        if self.rules.times_every_ack && (digest.acked > 0 || segment.payload_bytes == 0) {
            self.rtt.sample_echo(segment.ts_ecr, now);
        }
        let ns2 = self.rules.times_one_segment;
        if ns2 && let Some(rtt) = self.rtt.answer(self.snd_una, now) {
            self.rtt_histogram.add(rtt, 1);
        }
        // RFC 6298 §3 (Karn): no sample from an ACK that covers a retransmission.
        let whole = !digest.acked_retransmission;
        let by_ack = digest.oldest_acked_sent_at.filter(|_| whole);
        let newest_by_ack = digest.newest_acked_sent_at.filter(|_| whole);
        let sack_measures = self.rules.sack_measures_rtt;
        let by_sack = digest.oldest_sacked_sent_at.filter(|_| sack_measures);
        let mut path = by_ack.or(by_sack).map(|sent_at| now - sent_at);
        // The newest delivered segment gives the best sample of the path now.
        let mut newest = (digest.newest_sacked_sent_at.filter(|_| sack_measures))
            .or(newest_by_ack)
            .map(|sent_at| now - sent_at);
        if path.is_none() && self.rules.timestamp_measures_rtt && digest.acked > 0 {
            path = since_timestamp(segment.ts_ecr, now);
            newest = path;
        }
        if let Some(rtt) = path {
            self.rtt.note_min(newest.unwrap_or(rtt));
            if self.rules.times_every_ack {
                // The timer takes the sample of the timestamp instead.
                self.rtt_histogram.add(rtt, 1);
            } else if ns2 {
                // ns-2's Vegas (`v_sendtime_`) times every segment in addition to the one that the timer times.
                self.rtt.sample_fine(rtt);
            } else {
                self.rtt.sample(rtt, self.snd_una, self.snd_nxt);
                self.rtt_histogram.add(rtt, 1);
            }
        }
        // An ACK of a retransmission, or one that no arrival triggered, reports segments that had been there for a while.
        let retransmission = digest.acked_retransmission || digest.sacked_retransmission;
        let late = self.rules.distrusts_retransmissions && retransmission;
        newest.filter(|_| !(segment.waited || late))
    }

    pub(in crate::tcp) fn evidence(&self, ack: &Ack) -> AckEvidence {
        let counts_acks = self.rules.counts_acks;
        AckEvidence {
            now: ack.now,
            delivered: if counts_acks { 1 } else { ack.digest.delivered },
            acked_bytes: ack.acked_bytes,
            rtt: ack.rtt,
            srtt: self.rtt.path_srtt(),
            min_rtt: self.rtt.min_rtt(),
            flight: self.board.pipe(),
            prior_flight: ack.prior_flight,
            newly_lost: self.board.lost_total() - ack.prior_lost,
            lost_total: self.board.lost_total(),
            delivered_total: self.rates.as_ref().map_or(0, |rates| rates.delivered()),
            rate: ack.rate,
            paced_until: self.pacer.map_or(0, |pacer| pacer.release()),
            recovery_phase: match self.phase {
                Phase::Open { .. } => RecoveryPhase::None,
                Phase::Recovery(_) => RecoveryPhase::Recovery,
                Phase::Loss { .. } => RecoveryPhase::Loss,
            },
            ecn_echo: ack.ecn_echo,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            window_pkts: self.effective_window(),
            cwnd_limited: counts_acks || self.is_cwnd_limited(),
        }
    }

    /// In fast recovery, or in loss recovery after a timeout.
    #[inline]
    pub(crate) fn in_loss_recovery(&self) -> bool {
        !matches!(self.phase, Phase::Open { .. })
    }

    /// The last round was limited by cwnd, not by the application or the receiver's window.
    #[inline(always)]
    pub(in crate::tcp) fn is_cwnd_limited(&self) -> bool {
        let cwnd = self.controller.window().cwnd;
        (self.usage).is_limited(cwnd, || self.controller.in_slow_start())
    }
}

//! When low-priority probe segments (TCP-Peach's dummy segments) are sent: spread over the first round-trip time and over
//! that after a timeout (Sudden Start), and one for each segment that fast recovery learns to be delivered (Rapid
//! Recovery).
//!
//! Does not depend on what an answer adds to the window, which the controller decides. Read Akyildiz, Morabito and Palazzo
//! 2001 §III first, then `docs/variants/peach.md`.

use super::Sender;
use super::connection::ConnectionState;
use super::phase::Phase;
use crate::cc::ConnectionEvent;
use crate::config::ProbeSegments;
use crate::sim::time::Nanos;
use crate::tcp::segment::{Purpose, Segment, flags};
use crate::tcp::timer::Timer;

/// Those of a connection.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct LowPriorityProbes {
    rule: ProbeSegments,
    schedule: Schedule,
    /// May leave now.
    due: u32,
    /// Fires when the next one of Sudden Start is due.
    pub timer: Timer,
    /// Recoveries and timeouts that have been answered, and the window when nothing was known to be lost.
    recoveries: u64,
    rtos: u64,
    open_cwnd: f64,
    /// Where the next one looks for octets that are not acknowledged, by number of the segment.
    next_unacknowledged: u64,
}

/// What is left to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schedule {
    /// Nothing.
    Idle,
    /// Sudden Start of this many segments at most, when one of data has left and a round-trip time is known.
    Waiting { max_pkts: u32 },
    /// Sudden Start: one per `spacing`.
    Spread { left: u32, spacing: Nanos },
    /// Rapid Recovery: one per segment delivered.
    Clocked { left: u32 },
}

impl LowPriorityProbes {
    /// Before the first segment, of an initial window of `cwnd`.
    pub fn new(rule: ProbeSegments, cwnd: f64) -> Self {
        Self {
            rule,
            schedule: Schedule::Waiting { max_pkts: u32::MAX },
            due: 0,
            timer: Timer::default(),
            recoveries: 0,
            rtos: 0,
            open_cwnd: cwnd,
            next_unacknowledged: 0,
        }
    }

    /// One of Sudden Start may leave.
    pub fn on_deadline(&mut self, now: Nanos) {
        if !self.timer.fires(now) {
            return;
        }
        if let Schedule::Spread { left, spacing } = &mut self.schedule {
            self.due += 1;
            *left -= 1;
            if *left == 0 {
                self.schedule = Schedule::Idle;
            } else {
                self.timer.set(now + *spacing);
            }
        }
    }

    /// Akyildiz et al. 2001 §III-A: the first segment of data is followed by one dummy per RTT / rwnd.
    fn start_suddenly(&mut self, window_pkts: u32, rtt: Nanos, now: Nanos) {
        let pkts = self.rule.sudden_start_pkts.min(window_pkts).max(1);
        let spacing = rtt / u64::from(pkts);
        self.next_unacknowledged = 0;
        if pkts == 1 {
            self.schedule = Schedule::Idle;
            return;
        }
        let left = pkts - 1;
        self.schedule = Schedule::Spread { left, spacing };
        self.timer.set(now + spacing);
    }

    /// Deviation: ssthresh bounds Sudden Start after a timeout. The path has just had no room for twice that; the paper's
    /// N, sent anew after every timeout, keeps a path that holds less timing out.
    fn start_again(&mut self, ssthresh: f64) {
        let max_pkts = ssthresh as u32;
        self.schedule = Schedule::Waiting { max_pkts };
        self.due = 0;
        self.timer.stop();
    }
}

impl Sender {
    /// An answer, which acknowledges no data.
    pub(in crate::tcp) fn take_probe_answer(&mut self) {
        if self.low_priority_probes.is_some() {
            self.controller.on_event(&ConnectionEvent::ProbeAnswer);
            self.update_pacing();
        }
    }

    /// After each ACK that reported `delivered` segments: lets dummy segments of Rapid Recovery follow. The paper's
    /// one per ACK has a receiver that acknowledges each; one that acknowledges several at once lets as many follow.
    pub(in crate::tcp) fn clock_low_priority_probes(&mut self, delivered: u32) {
        let recovers = matches!(self.phase, Phase::Recovery(_));
        let cwnd = self.controller.window().cwnd;
        let Some(low_priority_probes) = &mut self.low_priority_probes else {
            return;
        };
        if !recovers {
            if let Schedule::Clocked { .. } = low_priority_probes.schedule {
                (low_priority_probes.schedule, low_priority_probes.due) = (Schedule::Idle, 0);
            }
            low_priority_probes.recoveries = self.counters.recoveries;
            low_priority_probes.open_cwnd = cwnd;
            return;
        }
        if low_priority_probes.recoveries != self.counters.recoveries {
            low_priority_probes.recoveries = self.counters.recoveries;
            low_priority_probes.timer.stop();
            low_priority_probes.next_unacknowledged = 0;
            let left =
                (low_priority_probes.rule.recovery_share * low_priority_probes.open_cwnd) as u32;
            low_priority_probes.schedule = Schedule::Clocked { left };
        }
        if let Schedule::Clocked { left } = &mut low_priority_probes.schedule {
            let follow = delivered.min(*left);
            *left -= follow;
            low_priority_probes.due += follow;
        }
    }

    /// Whether none can leave before the timer expires, and none has to be scheduled.
    pub(in crate::tcp) fn no_low_priority_probe_due(&self) -> bool {
        self.low_priority_probes
            .as_ref()
            .is_none_or(|low_priority_probes| {
                low_priority_probes.due == 0
                    && low_priority_probes.rtos == self.counters.rtos
                    && matches!(
                        low_priority_probes.schedule,
                        Schedule::Idle | Schedule::Spread { .. }
                    )
            })
    }

    /// The next dummy segment that may leave now, after all data.
    #[inline]
    pub(in crate::tcp) fn poll_low_priority_probe(&mut self, now: Nanos) -> Option<Segment> {
        // RFC 7323 §2.2: the window of the handshake is not scaled and may be far below the receiver's.
        let advertised = self.snd_una > 1;
        let window_bytes = advertised.then(|| self.edge.saturating_sub(self.snd_una));
        let ssthresh = self.controller.window().ssthresh;
        let low_priority_probes = self.low_priority_probes.as_mut()?;
        if self.state != ConnectionState::Established || self.snd_nxt == 1 {
            return None;
        }
        if low_priority_probes.rtos != self.counters.rtos {
            low_priority_probes.rtos = self.counters.rtos;
            low_priority_probes.start_again(ssthresh);
        }
        if let Schedule::Waiting { max_pkts } = low_priority_probes.schedule
            && let Some(srtt) = self.rtt.srtt()
        {
            let window_pkts = window_bytes
                .and_then(|bytes| u32::try_from(bytes / u64::from(self.params.smss_bytes)).ok())
                .unwrap_or(u32::MAX);
            low_priority_probes.start_suddenly(window_pkts.min(max_pkts), srtt, now);
        }
        if low_priority_probes.due == 0 {
            return None;
        }
        low_priority_probes.due -= 1;
        self.dummy(now)
    }

    fn dummy(&mut self, now: Nanos) -> Option<Segment> {
        let low_priority_probes = self.low_priority_probes.as_mut()?;
        let ProbeSegments {
            dscp,
            carry_unacknowledged,
            ..
        } = low_priority_probes.rule;
        let oldest = (self
            .board
            .next_unacknowledged(low_priority_probes.next_unacknowledged))
        .filter(|_| carry_unacknowledged);
        if let Some(number) = oldest {
            low_priority_probes.next_unacknowledged = number + 1;
        }
        // Else a copy of what was sent last.
        let (seq, len) = if let Some(number) = oldest.or(self.board.last()) {
            let (seq, len) = self.board.span(number);
            (seq, u64::from(len))
        } else {
            let len = (self.snd_nxt - 1).min(self.params.smss_bytes.into());
            (self.snd_nxt - len, len)
        };
        // A FIN is no octet.
        let end = (seq + len).min(self.fin_seq.unwrap_or(u64::MAX));
        let len = end.saturating_sub(seq);
        if len == 0 {
            return None;
        }
        self.counters.segments_out += 1;
        self.counters.retransmissions += 1;
        let mut segment = self.bare(now, flags::ACK | flags::DUMMY);
        segment.seq = seq;
        segment.payload_bytes = len as u16;
        segment.ip_bytes += len as u16;
        segment.purpose = Purpose::Probe;
        segment.dscp = dscp;
        Some(segment)
    }
}

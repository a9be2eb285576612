//! The observable state of a sender: what `instruments` records, and the part whose changes are reported at once.
//!
//! Does not depend on who records it. The names are those of the `instruments` table.

use super::connection::ConnectionState;
use super::{Phase, Sender, SenderCounters};
use crate::sim::time::Nanos;

impl Sender {
    /// The part of the state whose changes are reported at once.
    pub fn headline(&self) -> Headline {
        let smss = f64::from(self.params.smss_bytes);
        let ssthresh = self.controller.window().ssthresh;
        Headline {
            phase: self.phase_name(),
            cwnd_bytes: (self.effective_window() * smss) as i64,
            ssthresh_bytes: ssthresh.is_finite().then_some((ssthresh * smss) as i64),
            rto_ns: self.rtt.rto(),
            rtos: self.counters.rtos,
            recoveries: self.counters.recoveries,
        }
    }

    /// The state that instruments record.
    pub fn sample(&self) -> SenderSample {
        let headline = self.headline();
        SenderSample {
            phase: headline.phase,
            recovery_point: match &self.phase {
                Phase::Recovery(recovery) => Some(recovery.recovery_point),
                Phase::Open { .. } | Phase::Loss { .. } => None,
            },
            cwnd_bytes: headline.cwnd_bytes,
            ssthresh_bytes: headline.ssthresh_bytes,
            flight_bytes: i64::from(self.board.outstanding() - self.board.sacked())
                * i64::from(self.params.smss_bytes),
            smss_bytes: self.params.smss_bytes,
            srtt_ns: self.rtt.srtt(),
            rttvar_ns: self.rtt.srtt().map(|_| self.rtt.rttvar()),
            rto_ns: headline.rto_ns,
            min_rtt_ns: self.rtt.min_rtt(),
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            snd_wnd_bytes: self.last_wnd_bytes,
            counters: self.counters,
            undone: self.undo_state.undone,
            proxy: None,
        }
    }

    fn phase_name(&self) -> PhaseName {
        match (&self.phase, self.state) {
            (
                _,
                ConnectionState::Closed
                | ConnectionState::SynDue
                | ConnectionState::SynSent
                | ConnectionState::AckDue,
            ) => PhaseName::Handshake,
            (_, ConnectionState::TimeWait { .. } | ConnectionState::Reset { .. }) => {
                PhaseName::Limited
            }
            (Phase::Recovery(_), _) => PhaseName::Recovery,
            (Phase::Loss { .. }, _) => PhaseName::Loss,
            (Phase::Open { .. }, _) if self.usage.stopped_otherwise() => PhaseName::Limited,
            (Phase::Open { .. }, _) if self.controller.in_slow_start() => PhaseName::SlowStart,
            (Phase::Open { .. }, _) => PhaseName::CongestionAvoidance,
        }
    }
}

/// What a sender is doing, as in the `instruments` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseName {
    /// Opening.
    Handshake,
    /// cwnd below ssthresh.
    SlowStart,
    /// cwnd at or above ssthresh.
    CongestionAvoidance,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
    /// Limited by the application or the receiver's window.
    Limited,
}

/// A sender's state at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSample {
    /// What it is doing.
    pub phase: PhaseName,
    /// Octet after the last one sent when fast recovery began; none outside it.
    pub recovery_point: Option<u64>,
    /// Window that governs transmission, inflation and PRR included.
    pub cwnd_bytes: i64,
    /// Slow start threshold; none while it is not set.
    pub ssthresh_bytes: Option<i64>,
    /// Outstanding less sacked.
    pub flight_bytes: i64,
    /// Full segment.
    pub smss_bytes: u32,
    /// Smoothed RTT.
    pub srtt_ns: Option<Nanos>,
    /// RTT variation.
    pub rttvar_ns: Option<Nanos>,
    /// Retransmission timeout.
    pub rto_ns: Nanos,
    /// Minimum RTT.
    pub min_rtt_ns: Option<Nanos>,
    /// Oldest octet not acknowledged.
    pub snd_una: u64,
    /// Next octet to be sent.
    pub snd_nxt: u64,
    /// Receiver's window.
    pub snd_wnd_bytes: u32,
    /// Counters so far.
    pub counters: SenderCounters,
    /// Window decreases undone so far.
    pub undone: u64,
    /// What the proxy that it belongs to has in its memory, if it belongs to one.
    pub proxy: Option<ProxySample>,
}

/// A proxy's state at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxySample {
    /// Octets in its memory, out-of-order data included.
    pub stored_bytes: u64,
    /// Octets that it has acknowledged upstream and that are not acknowledged onward.
    pub undelivered_bytes: u64,
    /// Right edge of the window that it advertises upstream: octet after the last one that may arrive.
    pub edge: u64,
}

/// The part of a sample whose change makes it news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headline {
    phase: PhaseName,
    cwnd_bytes: i64,
    ssthresh_bytes: Option<i64>,
    rto_ns: Nanos,
    rtos: u64,
    recoveries: u64,
}

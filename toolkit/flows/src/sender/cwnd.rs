//! Input of the congestion window estimator, and rows of `instruments` from its estimates.

use super::{Sender, Sent};
use crate::cause::CaState;
use crate::cwnd::{CwndEstimator, Departure, Estimate, SenderState, interval};
use crate::rows::{Sample, Source};

impl Sender {
    /// Octets in the network (RFC 6675 §4): neither SACKed nor lost, or retransmitted.
    fn pipe_bytes(&self) -> i64 {
        let (una, nxt) = (self.board.snd_una(), self.board.snd_nxt());
        let retrans_out = self.board.retrans_out_bytes();
        let highest_sacked = self.board.sacked().highest().unwrap_or(una).max(una);
        match self.ca_state {
            // Without SACK, each duplicate ACK shows that a segment has left (Linux: `sacked_out`).
            CaState::Open => (self.board.flight_bytes() - self.dup_acked_bytes).max(0),
            CaState::Recovery { .. } if !self.sack_in_use => {
                // RFC 6582 §3.2: a segment has left for each duplicate ACK; the oldest one is lost.
                let left = self.dup_acked_bytes + self.board.smss_bytes();
                (nxt - una - left + retrans_out).max(0)
            }
            CaState::Recovery {
                retransmissions, ..
            } => {
                // Of a remote sender, the retransmission that begins recovery may be lost unseen.
                let unseen = if self.remote && retransmissions == 0 {
                    self.board.smss_bytes()
                } else {
                    0
                };
                nxt - highest_sacked + retrans_out + unseen
            }
            CaState::Loss { recovery_point, .. } => {
                let lost = highest_sacked.max(recovery_point);
                (nxt - lost).max(0) + retrans_out
            }
        }
    }

    /// One past the last octet that the window of the receiver allows, if its scale is known.
    pub fn window_end(&self) -> Option<i64> {
        Some(self.board.snd_una().saturating_add(self.snd_wnd_bytes?))
    }

    /// `sent` as the estimator needs it, before it is processed.
    pub(super) fn departure(&self, sent: &Sent, fin: bool) -> Departure {
        let full_bytes = i64::from(sent.piece_bytes).min(self.board.smss_bytes());
        Departure {
            t_ns: sent.transmission.t_ns,
            segments_n: sent.segments_n,
            new: sent.end > self.board.snd_nxt(),
            short: fin || i64::from(sent.payload_bytes) % full_bytes.max(1) != 0,
            remote_ts_val: sent.transmission.ts_val.filter(|_| self.remote),
        }
    }

    /// Passes the current state to the estimator, if there is one.
    #[inline]
    pub(super) fn observe_cwnd(&mut self, t_ns: i64) {
        if self.cwnd.is_some() {
            self.pass_state(t_ns);
        }
    }

    fn pass_state(&mut self, t_ns: i64) {
        let state = SenderState {
            t_ns,
            ca_state: self.ca_state,
            pipe_bytes: self.pipe_bytes(),
            outstanding_bytes: self.board.snd_nxt() - self.board.snd_una(),
            smss_bytes: self.board.smss_bytes(),
            srtt_ns: self.rtt.srtt_ns().unwrap_or(0),
            rto_ns: self.rtt.rto_ns(),
            snd_wnd_bytes: self.snd_wnd_bytes,
        };
        if let Some(cwnd) = &mut self.cwnd {
            cwnd.observe(&state);
        }
    }

    /// Adds a row for the estimate that `step` returns. The sender must be in the state of that estimate.
    pub fn sample_cwnd(
        &mut self,
        flow_id: u32,
        step: impl FnOnce(&mut CwndEstimator) -> Option<Estimate>,
    ) {
        let Some(estimate) = self.cwnd.as_deref_mut().and_then(step) else {
            return;
        };
        let smss_bytes = self.board.smss_bytes();
        let interval = estimate
            .cwnd_bytes
            .map(|cwnd| interval(cwnd, smss_bytes, &estimate, self.remote));
        let row = Sample {
            flow_id,
            t_ns: estimate.t_ns,
            source: Source::Inferred,
            phase: estimate.phase,
            cwnd_bytes: estimate.cwnd_bytes,
            cwnd_low_bytes: interval.map(|limits| limits.0),
            cwnd_high_bytes: interval.map(|limits| limits.1),
            ssthresh_bytes: estimate.ssthresh_bytes,
            flight_bytes: self.board.flight_bytes(),
            pipe_bytes: Some(self.pipe_bytes()),
            smss_bytes,
            srtt_ns: self.rtt.srtt_ns(),
            rttvar_ns: self.rtt.rttvar_ns(),
            rto_ns: Some(self.rtt.rto_ns()),
            min_rtt_ns: self.rtt.min_ns(),
            snd_una: self.board.snd_una(),
            snd_nxt: self.board.snd_nxt(),
            snd_wnd_bytes: self.snd_wnd_bytes,
            segments_out: self.row.data_segments as i64,
            retransmissions: self.row.retransmitted_segments as i64,
            rtos: self.row.rtos as i64,
            recoveries: self.row.recoveries as i64,
            dup_acks_in: self.dup_acks_in as i64,
            app_limited: estimate.app_limited,
        };
        if let Some(cwnd) = &mut self.cwnd {
            cwnd.push_sample(row, estimate.pipe_integral);
        }
    }
}

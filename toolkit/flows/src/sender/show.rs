//! What the reconstruction of the window is shown of a sender, and the rows it gives. Judges nothing itself.
//! Read [`crate::inference`] first.

use super::Sender;
use crate::cause::Episode;
use crate::inference::{Inference, State, View};
use crate::rows::{Sample, Source};

impl Sender {
    /// Octets in the network (RFC 6675 §4): what is neither SACKed nor taken for lost, and what was sent again.
    fn pipe(&self) -> i64 {
        let (una, nxt) = (self.board.snd_una(), self.board.snd_nxt());
        match self.episode {
            Episode::Open => self.board.flight(),
            Episode::Recovery { .. } if !self.sack_in_use => {
                // RFC 6582 §3.2: each duplicate ACK stands for a segment that has left; the oldest one is lost.
                let left = self.dup_acked_bytes + self.smss_bytes();
                (nxt - una - left + self.board.repeated()).max(0)
            }
            Episode::Recovery { .. } => {
                nxt - self.board.sacked().highest().unwrap_or(una).max(una) + self.board.repeated()
            }
            Episode::Loss { recovery_point } => {
                let lost = self
                    .board
                    .sacked()
                    .highest()
                    .unwrap_or(una)
                    .max(recovery_point);
                (nxt - lost.max(una)).max(0) + self.board.repeated()
            }
        }
    }

    pub(super) fn smss_bytes(&self) -> i64 {
        self.board.segment_bytes()
    }

    /// Shows the inference what the sender has become.
    pub(super) fn infer(&mut self, t_ns: i64) {
        if self.inference.is_none() {
            return;
        }
        let state = State {
            t_ns,
            episode: self.episode,
            pipe_bytes: self.pipe(),
            outstanding_bytes: self.board.snd_nxt() - self.board.snd_una(),
            smss_bytes: self.smss_bytes(),
            srtt_ns: self.rtt.srtt_ns().unwrap_or(0),
            snd_wnd_bytes: self.snd_wnd,
        };
        if let Some(inference) = &mut self.inference {
            inference.observe(&state);
        }
    }

    /// Makes a row of the view that `step` finds due. Nothing has changed since that view was taken.
    pub fn settle_view(&mut self, flow_id: u32, step: impl FnOnce(&mut Inference) -> Option<View>) {
        let Some(view) = self.inference.as_deref_mut().and_then(step) else {
            return;
        };
        let row = Sample {
            flow_id,
            t_ns: view.t_ns,
            source: Source::Inferred,
            phase: view.phase,
            cwnd_bytes: view.cwnd_bytes,
            ssthresh_bytes: view.ssthresh_bytes,
            flight_bytes: self.board.flight(),
            smss_bytes: self.smss_bytes(),
            srtt_ns: self.rtt.srtt_ns(),
            rttvar_ns: self.rtt.rttvar_ns(),
            rto_ns: Some(self.rtt.rto_ns()),
            min_rtt_ns: self.rtt.min_ns(),
            snd_una: self.board.snd_una(),
            snd_nxt: self.board.snd_nxt(),
            snd_wnd_bytes: self.snd_wnd,
            segments_out: self.row.data_segments as i64,
            retransmissions: self.row.retransmitted_segments as i64,
            rtos: self.row.rtos as i64,
            recoveries: self.row.recoveries as i64,
            dup_acks_in: self.dup_acks_in as i64,
            app_limited: view.app_limited,
        };
        if let Some(inference) = &mut self.inference {
            inference.keep(row);
        }
    }
}

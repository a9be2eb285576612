//! Rows of `instruments` from the windows of an epoch.

use super::UntimedSender;
use super::epoch::{Explained, Window};
use crate::rows::{Phase, Sample, Source};

/// A change of the window by more than this fraction adds a row.
const ROW_STEP_DIVISOR: i64 = 64;

impl UntimedSender {
    /// Adds rows for the epoch, whose last segments left when SND.UNA was `end_una`.
    pub(super) fn push_windows(&mut self, explained: &Explained, end_una: i64) {
        let windows = self.epoch.windows(explained, end_una, self.smss_bytes);
        for window in windows {
            let phase = window.phase;
            let cwnd_bytes = window.cwnd.map(|limits| limits.0);
            if self.is_due(phase, cwnd_bytes) {
                self.last_row = Some((phase, cwnd_bytes));
                let row = self.row(&window, explained.reached);
                self.cwnd.push_late(row);
            }
        }
    }

    /// Adds a row without an estimate at `t_ns`.
    pub(super) fn push_unknown(&mut self, t_ns: i64) {
        if self.is_due(Phase::Unknown, None) {
            self.last_row = Some((Phase::Unknown, None));
            let row = self.empty_row(Phase::Unknown, t_ns);
            self.cwnd.push_late(row);
        }
    }

    fn is_due(&self, phase: Phase, cwnd_bytes: Option<i64>) -> bool {
        self.last_row.is_none_or(|(last_phase, last_bytes)| {
            let (last, now) = (last_bytes.unwrap_or(0), cwnd_bytes.unwrap_or(0));
            last_phase != phase
                || last_bytes.is_some() != cwnd_bytes.is_some()
                || (now - last).abs() * ROW_STEP_DIVISOR > last
        })
    }

    /// `reached`: the sender followed its law all the time, so that it filled its window.
    fn row(&self, window: &Window, reached: bool) -> Sample {
        let (segments, retransmissions) = window.at.counts;
        let flight_bytes = (window.at.end - window.snd_una).max(0);
        Sample {
            cwnd_bytes: window.cwnd.map(|limits| limits.0),
            cwnd_low_bytes: window.cwnd.map(|limits| limits.1),
            cwnd_high_bytes: window.cwnd.map(|limits| limits.2),
            ssthresh_bytes: window.ssthresh_bytes,
            flight_bytes,
            snd_una: window.snd_una,
            snd_nxt: window.at.end,
            segments_out: i64::from(segments),
            retransmissions: i64::from(retransmissions),
            app_limited: (reached && window.cwnd.is_some()).then_some(false),
            ..self.empty_row(window.phase, window.at.t_ns)
        }
    }

    fn empty_row(&self, phase: Phase, t_ns: i64) -> Sample {
        Sample {
            flow_id: self.flow_id,
            t_ns,
            source: Source::Inferred,
            phase,
            cwnd_bytes: None,
            cwnd_low_bytes: None,
            cwnd_high_bytes: None,
            ssthresh_bytes: None,
            flight_bytes: self.holes.highest - self.snd_una,
            pipe_bytes: None,
            smss_bytes: self.smss_bytes,
            srtt_ns: None,
            rttvar_ns: None,
            rto_ns: None,
            min_rtt_ns: None,
            snd_una: self.snd_una,
            snd_nxt: self.holes.highest,
            snd_wnd_bytes: self.wnd_bytes,
            segments_out: i64::from(self.counts.0),
            retransmissions: i64::from(self.counts.1),
            rtos: self.timeouts,
            recoveries: self.recoveries,
            dup_acks_in: self.dup_acks,
            app_limited: None,
        }
    }

    /// Adds the rows of the last epoch.
    pub fn finish(&mut self) {
        if self.finish_unobserved().is_none()
            && let Some(first_ns) = self.epoch.first_ns()
        {
            self.push_unknown(first_ns);
        }
    }
}

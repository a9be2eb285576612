//! Octets that a sender sends into a window of zero, and that the receiver refuses (RFC 9293 §3.8.6.1).

use super::{Range, Scoreboard, State, retransmission_out};

impl Scoreboard {
    /// Marks the last range added as a zero-window probe.
    pub fn mark_window_probe(&mut self) {
        if let Some(last) = self.ranges.back_mut() {
            last.window_probe = true;
        }
    }

    /// Takes back the octet of a zero-window probe that was refused, if it is the last one and a segment sends it at
    /// `start` once the window is open. The caller frees its retransmissions.
    pub fn take_refused_probe(&mut self, start: i64) -> Option<Range> {
        let last = *self.ranges.back()?;
        let refused = last.window_probe && last.start == start && last.state == State::Outstanding;
        if !refused {
            return None;
        }
        if retransmission_out(&self.log, &last, self.lost_until_ns) {
            self.retrans_out_bytes -= last.end - last.start;
        }
        self.ranges.pop_back();
        self.snd_nxt = start;
        Some(last)
    }
}

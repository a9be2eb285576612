//! The window of a sender that waits for its application, from the last time that it filled it.

use super::SenderState;
use super::ack_clock::Response;

/// Immediate responses since the last reduction before one shows a full window. A sender with its own pace that gives
/// one to every tenth ACK by chance gives so many in a row in one case of a thousand.
const MIN_RESPONSES: u64 = 3;

/// So many ACKs for which data may have waited, and no response showed a full window: the sender has its own pace.
const MANY_ACKS: u64 = 16;

/// The congestion window when the sender last filled it, or the maximum of the pipe since then, in whole segments.
///
/// In congestion avoidance, a window that the sender does not fill does not grow (RFC 9438 §5.8; Linux:
/// `tcp_is_cwnd_limited`), so that it ends a segment above the largest burst. It falls only after an idle time (RFC
/// 5681 §4.1): while ACKs advance within every RTO, Linux lets it stay (`tcp_cong_avoid` sets `snd_cwnd_stamp`).
///
/// Deviation: a stack of RFC 7661 lets a window grow of which half is used, and CUBIC may take one far from its last
/// maximum more than a segment beyond what is sent.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct LastFilled {
    known: Known,
    /// What was known before a reduction, and the window then if it is known.
    before: (Known, Option<i64>),
    /// The reduction was undone.
    undone: bool,
    /// Pipe when the last ACK came, and after the last segment in response to it.
    found_bytes: i64,
    response_bytes: i64,
    /// Pipe and RTO after the last segment or ACK, and time of the last segment.
    pipe_bytes: i64,
    rto_ns: i64,
    sent_ns: Option<i64>,
    /// ACKs since the last reduction for which data may have waited, and those of them with an immediate response.
    acks: u64,
    responses: u64,
    /// A response has shown a full window since the last reduction.
    seen_full: bool,
    /// ACKs release what waits: a response has shown that since the last reduction, or before, and nothing speaks
    /// against it.
    clocked: bool,
}

/// What is known of the window.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Known {
    /// The window, if it was filled since the last reduction, and since when it has this value.
    window: Option<(i64, i64)>,
    /// The window is above the slow start threshold. In slow start, it grows up to twice what is sent.
    in_avoidance: bool,
    /// A pipe of more octets shows that.
    ssthresh_limit_bytes: Option<i64>,
}

impl LastFilled {
    /// A reduction of a window of so many octets begins.
    pub(super) fn begin_reduction(&mut self, cwnd_bytes: Option<i64>) {
        self.before = (self.known, cwnd_bytes);
        self.known.window = None;
        self.undone = false;
    }

    /// A reduction ends, after a timeout with slow start.
    pub(super) fn end_reduction(&mut self, timeout: bool) {
        let (before, cwnd_bytes) = self.before;
        self.known = if self.undone {
            Known {
                window: None,
                ..before
            }
        } else {
            Known {
                window: None,
                in_avoidance: !timeout,
                // The largest factor of a reduction: 0.7 (RFC 9438 §4.6).
                ssthresh_limit_bytes: cwnd_bytes.map(|bytes| bytes - bytes * 3 / 10),
            }
        };
        (self.acks, self.responses, self.seen_full) = (0, 0, false);
    }

    /// The reduction that has begun is undone.
    pub(super) fn undo_reduction(&mut self) {
        self.undone = true;
    }

    /// There was no reduction.
    pub(super) fn cancel_reduction(&mut self) {
        self.known = self.before.0;
    }

    /// The last ACK for which data may have waited had this `response`, and the receive window was no limit.
    pub(super) fn on_response(&mut self, now_ns: i64, response: Response) {
        self.acks += 1;
        self.responses += u64::from(response.immediate);
        let by_chance = self.responses < MIN_RESPONSES || 4 * self.responses < 3 * self.acks;
        if response.immediate && !by_chance {
            self.seen_full = true;
            // Data waited, so that the window was full, and is again if the response did not end the data.
            let bytes = if response.full {
                self.response_bytes
            } else {
                self.found_bytes
            };
            let grows = self.known.window.is_none_or(|(known, _)| bytes > known);
            if self.known.in_avoidance && grows {
                self.known.window = Some((bytes, now_ns));
            }
        }
        self.clocked = self.seen_full || (self.clocked && self.acks < MANY_ACKS);
    }

    /// Whether ACKs release what waits to be sent.
    pub(super) fn is_clocked(&self) -> bool {
        self.clocked
    }

    /// Called before an ACK is processed, after [`Self::on_response`].
    pub(super) fn before_ack(&mut self) {
        self.found_bytes = self.pipe_bytes;
    }

    /// Called before a segment is sent: after an idle time the sender starts again.
    pub(super) fn before_segment(&mut self, now_ns: i64) {
        let sent_ns = self.sent_ns.replace(now_ns);
        let idle = sent_ns.is_some_and(|sent_ns| now_ns - sent_ns > self.rto_ns);
        if idle && self.pipe_bytes == 0 {
            self.known = Known {
                window: None,
                in_avoidance: false,
                ssthresh_limit_bytes: (self.known.window.map(|(bytes, _)| bytes))
                    .or(self.known.ssthresh_limit_bytes),
            };
        }
    }

    /// The sender is in `state`, with so many octets in the pipe; `is_response` if a segment sent now is a response to
    /// the last ACK.
    pub(super) fn observe(&mut self, state: &SenderState, pipe_bytes: i64, is_response: bool) {
        // A window in segments counts a short one as a full one. Deviation: only one is short.
        let smss_bytes = state.smss_bytes.max(1);
        let pipe_bytes = (pipe_bytes + smss_bytes - 1) / smss_bytes * smss_bytes;
        (self.pipe_bytes, self.rto_ns) = (pipe_bytes, state.rto_ns);
        if is_response {
            self.response_bytes = pipe_bytes;
        }
        let limit_bytes = self.known.ssthresh_limit_bytes;
        self.known.in_avoidance |= limit_bytes.is_some_and(|limit_bytes| pipe_bytes > limit_bytes);
        if self
            .known
            .window
            .is_some_and(|(bytes, _)| pipe_bytes > bytes)
        {
            self.known.window = Some((pipe_bytes, state.t_ns));
        }
    }

    /// The window, if it is known. A round trip after it was full it has grown by a segment.
    pub(super) fn window_bytes(&self, state: &SenderState) -> Option<i64> {
        let (bytes, from_ns) = self.known.window?;
        let full_for_a_round = state.t_ns - from_ns > state.srtt_ns;
        let grown_bytes = if full_for_a_round {
            state.smss_bytes
        } else {
            0
        };
        Some(bytes + grown_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::CaState;

    const SRTT_NS: i64 = 1_000_000;

    fn state(t_ns: i64) -> SenderState {
        SenderState {
            t_ns,
            ca_state: CaState::Open,
            pipe_bytes: 0,
            outstanding_bytes: 0,
            smss_bytes: 1000,
            srtt_ns: SRTT_NS,
            rto_ns: 200_000_000,
            snd_wnd_bytes: None,
        }
    }

    /// A window of ten segments, reduced, that responses of a pipe of so many segments then filled.
    fn filled(timeout: bool, undone: bool, segments: i64) -> LastFilled {
        let mut filled = LastFilled::default();
        filled.begin_reduction(Some(10_000));
        if undone {
            filled.undo_reduction();
        }
        filled.end_reduction(timeout);
        respond(&mut filled, segments, true);
        filled
    }

    fn respond(filled: &mut LastFilled, segments: i64, full: bool) {
        let response = Response {
            immediate: true,
            full,
        };
        for _ in 0..4 {
            filled.observe(&state(0), segments * 1000, true);
            filled.on_response(0, response);
            filled.before_ack();
        }
    }

    #[test]
    fn a_round_trip_after_it_was_full_a_window_is_a_segment_larger() {
        let filled = filled(false, false, 6);
        assert_eq!(filled.window_bytes(&state(SRTT_NS)), Some(6000));
        assert_eq!(filled.window_bytes(&state(SRTT_NS + 1)), Some(7000));
    }

    #[test]
    fn a_response_that_ends_the_data_shows_the_window_before_it() {
        let mut filled = filled(false, false, 6);
        respond(&mut filled, 3, false);
        assert_eq!(filled.window_bytes(&state(0)), Some(6000));
        let mut filled = LastFilled::default();
        filled.begin_reduction(None);
        filled.end_reduction(false);
        respond(&mut filled, 5, false);
        assert_eq!(filled.window_bytes(&state(0)), Some(5000));
    }

    #[test]
    fn after_a_timeout_a_window_is_known_above_the_slow_start_threshold() {
        assert_eq!(filled(true, false, 7).window_bytes(&state(0)), None);
        assert_eq!(filled(true, false, 8).window_bytes(&state(0)), Some(8000));
    }

    #[test]
    fn an_undone_reduction_is_none() {
        assert_eq!(filled(false, true, 8).window_bytes(&state(0)), None);
    }

    #[test]
    fn a_cancelled_reduction_leaves_the_window_known() {
        let mut filled = filled(false, false, 6);
        filled.begin_reduction(Some(6000));
        assert_eq!(filled.window_bytes(&state(0)), None);
        filled.cancel_reduction();
        assert_eq!(filled.window_bytes(&state(0)), Some(6000));
    }

    #[test]
    fn many_acks_without_a_response_show_a_sender_with_its_own_pace() {
        let mut filled = filled(false, false, 6);
        assert!(filled.is_clocked());
        filled.begin_reduction(None);
        filled.end_reduction(false);
        let late = Response {
            immediate: false,
            full: true,
        };
        for _ in 1..MANY_ACKS {
            filled.on_response(0, late);
        }
        assert!(filled.is_clocked());
        filled.on_response(0, late);
        assert!(!filled.is_clocked());
    }

    #[test]
    fn a_late_write_does_not_lower_the_window() {
        let mut filled = filled(false, false, 6);
        respond(&mut filled, 3, true);
        assert_eq!(filled.window_bytes(&state(0)), Some(6000));
    }

    #[test]
    fn after_two_idle_times_a_pipe_above_the_last_window_shows_the_window() {
        let mut filled = filled(false, false, 6);
        filled.observe(&state(0), 0, false);
        for now_ns in [0, 1, 2] {
            filled.before_segment(now_ns * 1_000_000_000);
        }
        respond(&mut filled, 6, true);
        assert_eq!(filled.window_bytes(&state(0)), None);
        respond(&mut filled, 7, true);
        assert_eq!(filled.window_bytes(&state(0)), Some(7000));
    }

    #[test]
    fn an_idle_time_longer_than_the_rto_since_the_last_segment_hides_the_window() {
        for (idle_ns, known) in [(200_000_000, true), (200_000_001, false)] {
            let mut filled = filled(false, false, 6);
            filled.before_segment(0);
            filled.observe(&state(150_000_000), 0, false);
            filled.before_segment(idle_ns);
            assert_eq!(filled.window_bytes(&state(idle_ns)).is_some(), known);
        }
    }
}

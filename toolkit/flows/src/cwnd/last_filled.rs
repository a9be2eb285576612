//! The window of a sender that waits for its application, from the last time that it filled it.

use super::SenderState;

/// ACKs for which data may have waited since the last reduction: a sender with its own pace responds to this many of them,
/// and to three in four, by chance in one case of a hundred at most.
const MIN_ANSWERS: u32 = 3;

/// So many of these ACKs, and the responses did not fill the window: the sender has its own pace.
const MANY_WAITS: u32 = 16;

/// The congestion window when the sender last filled it, or the maximum of the pipe since then, in whole segments.
///
/// After the first reduction, a window that the sender does not fill does not grow (RFC 7661 §4.3; Linux:
/// `tcp_is_cwnd_limited`), so that it ends a segment above the largest burst. It falls only after an idle time (RFC 5681
/// §4.1): while ACKs advance within every RTO, Linux lets it stay (`tcp_cong_avoid` sets `snd_cwnd_stamp`).
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct LastFilled {
    /// The window, if it was filled since the last reduction, and since when it has this value.
    window: Option<(i64, i64)>,
    /// Pipe after the last segment that answered the last ACK.
    answer_bytes: i64,
    /// Since when nothing is in the pipe.
    idle_from_ns: Option<i64>,
    /// The window has been reduced before.
    reduced: bool,
    /// Number of ACKs since then for which data may have waited, and of those with an immediate response.
    waits: u32,
    answers: u32,
    /// These responses have filled the window since the last reduction, or did when it was last known.
    filled: bool,
    fills: bool,
}

impl LastFilled {
    /// A reduction begins, or the window was restored: it is not known.
    pub(super) fn forget(&mut self) {
        self.window = None;
    }

    /// A reduction ends.
    pub(super) fn restart(&mut self) {
        self.forget();
        self.reduced = true;
        (self.waits, self.answers, self.filled) = (0, 0, false);
    }

    /// An ACK for which data may have waited was `answered` at once, or not.
    pub(super) fn on_answer(&mut self, now_ns: i64, answered: bool) {
        self.waits += 1;
        self.answers += u32::from(answered);
        let by_chance = self.answers < MIN_ANSWERS || 4 * self.answers < 3 * self.waits;
        if answered && !by_chance {
            self.filled = true;
            self.fill(now_ns);
        }
        self.fills = self.filled || (self.fills && self.waits < MANY_WAITS);
    }

    /// Whether ACKs release what waits.
    pub(super) fn fills(&self) -> bool {
        self.fills
    }

    fn fill(&mut self, now_ns: i64) {
        let known_bytes = self.window.map(|(bytes, _)| bytes);
        if self.reduced && known_bytes != Some(self.answer_bytes) {
            self.window = Some((self.answer_bytes, now_ns));
        }
    }

    /// The sender is in `state`, with so many octets in the pipe; `is_answer` if a segment sent now answers the last ACK.
    pub(super) fn observe(&mut self, state: &SenderState, pipe_bytes: i64, is_answer: bool) {
        let now_ns = state.t_ns;
        // A window in segments counts a short one as a full one.
        let smss_bytes = state.smss_bytes.max(1);
        let pipe_bytes = (pipe_bytes + smss_bytes - 1) / smss_bytes * smss_bytes;
        if is_answer {
            self.answer_bytes = pipe_bytes;
        }
        let idle_from_ns = self.idle_from_ns.take();
        if pipe_bytes == 0 {
            self.idle_from_ns = idle_from_ns.or(Some(now_ns));
        } else if idle_from_ns.is_some_and(|from_ns| now_ns - from_ns > state.rto_ns) {
            self.forget();
        }
        if self.window.is_some_and(|(bytes, _)| pipe_bytes > bytes) {
            self.window = Some((pipe_bytes, now_ns));
        }
    }

    /// The window, if it is known. A round trip after it was full it has grown by a segment.
    pub(super) fn window_bytes(&self, state: &SenderState) -> Option<i64> {
        let (bytes, from_ns) = self.window?;
        let full_for_a_round = state.t_ns - from_ns > state.srtt_ns;
        Some(
            bytes
                + if full_for_a_round {
                    state.smss_bytes
                } else {
                    0
                },
        )
    }
}

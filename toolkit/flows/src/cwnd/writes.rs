//! How the application of a sender writes.

use super::NewSegment;
use super::ack_clock::RESPONSE_NS;

/// The application lets the sender wait if at least one in so many segments is short, and full segments are sent together:
/// the fraction of them in 1/1024.
const MAX_SINCE_SHORT: u32 = 256;
const TOGETHER_ABOVE: i64 = 768;

/// Detects an application that writes less than the window lets through, and a sender that sends each write at once.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Writes {
    /// Time of the last segment, and its timestamp if its sender is remote.
    sent_ns: i64,
    ts_val: Option<u32>,
    /// Full segments since one that was not.
    since_short: u32,
    /// Moving average with weight 1/32 of the fraction of segments after a full one that follow it, or an ACK, at once, in
    /// 1/1024 x 1/256.
    together_average: i64,
}

impl Writes {
    pub(super) fn new() -> Self {
        Self {
            sent_ns: 0,
            ts_val: None,
            since_short: u32::MAX,
            together_average: 0,
        }
    }

    /// Called for each segment; `is_answer` if it answers an ACK.
    pub(super) fn on_segment(&mut self, segment: &NewSegment, is_answer: bool) {
        if self.since_short > 0 {
            // The path spreads what a remote sender sent together, but not its timestamps, of 1 ms on common stacks.
            let together = match segment.remote_ts_val {
                Some(ts_val) => self.ts_val == Some(ts_val),
                None => is_answer || segment.t_ns - self.sent_ns <= RESPONSE_NS,
            };
            let value = if together { 1024 << 8 } else { 0 };
            self.together_average += (value - self.together_average) / 32;
        }
        self.since_short = if segment.short {
            0
        } else {
            self.since_short.saturating_add(1)
        };
        (self.sent_ns, self.ts_val) = (segment.t_ns, segment.remote_ts_val);
    }

    /// Whether the window limits the sender as soon as data wait, which its application does not always let them. A sender
    /// that paces its segments sends full ones apart.
    pub(super) fn leave_nothing_waiting(&self) -> bool {
        self.since_short < MAX_SINCE_SHORT && self.together_average > TOGETHER_ABOVE << 8
    }
}

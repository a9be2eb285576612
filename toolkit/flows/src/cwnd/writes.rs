//! How the application of a sender writes.

use super::Departure;
use super::ack_clock::RESPONSE_NS;
use super::moving_share::MovingShare;

/// Records of new data, one of which at least ends with a short segment where the application limits the sender: a
/// write of whole segments is rare, and Nagle's algorithm joins the ends of some writes to the next ones.
const MAX_SINCE_SHORT: u32 = 256;

/// Fraction of the segments after a full one that follow it at once, in 1/1024: with Nagle's algorithm, the first
/// segment of a write does not, so that a write has four segments at least.
const TOGETHER_ABOVE: i64 = 768;

/// The inverse of the weight of a segment in this fraction.
const AVERAGED: i64 = 32;

/// Segments captured as one that count at most: the average has forgotten what was before them.
const MAX_COUNTED: u16 = 128;

/// Detects an application that at times leaves the sender without data, and a sender that sends each write at once.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Writes {
    /// Time of the last segment, and its timestamp if its sender is remote.
    sent_ns: i64,
    ts_val: Option<u32>,
    /// Records since one that ended with a short segment.
    since_short: u32,
    /// Moving average of the fraction of segments after a full one that follow it, or an ACK, at once.
    together_average: MovingShare,
}

impl Writes {
    pub(super) fn new() -> Self {
        Self {
            sent_ns: 0,
            ts_val: None,
            since_short: u32::MAX,
            together_average: MovingShare::NONE,
        }
    }

    /// Called for new data; `is_response` if they are a response to an ACK.
    ///
    /// The path spreads what a remote sender sent together, but not its timestamps. Deviation: a clock of more than
    /// 1 ms hides the pace of a sender, and so does a rate of more than a segment in 0.25 ms at the sender.
    pub(super) fn on_new(&mut self, departure: &Departure, is_response: bool) {
        if self.since_short > 0 {
            let together = match departure.remote_ts_val {
                Some(ts_val) => self.ts_val == Some(ts_val),
                None => is_response || departure.t_ns - self.sent_ns <= RESPONSE_NS,
            };
            self.together_average.add(together, AVERAGED);
        }
        for _ in 1..departure.segments_n.min(MAX_COUNTED) {
            self.together_average.add(true, AVERAGED);
        }
        self.since_short = if departure.short {
            0
        } else {
            self.since_short.saturating_add(1)
        };
        (self.sent_ns, self.ts_val) = (departure.t_ns, departure.remote_ts_val);
    }

    /// Whether the last segment was short: nothing waits to be sent.
    pub(super) fn end_short(&self) -> bool {
        self.since_short == 0
    }

    /// Whether the application limits the sender at times, and nothing but the window does otherwise. A sender that
    /// paces its segments sends full ones apart.
    pub(super) fn limit_sender(&self) -> bool {
        self.since_short < MAX_SINCE_SHORT && self.together_average.is_above(TOGETHER_ABOVE)
    }
}

//! Whether ACKs clock the sender, that is, whether its window limits it.

use super::Departure;

/// A sender limited by its window responds to an ACK within this time, or within this fraction of the time to the next
/// ACK. On Linux, half of the responses take less than 20 us, 99 % less than 50 us.
pub(super) const RESPONSE_NS: i64 = 250_000;
const RESPONSE_DIVISOR: i64 = 16;

/// Fraction of ACKs with an immediate response, in 1/1024: below the first value the sender is not limited by its
/// window, above the second value it is again.
const LIMITED_BELOW: i64 = 410;
const CWND_LIMITED_ABOVE: i64 = 819;

/// What the sender sent after an ACK that found its last segment full, so that data may have waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Response {
    /// The first segment came within [`RESPONSE_NS`].
    pub immediate: bool,
    /// The last new segment within that time was full.
    pub full: bool,
}

/// Detects whether ACKs clock the sender, that is, whether the window limits it.
///
/// Two moving averages of the fraction of ACKs with an immediate response decide. The slow one is needed because a
/// sender with its own pace responds to a few consecutive ACKs by chance.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct AckClock {
    /// Time of the last ACK of new data, and of the first segment after it.
    ack_ns: Option<i64>,
    response_ns: Option<i64>,
    /// The last new segment within [`RESPONSE_NS`] of that ACK was full.
    response_full: bool,
    /// The last segment before that ACK was full.
    found_full: bool,
    /// Moving averages with weights 1/8 and 1/128, in 1/1024 x 1/256 to preserve small steps.
    fast_average: i64,
    slow_average: i64,
    /// The sender is not limited by its window.
    pub(super) limited: bool,
}

impl AckClock {
    pub(super) fn new() -> Self {
        Self {
            ack_ns: None,
            response_ns: None,
            response_full: false,
            found_full: false,
            fast_average: 1024 << 8,
            slow_average: 1024 << 8,
            limited: false,
        }
    }

    /// Called for an ACK of new data; `full` if the last segment is. Returns the response to the ACK before it, if data
    /// may have waited.
    pub(super) fn on_ack(&mut self, now_ns: i64, full: bool) -> Option<Response> {
        let waited_ns = self.ack_ns.map(|ack_ns| {
            self.average_response(now_ns, ack_ns);
            self.response_ns
                .map_or(i64::MAX, |response_ns| response_ns - ack_ns)
        });
        let response = waited_ns
            .filter(|_| self.found_full)
            .map(|waited_ns| Response {
                immediate: waited_ns <= RESPONSE_NS,
                full: self.response_full,
            });
        self.ack_ns = Some(now_ns);
        (self.response_ns, self.response_full) = (None, false);
        self.found_full = full;
        response
    }

    fn average_response(&mut self, now_ns: i64, ack_ns: i64) {
        let max_ns = RESPONSE_NS.max((now_ns - ack_ns) / RESPONSE_DIVISOR);
        let immediate = self
            .response_ns
            .is_some_and(|response| response - ack_ns <= max_ns);
        let value = if immediate { 1024 << 8 } else { 0 };
        self.fast_average += (value - self.fast_average) / 8;
        self.slow_average += (value - self.slow_average) / 128;
        let threshold = if self.limited {
            CWND_LIMITED_ABOVE
        } else {
            LIMITED_BELOW
        };
        self.limited = self.fast_average < threshold << 8 || self.slow_average < LIMITED_BELOW << 8;
    }

    /// Whether what is sent at `now_ns` is a response to the last ACK.
    pub(super) fn is_response(&self, now_ns: i64) -> bool {
        self.ack_ns
            .is_some_and(|ack_ns| now_ns - ack_ns <= RESPONSE_NS)
    }

    pub(super) fn on_segment(&mut self, departure: &Departure) {
        self.response_ns.get_or_insert(departure.t_ns);
        if departure.new && self.is_response(departure.t_ns) {
            self.response_full = !departure.short;
        }
    }
}

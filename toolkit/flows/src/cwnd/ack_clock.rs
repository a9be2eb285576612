//! Whether ACKs clock the sender, that is, whether its window limits it.

use super::Departure;
use super::moving_share::MovingShare;

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
    /// Moving averages with weights 1/8 and 1/128.
    fast_average: MovingShare,
    slow_average: MovingShare,
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
            fast_average: MovingShare::ALL,
            slow_average: MovingShare::ALL,
            limited: false,
        }
    }

    /// Called for an ACK of new data; `full` if the last segment is. Returns the response to the ACK before it, if data
    /// may have waited.
    pub(super) fn on_ack(&mut self, now_ns: i64, full: bool) -> Option<Response> {
        let last_ns = self.ack_ns.replace(now_ns);
        let response_ns = self.response_ns.take();
        let waited_ns = last_ns
            .zip(response_ns)
            .map_or(i64::MAX, |(ack_ns, response_ns)| response_ns - ack_ns);
        if let Some(ack_ns) = last_ns {
            let max_ns = RESPONSE_NS.max((now_ns - ack_ns) / RESPONSE_DIVISOR);
            self.average_response(waited_ns <= max_ns);
        }
        let response = Response {
            immediate: waited_ns <= RESPONSE_NS,
            full: std::mem::take(&mut self.response_full),
        };
        std::mem::replace(&mut self.found_full, full).then_some(response)
    }

    fn average_response(&mut self, immediate: bool) {
        self.fast_average.add(immediate, 8);
        self.slow_average.add(immediate, 128);
        let threshold = if self.limited {
            CWND_LIMITED_ABOVE
        } else {
            LIMITED_BELOW
        };
        self.limited =
            self.fast_average.is_below(threshold) || self.slow_average.is_below(LIMITED_BELOW);
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

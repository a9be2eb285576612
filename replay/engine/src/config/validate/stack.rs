//! Checks of stack parameters: their ranges, and those that contradict each other.

use super::{MAX_NS, Place};
use crate::config::error::{ConfigErrorKind, Relation};
use crate::config::{StackOverrides, StackParams};
use crate::sim::time::{MILLISECOND, SECOND};

const MAX_PACKET_BYTES: u32 = 65_535;
const MAX_SMSS_BYTES: u32 = 65_000;
/// IPv4 and TCP header, each with all its options.
const MAX_HEADER_BYTES: u32 = 120;
const MAX_WINDOW_PKTS: u32 = 1_000_000;
const MAX_RECEIVE_BUFFER_BYTES: u64 = 1 << 30;
const MAX_SEND_BUFFER_BYTES: u64 = 1 << 40;

/// A parameter that may have a value, by its name.
type Named = (&'static str, Option<u64>);

impl StackParams {
    /// Checks every value; if two contradict each other, the error stands at one that `given` has.
    pub(super) fn validate(&self, place: &Place, given: &StackOverrides) {
        self.validate_segments(place);
        self.validate_windows(place);
        self.validate_timers(place);
        self.validate_order(place, given);
        self.validate_retries(place);
        self.validate_ecn(place);
        self.validate_mechanisms(place);
        self.validate_receive_buffer(place);
        self.validate_send_buffer(place);
    }

    fn validate_segments(&self, place: &Place) {
        let smss = place.key("smss_bytes");
        let sound = smss.within(self.smss_bytes, 1, MAX_SMSS_BYTES);
        let header = place.key("header_bytes");
        if !header.within(self.header_bytes, 0, MAX_HEADER_BYTES) || !sound {
            return;
        }
        let packet_bytes = self.smss_bytes + self.header_bytes;
        if packet_bytes > MAX_PACKET_BYTES {
            smss.refuse(ConfigErrorKind::PacketTooLarge {
                packet_bytes,
                max_bytes: MAX_PACKET_BYTES,
            });
        }
    }

    /// A minimum must not exceed its maximum, whether the scenario or the profile gives it.
    fn validate_order(&self, place: &Place, given: &StackOverrides) {
        let max_rto = ("max_rto_ns", Some(self.max_rto_ns));
        let max_rto_is_given = given.max_rto_ns.is_some();
        let min_rto = ("min_rto_ns", Some(self.min_rto_ns));
        self.ordered(place, min_rto, max_rto, max_rto_is_given);
        if given.initial_rto_ns.is_some() {
            let initial_rto = ("initial_rto_ns", given.initial_rto_ns);
            self.ordered(place, initial_rto, max_rto, max_rto_is_given);
        }
        let buffer = ("receive_buffer_bytes", Some(self.receive_buffer_bytes));
        let max = ("receive_buffer_max_bytes", self.receive_buffer_max_bytes);
        self.ordered(place, buffer, max, true);
        let buffer = ("send_buffer_bytes", self.send_buffer_bytes);
        let max = ("send_buffer_max_bytes", self.send_buffer_max_bytes);
        self.ordered(place, buffer, max, true);
    }

    /// `lower` must not exceed `upper`; the error stands at `upper` if the scenario gives that.
    fn ordered(&self, place: &Place, lower: Named, upper: Named, upper_is_given: bool) {
        let ((lower, Some(low)), (upper, Some(high))) = (lower, upper) else {
            return;
        };
        if low <= high {
            return;
        }
        let (key, value, must_be, other, other_value) = if upper_is_given {
            (upper, high, Relation::AtLeast, lower, low)
        } else {
            (lower, low, Relation::AtMost, upper, high)
        };
        place.key(key).refuse(ConfigErrorKind::Order {
            value: value.into(),
            must_be,
            other,
            other_value: other_value.into(),
            profile: Some(self.profile),
        });
    }

    /// A buffer takes at least two segments, or the receiver's window would never open (RFC 9293 §3.8.6.2.2).
    fn takes_two_segments(&self, place: &Place, bytes: u64) {
        let smss_bytes = self.smss_bytes;
        if bytes < 2 * u64::from(smss_bytes) {
            place.refuse(ConfigErrorKind::BufferBelowTwoSegments {
                value: bytes,
                smss_bytes,
            });
        }
    }

    fn validate_windows(&self, place: &Place) {
        let initial = place.key("initial_window_pkts");
        initial.within(self.initial_window_pkts, 1, MAX_WINDOW_PKTS);
        let ssthresh = place.key("initial_ssthresh_pkts");
        ssthresh.within_if_given(self.initial_ssthresh_pkts, 2, u32::MAX);
        let fixed = place.key("fixed_window_pkts");
        fixed.within_if_given(self.fixed_window_pkts, 2, MAX_WINDOW_PKTS);
        let limit = place.key("slow_start_limit_pkts");
        limit.within_if_given(self.slow_start_limit_pkts, 1, u32::MAX);
    }

    fn validate_timers(&self, place: &Place) {
        let timeout = |name: &str, value| place.key(name).within(value, MILLISECOND, MAX_NS);
        timeout("min_rto_ns", self.min_rto_ns);
        timeout("initial_rto_ns", self.initial_rto_ns);
        timeout("max_rto_ns", self.max_rto_ns);
        let granularity = place.key("clock_granularity_ns");
        granularity.within(self.clock_granularity_ns, 0, SECOND);
        // RFC 5681 §4.2: the delay is less than 500 ms.
        let delayed = place.key("delayed_ack_timeout_ns");
        delayed.within(self.delayed_ack_timeout_ns, MILLISECOND, 500 * MILLISECOND);
    }

    fn validate_retries(&self, place: &Place) {
        let timeout = place.key("user_timeout_ns");
        timeout.within_if_given(self.user_timeout_ns, MILLISECOND, MAX_NS);
        // The bounds of Linux.
        let retries = place.key("retry_limit");
        retries.within_if_given(self.retry_limit, 1, 255);
        let retries = place.key("syn_retry_limit");
        retries.within_if_given(self.syn_retry_limit, 1, 127);
    }

    fn validate_ecn(&self, place: &Place) {
        let beta = place.key("ecn_beta");
        beta.within_if_given(self.ecn_beta, 0.1, 1.0);
        if self.ecn_beta.is_some() && !self.ecn {
            beta.requires("ecn", Some(true));
        }
    }

    fn validate_receive_buffer(&self, place: &Place) {
        let buffer = place.key("receive_buffer_bytes");
        self.takes_two_segments(&buffer, self.receive_buffer_bytes);
        buffer.within(self.receive_buffer_bytes, 1, MAX_RECEIVE_BUFFER_BYTES);
        let max = place.key("receive_buffer_max_bytes");
        max.within_if_given(self.receive_buffer_max_bytes, 1, MAX_RECEIVE_BUFFER_BYTES);
        place.key("read_rate_bps").rate_if_given(self.read_rate_bps);
    }

    fn validate_send_buffer(&self, place: &Place) {
        let max = place.key("send_buffer_max_bytes");
        max.within_if_given(self.send_buffer_max_bytes, 1, MAX_SEND_BUFFER_BYTES);
        let lowat = place.key("notsent_lowat_bytes");
        lowat.within_if_given(self.notsent_lowat_bytes, 1, MAX_SEND_BUFFER_BYTES);
        if let Some(bytes) = self.send_buffer_bytes {
            let buffer = place.key("send_buffer_bytes");
            self.takes_two_segments(&buffer, bytes);
            buffer.within(bytes, 1, MAX_SEND_BUFFER_BYTES);
            return;
        }
        for (option, value) in [
            (max, self.send_buffer_max_bytes),
            (lowat, self.notsent_lowat_bytes),
        ] {
            if value.is_some() {
                option.requires("send_buffer_bytes", None);
            }
        }
    }
}

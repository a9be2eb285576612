//! Refuses stack parameters out of range or at odds with one another.

use super::{Checked, LONGEST_NS, rate, refuse, shown, within};
use crate::config::{StackOverrides, StackParams};
use crate::sim::time::{MILLISECOND, SECOND};

const LARGEST_PACKET_BYTES: u32 = 65_535;
const LARGEST_RECEIVE_BUFFER_BYTES: u64 = 1 << 30;
const LARGEST_SEND_BUFFER_BYTES: u64 = 1 << 40;

/// The key path of a parameter by its name.
type KeyOf<'a> = &'a dyn Fn(&str) -> String;

impl StackParams {
    /// Checks every value; an error names one that `given` holds, where two are at odds.
    pub(super) fn validate(&self, key: &str, given: &StackOverrides) -> Checked {
        let at = |name: &str| format!("{key}.{name}");
        self.validate_segments(&at)?;
        self.validate_windows(&at)?;
        self.validate_timers(&at)?;
        self.validate_order(&at, given)?;
        self.validate_retries(&at)?;
        self.validate_ecn(&at)?;
        self.validate_mechanisms(&at)?;
        self.validate_receive_buffer(&at)?;
        self.validate_send_buffer(&at)
    }

    fn validate_segments(&self, at: KeyOf) -> Checked {
        within(&at("smss_bytes"), self.smss_bytes, 1, 65_000)?;
        within(&at("header_bytes"), self.header_bytes, 0, 120)?;
        let packet = self.smss_bytes + self.header_bytes;
        if packet > LARGEST_PACKET_BYTES {
            let problem =
                format!("makes a packet of {packet} B with its headers; IP takes 65535 B");
            return refuse(at("smss_bytes"), problem);
        }
        Ok(())
    }

    /// What may not be more than another: a profile's value may be at odds with a given one.
    fn validate_order(&self, at: KeyOf, given: &StackOverrides) -> Checked {
        let (min, max) = ("min_rto_ns", "max_rto_ns");
        let lower = (min, Some(self.min_rto_ns));
        let upper = (max, Some(self.max_rto_ns), given.max_rto_ns.is_some());
        self.ordered(at, lower, upper)?;
        if given.initial_rto_ns.is_some() {
            self.ordered(at, ("initial_rto_ns", given.initial_rto_ns), upper)?;
        }
        let lower = ("receive_buffer_bytes", Some(self.receive_buffer_bytes));
        let max = self.receive_buffer_max_bytes;
        let upper = ("receive_buffer_max_bytes", max, max.is_some());
        self.ordered(at, lower, upper)?;
        let lower = ("send_buffer_bytes", self.send_buffer_bytes);
        let max = self.send_buffer_max_bytes;
        self.ordered(at, lower, ("send_buffer_max_bytes", max, max.is_some()))
    }

    /// Of `lower` (its name and value) and `upper` (with whether the scenario gives it) the second may not be less.
    fn ordered(
        &self,
        at: KeyOf,
        lower: (&str, Option<u64>),
        upper: (&str, Option<u64>, bool),
    ) -> Checked {
        let ((lower, Some(min)), (upper, Some(max), upper_is_given)) = (lower, upper) else {
            return Ok(());
        };
        if min <= max {
            return Ok(());
        }
        let (min, max) = (shown(lower, min), shown(upper, max));
        let profile = self.profile;
        if upper_is_given {
            let problem = format!("{max} is less than {lower}, which is {min} ({profile})");
            return refuse(at(upper), problem);
        }
        let problem = format!("{min} is more than {upper}, which is {max} ({profile})");
        refuse(at(lower), problem)
    }

    /// A buffer holds two segments at least, or the receiver's window would never open (RFC 9293 §3.8.6.2.2).
    fn holds_two_segments(&self, key: &str, bytes: u64) -> Checked {
        let (min, smss) = (2 * u64::from(self.smss_bytes), self.smss_bytes);
        if bytes >= min {
            return Ok(());
        }
        let bytes = shown(key, bytes);
        refuse(
            key,
            format!("{bytes} is less than two segments of {smss} B"),
        )
    }

    fn validate_windows(&self, at: KeyOf) -> Checked {
        let initial = self.initial_window_pkts;
        within(&at("initial_window_pkts"), initial, 1, 1_000_000)?;
        if let Some(ssthresh) = self.initial_ssthresh_pkts {
            within(&at("initial_ssthresh_pkts"), ssthresh, 2, u32::MAX)?;
        }
        if let Some(fixed) = self.fixed_window_pkts {
            within(&at("fixed_window_pkts"), fixed, 2, 1_000_000)?;
        }
        if let Some(limit) = self.slow_start_limit_pkts {
            within(&at("slow_start_limit_pkts"), limit, 1, u32::MAX)?;
        }
        Ok(())
    }

    fn validate_timers(&self, at: KeyOf) -> Checked {
        let timeout = |name: &str, value, min| within(&at(name), value, min, LONGEST_NS);
        timeout("min_rto_ns", self.min_rto_ns, MILLISECOND)?;
        timeout("initial_rto_ns", self.initial_rto_ns, MILLISECOND)?;
        timeout("max_rto_ns", self.max_rto_ns, MILLISECOND)?;
        let granularity = self.clock_granularity_ns;
        within(&at("clock_granularity_ns"), granularity, 0, SECOND)?;
        let delayed = self.delayed_ack_timeout_ns;
        // RFC 5681 §4.2: less than half a second.
        within(
            &at("delayed_ack_timeout_ns"),
            delayed,
            MILLISECOND,
            500 * MILLISECOND,
        )
    }

    fn validate_retries(&self, at: KeyOf) -> Checked {
        if let Some(max) = self.user_timeout_ns {
            within(&at("user_timeout_ns"), max, MILLISECOND, LONGEST_NS)?;
        }
        // As Linux bounds them.
        if let Some(retries) = self.retry_limit {
            within(&at("retry_limit"), retries, 1, 255)?;
        }
        if let Some(retries) = self.syn_retry_limit {
            within(&at("syn_retry_limit"), retries, 1, 127)?;
        }
        Ok(())
    }

    fn validate_ecn(&self, at: KeyOf) -> Checked {
        let Some(beta) = self.ecn_beta else {
            return Ok(());
        };
        within(&at("ecn_beta"), beta, 0.1, 1.0)?;
        if self.ecn {
            Ok(())
        } else {
            refuse(at("ecn_beta"), "has no effect without ecn = true")
        }
    }

    fn validate_receive_buffer(&self, at: KeyOf) -> Checked {
        let limit = LARGEST_RECEIVE_BUFFER_BYTES;
        let bytes = self.receive_buffer_bytes;
        self.holds_two_segments(&at("receive_buffer_bytes"), bytes)?;
        within(&at("receive_buffer_bytes"), bytes, 1, limit)?;
        if let Some(max) = self.receive_buffer_max_bytes {
            within(&at("receive_buffer_max_bytes"), max, 1, limit)?;
        }
        rate(&at("read_rate_bps"), self.read_rate_bps)
    }

    fn validate_send_buffer(&self, at: KeyOf) -> Checked {
        let lowat = (at("notsent_lowat_bytes"), self.notsent_lowat_bytes);
        let max = (at("send_buffer_max_bytes"), self.send_buffer_max_bytes);
        let Some(bytes) = self.send_buffer_bytes else {
            let dangling = [max, lowat].into_iter().find(|(_, value)| value.is_some());
            return dangling.map_or(Ok(()), |(key, _)| {
                refuse(key, "means nothing without send_buffer_bytes")
            });
        };
        let limit = LARGEST_SEND_BUFFER_BYTES;
        if let (key, Some(octets)) = lowat {
            within(&key, octets, 1, limit)?;
        }
        self.holds_two_segments(&at("send_buffer_bytes"), bytes)?;
        within(&at("send_buffer_bytes"), bytes, 1, limit)?;
        if let (key, Some(max)) = max {
            within(&key, max, 1, limit)?;
        }
        Ok(())
    }
}

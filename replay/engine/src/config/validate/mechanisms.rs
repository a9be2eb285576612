//! Checks of the mechanisms of a stack that do not belong to a variant. Read `docs/mechanisms.md` first.

use super::{MAX_BPS, MAX_NS, Place};
use crate::config::StackParams;

/// RFC 4782 §3.1: the lowest rate that a request can name.
const MIN_REQUEST_BPS: f64 = 80_000.0;

impl StackParams {
    pub(super) fn validate_mechanisms(&self, place: &Place) {
        if self.delayed_ack_after_slow_start && !self.delayed_ack {
            let delayed = place.key("delayed_ack_after_slow_start");
            delayed.requires("delayed_ack", Some(true));
        }
        let warning = place.key("freeze_warning_ns");
        warning.within_if_given(self.freeze_warning_ns, 1, MAX_NS);
        let request = place.key("quick_start_bps");
        request.within_if_given(self.quick_start_bps, MIN_REQUEST_BPS, MAX_BPS);
        if self.quick_start_bps.is_some() && !self.handshake {
            request.requires("handshake", Some(true));
        }
        if self.fast_open && !self.handshake {
            place.key("fast_open").requires("handshake", Some(true));
        }
    }
}

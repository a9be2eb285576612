//! A controller by its name and parameters, as a scenario gives them, and the events that it hears.
//!
//! Does not depend on any variant.

use hindflight_engine::cc::{AckEvidence, Controller, ParamValues, Signal, SignalEvidence, check};
use hindflight_engine::{MILLISECOND, Profile, StackOverrides, StackParams, Variant};
use hindflight_kernels::{Purpose, StreamKey, StreamRng};

/// Segments of this many octets.
pub const SMSS: u64 = 1000;

/// The variant `name` with `params` (JSON) under the RFCs' profile, at a window and an ssthresh in segments.
pub fn controller(name: &str, params: &str, cwnd: u32, ssthresh: Option<u32>) -> Controller {
    let variant = Variant::from_name(name).expect("it is known");
    let values: ParamValues = serde_json::from_str(params).expect("well-formed");
    assert_eq!(check(variant.specs(Profile::Rfc), &values), []);
    let overrides = StackOverrides {
        smss_bytes: Some(SMSS as u32),
        initial_window_pkts: Some(cwnd),
        initial_ssthresh_pkts: ssthresh,
        ..StackOverrides::default()
    };
    let params = variant.fix(&StackParams::resolve(Profile::Rfc, &overrides), &values);
    let draws = StreamRng::new(StreamKey {
        seed: 1,
        owner: 0,
        direction: 0,
        purpose: Purpose::Controller,
    });
    variant.controller(&params, &values, draws)
}

/// An ACK at a time and with a round-trip time in milliseconds, under a window that is used.
pub fn ack(now_ms: u64, delivered: u32, rtt_ms: u64) -> AckEvidence {
    AckEvidence {
        now: now_ms * MILLISECOND,
        delivered,
        rtt: Some(rtt_ms * MILLISECOND),
        srtt: Some(rtt_ms * MILLISECOND),
        cwnd_limited: true,
        ..AckEvidence::default()
    }
}

/// A signal with so many segments in flight.
pub fn signal(signal: Signal, flight: f64) -> SignalEvidence {
    SignalEvidence {
        now: 0,
        flight,
        lost_total: 1,
        signal,
    }
}

/// Both windows.
pub fn windows(controller: &Controller) -> (f64, f64) {
    (controller.window().cwnd, controller.window().ssthresh)
}

/// cwnd and ssthresh after a loss, which the controller forgets again.
pub fn after_loss(controller: &Controller) -> (f64, f64) {
    let mut after = controller.clone();
    after.on_congestion(&signal(Signal::Loss, 10.0));
    windows(&after)
}

/// Equal but for rounding.
#[track_caller]
pub fn near(value: f64, expected: f64) {
    let error = (value - expected).abs() / expected.abs().max(1.0);
    assert!(error < 1e-6, "{value} where {expected} is expected");
}

/// Both windows, equal but for rounding.
#[track_caller]
pub fn near_both(value: (f64, f64), expected: (f64, f64)) {
    near(value.0, expected.0);
    near(value.1, expected.1);
}

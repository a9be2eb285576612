//! Acknowledgements by time: a few per round-trip time, for a narrow reverse path.
//!
//! Does not depend on what arrives. Used by `ack_policy`.

use crate::sim::time::{MILLISECOND, Nanos, timestamp};

/// Acknowledgements a few times per round-trip time at most.
#[derive(Clone, Debug)]
pub struct Periods {
    /// How many.
    pub per_round_trip: f64,
    /// Without a handshake: the minimum time from an ACK to the data that it triggered, once there is a sample.
    pub min: Option<Nanos>,
    /// The connection begins with a handshake, which measures the path.
    pub shakes_hands: bool,
    /// How far apart they are, and when the last one was due.
    pub period: Nanos,
    /// See `period`.
    pub began: Nanos,
    /// The ACK that is due has waited for its time: nothing arrived that set it off.
    pub waited: bool,
}

impl Periods {
    /// A round trip takes `rtt`.
    pub fn divide(&mut self, rtt: Nanos) {
        self.period = (rtt as f64 / self.per_round_trip) as Nanos;
    }

    /// Data that echo the timestamp of an ACK (0: of none yet) tell of the path where no handshake has.
    pub fn note_echo(&mut self, echo: u32, now: Nanos) {
        if self.shakes_hands || echo == 0 {
            return;
        }
        let ticks = timestamp(now).wrapping_sub(echo).max(1);
        let rtt = u64::from(ticks) * MILLISECOND;
        if self.min.is_none_or(|min| rtt < min) {
            self.min = Some(rtt);
            self.divide(rtt);
        }
    }
}

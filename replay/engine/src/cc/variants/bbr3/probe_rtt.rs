//! The minimum round-trip time: of the last ten seconds for the model, and of the last five for when to probe for it.
//!
//! Does not depend on modes. Read draft-ietf-ccwg-bbr §5.3.4.3 first.

use super::params::Bbr3Params;
use crate::cc::evidence::AckEvidence;
use crate::sim::time::{NEVER, Nanos, SECOND};

/// A minimum and when it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MinSample {
    value: Nanos,
    seen_at: Nanos,
}

impl Default for MinSample {
    fn default() -> Self {
        Self {
            value: NEVER,
            seen_at: 0,
        }
    }
}

/// Both.
#[derive(Clone, Copy, Debug)]
pub struct MinRttFilter {
    model: MinSample,
    probe: MinSample,
    /// For how long each of them holds.
    model_window: Nanos,
    probe_interval: Nanos,
}

impl MinRttFilter {
    /// Before the connection is established.
    pub fn new(params: &Bbr3Params) -> Self {
        Self {
            model: MinSample::default(),
            probe: MinSample::default(),
            model_window: (params.min_rtt_window_s * SECOND as f64) as Nanos,
            probe_interval: (params.probe_rtt_interval_s * SECOND as f64) as Nanos,
        }
    }

    /// The connection stands.
    pub fn begin(&mut self, now: Nanos, rtt: Option<Nanos>) {
        let min = MinSample {
            value: rtt.unwrap_or(NEVER),
            seen_at: now,
        };
        (self.model, self.probe) = (min, min);
    }

    /// That of the model; [`NEVER`] before the first sample.
    #[inline]
    pub fn value(&self) -> Nanos {
        self.model.value
    }

    /// The path has been looked at without a queue.
    pub fn note_probe(&mut self, now: Nanos) {
        self.probe.seen_at = now;
    }

    /// Takes an ACK; returns whether it is time to look for a lesser one.
    pub fn take(&mut self, ack: &AckEvidence) -> bool {
        let expired = self.is_due(ack.now);
        if let Some(rtt) = ack.rtt
            && (expired || rtt < self.probe.value)
        {
            self.probe = MinSample {
                value: rtt,
                seen_at: ack.now,
            };
        }
        if self.probe.value <= self.model.value || self.has_expired(ack.now) {
            self.model = self.probe;
        }
        expired
    }

    fn is_due(&self, now: Nanos) -> bool {
        now > self.probe.seen_at + self.probe_interval
    }

    fn has_expired(&self, now: Nanos) -> bool {
        now > self.model.seen_at + self.model_window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    const MS: Nanos = MILLISECOND;

    fn take(filter: &mut MinRttFilter, now: Nanos, rtt_ms: u64) -> bool {
        let ack = AckEvidence {
            now,
            rtt: Some(rtt_ms * MS),
            ..AckEvidence::default()
        };
        filter.take(&ack)
    }

    #[test]
    fn the_model_keeps_its_least_for_ten_seconds_and_looks_after_five() {
        let mut filter = MinRttFilter::new(&Bbr3Params::default());
        filter.begin(0, Some(100 * MS));
        assert!(!take(&mut filter, 5 * SECOND, 120));
        assert!(take(&mut filter, 5 * SECOND + 1, 120), "looks");
        assert_eq!(filter.value(), 100 * MS, "and remembers");
        assert!(!take(&mut filter, 10 * SECOND, 130));
        assert_eq!(filter.value(), 100 * MS);
        take(&mut filter, 10 * SECOND + 1, 130);
        assert_eq!(filter.value(), 120 * MS, "the minimum since the last probe");
        take(&mut filter, 10 * SECOND + 2, 90);
        assert_eq!(filter.value(), 90 * MS, "at once");
    }

    #[test]
    fn without_a_handshake_the_first_sample_counts() {
        let mut filter = MinRttFilter::new(&Bbr3Params::default());
        filter.begin(0, None);
        assert_eq!(filter.value(), NEVER);
        take(&mut filter, 1, 100);
        assert_eq!(filter.value(), 100 * MS);
    }
}

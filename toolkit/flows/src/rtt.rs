//! Round-trip times: the estimator of RFC 6298, minimum, mean and maximum. The scoreboard selects the samples (Karn).

/// Clock granularity G (RFC 6298 §2). The clocks of current stacks have a millisecond or less.
const GRANULARITY_NS: i64 = 1_000_000;

/// RTO before the first sample (RFC 6298 §2.1).
const INITIAL_RTO_NS: i64 = 1_000_000_000;

/// Minimum of the variation term of the RTO.
///
/// Deviation: RFC 6298 §2.4 has a minimum RTO of 1 s. Linux has an RTO of at least SRTT + 0.2 s; the estimate serves to
/// recognise the timeouts of such stacks.
const MIN_VARIATION_NS: i64 = 200_000_000;

/// Estimator for the data of one direction.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct RttEstimator {
    srtt_ns: Option<i64>,
    rttvar_ns: i64,
    samples: u64,
    sum_ns: i128,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    repaired_ns: Option<i64>,
}

impl RttEstimator {
    /// Adds a sample. Ignores a negative one, which a step of the capture clock can cause.
    pub fn sample(&mut self, rtt_ns: i64) {
        if rtt_ns < 0 {
            return;
        }
        self.smooth(rtt_ns);
        self.repaired_ns = None;
        self.samples += 1;
        self.sum_ns += i128::from(rtt_ns);
        self.min_ns = Some(self.min_ns.map_or(rtt_ns, |min| min.min(rtt_ns)));
        self.max_ns = Some(self.max_ns.map_or(rtt_ns, |max| max.max(rtt_ns)));
    }

    /// Lowers the minimum to the time that a retransmission that repaired a hole took. It is no sample: the sender
    /// cannot tell which transmission was acknowledged (Karn), so its estimate does not follow.
    pub fn shorten(&mut self, rtt_ns: i64) {
        if rtt_ns >= 0 {
            self.min_ns = self.min_ns.map(|min| min.min(rtt_ns));
        }
    }

    /// Notes the time that a retransmission that may have repaired a hole took, until the next sample.
    pub fn may_shorten(&mut self, rtt_ns: i64) {
        if rtt_ns >= 0 {
            self.repaired_ns = Some(self.repaired_ns.map_or(rtt_ns, |min| min.min(rtt_ns)));
        }
    }

    fn smooth(&mut self, rtt_ns: i64) {
        match self.srtt_ns {
            None => {
                // RFC 6298 §2.2
                self.srtt_ns = Some(rtt_ns);
                self.rttvar_ns = rtt_ns / 2;
            }
            Some(srtt) => {
                // RFC 6298 §2.3: beta = 1/4, alpha = 1/8; RTTVAR is updated first.
                self.rttvar_ns += ((srtt - rtt_ns).abs() - self.rttvar_ns) / 4;
                self.srtt_ns = Some(srtt + (rtt_ns - srtt) / 8);
            }
        }
    }

    /// SRTT.
    pub fn srtt_ns(&self) -> Option<i64> {
        self.srtt_ns
    }

    /// RTTVAR.
    pub fn rttvar_ns(&self) -> Option<i64> {
        self.srtt_ns.map(|_| self.rttvar_ns)
    }

    /// RTO, without backoff.
    pub fn rto_ns(&self) -> i64 {
        self.srtt_ns.map_or(INITIAL_RTO_NS, |srtt| {
            let variation = self.rttvar_ns.saturating_mul(4);
            srtt.saturating_add(GRANULARITY_NS.max(variation).max(MIN_VARIATION_NS))
        })
    }

    /// Minimum RTO of a stack with the current SRTT.
    pub fn min_rto_ns(&self) -> i64 {
        self.srtt_ns
            .map_or(INITIAL_RTO_NS, |srtt| srtt + MIN_VARIATION_NS)
    }

    /// Number of samples.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Minimum sample.
    pub fn min_ns(&self) -> Option<i64> {
        self.min_ns
    }

    /// The shortest time that may be a round trip: the minimum of the samples and of the retransmissions that may have
    /// repaired holes since the last one. `None` without samples.
    pub fn shortest_ns(&self) -> Option<i64> {
        let repaired_ns = self.repaired_ns.unwrap_or(i64::MAX);
        self.min_ns.map(|min| min.min(repaired_ns))
    }

    /// Maximum sample.
    pub fn max_ns(&self) -> Option<i64> {
        self.max_ns
    }

    /// Mean of the samples.
    pub fn mean_ns(&self) -> Option<i64> {
        (self.samples > 0).then(|| (self.sum_ns / i128::from(self.samples)) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn follows_rfc_6298() {
        let mut rtt = RttEstimator::default();
        assert_eq!((rtt.srtt_ns(), rtt.rto_ns()), (None, 1000 * MS));
        rtt.sample(500 * MS);
        assert_eq!((rtt.srtt_ns(), rtt.rto_ns()), (Some(500 * MS), 1500 * MS));
        rtt.sample(580 * MS);
        assert_eq!((rtt.srtt_ns(), rtt.rto_ns()), (Some(510 * MS), 1340 * MS));
        rtt.sample(-1);
        assert_eq!(
            (rtt.samples(), rtt.min_ns(), rtt.max_ns()),
            (2, Some(500 * MS), Some(580 * MS))
        );
        assert_eq!(rtt.mean_ns(), Some(540 * MS));
    }

    #[test]
    fn a_constant_rtt_gives_the_minimum_rto() {
        let mut rtt = RttEstimator::default();
        (0..100).for_each(|_| rtt.sample(50 * MS));
        assert_eq!(rtt.rto_ns(), 250 * MS);
    }
}

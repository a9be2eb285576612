//! Round-trip times: the estimator of RFC 6298 as Linux has it, minimum, mean and maximum. The scoreboard selects the
//! samples (Karn).
//!
//! Deviation: RFC 6298 §2.3 lets the variation fall with each sample. That of Linux rises at once and falls once per
//! round trip, by a quarter of the difference, so that its timeouts are longer where the RTT has become steady again.

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
    /// The variation term of the RTO, four times RTTVAR or more.
    variation_ns: i64,
    /// Its largest value in this round trip, which ends when more than `round_end` is acknowledged.
    round_max_ns: i64,
    round_end: i64,
    samples: u64,
    sum_ns: i128,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    repaired_ns: Option<i64>,
}

impl RttEstimator {
    /// Adds a sample, with SND.UNA and SND.NXT at its time. Ignores a negative one, which a step of the capture clock
    /// can cause.
    pub fn sample(&mut self, rtt_ns: i64, (snd_una, snd_nxt): (i64, i64)) {
        if rtt_ns < 0 {
            return;
        }
        self.smooth(rtt_ns);
        self.vary((snd_una, snd_nxt));
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
        let Some(srtt) = self.srtt_ns else {
            // RFC 6298 §2.2
            self.srtt_ns = Some(rtt_ns);
            self.rttvar_ns = rtt_ns / 2;
            return;
        };
        // RFC 6298 §2.3: beta = 1/4, alpha = 1/8; RTTVAR is updated first.
        let step_ns = ((srtt - rtt_ns).abs() - self.rttvar_ns) / 4;
        // Deviation: as in Linux, an RTT that falls raises the variation by an eighth of that.
        let shorter = rtt_ns < srtt && step_ns > 0;
        self.rttvar_ns += if shorter { step_ns / 8 } else { step_ns };
        self.srtt_ns = Some(srtt + (rtt_ns - srtt) / 8);
    }

    /// Updates the variation term of the RTO (Linux: `tcp_rtt_estimator`).
    fn vary(&mut self, (snd_una, snd_nxt): (i64, i64)) {
        let now_ns = self.rttvar_ns.saturating_mul(4).max(MIN_VARIATION_NS);
        self.round_max_ns = self.round_max_ns.max(now_ns);
        self.variation_ns = self.variation_ns.max(self.round_max_ns);
        if self.samples == 0 {
            self.round_end = snd_nxt;
        } else if snd_una > self.round_end {
            self.variation_ns -= (self.variation_ns - self.round_max_ns) / 4;
            (self.round_max_ns, self.round_end) = (MIN_VARIATION_NS, snd_nxt);
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
            srtt.saturating_add(self.variation_ns)
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
        rtt.sample(500 * MS, (0, 10));
        assert_eq!((rtt.srtt_ns(), rtt.rto_ns()), (Some(500 * MS), 1500 * MS));
        rtt.sample(580 * MS, (1, 20));
        assert_eq!(
            (rtt.srtt_ns(), rtt.rttvar_ns()),
            (Some(510 * MS), Some(207_500_000))
        );
        rtt.sample(-1, (2, 30));
        assert_eq!(
            (rtt.samples(), rtt.min_ns(), rtt.max_ns()),
            (2, Some(500 * MS), Some(580 * MS))
        );
        assert_eq!(rtt.mean_ns(), Some(540 * MS));
    }

    #[test]
    fn the_rto_falls_once_per_round_trip_as_in_linux() {
        let mut rtt = RttEstimator::default();
        let mut variation_ms = |una| {
            rtt.sample(400 * MS, (una, una + 10));
            (rtt.rto_ns() - rtt.srtt_ns().unwrap()) / MS
        };
        // The first sample: twice the RTT. Octet 10 ends the first round trip, octet 21 the second one.
        assert_eq!(variation_ms(0), 800);
        assert_eq!([1, 5, 10].map(&mut variation_ms), [800; 3]);
        assert_eq!(
            variation_ms(11),
            800,
            "the deviation was 800 ms in this round trip"
        );
        assert_eq!([12, 20, 21].map(&mut variation_ms), [800; 3]);
        assert_eq!(
            variation_ms(22),
            650,
            "less a quarter of the difference to 200 ms"
        );
    }

    #[test]
    fn an_rtt_that_falls_hardly_raises_the_rto() {
        let [rises, falls] = [[100, 300], [300, 100]].map(|[before, after]| {
            let mut rtt = RttEstimator::default();
            (0..100).for_each(|una| rtt.sample(before * MS, (una, una)));
            rtt.sample(after * MS, (100, 100));
            rtt.rttvar_ns().unwrap() / MS
        });
        assert_eq!((rises, falls), (50, 6));
    }

    #[test]
    fn a_constant_rtt_gives_the_minimum_rto() {
        let mut rtt = RttEstimator::default();
        (0..100).for_each(|una| rtt.sample(50 * MS, (una, una)));
        assert_eq!(rtt.rto_ns(), 250 * MS);
    }
}

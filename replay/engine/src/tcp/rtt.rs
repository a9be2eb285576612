//! Round-trip time and retransmission timeout: RFC 6298, and Linux's variant of it.
//!
//! Does not depend on segments: its input is RTT samples. The caller applies Karn's rule (RFC 6298 §3).

use super::jiffies;
use super::ns2_rtt::Ticks;
use crate::config::{RtoRule, StackParams};
use crate::sim::time::{Nanos, SECOND, timestamp};

/// Estimator of one connection.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    rule: RtoRule,
    min_rto: Nanos,
    max_rto: Nanos,
    granularity: Nanos,
    base_rto: Nanos,
    backoff: u32,
    /// The timeout, backed off and bounded.
    rto: Nanos,
    srtt: Option<Nanos>,
    rttvar: Nanos,
    min_rtt: Nanos,
    linux: LinuxVariation,
    ticks: Ticks,
    /// Under ns-2's rule: smoothed on a fine clock, for all but the timer.
    fine_srtt: Option<Nanos>,
}

/// What Linux keeps in addition: the deviation, its maximum in this round trip, and the end of the round trip.
#[derive(Clone, Copy, Debug, Default)]
struct LinuxVariation {
    deviation: Nanos,
    round_max: Nanos,
    round_end: u64,
}

/// RFC 6298 §2.3: K.
const K: u64 = 4;
/// ns-2: timeouts in a row after which it distrusts its estimates (backed off more than eight times).
const NS2_BACKOFFS: u32 = 3;

impl RttEstimator {
    /// An estimator without samples.
    pub fn new(params: &StackParams) -> Self {
        Self {
            rule: params.rto_rule,
            min_rto: params.min_rto_ns,
            max_rto: params.max_rto_ns,
            granularity: params.clock_granularity_ns,
            base_rto: params.initial_rto_ns,
            backoff: 0,
            rto: params.initial_rto_ns.min(params.max_rto_ns),
            srtt: None,
            rttvar: 0,
            min_rtt: Nanos::MAX,
            linux: LinuxVariation::default(),
            ticks: Ticks::new(params.ns2_tick_ns()),
            fine_srtt: None,
        }
    }

    /// Takes a sample; `snd_una` and `snd_nxt` delimit round trips for Linux's rule.
    #[inline(always)]
    pub fn sample(&mut self, rtt: Nanos, snd_una: u64, snd_nxt: u64) {
        let rtt = rtt.max(1);
        self.note_min(rtt);
        match self.rule {
            RtoRule::Rfc6298 => self.sample_rfc6298(rtt),
            RtoRule::Linux => self.sample_linux(rtt, snd_una, snd_nxt),
            RtoRule::Ns2 => {
                self.ticks.sample(rtt.div_ceil(self.granularity.max(1)));
                self.take_ticks();
                self.sample_fine(rtt);
            }
        }
        // RFC 6298 §5 (5.7) with Karn: a fresh sample ends the backoff.
        self.end_backoff();
    }

    /// Restarts with `rtt`, that of another path.
    pub fn restart(&mut self, rtt: Nanos, snd_una: u64, snd_nxt: u64) {
        (self.srtt, self.fine_srtt) = (None, None);
        self.min_rtt = Nanos::MAX;
        self.linux = LinuxVariation::default();
        self.sample(rtt, snd_una, snd_nxt);
    }

    /// RFC 6298 §5.7: a SYN timed out and its answer gave no sample, so that the first data has at least three seconds.
    pub fn begin_after_syn_timeout(&mut self) {
        if self.rule != RtoRule::Ns2 {
            self.base_rto = self.base_rto.max(3 * SECOND);
            self.end_backoff();
        }
    }

    /// Takes a sample for the minimum RTT only.
    #[inline]
    pub fn note_min(&mut self, rtt: Nanos) {
        self.min_rtt = self.min_rtt.min(rtt.max(1));
    }

    #[inline(always)]
    fn sample_rfc6298(&mut self, rtt: Nanos) {
        if let Some(srtt) = self.srtt {
            // RFC 6298 §2.3: RTTVAR before SRTT, beta 1/4, alpha 1/8.
            self.rttvar = (3 * self.rttvar + srtt.abs_diff(rtt)) / 4;
            self.srtt = Some((7 * srtt + rtt) / 8);
        } else {
            // RFC 6298 §2.2.
            self.srtt = Some(rtt);
            self.rttvar = rtt / 2;
        }
        let srtt = self.srtt.unwrap_or(rtt);
        // RFC 6298 §2.3 and §2.4.
        self.base_rto = (srtt + self.granularity.max(K * self.rttvar)).max(self.min_rto);
    }

    /// Linux: the minimum applies to the variation, not to the whole timeout; the variation rises at once and
    /// falls by a quarter of the difference per round trip. All deviations here are four times the mean one.
    #[inline(always)]
    fn sample_linux(&mut self, rtt: Nanos, snd_una: u64, snd_nxt: u64) {
        let v = &mut self.linux;
        if let Some(srtt) = self.srtt {
            let mut step = srtt.abs_diff(rtt) as i64 - (v.deviation / K) as i64;
            if rtt < srtt && step > 0 {
                // A path that got faster must not raise the timeout: an eighth of the step.
                step /= 8;
            }
            // By at most a quarter less than the deviation itself.
            v.deviation = v.deviation.wrapping_add_signed(step);
            self.srtt = Some((7 * srtt + rtt) / 8);
            v.round_max = v.round_max.max(v.deviation);
            self.rttvar = self.rttvar.max(v.round_max);
            if snd_una > v.round_end {
                self.rttvar -= (self.rttvar - v.round_max) / 4;
                v.round_end = snd_nxt;
                v.round_max = self.min_rto;
            }
        } else {
            self.srtt = Some(rtt);
            self.base_rto = 0;
            let first = (2 * rtt).max(self.min_rto);
            *v = LinuxVariation {
                deviation: 2 * rtt,
                round_max: first,
                round_end: snd_nxt,
            };
            self.rttvar = first;
        }
        let exact = self.srtt.unwrap_or(rtt) + self.rttvar;
        // In whole ticks, mostly the same as before: until it is higher, where the difference wraps, or lower by a tick.
        if self.base_rto.wrapping_sub(exact) >= jiffies::TICK {
            self.base_rto = jiffies::up(exact);
        }
    }

    /// Under ns-2's rule: the clock ticks `phase` earlier than time itself.
    pub fn set_clock_phase(&mut self, phase: Nanos) {
        self.ticks.set_phase(phase);
    }

    /// Under ns-2's rule: a segment that ends at `end` leaves for the first time.
    #[inline]
    pub fn time_segment(&mut self, end: u64, now: Nanos) {
        if self.rule == RtoRule::Ns2 {
            self.ticks.time(end, now);
        }
    }

    /// Under the rule of ns-2's TCP/Linux: takes the sample of a timestamp echo.
    pub fn sample_echo(&mut self, ts_ecr: u32, now: Nanos) {
        self.ticks
            .sample_as_linux(u64::from(timestamp(now).wrapping_sub(ts_ecr)));
        self.take_ticks();
    }

    /// Under ns-2's rule: what is being timed may be sent again.
    pub fn stop_timing(&mut self) {
        self.ticks.stop();
    }

    /// Under ns-2's rule: the sample of an ACK of everything before `snd_una`, if it answers what is being timed.
    pub fn answer(&mut self, snd_una: u64, now: Nanos) -> Option<Nanos> {
        let rtt = self.ticks.answer(snd_una, now)?;
        self.min_rtt = self.min_rtt.min(rtt);
        self.take_ticks();
        Some(rtt)
    }

    /// Under ns-2's rule: a sample on a fine clock. The timer does not use it.
    pub fn sample_fine(&mut self, rtt: Nanos) {
        self.note_min(rtt);
        // RFC 6298 §2.3.
        let smoothed = self.fine_srtt.map_or(rtt, |srtt| (7 * srtt + rtt) / 8);
        self.fine_srtt = Some(smoothed);
    }

    /// Takes the estimates after a sample, which ends the backoff.
    fn take_ticks(&mut self) {
        self.srtt = Some(self.ticks.srtt());
        self.rttvar = self.ticks.rttvar();
        self.base_rto = self.ticks.rto().max(self.min_rto);
        self.end_backoff();
    }

    /// The next timeout is not backed off.
    #[inline]
    pub fn end_backoff(&mut self) {
        self.backoff = 0;
        self.rto = self.base_rto.min(self.max_rto);
    }

    /// RFC 6298 §5.5: doubles the timeout.
    pub fn back_off(&mut self) {
        self.backoff += 1;
        self.rto = (self.base_rto.saturating_mul(1 << self.backoff.min(30))).min(self.max_rto);
        if self.rule == RtoRule::Ns2 && self.backoff > NS2_BACKOFFS {
            self.ticks.distrust();
        }
    }

    /// The timeout, backed off and bounded (RFC 6298 §2.5).
    #[inline]
    pub fn rto(&self) -> Nanos {
        self.rto
    }

    /// Smoothed round-trip time; none before the first sample.
    pub fn srtt(&self) -> Option<Nanos> {
        self.srtt
    }

    /// The same for all but the timer: ns-2's agents that look at the delay have a fine clock that times it separately.
    #[inline]
    pub fn path_srtt(&self) -> Option<Nanos> {
        self.fine_srtt.or(self.srtt)
    }

    /// Variation: RTTVAR of RFC 6298; under Linux's rule a quarter of what is added to SRTT.
    pub fn rttvar(&self) -> Nanos {
        match self.rule {
            RtoRule::Rfc6298 | RtoRule::Ns2 => self.rttvar,
            RtoRule::Linux => self.rttvar / K,
        }
    }

    /// Minimum sample; none before the first.
    pub fn min_rtt(&self) -> Option<Nanos> {
        (self.min_rtt != Nanos::MAX).then_some(self.min_rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Profile, StackOverrides};
    use crate::sim::time::{MILLISECOND, SECOND};

    fn estimator(profile: Profile) -> RttEstimator {
        RttEstimator::new(&StackParams::resolve(profile, &StackOverrides::default()))
    }

    #[test]
    fn rfc6298_by_hand() {
        let mut rtt = estimator(Profile::Rfc);
        assert_eq!(rtt.rto(), SECOND);
        rtt.sample(800 * MILLISECOND, 0, 0);
        // SRTT 800, RTTVAR 400: RTO 800 + 4 * 400.
        assert_eq!(rtt.rto(), 2400 * MILLISECOND);
        rtt.sample(400 * MILLISECOND, 0, 0);
        // RTTVAR 3/4 * 400 + 1/4 * 400 = 400, SRTT 7/8 * 800 + 1/8 * 400 = 750.
        assert_eq!(
            (rtt.srtt(), rtt.rttvar()),
            (Some(750 * MILLISECOND), 400 * MILLISECOND)
        );
        assert_eq!(rtt.rto(), 2350 * MILLISECOND);
    }

    #[test]
    fn the_minimum_is_one_second_and_the_maximum_holds_under_backoff() {
        let mut rtt = estimator(Profile::Rfc);
        for _ in 0..50 {
            rtt.sample(100 * MILLISECOND, 0, 0);
        }
        assert_eq!(rtt.rto(), SECOND);
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), 4 * SECOND);
        for _ in 0..40 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), 60 * SECOND);
        rtt.sample(100 * MILLISECOND, 0, 0);
        assert_eq!(rtt.rto(), SECOND, "a fresh sample ends the backoff");
    }

    #[test]
    fn linux_adds_its_minimum_to_srtt() {
        let mut rtt = estimator(Profile::Linux);
        for round in 0..60 {
            rtt.sample(500 * MILLISECOND, round, round);
        }
        // 700 ms and what the first sample left, up to a tick.
        assert_eq!(rtt.rto(), 704 * MILLISECOND);
    }
}

//! RED: the probability that an arriving packet is dropped or marked depends on a moving average of the queue, before
//! the queue is full.
//!
//! Does not depend on when a packet is served. Read S. Floyd and V. Jacobson, "Random Early Detection Gateways for
//! Congestion Avoidance", IEEE/ACM ToN 1(4), 1993 (FJ93 below), §IV and figure 2; gentle: S. Floyd, "Recommendation on
//! using the gentle variant of RED", 2000; marks: RFC 3168 §7.

use hindflight_kernels::StreamRng;

use super::backlog::Backlog;
use super::{Arrival, Verdict};
use crate::config::RedConfig;
use crate::net::link::DropCause;
use crate::sim::time::Nanos;

/// RED's state.
pub struct Red {
    config: RedConfig,
    /// Average queue in packets.
    average: f64,
    /// Packets admitted since the last drop or mark, or since the average exceeded the lower threshold.
    admitted: u32,
    rng: StreamRng,
}

impl Red {
    /// An empty queue.
    pub fn new(config: &RedConfig, rng: StreamRng) -> Self {
        Self {
            config: config.clone(),
            average: 0.0,
            admitted: 0,
            rng,
        }
    }

    /// The decision on an arriving packet.
    pub fn judge(&mut self, backlog: &Backlog, arrival: &Arrival, ns_per_byte: f64) -> Verdict {
        let idle = (!backlog.is_busy()).then(|| arrival.now.saturating_sub(arrival.busy_until));
        let packet_ns = f64::from(self.config.mean_packet_bytes) * ns_per_byte;
        self.update_average(backlog.waiting_pkts(), idle, packet_ns);
        if backlog.is_busy() && backlog.waiting_pkts() >= self.config.limit_pkts as usize {
            self.admitted = 0;
            return Verdict::Refuse(DropCause::Queue);
        }
        if !self.drops_or_marks() {
            return Verdict::Admit;
        }
        // RFC 3168 §7: above the upper threshold, packets are dropped even if they are ECN-capable.
        if arrival.ect && self.config.ecn && self.average < self.config.max_pkts {
            Verdict::Mark
        } else {
            Verdict::Refuse(DropCause::Aqm)
        }
    }

    /// FJ93 §IV: the exponential average; idle time counts as that many typical packets that found the queue empty.
    fn update_average(&mut self, waiting: usize, idle: Option<Nanos>, packet_ns: f64) {
        let keep = 1.0 - self.config.weight;
        if let Some(idle) = idle {
            self.average *= libm::pow(keep, idle as f64 / packet_ns);
        } else {
            self.average = keep * self.average + self.config.weight * waiting as f64;
        }
    }

    /// p_b of the average: FJ93 §IV up to the upper threshold, the gentle variant above it.
    fn base_probability(&self) -> f64 {
        let RedConfig {
            min_pkts,
            max_pkts,
            max_probability,
            gentle,
            ..
        } = self.config;
        let over = self.average - max_pkts;
        if over < 0.0 {
            max_probability * (self.average - min_pkts) / (max_pkts - min_pkts)
        } else if gentle && over < max_pkts {
            max_probability + (1.0 - max_probability) * over / max_pkts
        } else {
            1.0
        }
    }

    /// Whether this packet is dropped or marked: p_a = p_b / (1 - count p_b) spaces the drops evenly (FJ93 §VII).
    ///
    /// Deviation: after a drop, FJ93's figure 2 counts the packet itself; only without that are the gaps uniform up to
    /// 1 / p_b, as §VII derives.
    fn drops_or_marks(&mut self) -> bool {
        if self.average < self.config.min_pkts {
            self.admitted = 0;
            return false;
        }
        let p_b = self.base_probability();
        let divisor = 1.0 - f64::from(self.admitted) * p_b;
        // `unit` returns numbers in (0, 1]: a probability of 0 never applies, 1 always does.
        let drop_or_mark = divisor <= 0.0 || self.rng.unit() <= p_b / divisor;
        self.admitted = if drop_or_mark { 0 } else { self.admitted + 1 };
        drop_or_mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hindflight_kernels::{Purpose, StreamKey};

    fn red(config: &RedConfig) -> Red {
        let key = StreamKey {
            seed: 5,
            owner: 0,
            direction: 0,
            purpose: Purpose::Queue,
        };
        Red::new(config, StreamRng::new(key))
    }

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-12, "{got}, not {expected}");
    }

    #[test]
    fn the_average_moves_by_the_weight_and_decays_by_idle_packets() {
        let mut red = red(&RedConfig {
            weight: 0.25,
            ..RedConfig::default()
        });
        red.update_average(8, None, 100.0);
        close(red.average, 2.0);
        red.update_average(4, None, 100.0);
        close(red.average, 2.5);
        // 200 ns idle at 100 ns per packet: two samples of an empty queue, 2.5 x 0.75^2.
        red.update_average(0, Some(200), 100.0);
        close(red.average, 1.40625);
        // No idle time, no decay: a packet that finds the link free at that instant is no sample.
        red.update_average(0, Some(0), 100.0);
        close(red.average, 1.40625);
    }

    #[test]
    fn a_link_whose_transmission_is_suspended_is_not_idle() {
        let average = |now, busy_until| {
            let mut red = red(&RedConfig {
                weight: 0.25,
                mean_packet_bytes: 100,
                ..RedConfig::default()
            });
            red.average = 2.5;
            let arrival = Arrival {
                now,
                busy_until,
                ip_bytes: 1500,
                ect: false,
            };
            assert_eq!(
                red.judge(&Backlog::default(), &arrival, 1.0),
                Verdict::Admit
            );
            red.average
        };
        close(average(100, 5000), 2.5);
        close(average(5000, 5000), 2.5);
        close(average(5200, 5000), 1.40625);
    }

    #[test]
    fn the_probability_is_a_ramp_then_the_gentle_ramp_then_one() {
        let mut red = red(&RedConfig::default());
        for (average, gentle, steep) in [
            (5.0, 0.0, 0.0),
            (10.0, 0.05, 0.05),
            (14.0, 0.09, 0.09),
            (15.0, 0.1, 1.0),
            (22.5, 0.55, 1.0),
            (30.0, 1.0, 1.0),
            (99.0, 1.0, 1.0),
        ] {
            red.average = average;
            red.config.gentle = true;
            close(red.base_probability(), gentle);
            red.config.gentle = false;
            close(red.base_probability(), steep);
        }
    }

    #[test]
    fn drops_are_spaced_evenly() {
        // With p_b = 0.05, gaps are uniform on 1..=20 (FJ93 §VII): mean 10.5, never above 1 / p_b.
        let mut red = red(&RedConfig::default());
        red.average = 10.0;
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _ in 0..20_000 {
            gap += 1;
            if red.drops_or_marks() {
                gaps.push(gap);
                gap = 0;
            }
        }
        let later = &gaps[1..];
        let mean = f64::from(later.iter().sum::<i32>()) / later.len() as f64;
        assert!((mean - 10.5).abs() < 0.5, "{mean}");
        assert_eq!(later.iter().max(), Some(&20));
        assert_eq!(later.iter().min(), Some(&1));
    }

    #[test]
    fn only_ecn_capable_packets_are_marked_and_only_below_the_upper_threshold() {
        let busy = |waiting: u32| {
            let mut backlog = Backlog::default();
            for number in 0..=waiting {
                backlog.join(1500, u64::from(number) + 1);
            }
            backlog
        };
        let arrival = |ect| Arrival {
            now: 0,
            busy_until: 1,
            ip_bytes: 1500,
            ect,
        };
        let certain = RedConfig {
            weight: 1.0,
            max_probability: 1.0,
            limit_pkts: 40,
            ..RedConfig::default()
        };
        let dropped = Verdict::Refuse(DropCause::Aqm);
        let judge = |waiting, ect, ecn| {
            let mut red = red(&RedConfig {
                ecn,
                ..certain.clone()
            });
            red.average = f64::from(waiting);
            red.admitted = 1_000_000;
            red.judge(&busy(waiting), &arrival(ect), 1.0)
        };
        assert_eq!(judge(4, true, true), Verdict::Admit);
        assert_eq!(judge(14, true, true), Verdict::Mark);
        assert_eq!(judge(14, false, true), dropped);
        assert_eq!(judge(14, true, false), dropped);
        assert_eq!(judge(15, true, true), dropped);
        assert_eq!(judge(40, true, true), Verdict::Refuse(DropCause::Queue));
    }
}

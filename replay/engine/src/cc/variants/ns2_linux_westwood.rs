//! Westwood+'s decrease as the module of Linux 2.6.22 has it that ns-2's TCP/Linux runs: whole octets per millisecond,
//! and, since the end of recovery is never signalled, ssthresh of half the window; the estimate is cwnd during loss
//! recovery.
//!
//! Does not depend on recovery. Read `westwood` first.

use crate::cc::decrease::WindowDecrease;
use crate::cc::increase::Increase;
use crate::cc::{AckEvidence, MIN_SSTHRESH, SignalEvidence, Window};
use crate::sim::time::MILLISECOND;

/// A sample takes more than this [ms].
const MIN_INTERVAL: u64 = 50;
/// The filter weighs the old value by seven eighths.
const WEIGHT: u64 = 8;

/// State of the module; times in ms, rates in octets per ms.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ns2LinuxWestwood {
    smss_bytes: u64,
    since: Option<u64>,
    bytes: u64,
    rtt: Option<u64>,
    min_rtt: Option<u64>,
    first_stage: u64,
    rate: u64,
}

/// Both stages round down.
fn weigh(old: u64, new: u64) -> u64 {
    ((WEIGHT - 1) * old + new) / WEIGHT
}

impl Ns2LinuxWestwood {
    /// The module with segments of this size.
    pub fn new(smss_bytes: u32) -> Self {
        Self {
            smss_bytes: u64::from(smss_bytes),
            ..Self::default()
        }
    }

    fn filter(&mut self, sample: u64) {
        if self.first_stage == 0 && self.rate == 0 {
            (self.first_stage, self.rate) = (sample, sample);
        } else {
            self.first_stage = weigh(self.first_stage, sample);
            self.rate = weigh(self.rate, self.first_stage);
        }
    }
}

impl WindowDecrease for Ns2LinuxWestwood {
    const OBSERVES: bool = true;

    /// The round-trip time is the smoothed one; the first ACK begins the first sample and does not count.
    fn observe(&mut self, ack: &AckEvidence, _window: &Window) {
        let now = ack.now / MILLISECOND;
        if ack.acked_bytes > 0 {
            self.rtt = ack.srtt.map(|srtt| srtt / MILLISECOND);
        }
        if let Some(rtt) = self.rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        let Some(since) = self.since else {
            self.since = Some(now);
            return;
        };
        let elapsed = now - since;
        if self.rtt.is_some_and(|rtt| elapsed > rtt.max(MIN_INTERVAL)) {
            self.filter(self.bytes / elapsed);
            (self.bytes, self.since) = (0, Some(now));
        }
        self.bytes += u64::from(ack.delivered) * self.smss_bytes;
    }

    fn on_congestion(&mut self, window: &Window, _: &mut Increase, _: &SignalEvidence) -> Window {
        Window::at(libm::floor(window.cwnd / 2.0))
    }

    fn recovery_cwnd(&self, _after: &Window, _: &Increase) -> f64 {
        let estimate = self.rate * self.min_rtt.unwrap_or(0) / self.smss_bytes;
        (estimate as f64).max(MIN_SSTHRESH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Signal;
    use crate::cc::variants::ns2_linux_reno::Ns2LinuxReno;

    fn ack(now_ms: u64, delivered: u32) -> AckEvidence {
        AckEvidence {
            now: now_ms * MILLISECOND,
            delivered,
            acked_bytes: 1,
            srtt: Some(100 * MILLISECOND),
            ..AckEvidence::default()
        }
    }

    #[test]
    fn the_estimate_by_hand() {
        let mut westwood = Ns2LinuxWestwood::new(1000);
        let window = Window::at(60.0);
        for (now_ms, delivered) in [(0, 9), (50, 10), (100, 10), (125, 10)] {
            westwood.observe(&ack(now_ms, delivered), &window);
        }
        // 20 segments in 125 ms.
        assert_eq!((westwood.first_stage, westwood.rate), (160, 160));
        westwood.observe(&ack(250, 10), &window);
        // 10 in 125 ms: (7 * 160 + 80) / 8, then (7 * 160 + 150) / 8, rounded down.
        assert_eq!((westwood.first_stage, westwood.rate), (150, 158));
        let mut increase = Increase::from(Ns2LinuxReno::new(1000));
        let signal = SignalEvidence {
            now: 0,
            flight: 30.0,
            lost_total: 1,
            signal: Signal::Loss,
        };
        let after = westwood.on_congestion(&Window::at(61.0), &mut increase, &signal);
        assert_eq!(after, Window::at(30.0));
        // 158 * 100 / 1000.
        let cwnd = westwood.recovery_cwnd(&after, &increase);
        assert_eq!(cwnd as u32, 15);
    }
}

//! CUBIC as the module of Linux 2.6.22 (version 2.1) has it that ns-2's TCP/Linux runs: a price in whole ACKs, worked out
//! every 32 ms, for segments that are counted as more than an ACK's own.
//!
//! Does not depend on recovery. Read `cubic` first; what differs is named here.

use super::cubic::CubicParams;
use super::ns2_linux_reno::in_slow_start;
use crate::cc::{AckEvidence, RecoveryPhase, Window, WindowIncrease};
use crate::sim::time::{MILLISECOND, Nanos, SECOND, seconds};

/// The price holds so long while the window stands.
const PRICE_HOLDS: Nanos = 31 * MILLISECOND;
/// ACKs per segment before the first loss.
const FIRST_PRICE: u64 = 50;
/// ACKs per segment of the window where the curve is at or below it.
const PLATEAU: u64 = 100;
/// Segments per 0.1 s beyond the plateau, at most.
const MAX_INCREMENT: f64 = 16.0;
/// Segments per ACK in sixteenths, at first.
const FIRST_RATIO: u64 = 32;

/// State of the module.
#[derive(Clone, Copy, Debug)]
pub struct Ns2LinuxCubic {
    params: CubicParams,
    /// ACKs that have not opened the window.
    counted: u64,
    /// ACKs that open the window by a segment, less one.
    price: u64,
    /// The window for which the price was worked out last, and when.
    priced: (f64, Nanos),
    last_max: f64,
    had_loss: bool,
    epoch: Option<Epoch>,
    min_delay: Option<Nanos>,
    /// Segments per ACK, in sixteenths.
    ratio: u64,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Nanos,
    k_s: f64,
    origin: f64,
    /// ACKs since Reno's window was raised.
    acks: u64,
    reno_cwnd: f64,
}

impl Ns2LinuxCubic {
    /// The module with these parameters.
    pub fn new(params: CubicParams) -> Self {
        Self {
            params,
            counted: 0,
            price: 0,
            priced: (0.0, 0),
            last_max: 0.0,
            had_loss: false,
            epoch: None,
            min_delay: None,
            ratio: FIRST_RATIO,
        }
    }

    /// Takes an ACK. The one after those of the price opens the window: the module compares before it counts.
    fn count(&mut self, cwnd: &mut f64) {
        if self.counted >= self.price {
            *cwnd += 1.0;
            self.counted = 0;
        } else {
            self.counted += 1;
        }
    }

    fn begin_epoch(&self, cwnd: f64, now: Nanos) -> Epoch {
        let below = (self.last_max - cwnd).max(0.0);
        Epoch {
            start: now,
            k_s: libm::cbrt(below / self.params.c),
            origin: self.last_max.max(cwnd),
            acks: 1,
            reno_cwnd: cwnd,
        }
    }

    /// Works out the price, unless it still holds.
    fn update_price(&mut self, cwnd: f64, now: Nanos) {
        if let Some(epoch) = &mut self.epoch {
            epoch.acks += 1;
        }
        let (of_cwnd, at) = self.priced;
        if of_cwnd.to_bits() == cwnd.to_bits() && now - at <= PRICE_HOLDS {
            return;
        }
        self.priced = (cwnd, now);
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(cwnd, now));
        let mut price = self.price_of_curve(&epoch, cwnd, now);
        if !self.had_loss {
            price = FIRST_PRICE;
        }
        if self.params.reno_friendly {
            price = price.min(self.price_of_reno(&mut epoch, cwnd));
        }
        self.epoch = Some(epoch);
        self.price = (price * 16 / self.ratio).max(1);
    }

    fn price_of_curve(&self, epoch: &Epoch, cwnd: f64, now: Nanos) -> u64 {
        let delay = self.min_delay.unwrap_or(0);
        let offset = seconds(now - epoch.start + delay) - epoch.k_s;
        let grown = libm::floor(self.params.c * (offset * offset * offset).abs());
        let target = epoch.origin + grown.copysign(offset);
        let price = if target > cwnd {
            (cwnd / (target - cwnd)) as u64
        } else {
            PLATEAU * cwnd as u64
        };
        if delay == 0 || offset < 0.0 {
            return price;
        }
        price.max((cwnd * 0.1 * SECOND as f64 / (MAX_INCREMENT * delay as f64)) as u64)
    }

    /// What raises the window to that of a Reno that falls as little.
    fn price_of_reno(&self, epoch: &mut Epoch, cwnd: f64) -> u64 {
        let beta = self.params.beta;
        // In eighths, as the module has it.
        let eighths = libm::floor(8.0 * (1.0 + beta) / (3.0 * (1.0 - beta)));
        let per_segment = ((cwnd * eighths / 8.0) as u64).max(1);
        // As many segments as leave between one ACK and `per_segment`.
        let raised = (epoch.acks.max(1) - 1) / per_segment;
        epoch.acks -= raised * per_segment;
        epoch.reno_cwnd += raised as f64;
        if epoch.reno_cwnd > cwnd {
            (cwnd / (epoch.reno_cwnd - cwnd)) as u64
        } else {
            u64::MAX / 16
        }
    }
}

impl WindowIncrease for Ns2LinuxCubic {
    const OBSERVES: bool = true;
    const OWNS_SLOW_START: bool = true;

    /// Segments per ACK, and the minimum delay, not within a second of the start of an epoch.
    fn observe(&mut self, ack: &AckEvidence) {
        if ack.recovery_phase != RecoveryPhase::None || ack.acked_bytes == 0 {
            return;
        }
        self.ratio = (self.ratio + u64::from(ack.delivered)).saturating_sub(self.ratio / 16);
        let since = self.epoch.map_or(0, |epoch| epoch.start);
        if let Some(rtt) = ack.rtt.filter(|_| ack.now - since >= SECOND) {
            self.min_delay = Some(self.min_delay.map_or(rtt, |min| min.min(rtt)));
        }
    }

    fn on_ack(&mut self, window: &mut Window, _acked: f64, ack: &AckEvidence) {
        if !ack.cwnd_limited {
            return;
        }
        if in_slow_start(window) {
            window.cwnd += 1.0;
        } else {
            self.update_price(window.cwnd, ack.now);
            self.count(&mut window.cwnd);
        }
    }

    fn recovery_cwnd(&self, after: &Window) -> f64 {
        after.ssthresh
    }

    fn on_decrease(&mut self, before: &Window) {
        let falls_short = before.cwnd < self.last_max && self.params.fast_convergence;
        self.last_max = if falls_short {
            libm::floor(before.cwnd * (1.0 + self.params.beta) / 2.0)
        } else {
            before.cwnd
        };
        (self.epoch, self.had_loss) = (None, true);
        self.counted = 0;
    }

    /// Everything is forgotten.
    fn on_timeout(&mut self) {
        *self = Self::new(self.params);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(now_ms: u64) -> AckEvidence {
        AckEvidence {
            now: now_ms * MILLISECOND,
            delivered: 1,
            acked_bytes: 1000,
            cwnd_limited: true,
            ..AckEvidence::default()
        }
    }

    #[test]
    fn sixteenths_of_a_segment_per_ack_stand_at_31_where_every_segment_is_acknowledged() {
        let mut cubic = Ns2LinuxCubic::new(CubicParams::default());
        for _ in 0..100 {
            cubic.observe(&ack(0));
        }
        assert_eq!(cubic.ratio, 31);
        let double = AckEvidence {
            delivered: 2,
            ..ack(0)
        };
        for _ in 0..100 {
            cubic.observe(&double);
        }
        assert_eq!(cubic.ratio, 32);
    }

    #[test]
    fn the_price_by_hand() {
        let params = CubicParams {
            reno_friendly: false,
            ..CubicParams::default()
        };
        let mut cubic = Ns2LinuxCubic::new(params);
        cubic.update_price(70.0, 5 * SECOND);
        assert_eq!(cubic.price, 25, "50 * 16 / 32 before the first loss");
        cubic.on_decrease(&Window::at(100.0));
        cubic.update_price(70.0, 6 * SECOND);
        // K = cbrt(30 / 0.4) = 4.217 s: at its start the curve is at 100 - floor(30.0) or a segment above the window.
        let at_start = cubic.price;
        assert!(at_start == 35 || at_start == 3500, "{at_start}");
        cubic.update_price(70.0, 8 * SECOND);
        // 0.4 * 2.217^3 = 4.4: at 96, so that 70 / 26 = 2 ACKs, of two segments each, open the window.
        assert_eq!(cubic.price, 1);
        cubic.update_price(95.0, 8 * SECOND);
        // 95 / 1 = 95 ACKs, halved.
        assert_eq!(cubic.price, 47);
    }

    #[test]
    fn the_price_holds_for_31_ms_while_the_window_stands() {
        let mut cubic = Ns2LinuxCubic::new(CubicParams::default());
        cubic.on_decrease(&Window::at(100.0));
        cubic.update_price(70.0, SECOND);
        let first = cubic.price;
        cubic.update_price(70.0, SECOND + 31 * MILLISECOND);
        assert_eq!((cubic.price, cubic.priced.1), (first, SECOND));
        cubic.update_price(70.0, SECOND + 32 * MILLISECOND);
        assert_eq!(cubic.priced.1, SECOND + 32 * MILLISECOND);
    }

    #[test]
    fn a_timeout_forgets_everything_and_fast_convergence_aims_lower() {
        let mut cubic = Ns2LinuxCubic::new(CubicParams::default());
        cubic.on_decrease(&Window::at(100.0));
        cubic.on_decrease(&Window::at(80.0));
        // 80 * 1.7 / 2.
        assert_eq!(cubic.last_max as u32, 68);
        cubic.on_timeout();
        assert!(cubic.last_max.abs() < 1e-9 && !cubic.had_loss);
    }
}

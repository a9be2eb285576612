//! HighSpeed TCP: the larger the window, the faster it grows and the less a loss costs, so that the response function
//! becomes 0.12 / p^0.835.
//!
//! Must not know slow start or recovery. RFC 3649 throughout.

use super::params::parameters;
use super::reno::Credit;
use super::{AckEvidence, SignalEvidence, Window, WindowGrowth};

parameters! {
    /// Parameters of HighSpeed TCP.
    pub struct HighspeedParams {
        /// Window up to which it is Reno.
        low_window: number(38.0, "segments", 2.0, 1e6, "RFC 3649 §5"),
        /// Window at which the loss rate shall be high_loss.
        high_window: number(83_000.0, "segments", 100.0, 1e8, "RFC 3649 §5"),
        /// Loss rate at high_window.
        high_loss: number(1e-7, "", 1e-12, 1e-3, "RFC 3649 §5"),
        /// Share of the window that a loss costs at high_window.
        high_decrease: number(0.1, "", 0.01, 0.5, "RFC 3649 §5"),
        /// Growth in whole segments, rounded up, with the cost of a loss where the growth reaches them.
        table: flag(false, "RFC 3649 appendix B; Linux"),
    }
}

/// RFC 5681's share, which holds up to the low window.
const LOW_DECREASE: f64 = 0.5;
/// RFC 3649 §5: Reno's response function, w = sqrt(1.5 / p).
const RENO_RESPONSE: f64 = 1.5;

/// State of HighSpeed TCP.
#[derive(Clone, Debug, Default)]
pub struct Highspeed {
    params: HighspeedParams,
    credit: Credit,
    row: Row,
}

/// A row of the table: what holds for windows above one and up to the other.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    above: f64,
    up_to: f64,
    increase: f64,
    decrease: f64,
}

impl HighspeedParams {
    /// How far `w` lies between the low and the high window, on a logarithmic scale.
    fn position(&self, w: f64) -> f64 {
        (libm::log(w) - libm::log(self.low_window))
            / (libm::log(self.high_window) - libm::log(self.low_window))
    }

    /// RFC 3649 §5: b(w).
    fn decrease(&self, w: f64) -> f64 {
        if w <= self.low_window {
            return LOW_DECREASE;
        }
        let decrease = LOW_DECREASE + (self.high_decrease - LOW_DECREASE) * self.position(w);
        decrease.max(self.high_decrease)
    }

    /// RFC 3649 §5: p(w), a straight line on logarithmic scales through Reno's point at the low window.
    fn loss(&self, w: f64) -> f64 {
        let low_loss = RENO_RESPONSE / (self.low_window * self.low_window);
        let ln = libm::log(low_loss)
            + (libm::log(self.high_loss) - libm::log(low_loss)) * self.position(w);
        libm::exp(ln)
    }

    /// RFC 3649 §5: a(w) = w² p(w) 2 b(w) / (2 - b(w)), in segments per round trip. Above the high window, of which the
    /// RFC says nothing, it stays, as Linux's table ends there: with other parameters w² p(w) would run away.
    fn increase(&self, w: f64) -> f64 {
        if w <= self.low_window {
            return 1.0;
        }
        let w = w.min(self.high_window);
        let b = self.decrease(w);
        (w * w * self.loss(w) * 2.0 * b / (2.0 - b)).max(1.0)
    }

    /// RFC 3649 appendix B: the row that holds at `w`, which is that of the next whole number of segments. Linux reads
    /// the table so.
    fn row(&self, w: f64) -> Row {
        let increase = libm::ceil(self.increase(w));
        let (mut below, mut above) = (self.low_window.min(w), self.high_window.max(w));
        // a(w) rises all the way: where it reaches the whole number, to a segment.
        while above - below > 1.0 {
            let middle = f64::midpoint(below, above);
            if self.increase(middle) < increase {
                below = middle;
            } else {
                above = middle;
            }
        }
        Row {
            above: below.min(w),
            up_to: above,
            increase,
            decrease: self.decrease(above),
        }
    }
}

impl Highspeed {
    /// HighSpeed TCP with these parameters.
    pub fn new(params: HighspeedParams) -> Self {
        Self {
            params,
            ..Self::default()
        }
    }

    /// a(w) and b(w).
    fn response(&mut self, w: f64) -> (f64, f64) {
        if !self.params.table {
            return (self.params.increase(w), self.params.decrease(w));
        }
        if w <= self.row.above || w > self.row.up_to {
            self.row = self.params.row(w);
        }
        (self.row.increase, self.row.decrease)
    }
}

impl WindowGrowth for Highspeed {
    /// RFC 3649 §5: w gains a(w)/w per segment acknowledged.
    fn on_ack(&mut self, window: &mut Window, acked: f64, _ack: &AckEvidence) {
        let price = window.cwnd / self.response(window.cwnd).0;
        self.credit.spend(&mut window.cwnd, price, acked);
    }

    /// RFC 3649 §5: w falls to (1 - b(w)) w.
    fn reduced_window(&mut self, window: &Window, _signal: &SignalEvidence) -> f64 {
        libm::floor((1.0 - self.response(window.cwnd).1) * window.cwnd)
    }

    fn on_reduction(&mut self, _before: &Window) {
        self.credit = Credit::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of RFC 3649 appendix B: w, a(w), b(w).
    const APPENDIX_B: [(f64, f64, f64); 6] = [
        (38.0, 1.0, 0.50),
        (118.0, 2.0, 0.44),
        (1058.0, 8.0, 0.33),
        (5030.0, 21.0, 0.25),
        (21_013.0, 43.0, 0.17),
        (83_981.0, 71.0, 0.10),
    ];

    #[test]
    fn increase_and_decrease_are_those_of_the_rfc() {
        let params = HighspeedParams::default();
        for (w, a, b) in APPENDIX_B {
            // The appendix tells where a(w) reaches the next whole number.
            let (increase, decrease) = (params.increase(w), params.decrease(w));
            assert!((increase - a).abs() < 0.05 * a, "a({w}) = {increase}");
            assert!((decrease - b).abs() < 0.006, "b({w}) = {decrease}");
        }
    }

    #[test]
    fn above_the_high_window_the_increase_stays() {
        let params = HighspeedParams::default();
        let (high, above) = (params.increase(83_000.0), params.increase(1e6));
        assert_eq!(high.to_bits(), above.to_bits());
        assert!(params.increase(80_000.0) < high, "below it rises");
    }

    #[test]
    fn the_table_has_the_next_whole_increase_and_its_decrease() {
        let mut highspeed = Highspeed::new(HighspeedParams {
            table: true,
            ..HighspeedParams::default()
        });
        // Linux's rows: up to 38 one segment and 0.50, up to 118 two and 0.44, up to 221 three and 0.41, then four.
        for (w, a, b) in [
            (30.0, 1.0, 0.50),
            (100.0, 2.0, 0.44),
            (130.0, 3.0, 0.41),
            (180.0, 3.0, 0.41),
            (230.0, 4.0, 0.38),
            (60.0, 2.0, 0.44),
        ] {
            let (increase, decrease) = highspeed.response(w);
            assert_eq!(increase.to_bits(), f64::to_bits(a), "a({w})");
            assert!((decrease - b).abs() < 0.01, "b({w}) = {decrease}");
        }
    }

    #[test]
    fn a_window_of_acks_buys_the_increase_and_a_loss_costs_the_decrease() {
        let (mut highspeed, mut window) = (Highspeed::default(), Window::at(1058.0));
        for _ in 0..1058 {
            highspeed.on_ack(&mut window, 1.0, &AckEvidence::default());
        }
        let grown = window.cwnd - 1058.0;
        assert!((7.0..=9.0).contains(&grown), "{grown}");
        let loss = SignalEvidence {
            now: 0,
            lost_total: 0,
            flight: 0.0,
            signal: super::super::Signal::Loss,
        };
        let after = highspeed.reduced_window(&Window::at(1058.0), &loss);
        assert!((0.66..0.68).contains(&(after / 1058.0)), "{after}");
        assert_eq!(highspeed.reduced_window(&Window::at(30.0), &loss), 15.0);
    }
}

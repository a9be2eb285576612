//! HighSpeed TCP: the larger the window, the larger the increase and the smaller the decrease, so that the response function
//! becomes 0.12 / p^0.835.
//!
//! Does not depend on slow start or recovery. RFC 3649 throughout.

use super::reno::AckCounter;
use crate::cc::definition::{ControllerParts, Definition};
use crate::cc::params::{parameters, starts_with};
use crate::cc::{AckEvidence, SignalEvidence, Window, WindowIncrease};

parameters! {
    /// Parameters of HighSpeed TCP.
    pub struct HighspeedParams {
        /// Window up to which it is Reno.
        low_window: number(38.0, "segments", 2.0, 1e6, "RFC 3649 §5"),
        /// Window at which the loss rate shall be high_loss.
        high_window: number(83_000.0, "segments", 100.0, 1e8, "RFC 3649 §5"),
        /// Loss rate at low_window.
        low_loss: number(1e-3, "", 1e-9, 1.0, "RFC 3649 §5"),
        /// Loss rate at high_window.
        high_loss: number(1e-7, "", 1e-12, 1e-3, "RFC 3649 §5"),
        /// Decrease on a loss at high_window, as a share of the window.
        high_decrease: number(0.1, "", 0.01, 0.5, "RFC 3649 §5"),
        /// The table of whole segments in place of the equations, whatever the other parameters are.
        table: flag(false, "RFC 3649 appendix B; Linux"),
    }
}

/// What the catalogue knows of it.
pub const DEFINITION: Definition = Definition {
    name: "highspeed",
    other_names: &["hstcp", "hs-tcp"],
    family: "loss",
    summary: "increases faster and decreases less at large windows (RFC 3649)",
    source: "RFC 3649",
    year: 2003,
    params: HighspeedParams::SPECS,
    ordered: |values| {
        let p = HighspeedParams::of(values);
        vec![[("low_window", p.low_window), ("high_window", p.high_window)]]
    },
    parts: |_, values, _| ControllerParts::own(Highspeed::new(HighspeedParams::of(values))),
    ns2_module: true,
    ..Definition::BASE
};

/// RFC 5681's share, which holds up to the low window.
const LOW_DECREASE: f64 = 0.5;
/// RFC 3649 appendix B: 1 / (p(w) w^1.2), as its program rounds the response function.
const TABLE_RESPONSE: f64 = 12.8;
/// RFC 3649 appendix B: where its table ends.
const TABLE_END: f64 = 100_000.0;
/// Linux: the table's b(w) comes in 256ths, the rest cut off.
const TABLE_GRAIN: f64 = 256.0;

/// State of HighSpeed TCP.
#[derive(Clone, Debug, Default)]
pub struct Highspeed {
    params: HighspeedParams,
    counter: AckCounter,
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

    /// RFC 3649 §5: p(w), a straight line on logarithmic scales.
    fn loss(&self, w: f64) -> f64 {
        let low = libm::log(self.low_loss);
        let ln = low + (libm::log(self.high_loss) - low) * self.position(w);
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
}

impl Row {
    /// RFC 3649 appendix B's a(w) and b(w).
    fn response(params: &HighspeedParams, w: f64) -> (f64, f64) {
        let b = LOW_DECREASE + (params.high_decrease - LOW_DECREASE) * params.position(w);
        let a = w * w * 2.0 * b / ((2.0 - b) * libm::pow(w, 1.2) * TABLE_RESPONSE);
        (a, b)
    }

    /// RFC 3649 appendix B: the row that holds at `w`. A row ends at the smallest whole window whose a(w) is more than
    /// one above that of the row before; Linux takes the table so.
    fn at(w: f64) -> Self {
        let params = HighspeedParams::default();
        let mut row = Self {
            above: 0.0,
            up_to: params.low_window,
            increase: 1.0,
            decrease: LOW_DECREASE,
        };
        let mut reached = row.increase;
        while w > row.up_to {
            let (mut below, mut end) = (row.up_to, TABLE_END);
            if Self::response(&params, end).0 <= reached + 1.0 {
                row.up_to = f64::INFINITY;
                break;
            }
            while end - below > 1.0 {
                let middle = libm::floor(f64::midpoint(below, end));
                if Self::response(&params, middle).0 > reached + 1.0 {
                    end = middle;
                } else {
                    below = middle;
                }
            }
            let (a, b) = Self::response(&params, end);
            reached = a;
            row = Self {
                above: row.up_to,
                up_to: end,
                increase: row.increase + 1.0,
                decrease: libm::floor(TABLE_GRAIN * b) / TABLE_GRAIN,
            };
        }
        row
    }
}

starts_with!(Highspeed, HighspeedParams);

impl Highspeed {
    /// a(w) and b(w).
    fn response(&mut self, w: f64) -> (f64, f64) {
        if !self.params.table {
            return (self.params.increase(w), self.params.decrease(w));
        }
        if w <= self.row.above || w > self.row.up_to {
            self.row = Row::at(w);
        }
        (self.row.increase, self.row.decrease)
    }
}

impl WindowIncrease for Highspeed {
    /// RFC 3649 §5: w gains a(w)/w per segment acknowledged.
    fn on_ack(&mut self, window: &mut Window, acked: f64, _ack: &AckEvidence) {
        let per_increment = window.cwnd / self.response(window.cwnd).0;
        self.counter.count(&mut window.cwnd, per_increment, acked);
    }

    /// RFC 3649 §5: w falls to (1 - b(w)) w; as Linux, by whole segments.
    fn ssthresh_after(&mut self, window: &Window, _signal: &SignalEvidence) -> f64 {
        window.cwnd - libm::floor(self.response(window.cwnd).1 * window.cwnd)
    }

    fn on_decrease(&mut self, _before: &Window) {
        self.counter = AckCounter::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of RFC 3649 appendix B: w, a(w), and b(w) in Linux's 256ths.
    const APPENDIX_B: [(f64, f64, f64); 15] = [
        (38.0, 1.0, 128.0),
        (118.0, 2.0, 112.0),
        (221.0, 3.0, 104.0),
        (347.0, 4.0, 98.0),
        (495.0, 5.0, 93.0),
        (663.0, 6.0, 89.0),
        (851.0, 7.0, 86.0),
        (1058.0, 8.0, 83.0),
        (2699.0, 14.0, 71.0),
        (5036.0, 20.0, 62.0),
        (11_358.0, 31.0, 52.0),
        (30_975.0, 50.0, 38.0),
        (58_932.0, 64.0, 30.0),
        (84_035.0, 71.0, 25.0),
        (89_053.0, 72.0, 24.0),
    ];

    #[test]
    fn the_response_goes_through_the_rfcs_two_points() {
        // RFC 3649 §5: a loss in a thousand segments at 38, in ten million at 83 000, of which it gives a and b.
        let params = HighspeedParams::default();
        assert!((params.loss(38.0) / 1e-3 - 1.0).abs() < 1e-9);
        assert!((params.loss(83_000.0) / 1e-7 - 1.0).abs() < 1e-9);
        // 83 000² 1e-7 2 0.1 / 1.9.
        assert!((params.increase(83_000.0) - 72.515_789).abs() < 1e-5);
        assert!((params.decrease(83_000.0) - 0.1).abs() < 1e-12);
        // Between them, on logarithmic scales: sqrt(38 83 000) has sqrt(1e-10), and b half-way.
        let middle = libm::sqrt(38.0 * 83_000.0);
        assert!((params.loss(middle) / 1e-5 - 1.0).abs() < 1e-9);
        assert!((params.decrease(middle) - 0.3).abs() < 1e-12);
    }

    #[test]
    fn the_equations_stay_within_a_twentieth_of_the_table() {
        let params = HighspeedParams::default();
        // Up to the high window.
        for &(w, a, b) in &APPENDIX_B[..14] {
            let (increase, decrease) = (params.increase(w), params.decrease(w));
            assert!((increase - a).abs() < 0.05 * a, "a({w}) = {increase}");
            assert!((decrease - b / 256.0).abs() < 0.007, "b({w}) = {decrease}");
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
    fn the_table_is_the_rfcs_to_the_segment() {
        let mut highspeed = Highspeed::new(HighspeedParams {
            table: true,
            ..HighspeedParams::default()
        });
        for (w, a, b) in APPENDIX_B {
            assert_eq!(highspeed.response(w), (a, b / 256.0), "{w}");
            // A segment more is in the next row.
            assert_eq!(
                highspeed.response(w + 1.0).0.to_bits(),
                (a + 1.0).to_bits(),
                "{w}"
            );
        }
        // Back down, and beyond the last row.
        assert_eq!(highspeed.response(30.0), (1.0, 0.5));
        assert_eq!(highspeed.response(1e6).0.to_bits(), 73.0_f64.to_bits());
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
            signal: crate::cc::Signal::Loss,
        };
        let after = highspeed.ssthresh_after(&Window::at(1058.0), &loss);
        assert!((0.66..0.68).contains(&(after / 1058.0)), "{after}");
        assert_eq!(highspeed.ssthresh_after(&Window::at(30.0), &loss), 15.0);
    }
}

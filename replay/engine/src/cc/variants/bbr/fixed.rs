//! BBR's numbers as Linux keeps them: gains in 256ths, bandwidth in segments per microsecond times 2²⁴, whole
//! segments. The rounding is part of what is rebuilt, so it stands here and nowhere else.
//!
//! Does not depend on the state machine.

use crate::sim::time::{Nanos, SECOND};

/// A gain of one, in its 256ths.
pub const UNIT: u64 = 256;
/// One segment per microsecond.
pub const BW_UNIT: u64 = 1 << 24;

const MICROSECOND: Nanos = 1000;

/// Segments delivered over an interval, as bandwidth.
pub fn bandwidth(segments: u64, interval: Nanos) -> u64 {
    let micros = interval / MICROSECOND;
    (segments * BW_UNIT).checked_div(micros).unwrap_or(0)
}

/// Whether the bandwidth of segments delivered over an interval is below `bw`. Without a division; an interval of zero is not.
#[inline]
pub fn is_below(segments: u64, interval: Nanos, bw: u64) -> bool {
    segments * BW_UNIT < bw.saturating_mul(interval / MICROSECOND)
}

/// The same, rounded up (version 3), so that it can grow where it is small.
pub fn bandwidth_rounded_up(segments: u64, interval: Nanos) -> u64 {
    let micros = interval / MICROSECOND;
    if micros == 0 {
        return 0;
    }
    (segments * BW_UNIT).div_ceil(micros)
}

/// Segments that `bw` delivers in `interval`, rounded down.
pub fn delivered_in(bw: u64, interval: Nanos) -> u64 {
    let micros = interval / MICROSECOND;
    if let Some(product) = bw.checked_mul(micros) {
        return product / BW_UNIT;
    }
    (u128::from(bw) * u128::from(micros) / u128::from(BW_UNIT)) as u64
}

/// Segments of `flight` that are still in it after `wait` at `bw`. Apart, so that its division is done only where it is asked.
#[inline(never)]
pub fn left_after(flight: u64, bw: u64, wait: Nanos) -> u64 {
    flight.saturating_sub(delivered_in(bw, wait))
}

/// The bandwidth-delay product times a gain, in segments, rounded up.
pub fn bdp(bw: u64, min_rtt: Nanos, gain: u64) -> u64 {
    let micros = min_rtt / MICROSECOND;
    let product = bw.checked_mul(micros);
    if let Some(gained) = product.and_then(|product| product.checked_mul(gain)) {
        // Without its last eight bits there is room to round up.
        return ((gained >> UNIT.trailing_zeros()) + (BW_UNIT - 1)) >> BW_UNIT.trailing_zeros();
    }
    bdp_of_many(bw, micros, gain)
}

/// The same beyond 64 bits.
#[cold]
fn bdp_of_many(bw: u64, micros: u64, gain: u64) -> u64 {
    let product = u128::from(bw) * u128::from(micros);
    let gained = (product * u128::from(gain)) >> UNIT.trailing_zeros();
    gained.div_ceil(u128::from(BW_UNIT)) as u64
}

/// Segments per second that `bw` times a gain means, less `margin_percent`.
pub fn rate_pkts_per_s(bw: u64, gain: u64, margin_percent: f64) -> f64 {
    let gained = (bw as f64 * gain as f64) / (UNIT * BW_UNIT) as f64;
    gained * (SECOND / MICROSECOND) as f64 * (1.0 - margin_percent / 100.0)
}

/// A share in 256ths, rounded down as an integer constant of C is.
pub fn gain(share: f64) -> u64 {
    // No gain leaves 32 bits, and the conversion to them costs half.
    u64::from((share * UNIT as f64) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    #[test]
    fn ten_segments_in_half_a_second_are_twenty_per_second() {
        let bw = bandwidth(10, 500 * MILLISECOND);
        // 10 * 2²⁴ / 500,000 = 335.5, rounded down.
        assert_eq!(bw, 335);
        assert!((rate_pkts_per_s(bw, UNIT, 0.0) - 19.967).abs() < 1e-3);
        assert!((rate_pkts_per_s(bw, 739, 1.0) - 57.064).abs() < 1e-3);
        assert_eq!(bandwidth(10, 999), 0, "no interval");
        assert_eq!(bandwidth_rounded_up(10, 500 * MILLISECOND), 336);
        assert_eq!(bandwidth_rounded_up(10, 999), 0);
    }

    #[test]
    fn a_bandwidth_is_compared_as_if_it_were_divided() {
        let interval = 500 * MILLISECOND + 999;
        for segments in [0, 9, 10, 11] {
            let bw = bandwidth(segments, interval);
            assert!(!is_below(segments, interval, bw) && is_below(segments, interval, bw + 1));
        }
        assert!(is_below(10, interval, u64::MAX), "beyond 64 bits");
        assert!(!is_below(10, 999, u64::MAX), "no interval");
    }

    #[test]
    fn the_product_is_rounded_up_and_what_is_delivered_down() {
        let bw = bandwidth(10, 500 * MILLISECOND);
        assert_eq!(bdp(bw, 500 * MILLISECOND, UNIT), 10);
        assert_eq!(delivered_in(bw, 500 * MILLISECOND), 9);
        assert_eq!(bdp(bw, 500 * MILLISECOND, 2 * UNIT), 20);
        assert_eq!(bdp(bw, 500 * MILLISECOND, 320), 13);
        assert_eq!(bdp(0, 500 * MILLISECOND, UNIT), 0);
        // 2⁴⁰ per µs over 2²⁰ µs, from whose product 2⁸ and 2²⁴ are taken: within 64 bits, and with a gain of 2⁸ beyond.
        let long = (1 << 20) * MICROSECOND;
        assert_eq!(bdp(1 << 40, long, 1), 1 << 28);
        assert_eq!(bdp(1 << 40, long, UNIT), 1 << 36);
        assert_eq!(bdp((1 << 40) + 1, long, UNIT), (1 << 36) + 1);
    }

    #[test]
    fn gains_are_cut_to_256ths() {
        assert_eq!((gain(1.25), gain(0.75), gain(2.0)), (320, 192, 512));
        assert_eq!(gain(0.999), 255);
    }
}

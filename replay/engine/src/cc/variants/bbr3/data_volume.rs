//! What losses and marks tell BBR of the path: a long-term upper bound of the flight, and short-term lower bounds of rate
//! and flight that hold until the next probe.
//!
//! Does not depend on modes. Read draft-ietf-ccwg-bbr §5.5.10 first. Linux's `lo` is the draft's `shortterm`, `hi` its
//! `longterm`.

use crate::cc::evidence::LostSegment;
use crate::cc::variants::bbr::fixed::UNIT;

/// No bound.
pub const UNLIMITED: u64 = u64::MAX;

/// The volume, in segments and in the unit of bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataVolume {
    /// Maximum rate until the next probe.
    pub bw_lo: u64,
    /// Maximum flight until the next probe.
    pub inflight_lo: u64,
    /// Maximum flight that has been seen to be safe.
    pub inflight_hi: u64,
}

impl Default for DataVolume {
    fn default() -> Self {
        Self {
            bw_lo: UNLIMITED,
            inflight_lo: UNLIMITED,
            inflight_hi: UNLIMITED,
        }
    }
}

impl DataVolume {
    /// The bounds that hold until the next probe hold no longer.
    pub fn reset_short_term(&mut self) {
        (self.bw_lo, self.inflight_lo) = (UNLIMITED, UNLIMITED);
    }

    /// A round had losses: the lower volume, begun from `bw` and `cwnd`, lose `beta` 256ths, but not what the path has
    /// `delivered` in the round: its rate and its flight (draft §5.5.10.3).
    pub fn decrease_on_loss(&mut self, bw: u64, cwnd: u64, beta: u64, delivered: (u64, u64)) {
        if self.bw_lo == UNLIMITED {
            self.bw_lo = bw;
        }
        self.begin_inflight(cwnd);
        self.bw_lo = cut(self.bw_lo, beta).max(delivered.0).max(1);
        self.inflight_lo = cut(self.inflight_lo, beta).max(delivered.1);
    }

    /// A round had marks (Linux only): the lower bound of the flight, begun from `cwnd`, would lose `share` 256ths.
    pub fn inflight_lo_after_marks(&mut self, cwnd: u64, share: u64) -> u64 {
        self.begin_inflight(cwnd);
        cut(self.inflight_lo, share)
    }

    fn begin_inflight(&mut self, cwnd: u64) {
        if self.inflight_lo == UNLIMITED {
            self.inflight_lo = cwnd;
        }
    }

    /// The upper bound less what is left to others, `min` at least (draft §5.6.4.7).
    pub fn with_headroom(&self, headroom: u64, min: u64) -> u64 {
        if self.inflight_hi == UNLIMITED {
            return UNLIMITED;
        }
        let free = (self.inflight_hi * headroom / UNIT).max(1);
        self.inflight_hi.saturating_sub(free).max(min)
    }

    /// Of these and `before`, each the greater.
    pub fn undo(&mut self, before: &Self) {
        self.bw_lo = self.bw_lo.max(before.bw_lo);
        self.inflight_lo = self.inflight_lo.max(before.inflight_lo);
        self.inflight_hi = self.inflight_hi.max(before.inflight_hi);
    }
}

/// `value` less `share` 256ths of it.
fn cut(value: u64, share: u64) -> u64 {
    (u128::from(value) * u128::from(UNIT - share) / u128::from(UNIT)) as u64
}

/// Whether `lost` of `flight` are more than `threshold` 256ths (draft §5.5.10.2, `IsInflightTooHigh`).
pub fn is_inflight_too_high(lost: u64, flight: u32, threshold: u64) -> bool {
    lost > 0 && flight > 0 && lost > u64::from(flight) * threshold / UNIT
}

/// The flight at which the losses came to be too many: before `lost` there were `p` in flight and `l` lost, and of its
/// own octets x were too many: (l + x) / (p + x) = threshold (draft §5.5.10.2, `BBRInflightAtLoss`).
pub fn inflight_at_loss(lost: &LostSegment, threshold: u64) -> u64 {
    let flight = u64::from(lost.tx_in_flight).saturating_sub(1);
    let before = lost.lost.saturating_sub(1);
    let budget = (flight * threshold).div_ceil(UNIT);
    flight + budget.saturating_sub(before) * UNIT / (UNIT - threshold)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 % as 256ths.
    const THRESHOLD: u64 = 5;

    #[test]
    fn lower_bounds_begin_at_the_model_and_fall_to_seven_tenths_or_what_is_delivered() {
        let mut volume = DataVolume::default();
        volume.decrease_on_loss(1000, 100, 76, (500, 60));
        // 180/256 of 1000 and of 100.
        assert_eq!((volume.bw_lo, volume.inflight_lo), (703, 70));
        volume.decrease_on_loss(9999, 9999, 76, (500, 60));
        assert_eq!((volume.bw_lo, volume.inflight_lo), (500, 60));
        assert_eq!(volume.inflight_hi, UNLIMITED);
        volume.reset_short_term();
        assert_eq!(volume, DataVolume::default());
    }

    #[test]
    fn marks_take_their_share_of_the_flight_alone() {
        let mut volume = DataVolume::default();
        assert_eq!(volume.inflight_lo_after_marks(300, 85), 200);
        assert_eq!((volume.bw_lo, volume.inflight_lo), (UNLIMITED, 300));
    }

    #[test]
    fn headroom_is_a_segment_at_least_and_leaves_the_least_window() {
        let hi = |inflight_hi| {
            let volume = DataVolume {
                inflight_hi,
                ..DataVolume::default()
            };
            volume.with_headroom(38, 4)
        };
        // 38/256 of 100 are 14.8.
        assert_eq!([hi(100), hi(6), hi(4)], [86, 5, 4]);
        assert_eq!(hi(UNLIMITED), UNLIMITED);
    }

    #[test]
    fn two_percent_are_allowed() {
        // 5/256 of 102 are 1.99, of 103 2.01.
        let loses = |lost, flight| is_inflight_too_high(lost, flight, THRESHOLD);
        assert!(loses(2, 102) && !loses(2, 103) && loses(3, 103));
        assert!(loses(1, 51) && !loses(1, 52));
        assert!(!loses(0, 1) && !loses(1, 0));
    }

    #[test]
    fn the_flight_at_loss_solves_for_the_share_that_was_too_much() {
        let at = |tx_in_flight, lost| {
            let lost = LostSegment {
                tx_in_flight,
                lost,
                ..LostSegment::default()
            };
            inflight_at_loss(&lost, THRESHOLD)
        };
        // 99 before it: ⌈99 · 5/256⌉ = 2 may be lost, 1 was: 256/251 of one more.
        assert_eq!(at(100, 2), 100);
        assert_eq!(at(100, 1), 101);
        assert_eq!(at(100, 3), 99, "what came before was too much already");
        assert_eq!(at(0, 0), 0);
    }
}

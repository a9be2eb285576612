//! The clock of Linux's timers: ticks (jiffies) and the timer wheel, whose coarser levels let a timer fire late.
//!
//! Does not depend on what a timer is for. Facts: Linux 6.18, kernel/time/timer.c. A run starts at a step of every level of
//! the wheel.
//!
//! Deviation: in Linux a timer that is set again for the same tick keeps its place in the wheel, which may be at a coarser
//! level and so fire later; here it gets a new place.

use crate::sim::time::{MILLISECOND, Nanos};

/// Length of a tick, of a kernel built with HZ = 250.
pub const TICK: Nanos = 4 * MILLISECOND;
/// Linux (`LVL_START`): a timer of this many ticks is in the second level of the wheel, …
const SECOND_LEVEL_TICKS: u64 = 63;
/// … whose steps, like those of each further level, are longer by this factor (`LVL_CLK_DIV`).
const LEVEL_STEP: u64 = 8;

/// Linux (`usecs_to_jiffies`): `time` in whole ticks, up.
#[inline]
pub const fn up(time: Nanos) -> Nanos {
    time.next_multiple_of(TICK)
}

/// `time` in whole ticks, down.
#[inline]
pub const fn down(time: Nanos) -> Nanos {
    time / TICK * TICK
}

/// Linux (`calc_wheel_index`): when a timer fires that is set `now` for a time of `delay`, which counts in whole ticks. It
/// never fires early: it fires at the first step of its level of the wheel after its expiry.
#[inline(never)]
pub fn fires(now: Nanos, delay: Nanos) -> Nanos {
    let ticks = delay.div_ceil(TICK);
    let mut step = 1;
    while ticks / SECOND_LEVEL_TICKS >= step {
        step *= LEVEL_STEP;
    }
    // The next multiple of the step, which is a power of two.
    (((now / TICK + ticks) | (step - 1)) + 1) * TICK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_fires(cases: &[(u64, u64, u64)]) {
        for &(now_ms, delay_ms, fires_ms) in cases {
            let found = fires(now_ms * MILLISECOND, delay_ms * MILLISECOND);
            assert_eq!(found, fires_ms * MILLISECOND, "{now_ms} {delay_ms}");
        }
    }

    #[test]
    fn timers_fire_at_ticks_and_never_early() {
        assert_fires(&[
            (0, 40, 44),
            (1, 40, 44),
            (3, 37, 44),
            (4, 40, 48),
            (7, 41, 52),
        ]);
    }

    #[test]
    fn long_timers_fire_at_coarser_steps() {
        // 62 ticks by ticks; 63 to 503 by eights, up to eight ticks late; 504 to 4031 by 64; 4032 by 512.
        assert_fires(&[
            (0, 248, 252),
            (0, 252, 256),
            (8, 252, 288),
            (0, 2012, 2016),
            (4, 2012, 2048),
            (0, 2016, 2048),
            (0, 2048, 2304),
            (0, 16_124, 16_128),
            (0, 16_128, 16_384),
        ]);
    }

    #[test]
    fn whole_ticks_either_way() {
        let (one, two) = (TICK, 2 * TICK);
        assert_eq!([up(0), up(1), up(TICK), up(TICK + 1)], [0, one, one, two]);
        assert_eq!([down(TICK - 1), down(TICK), down(two - 1)], [0, one, one]);
    }
}

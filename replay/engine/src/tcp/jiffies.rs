//! The clock of Linux's timers: ticks (jiffies) and the timer wheel, whose coarser levels let a timer fire late.
//!
//! Does not depend on what a timer is for. Facts: Linux 6.18, kernel/time/timer.c. A run starts at a step of every level of
//! the wheel.
//!
//! Deviation: in Linux a timer that is set again for the same tick keeps its place in the wheel, which may be at a coarser
//! level and so fire later; here it gets a new place.

use crate::sim::time::{MILLISECOND, NEVER, Nanos};

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
#[inline]
pub fn fires(now: Nanos, delay: Nanos) -> Nanos {
    let ticks = delay.div_ceil(TICK);
    let mut step = 1;
    while ticks / SECOND_LEVEL_TICKS >= step {
        step *= LEVEL_STEP;
    }
    // The next multiple of the step, which is a power of two.
    (((now / TICK + ticks) | (step - 1)) + 1) * TICK
}

/// A lazy timer that can count in whole ticks. It computes its time of expiry only when that may be earlier than the time at
/// which it is called next, and when it is called.
#[derive(Clone, Copy, Debug)]
pub struct TickTimer {
    /// It fires `delay` after this time, by the wheel if `in_ticks`; `NEVER` if it is not set.
    set_at: Nanos,
    delay: Nanos,
    in_ticks: bool,
    armed: Nanos,
}

impl Default for TickTimer {
    fn default() -> Self {
        Self {
            set_at: NEVER,
            delay: 0,
            in_ticks: false,
            armed: NEVER,
        }
    }
}

impl TickTimer {
    /// Sets the deadline.
    #[inline]
    pub fn set(&mut self, deadline: Nanos) {
        (self.set_at, self.delay, self.in_ticks) = (deadline, 0, false);
        self.armed = self.armed.min(deadline);
    }

    /// Sets the deadline `delay` from `now`, on the wheel (see [`fires`]), which is never early.
    #[inline]
    pub fn set_ticks(&mut self, now: Nanos, delay: Nanos) {
        (self.set_at, self.delay, self.in_ticks) = (now, delay, true);
        if now + delay < self.armed {
            self.armed = self.armed.min(self.deadline());
        }
    }

    /// Stops the timer.
    #[inline]
    pub fn stop(&mut self) {
        self.set_at = NEVER;
    }

    /// Whether a deadline is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.set_at != NEVER
    }

    /// The deadline.
    #[inline(never)]
    pub fn deadline(&self) -> Nanos {
        if self.in_ticks && self.is_set() {
            fires(self.set_at, self.delay)
        } else {
            self.set_at
        }
    }

    /// When the node needs to be called: never later than the deadline.
    #[inline]
    pub fn armed(&self) -> Nanos {
        self.armed
    }

    /// Called at `armed`: whether the deadline is due (and then cleared); else the timer is armed anew.
    pub fn fires(&mut self, now: Nanos) -> bool {
        if self.armed > now {
            return false;
        }
        let deadline = self.deadline();
        let due = deadline <= now;
        if due {
            self.stop();
        }
        self.armed = if due { NEVER } else { deadline };
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_in_ticks_is_armed_when_it_fires_and_no_later_setting_moves_that() {
        let ms = MILLISECOND;
        let mut timer = TickTimer::default();
        timer.set_ticks(ms, 40 * ms);
        assert_eq!((timer.armed(), timer.deadline()), (44 * ms, 44 * ms));
        timer.set_ticks(7 * ms, 41 * ms);
        assert_eq!((timer.armed(), timer.deadline()), (44 * ms, 52 * ms));
        assert!(!timer.fires(44 * ms));
        assert_eq!(timer.armed(), 52 * ms);
        // An earlier one arms at once.
        timer.set_ticks(8 * ms, 10 * ms);
        assert_eq!(timer.armed(), fires(8 * ms, 10 * ms));
        timer.stop();
        assert!(!timer.is_set() && !timer.fires(52 * ms));
        assert_eq!((timer.armed(), timer.deadline()), (NEVER, NEVER));
        timer.set(60 * ms);
        assert!(timer.fires(60 * ms) && !timer.is_set());
    }

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

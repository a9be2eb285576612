//! A lazy timer: moving the deadline to a later time takes a few stores; the calendar is updated when the old one fires.
//!
//! Does not depend on what it is for. It may count in whole ticks, as Linux does (see `jiffies`).

use super::jiffies::fires;
use crate::sim::time::{NEVER, Nanos};

/// One timer of a connection. One in ticks computes its time of expiry only when that may be earlier than the time at which it
/// is called next, and when it is called.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// It fires `delay` after this time, by the wheel if `in_ticks`; `NEVER` if it is not set.
    set_at: Nanos,
    delay: Nanos,
    in_ticks: bool,
    armed: Nanos,
}

impl Default for Timer {
    fn default() -> Self {
        Self {
            set_at: NEVER,
            delay: 0,
            in_ticks: false,
            armed: NEVER,
        }
    }
}

impl Timer {
    /// Sets the deadline.
    #[inline]
    pub fn set(&mut self, deadline: Nanos) {
        (self.set_at, self.in_ticks) = (deadline, false);
        self.armed = self.armed.min(deadline);
    }

    /// Sets the deadline `delay` from `now`, on the wheel (see [`fires`]), which is never early.
    #[inline]
    pub fn set_ticks(&mut self, now: Nanos, delay: Nanos) {
        (self.set_at, self.delay, self.in_ticks) = (now, delay, true);
        if now + delay < self.armed {
            self.arm();
        }
    }

    #[cold]
    #[inline(never)]
    fn arm(&mut self) {
        self.armed = self.armed.min(self.deadline());
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

    /// Whether `set`, which alone is used on this timer, has set it for this deadline.
    #[inline]
    pub fn is_set_for(&self, deadline: Nanos) -> bool {
        self.set_at == deadline
    }

    /// The deadline.
    #[inline]
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
    use crate::sim::time::MILLISECOND;

    #[test]
    fn a_later_deadline_rearms_when_the_old_one_passes() {
        let mut timer = Timer::default();
        timer.set(10);
        timer.set(25);
        assert_eq!(timer.armed(), 10);
        assert!(!timer.fires(10));
        assert_eq!(timer.armed(), 25);
        assert!(timer.fires(25));
        assert_eq!((timer.armed(), timer.is_set()), (NEVER, false));
    }

    #[test]
    fn an_earlier_deadline_arms_at_once_and_a_stopped_one_never_fires() {
        let mut timer = Timer::default();
        timer.set(30);
        timer.set(20);
        assert_eq!(timer.armed(), 20);
        timer.stop();
        assert!(!timer.fires(20));
        assert_eq!(timer.armed(), NEVER);
    }

    #[test]
    fn a_timer_in_ticks_is_armed_when_it_fires_and_no_later_setting_moves_that() {
        let ms = MILLISECOND;
        let mut timer = Timer::default();
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
}

//! A lazy timer: pushing the deadline back costs one store; the calendar learns of it when the old one fires.

use super::time::{NEVER, Nanos};

/// One timer of a node.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    deadline: Nanos,
    armed: Nanos,
}

impl Default for Timer {
    fn default() -> Self {
        Self {
            deadline: NEVER,
            armed: NEVER,
        }
    }
}

impl Timer {
    /// Sets the deadline.
    #[inline]
    pub fn set(&mut self, deadline: Nanos) {
        self.deadline = deadline;
        self.armed = self.armed.min(deadline);
    }

    /// Stops the timer.
    #[inline]
    pub fn stop(&mut self) {
        self.deadline = NEVER;
    }

    /// Whether a deadline is set.
    pub fn is_set(&self) -> bool {
        self.deadline != NEVER
    }

    /// The deadline proper.
    pub fn deadline(&self) -> Nanos {
        self.deadline
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
        let due = self.deadline <= now;
        if due {
            self.deadline = NEVER;
        }
        self.armed = self.deadline;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}

//! The estimators of the congestion windows of a connection, and their rows.

use super::Connection;
use crate::cwnd::CwndEstimator;
use crate::rows::{Direction, Event, Sample};

impl Connection {
    /// Releases rows of the estimators of cwnd that are full, first that of `direction`.
    #[inline]
    pub(super) fn release_full(
        &mut self,
        direction: Direction,
        samples: &mut Vec<Sample>,
        events: &mut Vec<Event>,
    ) {
        for direction in [direction, direction.reverse()] {
            if self.cwnd(direction).is_some_and(|cwnd| cwnd.is_full()) {
                self.release_samples(direction, 1, samples, events);
            }
        }
    }

    /// The estimator of the congestion window of the sender of `direction`.
    pub(super) fn cwnd(&mut self, direction: Direction) -> Option<&mut CwndEstimator> {
        let index = direction as usize;
        match &mut self.senders[index].cwnd {
            Some(cwnd) => Some(cwnd),
            None => match &mut self.untimed[index] {
                Some(untimed) => Some(&mut untimed.cwnd),
                None => self.remotes[index]
                    .as_mut()
                    .and_then(|remote| remote.cwnd()),
            },
        }
    }

    /// Releases the held rows of `instruments` of `direction`, except the last `keep`.
    pub(super) fn release_samples(
        &mut self,
        direction: Direction,
        keep: usize,
        samples: &mut Vec<Sample>,
        events: &mut Vec<Event>,
    ) {
        let is_data_direction = self.data_direction() == direction;
        let flow = self.flow(direction);
        if let Some(cwnd) = self.cwnd(direction) {
            cwnd.release(is_data_direction, keep, flow, samples, events);
        }
    }

    /// The direction with more payload so far; of two without a difference, that of which more was acknowledged.
    pub(super) fn data_direction(&self) -> Direction {
        let [a2b, b2a] = [0, 1].map(|index| {
            let row = &self.senders[index].row;
            (row.payload_bytes, row.acked_bytes)
        });
        if b2a > a2b {
            Direction::B2a
        } else {
            Direction::A2b
        }
    }

    /// Releases memory that a closed connection does not need: all of the direction with less payload that concerns the
    /// congestion window, of which no row is kept, and spare capacity.
    pub fn release_memory(&mut self) {
        let other = self.data_direction().reverse() as usize;
        self.senders[other].cwnd = None;
        self.remotes[other] = None;
        self.untimed[other] = None;
        for sender in &mut self.senders {
            sender.release_memory();
        }
        for remote in self.remotes.iter_mut().flatten() {
            remote.release_memory();
        }
        for untimed in self.untimed.iter_mut().flatten() {
            untimed.release_memory();
        }
    }
}

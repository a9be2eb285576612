//! The part of the round trip behind the capture point, told by timestamps: from an acknowledgement to the first data
//! that echoes it. Knows no scoreboard. Read RFC 7323 §4.1 first.

use std::collections::VecDeque;

use crate::rtt::RttEstimator;

/// Timestamps kept while they wait for their echo: a second of a millisecond clock and then some.
const MAX_WAITING: usize = 4096;

/// Times from an acknowledgement's passing the capture point to the data that it triggers.
///
/// A sender that has nothing to send makes these times longer, so the least one tells the path.
#[derive(Debug, Default)]
pub struct Echo {
    waiting: VecDeque<(u32, i64)>,
    /// What was measured.
    pub behind: RttEstimator,
}

fn newer(value: u32, reference: u32) -> bool {
    value.wrapping_sub(reference) as i32 > 0
}

impl Echo {
    /// An acknowledgement with timestamp `ts_val` passes towards the sender.
    pub fn offer(&mut self, ts_val: u32, t_ns: i64) {
        if self.waiting.back().is_none_or(|last| newer(ts_val, last.0)) {
            if self.waiting.len() == MAX_WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back((ts_val, t_ns));
        }
    }

    /// Data that echoes `ts_ecr` comes from the sender.
    pub fn answer(&mut self, ts_ecr: u32, t_ns: i64) {
        while let Some(&(ts_val, since_ns)) = self.waiting.front() {
            if newer(ts_val, ts_ecr) {
                return;
            }
            self.waiting.pop_front();
            if ts_val == ts_ecr {
                self.behind.sample(t_ns - since_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_timestamp_is_measured_once_by_its_first_echo() {
        let mut echo = Echo::default();
        for (ts_val, t_ns) in [(u32::MAX, 0), (u32::MAX, 5), (0, 10), (1, 20)] {
            echo.offer(ts_val, t_ns);
        }
        echo.answer(u32::MAX, 100);
        echo.answer(u32::MAX, 200);
        echo.answer(1, 300);
        assert_eq!(
            (
                echo.behind.samples(),
                echo.behind.min_ns(),
                echo.behind.max_ns()
            ),
            (2, Some(100), Some(280))
        );
    }

    #[test]
    fn what_is_never_echoed_does_not_pile_up() {
        let mut echo = Echo::default();
        (0..10_000).for_each(|ts_val| echo.offer(ts_val, 0));
        assert_eq!(echo.waiting.len(), MAX_WAITING);
    }
}

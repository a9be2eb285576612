//! The round-trip time between the capture point and the data sender, measured with timestamps: from an ACK to the
//! first data segment that echoes it (RFC 7323 §4.1).

use std::collections::VecDeque;

use crate::rtt::RttEstimator;

/// Maximum number of timestamps that wait for their echo: four seconds of a millisecond clock.
const MAX_PENDING: usize = 4096;

/// Measures the time from an ACK at the capture point to the data segment that echoes its timestamp.
///
/// The time includes any idle time of the sender, so the minimum is the best estimate of the path.
#[derive(Debug, Default)]
pub struct UpstreamRtt {
    pending: VecDeque<(u32, i64)>,
    /// The samples.
    pub rtt: RttEstimator,
}

fn newer(value: u32, reference: u32) -> bool {
    value.wrapping_sub(reference) as i32 > 0
}

impl UpstreamRtt {
    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.pending.shrink_to_fit();
    }

    /// Processes an ACK on its way to the sender.
    pub fn on_ack(&mut self, ts_val: u32, t_ns: i64) {
        if self.pending.back().is_none_or(|last| newer(ts_val, last.0)) {
            if self.pending.len() == MAX_PENDING {
                self.pending.pop_front();
            }
            self.pending.push_back((ts_val, t_ns));
        }
    }

    /// Processes a data segment from the sender.
    pub fn on_data(&mut self, ts_ecr: u32, t_ns: i64) {
        while let Some(&(ts_val, ack_ns)) = self.pending.front() {
            if newer(ts_val, ts_ecr) {
                return;
            }
            self.pending.pop_front();
            if ts_val == ts_ecr {
                self.rtt.sample(t_ns - ack_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_echo_of_each_timestamp_is_a_sample() {
        let mut upstream = UpstreamRtt::default();
        for (ts_val, t_ns) in [(u32::MAX, 0), (u32::MAX, 5), (0, 10), (1, 20)] {
            upstream.on_ack(ts_val, t_ns);
        }
        upstream.on_data(u32::MAX, 100);
        upstream.on_data(u32::MAX, 200);
        upstream.on_data(1, 300);
        let rtt = upstream.rtt;
        assert_eq!(
            (rtt.samples(), rtt.min_ns(), rtt.max_ns()),
            (2, Some(100), Some(280))
        );
    }

    #[test]
    fn timestamps_without_an_echo_take_bounded_memory() {
        let mut upstream = UpstreamRtt::default();
        (0..10_000).for_each(|ts_val| upstream.on_ack(ts_val, 0));
        assert_eq!(upstream.pending.len(), MAX_PENDING);
    }
}

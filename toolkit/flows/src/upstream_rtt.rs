//! The round-trip time between the capture point and the data sender, measured with timestamps: from an ACK to the
//! first data segment that echoes it (RFC 7323 §4.1).

use std::collections::VecDeque;

use crate::rtt::RttEstimator;

/// Maximum number of timestamps that wait for their echo: four seconds of a millisecond clock.
const MAX_PENDING: usize = 4096;

/// The ACKs with one timestamp: times of the first and of the last, and SEG.ACK of the last.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Stamped {
    ts_val: u32,
    first_ns: i64,
    last_ns: i64,
    seg_ack: i64,
}

/// What a data segment shows of its sender: the last ACK that it may have received carried `ts_ecr`.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Informed {
    ts_ecr: u32,
    /// Time of the last ACK with this timestamp, and its SEG.ACK.
    until_ns: i64,
    seg_ack: i64,
    /// Time of the data segment.
    segment_ns: i64,
}

/// Measures the time from an ACK at the capture point to the data segment that echoes its timestamp.
///
/// The time includes any idle time of the sender, so the minimum is the best estimate of the path.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct UpstreamRtt {
    pending: VecDeque<Stamped>,
    informed: Option<Informed>,
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

    /// Processes an ACK of `seg_ack` on its way to the sender.
    pub fn on_ack(&mut self, ts_val: u32, t_ns: i64, seg_ack: i64) {
        match self.pending.back_mut() {
            Some(last) if last.ts_val == ts_val => {
                last.last_ns = t_ns;
                last.seg_ack = last.seg_ack.max(seg_ack);
            }
            Some(last) if !newer(ts_val, last.ts_val) => {}
            _ => {
                if self.pending.len() == MAX_PENDING {
                    self.pending.pop_front();
                }
                self.pending.push_back(Stamped {
                    ts_val,
                    first_ns: t_ns,
                    last_ns: t_ns,
                    seg_ack,
                });
            }
        }
    }

    /// Processes a data segment from the sender. Returns the time since the ACK that it is the first to echo. It is a
    /// sample if the segment was sent in response: a timer may trigger a retransmission long after the ACK.
    #[must_use]
    pub fn on_data(&mut self, ts_ecr: u32, t_ns: i64) -> Option<i64> {
        let same = self.informed.filter(|informed| informed.ts_ecr == ts_ecr);
        self.informed = same.map(|informed| Informed {
            segment_ns: t_ns,
            ..informed
        });
        let mut echoed_ns = None;
        while let Some(&stamped) = self.pending.front() {
            if newer(stamped.ts_val, ts_ecr) {
                break;
            }
            self.pending.pop_front();
            if stamped.ts_val == ts_ecr {
                self.informed = Some(Informed {
                    ts_ecr,
                    until_ns: stamped.last_ns,
                    seg_ack: stamped.seg_ack,
                    segment_ns: t_ns,
                });
                echoed_ns = Some(t_ns - stamped.first_ns);
            }
        }
        echoed_ns
    }

    /// Time of the last ACK that the sender may have received when it sent the data segment captured at `t_ns`: those
    /// captured later carried a newer timestamp than it echoes. `None` if it echoes none that was captured.
    pub fn informed_until_ns(&self, t_ns: i64) -> Option<i64> {
        let informed = self.informed.filter(|informed| informed.segment_ns == t_ns);
        informed.map(|informed| informed.until_ns)
    }

    /// SND.UNA of the sender when it sent the data segment captured at `t_ns`, at most; see
    /// [`Self::informed_until_ns`].
    pub fn una_when_sent(&self, t_ns: i64) -> Option<i64> {
        let informed = self.informed.filter(|informed| informed.segment_ns == t_ns);
        informed.map(|informed| informed.seg_ack)
    }

    /// SND.UNA of the sender of a segment without octets that echoes `ts_ecr`, at most; `None` if no ACK that was
    /// captured and not echoed before had this timestamp, nor the last one that was. Where the clock of the receiver is
    /// slow, there may be both: ACKs of the same tick that came before the echo and after it.
    pub fn una_at_echo(&self, ts_ecr: u32) -> Option<i64> {
        let echoed = self.informed.filter(|informed| informed.ts_ecr == ts_ecr);
        let waiting = self.pending.iter().find(|ack| ack.ts_val == ts_ecr);
        let echoed = echoed.map(|informed| informed.seg_ack);
        echoed.max(waiting.map(|ack| ack.seg_ack))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_echo_of_each_timestamp_measures_the_time_since_its_first_ack() {
        let mut upstream = UpstreamRtt::default();
        for (ts_val, t_ns) in [(u32::MAX, 0), (u32::MAX, 5), (0, 10), (1, 20)] {
            upstream.on_ack(ts_val, t_ns, i64::from(ts_val));
        }
        assert_eq!(upstream.on_data(u32::MAX, 100), Some(100));
        assert_eq!(upstream.on_data(u32::MAX, 200), None);
        assert_eq!(upstream.on_data(1, 300), Some(280));
    }

    #[test]
    fn a_sender_has_not_received_acks_newer_than_it_echoes() {
        let mut upstream = UpstreamRtt::default();
        for (ts_val, t_ns) in [(7, 0), (7, 5), (8, 10), (9, 20)] {
            upstream.on_ack(ts_val, t_ns, i64::from(ts_val));
        }
        assert_eq!(upstream.on_data(7, 100), Some(100));
        assert_eq!(upstream.informed_until_ns(100), Some(5));
        assert_eq!(upstream.informed_until_ns(101), None, "another segment");
        assert_eq!(upstream.una_when_sent(100), Some(7));
        assert_eq!(upstream.una_when_sent(101), None, "another segment");
        assert_eq!(upstream.on_data(7, 110), None);
        assert_eq!(upstream.informed_until_ns(110), Some(5), "echoed again");
        assert_eq!(upstream.una_at_echo(7), Some(7), "the last echo");
        assert_eq!(upstream.una_at_echo(9), Some(9), "not echoed before");
        assert_eq!(upstream.una_at_echo(6), None, "not captured");
        assert_eq!(upstream.on_data(6, 120), None);
        assert_eq!(upstream.informed_until_ns(120), None, "not captured");
    }

    #[test]
    fn acks_of_the_same_tick_after_its_echo_count_too() {
        let mut upstream = UpstreamRtt::default();
        upstream.on_ack(7, 0, 1000);
        assert_eq!(upstream.on_data(7, 10), Some(10));
        upstream.on_ack(7, 20, 2000);
        assert_eq!(upstream.una_at_echo(7), Some(2000));
        assert_eq!(upstream.una_when_sent(10), Some(1000), "before the second");
    }

    #[test]
    fn timestamps_without_an_echo_take_bounded_memory() {
        let mut upstream = UpstreamRtt::default();
        (0..10_000).for_each(|ts_val| upstream.on_ack(ts_val, 0, 0));
        assert_eq!(upstream.pending.len(), MAX_PENDING);
    }
}

//! A data sender as a capture point downstream of it sees it: with timestamps, each segment shows which ACKs the sender
//! had received when it sent it (RFC 7323 §4).
//!
//! Segments and ACKs are put into the order in which the sender sent and received them, and passed to a [`Sender`] whose
//! capture point is at the sender. Times are those of the segments at the capture point.

use std::collections::VecDeque;

use crate::cwnd::CwndEstimator;
use crate::loss::FlowDirection;
use crate::rows::{Phase, Vantage};
use crate::scoreboard::Transmission;
use crate::sender::{ReceivedAck, Sender, Sent};

/// Maximum number of ACKs that wait for their echo.
const MAX_ACKS: usize = 1 << 14;

/// After this many round trips without a segment, a timer of a sender with data in flight has expired (RFC 8985 §7.2: a probe
/// is sent after two), so that its state has changed, and nothing shows how.
const SILENT_ROUND_TRIPS: i64 = 2;

/// Maximum number of segments assumed lost between two captured ones.
const MAX_LOST: i64 = 1 << 12;

/// The sender of one direction.
#[derive(Debug)]
pub struct RemoteSender {
    sender: Sender,
    /// ACKs with their timestamps, on their way to the sender.
    acks: VecDeque<(u32, ReceivedAck)>,
    /// Time of the last segment, and its IPv4 ID.
    last_ns: Option<i64>,
    last_id: Option<u16>,
    /// Transmissions so far, those lost before the capture point included.
    transmissions: u64,
}

impl RemoteSender {
    /// A sender in `phase` whose peer announced `mss_bytes`.
    pub fn new(phase: Phase, mss_bytes: i64, handshake_rtt_ns: Option<i64>) -> Self {
        let mut sender = Sender::default();
        sender.vantage = Vantage::Sender;
        sender.remote = true;
        sender.cwnd = Some(Box::new(CwndEstimator::new(phase)));
        sender.board.set_mss(mss_bytes);
        if let Some(rtt_ns) = handshake_rtt_ns {
            sender.rtt.sample(rtt_ns);
        }
        Self {
            sender,
            acks: VecDeque::new(),
            last_ns: None,
            last_id: None,
            transmissions: 0,
        }
    }

    /// The estimator of its congestion window.
    pub fn cwnd(&mut self) -> Option<&mut CwndEstimator> {
        self.sender.cwnd.as_deref_mut()
    }

    /// Processes an ACK with timestamp `ts_val`.
    pub fn on_ack(&mut self, ts_val: u32, ack: ReceivedAck) {
        if self.acks.len() == MAX_ACKS {
            self.acks.pop_front();
        }
        self.acks.push_back((ts_val, ack));
    }

    /// Processes a segment that echoes `ts_ecr`.
    pub fn on_data(&mut self, ts_ecr: u32, sent: &Sent, fin: bool, flow: FlowDirection) {
        let now = sent.transmission.t_ns;
        let idle = self.sent_nothing(sent.transmission.ip_id);
        let last_ns = self.last_ns.replace(now);
        if let Some(last_ns) = last_ns.filter(|_| !idle) {
            self.end_silence(last_ns, now, flow.flow_id);
        }
        let mut ignored = Vec::new();
        while let Some(&(ts_val, ack)) = self.acks.front() {
            if ts_val.wrapping_sub(ts_ecr) as i32 > 0 {
                break;
            }
            self.acks.pop_front();
            let ack = ReceivedAck { t_ns: now, ..ack };
            self.sender.acknowledge(&ack, flow, &mut ignored);
        }
        self.send_lost(sent, flow);
        self.send(sent, fin, flow);
    }

    /// Whether the sender sent nothing between the last segment and one with `ip_id`, as it increments the IDs (RFC 6864 §3).
    /// Then no timer has expired: the application paused, or the ACKs did.
    fn sent_nothing(&mut self, ip_id: Option<u16>) -> bool {
        let last_id = std::mem::replace(&mut self.last_id, ip_id);
        let next_id = last_id.map(|last| last.wrapping_add(1));
        self.sender.order.ids_increment() && next_id.is_some() && next_id == ip_id
    }

    /// Nothing shows what the sender did from `last_ns` to `now_ns`. Once a timer may have expired, the window is not known.
    fn end_silence(&mut self, last_ns: i64, now_ns: i64, flow_id: u32) {
        let Some(srtt_ns) = self.sender.rtt.srtt_ns() else {
            return;
        };
        let expired_ns = last_ns.saturating_add(srtt_ns.saturating_mul(SILENT_ROUND_TRIPS));
        if now_ns > expired_ns {
            self.sender.sample_cwnd(flow_id, CwndEstimator::take_due);
            self.sender
                .sample_cwnd(flow_id, |cwnd| cwnd.end_sight(expired_ns));
        }
    }

    /// The segments between the last captured one and `sent`: they were lost before the capture point.
    fn send_lost(&mut self, sent: &Sent, flow: FlowDirection) {
        let board = &self.sender.board;
        let (nxt, smss) = (board.snd_nxt(), board.smss_bytes().max(1));
        if !board.started() || sent.start <= nxt || sent.start - nxt > MAX_LOST * smss {
            return;
        }
        let mut start = nxt;
        while start < sent.start {
            let end = sent.start.min(start + smss);
            let transmission = Transmission {
                ts_val: None,
                ip_id: None,
                ..sent.transmission
            };
            let lost = Sent {
                start,
                end,
                payload_bytes: (end - start) as u32,
                segments_n: 1,
                transmission,
            };
            self.send(&lost, false, flow);
            start = end;
        }
    }

    fn send(&mut self, sent: &Sent, fin: bool, flow: FlowDirection) {
        self.transmissions += 1;
        let transmission = Transmission {
            record: self.transmissions,
            ..sent.transmission
        };
        let sent = Sent {
            transmission,
            ..*sent
        };
        self.sender.send(&sent, fin, flow, &mut Vec::new());
    }

    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.acks.shrink_to_fit();
        self.sender.release_memory();
    }

    /// Ends the connection at `end_ns`: adds the last rows of the estimator.
    pub fn finish(&mut self, end_ns: i64, flow_id: u32) {
        self.sender.sample_cwnd(flow_id, CwndEstimator::take_due);
        let board = &self.sender.board;
        let acknowledged = self
            .acks
            .back()
            .map_or(board.snd_una(), |(_, ack)| ack.seg_ack);
        if let Some(last_ns) = self.last_ns.filter(|_| acknowledged < board.snd_nxt()) {
            self.end_silence(last_ns, end_ns, flow_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Direction;

    #[test]
    fn a_round_trip_of_centuries_does_not_overflow() {
        let mut remote = RemoteSender::new(Phase::SlowStart, 1000, Some(i64::MAX / 2 + 1));
        let flow = FlowDirection {
            flow_id: 1,
            direction: Direction::A2b,
        };
        for t_ns in [i64::MAX / 4, i64::MAX / 2] {
            let start = t_ns % 7;
            let sent = Sent {
                start,
                end: start + 1000,
                payload_bytes: 1000,
                segments_n: 1,
                transmission: Transmission {
                    t_ns,
                    ..Transmission::default()
                },
            };
            remote.on_data(0, &sent, false, flow);
        }
        remote.finish(i64::MAX, 1);
        assert_eq!(remote.last_ns, Some(i64::MAX / 2));
    }
}

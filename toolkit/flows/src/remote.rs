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

/// After this many round trips without a segment, a timer of the sender has expired (RFC 8985 §7.2: a probe is sent after
/// two), so that its state has changed, and nothing shows how.
const SILENT_ROUND_TRIPS: i64 = 2;

/// Maximum number of segments assumed lost between two captured ones.
const MAX_LOST: i64 = 1 << 12;

/// The sender of one direction.
#[derive(Debug)]
pub struct RemoteSender {
    sender: Sender,
    /// ACKs with their timestamps, on their way to the sender.
    acks: VecDeque<(u32, ReceivedAck)>,
    /// Time of the last segment.
    last_ns: Option<i64>,
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
        self.end_silence(now, flow);
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

    /// A segment is captured at `now_ns`. If it ends a silence, the window was not known in it.
    fn end_silence(&mut self, now_ns: i64, flow: FlowDirection) {
        let last_ns = self.last_ns.replace(now_ns);
        let round_trips_ns = self
            .sender
            .rtt
            .srtt_ns()
            .map(|srtt_ns| SILENT_ROUND_TRIPS * srtt_ns);
        let (Some(last_ns), Some(shown_ns)) = (last_ns, round_trips_ns) else {
            return;
        };
        if now_ns - last_ns > shown_ns {
            self.sender
                .sample_cwnd(flow.flow_id, CwndEstimator::take_due);
            self.sender
                .sample_cwnd(flow.flow_id, |cwnd| cwnd.end_sight(last_ns + shown_ns));
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

    /// Ends the connection: adds the last row of the estimator.
    pub fn finish(&mut self, flow_id: u32) {
        self.sender.sample_cwnd(flow_id, CwndEstimator::take_due);
    }
}

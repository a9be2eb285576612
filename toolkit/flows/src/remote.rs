//! A data sender as a capture point downstream of it sees it: with timestamps, each segment shows which ACKs the sender
//! had received when it sent it (RFC 7323 §4).
//!
//! Segments and ACKs are put into the order in which the sender sent and received them, and passed to a [`Sender`]
//! whose capture point is at the sender. Times are those of the segments at the capture point.

use std::collections::VecDeque;

use crate::cwnd::CwndEstimator;
use crate::loss::FlowDirection;
use crate::missing::timeouts as max_timeouts;
use crate::rows::{Edges, Phase, Vantage};
use crate::scoreboard::Transmission;
use crate::sender::{ReceivedAck, Sender, Sent};

/// Maximum number of ACKs that wait for their echo.
const MAX_ACKS: usize = 1 << 14;

/// After this many round trips without a segment, a timer of a sender with data in flight has expired (RFC 8985 §7.2: a
/// probe is sent after two), so that its state has changed, and nothing shows how.
const SILENT_ROUND_TRIPS: i64 = 2;

/// Maximum number of segments assumed lost between two captured ones.
const MAX_LOST: i64 = 1 << 12;

/// The sender of one direction.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct RemoteSender {
    sender: Sender,
    /// ACKs on their way to the sender.
    acks: VecDeque<Waiting>,
    /// Number of the first of them, counted from the first ACK ever.
    first: u64,
    /// The SACK blocks of those that have some, each with the number of its ACK.
    sacks: VecDeque<(u64, Edges)>,
    /// Time of the last segment, and its IPv4 ID.
    last_ns: Option<i64>,
    last_id: Option<u16>,
    /// Transmissions so far, those lost before the capture point included.
    transmissions: u64,
}

/// What the sender did between the last segment captured and one that repeats octets, captured or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unseen {
    /// The timeouts that repeated them, if that segment ends a silence; 0 if it repeats nothing.
    pub timeouts: u32,
    /// The IPv4 IDs count the packets of this connection alone.
    pub ids_count: bool,
}

/// An ACK on its way to the sender, without its SACK blocks, which few have.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Waiting {
    /// When it was captured.
    t_ns: i64,
    record: u64,
    seg_ack: i64,
    wnd_bytes: Option<i64>,
    ts_val: u32,
    ts_ecr: Option<u32>,
    ip_id: Option<u16>,
    window: u16,
    pure: bool,
    sack_in_use: bool,
}

impl Waiting {
    fn new(ts_val: u32, ack: &ReceivedAck<'_>) -> Self {
        Self {
            t_ns: ack.t_ns,
            record: ack.record,
            seg_ack: ack.seg_ack,
            wnd_bytes: ack.wnd_bytes,
            ts_val,
            ts_ecr: ack.ts_ecr,
            ip_id: ack.ip_id,
            window: ack.window,
            pure: ack.pure,
            sack_in_use: ack.sack_in_use,
        }
    }

    /// The ACK when the sender receives it.
    fn received(self, t_ns: i64, sack: &Edges) -> ReceivedAck<'_> {
        ReceivedAck {
            t_ns,
            record: self.record,
            seg_ack: self.seg_ack,
            sack,
            ts_ecr: self.ts_ecr,
            ip_id: self.ip_id,
            wnd_bytes: self.wnd_bytes,
            window: self.window,
            pure: self.pure,
            sack_in_use: self.sack_in_use,
        }
    }

    /// Whether the sender had received it before it sent a segment that echoes `ts_ecr`.
    fn has_arrived(&self, ts_ecr: u32) -> bool {
        self.ts_val.wrapping_sub(ts_ecr) as i32 <= 0
    }
}

/// When the sender receives ACKs: so long after the capture of each, within these times.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_field_names, reason = "all are times")]
struct Receipt {
    delay_ns: i64,
    earliest_ns: i64,
    latest_ns: i64,
    /// ACKs captured from this time on may give a sample of the RTT; `None` if the times are derived from SRTT.
    measured_from_ns: Option<i64>,
}

impl Receipt {
    /// All at `t_ns`.
    fn at(t_ns: i64, measured_from_ns: Option<i64>) -> Self {
        Self {
            delay_ns: 0,
            earliest_ns: t_ns,
            latest_ns: t_ns,
            measured_from_ns,
        }
    }

    /// When the sender receives an ACK that was captured at `captured_ns`.
    fn t_ns(self, captured_ns: i64) -> i64 {
        let t_ns = captured_ns.saturating_add(self.delay_ns);
        t_ns.max(self.earliest_ns).min(self.latest_ns)
    }

    /// Whether an ACK captured at `captured_ns` may give a sample of the RTT: the segment itself shows when it arrived.
    fn is_measured(self, captured_ns: i64) -> bool {
        self.measured_from_ns
            .is_some_and(|from_ns| captured_ns >= from_ns)
    }
}

/// More than two round trips without a segment.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_field_names, reason = "all are times")]
struct Silence {
    /// Time of the last segment, and of the next one.
    last_ns: i64,
    end_ns: i64,
    srtt_ns: i64,
}

impl Silence {
    /// When a timer may have expired.
    fn expired_ns(self) -> i64 {
        let silent_ns = self.srtt_ns.saturating_mul(SILENT_ROUND_TRIPS);
        self.last_ns.saturating_add(silent_ns)
    }

    /// How long it lasted.
    fn duration_ns(self) -> i64 {
        self.end_ns.saturating_sub(self.last_ns)
    }

    /// RFC 6298 §5.3: the ACK of the last segment restarts the timer.
    fn restart_ns(self) -> i64 {
        self.last_ns.saturating_add(self.srtt_ns)
    }

    /// When the sender received the ACKs, of which the newest one that it had was captured at `newest_ns`: with `timer`,
    /// if no ACK triggered the segment that ends the silence, a round trip later. Else that ACK is what the sender waited
    /// for, so it and those before it took as long as the segment shows.
    fn receipt(self, timer: bool, newest_ns: i64) -> Receipt {
        let delay_ns = if timer {
            self.srtt_ns
        } else {
            self.end_ns.saturating_sub(newest_ns)
        };
        Receipt {
            delay_ns,
            earliest_ns: self.last_ns,
            latest_ns: self.end_ns,
            measured_from_ns: (!timer).then_some(newest_ns),
        }
    }
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
            sender.rtt.sample(rtt_ns, sender.board.round());
        }
        Self {
            sender,
            acks: VecDeque::new(),
            first: 0,
            sacks: VecDeque::new(),
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
    pub fn on_ack(&mut self, ts_val: u32, ack: &ReceivedAck<'_>) {
        if self.acks.len() == MAX_ACKS {
            // Not read: it has left the cache.
            self.acks.pop_front();
            self.pop_sack();
        }
        if !ack.sack.is_empty() {
            let number = self.first + self.acks.len() as u64;
            self.sacks.push_back((number, *ack.sack));
        }
        self.acks.push_back(Waiting::new(ts_val, ack));
    }

    /// Takes the SACK blocks of the ACK that has just left.
    fn pop_sack(&mut self) -> Edges {
        let number = self.first;
        self.first += 1;
        match self.sacks.front() {
            Some(&(of, sack)) if of == number => {
                self.sacks.pop_front();
                sack
            }
            _ => Edges::default(),
        }
    }

    /// Processes a segment that echoes `ts_ecr`, before which the sender did `before`.
    pub fn on_data(
        &mut self,
        ts_ecr: u32,
        sent: &Sent,
        fin: bool,
        before: Unseen,
        flow: FlowDirection,
    ) {
        let timeouts = before.timeouts;
        let now = sent.transmission.t_ns;
        let missing = self.missing_ids(sent.transmission.ip_id);
        let idle = missing == Some(0);
        let probe = !idle && timeouts == 0 && self.is_probe(sent);
        let timer = timeouts > 0 || probe;
        let silence = self.silence_before(now);
        let mut receipt = Receipt::at(now, Some(i64::MIN));
        let mut received_ns = None;
        if let Some(silence) = silence {
            // RFC 6298 §5.4: the sender would have retransmitted if it had waited for an ACK longer than the RTO.
            let timer = timer || silence.duration_ns() > self.sender.rtt.rto_ns();
            let in_silence = silence.receipt(timer, self.newest_echoed_ns(ts_ecr).unwrap_or(now));
            let last_ns = self.receive_acks(ts_ecr, in_silence, silence.expired_ns(), flow);
            if timer {
                let last_ns = last_ns.max(Some(silence.restart_ns()));
                received_ns = last_ns.map(|last_ns| last_ns.min(now));
            }
            // There are no estimates in the silence: the other ACKs arrive with the segment.
            receipt = Receipt::at(now, in_silence.measured_from_ns);
        }
        if probe {
            self.send_lost(&at(sent, received_ns.unwrap_or(now)), flow);
        } else if !idle {
            if timeouts > 0 && sent.start >= self.sender.board.snd_nxt() {
                let counted = missing.filter(|_| before.ids_count).unwrap_or(0);
                let count = if fin {
                    1
                } else {
                    counted.saturating_sub(timeouts - 1)
                };
                self.send_unseen(sent, count, received_ns, flow);
            }
            if let Some(silence) = silence {
                self.lose_sight(silence, timeouts, flow.flow_id);
            }
        }
        self.last_ns = Some(now);
        self.receive_acks(ts_ecr, receipt, now, flow);
        self.send_lost(sent, flow);
        if probe && let Some(cwnd) = self.cwnd() {
            cwnd.exclude_probe(i64::from(sent.payload_bytes));
        }
        self.send(sent, fin, flow);
    }

    /// When the newest ACK was captured that the sender of `ts_ecr` had received.
    fn newest_echoed_ns(&self, ts_ecr: u32) -> Option<i64> {
        let echoed = self.acks.iter().take_while(|ack| ack.has_arrived(ts_ecr));
        echoed.last().map(|ack| ack.t_ns)
    }

    /// The sender receives, as `receipt` says and until `until_ns`, the ACKs up to the one that it echoes as `ts_ecr`.
    /// Returns when it received the last of them.
    fn receive_acks(
        &mut self,
        ts_ecr: u32,
        receipt: Receipt,
        until_ns: i64,
        flow: FlowDirection,
    ) -> Option<i64> {
        let mut ignored = Vec::new();
        let mut last_ns = None;
        while let Some(&ack) = self.acks.front()
            && ack.has_arrived(ts_ecr)
            && receipt.t_ns(ack.t_ns) <= until_ns
        {
            self.acks.pop_front();
            let sack = self.pop_sack();
            let t_ns = receipt.t_ns(ack.t_ns);
            let rtt = self.sender.rtt;
            self.sender
                .acknowledge(&ack.received(t_ns, &sack), flow, &mut ignored);
            if !receipt.is_measured(ack.t_ns) {
                self.sender.rtt = rtt;
            }
            last_ns = Some(t_ns);
        }
        if let Some(last_ns) = last_ns {
            self.sender.begin_recovery_unseen(last_ns);
        }
        last_ns
    }

    /// Whether `sent` is a tail loss probe of new data (RFC 8985 §7.3): it reveals a gap, and comes too late for an ACK
    /// to have triggered it. A probe comes two round trips after the last segment (RFC 8985 §7.2), which itself comes a
    /// round trip after the last one captured. With one packet out, RFC 8985 adds the longest time that the receiver
    /// delays an ACK, and Linux the minimum RTO (`TCP_RTO_MIN`, in `tcp_schedule_loss_probe`): that is the latest time.
    ///
    /// Deviation: an application that pauses for as long, and then sends segments of which the first ones are lost,
    /// looks the same, also by IPv4 IDs.
    fn is_probe(&self, sent: &Sent) -> bool {
        let board = &self.sender.board;
        let silence = self.last_ns.zip(self.sender.rtt.srtt_ns());
        let is_timely = |(last_ns, srtt_ns): (i64, i64)| {
            let waited_ns = sent.transmission.t_ns.saturating_sub(last_ns);
            let silent_ns = srtt_ns.saturating_mul(SILENT_ROUND_TRIPS);
            let timeout_ns = silent_ns.saturating_add(self.sender.rtt.min_rto_ns());
            waited_ns > silent_ns && waited_ns < timeout_ns
        };
        board.started() && sent.start > board.snd_nxt() && silence.is_some_and(is_timely)
    }

    /// The silence that a segment captured at `now_ns` ends.
    fn silence_before(&self, now_ns: i64) -> Option<Silence> {
        let (last_ns, srtt_ns) = self.last_ns.zip(self.sender.rtt.srtt_ns())?;
        let silence = Silence {
            last_ns,
            end_ns: now_ns,
            srtt_ns,
        };
        (now_ns > silence.expired_ns()).then_some(silence)
    }

    /// The number of packets that the sender sent between the last segment and one with `ip_id`, if it increments the IDs
    /// (RFC 6864 §3). If it sent none, no timer has expired: the application paused, or the ACKs did.
    fn missing_ids(&mut self, ip_id: Option<u16>) -> Option<u32> {
        let (last, id) = std::mem::replace(&mut self.last_id, ip_id).zip(ip_id)?;
        let step = id.wrapping_sub(last);
        let counts = self.sender.order.ids_increment() && (1..=MAX_LOST as u16).contains(&step);
        counts.then(|| u32::from(step - 1))
    }

    /// The octets of `sent`, which repeats them, left unseen, with as many segments after them as make `count`, as far
    /// as the window of the receiver allows: when the sender received the last ACK, or with the last segment captured.
    fn send_unseen(
        &mut self,
        sent: &Sent,
        count: u32,
        received_ns: Option<i64>,
        flow: FlowDirection,
    ) {
        let Some(t_ns) = received_ns.or(self.last_ns) else {
            return;
        };
        let mut unseen = at(sent, t_ns);
        unseen.transmission.ts_val = None;
        unseen.transmission.ip_id = None;
        self.send(&unseen, false, flow);
        let smss_bytes = self.sender.board.smss_bytes().max(1);
        let window_end = self.sender.window_end().unwrap_or(i64::MAX);
        unseen.payload_bytes = u32::try_from(smss_bytes).unwrap_or(u32::MAX);
        unseen.segments_n = 1;
        for _ in 1..count {
            (unseen.start, unseen.end) = (unseen.end, unseen.end + smss_bytes);
            if unseen.end > window_end {
                return;
            }
            self.send(&unseen, false, flow);
        }
    }

    /// A segment captured at `now_ns`, or the end of the capture, ends a silence, if there is one, with `timeouts`.
    pub fn end_silence(&mut self, now_ns: i64, timeouts: u32, flow_id: u32) {
        if let Some(silence) = self.silence_before(now_ns) {
            self.lose_sight(silence, timeouts, flow_id);
        }
    }

    /// Nothing shows what the sender did since the last segment. Once a timer may have expired, the window is not
    /// known. If the silence had `timeouts`, it is known again from the first one on.
    fn lose_sight(&mut self, silence: Silence, timeouts: u32, flow_id: u32) {
        self.sender.sample_cwnd(flow_id, CwndEstimator::take_due);
        self.sender
            .sample_cwnd(flow_id, |cwnd| cwnd.end_sight(silence.expired_ns()));
        // RFC 6298 §5.5: the intervals of the timer double.
        let restart_ns = silence.restart_ns();
        let waited_ns = silence.end_ns.saturating_sub(restart_ns);
        let count = timeouts.min(max_timeouts(waited_ns, self.sender.rtt.min_rto_ns()));
        if count > 0 {
            let first_ns = restart_ns.saturating_add(waited_ns / ((1_i64 << count.min(62)) - 1));
            let smss_bytes = self.sender.board.smss_bytes();
            self.sender
                .sample_cwnd(flow_id, |cwnd| cwnd.time_out(first_ns, smss_bytes));
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
                piece_bytes: smss as u32,
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
        self.sacks.shrink_to_fit();
        self.sender.release_memory();
    }

    /// Ends the connection at `end_ns`: adds the last rows of the estimator. Whether the application paused or what it
    /// sent was lost, no segment shows.
    pub fn finish(&mut self, end_ns: i64, flow_id: u32) {
        self.sender.sample_cwnd(flow_id, CwndEstimator::take_due);
        self.end_silence(end_ns, 0, flow_id);
    }
}

/// The segment `sent` at another time.
fn at(sent: &Sent, t_ns: i64) -> Sent {
    let transmission = Transmission {
        t_ns,
        ..sent.transmission
    };
    Sent {
        transmission,
        ..*sent
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
                piece_bytes: 1000,
                transmission: Transmission {
                    t_ns,
                    ..Transmission::default()
                },
            };
            remote.on_data(0, &sent, false, Unseen::default(), flow);
        }
        remote.finish(i64::MAX, 1);
        assert_eq!(remote.last_ns, Some(i64::MAX / 2));
    }

    fn ack(record: u64, sack: &Edges) -> ReceivedAck<'_> {
        ReceivedAck {
            t_ns: 0,
            record,
            seg_ack: 1,
            sack,
            ts_ecr: None,
            ip_id: None,
            wnd_bytes: None,
            window: 0,
            pure: true,
            sack_in_use: true,
        }
    }

    #[test]
    fn sack_blocks_stay_with_their_ack_where_too_many_wait() {
        let mut remote = RemoteSender::new(Phase::Unknown, 1460, None);
        let has_sack = |number: u64| number % 7 == 0;
        let last = MAX_ACKS as u64 + 20;
        for number in 0..last {
            let mut sack = Edges::default();
            if has_sack(number) {
                sack.push(number as i64, number as i64 + 1);
            }
            remote.on_ack(0, &ack(number, &sack));
        }
        assert_eq!(remote.acks.len(), MAX_ACKS);
        for number in 20..last {
            let first = remote.acks.pop_front().expect("an ACK");
            let sack = remote.pop_sack();
            assert_eq!(first.received(9, &sack).record, number);
            let expected = has_sack(number).then_some((number as i64, number as i64 + 1));
            assert_eq!(sack.blocks().next(), expected);
        }
        assert!(remote.sacks.is_empty());
    }
}

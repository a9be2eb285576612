//! A data sender whose segments have no timestamps, as a capture point at its receiver sees it: its congestion window
//! from sequence numbers.
//!
//! Nothing shows which ACKs such a sender had when it sent a segment, and behind a queue, times of arrival do not either.
//! But the segments that arrive before the retransmission that begins a recovery left before it, and SND.UNA did not
//! move since the loss: the octets from there, less those that duplicate ACKs had reported, are the window. From one
//! such point to the next, the window follows from the octets acknowledged, if the sender grows it as RFC 5681 or RFC
//! 9438 say. There is an estimate where that leads to the window that the next reduction shows; where it does not, it is
//! interpolated, and its interval reaches to what the law says.

mod epoch;
mod growth;
mod holes;
mod samples;

use crate::cause::DUP_THRESH;
use crate::cwnd::CwndEstimator;
use crate::rows::Phase;
use crate::sender::ReceivedAck;
use epoch::{Acked, Arrived, Epoch, Explained, INITIAL_WINDOW, Path, Start};
use growth::{Law, w_max_after};
use holes::{Arrival, Holes};

/// Minimum RTO (Linux, `TCP_RTO_MIN`).
const MIN_RTO_NS: i64 = 200_000_000;

/// Segments above a hole of which the times are kept.
const MAX_ABOVE: usize = 16;

/// How often a law explained a reduction more often than not, at most.
const MAX_CREDIT: i32 = 8;

/// The credit from which a law is that of the sender.
const MIN_CREDIT: i32 = 2;

/// A segment of the sender.
#[derive(Clone, Copy, Debug)]
pub struct UntimedData {
    /// Time at the capture point.
    pub t_ns: i64,
    /// First octet, and one past the last.
    pub octets: (i64, i64),
    /// Whether it is a retransmission, if IPv4 IDs show it.
    pub retransmission: Option<bool>,
    /// Segments so far, and those among them that repeat octets.
    pub counts: (u32, u32),
}

/// The sender of one direction.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct UntimedSender {
    /// Takes the rows.
    pub cwnd: CwndEstimator,
    flow_id: u32,
    rtt_ns: i64,
    smss_bytes: i64,
    holes: Holes,
    snd_una: i64,
    wnd_bytes: Option<i64>,
    /// One past the last octet that the receiver ever allowed.
    window_end: Option<i64>,
    /// Octets delivered when the last ACK left.
    reported_bytes: i64,
    /// When the first segments above the oldest hole arrived.
    above_ns: Vec<i64>,
    last_ns: Option<i64>,
    /// The recovery point of the recovery under way.
    recovery_point: Option<i64>,
    epoch: Epoch,
    /// How often each law explained a reduction, less how often it did not.
    credit: [i32; 2],
    /// The window at the start of the epoch agreed with what had been before.
    verified: bool,
    /// Segments overtook others: their number starts no recovery (RFC 8985 §6.2).
    reordered: bool,
    recoveries: i64,
    timeouts: i64,
    dup_acks: i64,
    /// Segments so far, and those among them that repeat octets.
    counts: (u32, u32),
    last_row: Option<(Phase, Option<i64>)>,
}

impl UntimedSender {
    /// The sender of a connection whose handshake took `rtt_ns`.
    pub fn new(flow_id: u32, rtt_ns: i64) -> Self {
        Self {
            cwnd: CwndEstimator::new(Phase::SlowStart),
            flow_id,
            rtt_ns,
            smss_bytes: 1,
            holes: Holes::new(1),
            snd_una: 1,
            wnd_bytes: None,
            window_end: None,
            reported_bytes: 0,
            above_ns: Vec::new(),
            last_ns: None,
            recovery_point: None,
            epoch: Epoch::new(Start::Initial, 1, 0),
            credit: [0; 2],
            verified: true,
            reordered: false,
            recoveries: 0,
            timeouts: 0,
            dup_acks: 0,
            counts: (0, 0),
            last_row: None,
        }
    }

    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.cwnd.release_memory();
        self.epoch.release_memory();
        self.above_ns.shrink_to_fit();
    }

    /// Processes an ACK, which may be a duplicate one.
    pub fn on_ack(&mut self, ack: &ReceivedAck<'_>, duplicate: bool) {
        let (seg_ack, wnd_bytes) = (ack.seg_ack, ack.wnd_bytes);
        self.dup_acks += i64::from(duplicate);
        self.wnd_bytes = wnd_bytes.or(self.wnd_bytes);
        // RFC 9293 §3.8.6.2.1: the right edge does not move back, though octets that wait for others fill the buffer.
        let window_end = wnd_bytes.map(|wnd| seg_ack + wnd);
        self.window_end = self.window_end.max(window_end);
        let delivered = self.holes.delivered - self.reported_bytes;
        self.reported_bytes = self.holes.delivered;
        if seg_ack <= self.snd_una {
            return;
        }
        self.snd_una = seg_ack;
        if self.recovery_point.is_some_and(|point| seg_ack >= point) {
            self.recovery_point = None;
            self.epoch.begin(seg_ack);
        }
        self.epoch.on_ack(Acked {
            t_ns: ack.t_ns,
            seg_ack,
            delivered,
            window_end: self.window_end,
        });
    }

    /// Processes a segment.
    pub fn on_data(&mut self, data: UntimedData) {
        let (start, end) = data.octets;
        let now = data.t_ns;
        self.smss_bytes = self.smss_bytes.max(end - start);
        let highest = self.holes.highest;
        let arrival = self.holes.insert(data.octets, now);
        let silent = self.is_silent(now);
        let before_ns = self.last_ns.replace(now).unwrap_or(now);
        self.counts = data.counts;
        match arrival {
            Arrival::New { .. } if silent => {
                self.finish_unobserved();
                self.restart(Start::Unknown);
                self.push_unknown(before_ns.saturating_add(MIN_RTO_NS));
            }
            Arrival::New { skipped } => {
                if !self.holes.is_empty() && self.above_ns.len() < MAX_ABOVE {
                    self.above_ns.push(now);
                }
                self.extend_recovery(highest, skipped);
            }
            _ if silent => self.time_out(before_ns),
            Arrival::Oldest { since_ns } | Arrival::Other { since_ns }
                if self.is_reordered(&data, since_ns) =>
            {
                self.reordered = true;
                self.restart(Start::Unknown);
            }
            Arrival::Oldest { since_ns } if self.recovery_point.is_none() => {
                if data.retransmission == Some(true) {
                    self.shorten_rtt(now.saturating_sub(since_ns));
                }
                if !self.resume_recovery(start, highest) {
                    self.reduce(start, highest, now);
                }
            }
            Arrival::Repeated if self.recovery_point.is_none() => self.restart(Start::Unknown),
            _ => {}
        }
        if !matches!(arrival, Arrival::New { .. }) && self.holes.rcv_nxt() > start {
            self.above_ns.clear();
        }
        if self.epoch.is_full() || self.holes.is_full() {
            self.restart(Start::Unknown);
        }
        self.epoch.on_data(Arrived {
            t_ns: now,
            end,
            retransmission: !matches!(arrival, Arrival::New { .. }),
            counts: data.counts,
        });
    }

    /// Lowers the RTT to the time from a hole to a retransmission that duplicate ACKs triggered: the path may have
    /// become shorter. A timer may send one sooner.
    fn shorten_rtt(&mut self, repair_ns: i64) {
        if self.above_ns.len() >= DUP_THRESH as usize {
            self.rtt_ns = self.rtt_ns.min(repair_ns);
        }
    }

    /// Whether a segment that fills a part of a hole, which showed at `since_ns`, was overtaken. If the IDs do not show
    /// it: no retransmission comes so soon.
    fn is_reordered(&self, data: &UntimedData, since_ns: i64) -> bool {
        let soon = data.t_ns.saturating_sub(since_ns) < self.rtt_ns / 2;
        data.retransmission.map_or(soon, |again| !again)
    }

    /// Whether a timer of the sender may have expired since the last segment: it left a round trip after the ACK of
    /// that one at the latest.
    fn is_silent(&self, now_ns: i64) -> bool {
        let timeout_ns = MIN_RTO_NS.saturating_add(self.rtt_ns);
        self.last_ns
            .is_some_and(|last_ns| now_ns.saturating_sub(last_ns) > timeout_ns)
    }

    /// What was lost behind the last segment before a recovery left before it, too: a full queue drops neighbours.
    fn extend_recovery(&mut self, highest: i64, skipped: i64) {
        if skipped > 0 && self.recovery_point == Some(highest) {
            self.recovery_point = Some(highest + skipped);
            if let Start::Reduced { cwnd, .. } = &mut self.epoch.start {
                *cwnd += skipped / self.smss_bytes;
            }
        }
    }

    /// Whether the recovery that seemed to end when everything before `una` had arrived goes on, because what was lost
    /// behind the last segment before it left before it, too. A new recovery begins with a full window.
    fn resume_recovery(&mut self, una: i64, highest: i64) -> bool {
        let Start::Reduced { cwnd, lost } = &mut self.epoch.start else {
            return false;
        };
        let missing = self.holes.missing() / self.smss_bytes;
        let out = (highest - una) / self.smss_bytes;
        let resumes =
            una == self.epoch.snd_una && Law::ALL.iter().all(|law| out < law.reduced(*cwnd));
        if resumes {
            // It has filled a part of what was missing.
            *lost += missing + 1;
            self.recovery_point = Some(highest);
            self.verified = false;
        }
        resumes
    }

    /// A new epoch begins, of which the end of the last one is not known.
    fn restart(&mut self, start: Start) {
        if let Some(first_ns) = self.epoch.first_ns() {
            self.push_unknown(first_ns);
        }
        self.recovery_point = None;
        self.verified = false;
        self.epoch = Epoch::new(start, self.snd_una, self.epoch.w_max);
    }

    /// A retransmission after a silence that began at `last_ns`: a timeout, perhaps not the first one.
    fn time_out(&mut self, last_ns: i64) {
        let cwnd = match (self.recovery_point, self.epoch.start) {
            (Some(_), Start::Reduced { cwnd, .. }) => Some(cwnd),
            (None, _) => self.finish_unobserved(),
            _ => None,
        };
        self.restart(cwnd.map_or(Start::Unknown, |cwnd| Start::Timeout { cwnd }));
        self.epoch.w_max = 0;
        self.push_unknown(last_ns.saturating_add(MIN_RTO_NS));
        self.timeouts += 1;
    }

    /// The windows of the epoch, which no reduction ends, and the last one of them in segments: only if reductions have
    /// shown the law of the sender, and the window at the start was verified.
    fn finish_unobserved(&mut self) -> Option<i64> {
        let best = self.credit.into_iter().max()?;
        if !self.verified || best < MIN_CREDIT {
            return None;
        }
        let law = self.law();
        let mut laws = Law::ALL.to_vec();
        laws.retain(|&one| self.credit[one as usize] > 0 && law.is_none_or(|law| law == one));
        laws.sort_by_key(|&law| -self.credit[law as usize]);
        let paths: Option<Vec<_>> = laws
            .into_iter()
            .map(|law| self.epoch.path(law, self.smss_bytes, self.rtt_ns))
            .collect();
        let paths = paths?;
        let last_cwnd = paths.first()?.last_cwnd();
        let observed = None;
        self.push_windows(
            &Explained {
                paths,
                observed,
                reached: true,
            },
            self.snd_una,
        );
        self.epoch = Epoch::new(Start::Unknown, self.snd_una, self.epoch.w_max);
        Some(last_cwnd)
    }

    /// The law of the sender, if enough reductions show it, and not the other one.
    fn law(&self) -> Option<Law> {
        let leads = |one: Law, other: Law| {
            let credit = self.credit[one as usize];
            credit >= MIN_CREDIT && credit - self.credit[other as usize] >= MIN_CREDIT
        };
        if leads(Law::Reno, Law::Cubic) {
            Some(Law::Reno)
        } else {
            leads(Law::Cubic, Law::Reno).then_some(Law::Cubic)
        }
    }

    /// A retransmission of the octet `una` begins a recovery: octets up to `highest`
    /// had arrived before it.
    fn reduce(&mut self, una: i64, highest: i64, now_ns: i64) {
        let out = (highest - una) / self.smss_bytes;
        let candidates = self.window_before(out, highest, now_ns);
        let result = candidates
            .iter()
            .take(if self.law().is_some() { 2 } else { 1 })
            .find_map(|&cwnd| self.explain(una, cwnd).map(|explained| (cwnd, explained)));
        let observes = self.observes(una, candidates[0]);
        if observes {
            self.count_credit(candidates[0]);
        }
        // Too soon after the last reduction for the window to be full.
        let mut cwnd = match &result {
            Some((_, explained)) if !observes => explained.paths[0].last_cwnd(),
            _ => candidates[0],
        };
        let trusted = result.filter(|(_, explained)| {
            let law = explained.paths[0].law;
            self.credit[law as usize] > 0 || matches!(self.epoch.start, Start::Initial)
        });
        self.verified = trusted.is_some();
        match trusted {
            Some((observed, explained)) => {
                cwnd = explained
                    .observed
                    .map_or(explained.paths[0].last_cwnd(), |_| observed);
                self.push_windows(&explained, una);
            }
            None => {
                if let Some(explained) = self.interpolate(candidates[0], highest) {
                    self.push_windows(&explained, una);
                } else if let Some(first_ns) = self.epoch.first_ns() {
                    self.push_unknown(first_ns);
                }
            }
        }
        // It has filled a part of what was missing.
        let lost = self.holes.missing() / self.smss_bytes + 1;
        let start = Start::Reduced { cwnd, lost };
        self.recoveries += 1;
        self.recovery_point = Some(highest);
        let w_max = w_max_after(cwnd, self.epoch.w_max);
        self.epoch = Epoch::new(start, highest, w_max);
    }

    /// The windows that a sender with `out` segments outstanding may have had before the recovery that begins with the
    /// segment at `now_ns`, the likelier one first. Each duplicate ACK before that which began it let a segment go.
    ///
    /// RFC 8985 §6.2: the third duplicate ACK begins it, or the first segment sent more than a quarter of the minimum
    /// RTT after the lost one, or the time itself.
    fn window_before(&self, out: i64, highest: i64, now_ns: i64) -> [i64; 2] {
        if self.is_rwnd_limited(highest) {
            // The receive window let no segment go.
            return [out.max(1), (out - 1).max(1)];
        }
        let first_ns = self.above_ns.first().copied().unwrap_or(now_ns);
        let window_ns = self.rtt_ns / 4;
        let in_window = |t_ns: &&i64| t_ns.saturating_sub(first_ns) <= window_ns;
        let count = self.above_ns.iter().take_while(in_window).count();
        if self.above_ns.is_empty() || (count >= DUP_THRESH as usize && !self.reordered) {
            let cwnd = (out - (i64::from(DUP_THRESH) - 1)).max(1);
            return [cwnd; 2];
        }
        let count = count as i64;
        [(out - count + 1).max(1), (out - count).max(1)]
    }

    /// Whether the receive window ended with the octet before `highest`, but for a part of a segment.
    fn is_rwnd_limited(&self, highest: i64) -> bool {
        let end = self.window_end;
        end.is_some_and(|end| highest + self.smss_bytes > end)
    }

    /// Whether the window before a reduction at `una` is that of the epoch: a round trip has passed in it.
    fn observes(&self, una: i64, cwnd: i64) -> bool {
        match self.epoch.start {
            Start::Reduced { cwnd: before, .. } => {
                2 * (una - self.epoch.snd_una) >= before * self.smss_bytes
            }
            _ => cwnd > 0,
        }
    }

    /// How far a path may be from what is observed, in segments.
    fn tolerance(cwnd: i64) -> i64 {
        (cwnd / 12).max(1)
    }

    /// Counts which laws lead to `cwnd` segments.
    fn count_credit(&mut self, cwnd: i64) {
        if !matches!(self.epoch.start, Start::Reduced { .. }) {
            return;
        }
        let distance = |law| {
            let path = self.epoch.path(law, self.smss_bytes, self.rtt_ns);
            path.map_or(i64::MAX, |path| (path.last_cwnd() - cwnd).abs())
        };
        let distances = Law::ALL.map(distance);
        // What is observed may be off by a segment.
        let near = distances
            .into_iter()
            .min()
            .map(|least| least.saturating_add(1));
        for (credit, distance) in self.credit.iter_mut().zip(distances) {
            let step = if distance > Self::tolerance(cwnd) {
                -1
            } else {
                i32::from(Some(distance) <= near)
            };
            *credit = (*credit + step).clamp(-MIN_CREDIT, MAX_CREDIT);
        }
    }

    /// The paths of the epoch that lead to `cwnd` segments at `una`.
    fn explain(&self, una: i64, cwnd: i64) -> Option<Explained> {
        let observes = self.observes(una, cwnd);
        let law = self.law();
        let fits =
            |path: &Path| !observes || (path.last_cwnd() - cwnd).abs() <= Self::tolerance(cwnd);
        let laws = Law::ALL
            .into_iter()
            .filter(|&one| law.is_none_or(|law| law == one));
        let mut paths: Vec<_> = laws
            .filter_map(|law| self.epoch.path(law, self.smss_bytes, self.rtt_ns))
            .filter(fits)
            .collect();
        paths.sort_by_key(|path| {
            let credit = self.credit[path.law as usize];
            (-credit, (path.last_cwnd() - cwnd).abs())
        });
        if paths.is_empty() && self.epoch.start == Start::Initial {
            paths.extend(self.early_end_of_slow_start(cwnd));
        }
        (!paths.is_empty()).then_some(Explained {
            paths,
            observed: observes.then_some(cwnd),
            reached: true,
        })
    }

    /// The path of an epoch that does not lead to `cwnd` segments at its end, where recoveries have shown the law of the
    /// sender: the window is interpolated. Another sender, such as BBR, does not show its window.
    fn interpolate(&self, cwnd: i64, highest: i64) -> Option<Explained> {
        if self.is_rwnd_limited(highest) || !matches!(self.epoch.start, Start::Reduced { .. }) {
            return None;
        }
        let (law, credit) = (Law::ALL.into_iter())
            .map(|law| (law, self.credit[law as usize]))
            .max_by_key(|(_, credit)| *credit)?;
        let path = self.epoch.path(law, self.smss_bytes, self.rtt_ns)?;
        (credit >= MIN_CREDIT && path.first_cwnd() <= cwnd).then_some(Explained {
            paths: vec![path],
            observed: Some(cwnd),
            reached: false,
        })
    }

    /// The path on which slow start ends early enough that the window is `cwnd` segments in the end, as HyStart ends it
    /// when the delay grows (RFC 9406; Linux: with cubic).
    fn early_end_of_slow_start(&self, cwnd: i64) -> Option<Path> {
        let path = |ssthresh| {
            let window = (INITIAL_WINDOW, ssthresh);
            self.epoch
                .path_from(window, Law::Cubic, self.smss_bytes, self.rtt_ns)
        };
        let (mut low, mut high) = (2, cwnd);
        while low < high {
            let middle = low + (high - low) / 2;
            if path(middle).last_cwnd() >= cwnd {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let path = path(low);
        ((path.last_cwnd() - cwnd).abs() <= Self::tolerance(cwnd)).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Edges;

    const MS: i64 = 1_000_000;

    fn at(ms: i64, octets: (i64, i64), retransmission: Option<bool>) -> UntimedData {
        UntimedData {
            t_ns: ms * MS,
            octets,
            retransmission,
            counts: (0, 0),
        }
    }

    #[test]
    fn ids_show_whether_a_segment_was_overtaken_and_else_half_a_round_trip_does() {
        let sender = UntimedSender::new(1, 40 * MS);
        let reordered =
            |ms, retransmission| sender.is_reordered(&at(ms, (1, 2), retransmission), 0);
        assert_eq!([19, 21].map(|ms| reordered(ms, None)), [true, false]);
        assert_eq!([19, 21].map(|ms| reordered(ms, Some(true))), [false; 2]);
        assert_eq!([19, 21].map(|ms| reordered(ms, Some(false))), [true; 2]);
    }

    /// The RTT after a hole and, 10 ms after it showed, a segment that fills it: `above` segments came in between.
    fn rtt_after_repair(above: i64, retransmission: Option<bool>) -> i64 {
        let mut sender = UntimedSender::new(1, 18 * MS);
        sender.on_data(at(0, (1, 1001), None));
        for number in 0..above {
            let start = 2001 + 1000 * number;
            sender.on_data(at(1, (start, start + 1000), None));
        }
        sender.on_data(at(11, (1001, 2001), retransmission));
        sender.rtt_ns / MS
    }

    #[test]
    fn a_fast_retransmission_takes_a_round_trip_at_least() {
        assert_eq!(rtt_after_repair(3, Some(true)), 10);
        assert_eq!(
            rtt_after_repair(2, Some(true)),
            18,
            "a timer may have sent it"
        );
        assert_eq!(rtt_after_repair(3, None), 18, "it may have been overtaken");
    }

    /// Recoveries after a window of 10 segments, of which the second is lost, and so is the first one that arrives
    /// behind its retransmission. `above` segments come before what is sent again of that.
    fn recoveries(above: i64) -> i64 {
        let mut sender = UntimedSender::new(1, 18 * MS);
        let ack = |sender: &mut UntimedSender, ms, segments: i64| {
            let ack = ReceivedAck {
                t_ns: ms * MS,
                seg_ack: 1 + 1000 * segments,
                record: 0,
                sack: &Edges::default(),
                ts_ecr: None,
                ip_id: None,
                wnd_bytes: None,
                window: 0,
                pure: true,
                sack_in_use: true,
            };
            sender.on_ack(&ack, false);
        };
        let data = |sender: &mut UntimedSender, ms, segment| {
            sender.on_data(at(ms, (1 + 1000 * segment, 1001 + 1000 * segment), None));
        };
        (0..13)
            .filter(|&n| n != 1)
            .for_each(|n| data(&mut sender, n, n));
        ack(&mut sender, 13, 1);
        data(&mut sender, 30, 1);
        ack(&mut sender, 30, 13);
        (0..above).for_each(|n| data(&mut sender, 31 + n, 14 + n));
        data(&mut sender, 60, 13);
        sender.recoveries
    }

    #[test]
    fn a_recovery_goes_on_for_what_left_before_it_unless_the_window_was_full_again() {
        assert_eq!([3, 4, 5].map(recoveries), [1, 2, 2]);
    }
}

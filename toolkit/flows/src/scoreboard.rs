//! The scoreboard of one direction (RFC 6675 §4): the ranges of sequence space that were sent, their transmissions, the
//! cumulative acknowledgement and the SACKed octets.
//!
//! Each range is inserted, delivered and removed once, so the cost per segment does not depend on the window.

mod arrival;
mod gaps;
mod resent;
mod window_probe;

use std::collections::VecDeque;

use crate::artefacts::unseen::AckedUnseen;
use crate::intervals::Intervals;
use crate::retransmissions::{Retransmission, Retransmissions};
use crate::sequence::MAX_STEP;

pub use arrival::Arrival;

/// Maximum number of ranges. A window of 2^18 segments of 1448 octets is 380 MB.
pub const MAX_RANGES: usize = 1 << 18;

/// Maximum number of ranges if the capture has no ACKs of them: enough to recognise retransmissions.
const MAX_RANGES_UNACKED: usize = 1 << 12;

/// Maximum time between two copies of a packet in the capture. A retransmission has another IPv4 ID and comes later.
const MAX_COPY_DELAY_NS: i64 = 2_000_000;

/// Maximum payload of a segment if the handshake was not captured: an Ethernet frame without TCP options.
const DEFAULT_MSS_BYTES: i64 = 1460;

/// One transmission of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Transmission {
    /// Time.
    pub t_ns: i64,
    /// Record.
    pub record: u64,
    /// Timestamp value (RFC 7323 §3).
    pub ts_val: Option<u32>,
    /// IPv4 identification.
    pub ip_id: Option<u16>,
}

/// State of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum State {
    /// Not captured so far.
    Gap,
    /// Sent, but neither acknowledged nor SACKed.
    Outstanding,
    /// Acknowledged or SACKed.
    Delivered,
}

/// A range of sequence space: a segment, a part of one, or a gap between captured segments.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent observations, not states"
)]
pub struct Range {
    /// First octet.
    pub start: i64,
    /// One past the last octet.
    pub end: i64,
    /// Original transmission; of a gap, the transmission of the segment above it.
    pub first: Transmission,
    /// List of retransmissions.
    pub retransmissions: Option<u32>,
    /// State.
    pub state: State,
    /// The original transmission was not captured: the range was a gap that a retransmission filled.
    pub first_not_captured: bool,
    /// The original transmission is an octet sent into a window of zero, which the receiver refuses (RFC 9293
    /// §3.8.6.1).
    pub window_probe: bool,
    /// The range counts as one segment if the original transmission is lost. False for the second part of a segment
    /// that was split.
    pub primary: bool,
    /// It is a part of a segment, of which other octets were retransmitted.
    pub split: bool,
    /// Of a gap, it is not known into which segments the sender divided it.
    pub unknown_segments: bool,
    /// Of a gap, when the first segment was captured that may have been sent after it.
    pub passed_ns: i64,
}

impl Range {
    /// Whether a transmission was captured.
    pub fn captured(&self) -> bool {
        self.state != State::Gap
    }
}

/// The part of a segment that repeats octets or fills gaps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overlap {
    /// Octets that were sent before.
    pub repeated_bytes: i64,
    /// Octets that fill a gap.
    pub filled_bytes: i64,
    /// The first range that the segment repeats; `None` if the octets have been acknowledged.
    pub range: Option<Range>,
    /// The first gap that the segment fills.
    pub gap: Option<Range>,
}

impl Overlap {
    /// Whether the segment neither repeats octets nor fills gaps.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.repeated_bytes == 0 && self.filled_bytes == 0
    }
}

/// The result of processing an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// Newly acknowledged octets.
    pub acked_bytes: i64,
    /// Newly SACKed octets.
    pub sacked_bytes: i64,
    /// Time of transmission of the last segment that was delivered and never retransmitted (Karn, RFC 6298 §3).
    pub sample_sent_ns: Option<i64>,
    /// Some newly acknowledged octets had been retransmitted.
    pub covers_retransmission: bool,
    /// The ACK shows that the recovery is spurious.
    pub undo: bool,
}

impl Delivery {
    /// Whether the ACK reported nothing new.
    pub fn is_empty(&self) -> bool {
        self.acked_bytes == 0 && self.sacked_bytes == 0
    }

    /// Updates the time of transmission for the RTT sample with a delivered range.
    fn sample(&mut self, range: &Range) {
        if range.retransmissions.is_none() && range.captured() {
            self.sample_sent_ns = self.sample_sent_ns.max(Some(range.first.t_ns));
        }
    }
}

/// Whether a retransmission of `range` was sent after `lost_until_ns`.
fn retransmission_out(log: &Retransmissions, range: &Range, lost_until_ns: i64) -> bool {
    range
        .retransmissions
        .is_some_and(|list| log.newest(list).transmission.t_ns > lost_until_ns)
}

fn last_transmission(log: &Retransmissions, range: &Range) -> Transmission {
    range
        .retransmissions
        .map_or(range.first, |list| log.newest(list).transmission)
}

/// The scoreboard of one direction.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Scoreboard {
    ranges: VecDeque<Range>,
    sacked: Intervals,
    log: Retransmissions,
    retrans_out_bytes: i64,
    /// Retransmissions up to this time were lost when the timer expired.
    lost_until_ns: i64,
    /// Time of the first retransmission after the last new data.
    after_new_ns: Option<i64>,
    snd_una: i64,
    snd_nxt: i64,
    pub unseen: AckedUnseen,
    started: bool,
    acknowledged: bool,
    smss_bytes: i64,
    mss_bytes: i64,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            ranges: VecDeque::new(),
            sacked: Intervals::default(),
            log: Retransmissions::default(),
            retrans_out_bytes: 0,
            lost_until_ns: i64::MIN,
            after_new_ns: None,
            snd_una: 0,
            snd_nxt: 0,
            unseen: AckedUnseen::default(),
            started: false,
            acknowledged: false,
            smss_bytes: 0,
            mss_bytes: DEFAULT_MSS_BYTES,
        }
    }
}

impl Scoreboard {
    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.ranges.shrink_to_fit();
        self.sacked.release_memory();
        self.log.release_memory();
        self.unseen.release_memory();
    }

    /// SND.UNA: the oldest unacknowledged octet.
    pub fn snd_una(&self) -> i64 {
        self.snd_una
    }

    /// SND.NXT: the next octet to send.
    pub fn snd_nxt(&self) -> i64 {
        self.snd_nxt
    }

    /// SND.UNA and SND.NXT, which delimit round trips.
    pub fn round(&self) -> (i64, i64) {
        (self.snd_una, self.snd_nxt)
    }

    /// Whether the capture has shown a segment or an ACK of this direction.
    pub fn started(&self) -> bool {
        self.started
    }

    /// Whether the capture has shown an ACK of this direction.
    pub fn acknowledged(&self) -> bool {
        self.acknowledged
    }

    /// Outstanding octets less SACKed octets.
    pub fn flight_bytes(&self) -> i64 {
        (self.snd_nxt - self.snd_una - self.sacked.octets()).max(0)
    }

    /// Octets that were retransmitted and are neither acknowledged, SACKed nor lost (Linux: `retrans_out`).
    pub fn retrans_out_bytes(&self) -> i64 {
        self.retrans_out_bytes
    }

    /// SACKed octets above SND.UNA.
    pub fn sacked(&self) -> &Intervals {
        &self.sacked
    }

    /// The lists of retransmissions of all ranges.
    pub fn log(&self) -> &Retransmissions {
        &self.log
    }

    /// The same, mutable.
    pub fn log_mut(&mut self) -> &mut Retransmissions {
        &mut self.log
    }

    /// The ranges that are not acknowledged, in the order of sequence numbers.
    pub fn outstanding(&self) -> impl Iterator<Item = &Range> {
        self.ranges.iter()
    }

    /// The last transmission of `range`.
    pub fn last_transmission(&self, range: &Range) -> Transmission {
        last_transmission(&self.log, range)
    }

    /// The last transmission of the oldest outstanding range.
    pub fn head_transmission(&self) -> Option<Transmission> {
        self.ranges
            .front()
            .map(|range| self.last_transmission(range))
    }

    /// Updates the SMSS with the payload of a segment.
    pub fn observe_payload(&mut self, payload_bytes: i64) {
        self.smss_bytes = self.smss_bytes.max(payload_bytes.min(self.mss_bytes));
    }

    /// Sender maximum segment size: the largest payload so far, at most the MSS.
    pub fn smss_bytes(&self) -> i64 {
        self.smss_bytes
    }

    /// The number of segments of SMSS, the last one perhaps shorter, that hold so many octets.
    pub fn segments_in(&self, octets: i64) -> i64 {
        let smss = self.smss_bytes.max(1);
        (octets + smss - 1) / smss
    }

    /// The MSS that the receiver announced.
    pub fn mss_bytes(&self) -> i64 {
        self.mss_bytes
    }

    /// Sets the MSS that the receiver announced.
    pub fn set_mss(&mut self, mss_bytes: i64) {
        self.mss_bytes = mss_bytes;
    }

    fn start(&mut self, position: i64) {
        if !self.started {
            self.started = true;
            self.snd_una = position;
            self.snd_nxt = position;
        }
    }

    /// Index of the first range that ends after `at`.
    fn index_of(&self, at: i64) -> usize {
        match self.ranges.back() {
            Some(last) if last.end <= at => self.ranges.len(),
            _ => self.ranges.partition_point(|range| range.end <= at),
        }
    }

    /// Compares a segment `start..end` with the octets that were sent before it.
    pub fn overlap(&mut self, start: i64, end: i64) -> Overlap {
        self.start(start);
        if start >= self.snd_nxt {
            return Overlap::default();
        }
        let mut overlap = Overlap::default();
        let known = end.min(self.snd_nxt);
        let floor = self
            .ranges
            .front()
            .map_or(self.snd_nxt, |front| front.start);
        overlap.repeated_bytes += (known.min(floor) - start).max(0);
        for range in self.ranges.range(self.index_of(start)..) {
            if range.start >= known {
                break;
            }
            let octets = range.end.min(known) - range.start.max(start);
            if range.captured() {
                overlap.repeated_bytes += octets;
                overlap.range.get_or_insert(*range);
            } else {
                overlap.filled_bytes += octets;
                overlap.gap.get_or_insert(*range);
            }
        }
        overlap
    }

    /// Adds a segment of new octets. If it does not start at SND.NXT, it leaves a gap.
    pub fn send_new(&mut self, start: i64, end: i64, transmission: Transmission) {
        self.start(start);
        if start - self.snd_nxt > MAX_STEP || end <= self.snd_nxt {
            return;
        }
        let range = Range {
            start,
            end,
            first: transmission,
            retransmissions: None,
            state: State::Outstanding,
            first_not_captured: false,
            window_probe: false,
            primary: true,
            split: false,
            unknown_segments: false,
            passed_ns: self.after_new_ns.take().unwrap_or(transmission.t_ns),
        };
        if start > self.snd_nxt {
            self.ranges.push_back(Range {
                start: self.snd_nxt,
                end: start,
                state: State::Gap,
                ..range
            });
        }
        self.ranges.push_back(range);
        self.snd_nxt = end;
    }

    /// Removes the oldest range if there are too many, to bound the memory of a direction without ACKs.
    pub fn pop_excess(&mut self) -> Option<Range> {
        let max_ranges = if self.acknowledged {
            MAX_RANGES
        } else {
            MAX_RANGES_UNACKED
        };
        if self.ranges.len() <= max_ranges {
            return None;
        }
        let range = self.ranges.pop_front()?;
        if range.state == State::Outstanding
            && retransmission_out(&self.log, &range, self.lost_until_ns)
        {
            self.retrans_out_bytes -= range.end - range.start;
        }
        if !self.acknowledged {
            self.snd_una = range.end;
        }
        Some(range)
    }

    /// Whether the capture stores the segment `start..end` after its ACK. True once per octet.
    pub fn is_late(&mut self, start: i64, end: i64) -> bool {
        end <= self.snd_una && self.unseen.take(start, end)
    }

    /// Whether the capture has stored the packet of `transmission` before.
    pub fn is_stored_twice(&self, start: i64, transmission: &Transmission) -> bool {
        let range = self.ranges.get(self.index_of(start));
        range.is_some_and(|range| {
            let last = self.last_transmission(range);
            range.captured()
                && last.ip_id.is_some_and(|id| id != 0)
                && last.ip_id == transmission.ip_id
                && last.ts_val == transmission.ts_val
                && (0..MAX_COPY_DELAY_NS).contains(&(transmission.t_ns - last.t_ns))
        })
    }

    /// Adds a segment that repeats octets or fills a gap. The original transmission of a gap was lost before the
    /// capture point if the segment `is_retransmission`, and so were the retransmissions `lost`. Returns false if no
    /// range refers to the entry, because all repeated octets have been acknowledged or discarded.
    pub fn resend(
        &mut self,
        start: i64,
        end: i64,
        entry: Retransmission,
        is_retransmission: bool,
        lost: &[Retransmission],
    ) -> bool {
        let known = end.min(self.snd_nxt);
        self.after_new_ns.get_or_insert(entry.transmission.t_ns);
        self.split(start);
        self.split(known);
        let mut primary = entry.primary;
        let (from, to) = (self.index_of(start), self.index_of(known));
        for index in from..to {
            let range = &mut self.ranges[index];
            let gap = !range.captured();
            if gap {
                range.state = State::Outstanding;
            }
            if gap && !is_retransmission {
                range.first = entry.transmission;
                continue;
            }
            range.first_not_captured |= gap;
            let out = retransmission_out(&self.log, range, self.lost_until_ns);
            for &earlier in lost {
                let earlier = Retransmission { primary, ..earlier };
                let list = self.log.push(earlier, range.retransmissions);
                range.retransmissions = list.or(range.retransmissions);
            }
            let older = range.retransmissions;
            if let Some(list) = self.log.push(Retransmission { primary, ..entry }, older) {
                range.retransmissions = Some(list);
                primary = false;
                if range.state == State::Outstanding {
                    // A clock that was set back may leave the newest one behind the timeout.
                    let is_out = retransmission_out(&self.log, range, self.lost_until_ns);
                    self.retrans_out_bytes +=
                        (i64::from(is_out) - i64::from(out)) * (range.end - range.start);
                }
            }
        }
        if end > self.snd_nxt {
            self.send_new(self.snd_nxt, end, entry.transmission);
        }
        !primary
    }

    /// Splits the range that contains `at`. The cost is proportional to the number of ranges, but nearly all
    /// retransmissions repeat whole segments.
    fn split(&mut self, at: i64) {
        let index = self.index_of(at);
        let Some(range) = self.ranges.get_mut(index).filter(|range| range.start < at) else {
            return;
        };
        // A segment captured before segmentation offload is lost packet by packet.
        let primary = range.primary && range.end - range.start > self.smss_bytes;
        range.split = true;
        let mut tail = Range {
            start: at,
            primary,
            ..*range
        };
        range.end = at;
        tail.retransmissions = self.log.duplicate(tail.retransmissions);
        self.ranges.insert(index + 1, tail);
    }

    /// Processes a cumulative acknowledgement. Calls `deliver` for each range that was outstanding, and for each SACKed
    /// range that was retransmitted since. `deliver` takes over the list of retransmissions and must free it.
    pub fn acknowledge(&mut self, ack: i64, mut deliver: impl FnMut(Arrival<'_>)) -> Delivery {
        self.start(ack);
        if !self.acknowledged {
            self.acknowledged = true;
            // If the capture starts within the connection, the octets between were sent before it.
            if ack < self.snd_una && self.snd_una - ack <= MAX_STEP {
                self.snd_una = ack;
            }
        }
        let mut delivery = Delivery::default();
        if ack <= self.snd_una || ack - self.snd_nxt > MAX_STEP {
            return delivery;
        }
        delivery.acked_bytes = ack - self.snd_una;
        if ack > self.snd_nxt {
            self.unseen.add(self.snd_nxt.max(self.snd_una), ack);
        }
        self.sacked.remove_below(ack);
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        while let Some(front) = self.ranges.front_mut() {
            if front.start >= ack {
                break;
            }
            if front.state == State::Gap {
                self.unseen.add(front.start, front.end.min(ack));
            }
            if front.state == State::Outstanding
                && retransmission_out(&self.log, front, self.lost_until_ns)
            {
                self.retrans_out_bytes -= front.end.min(ack) - front.start;
            }
            if front.end > ack {
                front.start = ack;
                break;
            }
            let range = *front;
            self.ranges.pop_front();
            if range.state == State::Delivered {
                if range.retransmissions.is_some() {
                    deliver(Arrival::new(&self.log, &range));
                }
                continue;
            }
            delivery.covers_retransmission |= range.retransmissions.is_some();
            delivery.sample(&range);
            deliver(Arrival::new(&self.log, &range));
        }
        if delivery.covers_retransmission {
            // Segments above the retransmission may have arrived long before this ACK.
            delivery.sample_sent_ns = None;
        }
        delivery
    }

    /// Processes a SACK block; see [`Self::acknowledge`].
    pub fn sack(
        &mut self,
        left: i64,
        right: i64,
        delivery: &mut Delivery,
        mut deliver: impl FnMut(Arrival<'_>),
    ) {
        let (left, right) = (left.max(self.snd_una), right.min(self.snd_nxt));
        if left >= right || self.sacked.covers(left, right) {
            return;
        }
        let (ranges, log) = (&mut self.ranges, &self.log);
        let mut parts = [(0_i64, 0_i64); 8];
        let mut count = 0;
        self.sacked.insert(left, right, |from, to| {
            delivery.sacked_bytes += to - from;
            // The last part takes any excess. The loop below skips delivered ranges within it.
            if count < parts.len() {
                parts[count] = (from, to);
                count += 1;
            } else {
                parts[count - 1].1 = to;
            }
        });
        for &(from, to) in &parts[..count] {
            let first = ranges.partition_point(|range| range.end <= from);
            for range in ranges.range_mut(first..) {
                if range.start >= to {
                    break;
                }
                if range.state != State::Delivered
                    && self.sacked.covers(range.start.max(self.snd_una), range.end)
                {
                    if retransmission_out(log, range, self.lost_until_ns) {
                        self.retrans_out_bytes -= range.end - range.start;
                    }
                    delivery.sample(range);
                    deliver(Arrival::new(log, range));
                    range.state = State::Delivered;
                    range.retransmissions = None;
                }
            }
        }
    }
}

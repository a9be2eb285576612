//! What one direction has sent and what has become of it: ranges of octets with every transmission of them, the
//! cumulative acknowledgement, the SACKed ranges. Knows no connection, no clock and no cause.
//!
//! Each range is pushed once, popped once and reported as delivered once, so the cost per segment does not depend on
//! the window. Read RFC 6675 §4 (`Update`) first.

use std::collections::VecDeque;

use crate::history::{Copy, History};
use crate::intervals::Intervals;
use crate::sequence::MAX_STEP;
use crate::unseen::Unseen;

/// Ranges kept while the other direction acknowledges; a window of 2^18 segments of 1448 octets is 380 MB.
const MAX_RANGES: usize = 1 << 18;

/// Ranges kept while the other direction was never seen: enough to tell a repeated octet from a new one.
const MAX_RANGES_ONE_SIDED: usize = 1 << 12;

/// A packet stored twice comes within this time; a retransmission has an IPv4 ID of its own, and takes longer.
const STORED_TWICE_NS: i64 = 2_000_000;

/// Greatest payload assumed where the handshake was not captured: an Ethernet frame without TCP options.
const DEFAULT_MSS_BYTES: i64 = 1460;

/// One transmission as the capture shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmission {
    /// When it passed.
    pub t_ns: i64,
    /// Its record.
    pub record: u64,
    /// Its timestamp value (RFC 7323 §3).
    pub ts_val: Option<u32>,
    /// Its IPv4 identification.
    pub ip_id: Option<u16>,
}

/// What has become of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Never captured so far.
    Gap,
    /// Sent, and nothing says that it has arrived.
    Outstanding,
    /// The other end has it.
    Delivered,
}

/// A range of sequence space that was sent as one, or a gap that the capture has not seen filled.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// First octet.
    pub start: i64,
    /// One past the last.
    pub end: i64,
    /// First transmission; of a gap the segment that revealed it, with record kept.
    pub first: Transmission,
    /// Newest retransmission in the history.
    pub copies: Option<u32>,
    /// What has become of it.
    pub state: State,
    /// The first transmission was never captured: the range was a gap, and what filled it is a retransmission.
    pub first_unseen: bool,
    /// Counts as a lost segment of its own if the first transmission was lost (false for the tail of a split).
    pub lead: bool,
}

impl Range {
    /// Whether a transmission of it was captured.
    pub fn captured(&self) -> bool {
        self.state != State::Gap
    }
}

/// What a segment about to be recorded repeats or fills.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overlap {
    /// Octets that were sent before.
    pub repeated: i64,
    /// Octets that fill a gap.
    pub filled: i64,
    /// The first range that it repeats, as it was; none if those octets are acknowledged already.
    pub range: Option<Range>,
    /// The gap that it fills.
    pub gap: Option<Range>,
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// Octets newly acknowledged cumulatively.
    pub acked: i64,
    /// Octets newly reported by SACK.
    pub sacked: i64,
    /// Octets of `acked` that SACK had reported before.
    pub sacked_before: i64,
    /// Send time of the newest never-retransmitted segment that this delivers (Karn, RFC 6298 §3).
    pub sample_sent_ns: Option<i64>,
    /// Some of what was newly acknowledged had been retransmitted.
    pub covers_retransmission: bool,
    /// It shows that the episode of repair was not needed.
    pub undone: bool,
}

/// The scoreboard of one direction.
#[derive(Debug)]
pub struct Scoreboard {
    ranges: VecDeque<Range>,
    sacked: Intervals,
    history: History,
    repeated: i64,
    snd_una: i64,
    snd_nxt: i64,
    unseen: Unseen,
    started: bool,
    acknowledged: bool,
    segment_bytes: i64,
    mss_bytes: i64,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            ranges: VecDeque::new(),
            sacked: Intervals::default(),
            history: History::default(),
            repeated: 0,
            snd_una: 0,
            snd_nxt: 0,
            unseen: Unseen::default(),
            started: false,
            acknowledged: false,
            segment_bytes: 0,
            mss_bytes: DEFAULT_MSS_BYTES,
        }
    }
}

/// A range that arrives, with the retransmissions that matter.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The range, as it was.
    pub range: &'a Range,
    /// Its newest transmission.
    pub newest: Transmission,
    /// Its first retransmission.
    pub repeat: Option<Transmission>,
}

impl<'a> Arrival<'a> {
    fn new(history: &History, range: &'a Range) -> Self {
        let repeat = history.chain(range.copies).last();
        Self {
            range,
            newest: newest(history, range),
            repeat: repeat.map(|copy| copy.transmission),
        }
    }
}

fn newest(history: &History, range: &Range) -> Transmission {
    range
        .copies
        .map_or(range.first, |copy| history.at(copy).transmission)
}

impl Scoreboard {
    /// Oldest unacknowledged position.
    pub fn snd_una(&self) -> i64 {
        self.snd_una
    }

    /// Next position to be sent.
    pub fn snd_nxt(&self) -> i64 {
        self.snd_nxt
    }

    /// Whether anything of this direction is known.
    pub fn started(&self) -> bool {
        self.started
    }

    /// Octets outstanding less those that SACK reported.
    pub fn flight(&self) -> i64 {
        (self.snd_nxt - self.snd_una - self.sacked.octets()).max(0)
    }

    /// Octets that were sent again and have not been reported since.
    pub fn repeated(&self) -> i64 {
        self.repeated
    }

    /// What SACK has reported above the cumulative acknowledgement.
    pub fn sacked(&self) -> &Intervals {
        &self.sacked
    }

    /// The transmissions behind [`Range::copies`].
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The same, to give chains back.
    pub fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }

    /// Ranges not acknowledged cumulatively, in order. For the end of a connection.
    pub fn outstanding(&self) -> impl Iterator<Item = &Range> {
        self.ranges.iter()
    }

    /// The newest transmission of `range`.
    pub fn newest(&self, range: &Range) -> Transmission {
        newest(&self.history, range)
    }

    /// The newest transmission of the oldest range outstanding.
    pub fn oldest(&self) -> Option<Transmission> {
        self.ranges.front().map(|range| self.newest(range))
    }

    /// Takes note of a payload: losses are counted in segments of at most the greatest seen.
    pub fn note_segment_bytes(&mut self, payload_bytes: i64) {
        self.segment_bytes = self.segment_bytes.max(payload_bytes.min(self.mss_bytes));
    }

    /// Greatest payload seen, at most the maximum segment size.
    pub fn segment_bytes(&self) -> i64 {
        self.segment_bytes
    }

    /// Sets the greatest payload that a packet on the wire can have, as the handshake gives it.
    pub fn set_mss(&mut self, mss_bytes: i64) {
        self.mss_bytes = mss_bytes;
    }

    /// Starts at `position` if nothing was known.
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

    /// What `start..end` repeats or fills, before it is recorded.
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
        overlap.repeated += (known.min(floor) - start).max(0);
        for range in self.ranges.range(self.index_of(start)..) {
            if range.start >= known {
                break;
            }
            let octets = range.end.min(known) - range.start.max(start);
            if range.state == State::Gap {
                overlap.filled += octets;
                overlap.gap.get_or_insert(*range);
            } else {
                overlap.repeated += octets;
                overlap.range.get_or_insert(*range);
            }
        }
        overlap
    }

    /// Records a segment that only carries new octets; a jump ahead leaves a gap.
    pub fn send_fresh(&mut self, start: i64, end: i64, transmission: Transmission) {
        self.start(start);
        if start - self.snd_nxt > MAX_STEP || end <= self.snd_nxt {
            return;
        }
        let plain = Range {
            start,
            end,
            first: transmission,
            copies: None,
            state: State::Outstanding,
            first_unseen: false,
            lead: true,
        };
        if start > self.snd_nxt {
            self.ranges.push_back(Range {
                start: self.snd_nxt,
                end: start,
                state: State::Gap,
                ..plain
            });
        }
        self.ranges.push_back(plain);
        self.snd_nxt = end;
    }

    /// Takes out the oldest range if there are too many: a direction that is not acknowledged in the capture would
    /// take memory without bound.
    pub fn overflow(&mut self) -> Option<Range> {
        let most = if self.acknowledged {
            MAX_RANGES
        } else {
            MAX_RANGES_ONE_SIDED
        };
        if self.ranges.len() <= most {
            return None;
        }
        let range = self.ranges.pop_front()?;
        if range.copies.is_some() && range.state == State::Outstanding {
            self.repeated -= range.end - range.start;
        }
        if !self.acknowledged {
            self.snd_una = range.end;
        }
        Some(range)
    }

    /// Whether `start..end` was acknowledged before the capture shows it: it is late in the capture, and nothing else.
    pub fn late(&mut self, start: i64, end: i64) -> bool {
        end <= self.snd_una && self.unseen.take(start, end)
    }

    /// Whether `transmission` is one that was recorded already: stored twice by the capture.
    pub fn stored_twice(&self, start: i64, transmission: &Transmission) -> bool {
        let range = self.ranges.get(self.index_of(start));
        range.is_some_and(|range| {
            let before = self.newest(range);
            range.captured()
                && before.ip_id.is_some_and(|id| id != 0)
                && before.ip_id == transmission.ip_id
                && before.ts_val == transmission.ts_val
                && (0..STORED_TWICE_NS).contains(&(transmission.t_ns - before.t_ns))
        })
    }

    /// Records a segment that repeats or fills something; `copy` describes it. Gaps count as lost before the capture
    /// point when `proven` says that it was sent again. Returns whether a range keeps the copy: none does where all that
    /// is repeated was acknowledged or forgotten.
    pub fn send_again(&mut self, start: i64, end: i64, copy: Copy, proven: bool) -> bool {
        let known = end.min(self.snd_nxt);
        self.split(start);
        self.split(known);
        let mut lead = copy.lead;
        let (from, to) = (self.index_of(start), self.index_of(known));
        for index in from..to {
            let range = &mut self.ranges[index];
            let gap = range.state == State::Gap;
            if gap {
                range.state = State::Outstanding;
            }
            if gap && !proven {
                range.first = copy.transmission;
                continue;
            }
            range.first_unseen |= gap;
            let older = range.copies;
            if let Some(copies) = self.history.push(Copy { lead, ..copy }, older) {
                if older.is_none() && range.state == State::Outstanding {
                    self.repeated += range.end - range.start;
                }
                range.copies = Some(copies);
                lead = false;
            }
        }
        if end > self.snd_nxt {
            self.send_fresh(self.snd_nxt, end, copy.transmission);
        }
        !lead
    }

    /// Makes `at` a boundary between ranges. Moves the shorter side of the queue; segments repeat whole segments
    /// nearly always, so this is rare.
    fn split(&mut self, at: i64) {
        let index = self.index_of(at);
        let Some(range) = self.ranges.get_mut(index).filter(|range| range.start < at) else {
            return;
        };
        // A segment larger than a packet (captured before segmentation offload) is lost in pieces.
        let lead = range.lead && range.end - range.start > self.segment_bytes;
        let mut tail = Range {
            start: at,
            lead,
            ..*range
        };
        range.end = at;
        tail.copies = self.history.duplicate(tail.copies);
        self.ranges.insert(index + 1, tail);
    }

    /// Moves the cumulative acknowledgement to `ack`; `deliver` sees each range not known as delivered before, and
    /// each that was sent again after SACK had reported it (state `Delivered`). With a range it takes over its `copies`
    /// and gives them back to [`Self::history_mut`].
    pub fn acknowledge(&mut self, ack: i64, mut deliver: impl FnMut(Arrival<'_>)) -> Delivery {
        self.start(ack);
        if !self.acknowledged {
            self.acknowledged = true;
            // A capture that starts mid-flow: what lies between was sent before it.
            if ack < self.snd_una && self.snd_una - ack <= MAX_STEP {
                self.snd_una = ack;
            }
        }
        let mut delivery = Delivery::default();
        if ack <= self.snd_una || ack - self.snd_nxt > MAX_STEP {
            return delivery;
        }
        delivery.acked = ack - self.snd_una;
        if ack > self.snd_nxt {
            self.unseen.add(self.snd_nxt.max(self.snd_una), ack);
        }
        let sacked = self.sacked.octets();
        self.sacked.remove_below(ack);
        delivery.sacked_before = sacked - self.sacked.octets();
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        while let Some(front) = self.ranges.front_mut() {
            if front.start >= ack {
                break;
            }
            if front.state == State::Gap {
                self.unseen.add(front.start, front.end.min(ack));
            }
            let open = front.state == State::Outstanding && front.copies.is_some();
            if open {
                self.repeated -= front.end.min(ack) - front.start;
            }
            if front.end > ack {
                front.start = ack;
                break;
            }
            let range = *front;
            self.ranges.pop_front();
            if range.state == State::Delivered {
                if range.copies.is_some() {
                    deliver(Arrival::new(&self.history, &range));
                }
                continue;
            }
            delivery.covers_retransmission |= range.copies.is_some();
            delivery.offer(&range);
            deliver(Arrival::new(&self.history, &range));
        }
        if delivery.covers_retransmission {
            // What waited behind the repaired gap was delivered earlier than this acknowledgement says.
            delivery.sample_sent_ns = None;
        }
        delivery
    }

    /// Adds one SACK block; `deliver` as in [`Self::acknowledge`].
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
        let (ranges, history) = (&mut self.ranges, &self.history);
        let mut parts = [(0_i64, 0_i64); 8];
        let mut count = 0;
        self.sacked.insert(left, right, |from, to| {
            delivery.sacked += to - from;
            // More parts than fit are joined to the last: a range that was delivered is skipped there.
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
                    if range.copies.is_some() {
                        self.repeated -= range.end - range.start;
                    }
                    delivery.offer(range);
                    deliver(Arrival::new(history, range));
                    range.state = State::Delivered;
                    range.copies = None;
                }
            }
        }
    }
}

impl Delivery {
    /// Takes a delivered range's send time for the sample if Karn allows it and it is the newest.
    fn offer(&mut self, range: &Range) {
        if range.copies.is_none() && range.state != State::Gap {
            self.sample_sent_ns = self.sample_sent_ns.max(Some(range.first.t_ns));
        }
    }
}

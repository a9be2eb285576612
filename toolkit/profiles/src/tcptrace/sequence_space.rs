//! What one side sent, as tcptrace remembers it: a sorted list of segments per quarter of the sequence space, in which
//! segments that have been acknowledged and are adjacent become one.
//!
//! Read `docs/parity.md` first. tcptrace keeps the quarter of the last number and its two neighbours, and forgets the
//! opposite one.

use std::collections::VecDeque;

use crate::pack::{Pack, packed};

packed! {
    /// A segment, or adjacent ones that have been acknowledged.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Sent {
        /// First sequence number.
        pub first: u32,
        /// Last sequence number.
        pub last: u32,
        /// Time of the last transmission.
        pub t_us: i64,
        /// How often it was acknowledged.
        pub acked: u32,
        /// How often it was sent again.
        pub retransmissions: u32,
    }
}

/// A sorted list of segments.
type Quarter = VecDeque<Sent>;

/// What was sent.
#[derive(Debug, Default, PartialEq)]
pub struct SequenceSpace {
    /// Number of the quarter of [`SequenceSpace::lists`]\[1\]; `None` before the first segment.
    center: Option<u8>,
    /// The quarter before the center, the center, and the one after it.
    lists: [Quarter; 3],
    /// Whether the quarter before the center may have segments that are not acknowledged.
    open_before: bool,
}

/// What a segment repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Sequence numbers sent before.
    pub repeated: u32,
    /// Whether it ends before the end of an earlier segment that it starts before.
    pub out_of_order: bool,
}

/// Statistics of the retransmissions of one side.
pub trait OnRetransmission {
    /// A segment that was not acknowledged is sent again, for the `count`th time, `elapsed_us` after the last.
    fn retransmission(&mut self, count: u32, elapsed_us: u64);
}

/// Statistics of the acknowledgements of one side's data.
pub trait OnAck {
    /// An acknowledgement covers a segment and does not end with it.
    fn cumulative(&mut self);
    /// An acknowledgement ends with `sent`; `later` if an earlier segment was sent after it.
    fn exact(&mut self, sent: &Sent, later: bool);
    /// An acknowledgement ends with what was acknowledged before. Returns whether it is a duplicate.
    fn again(&mut self) -> bool;
    /// The third duplicate.
    fn third(&mut self);
}

/// The time from `from_us` to `to_us`; 0 if time runs backwards.
#[inline]
pub fn elapsed_us(from_us: i64, to_us: i64) -> u64 {
    to_us.saturating_sub(from_us).max(0) as u64
}

const fn quarter_of(seq: u32) -> u8 {
    (seq >> 30) as u8
}

const CENTER: usize = 1;

impl SequenceSpace {
    /// Whether all that was sent has been acknowledged.
    pub fn is_acknowledged(&self) -> bool {
        self.lists.iter().flatten().all(|sent| sent.acked > 0)
    }

    /// Makes the quarter of `seq` the center.
    #[inline]
    fn center_on(&mut self, seq: u32) {
        let quarter = quarter_of(seq);
        if self.center != Some(quarter) {
            self.move_to(quarter);
        }
    }

    #[cold]
    fn move_to(&mut self, quarter: u8) {
        let [before, center, after] = std::mem::take(&mut self.lists);
        let steps = self.center.map_or(0, |old| quarter.wrapping_sub(old) & 3);
        self.lists = match steps {
            1 => [center, after, Quarter::new()],
            2 => [after, Quarter::new(), before],
            3 => [Quarter::new(), before, center],
            _ => [before, center, after],
        };
        self.center = Some(quarter);
        self.open_before = true;
    }

    /// Adds a segment of `length` (at least 1) octets that starts at `seq`.
    #[inline]
    pub fn add(
        &mut self,
        seq: u32,
        length: u32,
        t_us: i64,
        on: &mut impl OnRetransmission,
    ) -> Added {
        let last = seq.wrapping_add(length - 1);
        self.center_on(seq);
        if quarter_of(seq) == quarter_of(last) {
            let list = &mut self.lists[CENTER];
            if list.back().is_none_or(|sent| sent.last < seq) {
                list.push_back(Sent::new(seq, last, t_us));
                return Added::default();
            }
            return insert(list, seq, last, t_us, on);
        }
        let end = seq | 0x3fff_ffff;
        let first = insert(&mut self.lists[CENTER], seq, end, t_us, on);
        let second = insert(
            &mut self.lists[CENTER + 1],
            end.wrapping_add(1),
            last,
            t_us,
            on,
        );
        Added {
            repeated: first.repeated + second.repeated,
            out_of_order: first.out_of_order || second.out_of_order,
        }
    }

    /// Takes an acknowledgement of all before `ack`.
    #[inline]
    pub fn acknowledge(&mut self, ack: u32, on: &mut impl OnAck) {
        self.center_on(ack);
        let mut newest_us = i64::MIN;
        if self.open_before {
            newest_us = self.acknowledge_before(on);
        }
        let list = &mut self.lists[CENTER];
        let mut changed = false;
        for sent in list.iter_mut() {
            if ack <= sent.first {
                break;
            }
            newest_us = newest_us.max(sent.t_us);
            let exact = ack == sent.last.wrapping_add(1);
            if sent.acked > 0 {
                if exact && on.again() {
                    sent.acked += 1;
                    if sent.acked == 4 {
                        on.third();
                    }
                } else {
                    sent.acked = 1;
                }
                continue;
            }
            sent.acked = 1;
            changed = true;
            if exact {
                on.exact(sent, newest_us > sent.t_us);
            } else {
                on.cumulative();
            }
        }
        if changed {
            collapse(list);
        }
    }

    /// Acknowledges the quarter before the center. Returns when its newest segment was sent.
    #[cold]
    fn acknowledge_before(&mut self, on: &mut impl OnAck) -> i64 {
        self.open_before = false;
        let mut newest_us = i64::MIN;
        for sent in self.lists[0].iter_mut().filter(|sent| sent.acked == 0) {
            sent.acked = 1;
            on.cumulative();
            newest_us = newest_us.max(sent.t_us);
        }
        collapse(&mut self.lists[0]);
        newest_us
    }
}

impl Sent {
    #[inline]
    fn new(first: u32, last: u32, t_us: i64) -> Self {
        Self {
            first,
            last,
            t_us,
            acked: 0,
            retransmissions: 0,
        }
    }

    /// Its length, by which tcptrace looks for segments of full size: 2^32 for a single octet, also that of a SYN.
    #[inline]
    pub fn full_size(&self) -> u64 {
        let (first, last) = (u64::from(self.first), u64::from(self.last));
        if last > first {
            last - first + 1
        } else {
            (1 << 32) - first + last
        }
    }
}

/// Inserts the numbers from `first` to `last`: those that are new as segments, the others as retransmissions.
#[cold]
fn insert(
    list: &mut Quarter,
    mut first: u32,
    last: u32,
    t_us: i64,
    on: &mut impl OnRetransmission,
) -> Added {
    let mut added = Added::default();
    let mut split = false;
    let mut at = list.partition_point(|sent| sent.last < first);
    while at < list.len() {
        let old = list[at];
        if first < old.first {
            added.out_of_order |= last < old.last;
            list.insert(at, Sent::new(first, last.min(old.first - 1), t_us));
            at += 1;
            if last < old.first {
                return added;
            }
            first = old.first;
        }
        let sent = &mut list[at];
        sent.retransmissions = sent.retransmissions.saturating_add(1);
        if !split {
            if sent.acked == 0 {
                on.retransmission(sent.retransmissions, elapsed_us(sent.t_us, t_us));
            }
            sent.t_us = t_us;
        }
        if last <= sent.last {
            added.repeated += last - first + 1;
            return added;
        }
        split = true;
        added.repeated += sent.last - first + 1;
        first = sent.last + 1;
        at += 1;
    }
    list.push_back(Sent::new(first, last, t_us));
    added
}

/// Joins acknowledged segments that are adjacent, up to the first one that is not acknowledged.
#[inline]
fn collapse(list: &mut Quarter) {
    let mut kept = 0;
    let mut next = 1;
    while next < list.len() && list[kept].acked > 0 {
        let sent = list[next];
        let before = &mut list[kept];
        if sent.acked > 0 && before.last.wrapping_add(1) == sent.first {
            before.last = sent.last;
            before.acked = sent.acked;
            before.t_us = before.t_us.max(sent.t_us);
        } else {
            kept += 1;
            if kept != next {
                list.swap(kept, next);
            }
        }
        next += 1;
    }
    if next > kept + 1 {
        drop_between(list, kept + 1, next);
    }
}

/// Removes the segments from `start` to before `end`; moves those before them, which are few.
#[inline]
fn drop_between(list: &mut Quarter, start: usize, end: usize) {
    if start == 1 {
        let front = list[0];
        list[end - 1] = front;
        for _ in 0..end - 1 {
            list.pop_front();
        }
    } else {
        list.drain(start..end);
    }
}

impl Pack for SequenceSpace {
    fn pack(&self, out: &mut Vec<u8>) {
        self.center.pack(out);
        self.open_before.pack(out);
        for list in &self.lists {
            list.pack(out);
        }
    }

    fn unpack(octets: &mut &[u8]) -> Self {
        let center = Option::unpack(octets);
        let open_before = bool::unpack(octets);
        Self {
            center,
            lists: [0; 3].map(|_| Quarter::unpack(octets)),
            open_before,
        }
    }
}

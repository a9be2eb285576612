//! Questions and answers of a connection, in whatever order the capture has them.
//!
//! With timestamps, a segment answers the one of which it echoes the timestamp (RFC 7323 §4); otherwise, an ACK answers
//! the octets before it. An answer is never sent before its question arrives, so that a time before it shows two
//! clocks. Where these differ by much, a file in the order of time has very much between a question and its answer: a
//! part of them is kept, evenly spread.

use std::collections::VecDeque;

use hindflight_decoder::{Segment, flags};

use crate::connection::seg_len;

/// Questions, and answers, that wait for each other, at most.
const MAX_WAITING: usize = 32;

/// When and where a value was captured.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    value: i64,
    t_ns: i64,
    record: u64,
}

/// Stamps in the order of their values. When there are too many, every second one is dropped, and of those that come
/// only as many are kept.
#[derive(Clone, Debug, Default)]
struct Thinned {
    kept: VecDeque<Stamp>,
    /// One in 2 to the power of this is kept.
    thinning: u32,
    seen: u32,
}

impl Thinned {
    fn push(&mut self, stamp: Stamp) {
        if self
            .kept
            .back()
            .is_some_and(|back| stamp.value <= back.value)
        {
            return;
        }
        self.seen = self.seen.wrapping_add(1);
        if self.seen & ((1 << self.thinning) - 1) != 0 {
            return;
        }
        if self.kept.len() == MAX_WAITING {
            let mut keep = false;
            self.kept.retain(|_| {
                keep = !keep;
                keep
            });
            self.thinning = (self.thinning + 1).min(20);
        }
        self.kept.push_back(stamp);
    }

    /// Takes all up to `value`, and returns the last one.
    fn take(&mut self, value: i64) -> Option<Stamp> {
        let mut last = None;
        while self.kept.front().is_some_and(|front| front.value <= value) {
            last = self.kept.pop_front();
        }
        if self.kept.len() < MAX_WAITING / 4 {
            self.thinning = self.thinning.saturating_sub(1);
        }
        last
    }
}

/// What one direction asks, and the other answers.
#[derive(Clone, Debug, Default)]
struct Exchange {
    newest: Option<i64>,
    questions: Thinned,
    answers: Thinned,
}

impl Exchange {
    /// Processes a question. Returns its answer, if the capture has that before it.
    fn ask(&mut self, stamp: Stamp) -> Option<Stamp> {
        if self.newest.is_some_and(|newest| stamp.value <= newest) {
            return None;
        }
        self.newest = Some(stamp.value);
        let answer = self.answers.take(stamp.value);
        let exact = answer.filter(|answer| answer.value == stamp.value);
        if exact.is_none() {
            self.questions.push(stamp);
        }
        exact
    }

    /// Processes an answer. Returns the last question that it is the first to answer.
    fn answer(&mut self, stamp: Stamp) -> Option<Stamp> {
        if self.newest.is_some_and(|newest| stamp.value > newest) {
            self.answers.push(stamp);
        }
        self.questions.take(stamp.value)
    }

    /// `value`, a timestamp or a sequence number, unwrapped.
    fn unwrap(&self, value: u32) -> i64 {
        self.newest.map_or(i64::from(value), |newest| {
            newest + i64::from(value.wrapping_sub(newest as u32) as i32)
        })
    }
}

/// An answer, and when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its direction.
    pub by: usize,
    /// Time after the question, by the times of the capture: negative if before it.
    pub delay_ns: i64,
    /// Records of the segments of each direction.
    pub records: [u64; 2],
}

/// The exchanges of a connection, one per direction that asks.
#[derive(Clone, Debug, Default)]
pub struct Exchanges {
    sides: [Exchange; 2],
    /// The values are timestamps.
    timestamps: bool,
}

impl Exchanges {
    /// Processes the next segment, of direction `index`. Returns up to two answers: one to it that came before, and
    /// the one that it is.
    pub fn observe(&mut self, index: usize, segment: &Segment) -> [Option<Answer>; 2] {
        let stamps = segment.options.timestamps;
        if stamps.is_some() != self.timestamps {
            // The SYN decides; options that come and go are not compared.
            if self.sides.iter().any(|side| side.newest.is_some()) {
                return [None; 2];
            }
            self.timestamps = true;
        }
        let has = |flag: u16| segment.flags & flag != 0;
        let (asked, answered) = if let Some((val, ecr)) = stamps {
            (Some(val), (has(flags::ACK) && ecr != 0).then_some(ecr))
        } else {
            let octets = seg_len(segment) as u32;
            let asks = octets > 0 && !has(flags::RST);
            let end = segment.seq.wrapping_add(octets);
            (asks.then_some(end), has(flags::ACK).then_some(segment.ack))
        };
        let stamp = |value: i64| Stamp {
            value,
            t_ns: segment.t_ns,
            record: segment.record,
        };
        let other = 1 - index;
        let asked = asked.map(|value| stamp(self.sides[index].unwrap(value)));
        let answered = answered.map(|value| stamp(self.sides[other].unwrap(value)));
        let answer = asked.and_then(|asked| self.sides[index].ask(asked));
        let question = answered.and_then(|answered| self.sides[other].answer(answered));
        [
            answer.map(|answer| paired(other, answer, stamp(0))),
            question.map(|question| paired(index, stamp(0), question)),
        ]
    }
}

fn paired(by: usize, answer: Stamp, question: Stamp) -> Answer {
    let mut records = [question.record; 2];
    records[by] = answer.record;
    Answer {
        by,
        delay_ns: answer.t_ns.saturating_sub(question.t_ns),
        records,
    }
}

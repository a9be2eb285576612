//! Two clocks in one capture: a segment whose time is before that of the segment of the other direction that it
//! answers.
//!
//! With timestamps, every segment answers the one of which it echoes the timestamp (RFC 7323 §4); otherwise, an ACK
//! answers the octets before it.

use hindflight_decoder::{Segment, flags};

use crate::rows::{Direction, Note};

/// Differences that are not counted: interfaces with several queues stamp packets a little out of order.
pub const TOLERANCE_NS: i64 = 1_000_000;

/// Answers before the question until they are reported. A clock that was set back once shows one.
pub const MIN_COUNT: u64 = 3;

/// What one direction sent, and the other answered.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Exchange {
    newest: Option<i64>,
    /// A value that waits for its answer, and its time.
    sent: Option<(i64, i64)>,
    /// A value that was answered before it was stored, and the time of the answer.
    ahead: Option<(i64, i64)>,
}

impl Exchange {
    /// Processes a value that was sent at `t_ns`. Returns how long after its answer that was.
    fn send(&mut self, value: i64, t_ns: i64) -> Option<i64> {
        if self.newest.is_some_and(|newest| value <= newest) {
            return None;
        }
        self.newest = Some(value);
        if self.sent.is_none() {
            self.sent = Some((value, t_ns));
        }
        let (answered, answered_ns) = self.ahead.take_if(|ahead| ahead.0 <= value)?;
        (answered == value).then_some(t_ns.saturating_sub(answered_ns))
    }

    /// Processes the answer to `value`. Returns how long before the value it came.
    fn answer(&mut self, value: i64, t_ns: i64) -> Option<i64> {
        if self.newest.is_some_and(|newest| value > newest) && self.ahead.is_none() {
            self.ahead = Some((value, t_ns));
        }
        let (_, sent_ns) = self.sent.take_if(|sent| sent.0 <= value)?;
        Some(sent_ns.saturating_sub(t_ns))
    }

    /// The timestamp `value` (RFC 7323), unwrapped.
    fn unwrap(&self, value: u32) -> i64 {
        self.newest.map_or(i64::from(value), |newest| {
            newest + i64::from(value.wrapping_sub(newest as u32) as i32)
        })
    }
}

/// What a segment sends and answers.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Direction.
    pub index: usize,
    /// Time.
    pub t_ns: i64,
    /// Record.
    pub record: u64,
    /// Timestamps; the second one only with ACK.
    pub timestamps: Option<(u32, Option<u32>)>,
    /// One past its last octet, if it has any.
    pub end: Option<i64>,
    /// Acknowledgement number.
    pub ack: Option<i64>,
}

impl Link {
    /// That of `segment`, which occupies `seg_len` of the sequence space.
    pub fn of(segment: &Segment, note: &Note, seg_len: i64) -> Self {
        let has = |flag: u16| segment.flags & flag != 0;
        let stamps = segment.options.timestamps;
        Self {
            index: note.direction as usize,
            t_ns: segment.t_ns,
            record: segment.record,
            timestamps: stamps.map(|(val, ecr)| (val, has(flags::ACK).then_some(ecr))),
            end: (seg_len > 0 && !has(flags::RST)).then_some(note.seq + seg_len),
            ack: note.ack,
        }
    }
}

/// Compares the times of the two directions of a connection.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Clocks {
    exchanges: [Exchange; 2],
    /// The exchanges are of timestamps.
    timestamps: bool,
    early: [Early; 2],
}

/// Answers of one direction that are too early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Early {
    /// Number.
    pub count: u64,
    /// Longest time before what they answer.
    pub most_ns: i64,
    /// Record of the first.
    pub record: u64,
}

impl Clocks {
    /// Processes the next segment.
    pub fn observe(&mut self, link: &Link) {
        if link.timestamps.is_some() != self.timestamps {
            // The SYN decides; options that come and go are not compared.
            if self.exchanges.iter().any(|side| side.newest.is_some()) {
                return;
            }
            self.timestamps = true;
        }
        let (own, other) = (link.index, 1 - link.index);
        let (sent, answered) = match link.timestamps {
            Some((val, ecr)) => (
                Some(self.exchanges[own].unwrap(val)),
                ecr.filter(|&ecr| ecr != 0)
                    .map(|ecr| self.exchanges[other].unwrap(ecr)),
            ),
            None => (link.end, link.ack),
        };
        let late = sent.and_then(|value| self.exchanges[own].send(value, link.t_ns));
        let early = answered.and_then(|value| self.exchanges[other].answer(value, link.t_ns));
        for (behind, by_ns) in [(other, late), (own, early)] {
            if let Some(by_ns) = by_ns.filter(|&by_ns| by_ns > TOLERANCE_NS) {
                let early = &mut self.early[behind];
                if early.count == 0 {
                    early.record = link.record;
                }
                early.count += 1;
                early.most_ns = early.most_ns.max(by_ns);
            }
        }
    }

    /// The direction whose times are too early, if there is one, and by how much.
    pub fn early(&self) -> Option<(Direction, Early)> {
        let found = |index: usize| (self.early[index].count >= MIN_COUNT).then_some(index);
        let index = (0..2)
            .filter_map(found)
            .max_by_key(|&index| self.early[index].count)?;
        let direction = [Direction::A2b, Direction::B2a][index];
        Some((direction, self.early[index]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Data every 10 ms with its ACK 4 ms later, the times of which are `offset_ms` off, in the order of those times.
    fn observed(offset_ms: i64, timestamps: bool, by_time: bool) -> Clocks {
        let mut links = Vec::new();
        for n in 0..300_i64 {
            let (sent_ns, acked_ns) = (10 * n * MS, (10 * n + 4 + offset_ms) * MS);
            let val = 1000 + 10 * n as u32;
            links.push(Link {
                index: 0,
                t_ns: sent_ns,
                record: 2 * n as u64,
                timestamps: timestamps.then_some((val, Some(val - 10))),
                end: Some(100 * (n + 1)),
                ack: Some(1),
            });
            links.push(Link {
                index: 1,
                t_ns: acked_ns,
                record: 2 * n as u64 + 1,
                timestamps: timestamps.then_some((val, Some(val))),
                end: None,
                ack: Some(100 * (n + 1)),
            });
        }
        if by_time {
            links.sort_by_key(|link| link.t_ns);
        }
        let mut clocks = Clocks::default();
        for link in &links {
            clocks.observe(link);
        }
        clocks
    }

    #[test]
    fn answers_before_the_question_show_the_offset() {
        for (timestamps, by_time) in [(true, false), (true, true), (false, false), (false, true)] {
            let clocks = observed(-300, timestamps, by_time);
            let (direction, early) = clocks.early().expect("two clocks");
            let least = if by_time { 10 } else { 296 };
            assert_eq!(direction, Direction::B2a, "{timestamps} {by_time}");
            assert!(
                (least * MS..=296 * MS).contains(&early.most_ns),
                "{timestamps} {by_time}: {early:?}"
            );
            assert_eq!(observed(0, timestamps, by_time).early(), None);
        }
    }

    #[test]
    fn data_before_the_ack_that_they_answer_show_an_offset_of_the_other_sign() {
        // The echo comes back with the next data, 6 ms after the ACK.
        let (direction, early) = observed(50, true, false).early().expect("two clocks");
        assert_eq!((direction, early.most_ns), (Direction::A2b, 44 * MS));
        assert_eq!(
            observed(3, true, false).early(),
            None,
            "within the round trip"
        );
    }
}

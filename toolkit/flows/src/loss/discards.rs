//! Segments that the receiver discarded because their timestamps were too old (RFC 7323 §5, PAWS), on a path that became
//! shorter.

use std::collections::HashMap;

use crate::scoreboard::Range;

/// What was overtaken: segments that arrived after one with a later timestamp had moved the left edge of the window.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Overtaken {
    /// First octet of the oldest one.
    start: i64,
    /// Timestamp that made theirs too old.
    recent: u32,
    /// Record of the first ACK that answered one of them.
    record: u64,
}

/// The original transmissions that the receiver discarded.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Discards {
    /// Record of the ACK that answered the transmission of the range that starts at a position.
    answered: HashMap<i64, u64>,
    overtaken: Option<Overtaken>,
}

impl Discards {
    /// Whether an ACK answered the range at `start`.
    pub fn is_answered(&self, start: i64) -> bool {
        self.answered.contains_key(&start)
    }

    /// Notes that the ACK in `record` answered the range at `start`, and that it echoes `recent`. If no retransmission `can`
    /// have caused the ACK, the segments sent after this one with a timestamp older than `recent` arrived late as well.
    pub fn answer(&mut self, start: i64, record: u64, recent: u32, certain: bool) {
        self.answered.insert(start, record);
        if certain {
            let first = self.overtaken.filter(|first| start > first.start);
            let first = first.map_or((start, record), |first| (first.start, first.record));
            self.overtaken = Some(Overtaken {
                start: first.0,
                recent,
                record: first.1,
            });
        }
    }

    /// Forgets the range at `start`, and returns the record of the ACK that answered it.
    pub fn take(&mut self, start: i64) -> Option<u64> {
        let any = !self.answered.is_empty();
        any.then(|| self.answered.remove(&start)).flatten()
    }

    /// Record of the ACK which shows that the receiver may have discarded the original transmission of `range`.
    pub fn overtaken(&self, range: &Range) -> Option<u64> {
        let overtaken = self.overtaken?;
        let is_older = |val: u32| (val.wrapping_sub(overtaken.recent) as i32) < 0;
        let late = range.start >= overtaken.start && range.first.ts_val.is_some_and(is_older);
        late.then_some(overtaken.record)
    }

    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.answered.shrink_to_fit();
    }
}

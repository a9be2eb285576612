//! Segments that the receiver discarded because their timestamps were too old (RFC 7323 §5, PAWS), on a path that
//! became shorter.

use std::collections::HashMap;

use crate::ordering::is_older;
use crate::scoreboard::Range;

/// What was overtaken in a flight: segments that arrived after one with a later timestamp had moved the left edge of
/// the window.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Overtaken {
    /// First octet of the oldest one.
    start: i64,
    /// SND.NXT at the last ACK that answered one of them.
    end: i64,
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

    /// Notes that the ACK in `record` answered the range at `start`.
    pub fn answer(&mut self, start: i64, record: u64) {
        self.answered.insert(start, record);
    }

    /// Notes that the ACK in `record`, which no retransmission can have caused, answered the range at `start` and
    /// echoes `recent`: the segments sent after this one with an older timestamp arrived late as well. When SND.UNA,
    /// the first of `flight`, has passed what was in flight then, another flight is overtaken. The second of `flight`
    /// is SND.NXT.
    pub fn overtake(&mut self, start: i64, record: u64, recent: u32, flight: (i64, i64)) {
        let (una, end) = flight;
        let first = self
            .overtaken
            .filter(|first| start > first.start && una < first.end);
        let (start, record) = first.map_or((start, record), |first| (first.start, first.record));
        self.overtaken = Some(Overtaken {
            start,
            end,
            recent,
            record,
        });
    }

    /// Forgets the range at `start`, and returns the record of the ACK that answered it.
    pub fn take(&mut self, start: i64) -> Option<u64> {
        let any = !self.answered.is_empty();
        any.then(|| self.answered.remove(&start)).flatten()
    }

    /// Record of the ACK which shows that the receiver may have discarded the original transmission of `range`.
    pub fn overtaken(&self, range: &Range) -> Option<u64> {
        let overtaken = self.overtaken?;
        let older = |val: u32| is_older(val, overtaken.recent);
        let in_flight = (overtaken.start..overtaken.end).contains(&range.start);
        let late = in_flight && range.first.ts_val.is_some_and(older);
        late.then_some(overtaken.record)
    }

    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.answered.shrink_to_fit();
    }
}

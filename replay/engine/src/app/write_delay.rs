//! From the write of an octet to its reading in order: how long each write took.
//!
//! Does not depend on what delays them. A write counts as read when its last octet is, and only if that is before its time is
//! up.

use crate::sim::histogram::Histogram;
use crate::sim::ring::Ring;
use crate::sim::time::{NEVER, Nanos};

/// A write that has arrived and waits for a slow reader.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    at: Nanos,
    read_at: Nanos,
}

/// Octets written at one instant.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// Offset after its last octet.
    end: u64,
    at: Nanos,
    /// When that octet was, or will have been, read; `NEVER` while that is not known.
    read_at: Nanos,
}

/// Writes that are not read yet, and the delays of those that are.
#[derive(Debug)]
pub struct WriteDelays {
    /// The latest write, until it is read or another one follows: what leaves at the same instant joins it.
    latest: Option<Write>,
    /// Ends and times of those before it.
    earlier: Ring<(u64, Nanos)>,
    /// Those that have arrived and will be read later.
    waiting: Ring<Waiting>,
    written_to: u64,
    delays: Histogram,
}

impl Default for WriteDelays {
    fn default() -> Self {
        Self {
            latest: None,
            earlier: Ring::default(),
            waiting: Ring::default(),
            written_to: 1,
            delays: Histogram::default(),
        }
    }
}

impl WriteDelays {
    /// Octets up to `end` are written at `now`, if they were not before.
    #[inline]
    pub fn note_written(&mut self, end: u64, now: Nanos) {
        if end <= self.written_to {
            return;
        }
        self.written_to = end;
        match &mut self.latest {
            Some(write) if write.at == now => (write.end, write.read_at) = (end, NEVER),
            _ => self.begin(end, now),
        }
    }

    #[inline]
    fn begin(&mut self, end: u64, now: Nanos) {
        let next = Write {
            end,
            at: now,
            read_at: NEVER,
        };
        match self.latest.replace(next) {
            Some(write) if write.read_at == NEVER => self.earlier.push_back((write.end, write.at)),
            Some(write) => self.delays.add(write.read_at - write.at),
            None => {}
        }
    }

    /// Octets up to `arrived` are there in order now; `read_at` says when the application has read up to an offset.
    #[inline]
    pub fn note_arrived(&mut self, arrived: u64, now: Nanos, read_at: impl Fn(u64) -> Nanos) {
        self.close_latest();
        while let Some((end, at)) = self.next_earlier(arrived) {
            self.note_reading(at, read_at(end), now);
        }
        if let Some(write) = self.latest.take_if(|write| write.end <= arrived) {
            self.note_reading(write.at, read_at(write.end), now);
        }
    }

    #[inline]
    fn note_reading(&mut self, at: Nanos, read_at: Nanos, now: Nanos) {
        if read_at <= now {
            self.delays.add(read_at - at);
        } else {
            self.wait(Waiting { at, read_at }, now);
        }
    }

    #[inline(never)]
    fn wait(&mut self, write: Waiting, now: Nanos) {
        self.take_read(now);
        self.waiting.push_back(write);
    }

    /// Counts the writes that slow reading has come to the end of by `now`.
    fn take_read(&mut self, now: Nanos) {
        while let Some(&Waiting { at, read_at }) = self.waiting.front().filter(|w| w.read_at <= now)
        {
            self.delays.add(read_at - at);
            self.waiting.pop_front();
        }
    }

    /// Octets up to `arrived` will be there in order at `read_at`, and will be read at once. More may still be written
    /// before that.
    #[inline]
    pub fn note_arrives(&mut self, arrived: u64, read_at: Nanos) {
        while let Some((_, at)) = self.next_earlier(arrived) {
            self.delays.add(read_at - at);
        }
        if let Some(write) = &mut self.latest
            && write.end <= arrived
        {
            write.read_at = write.read_at.min(read_at);
        }
    }

    #[inline]
    fn next_earlier(&mut self, arrived: u64) -> Option<(u64, Nanos)> {
        self.earlier.front().filter(|(end, _)| *end <= arrived)?;
        self.earlier.pop_front()
    }

    /// Its time is up at `end`: what is read later does not count.
    pub fn settle(&mut self, end: Nanos) {
        self.close_latest();
        self.take_read(end);
    }

    /// Nothing joins a write that will have been read.
    #[inline]
    fn close_latest(&mut self) {
        if let Some(write) = self.latest.take_if(|write| write.read_at != NEVER) {
            self.delays.add(write.read_at - write.at);
        }
    }

    /// The delays so far.
    pub fn histogram(&self) -> &Histogram {
        &self.delays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Count and greatest of the delays.
    fn told(writes: &mut WriteDelays) -> (u64, Option<Nanos>) {
        writes.settle(1000);
        reported_at(writes)
    }

    fn reported_at(writes: &WriteDelays) -> (u64, Option<Nanos>) {
        (writes.histogram().count(), writes.histogram().max())
    }

    #[test]
    fn what_is_written_at_one_instant_is_read_with_its_last_octet() {
        let mut writes = WriteDelays::default();
        for (end, now) in [(11, 5), (21, 5), (21, 6), (31, 7)] {
            writes.note_written(end, now);
        }
        writes.note_arrived(20, 50, |_| 50);
        assert_eq!(told(&mut writes), (0, None));
        writes.note_arrived(31, 50, |end| 50 + end);
        assert_eq!(told(&mut writes), (2, Some(50 + 31 - 7)));
    }

    #[test]
    fn octets_join_a_write_whose_arrival_is_known_at_the_instant_of_the_write_alone() {
        let mut writes = WriteDelays::default();
        writes.note_written(11, 5);
        writes.note_arrives(11, 100);
        writes.note_written(21, 5);
        writes.note_arrives(21, 107);
        // What comes again changes nothing.
        writes.note_arrives(21, 115);
        writes.note_written(31, 6);
        assert_eq!(writes.histogram().count(), 1);
        assert_eq!(told(&mut writes), (1, Some(102)));
        writes.note_arrives(31, 300);
        assert_eq!(told(&mut writes), (2, Some(294)));
    }

    #[test]
    fn a_write_that_has_been_read_is_not_joined() {
        let mut writes = WriteDelays::default();
        writes.note_written(11, 5);
        writes.note_arrived(11, 5, |_| 5);
        writes.note_written(21, 5);
        writes.note_arrived(21, 9, |_| 9);
        assert_eq!(told(&mut writes), (2, Some(4)));
    }

    #[test]
    fn what_a_slow_reader_has_not_read_by_the_end_does_not_count() {
        let mut writes = WriteDelays::default();
        for (end, now) in [(11, 5), (21, 6), (31, 7)] {
            writes.note_written(end, now);
        }
        // An octet each 10: read at 160, 260 and 360.
        writes.note_arrived(21, 50, |end| 50 + 10 * end);
        assert_eq!(writes.histogram().count(), 0);
        writes.note_arrived(31, 200, |end| 50 + 10 * end);
        assert_eq!(
            writes.histogram().count(),
            1,
            "the first has been read by now"
        );
        writes.settle(260);
        assert_eq!(reported_at(&writes), (2, Some(254)));
        writes.settle(359);
        assert_eq!(reported_at(&writes), (2, Some(254)));
        writes.settle(360);
        assert_eq!(reported_at(&writes), (3, Some(353)));
    }
}

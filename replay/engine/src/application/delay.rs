//! From the write of an octet to its reading in order: how long each write took.
//!
//! Must not know what delays them. A write counts as read when its last octet is.

use crate::histogram::Histogram;
use crate::ring::Ring;
use crate::time::{NEVER, Nanos};

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
    written_to: u64,
    delays: Histogram,
}

impl Default for WriteDelays {
    fn default() -> Self {
        Self {
            latest: None,
            earlier: Ring::default(),
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

    /// Octets up to `arrived` are there in order; `read_at` says when the application has read up to an offset.
    #[inline]
    pub fn note_arrived(&mut self, arrived: u64, read_at: impl Fn(u64) -> Nanos) {
        self.settle();
        self.take_earlier(arrived, &read_at);
        if let Some(write) = self.latest.take_if(|write| write.end <= arrived) {
            self.delays.add(read_at(write.end) - write.at);
        }
    }

    /// Octets up to `arrived` will be there in order at `read_at`, and will be read at once. More may still be written
    /// before that.
    #[inline]
    pub fn note_arrives(&mut self, arrived: u64, read_at: Nanos) {
        self.take_earlier(arrived, |_| read_at);
        if let Some(write) = &mut self.latest
            && write.end <= arrived
        {
            write.read_at = write.read_at.min(read_at);
        }
    }

    #[inline]
    fn take_earlier(&mut self, arrived: u64, read_at: impl Fn(u64) -> Nanos) {
        while let Some(&(end, at)) = self.earlier.front().filter(|(end, _)| *end <= arrived) {
            self.delays.add(read_at(end) - at);
            self.earlier.pop_front();
        }
    }

    /// Nothing joins a write that will have been read.
    pub fn settle(&mut self) {
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
        writes.settle();
        (writes.histogram().count(), writes.histogram().greatest())
    }

    #[test]
    fn what_is_written_at_one_instant_is_read_with_its_last_octet() {
        let mut writes = WriteDelays::default();
        for (end, now) in [(11, 5), (21, 5), (21, 6), (31, 7)] {
            writes.note_written(end, now);
        }
        writes.note_arrived(20, |_| 50);
        assert_eq!(told(&mut writes), (0, None));
        writes.note_arrived(31, |end| 50 + end);
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
        writes.note_arrived(11, |_| 5);
        writes.note_written(21, 5);
        writes.note_arrived(21, |_| 9);
        assert_eq!(told(&mut writes), (2, Some(4)));
    }
}

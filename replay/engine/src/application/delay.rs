//! From the write of an octet to its reading in order: how long each write took.
//!
//! Must not know what delays them. A write counts as read when its last octet is.

use crate::histogram::Histogram;
use crate::ring::Ring;
use crate::time::Nanos;

/// Writes that are not read yet, and the delays of those that are.
#[derive(Debug)]
pub struct WriteDelays {
    /// Offset after the last octet of each write, and its time.
    pending: Ring<(u64, Nanos)>,
    written_to: u64,
    delays: Histogram,
    longest: Nanos,
}

impl Default for WriteDelays {
    fn default() -> Self {
        Self {
            pending: Ring::default(),
            written_to: 1,
            delays: Histogram::default(),
            longest: 0,
        }
    }
}

impl WriteDelays {
    /// Octets up to `end` are written at `now`, if they were not before.
    #[inline]
    pub fn note_written(&mut self, end: u64, now: Nanos) {
        if end > self.written_to {
            self.written_to = end;
            // What leaves at one instant is one write.
            match self.pending.back_mut() {
                Some((last_end, written)) if *written == now => *last_end = end,
                _ => self.pending.push_back((end, now)),
            }
        }
    }

    /// Octets up to `arrived` are there in order; `read_at` says when the application has read up to an offset.
    #[inline]
    pub fn note_arrived(&mut self, arrived: u64, read_at: impl Fn(u64) -> Nanos) {
        while let Some(&(end, written)) = self.pending.front().filter(|(end, _)| *end <= arrived) {
            let delay = read_at(end) - written;
            self.delays.add(delay);
            self.longest = self.longest.max(delay);
            self.pending.pop_front();
        }
    }

    /// The delays so far.
    pub fn histogram(&self) -> &Histogram {
        &self.delays
    }

    /// The longest of them.
    pub fn longest(&self) -> Option<Nanos> {
        (self.delays.count() > 0).then_some(self.longest)
    }
}

//! A reusable read buffer: the only memory that reading a capture needs.

use std::io::{self, Read};

/// Initial capacity. The buffer grows only while a damaged input is searched (see [`Buffer::ensure`]).
const INITIAL_BYTES: usize = 512 << 10;

/// A window on the input that starts at `offset`.
pub(crate) struct Buffer<R> {
    source: R,
    octets: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    ended: bool,
    error: Option<io::Error>,
}

impl<R: Read> Buffer<R> {
    pub fn new(source: R) -> Self {
        Self {
            source,
            octets: vec![0; INITIAL_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            error: None,
        }
    }

    /// Makes at least `need` octets available. Returns false if the input ends before that.
    #[inline]
    pub fn ensure(&mut self, need: usize) -> bool {
        self.end - self.start >= need || self.fill(need)
    }

    #[cold]
    fn fill(&mut self, need: usize) -> bool {
        self.octets.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.octets.len() < need {
            self.octets.resize(need.next_power_of_two(), 0);
        }
        while self.end < need && !self.ended {
            match self.source.read(&mut self.octets[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.error = Some(error);
                }
            }
        }
        self.end >= need
    }

    /// The octets available; call [`Buffer::ensure`] first.
    #[inline]
    pub fn octets(&self) -> &[u8] {
        &self.octets[self.start..self.end]
    }

    /// Skips `count` octets, or all that are available if there are fewer.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// The last `count` octets consumed. Valid until the next call of [`Buffer::ensure`].
    #[inline]
    pub fn consumed(&self, count: usize) -> &[u8] {
        &self.octets[self.start.saturating_sub(count)..self.start]
    }

    /// Offset of [`Buffer::octets`] in the input.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the buffer holds all the rest of the input.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The input.
    pub fn source(&self) -> &R {
        &self.source
    }

    /// Whether an error stopped reading and [`Buffer::take_error`] has not returned it.
    pub fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// The error that stopped reading, if any. Returns it once.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}

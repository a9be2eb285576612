//! One reusable buffer over a reader: the only memory that reading a capture takes. Knows no format.

use std::io::{self, Read};

/// Room at the start; it grows only while a damaged input is searched (see [`Buffer::ensure`]).
const START_BYTES: usize = 512 << 10;

/// What is in the buffer is the input from `offset` on.
pub(crate) struct Buffer<R> {
    source: R,
    octets: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    ended: bool,
    fault: Option<io::Error>,
}

impl<R: Read> Buffer<R> {
    pub fn new(source: R) -> Self {
        Self {
            source,
            octets: vec![0; START_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            fault: None,
        }
    }

    /// Makes at least `need` octets available if the input has them; says whether it has.
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
                Ok(more) => self.end += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.fault = Some(error);
                }
            }
        }
        self.end >= need
    }

    /// What is there now; [`Buffer::ensure`] first.
    #[inline]
    pub fn octets(&self) -> &[u8] {
        &self.octets[self.start..self.end]
    }

    /// Passes over `count` octets, at most those that are there.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// The `count` octets passed over last (nothing may have been ensured since).
    #[inline]
    pub fn passed(&self, count: usize) -> &[u8] {
        &self.octets[self.start.saturating_sub(count)..self.start]
    }

    /// Where [`Buffer::octets`] starts in the input.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether all that is left of the input is in the buffer.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// What ended the input before its end, if anything; given once.
    pub fn take_fault(&mut self) -> Option<io::Error> {
        self.fault.take()
    }
}

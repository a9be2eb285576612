//! The sending application of a flow: what it has to send by when, and how it gets it into the sender.
//!
//! Must not know links, windows or recovery. Octets are stream offsets as in a segment: the first is 1.

mod buffer;

use crate::config::{ApplicationConfig, FlowConfig, StackParams};
use crate::sender::Sender;

pub use buffer::Buffered;
use buffer::SendBuffer;

/// End of the stream of an application that never runs dry.
const ENDLESS: u64 = u64::MAX / 2;

/// An application and the socket that it writes to.
#[derive(Debug)]
pub struct Application {
    /// End of the octets that it has to send by now.
    produced: u64,
    /// End of the last octet that it will ever send; none: it never ends.
    last: Option<u64>,
    /// Octets of one write; none: all that is there.
    write_bytes: Option<u64>,
    /// Octets of the current write that found no room yet.
    unwritten: u64,
    buffer: Option<SendBuffer>,
}

impl Application {
    /// The application of `flow`, writing through a stack of `params`.
    pub fn new(flow: &FlowConfig, params: &StackParams) -> Self {
        let last = flow.size_bytes.map(|size| size + 1);
        let ApplicationConfig::Greedy { write_bytes } = flow.application;
        Self {
            produced: last.unwrap_or(ENDLESS),
            last,
            write_bytes: write_bytes.map(u64::from),
            unwritten: 0,
            buffer: params
                .send_buffer_bytes
                .map(|bytes| SendBuffer::new(bytes, params.send_buffer_max_bytes)),
        }
    }

    /// Writes what fits; says whether it wrote anything.
    #[inline]
    pub fn feed(&mut self, sender: &mut Sender) -> bool {
        let written = sender.write_end();
        if written >= self.produced || sender.established_at().is_none() {
            return false;
        }
        self.write(written, sender)
    }

    fn write(&mut self, written: u64, sender: &mut Sender) -> bool {
        let Some(buffer) = &mut self.buffer else {
            sender.write_to(self.produced, self.last == Some(self.produced));
            return true;
        };
        let Some(room) = buffer.room(&sender.buffered()) else {
            return false;
        };
        if self.unwritten == 0 {
            let left = self.produced - written;
            self.unwritten = self.write_bytes.map_or(left, |bytes| bytes.min(left));
        }
        let octets = room.min(self.unwritten);
        self.unwritten -= octets;
        let end = written + octets;
        sender.write_to(end, self.last == Some(end));
        true
    }
}

#[cfg(test)]
mod tests;

//! A proxy that is a process with two sockets: it reads from one what it can write to the other.
//!
//! Does not depend on policies of a proxy's own memory. PEPsal (`workers.c`) moves octets by `splice` through a pipe, does
//! not block, and waits for room in the socket (`EPOLLOUT`) once a write has failed.

use super::Proxy;
use crate::app::{SendBuffer, send_buffer};
use crate::config::{ProxyConfig, StackParams};
use crate::sim::time::Nanos;
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::Segment;
use crate::tcp::sender::Sender;

/// Linux (`pipe(7)`): slots of a pipe of 64 KiB, one per page. A segment that is spliced takes a slot of its own
/// (`skb_splice_bits`), so that the pipe holds 16 of them and not 64 KiB.
const PIPE_SLOTS: u64 = 16;
/// Linux: what fits into a slot, a page.
const SLOT_BYTES: u64 = 4096;
/// Linux (`skb_page_frag_refill`): the block of pages that `linear_to_page` copies spliced segments to, one behind the other.
const COPY_BYTES: u64 = 32_768;
/// Linux (`tcp_space`): 1448 octets of a segment take 1440 of a receive buffer, which holds one in 180 more.
const OCTETS_PER_SPARE_ONE: u64 = 180;
/// The largest piece of a write: the largest burst (`Sender::piece_room`).
const MAX_PIECE_BYTES: u64 = 65_536;
/// Linux (`tcp_sndbuf_expand`): memory of a send buffer when a connection is established: two windows of ten packets.
const SEND_BUFFER_BYTES: u64 = 2 * 10 * 2304;
/// Linux (`tcp_wmem`): maximum of the same.
const SEND_BUFFER_MAX_BYTES: u64 = 4 << 20;

/// Octets on their way from one socket to the other.
#[derive(Debug)]
pub struct Relay {
    buffer: Option<SendBuffer>,
    /// The process reads nothing before.
    first_read_at: Nanos,
    /// Octets of the first write that leave before the process writes more; none: the window alone decides, or the
    /// process has written more or waits for room.
    first_left_bytes: Option<u64>,
    /// The socket onward has refused octets, which wait in the pipe.
    awaits_room: bool,
    /// End of the write that is under way.
    write_to: u64,
    /// What the pipe holds of full segments of the connection upstream.
    pipe_bytes: u64,
    /// Where the memory is that segments are copied to.
    copies: Copies,
    /// Size of all buffers at their maximum.
    capacity_bytes: u64,
}

/// Memory of what is read. A piece of the connection onward holds so many fragments of it, each in one page.
///
/// Deviation: all segments count as full ones, and their driver keeps each in one block (`skb_head_is_locked`), so that
/// they are copied. Where it hands over pages each segment would be a fragment or two.
#[derive(Debug)]
struct Copies {
    /// Octets that were read.
    read_to: u64,
    /// Offset in the block.
    offset: u64,
    /// The block does not continue what was read before.
    breaks: bool,
    segment_bytes: u64,
}

impl Copies {
    fn of(segment_bytes: u64) -> Self {
        Self {
            read_to: 1,
            offset: 0,
            breaks: true,
            segment_bytes,
        }
    }

    /// The octets up to `end` are read, to be written to `to`. `cut`: more had come and the pipe was full; the segment that
    /// did not fit in has been copied for nothing (`splice_to_pipe`).
    fn note_read(&mut self, end: u64, cut: bool, to: &mut Sender) {
        while self.read_to < end {
            let within = self.offset % SLOT_BYTES;
            if self.breaks || within == 0 {
                to.begin_fragment(self.read_to);
            }
            let octets = (SLOT_BYTES - within).min(end - self.read_to);
            self.read_to += octets;
            self.offset = (self.offset + octets) % COPY_BYTES;
            self.breaks = false;
        }
        if cut {
            let wasted = self.segment_bytes.min(COPY_BYTES - self.offset);
            self.offset = (self.offset + wasted) % COPY_BYTES;
            self.breaks = true;
        }
    }
}

/// The stack of the connection onward: with the send buffer of Linux where it gives none.
pub fn with_send_buffer(params: &StackParams) -> StackParams {
    let mut params = *params;
    if params.send_buffer_bytes.is_none() {
        params.send_buffer_bytes = Some(SEND_BUFFER_BYTES);
        params.send_buffer_max_bytes = Some(SEND_BUFFER_MAX_BYTES);
    }
    params
}

impl Relay {
    /// A relay of `config` from a connection of the stack `upstream` to one of the stack `onward`.
    pub fn new(upstream: &StackParams, onward: &StackParams, config: &ProxyConfig) -> Self {
        let receive = (upstream.receive_buffer_max_bytes).unwrap_or(upstream.receive_buffer_bytes);
        let send = onward.send_buffer_max_bytes.or(onward.send_buffer_bytes);
        let pipe_bytes = PIPE_SLOTS * u64::from(upstream.smss_bytes).min(SLOT_BYTES);
        Self {
            buffer: send_buffer(onward),
            first_read_at: config.first_read_ns,
            first_left_bytes: config
                .first_left_pkts
                .map(|pkts| u64::from(pkts) * u64::from(onward.smss_bytes)),
            awaits_room: false,
            write_to: 1,
            pipe_bytes,
            copies: Copies::of(upstream.smss_bytes.into()),
            capacity_bytes: receive
                + receive / OCTETS_PER_SPARE_ONE
                + pipe_bytes
                + send.map_or(0, |send| send + MAX_PIECE_BYTES),
        }
    }

    /// Before this time it reads nothing.
    pub fn first_read_at(&self) -> Nanos {
        self.first_read_at
    }

    /// Size of all memory in octets, and of the piece that a socket takes whole once it has room for an octet.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Reads into the pipe what has arrived, and writes to the socket onward what it takes; returns whether it wrote an
    /// octet. It reads nothing before that socket is connected. Once the socket has refused some, it fills the pipe,
    /// waits for room there, and reads nothing either (`workers.c`): what comes meanwhile stays in the receiving
    /// socket.
    ///
    /// It writes what the pipe holds, and reads again after that. To be called again when what has been written has
    /// left, as far as it may: Linux sends each full piece before the write goes on, and the last one before it
    /// returns.
    pub fn run(&mut self, from: &mut Receiver, to: &mut Sender, now: Nanos) -> bool {
        let waits = now < self.first_read_at || !to.takes_data();
        if waits || self.awaits_room && !self.has_room(to, now) {
            return false;
        }
        self.awaits_room = false;
        if !self.is_writing(to) {
            self.write_to = self.read(from, to);
            if to.write_end() == self.write_to {
                return false;
            }
            if to.write_end() > 1 {
                // The second write begins.
                self.first_left_bytes = None;
            }
        }
        if !self.has_room(to, now) {
            // The process sleeps: nothing is written ahead of what leaves.
            self.first_left_bytes = None;
            self.awaits_room = true;
            self.write_to = to.write_end();
            self.read(from, to);
            return false;
        }
        let begin = to.write_end();
        to.write_to(self.write_to.min(begin + to.piece_room()), false);
        to.write_end() > begin
    }

    /// Whether it writes now although more of its first write may leave. Linux (`tcp_small_queue_check`): what the
    /// device has not confirmed yet holds back the rest, so that the process may come first.
    fn writes_ahead(&mut self, to: &Sender) -> bool {
        (self
            .first_left_bytes
            .take_if(|left| to.snd_nxt() > *left && to.write_end() > 1))
        .is_some()
    }

    /// Whether a write is under way.
    fn is_writing(&self, to: &Sender) -> bool {
        to.write_end() < self.write_to
    }

    /// Reads what the pipe takes; returns the end of that.
    fn read(&mut self, from: &mut Receiver, to: &mut Sender) -> u64 {
        let come = from.rcv_nxt();
        let read = come.min(to.write_end() + self.pipe_bytes);
        if read > self.copies.read_to {
            self.copies.note_read(read, come > read, to);
        }
        from.read_to(read, self.pipe_bytes);
        read
    }

    /// Whether the socket onward takes octets now.
    fn has_room(&mut self, to: &mut Sender, now: Nanos) -> bool {
        let Some(buffer) = &mut self.buffer else {
            return true;
        };
        let writable = buffer.is_writable(&to.buffered(now), true);
        to.note_writer(!writable);
        writable
    }
}

impl Proxy {
    /// Lets the process between two sockets run, once what has been written has left as far as it may: Linux sends what
    /// an ACK lets leave before it wakes a writer. Returns whether it wrote something.
    pub(super) fn splice(&mut self, now: Nanos) -> bool {
        let Some(sockets) = self.sockets.as_mut().filter(|_| self.crash.is_none()) else {
            return false;
        };
        let wrote = sockets.run(&mut self.upstream, &mut self.downstream, now);
        self.note_passed(now);
        wrote
    }

    /// Lets the process write more before the rest of its first write leaves, if `first_left_pkts` is set.
    pub(super) fn splice_ahead(&mut self, now: Nanos) {
        if (self.sockets.as_mut()).is_some_and(|relay| relay.writes_ahead(&self.downstream)) {
            while self.splice(now)
                && self
                    .sockets
                    .as_ref()
                    .is_some_and(|r| r.is_writing(&self.downstream))
            {}
        }
    }

    /// Writes the next segment between two sockets, once nothing more leaves of what has been written. Each turn writes
    /// an octet at least, of those that have arrived by now.
    pub(super) fn splice_and_transmit(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        while self.splice(now) {
            if self.transmit_own(now, slot) {
                return true;
            }
        }
        // It may have read something, which the window upstream reports.
        self.transmit_own(now, slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::ParamValues;
    use crate::cc::catalogue::Variant;
    use crate::config::{Profile, StackOverrides};
    use hindflight_kernels::{Purpose, StreamKey, StreamRng};

    const SEGMENT: u64 = 2048;

    /// The room in a new piece of a connection onward, once segments are read for it one at a time.
    fn room_in_piece(cut: bool) -> u64 {
        let overrides = StackOverrides {
            handshake: Some(false),
            smss_bytes: Some(SEGMENT as u32),
            ..StackOverrides::default()
        };
        let params = StackParams::resolve(Profile::Linux, &overrides);
        let draws = StreamRng::new(StreamKey::new(0, 0, Purpose::Controller));
        let controller = Variant::LinuxReno.controller(&params, &ParamValues::new(), draws);
        let mut onward = Sender::new(0, &params, controller);
        onward.open(0, 1 << 20);
        let mut copies = Copies::of(SEGMENT);
        for n in 1..60 {
            copies.note_read(1 + n * SEGMENT, cut, &mut onward);
        }
        assert_eq!(onward.write_end(), 1);
        onward.piece_room()
    }

    #[test]
    fn a_segment_that_the_pipe_does_not_take_leaves_a_gap_in_the_memory() {
        // 31 segments are the largest burst; they are in 16 pages.
        assert_eq!(room_in_piece(false), 31 * SEGMENT);
        // With a gap of one behind each of them 17 are in as many pages.
        assert_eq!(room_in_piece(true), 17 * SEGMENT);
    }
}

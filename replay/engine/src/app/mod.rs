//! The applications of a flow: what the sending one has to send by when and how it writes that into the sender, and what
//! the receiving one does with it.
//!
//! Does not depend on links, windows or recovery. Octets are stream offsets as in a segment: the first one is 1.

mod browser;
mod clocked;
mod data_source;
mod one_way_delay;
mod playout;
mod progress;
mod random;
mod send_buffer;
pub(crate) mod sink;
pub(crate) mod source;
mod write_delay;

use hindflight_kernels::{Purpose, StreamKey, StreamRng};

use crate::config::{ApplicationConfig, FlowConfig, StackParams};
use crate::sim::time::{NEVER, Nanos};
use crate::tcp::segment::Segment;
use crate::tcp::sender::Sender;

pub use browser::Browser;
pub use clocked::{Clocked, Periods};
pub use one_way_delay::OneWayDelays;
pub use playout::Playout;
pub use progress::{Progress, ProgressSummary, SecondsSummary};
pub use send_buffer::{Buffered, SendBuffer};
pub use write_delay::WriteDelays;

use browser::BrowserStreams;
use data_source::{DataSource, PageSizes};
use send_buffer::Limits;

/// End of the stream of an application that always has data.
const ENDLESS: u64 = u64::MAX / 2;
/// Octets that are due and not sent from which on a further write changes nothing: two of the largest bursts.
const BACKLOG_BYTES: u64 = 2 * 65_536;
/// Octets of one write of an application that writes for a time into a stack without a send buffer: the largest burst.
const BURST_WRITE_BYTES: u64 = 65_536;

/// An application and the socket that it writes to.
#[derive(Debug)]
pub struct Application {
    source: DataSource,
    /// When the next write is due that needs no request.
    next_write: Nanos,
    /// When it must be called: at the next write, unless so much waits to be sent that another write changes nothing. What
    /// is due by then is counted when the sender asks for more.
    deadline: Nanos,
    /// End of the octets that are due by now.
    produced: u64,
    /// Offset after the last octet that it will ever send, once that is known.
    last: Option<u64>,
    /// Octets of one write into the buffer; none: all that is due.
    write_bytes: Option<u64>,
    /// Octets of the current write that did not fit into the buffer yet.
    unwritten: u64,
    /// Octets of the first write that leave before the write goes on; none: the window alone decides, or that write has
    /// ended.
    first_left_bytes: Option<u64>,
    buffer: Option<SendBuffer>,
    /// Octets of a request, if it serves requests; next octet expected from the other end.
    request_bytes: u64,
    rcv_nxt: u64,
    /// When it stops writing.
    stop: Nanos,
    delays: WriteDelays,
}

impl Application {
    /// The application of `flow`, which writes into a stack of `params`; `key` opens its random streams.
    pub fn new(flow: &FlowConfig, params: &StackParams, key: StreamKey) -> Self {
        let last = flow.size_bytes.map(|size| size + 1);
        let (write_bytes, produced, request_bytes) = match &flow.application {
            ApplicationConfig::Greedy {
                write_bytes,
                first_write_ns: 0,
                ..
            } => (*write_bytes, last.unwrap_or(ENDLESS), 0),
            ApplicationConfig::Greedy { write_bytes, .. } => (*write_bytes, 1, 0),
            ApplicationConfig::Pages { request_bytes, .. } => (None, 1, *request_bytes),
            _ => (None, 1, 0),
        };
        let first_left_bytes = match &flow.application {
            ApplicationConfig::Greedy {
                first_left_pkts: Some(pkts),
                ..
            } => Some(u64::from(*pkts) * u64::from(params.smss_bytes)),
            _ => None,
        };
        Self {
            source: DataSource::new(&flow.application, params.smss_bytes, source_rng(key)),
            next_write: NEVER,
            deadline: NEVER,
            produced,
            last,
            write_bytes: write_bytes.map(u64::from),
            unwritten: 0,
            first_left_bytes,
            buffer: send_buffer(params),
            request_bytes: u64::from(request_bytes),
            rcv_nxt: 1,
            stop: flow.stop_ns.unwrap_or(NEVER),
            delays: WriteDelays::default(),
        }
    }

    /// The flow starts.
    pub fn begin(&mut self, now: Nanos) {
        self.next_write = self.source.begin(now);
        self.deadline = self.next_write.min(self.stop);
        if let Some(schedule) = self.source.schedule() {
            self.delays = WriteDelays::of_schedule(schedule);
        }
    }

    /// When it must be called even if nothing arrives.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        self.deadline
    }

    /// Its deadline has expired.
    pub fn on_deadline(&mut self, now: Nanos) {
        self.produce_due(now);
        self.deadline = self.next_write.min(self.stop);
    }

    /// Whether it is to stop now.
    pub fn is_to_stop(&self, now: Nanos) -> bool {
        self.stop <= now
    }

    /// It writes no more. Returns the end of its stream, unless it had written all of it before.
    ///
    /// What a bulk application without a buffer has not sent yet, it has never written.
    pub fn stop(&mut self, sender: &mut Sender) -> Option<u64> {
        (self.stop, self.deadline, self.next_write) = (NEVER, NEVER, NEVER);
        let bulk = matches!(self.source, DataSource::Bulk { .. });
        let bursts = matches!(self.source, DataSource::Bursts(_));
        let written = match &self.buffer {
            None if bulk => sender.snd_nxt(),
            _ if bulk || bursts => sender.write_end(),
            _ => self.produced,
        };
        if self.last.is_some_and(|last| last <= written) {
            return None;
        }
        self.source.exhaust();
        (self.produced, self.last, self.unwritten) = (written, Some(written), 0);
        if bulk || sender.write_end() >= written {
            sender.stop_at(written);
        }
        self.last
    }

    /// Takes what is due by `now` from the data source.
    fn produce_due(&mut self, now: Nanos) {
        if self.next_write > now {
            return;
        }
        let (octets, next) = self.source.take_due(now);
        self.next_write = next;
        match &self.source {
            // It writes all of it, as the network takes it.
            DataSource::Bulk { .. } => self.produced = self.last.unwrap_or(ENDLESS),
            DataSource::Bursts(bursts) => self.produced = if bursts.on() { ENDLESS } else { 1 },
            _ => self.produce(octets, now),
        }
    }

    /// The other end requests a page.
    pub fn on_request(&mut self, segment: &Segment, now: Nanos) {
        let number = (segment.seq - 1) / self.request_bytes.max(1);
        if let Some(octets) = self.source.request(number) {
            self.rcv_nxt += self.request_bytes;
            self.produce(octets, now);
        }
    }

    fn produce(&mut self, octets: u64, now: Nanos) {
        self.produced += octets;
        self.delays.note_written(self.produced, now);
        if self.source.is_exhausted() {
            self.last = Some(self.produced);
        }
    }

    /// Next octet expected from the other end: its requests up to here have arrived.
    #[inline]
    pub fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    /// Writes what fits. Returns whether it wrote anything. To be called whenever the sender has nothing to send.
    #[inline]
    pub fn feed(&mut self, sender: &mut Sender, now: Nanos) -> bool {
        if self.next_write != NEVER {
            self.catch_up(sender, now);
        }
        let written = sender.write_end();
        if written >= self.produced || !sender.takes_data() {
            return false;
        }
        self.write(written, sender, now)
    }

    /// Takes what was due before `now` and decides whether the next write matters. A write that is due now comes after what
    /// has arrived now.
    #[inline(never)]
    fn catch_up(&mut self, sender: &Sender, now: Nanos) {
        self.produce_due(now.saturating_sub(1));
        let backlog = self.produced.saturating_sub(sender.snd_nxt());
        let next = if backlog < BACKLOG_BYTES {
            self.next_write
        } else {
            NEVER
        };
        self.deadline = next.min(self.stop);
    }

    /// Finishes the first write before the rest of it leaves, if `first_left_pkts` is set. Linux
    /// (`tcp_small_queue_check`): what the device has not confirmed yet holds back the rest, while the application goes
    /// on.
    #[inline]
    pub fn write_ahead(&mut self, sender: &mut Sender, now: Nanos) {
        if (self.first_left_bytes)
            .is_some_and(|left| sender.snd_nxt() > left && sender.write_end() > 1)
        {
            self.finish_first_write(sender, now);
        }
    }

    #[inline(never)]
    fn finish_first_write(&mut self, sender: &mut Sender, now: Nanos) {
        self.first_left_bytes = None;
        while self.unwritten > 0 && self.feed(sender, now) {}
    }

    fn write(&mut self, written: u64, sender: &mut Sender, now: Nanos) -> bool {
        let Some(buffer) = &mut self.buffer else {
            let mut end = self.produced;
            if matches!(self.source, DataSource::Bursts(_)) {
                // What a burst has not sent by its end was never written, but for the last write.
                end = sender.snd_nxt() + BURST_WRITE_BYTES;
                if end < written + BURST_WRITE_BYTES / 2 {
                    return false;
                }
            }
            self.write_to(end, sender);
            return true;
        };
        let writable = buffer.is_writable(&sender.buffered(now), self.unwritten > 0);
        sender.note_writer(!writable);
        if !writable {
            // The socket does not block: it has taken a part of the write, and the next one is a new one.
            // Deviation: a blocking writer sleeps in `send` and goes on with the rest (docs/scenario.md).
            (self.unwritten, self.first_left_bytes) = (0, None);
            return false;
        }
        if self.unwritten == 0 {
            let left = self.produced - written;
            self.unwritten = self.write_bytes.map_or(left, |bytes| bytes.min(left));
        }
        let octets = sender.piece_room().min(self.unwritten);
        self.unwritten -= octets;
        if self.unwritten == 0 {
            self.first_left_bytes = None;
        }
        let end = written + octets;
        self.write_to(end, sender);
        // A bulk application writes now. The octets of the others have been waiting since they were due.
        self.delays.note_written(end, now);
        true
    }

    fn write_to(&self, end: u64, sender: &mut Sender) {
        let last = self.last == Some(end);
        sender.write_to(end, last);
        if last {
            sender.close();
        }
    }

    /// A segment leaves. A bulk application without a buffer writes its octets at that time.
    #[inline]
    pub fn note_departure(&mut self, segment: &Segment, now: Nanos) {
        self.delays.note_written(segment.end(), now);
    }

    /// Times from the writes to their reading.
    pub fn delays(&self) -> &WriteDelays {
        &self.delays
    }

    /// See [`WriteDelays::note_arrived`].
    #[inline]
    pub fn note_arrived(&mut self, arrived: u64, now: Nanos, read_at: impl Fn(u64) -> Nanos) {
        self.delays.note_arrived(arrived, now, read_at);
    }

    /// See [`WriteDelays::note_arrives`].
    #[inline]
    pub fn note_arrives(&mut self, arrived: u64, read_at: Nanos) {
        self.delays.note_arrives(arrived, read_at);
    }

    /// See [`WriteDelays::settle`].
    pub fn settle(&mut self, end: Nanos) {
        self.delays.settle(end);
    }
}

/// The send buffer of a socket of the stack `params`; none: unlimited.
pub fn send_buffer(params: &StackParams) -> Option<SendBuffer> {
    params.send_buffer_bytes.map(|memory_bytes| {
        SendBuffer::new(Limits {
            memory_bytes,
            max_memory_bytes: params.send_buffer_max_bytes,
            lowat_bytes: params.notsent_lowat_bytes,
            mss_bytes: params.mss_bytes(),
        })
    })
}

fn source_rng(key: StreamKey) -> StreamRng {
    StreamRng::new(key.with(Purpose::Application))
}

/// The receiving application.
#[derive(Debug)]
pub enum Client {
    /// Reads what arrives, up to an offset if the stream has an end.
    Reader(Option<u64>),
    /// Plays a stream.
    Player(Playout),
    /// Requests pages.
    Browser(Box<Browser>),
}

impl Client {
    /// The receiving end of the application of `flow`.
    pub fn new(flow: &FlowConfig, key: StreamKey) -> Self {
        match &flow.application {
            ApplicationConfig::Greedy { .. } => Self::Reader(flow.size_bytes.map(|size| size + 1)),
            ApplicationConfig::OnOff { .. } | ApplicationConfig::Bursts { .. } => {
                Self::Reader(None)
            }
            ApplicationConfig::Writes { bytes, .. } => {
                Self::Reader(Some(1 + bytes.iter().copied().map(u64::from).sum::<u64>()))
            }
            ApplicationConfig::Stream {
                rate_bps,
                startup_ns,
                resume_ns,
                ..
            } => Self::Player(Playout::new(*rate_bps, *startup_ns, *resume_ns)),
            ApplicationConfig::Pages {
                page_bytes,
                think_ns,
                spread,
                request_bytes,
                pages,
            } => {
                let streams = BrowserStreams {
                    sizes: PageSizes::new(*page_bytes, *spread, source_rng(key)),
                    thinking: source_rng(StreamKey {
                        direction: 1,
                        ..key
                    }),
                };
                let browser = Browser::new(streams, *think_ns, *spread, *pages, *request_bytes);
                Self::Browser(Box::new(browser))
            }
        }
    }

    /// Offset after the last octet of the stream, if it has an end and that is known.
    #[inline]
    pub fn last(&self) -> Option<u64> {
        match self {
            Self::Reader(last) => *last,
            Self::Player(_) => None,
            Self::Browser(browser) => browser.last(),
        }
    }
}

#[cfg(test)]
mod tests;

//! Reads a capture on another thread than the one that counts, in batches that go back and forth.

use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use hindflight_decoder::{Issue, Reader, Segment};

/// Memory of a batch: a few of them fit into the cache of a core.
const BATCH_BYTES: usize = 64 << 10;

/// Batches that may wait.
const WAITING: usize = 16;

/// Reads segments on a separate thread, which makes a `T` of each.
pub struct Pipeline<T> {
    batches: Receiver<Message<T>>,
    used: SyncSender<Vec<T>>,
}

enum Message<T> {
    Segments(Vec<T>),
    End(Box<End>),
}

/// What is known at the end of a capture.
#[derive(Debug)]
pub struct End {
    /// Latest time of a packet in microseconds; `None` without any.
    pub last_us: Option<i64>,
    /// What was damaged.
    pub issues: Vec<Issue>,
}

/// What [`Pipeline::next`] found.
pub enum Next<T> {
    /// Segments, in the order of the capture.
    Segments(Vec<T>),
    /// Nothing yet.
    Waiting,
    /// The end of the capture.
    End(Box<End>),
    /// The reader has ended without an end: it was taken before, or the thread panicked.
    Gone,
}

impl<T: Send + 'static> Pipeline<T> {
    /// Begins to read; `push` appends what is handed over of each segment to a batch.
    pub fn start<R: Read + Send + 'static>(
        reader: Reader<R>,
        push: impl Fn(&Segment, &mut Vec<T>) + Send + 'static,
    ) -> Self {
        let (send, batches) = sync_channel(WAITING);
        let (used, reuse) = sync_channel(WAITING);
        std::thread::spawn(move || read(reader, push, &send, &reuse));
        Self { batches, used }
    }

    /// Waits at most `timeout` for segments.
    pub fn next(&self, timeout: Duration) -> Next<T> {
        match self.batches.recv_timeout(timeout) {
            Ok(Message::Segments(segments)) => Next::Segments(segments),
            Ok(Message::End(end)) => Next::End(end),
            Err(RecvTimeoutError::Timeout) => Next::Waiting,
            Err(RecvTimeoutError::Disconnected) => Next::Gone,
        }
    }

    /// Gives the memory of a batch back.
    pub fn reuse(&self, segments: Vec<T>) {
        // A full queue or a reader that has ended needs no memory.
        let _ = self.used.try_send(segments);
    }
}

/// Sends the segments of a capture until its end, or until nobody receives them.
fn read<R: Read, T>(
    mut reader: Reader<R>,
    push: impl Fn(&Segment, &mut Vec<T>),
    send: &SyncSender<Message<T>>,
    reuse: &Receiver<Vec<T>>,
) {
    let count = BATCH_BYTES / size_of::<T>().max(1);
    let empty = || match reuse.try_recv() {
        Ok(mut segments) => {
            segments.clear();
            segments
        }
        Err(TryRecvError::Empty | TryRecvError::Disconnected) => Vec::with_capacity(count),
    };
    let mut segments = empty();
    loop {
        while segments.len() < count
            && let Some(captured) = reader.next_segment()
        {
            push(captured.segment, &mut segments);
        }
        reader.take_others();
        let ended = reader.ended();
        if send.send(Message::Segments(segments)).is_err() {
            return;
        }
        if ended {
            break;
        }
        segments = empty();
    }
    let end = End {
        last_us: reader
            .tally()
            .span_ns
            .map(|(_, last_ns)| last_ns.div_euclid(1000)),
        issues: reader.issues().to_vec(),
    };
    // Nobody may want to know.
    let _ = send.send(Message::End(Box::new(end)));
}

//! Reads a capture on another thread than the one that counts, in batches that go back and forth.

use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use hindflight_decoder::{Issue, Reader};

use crate::packet::Packet;

/// Packets of a batch.
const BATCH: usize = 1024;

/// Batches that may wait.
const WAITING: usize = 16;

/// Reads packets on a thread of its own.
pub struct Pipeline {
    batches: Receiver<Message>,
    used: SyncSender<Vec<Packet>>,
}

enum Message {
    Packets(Vec<Packet>),
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
pub enum Next {
    /// Packets, in the order of the capture.
    Packets(Vec<Packet>),
    /// Nothing yet.
    Waiting,
    /// The end of the capture.
    End(Box<End>),
    /// The reader has ended without an end: it was taken before, or the thread panicked.
    Gone,
}

impl Pipeline {
    /// Begins to read.
    pub fn start<R: Read + Send + 'static>(reader: Reader<R>) -> Self {
        let (send, batches) = sync_channel(WAITING);
        let (used, reuse) = sync_channel(WAITING);
        std::thread::spawn(move || read(reader, &send, &reuse));
        Self { batches, used }
    }

    /// Waits at most `timeout` for packets.
    pub fn next(&self, timeout: Duration) -> Next {
        match self.batches.recv_timeout(timeout) {
            Ok(Message::Packets(packets)) => Next::Packets(packets),
            Ok(Message::End(end)) => Next::End(end),
            Err(RecvTimeoutError::Timeout) => Next::Waiting,
            Err(RecvTimeoutError::Disconnected) => Next::Gone,
        }
    }

    /// Gives the memory of a batch back.
    pub fn reuse(&self, packets: Vec<Packet>) {
        // A full queue or a reader that has ended needs no memory.
        let _ = self.used.try_send(packets);
    }
}

/// Sends the packets of a capture until its end, or until nobody receives them.
fn read<R: Read>(mut reader: Reader<R>, send: &SyncSender<Message>, reuse: &Receiver<Vec<Packet>>) {
    let empty = || match reuse.try_recv() {
        Ok(mut packets) => {
            packets.clear();
            packets
        }
        Err(TryRecvError::Empty | TryRecvError::Disconnected) => Vec::with_capacity(BATCH),
    };
    let mut packets = empty();
    loop {
        while packets.len() < BATCH
            && let Some(captured) = reader.next_segment()
        {
            packets.push(Packet::of(&captured.segment));
        }
        reader.take_others();
        let ended = reader.ended();
        if send.send(Message::Packets(packets)).is_err() {
            return;
        }
        if ended {
            break;
        }
        packets = empty();
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

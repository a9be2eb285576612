//! The node that sends a flow's data: a sender and the application that feeds it.
//!
//! Does not depend on links or the receiving end.

use super::{Application, WriteDelays};
use crate::sim::node::{Endpoint, Sent};
use crate::sim::time::Nanos;
use crate::tcp::segment::{Purpose, Segment};
use crate::tcp::sender::Sender;

/// A sender with its application.
pub struct Source {
    sender: Sender,
    application: Application,
    start: Nanos,
    first_window_bytes: u64,
}

impl Source {
    /// A source that opens at `start`; `first_window_bytes` is what the receiver promises if there is no handshake.
    pub fn new(
        sender: Sender,
        application: Application,
        start: Nanos,
        first_window_bytes: u64,
    ) -> Self {
        Self {
            sender,
            application,
            start,
            first_window_bytes,
        }
    }

    /// Octets up to `arrived` are at the other end in order now; `read_at` says when they are read.
    #[inline]
    pub fn note_arrived(&mut self, arrived: u64, now: Nanos, read_at: impl Fn(u64) -> Nanos) {
        self.application.note_arrived(arrived, now, read_at);
    }

    /// Octets up to `arrived` will be at the other end in order at `read_at`, and will be read at once.
    #[inline]
    pub fn note_arrives(&mut self, arrived: u64, read_at: Nanos) {
        self.application.note_arrives(arrived, read_at);
    }

    /// The flow's time is up at `end`.
    pub fn settle(&mut self, end: Nanos) {
        self.application.settle(end);
    }

    #[inline(never)]
    fn on_rarer_deadline(&mut self, now: Nanos) {
        if self.sender.is_opening() {
            self.application.on_deadline(now);
            self.sender.on_deadline(now);
        } else {
            self.sender.open(now, self.first_window_bytes);
            self.application.begin(now);
        }
    }

    /// Its sender.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// How long its application's writes took to be read.
    pub fn delays(&self) -> &WriteDelays {
        self.application.delays()
    }
}

impl Endpoint for Source {
    #[allow(
        clippy::inline_always,
        reason = "part of the short way of nearly every segment; a hint is not heard"
    )]
    #[inline(always)]
    fn receive(&mut self, segment: &Segment, now: Nanos) {
        if segment.purpose == Purpose::Request && self.sender.established_at().is_some() {
            self.application.on_request(segment, now);
        }
        self.sender.receive(segment, now);
    }

    #[inline]
    fn next_deadline(&self) -> Nanos {
        let application = self.application.next_deadline();
        if let Some(sender) = self.sender.fast_path_deadline() {
            sender.min(application)
        } else if self.sender.is_opening() {
            self.sender.next_deadline().min(application)
        } else {
            self.start
        }
    }

    #[allow(clippy::inline_always, reason = "as `receive`")]
    #[inline(always)]
    fn on_deadline(&mut self, now: Nanos) {
        if self.application.next_deadline() <= now || !self.sender.is_released(now) {
            self.on_rarer_deadline(now);
        }
    }

    /// What is written leaves first, and the application is woken when nothing of it can.
    #[allow(
        clippy::inline_always,
        reason = "part of the short way of nearly every segment; a hint is not heard"
    )]
    #[inline(always)]
    fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> Sent {
        loop {
            let sent = self.sender.transmit_next(now, slot);
            if sent != Sent::Nothing {
                slot.ack = self.sender.ack_for(self.application.rcv_nxt());
                self.application.note_departure(slot, now);
            }
            if sent == Sent::One {
                return sent;
            }
            if !self.application.feed(&mut self.sender, now) {
                return sent;
            }
            if sent == Sent::Last {
                return Sent::One;
            }
        }
    }
}

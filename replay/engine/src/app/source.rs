//! The node that sends a flow's data: a sender and the application that writes into it.
//!
//! Does not depend on links or on the receiving end.

use super::sink::Sink;
use super::{Application, OneWayDelays, WriteDelays};
use crate::sim::node::{Endpoint, Sent};
use crate::sim::time::Nanos;
use crate::tcp::segment::{Purpose, Segment};
use crate::tcp::sender::Sender;

/// A sender with its application.
pub struct Source {
    sender: Sender,
    application: Application,
    start: Nanos,
    initial_window_bytes: u64,
    /// The end of the stream of an application that has just stopped.
    stopped_at: Option<u64>,
    one_way: OneWayDelays,
}

impl Source {
    /// A source that opens at `start`; `initial_window_bytes` is the receiver's window if there is no handshake.
    pub fn new(
        sender: Sender,
        application: Application,
        start: Nanos,
        initial_window_bytes: u64,
    ) -> Self {
        Self {
            sender,
            application,
            start,
            initial_window_bytes,
            stopped_at: None,
            one_way: OneWayDelays::default(),
        }
    }

    /// Data may have arrived at the other end.
    #[inline]
    pub fn note_arrived(&mut self, sink: &Sink, now: Nanos) {
        let receiver = sink.receiver();
        let read_at = |end| receiver.read_at(end, now);
        self.application
            .note_arrived(receiver.rcv_nxt(), now, read_at);
        self.one_way.note_arrival(sink.came(), now);
    }

    /// Data will have arrived at the other end at `arrival`, and what is in order will be read at once.
    #[inline(always)]
    pub fn note_arrives(&mut self, sink: &Sink, arrival: Nanos) {
        let arrived = sink.receiver().rcv_nxt();
        self.application.note_arrives(arrived, arrival);
        self.one_way.note_arrival(sink.came(), arrival);
    }

    /// The flow ends at `end`.
    pub fn settle(&mut self, end: Nanos) {
        self.application.settle(end);
    }

    #[inline(never)]
    fn on_other_deadline(&mut self, now: Nanos) {
        if self.sender.is_opening() {
            self.application.on_deadline(now);
            self.sender.on_deadline(now);
            // After the timers: a FIN is more than a call for nothing.
            if self.application.is_to_stop(now) {
                self.stopped_at = self.application.stop(&mut self.sender);
            }
        } else {
            self.sender.open(now, self.initial_window_bytes);
            self.application.begin(now);
            if self.sender.opens_with_data() {
                // What is due now leaves with the SYN.
                self.application.on_deadline(now);
                self.application.feed(&mut self.sender, now);
            }
        }
    }

    /// The end of the stream, if the application has stopped since the last call.
    #[inline]
    pub fn take_stop(&mut self) -> Option<u64> {
        self.stopped_at.take()
    }

    /// Its sender.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Times from the writes of its application to their reading.
    pub fn delays(&self) -> &WriteDelays {
        self.application.delays()
    }

    /// Times from the first transmission of its octets to their arrival.
    pub fn one_way(&self) -> &OneWayDelays {
        &self.one_way
    }
}

impl Endpoint for Source {
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

    #[inline(always)]
    fn on_deadline(&mut self, now: Nanos) {
        if self.application.next_deadline() <= now || !self.sender.is_released(now) {
            self.on_other_deadline(now);
        }
    }

    /// Sends what is written; when nothing of it can leave, the application may write more.
    #[inline(always)]
    fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> Sent {
        loop {
            self.application.write_ahead(&mut self.sender, now);
            let sent = self.sender.transmit_next(now, slot);
            if sent != Sent::Nothing {
                slot.ack = self.sender.ack_for(self.application.rcv_nxt());
                self.application.note_departure(slot, now);
                self.one_way.note_departure(slot, now);
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

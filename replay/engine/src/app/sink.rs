//! The node that receives a flow's data: a receiver and the application that reads from it.
//!
//! Does not depend on links or on the sending end.

use super::{Browser, Client, Playout, Progress};
use crate::proxy::Damage;
use crate::sim::node::{Endpoint, Sent};
use crate::sim::time::Nanos;
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{Purpose, Segment, flags};

/// A receiver with its application.
pub struct Sink {
    receiver: Receiver,
    client: Client,
    progress: Progress,
    /// Octets of the segment that has come last.
    came: (u64, u64),
    /// End of the stream of an application that has stopped.
    stopped_at: Option<u64>,
    /// Something else than a reader is to be notified of what arrives.
    notifies: bool,
    /// Damaged octets, where a proxy may damage any.
    damage: Option<Box<Damage>>,
}

impl Sink {
    /// A sink of a flow that starts at `start`. With a handshake its application starts when the connection is established.
    /// Outages of its links end at `outages`.
    pub fn new(receiver: Receiver, mut client: Client, start: Nanos, outages: Vec<Nanos>) -> Self {
        if let Client::Browser(browser) = &mut client
            && receiver.is_established()
        {
            browser.open_at(start);
        }
        Self {
            receiver,
            notifies: !matches!(client, Client::Reader(_)),
            client,
            progress: Progress::new(start, outages),
            came: (0, 0),
            stopped_at: None,
            damage: None,
        }
    }

    /// Notes damaged octets: a proxy of the flow damages them.
    pub fn noting_damage(mut self, notes: bool) -> Self {
        self.damage = notes.then(Box::default);
        self.notifies |= notes;
        self
    }

    /// Damaged octets that have arrived in order.
    pub fn damaged_bytes(&self) -> u64 {
        let arrived = self.receiver.rcv_nxt();
        (self.damage.as_ref()).map_or(0, |damage| damage.bytes(arrived))
    }

    fn notify_client(&mut self, segment: &Segment, now: Nanos) {
        if let Some(damage) = &mut self.damage {
            damage.note_arrival(segment);
        }
        let arrived = self.receiver.rcv_nxt();
        match &mut self.client {
            Client::Reader(_) => {}
            Client::Player(playout) => playout.on_arrival(arrived, now),
            Client::Browser(browser) => {
                if self.receiver.is_established() {
                    browser.on_established(now);
                }
                browser.on_arrival(arrived, |end| self.receiver.read_at(end, now));
            }
        }
    }

    /// The flow ends at `end`.
    pub fn settle(&mut self, end: Nanos) {
        if let Client::Browser(browser) = &mut self.client {
            browser.settle(end);
        }
    }

    /// The connection has passed a proxy unsplit, so that this is its receiver. Returns the window scale that it announces.
    pub fn adopt(&mut self, receiver: Receiver) -> u8 {
        self.receiver = receiver;
        self.receiver.wscale()
    }

    /// Its receiver.
    #[inline]
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// First octet of the segment that has come last, and the one after its last.
    #[inline]
    pub fn came(&self) -> (u64, u64) {
        self.came
    }

    /// How its data have arrived.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Offset after the last octet of the stream, if it has an end and that is known.
    #[inline]
    pub fn last(&self) -> Option<u64> {
        self.stopped_at.or(self.client.last())
    }

    /// The application at the other end has stopped: the stream ends at `end`.
    pub fn stop_at(&mut self, end: u64) {
        self.stopped_at = Some(end);
        if let Client::Browser(browser) = &mut self.client {
            browser.stop();
        }
    }

    /// The client that requests pages, if there is one.
    #[inline]
    pub fn browser(&self) -> Option<&Browser> {
        if let Client::Browser(browser) = &self.client {
            Some(browser)
        } else {
            None
        }
    }

    /// The player of a stream, if there is one.
    pub fn playout(&self) -> Option<&Playout> {
        if let Client::Player(playout) = &self.client {
            Some(playout)
        } else {
            None
        }
    }
}

impl Endpoint for Sink {
    #[inline(always)]
    fn receive(&mut self, segment: &Segment, now: Nanos) {
        self.receiver.receive(segment, now);
        self.progress.note(self.receiver.rcv_nxt(), now);
        self.came = (segment.seq, segment.end());
        if self.notifies {
            self.notify_client(segment, now);
        }
    }

    #[inline]
    fn next_deadline(&self) -> Nanos {
        let receiver = self.receiver.next_deadline();
        self.browser()
            .map_or(receiver, |browser| receiver.min(browser.next_deadline()))
    }

    fn on_deadline(&mut self, now: Nanos) {
        self.receiver.on_deadline(now);
        if let Client::Browser(browser) = &mut self.client {
            browser.on_deadline(now);
        }
    }

    /// An acknowledgement, or a request that carries one.
    #[inline(always)]
    fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> Sent {
        if let Client::Browser(browser) = &mut self.client {
            transmit_request_or_ack(&mut self.receiver, browser, now, slot).into()
        } else if !self.receiver.transmit(now, slot) {
            Sent::Nothing
        } else if self.receiver.owes_nothing() {
            Sent::Last
        } else {
            Sent::One
        }
    }
}

fn transmit_request_or_ack(
    receiver: &mut Receiver,
    browser: &mut Browser,
    now: Nanos,
    slot: &mut Segment,
) -> bool {
    if let Some(number) = browser.take_request() {
        receiver.acknowledge(now, slot);
        let seq = 1 + number * u64::from(browser.request_bytes);
        add_request(slot, seq, browser.request_bytes);
        receiver.note_request(slot.end());
        return true;
    }
    receiver.transmit(now, slot)
}

/// Adds to an acknowledgement a request of `request_bytes` that starts at `seq`.
pub fn add_request(segment: &mut Segment, seq: u64, request_bytes: u16) {
    segment.seq = seq;
    segment.payload_bytes = request_bytes;
    segment.ip_bytes += request_bytes;
    segment.flags |= flags::PSH;
    segment.purpose = Purpose::Request;
}

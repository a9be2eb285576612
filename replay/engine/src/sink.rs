//! The node that receives a flow's data: a receiver and the application that reads from it.
//!
//! Must not know links or the sending end.

use crate::application::{Browser, Client, Playout};
use crate::receiver::Receiver;
use crate::segment::{Purpose, Segment, flags};
use crate::time::Nanos;

/// A receiver with its application.
pub struct Sink {
    receiver: Receiver,
    client: Client,
}

impl Sink {
    /// A sink of a flow that starts at `start`. With a handshake its application begins when the connection stands.
    pub fn new(receiver: Receiver, mut client: Client, start: Nanos) -> Self {
        if let Client::Browser(browser) = &mut client
            && receiver.is_established()
        {
            browser.open_at(start);
        }
        Self { receiver, client }
    }

    /// Takes a segment.
    #[inline]
    pub fn receive(&mut self, segment: &Segment, now: Nanos) {
        self.receiver.receive(segment, now);
        if !matches!(self.client, Client::Reader(_)) {
            self.tell_client(now);
        }
    }

    fn tell_client(&mut self, now: Nanos) {
        let arrived = self.receiver.rcv_nxt();
        match &mut self.client {
            Client::Reader(_) => {}
            Client::Player(playout) => playout.on_arrival(arrived, now),
            Client::Browser(browser) => {
                if self.receiver.is_established() {
                    browser.opened(now);
                }
                browser.on_arrival(arrived, |end| self.receiver.read_at(end, now));
            }
        }
    }

    /// When it wants to be called.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        let receiver = self.receiver.next_deadline();
        self.browser()
            .map_or(receiver, |browser| receiver.min(browser.next_deadline()))
    }

    /// Its time has come.
    pub fn on_deadline(&mut self, now: Nanos) {
        self.receiver.on_deadline(now);
        if let Client::Browser(browser) = &mut self.client {
            browser.on_deadline(now);
        }
    }

    /// The next segment: an acknowledgement, or a request that carries one.
    #[inline]
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        match &mut self.client {
            Client::Browser(browser) => poll_browser(&mut self.receiver, browser, now),
            Client::Reader(_) | Client::Player(_) => self.receiver.poll_transmit(now),
        }
    }

    /// Its receiver.
    #[inline]
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Offset after the last octet of the stream, where it has an end and that is known.
    #[inline]
    pub fn last(&self) -> Option<u64> {
        self.client.last()
    }

    /// What asks for pages, if something does.
    #[inline]
    pub fn browser(&self) -> Option<&Browser> {
        if let Client::Browser(browser) = &self.client {
            Some(browser)
        } else {
            None
        }
    }

    /// What plays a stream, if something does.
    pub fn playout(&self) -> Option<&Playout> {
        if let Client::Player(playout) = &self.client {
            Some(playout)
        } else {
            None
        }
    }
}

fn poll_browser(receiver: &mut Receiver, browser: &mut Browser, now: Nanos) -> Option<Segment> {
    if let Some(number) = browser.take_request() {
        let seq = 1 + number * u64::from(browser.request_bytes);
        return Some(request(receiver, seq, browser.request_bytes, now));
    }
    let mut segment = receiver.poll_transmit(now)?;
    segment.seq = 1 + browser.requested_bytes();
    Some(segment)
}

/// An acknowledgement of `receiver` that carries a request.
pub fn request(receiver: &mut Receiver, seq: u64, request_bytes: u16, now: Nanos) -> Segment {
    let mut segment = receiver.acknowledgement(now);
    segment.seq = seq;
    segment.payload_bytes = request_bytes;
    segment.ip_bytes += request_bytes;
    segment.flags |= flags::PSH;
    segment.purpose = Purpose::Request;
    segment
}

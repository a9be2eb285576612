//! Everything with a clock: the ends of connections and the proxies between them, behind four calls.
//!
//! Must not know links or the order of events.

use crate::application::Application;
use crate::proxy::Proxy;
use crate::receiver::Receiver;
use crate::segment::Segment;
use crate::sender::Sender;
use crate::time::Nanos;

/// A node.
pub enum Node {
    /// Sends data.
    Source(Box<Source>),
    /// Receives it.
    Sink(Box<Receiver>),
    /// Splits a connection.
    Proxy(Box<Proxy>),
}

/// A sender with the application that feeds it.
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

    fn next_deadline(&self) -> Nanos {
        if self.sender.is_opening() {
            self.sender.next_deadline()
        } else {
            self.start
        }
    }

    fn on_deadline(&mut self, now: Nanos) {
        if self.sender.is_opening() {
            self.sender.on_deadline(now);
        } else {
            self.sender.open(now, self.first_window_bytes);
        }
    }

    /// What is written leaves first; the application is woken when nothing of it can.
    #[inline]
    fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        loop {
            let segment = self.sender.poll_transmit(now);
            if segment.is_some() || !self.application.feed(&mut self.sender) {
                return segment;
            }
        }
    }
}

impl Node {
    /// Takes a segment that is for this node.
    #[inline]
    pub fn receive(&mut self, segment: &Segment, now: Nanos) {
        match self {
            Self::Source(source) => source.sender.receive(segment, now),
            Self::Sink(receiver) => receiver.receive(segment, now),
            Self::Proxy(proxy) => proxy.receive(segment, now),
        }
    }

    /// When it wants to be called; `NEVER` if it waits for segments only.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        match self {
            Self::Source(source) => source.next_deadline(),
            Self::Sink(receiver) => receiver.next_deadline(),
            Self::Proxy(proxy) => proxy.next_deadline(),
        }
    }

    /// Its time has come.
    pub fn on_deadline(&mut self, now: Nanos) {
        match self {
            Self::Source(source) => source.on_deadline(now),
            Self::Sink(receiver) => receiver.on_deadline(now),
            Self::Proxy(proxy) => proxy.on_deadline(now),
        }
    }

    /// The next segment that it sends now, if any.
    #[inline]
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        match self {
            Self::Source(source) => source.poll_transmit(now),
            Self::Sink(receiver) => receiver.poll_transmit(now),
            Self::Proxy(proxy) => proxy.poll_transmit(now),
        }
    }

    /// Its sending half, if it has one.
    pub fn sender(&self) -> Option<&Sender> {
        match self {
            Self::Source(source) => Some(&source.sender),
            Self::Sink(_) => None,
            Self::Proxy(proxy) => Some(proxy.downstream()),
        }
    }

    /// Its receiving half, if it has one.
    pub fn receiver(&self) -> Option<&Receiver> {
        match self {
            Self::Source(_) => None,
            Self::Sink(receiver) => Some(receiver),
            Self::Proxy(proxy) => Some(proxy.upstream()),
        }
    }

    /// The proxy, if it is one.
    pub fn proxy(&self) -> Option<&Proxy> {
        if let Self::Proxy(proxy) = self {
            Some(proxy)
        } else {
            None
        }
    }
}

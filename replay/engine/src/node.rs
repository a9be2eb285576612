//! Everything with a clock: the ends of connections and the proxies between them, behind four calls.
//!
//! Must not know links or the order of events.

use crate::proxy::Proxy;
use crate::receiver::Receiver;
use crate::segment::Segment;
use crate::sender::Sender;
use crate::sink::Sink;
use crate::source::Source;
use crate::time::Nanos;

/// A node.
pub enum Node {
    /// Sends data.
    Source(Box<Source>),
    /// Receives it.
    Sink(Box<Sink>),
    /// Splits a connection.
    Proxy(Box<Proxy>),
}

impl Node {
    /// Takes a segment that is for this node.
    #[inline]
    pub fn receive(&mut self, segment: &Segment, now: Nanos) {
        match self {
            Self::Source(source) => source.receive(segment, now),
            Self::Sink(sink) => sink.receive(segment, now),
            Self::Proxy(proxy) => proxy.receive(segment, now),
        }
    }

    /// When it wants to be called; `NEVER` if it waits for segments only.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        match self {
            Self::Source(source) => source.next_deadline(),
            Self::Sink(sink) => sink.next_deadline(),
            Self::Proxy(proxy) => proxy.next_deadline(),
        }
    }

    /// Its time has come.
    pub fn on_deadline(&mut self, now: Nanos) {
        match self {
            Self::Source(source) => source.on_deadline(now),
            Self::Sink(sink) => sink.on_deadline(now),
            Self::Proxy(proxy) => proxy.on_deadline(now),
        }
    }

    /// The next segment that it sends now, if any.
    #[inline]
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        match self {
            Self::Source(source) => source.poll_transmit(now),
            Self::Sink(sink) => sink.poll_transmit(now),
            Self::Proxy(proxy) => proxy.poll_transmit(now),
        }
    }

    /// Its sending half, if it has one.
    pub fn sender(&self) -> Option<&Sender> {
        match self {
            Self::Source(source) => Some(source.sender()),
            Self::Sink(_) => None,
            Self::Proxy(proxy) => Some(proxy.downstream()),
        }
    }

    /// Its receiving half, if it has one.
    pub fn receiver(&self) -> Option<&Receiver> {
        match self {
            Self::Source(_) => None,
            Self::Sink(sink) => Some(sink.receiver()),
            Self::Proxy(proxy) => Some(proxy.upstream()),
        }
    }

    /// The sending end of a flow, if it is one.
    pub fn source(&self) -> Option<&Source> {
        if let Self::Source(source) = self {
            Some(source)
        } else {
            None
        }
    }

    /// The receiving end of a flow, if it is one.
    pub fn sink(&self) -> Option<&Sink> {
        if let Self::Sink(sink) = self {
            Some(sink)
        } else {
            None
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

//! Everything with a clock: the ends of connections and the proxies between them, behind four calls.
//!
//! Does not depend on links or the order of events.

use super::time::{NEVER, Nanos};
use crate::app::sink::Sink;
use crate::app::source::Source;
use crate::net::cross_traffic::{DatagramSink, DatagramSource};
use crate::proxy::{AgentNode, Proxy};
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::Segment;
use crate::tcp::sender::Sender;

/// A node.
pub enum Node {
    /// Sends data.
    Source(Box<Source>),
    /// Receives it.
    Sink(Box<Sink>),
    /// Splits a connection.
    Proxy(Box<Proxy>),
    /// Sees the segments of a connection that it does not split.
    Agent(Box<AgentNode>),
    /// Sends datagrams.
    DatagramSource(Box<DatagramSource>),
    /// Receives them.
    DatagramSink(Box<DatagramSink>),
}

/// What an endpoint sends when it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing.
    Nothing,
    /// What is in the slot, and perhaps more.
    One,
    /// What is in the slot, and nothing else now.
    Last,
}

impl From<bool> for Sent {
    fn from(sent: bool) -> Self {
        if sent { Self::One } else { Self::Nothing }
    }
}

/// What has a clock and sends and takes segments.
pub trait Endpoint {
    /// Takes a segment that is for it.
    fn receive(&mut self, segment: &Segment, now: Nanos);

    /// When it needs to be called; `NEVER` if it waits for segments only.
    fn next_deadline(&self) -> Nanos;

    /// Its deadline has expired.
    fn on_deadline(&mut self, now: Nanos);

    /// Writes the next segment that it sends now into a slot, if there is one.
    fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> Sent;
}

impl Endpoint for Node {
    fn receive(&mut self, segment: &Segment, now: Nanos) {
        match self {
            Self::Source(source) => source.receive(segment, now),
            Self::Sink(sink) => sink.receive(segment, now),
            Self::Proxy(proxy) => proxy.receive(segment, now),
            Self::Agent(agent) => agent.receive(segment, now),
            Self::DatagramSink(sink) => sink.receive(segment, now),
            Self::DatagramSource(_) => {}
        }
    }

    fn next_deadline(&self) -> Nanos {
        match self {
            Self::Source(source) => source.next_deadline(),
            Self::Sink(sink) => sink.next_deadline(),
            Self::Proxy(proxy) => proxy.next_deadline(),
            Self::Agent(agent) => agent.next_deadline(),
            Self::DatagramSource(source) => source.next_deadline(),
            Self::DatagramSink(_) => NEVER,
        }
    }

    fn on_deadline(&mut self, now: Nanos) {
        match self {
            Self::Source(source) => source.on_deadline(now),
            Self::Sink(sink) => sink.on_deadline(now),
            Self::Proxy(proxy) => proxy.on_deadline(now),
            Self::Agent(agent) => agent.on_deadline(now),
            Self::DatagramSource(source) => source.on_deadline(now),
            Self::DatagramSink(_) => {}
        }
    }

    fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> Sent {
        match self {
            Self::Source(source) => source.transmit(now, slot),
            Self::Sink(sink) => sink.transmit(now, slot),
            Self::Proxy(proxy) => proxy.transmit(now, slot).into(),
            Self::Agent(agent) => agent.transmit(now, slot),
            Self::DatagramSource(source) => source.transmit(now, slot).into(),
            Self::DatagramSink(_) => Sent::Nothing,
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $kind:ident($node:ty),)+) => {
        $($(#[$doc])* pub fn $name(&self) -> Option<&$node> {
            if let Self::$kind(node) = self { Some(node) } else { None }
        })+
    };
}

impl Node {
    kinds! {
        /// The sending end of a flow, if it is one.
        source: Source(Source),
        /// The receiving end of a flow, if it is one.
        sink: Sink(Sink),
        /// The proxy, if it is one.
        proxy: Proxy(Proxy),
        /// The agent that does not split, if it is one.
        agent: Agent(AgentNode),
        /// What sends datagrams, if it does.
        datagram_source: DatagramSource(DatagramSource),
        /// What receives datagrams, if it does.
        datagram_sink: DatagramSink(DatagramSink),
    }

    /// Its sending half, if it has one; a proxy that passes a connection on unsplit has none.
    pub fn sender(&self) -> Option<&Sender> {
        match self {
            Self::Source(source) => Some(source.sender()),
            Self::Proxy(proxy) => (!proxy.passes()).then(|| proxy.downstream()),
            Self::Sink(_) | Self::Agent(_) | Self::DatagramSource(_) | Self::DatagramSink(_) => {
                None
            }
        }
    }

    /// Its receiving half, if it has one; see `sender`.
    pub fn receiver(&self) -> Option<&Receiver> {
        match self {
            Self::Sink(sink) => Some(sink.receiver()),
            Self::Proxy(proxy) => (!proxy.passes()).then(|| proxy.upstream()),
            Self::Source(_) | Self::Agent(_) | Self::DatagramSource(_) | Self::DatagramSink(_) => {
                None
            }
        }
    }

    /// Whether it is a proxy that passes a connection on unsplit.
    pub fn passes(&self) -> bool {
        self.proxy().is_some_and(Proxy::passes)
    }
}

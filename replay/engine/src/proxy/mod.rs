//! A split-connection proxy: a receiver towards the data sender, a sender towards the data receiver, and bounded memory
//! between them. Only the advertised window exerts back-pressure; only faults and resets lose data.
//!
//! Does not depend on links. Read RFC 3135 §2 and `docs/proxies.md` first.

mod acks;
mod admission;
mod agent;
mod cache;
mod damage;
mod faults;
mod forwarding;
mod limits;
mod occupancy;
mod pool;
mod sockets;

use std::ops::AddAssign;

use crate::app::sink::add_request;
use crate::config::{
    AcknowledgePolicy, FaultConfig, FaultKind, HandshakePolicy, ProxyConfig, StackParams,
};
use crate::sim::time::{NEVER, Nanos};
use crate::tcp::receiver::{Receiver, Space};
use crate::tcp::segment::{Direction, Purpose, Segment, flags};
use crate::tcp::sender::{ProxySample, Sender};
use acks::WithheldAcks;
pub use admission::{Admission, Gate};
pub use agent::AgentNode;
pub use cache::Cache;
pub use damage::Damage;
use forwarding::Forwarding;
pub use occupancy::Occupancy;
pub use pool::{Part, Pool, Share, min_promise};
pub use sockets::{Relay, with_send_buffer};

/// What a proxy counts besides its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// Connections that it refused because of its limit.
    pub refused: u64,
    /// Connections that it passed on unsplit because of its limit.
    pub unsplit: u64,
    /// Connections that it ended because they were idle or pending for too long.
    pub timeouts: u64,
    /// Segments that arrived while its state was on its way to another node.
    pub dropped: u64,
    /// ACKs that it removed from a queue because a newer one covers them.
    pub filtered_acks: u64,
    /// ACKs of the receiver that it did not pass on.
    pub suppressed_acks: u64,
    /// ACKs that it sent on behalf of the receiver.
    pub spoofed_acks: u64,
    /// Segments that it retransmitted although it does not split the connection.
    pub local_retransmissions: u64,
}

impl AddAssign for ProxyCounts {
    fn add_assign(&mut self, other: Self) {
        self.refused += other.refused;
        self.unsplit += other.unsplit;
        self.timeouts += other.timeouts;
        self.dropped += other.dropped;
        self.filtered_acks += other.filtered_acks;
        self.suppressed_acks += other.suppressed_acks;
        self.spoofed_acks += other.spoofed_acks;
        self.local_retransmissions += other.local_retransmissions;
    }
}

/// A proxy of one flow.
pub struct Proxy {
    upstream: Receiver,
    downstream: Sender,
    cache: Cache,
    /// Where the receive buffer is shared: its part in it.
    share: Option<Share>,
    /// Instead of the cache: sockets of the stacks.
    sockets: Option<Relay>,
    acknowledge: AcknowledgePolicy,
    handshake: HandshakePolicy,
    acks: WithheldAcks,
    /// Header of an acknowledgement without blocks.
    header_bytes: u32,
    /// Initial window of the next receiver if there is no handshake.
    next_window_bytes: u64,
    /// When it acts unasked: opens that connection, where the one upstream has no handshake and this one has, or reads for the
    /// first time.
    acts_at: Nanos,
    /// When its flow starts.
    starts_at: Nanos,
    /// The SYN that waits for the connection onward.
    held_syn: Option<Segment>,
    /// End of the data that arrived with PSH.
    pushed_to: u64,
    /// End of the data that have left onward at least once.
    forwarded_to: u64,
    /// A request on its way to the data sender: first octet and number of octets.
    request: Option<(u64, u16)>,
    /// Offset after the last octet of the requests that have passed.
    requested_to: u64,
    /// How many connections it handles, and for how long; none: without a limit.
    admission: Option<Box<Admission>>,
    /// It passes the connection on unsplit.
    forwarding: Option<Box<Forwarding>>,
    counts: ProxyCounts,
    /// Faults that are still to come, the next one last.
    faults: Vec<FaultConfig>,
    crash: Option<FaultKind>,
    /// Its state is on its way to another node until then; 0: it is not.
    moves_until: Nanos,
    /// Octets that are damaged, where a fault may damage any on the way of the flow.
    damage: Option<Box<Damage>>,
    buffered_max_bytes: u64,
    occupancy: Occupancy,
}

impl Proxy {
    /// The proxy of `config` with the new halves `upstream` and `downstream`. `next_window_bytes` is what the next receiver
    /// promises if there is no handshake, `start` the start of the flow.
    pub fn new(
        upstream: Receiver,
        downstream: Sender,
        config: &ProxyConfig,
        (cache, sockets): (Cache, Option<Relay>),
        (next_window_bytes, start): (u64, Nanos),
    ) -> Self {
        let mut upstream = upstream;
        let first_read = sockets.as_ref().map_or(NEVER, Relay::first_read_at);
        let unasked = upstream.is_established() && downstream.shakes_hands();
        upstream.hold_fin();
        Self {
            acks: WithheldAcks::new(upstream.smss_bytes(), upstream.edge()),
            header_bytes: upstream.header_bytes(),
            upstream,
            downstream,
            cache,
            share: None,
            sockets,
            acknowledge: config.acknowledge,
            handshake: config.handshake,
            next_window_bytes,
            acts_at: if unasked { start } else { first_read },
            starts_at: start,
            held_syn: None,
            pushed_to: 1,
            forwarded_to: 1,
            request: None,
            requested_to: 1,
            admission: None,
            forwarding: None,
            counts: ProxyCounts::default(),
            faults: config.faults.iter().rev().copied().collect(),
            crash: None,
            moves_until: 0,
            damage: None,
            buffered_max_bytes: 0,
            occupancy: Occupancy::default(),
        }
    }

    /// Lets its receive buffer be a part of a shared one.
    pub fn sharing(mut self, share: Option<Share>) -> Self {
        self.share = share;
        if self.upstream.is_established() {
            // Without a handshake the window is promised before the first segment.
            let edge = self.upstream.edge();
            self.reserve(0, edge);
        }
        self
    }

    /// Limits the connections that it handles, or their time.
    pub fn limited(mut self, admission: Option<Admission>) -> Self {
        self.admission = admission.map(Box::new);
        self
    }

    /// Notes damaged octets: some proxy of the flow damages them.
    pub fn noting_damage(mut self, notes: bool) -> Self {
        self.damage = notes.then(Box::default);
        self
    }

    /// Receives a segment of either connection.
    pub fn receive(&mut self, segment: &Segment, now: Nanos) {
        if self.misses(segment, now) {
            return;
        }
        if let Some(forwarding) = &mut self.forwarding {
            forwarding.push(segment);
            return;
        }
        if let Some(admission) = &mut self.admission {
            admission.note_segment(now);
        }
        match segment.direction {
            Direction::Forward if segment.has(flags::SYN) && self.diverts_syn(segment, now) => {}
            Direction::Forward => {
                if segment.has(flags::PSH) {
                    self.pushed_to = self.pushed_to.max(segment.end());
                }
                let (next, edge) = (self.upstream.rcv_nxt(), self.upstream.edge());
                self.acks.note_arrival(segment, next, edge);
                if let Some(damage) = &mut self.damage {
                    damage.note_arrival(segment);
                }
                self.upstream.receive(segment, now);
            }
            Direction::Reverse => {
                if segment.purpose == Purpose::Request {
                    self.request = Some((segment.seq, segment.payload_bytes));
                    self.requested_to = segment.end();
                    self.upstream.note_request(self.requested_to);
                }
                self.downstream.receive(segment, now);
            }
        }
        if self.forwarding.is_none() {
            self.relay(now);
        }
    }

    /// Whether a SYN waits for the connection onward, which it opens.
    fn holds_syn(&mut self, syn: &Segment, now: Nanos) -> bool {
        let open = self.downstream.established_at().is_some();
        if self.handshake == HandshakePolicy::Accept || open {
            return false;
        }
        self.held_syn = Some(*syn);
        if !self.downstream.is_opening() {
            self.downstream.open(now, self.next_window_bytes);
        }
        true
    }

    /// Passes on what has arrived in order, frees what has been acknowledged, and updates the advertised window.
    fn relay(&mut self, now: Nanos) {
        if let Some(syn) = self.held_syn
            && self.downstream.established_at().is_some()
        {
            self.upstream.receive(&syn, now);
            self.held_syn = None;
        }
        if self.upstream.is_readable() && !self.downstream.is_opening() {
            self.downstream.open(now, self.next_window_bytes);
            if self.downstream.opens_with_data() {
                self.splice(now);
            }
        }
        if self.sockets.is_none() {
            let arrived = self.upstream.rcv_nxt();
            let edge = self.downstream.snd_una();
            let part = self.share.as_ref().map(Share::part);
            let passed = arrived.min(edge.saturating_add(self.cache.onward_bytes(part)));
            // A part of shared memory becomes smaller when another connection opens; what has been passed on stays so.
            let passed = passed.max(self.downstream.write_end());
            self.downstream.write_to(passed, false);
            self.downstream.push_to(self.pushed_to);
        }
        self.note_passed(now);
    }

    /// What arrived may have been passed on.
    fn note_passed(&mut self, now: Nanos) {
        let arrived = self.upstream.rcv_nxt();
        if self.upstream.has_fin() && self.downstream.write_end() == arrived {
            self.downstream.close();
        }
        if self.downstream.has_ended() {
            self.upstream.release_fin();
        }
        self.account(now);
        self.pass_on_reset(now);
        if let Some(admission) = &mut self.admission {
            let established = self.downstream.established_at().is_some();
            let ended = self.upstream.has_ended() && self.downstream.has_ended();
            admission.note_state(established, ended);
        }
    }

    /// Octets in the receive buffer, out-of-order data included, and in all memory.
    fn stored_bytes(&self) -> (u64, u64) {
        let arrived = self.upstream.rcv_nxt();
        let unacknowledged = arrived.saturating_sub(self.downstream.snd_una());
        let beyond = self.upstream.out_of_order_octets();
        let waiting = if self.cache.is_split() {
            arrived.saturating_sub(self.downstream.write_end())
        } else {
            unacknowledged
        };
        (waiting + beyond, unacknowledged + beyond)
    }

    fn account(&mut self, now: Nanos) {
        if self.upstream.was_reset() || self.downstream.reset_at().is_some() {
            // RFC 9293 §3.10.7.4: a reset flushes all. No window is promised any more.
            self.occupancy.note(0, now);
            self.release_memory();
            return;
        }
        let (received, stored) = self.stored_bytes();
        self.occupancy.note(stored, now);
        if self.share.is_some() {
            self.grant_of_pool(received);
        } else if self.sockets.is_none() {
            self.upstream.grant(self.cache.window_bytes(received));
        }
    }

    /// Updates the advertised window of a connection with `received` octets in a shared buffer.
    fn grant_of_pool(&mut self, received: u64) {
        let beyond = self.upstream.out_of_order_octets();
        let Some(share) = &mut self.share else {
            return;
        };
        share.store(received);
        let over = self.upstream.has_fin() && received == 0;
        share.note_open(self.upstream.is_readable() && !over && !self.upstream.was_reset());
        let part = share.part();
        let waiting = received - beyond;
        // In whole units of the window scale: what it cuts off might be the end of a segment.
        let window = self.cache.window_of(part, received > 0);
        let window = window.next_multiple_of(1 << self.upstream.wscale());
        let window = window.min(part.room.saturating_sub(waiting));
        self.upstream.grant(window);
        let next = self.upstream.rcv_nxt();
        self.reserve(waiting, self.upstream.edge().max(next + window));
    }

    /// Reserves in a shared buffer what waits there and what may still arrive up to `edge`.
    fn reserve(&mut self, waiting: u64, edge: u64) {
        let next = self.upstream.rcv_nxt();
        let may_arrive = if self.upstream.has_fin() || self.upstream.was_reset() {
            0
        } else {
            edge.saturating_sub(next)
        };
        if let Some(share) = &mut self.share {
            share.reserve(waiting + may_arrive);
        }
    }

    /// When one connection has been reset, the other one is reset too.
    fn pass_on_reset(&mut self, now: Nanos) {
        let ended = self.downstream.has_ended();
        let onward = self.downstream.reset_at().is_some();
        if self.upstream.was_reset() && !ended && self.downstream.is_opening() {
            self.downstream.abort(now);
        } else if onward && !self.upstream.was_reset() {
            self.held_syn = None;
            self.upstream.abort();
        }
    }

    /// Gives its part of shared memory back.
    fn release_memory(&mut self) {
        if let Some(share) = &mut self.share {
            share.store(0);
            share.reserve(0);
            share.note_open(false);
        }
    }

    /// When it must be called.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        let fault = self.faults.last().map_or(NEVER, |fault| fault.at_ns);
        if self.moves_until > 0 {
            return self.moves_until.min(fault);
        }
        let timeout = (self.admission.as_ref()).map_or(NEVER, |admission| admission.deadline());
        self.upstream
            .next_deadline()
            .min(self.downstream.next_deadline())
            .min(fault)
            .min(timeout)
            .min(self.acts_at)
    }

    /// Its deadline has expired.
    pub fn on_deadline(&mut self, now: Nanos) {
        while let Some(fault) = self.faults.last().copied().filter(|next| next.at_ns <= now) {
            self.faults.pop();
            self.suffer(fault, now);
        }
        if self.moves_until > now {
            return;
        }
        self.moves_until = 0;
        if self.acts_at <= now {
            let first_read = self.sockets.as_ref().map_or(NEVER, Relay::first_read_at);
            self.acts_at = if first_read > now { first_read } else { NEVER };
            self.relay(now);
        }
        if self
            .admission
            .as_mut()
            .is_some_and(|admission| admission.expires(now))
        {
            self.time_out(now);
        }
        if self.upstream.next_deadline() <= now {
            self.upstream.on_deadline(now);
        }
        if self.downstream.next_deadline() <= now {
            self.downstream.on_deadline(now);
            self.pass_on_reset(now);
        }
    }

    /// Writes the next segment of either connection into a slot. Returns whether there is one.
    #[inline]
    pub fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        if self.moves_until > 0 {
            false
        } else if let Some(forwarding) = &mut self.forwarding {
            forwarding.pop(slot)
        } else {
            self.splice_ahead(now);
            self.transmit_own(now, slot)
                || self.sockets.is_some() && self.splice_and_transmit(now, slot)
        }
    }

    fn transmit_own(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        if self.acknowledge == AcknowledgePolicy::OnReceipt {
            self.transmit_upstream(now, slot) || self.transmit_downstream(now, slot)
        } else {
            // What leaves now is acknowledged now.
            self.transmit_downstream(now, slot) || self.transmit_withheld(now, slot)
        }
    }

    fn transmit_downstream(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        let sends = self.downstream.transmit(now, slot);
        if sends {
            slot.ack = self.downstream.ack_for(self.requested_to);
            if slot.payload_bytes > 0 {
                self.forwarded_to = self.forwarded_to.max(slot.end());
                if let Some(damage) = &mut self.damage {
                    damage.forget(self.downstream.snd_una());
                    damage.mark(slot);
                }
            }
        }
        sends
    }

    /// An acknowledgement, or a request that carries one.
    ///
    /// Deviation: the proxy passes requests on as they arrive; the client repeats lost ones end to end.
    fn transmit_upstream(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        // A connection that was reset carries no request.
        let request = self.request.take();
        let request = request.filter(|_| !self.upstream.was_reset());
        let sends = if let Some((seq, octets)) = request {
            self.upstream.acknowledge(now, slot);
            add_request(slot, seq, octets);
            true
        } else {
            self.upstream.transmit(now, slot)
        };
        if sends {
            self.buffered_max_bytes = self.buffered_max_bytes.max(self.undelivered_bytes());
        }
        sends
    }

    /// The same, with acknowledgements of what has been passed on.
    fn transmit_withheld(&mut self, now: Nanos, slot: &mut Segment) -> bool {
        let limit = self.acknowledged_to();
        while self.transmit_upstream(now, slot) {
            if self.acks.pass(slot, limit, self.header_bytes) {
                return true;
            }
        }
        if !self.acks.releases(limit) || self.crash.is_some() || self.upstream.was_reset() {
            return false;
        }
        self.upstream.acknowledge(now, slot);
        self.acks.pass(slot, limit, self.header_bytes)
    }

    /// Octet up to which it may acknowledge upstream.
    fn acknowledged_to(&self) -> u64 {
        let delivered = self.downstream.snd_una();
        match self.acknowledge {
            AcknowledgePolicy::OnReceipt => u64::MAX,
            // All is forwarded once the FIN may leave: it takes a number after them.
            AcknowledgePolicy::AfterForwarding => {
                let all = self.upstream.has_fin() && self.forwarded_to >= self.upstream.rcv_nxt();
                delivered.max(self.forwarded_to + u64::from(all))
            }
            AcknowledgePolicy::OnDelivery => delivered,
        }
    }

    /// Octets that it has acknowledged upstream and that are not acknowledged onward.
    pub fn undelivered_bytes(&self) -> u64 {
        let acknowledged = match self.acknowledge {
            AcknowledgePolicy::OnReceipt => self.upstream.last_ack_sent(),
            _ => self.acks.last_ack_sent(),
        };
        acknowledged.saturating_sub(self.downstream.snd_una())
    }

    /// Whether it passes the connection on unsplit.
    pub fn passes(&self) -> bool {
        self.forwarding.is_some()
    }

    /// The connection that arrives has passed a proxy before it unsplit: its receiver has the stack `params`.
    /// Returns the window scale that it announces.
    pub fn adopt(&mut self, params: &StackParams) -> u8 {
        self.cache.resize(params.smss_bytes);
        let space = if self.sockets.is_some() {
            Space::Process {
                buffer_bytes: params.receive_buffer_bytes,
                read_to: 1,
            }
        } else {
            let of_pool = self.share.is_some().then(|| self.upstream.window());
            Space::Granted {
                window_bytes: of_pool.unwrap_or_else(|| self.cache.window_bytes(0)),
                buffer_bytes: self.cache.receive_bytes(),
            }
        };
        self.upstream = Receiver::new(self.upstream.leg(), params, space);
        self.upstream.hold_fin();
        self.acks = WithheldAcks::new(params.smss_bytes, self.upstream.edge());
        self.header_bytes = params.header_bytes;
        self.upstream.wscale()
    }

    /// What it has counted.
    pub fn counts(&self) -> ProxyCounts {
        ProxyCounts {
            timeouts: self.admission.as_ref().map_or(0, |gate| gate.timeouts),
            ..self.counts
        }
    }

    /// Its receiver, towards the data sender.
    pub fn upstream(&self) -> &Receiver {
        &self.upstream
    }

    /// Its sender, towards the data receiver.
    pub fn downstream(&self) -> &Sender {
        &self.downstream
    }

    /// Maximum number of octets that it had acknowledged upstream and that were unacknowledged downstream.
    pub fn buffered_max_bytes(&self) -> u64 {
        self.buffered_max_bytes
    }

    /// What instruments record of it.
    pub fn sample(&self) -> ProxySample {
        ProxySample {
            stored_bytes: self.occupancy.stored_bytes(),
            undelivered_bytes: self.undelivered_bytes(),
            edge: self.upstream.edge(),
        }
    }

    /// What it has stored over time.
    pub fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    /// Size of its memory.
    pub fn capacity_bytes(&self) -> u64 {
        (self.sockets.as_ref()).map_or(self.cache.capacity_bytes(), Relay::capacity_bytes)
    }

    /// Whether it acknowledges later than on receipt.
    pub fn withholds(&self) -> bool {
        self.acknowledge != AcknowledgePolicy::OnReceipt
    }

    /// Whether it has lost its state.
    pub fn has_crashed(&self) -> bool {
        self.crash.is_some()
    }
}

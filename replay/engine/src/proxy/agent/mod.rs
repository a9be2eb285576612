//! Agents on the path that do not split a connection: they see its segments, and send some themselves.
//!
//! Does not depend on links. Read `docs/proxies.md`, "Agents that do not split", first.

mod local_cache;
mod snoop;
mod spoofing;

use super::forwarding::Forwarding;
use super::{Cache, ProxyCounts};
use crate::config::{FaultConfig, FaultKind, ProxyConfig, ProxyKind, StackParams};
use crate::sim::node::{Endpoint, Sent};
use crate::sim::time::{NEVER, Nanos};
use crate::tcp::segment::{Direction, Segment, flags};
use snoop::Snoop;
use spoofing::Spoofing;

/// What an agent does with segments.
#[derive(Debug)]
enum Work {
    Snoop(Snoop),
    Spoofing(Spoofing),
    /// It knows nothing of the connection any more.
    Pass,
    /// A reset has passed: one end knows nothing of the connection, and soon the other one does not.
    Over,
    /// It has failed: nothing passes.
    Fail,
}

/// An agent of one flow.
#[derive(Debug)]
pub struct AgentNode {
    agent: Agent,
    work: Work,
    /// What it may keep.
    memory: Cache,
    /// Faults that are still to come, the next one last.
    faults: Vec<FaultConfig>,
    /// Its state is on its way to another node until then; 0: it is not.
    moves_until: Nanos,
    stored_max_bytes: u64,
    held_max_bytes: u64,
}

/// What it sends, and what it counts.
#[derive(Debug)]
pub struct Agent {
    forwarding: Forwarding,
    counts: ProxyCounts,
    /// Next octet that the receiving end sends.
    reverse_nxt: u64,
}

impl Agent {
    /// Sends a segment on in its direction.
    fn push(&mut self, segment: &Segment) {
        self.forwarding.push(segment);
    }
}

impl AgentNode {
    /// The agent of `config` between `legs`, on a connection of the stack `params` whose receiver promises `window_bytes` if
    /// there is no handshake.
    pub fn new(
        config: &ProxyConfig,
        legs: [u16; 2],
        params: &StackParams,
        window_bytes: u64,
    ) -> Self {
        let memory = Cache::new(config, [params.smss_bytes; 2]);
        let capacity = memory.receive_bytes();
        let window = if params.handshake { 0 } else { window_bytes };
        Self {
            agent: Agent {
                forwarding: Forwarding::new(legs),
                counts: ProxyCounts::default(),
                reverse_nxt: 1,
            },
            work: match config.kind {
                ProxyKind::Snoop => Work::Snoop(Snoop::new(capacity)),
                ProxyKind::Spoofing => Work::Spoofing(Spoofing::new(capacity, window, params)),
                ProxyKind::Split | ProxyKind::AckFilter => Work::Pass,
            },
            memory,
            faults: config.faults.iter().rev().copied().collect(),
            moves_until: 0,
            stored_max_bytes: 0,
            held_max_bytes: 0,
        }
    }

    /// Nothing has come yet, and the connection has passed a proxy before it unsplit: its stack is `params`.
    pub fn adopt(&mut self, params: &StackParams) {
        self.memory.resize(params.smss_bytes);
        let capacity = self.memory.receive_bytes();
        match &mut self.work {
            Work::Snoop(snoop) => *snoop = Snoop::new(capacity),
            Work::Spoofing(spoofing) => *spoofing = Spoofing::new(capacity, 0, params),
            Work::Pass | Work::Over | Work::Fail => {}
        }
    }

    /// What it has counted.
    pub fn counts(&self) -> ProxyCounts {
        self.agent.counts
    }

    /// Maximum of octets in its memory.
    pub fn stored_max_bytes(&self) -> u64 {
        self.stored_max_bytes
    }

    /// Maximum of octets acknowledged on behalf of the receiver that it had not acknowledged.
    pub fn held_max_bytes(&self) -> u64 {
        self.held_max_bytes
    }

    /// Whether it has lost its state.
    pub fn has_crashed(&self) -> bool {
        matches!(self.work, Work::Pass | Work::Fail)
    }

    fn forward(&mut self, segment: &Segment, now: Nanos) {
        let agent = &mut self.agent;
        match &mut self.work {
            _ if segment.has(flags::SYN) => agent.push(segment),
            Work::Snoop(snoop) if segment.payload_bytes > 0 => {
                snoop.on_data(agent, segment, now);
            }
            Work::Spoofing(spoofing) if segment.payload_bytes > 0 => {
                spoofing.on_data(agent, segment, now);
            }
            _ => agent.push(segment),
        }
    }

    fn reverse(&mut self, segment: &Segment, now: Nanos) {
        let agent = &mut self.agent;
        let opens = segment.flags & (flags::SYN | flags::RST) != 0;
        let alone = segment.payload_bytes == 0 && segment.flags & flags::CONTROL == 0;
        agent.reverse_nxt = agent.reverse_nxt.max(segment.seq_end());
        match &mut self.work {
            Work::Snoop(snoop) if alone => snoop.on_ack(agent, segment, now),
            Work::Spoofing(spoofing) if !opens => spoofing.on_ack(agent, segment, alone, now),
            Work::Spoofing(spoofing) if segment.has(flags::SYN) => {
                spoofing.on_syn_ack(agent, segment);
            }
            _ => agent.push(segment),
        }
    }

    fn suffer(&mut self, fault: FaultConfig, now: Nanos) {
        match (fault.kind, fault.transfer_ns) {
            (FaultKind::Failure, _) => self.work = Work::Fail,
            (FaultKind::Move, Some(time)) => return self.moves_until = now + time,
            // Snoop has soft state: it begins again with the next segment.
            _ => match &mut self.work {
                Work::Snoop(snoop) => snoop.cache.clear(),
                Work::Spoofing(_) => self.work = Work::Pass,
                Work::Pass | Work::Over | Work::Fail => {}
            },
        }
        // There is nothing left that could arrive at another node.
        self.moves_until = 0;
    }

    fn account(&mut self) {
        let (stored, held) = match &self.work {
            Work::Snoop(snoop) => (snoop.cache.stored_bytes(), 0),
            Work::Spoofing(own) => (own.cache.stored_bytes(), own.undelivered_bytes()),
            Work::Pass | Work::Over | Work::Fail => (0, 0),
        };
        self.stored_max_bytes = self.stored_max_bytes.max(stored);
        self.held_max_bytes = self.held_max_bytes.max(held);
    }

    fn timer(&self) -> Nanos {
        match &self.work {
            Work::Snoop(snoop) => snoop.cache.deadline(),
            Work::Spoofing(spoofing) => spoofing.cache.deadline(),
            Work::Pass | Work::Over | Work::Fail => NEVER,
        }
    }
}

impl Endpoint for AgentNode {
    fn receive(&mut self, segment: &Segment, now: Nanos) {
        if self.moves_until > 0 || matches!(self.work, Work::Fail) {
            self.agent.counts.dropped += 1;
            return;
        }
        if segment.has(flags::RST) && matches!(self.work, Work::Snoop(_) | Work::Spoofing(_)) {
            // What is kept is of no use to anybody, and nothing more may be acknowledged.
            self.work = Work::Over;
        }
        match segment.direction {
            Direction::Forward => self.forward(segment, now),
            Direction::Reverse => self.reverse(segment, now),
        }
        self.account();
    }

    fn next_deadline(&self) -> Nanos {
        let fault = self.faults.last().map_or(NEVER, |fault| fault.at_ns);
        if self.moves_until > 0 {
            return self.moves_until.min(fault);
        }
        fault.min(self.timer())
    }

    fn on_deadline(&mut self, now: Nanos) {
        while let Some(fault) = self.faults.last().copied().filter(|next| next.at_ns <= now) {
            self.faults.pop();
            self.suffer(fault, now);
        }
        if self.moves_until > now {
            return;
        }
        self.moves_until = 0;
        if self.timer() <= now {
            let agent = &mut self.agent;
            match &mut self.work {
                Work::Snoop(snoop) => snoop.on_timeout(agent, now),
                Work::Spoofing(spoofing) => spoofing.on_timeout(agent, now),
                Work::Pass | Work::Over | Work::Fail => {}
            }
        }
    }

    fn transmit(&mut self, _now: Nanos, slot: &mut Segment) -> Sent {
        self.agent.forwarding.pop(slot).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Profile, StackOverrides};
    use crate::sim::time::SECOND;

    fn agent(keys: &str) -> AgentNode {
        let config: ProxyConfig =
            serde_json::from_str(&format!(r#"{{"node": "p", {keys}}}"#)).expect("well-formed");
        let params = StackParams::resolve(Profile::Ns2, &StackOverrides::default());
        AgentNode::new(&config, [0, 1], &params, 100_000)
    }

    fn data() -> Segment {
        Segment {
            seq: 1,
            payload_bytes: 1000,
            ..Segment::new(0, Direction::Forward)
        }
    }

    #[test]
    fn an_agent_sends_nothing_again_on_a_connection_that_was_reset() {
        for kind in ["snoop", "spoofing"] {
            let mut agent = agent(&format!(r#""kind": "{kind}""#));
            agent.receive(&data(), 10);
            assert!(agent.next_deadline() < NEVER, "{kind}");
            let reset = Segment {
                flags: flags::RST,
                ..Segment::new(1, Direction::Reverse)
            };
            agent.receive(&reset, 20);
            assert_eq!(agent.next_deadline(), NEVER, "{kind}");
        }
    }

    #[test]
    fn spoofing_acknowledges_nothing_on_a_connection_that_was_reset() {
        let mut agent = agent(r#""kind": "spoofing""#);
        let reset = Segment {
            flags: flags::RST,
            ..Segment::new(1, Direction::Reverse)
        };
        agent.receive(&reset, 20);
        agent.receive(&data(), 30);
        let mut slot = data();
        let mut leaves = 0;
        while !matches!(agent.transmit(40, &mut slot), Sent::Nothing) {
            assert!(slot.has(flags::RST) || slot.payload_bytes > 0, "{slot:?}");
            leaves += 1;
        }
        assert_eq!((leaves, agent.counts().spoofed_acks), (2, 0));
    }

    #[test]
    fn spoofing_keeps_all_that_it_acknowledges_when_small_segments_come_again_as_one() {
        let mut agent = agent(r#""kind": "spoofing""#);
        let small = Segment {
            payload_bytes: 400,
            ..data()
        };
        agent.receive(&small, 10);
        agent.receive(&data(), 20);
        let mut slot = data();
        let mut acknowledged = 0;
        while !matches!(agent.transmit(30, &mut slot), Sent::Nothing) {
            if slot.direction == Direction::Reverse {
                acknowledged = slot.ack;
            }
        }
        let ack = Segment {
            ack: 401,
            wnd_bytes: 100_000,
            flags: flags::ACK,
            ..Segment::new(1, Direction::Reverse)
        };
        agent.receive(&ack, 40);
        agent.on_deadline(agent.next_deadline());
        let mut sent_to = 0;
        while !matches!(agent.transmit(50, &mut slot), Sent::Nothing) {
            if slot.direction == Direction::Forward {
                sent_to = slot.end();
            }
        }
        assert_eq!((acknowledged, sent_to), (1001, 1001));
    }

    #[test]
    fn snoop_gives_up_what_nothing_acknowledges() {
        let mut agent = agent(r#""kind": "snoop""#);
        agent.receive(&data(), 10);
        let mut last = 0;
        while agent.next_deadline() < NEVER && last < 1000 * SECOND {
            last = agent.next_deadline();
            agent.on_deadline(last);
        }
        assert!((100 * SECOND..200 * SECOND).contains(&last), "{last}");
    }

    #[test]
    fn a_fault_does_not_wait_for_the_end_of_a_move() {
        let faults = r#""faults": [{"at_ns": 100, "kind": "move", "transfer_ns": 1000}, {"at_ns": 200, "kind": "failure"}]"#;
        let mut agent = agent(&format!(r#""kind": "snoop", {faults}"#));
        for at in [100, 200] {
            assert_eq!(agent.next_deadline(), at);
            agent.on_deadline(at);
        }
        assert!(agent.has_crashed());
        assert_eq!(agent.next_deadline(), NEVER);
    }
}

//! Snoop: caches segments on their way to the receiver, retransmits those that duplicate ACKs or a local timeout report
//! lost, and suppresses these duplicate ACKs.
//!
//! Read Balakrishnan et al. 1995, "Improving TCP/IP Performance over Wireless Networks", §3 first: the numbers of the
//! cases are those of its figures 2 and 3.
//!
//! Deviation: a retransmission joins the queue of the link like any segment; the paper gives it priority.

use super::Agent;
use super::local_cache::LocalCache;
use crate::sim::time::Nanos;
use crate::tcp::segment::Segment;

/// State of a connection.
#[derive(Debug)]
pub struct Snoop {
    pub cache: LocalCache,
    /// The newest acknowledgement of the receiver.
    last_ack: Option<Segment>,
    /// Octet after the last one that has come.
    highest: u64,
    /// Duplicate ACKs that the segments behind the one that was retransmitted will still cause.
    expected: usize,
}

impl Snoop {
    /// Nothing has come yet.
    pub fn new(capacity_bytes: u64) -> Self {
        Self {
            cache: LocalCache::new(capacity_bytes),
            last_ack: None,
            highest: 1,
            expected: 0,
        }
    }

    fn acknowledged(&self) -> u64 {
        self.last_ack.map_or(1, |ack| ack.ack)
    }

    /// Data towards the receiver.
    pub fn on_data(&mut self, agent: &mut Agent, segment: &Segment, now: Nanos) {
        if segment.end() <= self.acknowledged() {
            // Case 2: the receiver has it, and its acknowledgement was lost.
            if let Some(ack) = self.last_ack {
                agent.push(&ack);
            }
            return;
        }
        let is_new = segment.seq >= self.highest;
        // Case 3: it was lost, or overtaken, before it came here; the duplicate ACKs are for the sender.
        let by_sender = !is_new && !self.cache.holds(segment.seq);
        self.cache.insert(segment, by_sender, now);
        self.highest = self.highest.max(segment.end());
        agent.push(segment);
    }

    /// An acknowledgement that carries nothing else.
    pub fn on_ack(&mut self, agent: &mut Agent, ack: &Segment, now: Nanos) {
        let before = self.acknowledged();
        if ack.ack < before {
            return;
        }
        let update = self
            .last_ack
            .is_none_or(|last| last.wnd_bytes != ack.wnd_bytes);
        if ack.ack > before || update {
            // Case 1: new, or a window update.
            self.last_ack = Some(*ack);
            if ack.ack > before {
                self.cache.acknowledge(ack.ack, now);
                self.expected = 0;
            }
            return agent.push(ack);
        }
        let lost = self.cache.first_with(ack.ack);
        if lost.is_none_or(|first| first.by_sender) {
            // Case 3 of figure 3: not here, or lost before it came here.
            return agent.push(ack);
        }
        agent.counts.suppressed_acks += 1;
        if self.expected > 0 {
            self.expected -= 1;
            return;
        }
        // The first duplicate ACK. One more for each segment behind it that is on its way.
        self.expected = self.cache.len() - 1;
        self.retransmit(agent, now);
    }

    /// The local timeout.
    ///
    /// Deviation: the paper has no end. Where a segment is missing that is not here, each retransmission brings a duplicate
    /// ACK, which may keep the sender's timer from expiring for ever.
    pub fn on_timeout(&mut self, agent: &mut Agent, now: Nanos) {
        if self.cache.is_hopeless(now) {
            return self.cache.clear();
        }
        self.cache.back_off();
        self.retransmit(agent, now);
    }

    fn retransmit(&mut self, agent: &mut Agent, now: Nanos) {
        if let Some(segment) = self.cache.take_again(now) {
            agent.counts.local_retransmissions += 1;
            agent.push(&segment);
        }
    }
}

//! Handovers between links, make before break: each link has a separate serialiser and queue, and the draining link serves
//! what it has queued while both exist.
//!
//! Does not depend on loss or propagation. A packet whose departure the queue fixed on arrival is already in flight; only
//! queues that are polled for packets are still polled here.

use std::collections::VecDeque;

use hindflight_kernels::{LossProcess, StreamRng};

use super::queue::Queue;
use super::serialiser::Serialiser;
use crate::config::{ChangeConfig, DirectionConfig};
use crate::sim::packet_pool::PacketHandle;
use crate::sim::time::{NEVER, Nanos};

/// A link that waits for its time.
pub struct LinkHandover {
    start: Nanos,
    /// Its serialiser.
    pub serialiser: Serialiser,
    /// Its queue.
    pub queue: Queue,
    /// The loss process anew, where it goes by the clock: the one before has looked ahead.
    pub loss: Option<LossProcess>,
}

/// A link that has been relieved and still holds packets.
pub struct DrainingLink {
    /// Its serialiser.
    pub serialiser: Serialiser,
    /// Its queue.
    pub queue: Queue,
    /// When its queue is asked next.
    pub next_service: Nanos,
}

impl DrainingLink {
    /// Changes places with the link that is in charge.
    pub fn exchange(
        &mut self,
        serialiser: &mut Serialiser,
        queue: &mut Queue,
        next_service: &mut Nanos,
    ) {
        std::mem::swap(&mut self.serialiser, serialiser);
        std::mem::swap(&mut self.queue, queue);
        std::mem::swap(&mut self.next_service, next_service);
    }
}

/// What is to come, and what is not over.
pub struct LinkHandovers {
    /// When the next link takes over.
    pub next: Nanos,
    /// When the queue of a former link is asked next.
    pub next_service: Nanos,
    coming: VecDeque<LinkHandover>,
    draining: Vec<DrainingLink>,
    first: Option<DirectionConfig>,
}

impl LinkHandovers {
    /// What the schedule of `config` says.
    pub fn new(config: &DirectionConfig, loss: &LossProcess, rng: &StreamRng) -> Self {
        let mut parts = parts(config).into_iter();
        let first = parts.next().map(|(_, part)| part);
        let coming: VecDeque<_> = parts
            .map(|(start, part)| LinkHandover {
                start,
                serialiser: Serialiser::new(&part),
                queue: Queue::new(&part.queue, rng.clone()),
                loss: loss.by_clock().then(|| loss.clone()),
            })
            .collect();
        Self {
            next: coming.front().map_or(NEVER, |next| next.start),
            next_service: NEVER,
            coming,
            draining: Vec::new(),
            first,
        }
    }

    /// What the first link is like.
    pub fn first<'a>(&'a self, config: &'a DirectionConfig) -> &'a DirectionConfig {
        self.first.as_ref().unwrap_or(config)
    }

    /// The next link, if it is in charge at `now`.
    pub fn take(&mut self, now: Nanos) -> Option<LinkHandover> {
        if self.next > now {
            return None;
        }
        let next = self.coming.pop_front();
        self.next = self.coming.front().map_or(NEVER, |next| next.start);
        next
    }

    /// The former link whose queue is to be asked at `now`.
    pub fn due(&mut self, now: Nanos) -> Option<DrainingLink> {
        if self.next_service > now {
            return None;
        }
        let place = self
            .draining
            .iter()
            .position(|draining| draining.next_service <= now)?;
        let due = self.draining.remove(place);
        self.note_next_service();
        Some(due)
    }

    /// Keeps a relieved link for as long as its queue is to be asked.
    pub fn retire(&mut self, draining: DrainingLink) {
        if draining.next_service != NEVER {
            self.draining.push(draining);
            self.note_next_service();
        }
    }

    fn note_next_service(&mut self) {
        let services = self.draining.iter().map(|draining| draining.next_service);
        self.next_service = services.min().unwrap_or(NEVER);
    }

    /// Packets that wait at former links.
    pub fn held(&self) -> impl Iterator<Item = PacketHandle> + '_ {
        self.draining
            .iter()
            .flat_map(|draining| draining.queue.held())
    }
}

/// The links that a schedule speaks of, each with its start and its own part; none if there is only one.
fn parts(config: &DirectionConfig) -> Vec<(Nanos, DirectionConfig)> {
    if config.schedule.iter().all(|c| c.overlap_ns.is_none()) {
        return Vec::new();
    }
    let mut part = DirectionConfig {
        schedule: Vec::new(),
        ..config.clone()
    };
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut rate_bps, mut delay_ns) = (config.rate_bps, config.delay_ns);
    for change in &config.schedule {
        rate_bps = change.rate_bps.or(rate_bps);
        delay_ns = change.delay_ns.unwrap_or(delay_ns);
        if let Some(overlap) = change.overlap_ns {
            let mut before = part.clone();
            before.schedule.push(ChangeConfig {
                at_ns: change.at_ns.saturating_add(overlap),
                rate_bps: None,
                delay_ns: None,
                outage: Some(true),
                hold: None,
                overlap_ns: None,
            });
            parts.push((start, before));
            part = DirectionConfig {
                rate_bps,
                delay_ns,
                schedule: Vec::new(),
                ..config.clone()
            };
            start = change.at_ns;
        }
        let stays = ChangeConfig {
            overlap_ns: None,
            ..*change
        };
        part.schedule.push(stays);
    }
    parts.push((start, part));
    parts
}

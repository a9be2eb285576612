//! Handover between links, make before break: each link has its own serialiser and queue, and the old link drains while
//! both exist.
//!
//! Does not depend on loss or propagation. A packet whose departure was computed when it arrived is in flight already;
//! only queues that hold packets drain here.

use std::collections::VecDeque;

use hindflight_kernels::{LossProcess, StreamRng};

use super::queue::Queue;
use super::serialiser::Serialiser;
use crate::config::{ChangeConfig, DirectionConfig};
use crate::sim::packet_pool::PacketHandle;
use crate::sim::time::{NEVER, Nanos};

/// A link that has not taken over yet.
pub struct LinkHandover {
    start: Nanos,
    /// Its serialiser.
    pub serialiser: Serialiser,
    /// Its queue.
    pub queue: Queue,
    /// A new copy of the loss process, if it depends on time: that of the old link has advanced too far.
    pub loss: Option<LossProcess>,
}

/// A link that has handed over and still holds packets.
pub struct DrainingLink {
    /// Its serialiser.
    pub serialiser: Serialiser,
    /// Its queue.
    pub queue: Queue,
    /// When its queue is asked for a packet next.
    pub next_service: Nanos,
}

impl DrainingLink {
    /// Exchanges places with the present link.
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

/// Links that will take over, and draining links.
pub struct LinkHandovers {
    /// When the next link takes over.
    pub next: Nanos,
    /// When the queue of a draining link is asked for a packet next.
    pub next_service: Nanos,
    upcoming: VecDeque<LinkHandover>,
    draining: Vec<DrainingLink>,
    first: Option<DirectionConfig>,
}

impl LinkHandovers {
    /// The handovers in the schedule of `config`.
    pub fn new(config: &DirectionConfig, loss: &LossProcess, rng: &StreamRng) -> Self {
        let mut links = links_of_schedule(config).into_iter();
        let first = links.next().map(|(_, link)| link);
        let upcoming: VecDeque<_> = links
            .map(|(start, link)| LinkHandover {
                start,
                serialiser: Serialiser::new(&link),
                queue: Queue::new(&link.queue, rng.clone()),
                loss: loss.by_clock().then(|| loss.clone()),
            })
            .collect();
        Self {
            next: upcoming.front().map_or(NEVER, |next| next.start),
            next_service: NEVER,
            upcoming,
            draining: Vec::new(),
            first,
        }
    }

    /// Configuration of the first link.
    pub fn first<'a>(&'a self, config: &'a DirectionConfig) -> &'a DirectionConfig {
        self.first.as_ref().unwrap_or(config)
    }

    /// The next link, if it has taken over by `now`.
    pub fn take(&mut self, now: Nanos) -> Option<LinkHandover> {
        if self.next > now {
            return None;
        }
        let next = self.upcoming.pop_front();
        self.next = self.upcoming.front().map_or(NEVER, |next| next.start);
        next
    }

    /// The draining link whose queue must be asked at `now`.
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

    /// Keeps a link that has handed over, as long as its queue holds packets.
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

    /// Packets in the queues of draining links.
    pub fn queued(&self) -> impl Iterator<Item = PacketHandle> + '_ {
        self.draining
            .iter()
            .flat_map(|draining| draining.queue.queued())
    }
}

/// The links of a schedule, each with its start and its part of the schedule; none if there is only one link.
fn links_of_schedule(config: &DirectionConfig) -> Vec<(Nanos, DirectionConfig)> {
    if config.schedule.iter().all(|c| c.overlap_ns.is_none()) {
        return Vec::new();
    }
    let mut link = DirectionConfig {
        schedule: Vec::new(),
        ..config.clone()
    };
    let (mut links, mut start) = (Vec::new(), 0);
    let (mut rate_bps, mut delay_ns) = (config.rate_bps, config.delay_ns);
    for change in &config.schedule {
        rate_bps = change.rate_bps.or(rate_bps);
        delay_ns = change.delay_ns.unwrap_or(delay_ns);
        if let Some(overlap) = change.overlap_ns {
            let mut before = link.clone();
            before.schedule.push(ChangeConfig {
                at_ns: change.at_ns.saturating_add(overlap),
                outage: Some(true),
                ..ChangeConfig::default()
            });
            links.push((start, before));
            link = DirectionConfig {
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
        link.schedule.push(stays);
    }
    links.push((start, link));
    links
}

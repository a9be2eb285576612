//! What the sender of a leg tells of itself, where a tracker could only guess: its timeouts and its fast recoveries, each
//! with the first segment that left because of it.
//!
//! Must not know what a tracker sees. Read `SenderSample` first.

use hindflight_engine::{Direction as Way, PhaseName, Purpose, Segment, SenderSample};
use hindflight_flows::{Direction, End, Event, EventCause, EventKind, Reason};

/// The events of one sender.
pub struct Told {
    flow_id: u32,
    /// Counters so far.
    pub rtos: u64,
    /// See `rtos`.
    pub recoveries: u64,
    timeouts: Vec<Event>,
    /// Fast recoveries that have ended, and one that has not.
    episodes: Vec<Event>,
    episode: Option<Episode>,
    /// The first of the data segments that left at the latest time of all.
    data: Option<Leaving>,
    /// Likewise of those that found their first transmission lost; how many of them had left before, and have now.
    repair: Option<Leaving>,
    repairs_before: u32,
    repairs: u32,
    latest: i64,
}

/// A fast recovery.
struct Episode {
    event: Event,
    recovery_point: i64,
    /// Repairs and reductions taken back when it began.
    repairs: u32,
    undone: u64,
}

/// A segment that leaves.
#[derive(Clone, Copy)]
struct Leaving {
    t_ns: i64,
    record: u64,
    seq: i64,
    end: i64,
}

impl Told {
    /// Nothing yet.
    pub fn new(flow_id: u32) -> Self {
        Self {
            flow_id,
            rtos: 0,
            recoveries: 0,
            timeouts: Vec::new(),
            episodes: Vec::new(),
            episode: None,
            data: None,
            repair: None,
            repairs_before: 0,
            repairs: 0,
            latest: 0,
        }
    }

    /// The sender's state is another, after all that it sent at this time or before.
    pub fn note_state(&mut self, sample: &SenderSample, now: i64) {
        self.latest = now;
        let (expired, entered) = (
            sample.counters.rtos > self.rtos,
            sample.counters.recoveries > self.recoveries,
        );
        (self.rtos, self.recoveries) = (sample.counters.rtos, sample.counters.recoveries);
        if expired || entered || sample.phase != PhaseName::Recovery {
            let end = |episode: &Episode| {
                if sample.undone > episode.undone {
                    Some(End::Undone)
                } else if sample.snd_una as i64 >= episode.recovery_point {
                    Some(End::Acknowledged)
                } else {
                    expired.then_some(End::BrokenOff)
                }
            };
            self.end_episode(now, self.repairs_until(now), end);
        }
        if expired {
            let sent = self.data.filter(|sent| sent.t_ns == now);
            let timeout = self.event(EventKind::Rto, EventCause::Rto, now);
            self.timeouts.push(tied(timeout, sent));
        }
        if entered && let Some(point) = sample.recovery_point {
            let first = self.repair.filter(|sent| sent.t_ns == now);
            let event = Event {
                record: first.map(|sent| sent.record),
                seq_start: Some(sample.snd_una as i64),
                seq_end: Some(point as i64),
                ..self.event(EventKind::Recovery, EventCause::Fast, now)
            };
            self.episode = Some(Episode {
                event,
                recovery_point: point as i64,
                repairs: self.repairs_until(now),
                undone: sample.undone,
            });
        }
    }

    /// A segment passes. What a timeout sends again is told with it, also where pacing or a closed window delays it; so
    /// is the first repair of a recovery.
    pub fn note_segment(&mut self, segment: &Segment, record: u64, now: i64) {
        self.latest = now;
        if segment.payload_bytes == 0 || segment.direction == Way::Reverse {
            return;
        }
        let sent = Leaving {
            t_ns: now,
            record,
            seq: segment.seq as i64,
            end: segment.end() as i64,
        };
        if self.data.is_none_or(|first| first.t_ns != now) {
            self.data = Some(sent);
        }
        if let Some(last) = self.timeouts.last_mut()
            && last.record.is_none()
        {
            *last = tied(*last, Some(sent));
        }
        if segment.purpose != Purpose::FastRetransmission {
            return;
        }
        if self.repair.is_none_or(|first| first.t_ns != now) {
            self.repair = Some(sent);
            self.repairs_before = self.repairs;
        }
        self.repairs += 1;
        if let Some(episode) = &mut self.episode {
            episode.event.record.get_or_insert(record);
        }
    }

    /// Replaces what a tracker took for timeouts and fast recoveries. What it saw of a timeout stays as evidence.
    pub fn replace(mut self, events: &mut Vec<Event>) {
        self.end_episode(self.latest, self.repairs, |_| Some(End::BrokenOff));
        for timeout in &mut self.timeouts {
            let seen =
                |event: &&Event| event.kind == EventKind::Rto && event.record == timeout.record;
            timeout.evidence = events.iter().find(seen).and_then(|event| event.evidence);
        }
        events.retain(|event| !matches!(event.kind, EventKind::Rto | EventKind::Recovery));
        events.append(&mut self.timeouts);
        events.append(&mut self.episodes);
    }

    /// Repairs that had left before `now`.
    fn repairs_until(&self, now: i64) -> u32 {
        match self.repair {
            Some(first) if first.t_ns == now => self.repairs_before,
            _ => self.repairs,
        }
    }

    /// Ends the recovery that has not ended, after so many `repairs` of all; `end` says how, where that is more than that
    /// it is over.
    fn end_episode(&mut self, now: i64, repairs: u32, end: impl FnOnce(&Episode) -> Option<End>) {
        let Some(mut episode) = self.episode.take() else {
            return;
        };
        let retransmissions = repairs - episode.repairs;
        episode.event.end_ns = Some(now);
        episode.event.evidence = end(&episode).map(|end| {
            let recovery_point = episode.recovery_point;
            Reason::Ended {
                recovery_point,
                retransmissions,
                end,
            }
            .into()
        });
        self.episodes.push(episode.event);
    }

    fn event(&self, kind: EventKind, cause: EventCause, t_ns: i64) -> Event {
        Event {
            flow_id: self.flow_id,
            t_ns,
            end_ns: None,
            direction: Direction::A2b,
            kind,
            cause,
            record: None,
            seq_start: None,
            seq_end: None,
            copy: None,
            mechanism: None,
            spurious: None,
            evidence: None,
        }
    }
}

/// A timeout with what it sent.
fn tied(timeout: Event, sent: Option<Leaving>) -> Event {
    Event {
        record: sent.map(|sent| sent.record),
        seq_start: sent.map(|sent| sent.seq),
        seq_end: sent.map(|sent| sent.end),
        ..timeout
    }
}

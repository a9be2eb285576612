//! Timeouts and fast recoveries of the sender of a leg, from the sender's own state, where a tracker could only infer
//! them; each with the first segment that was sent because of it.
//!
//! Does not depend on what a tracker sees. Read `SenderSample` first.

use hindflight_engine::{Direction as LinkDirection, PhaseName, Purpose, Segment, SenderSample};
use hindflight_flows::{Direction, End, Event, EventCause, EventKind, Reason};

/// The events of one sender.
pub struct SenderEvents {
    flow_id: u32,
    /// Timeouts so far.
    pub rtos: u64,
    /// Fast recoveries so far.
    pub recoveries: u64,
    timeouts: Vec<Event>,
    /// Fast recoveries that have ended, and one that has not.
    episodes: Vec<Event>,
    episode: Option<Episode>,
    /// Of the data segments sent at the latest departure time, the first.
    data: Option<Departure>,
    /// The same of fast retransmissions; their number before that time, and now.
    retransmission: Option<Departure>,
    retransmissions_before: u32,
    retransmissions: u32,
    /// Time of the latest event.
    latest: i64,
}

/// A fast recovery.
struct Episode {
    event: Event,
    recovery_point: i64,
    /// Fast retransmissions and undone window decreases when it began.
    retransmissions: u32,
    undone: u64,
}

/// A segment that is sent.
#[derive(Clone, Copy)]
struct Departure {
    t_ns: i64,
    record: u64,
    seq: i64,
    end: i64,
}

impl SenderEvents {
    /// No events yet.
    pub fn new(flow_id: u32) -> Self {
        Self {
            flow_id,
            rtos: 0,
            recoveries: 0,
            timeouts: Vec::new(),
            episodes: Vec::new(),
            episode: None,
            data: None,
            retransmission: None,
            retransmissions_before: 0,
            retransmissions: 0,
            latest: 0,
        }
    }

    /// The sender's state has changed; everything sent up to this time has been noted before.
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
            self.end_episode(now, self.retransmissions_until(now), end);
        }
        if expired {
            let sent = self.data.filter(|sent| sent.t_ns == now);
            let timeout = self.event(EventKind::Rto, EventCause::Rto, now);
            self.timeouts.push(with_segment(timeout, sent));
        }
        if entered && let Some(point) = sample.recovery_point {
            let first = self.retransmission.filter(|sent| sent.t_ns == now);
            let event = Event {
                record: first.map(|sent| sent.record),
                seq_start: Some(sample.snd_una as i64),
                seq_end: Some(point as i64),
                ..self.event(EventKind::Recovery, EventCause::Fast, now)
            };
            self.episode = Some(Episode {
                event,
                recovery_point: point as i64,
                retransmissions: self.retransmissions_until(now),
                undone: sample.undone,
            });
        }
    }

    /// A segment is sent or arrives. The first segment sent after a timeout is recorded with the timeout, even if pacing
    /// or a closed window delays it; likewise the first retransmission of a recovery.
    pub fn note_segment(&mut self, segment: &Segment, record: u64, now: i64) {
        self.latest = now;
        if segment.payload_bytes == 0 || segment.direction == LinkDirection::Reverse {
            return;
        }
        let sent = Departure {
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
            *last = with_segment(*last, Some(sent));
        }
        if segment.purpose != Purpose::FastRetransmission {
            return;
        }
        if self.retransmission.is_none_or(|first| first.t_ns != now) {
            self.retransmission = Some(sent);
            self.retransmissions_before = self.retransmissions;
        }
        self.retransmissions += 1;
        if let Some(episode) = &mut self.episode {
            episode.event.record.get_or_insert(record);
        }
    }

    /// Replaces the timeouts and fast recoveries that a tracker inferred. Its evidence of a timeout stays.
    pub fn replace(mut self, events: &mut Vec<Event>) {
        self.end_episode(self.latest, self.retransmissions, |_| Some(End::BrokenOff));
        for timeout in &mut self.timeouts {
            let seen =
                |event: &&Event| event.kind == EventKind::Rto && event.record == timeout.record;
            timeout.evidence = events.iter().find(seen).and_then(|event| event.evidence);
        }
        events.retain(|event| !matches!(event.kind, EventKind::Rto | EventKind::Recovery));
        events.append(&mut self.timeouts);
        events.append(&mut self.episodes);
    }

    /// Fast retransmissions sent before `now`.
    fn retransmissions_until(&self, now: i64) -> u32 {
        match self.retransmission {
            Some(first) if first.t_ns == now => self.retransmissions_before,
            _ => self.retransmissions,
        }
    }

    /// Ends the current recovery, if there is one. `retransmissions` counts those of the whole connection; `end` gives the
    /// reason, if one is known.
    fn end_episode(
        &mut self,
        now: i64,
        retransmissions: u32,
        end: impl FnOnce(&Episode) -> Option<End>,
    ) {
        let Some(mut episode) = self.episode.take() else {
            return;
        };
        let retransmissions = retransmissions - episode.retransmissions;
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
        Event::new(self.flow_id, t_ns, Direction::A2b, kind, cause)
    }
}

/// A timeout with the segment that it sent.
fn with_segment(timeout: Event, sent: Option<Departure>) -> Event {
    Event {
        record: sent.map(|sent| sent.record),
        seq_start: sent.map(|sent| sent.seq),
        seq_end: sent.map(|sent| sent.end),
        ..timeout
    }
}

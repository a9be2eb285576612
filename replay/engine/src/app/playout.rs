//! The playout buffer of a stream: the media play at their rate and stall when the buffer is empty.
//!
//! Does not depend on how the media arrive. It has no timers: a stall is computed when the next octets arrive, or at the
//! end.

use crate::sim::time::{Nanos, SECOND};

/// What the player does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Waiting until `needed` of media beyond `position` have arrived; if that is a stall, it began at `since`.
    Buffering {
        position: Nanos,
        needed: Nanos,
        since: Option<Nanos>,
    },
    /// Playing; at time `at` it was at `position` of the media.
    Playing { position: Nanos, at: Nanos },
}

/// A player; positions are nanoseconds of media.
#[derive(Clone, Copy, Debug)]
pub struct Playout {
    ns_per_octet: f64,
    resume_ns: Nanos,
    arrived: Nanos,
    state: State,
    stalls: u64,
    stalled_ns: Nanos,
}

impl Playout {
    /// A player of media at `rate_bps` that starts with `startup_ns` of media and resumes after a stall with `resume_ns`.
    pub fn new(rate_bps: f64, startup_ns: Nanos, resume_ns: Nanos) -> Self {
        Self {
            ns_per_octet: 8.0 * SECOND as f64 / rate_bps,
            resume_ns,
            arrived: 0,
            state: State::Buffering {
                position: 0,
                needed: startup_ns,
                since: None,
            },
            stalls: 0,
            stalled_ns: 0,
        }
    }

    /// All media up to stream offset `rcv_nxt` have arrived by now.
    pub fn on_arrival(&mut self, rcv_nxt: u64, now: Nanos) {
        self.run_to(now);
        self.arrived = ((rcv_nxt - 1) as f64 * self.ns_per_octet) as Nanos;
        if let State::Buffering {
            position,
            needed,
            since,
        } = self.state
            && self.arrived > position
            && self.arrived >= position + needed
        {
            self.stalled_ns += since.map_or(0, |since| now - since);
            self.state = State::Playing { position, at: now };
        }
    }

    /// Plays until `now` what arrived before.
    fn run_to(&mut self, now: Nanos) {
        if let State::Playing { position, at } = self.state {
            let empty_at = at + (self.arrived - position);
            if now > empty_at {
                self.stalls += 1;
                self.state = State::Buffering {
                    position: self.arrived,
                    needed: self.resume_ns,
                    since: Some(empty_at),
                };
            }
        }
    }

    /// Number of stalls until `end`, and their total time.
    pub fn stalls(&self, end: Nanos) -> (u64, Nanos) {
        let mut finished = *self;
        finished.run_to(end);
        let open = match finished.state {
            State::Buffering {
                since: Some(since), ..
            } => end.saturating_sub(since),
            State::Buffering { since: None, .. } | State::Playing { .. } => 0,
        };
        (finished.stalls, finished.stalled_ns + open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Octets of 8 Mbit/s media: one per microsecond.
    fn offset(ms: u64) -> u64 {
        1 + ms * 1000
    }

    const MS: Nanos = 1_000_000;

    #[test]
    fn a_stall_begins_when_the_buffer_is_empty_and_ends_with_enough_to_resume() {
        let mut playout = Playout::new(8e6, 100 * MS, 50 * MS);
        playout.on_arrival(offset(99), 10 * MS);
        assert_eq!(playout.stalls(900 * MS), (0, 0), "playback has not started");
        playout.on_arrival(offset(100), 20 * MS);
        // Plays 100 ms from 20 ms on: empty at 120 ms.
        assert_eq!(playout.stalls(120 * MS), (0, 0));
        assert_eq!(playout.stalls(125 * MS), (1, 5 * MS));
        playout.on_arrival(offset(149), 130 * MS);
        assert_eq!(
            playout.stalls(140 * MS),
            (1, 20 * MS),
            "49 ms are not enough to resume"
        );
        playout.on_arrival(offset(150), 160 * MS);
        assert_eq!(playout.stalls(210 * MS), (1, 40 * MS));
        assert_eq!(playout.stalls(211 * MS), (2, 41 * MS));
    }

    #[test]
    fn media_that_arrive_in_time_never_stall() {
        let mut playout = Playout::new(8e6, 0, 0);
        for ms in 0..1000 {
            playout.on_arrival(offset(ms + 1), ms * MS);
        }
        assert_eq!(playout.stalls(1000 * MS), (0, 0));
        assert_eq!(playout.stalls(1001 * MS), (1, MS));
    }
}

//! The playing end of a stream: plays media out at their rate and stalls when they run dry.
//!
//! Does not depend on how they arrived. No timers: a stall is worked out when the next octets come, or at the end.

use crate::sim::time::{Nanos, SECOND};

/// What it is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    /// Waiting for `wanted` of media beyond `position`, since `since` if that is a stall.
    Filling {
        position: Nanos,
        wanted: Nanos,
        since: Option<Nanos>,
    },
    /// At `position` of the media at time `at`, playing on.
    Playing { position: Nanos, at: Nanos },
}

/// A player; positions are nanoseconds of media.
#[derive(Clone, Copy, Debug)]
pub struct Playout {
    ns_per_octet: f64,
    resume_ns: Nanos,
    arrived: Nanos,
    doing: Doing,
    stalls: u64,
    stalled_ns: Nanos,
}

impl Playout {
    /// A player of media at `rate_bps` that begins with `startup_ns` of them and goes on after a stall with
    /// `resume_ns`.
    pub fn new(rate_bps: f64, startup_ns: Nanos, resume_ns: Nanos) -> Self {
        Self {
            ns_per_octet: 8.0 * SECOND as f64 / rate_bps,
            resume_ns,
            arrived: 0,
            doing: Doing::Filling {
                position: 0,
                wanted: startup_ns,
                since: None,
            },
            stalls: 0,
            stalled_ns: 0,
        }
    }

    /// Now all media up to stream offset `rcv_nxt` have arrived.
    pub fn on_arrival(&mut self, rcv_nxt: u64, now: Nanos) {
        self.run_to(now);
        self.arrived = ((rcv_nxt - 1) as f64 * self.ns_per_octet) as Nanos;
        if let Doing::Filling {
            position,
            wanted,
            since,
        } = self.doing
            && self.arrived > position
            && self.arrived >= position + wanted
        {
            self.stalled_ns += since.map_or(0, |since| now - since);
            self.doing = Doing::Playing { position, at: now };
        }
    }

    /// Plays until `now`, with what has arrived before.
    fn run_to(&mut self, now: Nanos) {
        if let Doing::Playing { position, at } = self.doing {
            let dry_at = at + (self.arrived - position);
            if now > dry_at {
                self.stalls += 1;
                self.doing = Doing::Filling {
                    position: self.arrived,
                    wanted: self.resume_ns,
                    since: Some(dry_at),
                };
            }
        }
    }

    /// Stalls until `end`, and the time spent in them.
    pub fn stalls(&self, end: Nanos) -> (u64, Nanos) {
        let mut finished = *self;
        finished.run_to(end);
        let open = match finished.doing {
            Doing::Filling {
                since: Some(since), ..
            } => end.saturating_sub(since),
            Doing::Filling { since: None, .. } | Doing::Playing { .. } => 0,
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
    fn a_stall_begins_when_the_media_run_dry_and_ends_with_enough_to_resume() {
        let mut playout = Playout::new(8e6, 100 * MS, 50 * MS);
        playout.on_arrival(offset(99), 10 * MS);
        assert_eq!(playout.stalls(900 * MS), (0, 0), "it has not begun");
        playout.on_arrival(offset(100), 20 * MS);
        // Plays 100 ms from 20 ms on: dry at 120 ms.
        assert_eq!(playout.stalls(120 * MS), (0, 0));
        assert_eq!(playout.stalls(125 * MS), (1, 5 * MS));
        playout.on_arrival(offset(149), 130 * MS);
        assert_eq!(
            playout.stalls(140 * MS),
            (1, 20 * MS),
            "49 ms are not enough to go on"
        );
        playout.on_arrival(offset(150), 160 * MS);
        assert_eq!(playout.stalls(210 * MS), (1, 40 * MS));
        assert_eq!(playout.stalls(211 * MS), (2, 41 * MS));
    }

    #[test]
    fn media_that_come_in_time_never_stall() {
        let mut playout = Playout::new(8e6, 0, 0);
        for ms in 0..1000 {
            playout.on_arrival(offset(ms + 1), ms * MS);
        }
        assert_eq!(playout.stalls(1000 * MS), (0, 0));
        assert_eq!(playout.stalls(1001 * MS), (1, MS));
    }
}

//! Bursts as in Linux (TSO): how many segments are sent as one, and when fewer wait until the window has room for more.
//!
//! Does not depend on which data they carry.

use super::Sender;
use super::pacing::Pacer;
use crate::cc::WindowPacing;
use crate::sim::time::{MILLISECOND, Nanos, SECOND};

/// Linux: segments that leave as one wherever the window has room for them, and the time whose data they carry.
const MIN_BURST: u32 = WindowPacing::LINUX.min_burst_pkts;
const BURST_SPAN: Nanos = SECOND / 1024;

/// Linux (`tcp_tso_win_divisor`): a third of the window is enough for a separate burst.
const BURST_SHARE: f64 = 3.0;

/// Segments that leave as one.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Burst {
    pub(super) at: Nanos,
    size: u32,
    pub(super) sent: u32,
    /// It is not the first of its instant.
    follows: bool,
}

impl Burst {
    /// After one of its segments has left: whether more are to follow.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        self.sent < self.size
    }
}

/// The window that governs transmission, and what is left of it, in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) window: f64,
    pub(super) left: f64,
}

impl Room {
    #[inline]
    pub(super) fn of(window: f64, in_network: u32) -> Self {
        let left = window - f64::from(in_network);
        Self { window, left }
    }
}

impl Sender {
    /// The size of a burst that begins now; none where it waits for the next ACK, to leave with more. The smaller of the two
    /// windows then counts as what stops it.
    #[inline(always)]
    pub(super) fn plan_burst(&mut self, room: Room, now: Nanos) -> Option<u32> {
        let pushed = std::mem::take(&mut self.send_queue.pushed);
        let waits = !pushed && self.deferred;
        if !waits && self.is_in_burst(now) {
            return Some(self.burst.size);
        }
        self.plan_next_burst((pushed, waits), room, now)
    }

    #[inline(never)]
    fn plan_next_burst(
        &mut self,
        (pushed, waits): (bool, bool),
        room: Room,
        now: Nanos,
    ) -> Option<u32> {
        let size = self.max_of_burst(room);
        if waits || !pushed && self.waits_for_a_burst(room, size, now) {
            self.deferred = true;
            self.note_usage(self.is_smaller(room, size), now);
            return None;
        }
        Some(self.limit_burst(size, room))
    }

    /// Linux (`tcp_small_queue_check`): of several bursts that leave at one instant the second waits until the first has
    /// passed the device, so that the window has room for a moment.
    ///
    /// Deviation: how much the device may hold depends on how it segments; the recorded ones hold a burst.
    #[inline]
    pub(in crate::tcp) fn was_throttled(&self, now: Nanos) -> bool {
        self.burst.at == now && self.burst.follows
    }

    /// The size of a burst that begins now, whatever it might wait for.
    pub(in crate::tcp) fn burst_now(&self) -> u32 {
        let room = self.room();
        self.limit_burst(self.max_of_burst(room), room)
    }

    /// Whether a segment waits for more room in the congestion window now.
    pub(in crate::tcp) fn awaits_room(&self, now: Nanos) -> bool {
        let room = self.room();
        let size = self.max_of_burst(room);
        self.is_smaller(room, size) && self.waits_for_a_burst(room, size, now)
    }

    /// Whether the congestion window has less `room` than a burst of `size` needs, and less than the receiver's.
    fn is_smaller(&self, room: Room, size: u32) -> bool {
        room.left < self.offered_pkts().min(f64::from(size))
    }

    /// What the receiver's window has room for, in segments.
    fn offered_pkts(&self) -> f64 {
        self.edge.saturating_sub(self.snd_nxt) as f64 / f64::from(self.params.smss_bytes)
    }

    /// Whether a burst is under way, of which more segments follow.
    #[inline]
    pub(super) fn is_in_burst(&self, now: Nanos) -> bool {
        self.burst.at == now && self.burst.has_more()
    }

    /// Whether the segment that leaves next is the last of several that leave as one: Linux pushes it, and a receiver that
    /// has read it acknowledges it at once. `next`: the size of a burst that begins with it.
    #[inline]
    pub(super) fn ends_burst(&mut self, next: u32, now: Nanos) -> bool {
        let Burst { at, size, sent, .. } = self.burst;
        if at != now || sent == size {
            self.burst = Burst {
                at: now,
                size: next,
                sent: 0,
                follows: at == now,
            };
        }
        self.burst.sent += 1;
        self.burst.size > 1 && self.burst.sent == self.burst.size
    }

    /// Of a burst of `max` segments what the window and the application have room and data for: with the end of the data where
    /// Nagle's algorithm lets a partial segment leave (`tcp_mss_split_point`).
    #[inline]
    fn limit_burst(&self, max: u32, room: Room) -> u32 {
        let smss_bytes = u64::from(self.params.smss_bytes);
        let waiting = self.write_end - self.snd_nxt;
        let mut size = max;
        if room.left < f64::from(max) {
            size = (room.left as u32).max(1);
        }
        if waiting < u64::from(size) * smss_bytes {
            let partial = waiting % smss_bytes > 0 && !self.must_fill_up();
            return (waiting / smss_bytes) as u32 + u32::from(partial);
        }
        size
    }

    /// Linux (`tcp_tso_should_defer`): where a segment left within the last millisecond and the next ACK is due
    /// within one, room for less than a burst waits for more. The millisecond begins when pacing lets the next one
    /// leave (`tcp_wstamp_ns`).
    #[inline]
    fn waits_for_a_burst(&self, room: Room, max: u32, now: Nanos) -> bool {
        let left = room.left.min(self.offered_pkts());
        let ample = left >= f64::from(max);
        if ample || !self.rules.sends_bursts || self.is_in_burst(now) || self.in_loss_recovery() {
            return false;
        }
        let released = self.pacer.as_ref().map_or(0, Pacer::release);
        let wanted = left * BURST_SHARE;
        let is_small = now <= self.last_sent_at.max(released) + MILLISECOND
            && wanted < room.window
            && wanted * f64::from(self.params.smss_bytes) < f64::from(self.last_wnd_bytes);
        if !is_small {
            return false;
        }
        let (Some(first), Some(srtt)) = (self.board.first(), self.rtt.srtt()) else {
            return false;
        };
        // The last segment of a piece gains nothing by waiting.
        self.board.sent_at(first) + srtt <= now + (srtt / 2).min(MILLISECOND)
            && self.head_pkts() > 1
    }

    /// Linux (`tcp_tso_autosize`): what the pacing rate sends in a millisecond, at least two segments.
    /// Where the `room` is less than that it does not matter how much more it would be.
    #[inline]
    fn max_of_burst(&self, room: Room) -> u32 {
        if let Some(pacer) = &self.pacer {
            return pacer.burst_pkts();
        }
        let Some(srtt) = self.rtt.srtt().filter(|_| room.left >= 2.0) else {
            return MIN_BURST;
        };
        let cwnd = self.controller.window().cwnd;
        let share = WindowPacing::LINUX.share(cwnd, self.controller.window().ssthresh);
        let (work, srtt) = (share * cwnd * BURST_SPAN as f64, srtt as i64 as f64);
        if work < f64::from(MIN_BURST + 1) * srtt {
            return MIN_BURST;
        }
        (work / srtt) as u32
    }
}

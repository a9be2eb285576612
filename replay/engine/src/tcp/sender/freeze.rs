//! A sender whose receiver warns of outages: a closed window freezes window and timers, and the third acknowledgement that
//! opens it retransmits what was in flight.
//!
//! Does not depend on how the receiver knows. Read Goff, Moronski, Phatak and Gupta 2000 §3 first, then
//! `docs/variants/freeze-tcp.md`.

use super::Sender;
use super::fast_path::FastPath;
use super::phase::Phase;
use crate::sim::time::Nanos;
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::segment::Segment;

/// What the receiver reports about the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) enum Freeze {
    /// Nothing.
    #[default]
    Flowing,
    /// An outage is near, or lasts.
    Frozen,
    /// It was over at `since`; so many acknowledgements have said so.
    Thawing {
        /// When the first one came.
        since: Nanos,
        /// That one and those after it.
        acks: u64,
    },
}

impl Sender {
    /// Whether nothing may leave but probes of the window.
    #[inline]
    pub(in crate::tcp) fn is_frozen(&self) -> bool {
        self.freeze == Freeze::Frozen
    }

    /// Reads the window of an acknowledgement. Returns whether it is to count as the third duplicate.
    pub(in crate::tcp) fn heed_warning(
        &mut self,
        segment: &Segment,
        advances: bool,
        now: Nanos,
    ) -> bool {
        if self.params.freeze_warning_ns.is_none() {
            return false;
        }
        self.freeze = match self.freeze {
            Freeze::Flowing | Freeze::Thawing { .. } if segment.wnd_bytes == 0 => {
                self.persist_backoff = 0;
                self.arm_persist(now);
                Freeze::Frozen
            }
            Freeze::Frozen if segment.wnd_bytes > 0 => {
                // Deviation: RFC 5681 §4.1 would restart the window after the pause: to keep it is the point.
                self.last_sent_at = now;
                if self.board.outstanding() > 0 {
                    self.rto_timer.set(now + self.rtt.rto());
                }
                Freeze::Thawing {
                    since: now,
                    acks: 1,
                }
            }
            Freeze::Thawing { .. } if advances => Freeze::Flowing,
            Freeze::Thawing { since, acks } => Freeze::Thawing {
                since,
                acks: acks + 1,
            },
            same => same,
        };
        if self.fast_path != FastPath::Never {
            self.fast_path = match self.freeze {
                Freeze::Flowing => FastPath::Allowed,
                Freeze::Frozen | Freeze::Thawing { .. } => FastPath::Suspended,
            };
        }
        match self.freeze {
            Freeze::Thawing { since, acks } if acks == DUP_THRESH => self.retransmit_all(since),
            _ => false,
        }
    }

    /// What left before `since` and has not been acknowledged was lost in the outage.
    fn retransmit_all(&mut self, since: Nanos) -> bool {
        let left = self.board.first().map(|first| self.board.sent_at(first));
        if left.is_none_or(|left| left >= since) {
            return false;
        }
        if self.params.sack_enabled() {
            self.board.mark_timed_out(since - 1);
        }
        if let Phase::Open { dup_acks } = &mut self.phase {
            *dup_acks = DUP_THRESH as u32 - 1;
        }
        true
    }

    /// No timer runs while frozen but that of the window's probes. Returns whether it is.
    pub(in crate::tcp) fn stops_timers(&mut self) -> bool {
        if self.is_frozen() {
            self.rto_timer.stop();
            self.rack.stop_timers();
        }
        self.is_frozen()
    }
}

//! Super TCP's recovery on the satellite leg: begun by the first duplicate ACK without SACK, with a window that no loss
//! moves; the first partial ACK shows how many segments are missing, and all of them leave again at once.
//!
//! Does not depend on how the window came to be. Read RFC 6582 §3.2 first, then `docs/variants/supertcp.md`.

use super::fast_recovery::Ack;
use crate::config::RecoveryKind;
use crate::sim::time::Nanos;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase, RecoveryWindow};

impl Sender {
    /// Whether it recovers as Super TCP does.
    #[inline]
    pub(in crate::tcp) fn is_supertcp(&self) -> bool {
        self.params.recovery == RecoveryKind::Supertcp
    }

    pub(in crate::tcp) fn react_as_supertcp(&mut self, ack: &Ack) {
        match self.phase {
            // RFC 6582 §3.2 step 2: not for duplicates of what the last recovery sent again.
            Phase::Open { .. } if ack.duplicate && self.snd_una > self.recover => {
                self.mend(ack.now);
            }
            Phase::Open { .. } if ack.advances => self.grow(ack),
            Phase::Recovery(FastRecovery { recovery_point, .. })
            | Phase::Loss { recovery_point, .. }
                if self.snd_una >= recovery_point =>
            {
                self.phase = Phase::Open { dup_acks: 0 };
                self.grow(ack);
            }
            Phase::Recovery(FastRecovery { recovery_point, .. }) if ack.advances => {
                self.mend_gap(ack.digest.acked, recovery_point);
            }
            Phase::Recovery(_) if ack.duplicate => self.note_arrival(),
            Phase::Open { .. } | Phase::Recovery(_) | Phase::Loss { .. } => {}
        }
    }

    /// The first hole leaves again: the segment that its duplicate stands for has left the network, and so has it.
    fn mend(&mut self, now: Nanos) {
        self.counters.recoveries += 1;
        self.recover = self.snd_nxt;
        self.forced = self.board.first();
        // Deviation: as elsewhere, the first repair has the whole RTO.
        self.rto_timer.set(now + self.rtt.rto());
        self.phase = Phase::Recovery(FastRecovery {
            recovery_point: self.snd_nxt,
            window: RecoveryWindow::Gap {
                pipe: i64::from(self.board.outstanding()) - 2,
                arrived: Some(1),
            },
            speculative_from: self.snd_una,
            rescued: true,
        });
    }

    fn gap(&mut self) -> Option<(&mut i64, &mut Option<u32>)> {
        match &mut self.phase {
            Phase::Recovery(FastRecovery {
                window: RecoveryWindow::Gap { pipe, arrived },
                ..
            }) => Some((pipe, arrived)),
            _ => None,
        }
    }

    fn note_arrival(&mut self) {
        if let Some((pipe, arrived)) = self.gap() {
            *pipe -= 1;
            *arrived = arrived.map(|segments| segments + 1);
        }
    }

    /// A partial ACK of `acked` segments, the mended one and those that had arrived behind it. Over a channel that keeps
    /// the order, all that arrived of the window has been told by now: the rest is the gap, taken for one burst.
    fn mend_gap(&mut self, acked: u32, recovery_point: u64) {
        let Some(first) = self.board.first() else {
            return;
        };
        let octets = recovery_point - self.snd_una;
        let left = octets.div_ceil(u64::from(self.params.smss_bytes)) as u32;
        let Some((pipe, arrived)) = self.gap() else {
            return;
        };
        *pipe -= 1;
        let gap = match arrived.take() {
            Some(arrived) => {
                let gap = left
                    .saturating_sub((arrived + 1).saturating_sub(acked))
                    .max(1);
                *pipe -= i64::from(gap);
                gap
            }
            // It was no single burst: the next hole by itself, unless it has left again.
            None => 1,
        };
        for number in first..first + u64::from(gap.min(self.board.outstanding())) {
            self.board.mark_lost(number);
        }
    }
}

//! Super TCP's recovery on the satellite leg: it begins at the first duplicate ACK, without SACK, and keeps a fixed
//! window; the first partial ACK shows how many segments are missing, and all of them are retransmitted at once.
//!
//! Does not depend on the window increase. Read RFC 6582 §3.2 first, then `docs/variants/supertcp.md`.

use super::window::RecoveryWindow;
use super::{Ack, Recovery, rfc};
use crate::sim::time::Nanos;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// Super TCP.
pub(in crate::tcp) struct SupertcpRecovery;

impl Recovery for SupertcpRecovery {
    fn on_ack(sender: &mut Sender, ack: &Ack) {
        sender.react_as_supertcp(ack);
    }

    fn on_timeout(sender: &mut Sender, now: Nanos) {
        rfc::retransmit_all(sender, now);
    }
}

impl Sender {
    fn react_as_supertcp(&mut self, ack: &Ack) {
        match self.phase {
            // RFC 6582 §3.2 step 2: not for duplicates of what the last recovery sent again.
            Phase::Open { .. } if ack.duplicate && self.snd_una > self.recover => {
                self.retransmit_first(ack.now);
            }
            Phase::Open { .. } if ack.advances => self.increase_window(ack),
            Phase::Recovery(FastRecovery { recovery_point, .. })
            | Phase::Loss { recovery_point, .. }
                if self.snd_una >= recovery_point =>
            {
                self.phase = Phase::Open { dup_acks: 0 };
                self.increase_window(ack);
            }
            Phase::Recovery(FastRecovery { recovery_point, .. }) if ack.advances => {
                self.retransmit_gap(ack.digest.acked, recovery_point);
            }
            Phase::Recovery(_) if ack.duplicate => self.note_arrival(),
            Phase::Open { .. } | Phase::Recovery(_) | Phase::Loss { .. } => {}
        }
    }

    /// The first hole is retransmitted: the segment that the duplicate ACK reports has left the network, and so has the
    /// hole.
    fn retransmit_first(&mut self, now: Nanos) {
        self.counters.recoveries += 1;
        self.recover = self.snd_nxt;
        self.forced = self.board.first();
        // Deviation: as elsewhere, the first retransmission has the whole RTO.
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

    /// A partial ACK of `acked` segments, the retransmitted one and those that had arrived behind it. Over a channel that keeps
    /// the order, everything that arrived of the window has been reported by now: the rest is the gap, taken for one burst of losses.
    fn retransmit_gap(&mut self, acked: u32, recovery_point: u64) {
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
            // It was more than one burst: the next hole alone, unless it has been retransmitted.
            None => 1,
        };
        for number in first..first + u64::from(gap.min(self.board.outstanding())) {
            self.board.mark_lost(number);
        }
    }
}

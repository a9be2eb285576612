//! AeroTCP's recovery on the satellite leg: it begins at the first duplicate ACK, keeps a fixed window, counts
//! what is in flight separately, and sends two copies after a timeout.
//!
//! Does not depend on the window increase. Read RFC 6675 §5 first, then `docs/variants/aerotcp.md`.

use super::window::RecoveryWindow;
use super::{Ack, Recovery, sack};
use crate::cc::ConnectionEvent;
use crate::sim::time::Nanos;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// What a partial ACK takes from the pipe: the packet that was dropped, and its retransmission.
const PARTIAL_ACK: i64 = 2;

/// AeroTCP.
pub(in crate::tcp) struct AerotcpRecovery;

impl Recovery for AerotcpRecovery {
    fn on_ack(sender: &mut Sender, ack: &Ack) {
        sack::find_losses(sender, ack, 1);
        sender.react_as_aerotcp(ack);
    }

    fn on_timeout(sender: &mut Sender, now: Nanos) {
        sender.time_out_as_aerotcp(now);
    }
}

impl Sender {
    fn react_as_aerotcp(&mut self, ack: &Ack) {
        match self.phase {
            Phase::Open { .. } | Phase::Loss { .. } => {
                if self.board.lost() > 0 {
                    self.recover_as_aerotcp(self.window_in_flight());
                } else if ack.advances {
                    self.increase_window(ack);
                }
            }
            Phase::Recovery(FastRecovery { recovery_point, .. })
                if self.snd_una >= recovery_point =>
            {
                let evidence = self.evidence(ack);
                self.controller
                    .on_event(&ConnectionEvent::RecoveryExit(evidence, None));
                self.phase = Phase::Open { dup_acks: 0 };
                // What was sent during recovery may have been lost meanwhile.
                if self.board.lost() > 0 {
                    self.recover_as_aerotcp(self.window_in_flight());
                }
            }
            Phase::Recovery(_) => {
                let newly_sacked = i64::from(ack.digest.sacked);
                if let Some(pipe) = self.counted_pipe() {
                    // Deviation: an ACK that reports several takes as many: ACKs are lost too.
                    *pipe -= if ack.advances {
                        PARTIAL_ACK
                    } else {
                        newly_sacked
                    };
                }
            }
        }
    }

    /// Begins super fast recovery: the first hole leaves again, less itself in the pipe.
    fn recover_as_aerotcp(&mut self, in_flight: i64) {
        self.counters.recoveries += 1;
        self.recover = self.snd_nxt;
        self.forced = self.board.next_retransmission();
        self.phase = self.counting_from(in_flight - 1);
    }

    /// The pipe at the start is cwnd, or what is outstanding where that is less.
    fn window_in_flight(&self) -> i64 {
        i64::from(self.board.outstanding()).min(self.controller.window().cwnd as i64)
    }

    fn counting_from(&self, pipe: i64) -> Phase {
        Phase::Recovery(FastRecovery {
            recovery_point: self.snd_nxt,
            window: RecoveryWindow::Counted { pipe },
            speculative_from: self.snd_una,
            rescued: true,
        })
    }

    fn counted_pipe(&mut self) -> Option<&mut i64> {
        match &mut self.phase {
            Phase::Recovery(FastRecovery {
                window: RecoveryWindow::Counted { pipe },
                ..
            }) => Some(pipe),
            _ => None,
        }
    }

    /// A retransmission was lost: two copies leave, one behind the other. The window stays, the timer does not back off.
    ///
    /// What was sent more than a round trip ago is not in flight any more: by the paper's rules it would count for ever.
    fn time_out_as_aerotcp(&mut self, now: Nanos) {
        self.timeouts_in_a_row += 1;
        self.rtt.end_backoff();
        let round_trip = self.rtt.srtt().unwrap_or(0);
        self.board.mark_timed_out(now.saturating_sub(round_trip));
        self.recover = self.snd_nxt;
        let in_flight = i64::from(self.board.pipe());
        self.forced = self.board.first();
        self.second_copy = self.forced;
        self.phase = self.counting_from(in_flight);
        self.rto_timer.set(now + self.rtt.rto());
    }
}

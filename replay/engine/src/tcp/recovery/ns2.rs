//! The sender of the profile `ns2`: recovery and window as the agents TCP/Reno, TCP/Newreno and TCP/Sack1 of ns-2.35
//! have them, where they differ from RFC 5681, 6582 and 6675. Everything counts packets and ACKs.
//!
//! Does not depend on how a controller moves the window. Read `docs/validation.md` (the simulator ns-2) first.

use super::fast_recovery::Ack;
use crate::cc::{Signal, SignalEvidence};
use crate::config::{Profile, RecoveryKind};
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase, RecoveryWindow};

impl Sender {
    /// Whether it recovers as ns-2's agents do.
    #[inline]
    pub(in crate::tcp) fn is_ns2(&self) -> bool {
        self.params.profile == Profile::Ns2
            && !self.controller.models_path()
            && matches!(
                self.params.recovery,
                RecoveryKind::Reno | RecoveryKind::Newreno | RecoveryKind::Sack
            )
    }

    /// Segments that must be sacked above a hole before it is sent again: ns-2's scoreboard, FACK and AeroTCP send any
    /// hole.
    #[inline]
    pub(in crate::tcp) fn dup_thresh(&self) -> u64 {
        if self.is_ns2() || self.is_aerotcp() || self.is_fack() {
            1
        } else {
            DUP_THRESH
        }
    }

    /// ns-2 forgets SACK at a timeout and learns nothing from it until all is sent again.
    #[inline]
    pub(in crate::tcp) fn ignores_sack(&self) -> bool {
        matches!(self.phase, Phase::Loss { .. }) && self.is_ns2()
    }

    /// What ns-2 halves: the window that governed transmission, not what is in flight.
    pub(in crate::tcp) fn ns2_window(&self) -> f64 {
        let advertised = self.last_wnd_bytes / self.params.smss_bytes;
        let cwnd = self.controller.cwnd() - self.deflation();
        cwnd.min(f64::from(advertised))
    }

    /// What partial ACKs took from cwnd in this recovery.
    fn deflation(&self) -> f64 {
        match &self.phase {
            Phase::Recovery(FastRecovery {
                window: RecoveryWindow::Inflated { deflation, .. },
                ..
            }) => *deflation,
            _ => 0.0,
        }
    }

    pub(in crate::tcp) fn react_as_ns2(&mut self, ack: &Ack) {
        match self.phase {
            Phase::Open { dup_acks } => {
                let dup_acks = counted(dup_acks, ack);
                self.phase = Phase::Open { dup_acks };
                // `bugFix_`: not for duplicates of what was sent before the last recovery or timeout.
                if ack.duplicate && u64::from(dup_acks) == DUP_THRESH && self.snd_una > self.recover
                {
                    self.enter_as_ns2(ack);
                } else if ack.advances {
                    self.grow(ack);
                }
            }
            Phase::Recovery(FastRecovery { recovery_point, .. })
                if self.snd_una >= recovery_point =>
            {
                self.leave_as_ns2(ack);
            }
            Phase::Recovery(_) => self.recover_as_ns2(ack),
            Phase::Loss {
                recovery_point,
                dup_acks,
            } => {
                if ack.advances {
                    self.grow(ack);
                }
                let dup_acks = counted(dup_acks, ack);
                self.phase = if self.snd_una >= recovery_point {
                    Phase::Open { dup_acks: 0 }
                } else {
                    Phase::Loss {
                        recovery_point,
                        dup_acks,
                    }
                };
            }
        }
    }

    fn enter_as_ns2(&mut self, ack: &Ack) {
        let Some(first) = self.board.first() else {
            return;
        };
        self.counters.recoveries += 1;
        self.recover = self.snd_nxt;
        self.controller.on_congestion(&SignalEvidence {
            now: ack.now,
            flight: self.ns2_window(),
            lost_total: self.board.lost_total(),
            signal: Signal::Loss,
        });
        self.rtt.stop_timing();
        self.rto_timer.set(ack.now + self.rtt.rto());
        self.forced = Some(first);
        let window = if self.params.recovery == RecoveryKind::Sack {
            self.board.mark_lost(first);
            // The three that the duplicates report have left; the repair, which does not count, will add itself.
            let pipe = i64::from(self.board.outstanding()) - DUP_THRESH as i64 - 1;
            RecoveryWindow::Counted { pipe }
        } else {
            RecoveryWindow::Inflated {
                extra: DUP_THRESH as f64,
                deflation: 0.0,
                partial_seen: false,
            }
        };
        self.phase = Phase::Recovery(FastRecovery {
            recovery_point: self.snd_nxt,
            window,
            speculative_from: first,
            rescued: false,
        });
    }

    fn recover_as_ns2(&mut self, ack: &Ack) {
        if ack.advances && self.params.recovery == RecoveryKind::Reno {
            self.leave_as_ns2(ack);
            return;
        }
        let first = self.board.first();
        let Phase::Recovery(recovery) = &mut self.phase else {
            return;
        };
        match &mut recovery.window {
            RecoveryWindow::Inflated {
                extra, deflation, ..
            } if ack.advances => {
                // A partial ACK deflates by what it acknowledges less one: first what the duplicates had added, then
                // cwnd itself, which stays there.
                let acked = f64::from(ack.digest.acked);
                *deflation += (acked - *extra).max(0.0);
                *extra = (*extra + 1.0 - acked).max(1.0);
                self.forced = first;
            }
            RecoveryWindow::Inflated { extra, .. } => *extra += 1.0,
            RecoveryWindow::Counted { pipe } => {
                // A partial ACK stands for the repair and for the packet that it replaced.
                *pipe -= 1 + i64::from(ack.advances);
                if ack.advances {
                    self.rtt.end_backoff();
                }
            }
            RecoveryWindow::Pipe
            | RecoveryWindow::Model
            | RecoveryWindow::Forward { .. }
            | RecoveryWindow::Gap { .. }
            | RecoveryWindow::Prr(_) => {}
        }
    }

    fn leave_as_ns2(&mut self, ack: &Ack) {
        let cwnd = self.controller.cwnd() - self.deflation();
        let evidence = self.evidence(ack);
        self.controller.on_recovery_exit(&evidence, Some(cwnd));
        self.phase = Phase::Open { dup_acks: 0 };
        self.forced = None;
        if self.params.recovery == RecoveryKind::Sack {
            self.board.forget();
            self.recover = 0;
        } else {
            self.grow(ack);
        }
    }

    /// Everything from `snd_una` on is sent again, in order, whatever SACK has reported.
    pub(in crate::tcp) fn go_back(&mut self) {
        self.rtt.stop_timing();
        self.board.forget();
    }
}

/// Duplicates since `snd_una` last moved, with this ACK.
fn counted(dup_acks: u32, ack: &Ack) -> u32 {
    if ack.advances {
        0
    } else {
        dup_acks + u32::from(ack.duplicate)
    }
}

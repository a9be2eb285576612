//! The recovery of the profile `ns2`: the agents TCP/Reno, TCP/Newreno and TCP/Sack1 of ns-2.35, where they differ from
//! RFC 5681, 6582 and 6675. They count packets and ACKs.
//!
//! Does not depend on how a controller moves the window. Read `docs/validation.md` (the simulator ns-2) first.

use crate::cc::ConnectionEvent;
use std::marker::PhantomData;

use super::window::RecoveryWindow;
use super::{Ack, Recovery, rfc, sack};
use crate::sim::time::Nanos;
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// One of ns-2's agents.
pub(in crate::tcp) trait Agent {
    /// Agent/TCP/Sack1's scoreboard.
    const SACK: bool = false;
    /// A partial ACK does not end recovery.
    const PARTIAL_ACKS: bool = true;
}

/// Agent/TCP/Reno.
pub(in crate::tcp) struct Reno;

impl Agent for Reno {
    const PARTIAL_ACKS: bool = false;
}

/// Agent/TCP/Newreno.
pub(in crate::tcp) struct Newreno;

impl Agent for Newreno {}

/// Agent/TCP/Sack1.
pub(in crate::tcp) struct Sack;

impl Agent for Sack {
    const SACK: bool = true;
}

/// The recovery of an agent.
pub(in crate::tcp) struct Ns2Recovery<A>(PhantomData<A>);

impl<A: Agent> Recovery for Ns2Recovery<A> {
    const ALLOWS_FAST_PATH: bool = false;

    fn on_ack(sender: &mut Sender, ack: &Ack) {
        if A::SACK {
            // ns-2's scoreboard retransmits any hole.
            sack::find_losses(sender, ack, 1);
        }
        sender.react_as_ns2::<A>(ack);
    }

    /// Everything from `snd_una` on is sent again, in order, whatever SACK has reported.
    fn on_timeout(sender: &mut Sender, now: Nanos) {
        sender.rtt.stop_timing();
        sender.board.forget();
        let window = sender.ns2_window();
        sender.board.mark_all_lost();
        sender.reduce_for_timeout(window, true, now);
        rfc::begin_loss_phase(sender, now);
    }
}

impl Sender {
    /// What ns-2 halves: the window that governed transmission, not what is in flight.
    fn ns2_window(&self) -> f64 {
        let advertised = self.last_wnd_bytes / self.params.smss_bytes;
        let cwnd = self.controller.window().cwnd - self.deflation();
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

    fn react_as_ns2<A: Agent>(&mut self, ack: &Ack) {
        match self.phase {
            Phase::Open { dup_acks } => {
                let dup_acks = counted(dup_acks, ack);
                self.phase = Phase::Open { dup_acks };
                // `bugFix_`: not for duplicates of what was sent before the last recovery or timeout.
                if ack.duplicate && u64::from(dup_acks) == DUP_THRESH && self.snd_una > self.recover
                {
                    self.enter_as_ns2::<A>(ack);
                } else if ack.advances {
                    self.increase_window(ack);
                }
            }
            Phase::Recovery(FastRecovery { recovery_point, .. })
                if self.snd_una >= recovery_point =>
            {
                self.leave_as_ns2::<A>(ack);
            }
            Phase::Recovery(_) => self.recover_as_ns2::<A>(ack),
            Phase::Loss {
                recovery_point,
                dup_acks,
            } => {
                if ack.advances {
                    self.increase_window(ack);
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

    fn enter_as_ns2<A: Agent>(&mut self, ack: &Ack) {
        let Some(first) = self.board.first() else {
            return;
        };
        self.counters.recoveries += 1;
        self.recover = self.snd_nxt;
        self.reduce_for_loss(self.ns2_window(), ack.now);
        self.rtt.stop_timing();
        self.rto_timer.set(ack.now + self.rtt.rto());
        self.forced = Some(first);
        let window = if A::SACK {
            self.board.mark_lost(first);
            // The three that the duplicates report have left; the retransmission, which is not counted, will add itself.
            let pipe = i64::from(self.board.outstanding()) - DUP_THRESH as i64 - 1;
            RecoveryWindow::Counted { pipe }
        } else {
            RecoveryWindow::INFLATED
        };
        self.phase = Phase::Recovery(FastRecovery {
            recovery_point: self.snd_nxt,
            window,
            speculative_from: first,
            rescued: false,
        });
    }

    fn recover_as_ns2<A: Agent>(&mut self, ack: &Ack) {
        if ack.advances && !A::PARTIAL_ACKS {
            self.leave_as_ns2::<A>(ack);
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
                // A partial ACK reports the retransmission and the packet that it replaced.
                *pipe -= 1 + i64::from(ack.advances);
                if ack.advances {
                    self.rtt.end_backoff();
                }
            }
            RecoveryWindow::Pipe
            | RecoveryWindow::Model
            | RecoveryWindow::Forward { .. }
            | RecoveryWindow::Halving { .. }
            | RecoveryWindow::Gap { .. }
            | RecoveryWindow::Prr(_) => {}
        }
    }

    fn leave_as_ns2<A: Agent>(&mut self, ack: &Ack) {
        let cwnd = self.controller.window().cwnd - self.deflation();
        let evidence = self.evidence(ack);
        self.controller
            .on_event(&ConnectionEvent::RecoveryExit(evidence, Some(cwnd)));
        self.phase = Phase::Open { dup_acks: 0 };
        self.forced = None;
        if A::SACK {
            self.board.forget();
            self.recover = 0;
        } else {
            self.increase_window(ack);
        }
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

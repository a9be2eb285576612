//! Proportional rate reduction (RFC 9937, which replaces RFC 6937): how many segments may leave per ACK in recovery, and
//! the recovery by SACK that uses it.
//!
//! The arithmetic does not depend on the scoreboard: the pipe is an argument. The names are the RFC's.

use super::rfc::Entry;
use super::sack::{self, SackRecovery};
use super::window::RecoveryWindow;
use super::{Ack, Recovery};
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::{FastRecovery, Phase};

/// RFC 6675 with the proportional rate reduction.
pub(in crate::tcp) struct PrrRecovery;

impl Recovery for PrrRecovery {
    fn find_losses(sender: &mut Sender, ack: &Ack) -> bool {
        sack::find_losses(sender, ack, DUP_THRESH)
    }

    fn is_triggered(sender: &Sender, dup_acks: u32) -> bool {
        SackRecovery::is_triggered(sender, dup_acks)
    }

    fn begin(sender: &mut Sender, entry: &mut Entry) -> RecoveryWindow {
        sender.board.mark_lost(entry.first);
        begin(sender, entry)
    }
}

/// The rate reduction of a recovery that begins has seen its first ACK.
pub(super) fn begin(sender: &mut Sender, entry: &mut Entry) -> RecoveryWindow {
    let mut prr = sender.proportional_rate(entry);
    prr.on_ack(entry.delivered, false, sender.board.pipe());
    RecoveryWindow::Prr(prr)
}

impl Sender {
    /// The rate reduction of a recovery that begins: where a congestion mark has begun one, that one continues and
    /// determines where recovery ends.
    pub(super) fn proportional_rate(&mut self, entry: &mut Entry) -> Prr {
        let recover_fs = if self.rules.recover_fs_is_cwnd {
            entry.cwnd_before as u32
        } else {
            entry.flight
        };
        let Some((begun, until)) = self.marks.stop_sinking() else {
            return Prr::new(self.controller.window().cwnd as u32, recover_fs);
        };
        entry.recovery_point = until;
        begun
    }

    /// An ACK in recovery delivered `delivered` segments; `safe`: it moved `snd_una` and no further loss was found.
    pub(super) fn reduce_proportionally(&mut self, delivered: u32, safe: bool) {
        let pipe = self.board.pipe();
        if let Phase::Recovery(FastRecovery {
            window: RecoveryWindow::Prr(prr),
            ..
        }) = &mut self.phase
        {
            prr.on_ack(delivered, safe, pipe);
        }
    }
}

/// State of one recovery.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_field_names,
    reason = "prr_delivered and prr_out are the RFC's names"
)]
pub struct Prr {
    ssthresh: u32,
    recover_fs: u32,
    prr_delivered: u32,
    prr_out: u32,
    window: u32,
}

impl Prr {
    /// Recovery begins: `recover_fs` segments were in flight, `ssthresh` is the target.
    pub fn new(ssthresh: u32, recover_fs: u32) -> Self {
        Self {
            ssthresh,
            recover_fs: recover_fs.max(1),
            prr_delivered: 0,
            prr_out: 0,
            window: 0,
        }
    }

    /// HyStart may lower ssthresh during recovery.
    pub fn aim_at_most_for(&mut self, ssthresh: f64) {
        if ssthresh < f64::from(self.ssthresh) {
            self.ssthresh = ssthresh as u32;
        }
    }

    /// An ACK delivered `delivered` segments; `safe`: it moved `snd_una` and no further loss was found.
    pub fn on_ack(&mut self, delivered: u32, safe: bool, pipe: u32) {
        if delivered == 0 {
            self.window = self.window.max(pipe);
            return;
        }
        self.prr_delivered += delivered;
        let quota = if pipe > self.ssthresh {
            // Proportional: ceil(prr_delivered * ssthresh / RecoverFS) - prr_out.
            let share = u64::from(self.prr_delivered) * u64::from(self.ssthresh);
            (share.div_ceil(u64::from(self.recover_fs)) as u32).saturating_sub(self.prr_out)
        } else {
            // RFC 9937 §6.2: the conservative reduction bound, one more on a safe ACK.
            let bound = self
                .prr_delivered
                .saturating_sub(self.prr_out)
                .max(delivered)
                + u32::from(safe);
            bound.min(self.ssthresh - pipe)
        };
        // The fast retransmission itself always leaves.
        let quota = quota.max(u32::from(self.prr_out == 0));
        self.window = pipe + quota;
    }

    /// A segment left.
    pub fn on_send(&mut self) {
        self.prr_out += 1;
    }

    /// Window against the pipe.
    pub fn window(&self) -> f64 {
        f64::from(self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_in_proportion_while_the_pipe_is_above_ssthresh() {
        // 20 in flight, one lost, target 10: about one segment leaves for two delivered.
        let mut prr = Prr::new(10, 20);
        let (mut pipe, mut sent) = (19, 0);
        for _ in 0..18 {
            pipe -= 1;
            prr.on_ack(1, false, pipe);
            while f64::from(pipe) < prr.window() {
                prr.on_send();
                pipe += 1;
                sent += 1;
            }
        }
        assert_eq!((pipe, sent), (10, 9));
    }

    #[test]
    fn after_heavy_loss_it_sends_one_per_delivered_and_one_more_on_safe_acks() {
        // 20 in flight of which 15 are lost: pipe 5 is below ssthresh 10.
        let mut prr = Prr::new(10, 20);
        prr.on_ack(1, false, 4);
        assert_eq!(prr.window().to_bits(), 5.0_f64.to_bits());
        prr.on_send();
        prr.on_ack(1, true, 4);
        assert_eq!(prr.window().to_bits(), 6.0_f64.to_bits());
    }

    #[test]
    fn the_first_retransmission_leaves_whatever_the_quota() {
        let mut prr = Prr::new(2, 100);
        prr.on_ack(1, false, 98);
        assert_eq!(prr.window().to_bits(), 99.0_f64.to_bits());
    }
}

//! The sender's half of ECN: what it negotiates, which packets may be marked, and how an echoed mark decreases the window.
//!
//! Does not depend on queues. Read RFC 3168 §6.1 first; RFC 8511 for a mark that decreases the window less than a loss does.

use super::Sender;
use crate::cc::{Signal, SignalEvidence};
use crate::config::StackParams;
use crate::tcp::recovery::Ack;
use crate::tcp::recovery::prr::Prr;
use crate::tcp::segment::{Ecn, Segment, flags};

/// Flags of a SYN that offers ECN (RFC 3168 §6.1.1).
const OFFER: u8 = flags::ECE | flags::CWR;

/// State of ECN at a sender.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    offered: bool,
    agreed: bool,
    /// The window has been reduced for what was sent before this octet.
    reacted_to: u64,
    /// The next new segment reports that the window was decreased (CWR).
    cwr_due: bool,
    /// The window sinks to what the last mark left of it.
    sinking: Option<Prr>,
}

impl Marks {
    /// Without a handshake both ends have agreed on ECN if the parameters have it.
    pub fn new(params: &StackParams) -> Self {
        Self {
            offered: params.ecn,
            agreed: params.ecn && !params.handshake,
            reacted_to: 0,
            cwr_due: false,
            sinking: None,
        }
    }

    /// Flags of the SYN in addition to SYN.
    pub fn offer(&self) -> u8 {
        if self.offered { OFFER } else { 0 }
    }

    /// RFC 3168 §6.1.1: the SYN-ACK agrees with ECE and without CWR.
    pub fn take_answer(&mut self, segment: &Segment) {
        self.agreed = self.offered && segment.flags & OFFER == flags::ECE;
    }

    /// Whether an acknowledgement echoes a mark.
    #[inline]
    pub fn echoed(&self, segment: &Segment) -> bool {
        self.agreed && segment.has(flags::ECE)
    }

    /// RFC 3168 §6.1.2: new data may be marked, and the first of it tells that the window was reduced. §6.1.5 bars
    /// retransmissions, §6.1.6 window probes, §6.1.4 pure acknowledgements.
    #[inline]
    pub fn label(&mut self, segment: &mut Segment) {
        if self.agreed {
            segment.ecn = Ecn::Ect0;
            if std::mem::replace(&mut self.cwr_due, false) {
                segment.flags |= flags::CWR;
            }
        }
    }

    /// The window was reduced, for whatever reason.
    pub fn note_reduction(&mut self) {
        self.cwr_due = true;
    }

    /// Whether the window has been reduced by a mark since what `snd_una` awaits was sent: a loss among it is no second
    /// reason (RFC 3168 §6.1.2).
    pub fn covers(&self, snd_una: u64) -> bool {
        snd_una < self.reacted_to
    }

    /// The window while it sinks.
    #[inline]
    pub fn sinking_window(&self) -> Option<f64> {
        self.sinking.as_ref().map(Prr::window)
    }

    /// A segment left.
    #[inline]
    pub fn on_send(&mut self) {
        if let Some(prr) = &mut self.sinking {
            prr.on_send();
        }
    }

    /// It sinks no more; how far it has come and up to which octet, for the recovery or the timeout that takes over.
    pub fn stop_sinking(&mut self) -> Option<(Prr, u64)> {
        self.sinking.take().map(|prr| (prr, self.reacted_to))
    }
}

impl Sender {
    /// RFC 3168 §6.1.2: reduces the window, once for all marks and losses of a window of data.
    ///
    /// A model of the path (BBR) keeps its window, and the mark is confirmed all the same: Linux enters CWR whatever the
    /// controller, which owns the window (`tcp_enter_cwr`, `tcp_cong_control`).
    ///
    /// Deviation: RFC 3168 §6.1.2 halves at once; Linux lets cwnd sink over a round trip by proportional rate reduction
    /// (`tcp_init_cwnd_reduction`), and a loss meanwhile goes on with the same.
    pub(in crate::tcp) fn react_to_mark(&mut self, ack: &Ack) {
        let news = self.snd_una > self.marks.reacted_to.max(self.recover);
        if self.in_loss_recovery() || !news {
            return;
        }
        let cwnd_before = self.controller.window().cwnd;
        self.controller.on_mark(
            &SignalEvidence {
                now: ack.now,
                flight: f64::from(self.board.outstanding() + ack.digest.acked),
                lost_total: self.board.lost_total(),
                signal: Signal::EcnEcho,
            },
            self.params.ecn_beta,
        );
        self.counters.ecn_reductions += u64::from(!self.capabilities.models_path);
        self.marks.reacted_to = self.snd_nxt;
        self.marks.note_reduction();
        if self.rules.mark_reduces_gradually {
            self.marks.sinking = Some(Prr::new(
                self.controller.window().cwnd as u32,
                cwnd_before as u32,
            ));
        }
    }

    /// Lets the window sink by what the ACK delivered; returns whether it does. Linux ends it once more is acknowledged than
    /// was sent when the mark came.
    pub(in crate::tcp) fn sink(&mut self, ack: &Ack, safe: bool) -> bool {
        if self.snd_una > self.marks.reacted_to {
            self.marks.sinking = None;
        }
        let pipe = self.board.pipe();
        let Some(prr) = &mut self.marks.sinking else {
            return false;
        };
        prr.on_ack(ack.digest.delivered, safe, pipe);
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::cc::catalogue::Variant;
    use crate::config::{Profile, StackOverrides};
    use crate::tcp::ladder::{check, sender, window};

    fn ecn(pkts: u32) -> StackOverrides {
        StackOverrides {
            ecn: Some(true),
            ..window(pkts)
        }
    }

    #[test]
    fn rfc3168_a_mark_halves_the_window_once_per_round_trip_and_is_confirmed() {
        // Eight in flight; every ACK of the round trip echoes. Half of eight is four: nothing leaves until four are in
        // flight. The echo of segment 9, sent after the decrease, counts again.
        check(
            sender(Variant::Sack, Profile::Rfc, ecn(8)),
            "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
             0.100 < ack 2 ece 1
             0.110 < ack 3 ece 1
             0.120 < ack 4 ece 1
             0.130 < ack 5 ece 1
             0.140 < ack 6 ece 1
             0.140 > C9 (cwnd 4 avoidance)
             0.150 < ack 9
             0.150 > 10 11 12 (cwnd 4 avoidance)
             0.240 < ack 10 ece 1
             0.250 < ack 12 ece 1
             0.250 > C13 (cwnd 2 avoidance)",
        );
    }

    #[test]
    fn rfc3168_a_loss_in_a_window_that_a_mark_reduced_costs_nothing_more() {
        check(
            sender(Variant::Sack, Profile::Rfc, ecn(8)),
            "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
             0.100 < ack 2 ece 1
             0.110 < ack 2 sack 3-3
             0.120 < ack 2 sack 3-4
             0.130 < ack 2 sack 3-5
             0.130 > R2 (cwnd 4 recovery)
             0.230 < ack 9
             0.230 > C9 10 11 12 (cwnd 4 avoidance)",
        );
    }

    #[test]
    fn rfc8511_a_mark_may_cost_less_than_a_loss() {
        let overrides = StackOverrides {
            ecn_beta: Some(0.75),
            ..ecn(8)
        };
        check(
            sender(Variant::Sack, Profile::Rfc, overrides),
            "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
             0.100 < ack 2 ece 1
             0.110 < ack 3 ece 1
             0.120 < ack 4 ece 1
             0.120 > C9 (cwnd 6 avoidance)",
        );
    }

    #[test]
    fn rfc3168_under_linux_too_an_echo_lets_nothing_grow() {
        // To be halved to four over a round trip: one leaves for two delivered, then all that the half has room for. The
        // echoes that follow do not decrease it again. The first round trip without one does.
        check(
            sender(Variant::LinuxReno, Profile::Linux, ecn(8)),
            "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
             0.100 < ack 2 ece 1
             0.100 > C9 (cwnd 8 avoidance)
             0.110 < ack 5 ece 1
             0.110 > 10 (cwnd 6 avoidance)
             0.120 < ack 9 ece 1
             0.120 > 11 12 (cwnd 4 avoidance)
             0.220 < ack 13
             0.220 > 13 14 15 16 17 (cwnd 5 avoidance)",
        );
    }

    #[test]
    fn linux_goes_on_with_the_marks_reduction_when_a_loss_is_found() {
        // Ten in flight, to be halved. Five are delivered until segment 3 is known to be lost: ceil(5 * 5 / 10) = 3 less the
        // two that have left. Nothing is reduced again, and all ends with what was sent when the mark came.
        check(
            sender(Variant::LinuxReno, Profile::Linux, ecn(10)),
            "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 slow start)
             0.100 < ack 3 ece 1
             0.100 > C11 (cwnd 9 avoidance)
             0.110 < ack 3 sack 4-4
             0.110 > 12 (cwnd 9 avoidance)
             0.120 < ack 3 sack 4-6
             0.120 > R3 (cwnd 7 recovery)
             0.220 < ack 11
             0.220 > 13 14 15 16 (cwnd 6 avoidance)",
        );
    }

    #[test]
    fn linux_bbr_confirms_a_mark_and_keeps_its_window() {
        check(
            sender(Variant::Bbr, Profile::Linux, ecn(8)),
            "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
             0.100 < ack 2 ece 1
             0.100 > C9 10 (cwnd 9 slow start)
             0.110 < ack 3 ece 1
             0.110 > 11 12 (cwnd 10 slow start)",
        );
    }

    #[test]
    fn without_agreement_an_echo_means_nothing() {
        check(
            sender(Variant::Sack, Profile::Rfc, window(8)),
            "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
             0.100 < ack 2 ece 1
             0.100 > 9 10 (cwnd 9 slow start)",
        );
    }
}

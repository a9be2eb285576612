//! RACK-TLP (RFC 8985): loss detection by time, the tail loss probe, and the recovery that uses both.
//!
//! Does not depend on the window increase. Read RFC 8985 §6 and §7 first.

use super::rfc::{self, Entry};
use super::window::RecoveryWindow;
use super::{Ack, Departure, Recovery, prr};
use crate::sim::time::Nanos;
use crate::tcp::scoreboard::{Digest, Scoreboard};
use crate::tcp::sender::Sender;
use crate::tcp::sender::phase::Phase;
use crate::tcp::timer::Timer;

/// RFC 8985 with the proportional rate reduction.
pub(in crate::tcp) struct RackRecovery;

impl Recovery for RackRecovery {
    const READS_ORDER: bool = true;
    const ALLOWS_FAST_PATH: bool = false;

    fn on_ack(sender: &mut Sender, ack: &Ack) {
        sender.note_order(ack, true);
        rfc::on_ack::<Self>(sender, ack);
    }

    fn on_reordering_timer(sender: &mut Sender, now: Nanos) {
        let view = sender.path_view(now);
        on_reordering_timer::<Self>(sender, &view);
    }

    fn on_probe_timer(sender: &mut Sender, now: Nanos) {
        sender.rack.probe_due = true;
        sender.rto_timer.set(now + sender.rtt.rto());
    }

    #[inline]
    fn on_departure(sender: &mut Sender, departure: Departure, now: Nanos) {
        if rfc::time_departure(sender, departure, now) {
            schedule_probe(sender, now);
        }
    }

    #[inline]
    fn restart_timers(sender: &mut Sender, ack: &Ack) {
        rfc::restart_timer(sender, ack);
        schedule_probe(sender, ack.now);
    }

    fn find_losses(sender: &mut Sender, ack: &Ack) -> bool {
        find_losses(sender, ack, &sender.path_view(ack.now))
    }

    fn begin(sender: &mut Sender, entry: &mut Entry) -> RecoveryWindow {
        if sender.capabilities.models_path {
            return RecoveryWindow::Model;
        }
        prr::begin(sender, entry)
    }
}

/// Learns of what the ACK delivered, and marks lost what was sent long enough before.
pub(super) fn find_losses(sender: &mut Sender, ack: &Ack, view: &PathView) -> bool {
    sender.rack.update(&ack.digest, view.min_rtt, view.now);
    detect_losses(sender, view)
}

/// Marks lost what was sent long enough before, and stops the timer of the reordering window if nothing is suspected.
fn detect_losses(sender: &mut Sender, view: &PathView) -> bool {
    let found = sender.rack.detect(&mut sender.board, view);
    if !sender.rack.awaits {
        sender.rack.reordering_timer.stop();
    }
    found
}

/// RFC 8985 §6.3: the reordering window of a suspect has closed.
pub(super) fn on_reordering_timer<R: Recovery>(sender: &mut Sender, view: &PathView) {
    if !detect_losses(sender, view) {
        return;
    }
    if matches!(sender.phase, Phase::Open { .. }) {
        // As in Linux: the timer counts as one delivery for the proportional rate reduction.
        rfc::enter::<R>(sender, view.now, 1);
    } else {
        sender.reduce_proportionally(0, false);
    }
}

/// RFC 8985 §7.2: a probe in two round trips, unless losses are known or suspected.
fn schedule_probe(sender: &mut Sender, now: Nanos) {
    if !sender.rules.tail_loss_probe {
        return;
    }
    let open = !sender.in_loss_recovery() && sender.board.sacked() == 0;
    let awaits = open && sender.rack.probe.is_none();
    let Some(srtt) = sender.rtt.srtt().filter(|_| awaits) else {
        sender.rack.probe_timer.stop();
        return;
    };
    // Deviation: as in Linux, the minimum RTO, not the receiver's delayed ACK, for the ACK of a single segment.
    let single = if sender.board.outstanding() == 1 {
        sender.params.min_rto_ns
    } else {
        0
    };
    let due = now + 2 * srtt + single;
    let timeout = sender.rto_timer.deadline();
    sender.rack.probe_timer.set(due.min(timeout));
}

impl Sender {
    /// What RACK needs to know about the connection.
    pub(super) fn path_view(&self, now: Nanos) -> PathView {
        PathView {
            now,
            min_rtt: self.rtt.min_rtt().unwrap_or(0),
            srtt: self.rtt.srtt().unwrap_or(0),
            in_recovery: self.in_loss_recovery(),
            dup_thresh: self.undo_state.reordering,
            reordered: self.undo_state.reordered,
        }
    }
}

/// State of RACK and of the tail loss probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rack {
    /// Latest transmission known to have been delivered: its time and end.
    latest: (Nanos, u64),
    /// Round-trip time of that transmission.
    rtt: Nanos,
    /// Fires when the reordering window of the oldest suspect closes.
    pub reordering_timer: Timer,
    /// The last look at the scoreboard set it.
    pub awaits: bool,
    /// Fires when a probe is due.
    pub probe_timer: Timer,
    /// A probe is out that ends here; whether it carried old data.
    pub probe: Option<Probe>,
    /// A probe is to leave now.
    pub probe_due: bool,
    widening: Widening,
}

/// RFC 8985 §6.2 step 4: the reordering window in quarters of the minimum RTT, wider with DSACKs.
#[derive(Clone, Copy, Debug)]
struct Widening {
    quarters: u32,
    /// Recoveries that it still lasts for.
    persists: u32,
    /// `snd_nxt` at the last DSACK that counted: one per round trip does.
    round: Option<u64>,
}

impl Default for Widening {
    fn default() -> Self {
        Self {
            quarters: 1,
            persists: 0,
            round: None,
        }
    }
}

/// RFC 8985 §6.2 step 4: recoveries after which the window is a quarter again.
const WIDENING_RECOVERIES: u32 = 16;

/// A tail loss probe on its way.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// `snd_nxt` after it left.
    pub high_seq: u64,
    /// It was a retransmission.
    pub retransmission: bool,
}

/// What RACK needs to know about the connection.
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// Time.
    pub now: Nanos,
    /// Minimum RTT.
    pub min_rtt: Nanos,
    /// Smoothed RTT.
    pub srtt: Nanos,
    /// In fast recovery or after a timeout.
    pub in_recovery: bool,
    /// Reordering degree: the duplicate ACKs that reordering alone explains.
    pub dup_thresh: u32,
    /// Reordering has been seen.
    pub reordered: bool,
}

impl Rack {
    /// Stops both timers.
    pub fn stop_timers(&mut self) {
        self.reordering_timer.stop();
        self.probe_timer.stop();
    }

    /// RFC 8985 §6.2 steps 1 to 3: learns of deliveries. An RTT below `min_rtt` is not that of a retransmission. Returns
    /// whether the ACK delivered anything that counts.
    pub fn update(&mut self, digest: &Digest, min_rtt: Nanos, now: Nanos) -> bool {
        let Some(latest) = digest.latest_for_rack else {
            return false;
        };
        let rtt = now.saturating_sub(latest.sent_at);
        // A retransmission acknowledged sooner than any path allows: the ACK was for the original.
        if latest.retransmission && rtt < min_rtt {
            return false;
        }
        if latest.order() > self.latest {
            self.latest = latest.order();
            self.rtt = rtt;
        }
        true
    }

    /// Whether a segment that begins at `seq` left before the latest one known to have been delivered.
    #[inline]
    pub fn suspects(&self, sent_at: Nanos, seq: u64) -> bool {
        (sent_at, seq) < self.latest
    }

    /// `update` and `take_rtt_of_last` at once, for an ACK of the segment that was sent once, at `sent.0`, and ends at
    /// `sent.1`, while nothing is suspected.
    #[inline]
    pub fn note_delivery(&mut self, sent: (Nanos, u64), now: Nanos) {
        self.latest = sent;
        self.rtt = now - sent.0;
        self.awaits = false;
    }

    /// Deviation: RFC 8985 §6.2 step 2 takes the RTT of the latest transmission delivered; Linux (`tcp_rack_advance`)
    /// that of the one it comes to last: it looks through what is sacked first, then through what is acknowledged.
    pub fn take_rtt_of_last(&mut self, digest: &Digest, min_rtt: Nanos, now: Nanos) {
        if let Some((sent_at, retransmission)) = digest.last_acked.or(digest.last_sacked) {
            let rtt = now.saturating_sub(sent_at);
            if !retransmission || rtt >= min_rtt {
                self.rtt = rtt;
            }
        }
    }

    /// Round-trip time of the latest delivery.
    pub fn rtt(&self) -> Nanos {
        self.rtt
    }

    /// A DSACK came where reordering is known: once per round trip the window widens.
    pub fn note_dsack(&mut self, snd_una: u64, snd_nxt: u64) {
        if self.widening.round.is_none_or(|round| snd_una >= round) {
            self.widening = Widening {
                quarters: (self.widening.quarters + 1).min(255),
                persists: WIDENING_RECOVERIES,
                round: Some(snd_nxt),
            };
        }
    }

    /// A recovery ended that was not spurious.
    pub fn note_recovery_end(&mut self) {
        self.widening.persists = self.widening.persists.saturating_sub(1);
        if self.widening.persists == 0 {
            self.widening.quarters = 1;
        }
    }

    /// RFC 8985 §6.2 step 4: a quarter of the minimum RTT, zero in loss recovery or once three segments
    /// have been sacked.
    fn reordering_window(&self, board: &Scoreboard, view: &PathView) -> Nanos {
        let hasty = view.in_recovery || board.sacked() >= view.dup_thresh;
        if hasty && !view.reordered {
            0
        } else {
            (view.min_rtt / 4 * u64::from(self.widening.quarters)).min(view.srtt)
        }
    }

    /// RFC 8985 §6.2 step 5: marks lost what was sent long enough before the latest delivered; arms the timer for
    /// what may be lost soon. Returns whether a loss was found.
    pub fn detect(&mut self, board: &mut Scoreboard, view: &PathView) -> bool {
        let reordering_window = self.reordering_window(board, view);
        let mut found = false;
        let mut wait_until = 0;
        let mut next = board.oldest();
        while let Some(number) = next {
            next = board.newer(number);
            let (seq, len) = board.span(number);
            let sent_at = board.sent_at(number);
            if (sent_at, seq + u64::from(len)) >= self.latest {
                break;
            }
            let lost_at = sent_at + self.rtt + reordering_window;
            if lost_at <= view.now {
                board.mark_retransmission_lost(number);
                board.unlink(number);
                found = true;
            } else {
                wait_until = wait_until.max(lost_at);
            }
        }
        self.awaits = wait_until > 0;
        if self.awaits {
            self.reordering_timer.set(wait_until);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    fn view(now_ms: u64) -> PathView {
        PathView {
            now: now_ms * MILLISECOND,
            min_rtt: 40 * MILLISECOND,
            srtt: 100 * MILLISECOND,
            in_recovery: false,
            dup_thresh: 3,
            reordered: false,
        }
    }

    /// Segments 0 and 1 left at 0, 2 at 20 ms; the ACK of 0 tells that 2 has arrived as well.
    fn finds_a_loss(rtt_of_last: bool) -> bool {
        let mut board = Scoreboard::new(100, true);
        let mut digest = Digest::default();
        for (number, sent_at) in [(0, 0), (1, 0), (2, 20 * MILLISECOND)] {
            board.push(1 + 100 * number, 100, sent_at);
        }
        board.acknowledge(101, &mut digest);
        board.sack(201, 301, &mut digest);
        let (mut rack, view) = (Rack::default(), view(100));
        if rack.update(&digest, view.min_rtt, view.now) && rtt_of_last {
            rack.take_rtt_of_last(&digest, view.min_rtt, view.now);
        }
        rack.detect(&mut board, &view)
    }

    /// Segments 0 and 1 left at 0; 0 again at 60 ms, and its ACK comes at 100 ms.
    fn accepts_retransmission(min_rtt_ms: u64) -> bool {
        let mut board = Scoreboard::new(100, true);
        let mut digest = Digest::default();
        for number in [0, 1] {
            board.push(1 + 100 * number, 100, 0);
        }
        board.mark_lost(0);
        board.retransmit(0, 60 * MILLISECOND);
        board.acknowledge(101, &mut digest);
        let (mut rack, view) = (Rack::default(), view(100));
        rack.update(&digest, min_rtt_ms * MILLISECOND, view.now);
        rack.detect(&mut board, &view)
    }

    #[test]
    fn rfc8985_a_retransmission_acknowledged_within_the_min_rtt_does_not_count() {
        assert!(accepts_retransmission(40));
        assert!(!accepts_retransmission(41));
    }

    #[test]
    fn linux_waits_by_the_rtt_of_what_is_acknowledged_not_of_what_left_last() {
        // RFC: 0 + 80 + 10 ms have gone by at 100 ms. Linux: 0 + 100 + 10 ms have not.
        assert!(finds_a_loss(false));
        assert!(!finds_a_loss(true));
    }

    #[test]
    fn rfc8985_a_dsack_widens_the_window_for_sixteen_recoveries() {
        let (mut rack, board, view) = (Rack::default(), Scoreboard::new(100, true), view(100));
        let window = |rack: &Rack| rack.reordering_window(&board, &view) / MILLISECOND;
        rack.note_dsack(1, 101);
        assert_eq!(window(&rack), 20);
        rack.note_dsack(100, 201);
        assert_eq!(window(&rack), 20, "once per round trip");
        rack.note_dsack(101, 201);
        assert_eq!(window(&rack), 30);
        (0..15).for_each(|_| rack.note_recovery_end());
        assert_eq!(window(&rack), 30);
        rack.note_recovery_end();
        assert_eq!(window(&rack), 10);
    }
}

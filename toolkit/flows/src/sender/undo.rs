//! Undo of a timeout after which DSACKs report all retransmissions as duplicates (RFC 3708 §3; Linux: `undo_retrans`),
//! or a SACK block reports data that were sent before and never retransmitted (RFC 5682 §3.1 step 3.b).

use super::Sender;
use crate::cause::CaState;
use crate::evidence::End;
use crate::loss::FlowDirection;
use crate::rows::Event;

/// The segments retransmitted since fast recovery or, from the open state, a timeout began that no DSACK has reported.
/// They are counted in octets, in segments of SMSS, as a record may have several (Linux: `tcp_skb_pcount`).
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Undo {
    /// SND.UNA at the beginning.
    marker: i64,
    unreported: u32,
}

impl Undo {
    /// Starts with `unacked` as SND.UNA and so many segments retransmitted and outstanding.
    ///
    /// A timeout in fast recovery continues the count: what that retransmitted belongs to the same window decrease
    /// (Linux: `undo_marker` remains while `high_seq` is above SND.UNA). Deviation: so does a timeout after another
    /// one. Linux starts anew if SND.UNA has advanced in between.
    pub(super) fn begin(&mut self, unacked: i64, outstanding: u32) {
        (self.marker, self.unreported) = (unacked, outstanding);
    }

    /// Counts so many retransmitted segments.
    pub(super) fn on_retransmission(&mut self, segments_n: u32) {
        self.unreported = self.unreported.saturating_add(segments_n);
    }

    /// Counts a DSACK of so many segments that ends at `right`.
    pub(super) fn on_dsack(&mut self, right: i64, segments_n: u32) {
        if right > self.marker {
            self.unreported = self.unreported.saturating_sub(segments_n);
        }
    }

    /// Whether all are reported, so that an ACK of new data undoes the timeout.
    pub(super) fn is_shown(&self) -> bool {
        self.unreported == 0
    }
}

impl Sender {
    /// Stores the recovery point of the spurious timeout. The window is as before the reduction.
    pub(super) fn note_spurious_timeout(&mut self) {
        if let Some(cwnd) = &mut self.cwnd {
            cwnd.undo_reduction();
        }
        if let CaState::Loss { recovery_point, .. } = self.ca_state {
            self.spurious_rto_point = Some(recovery_point);
        }
    }

    /// Ends the recovery from a timeout that an ACK of no new data shows to be spurious, at `now_ns`. What is missing
    /// below the SACK block is then lost by the rules of fast recovery.
    pub(super) fn undo_timeout(
        &mut self,
        now_ns: i64,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) {
        self.note_spurious_timeout();
        self.exit_recovery(now_ns, End::Undone, flow, events);
    }
}

//! Undo of a timeout after which DSACKs report all retransmissions as duplicates (RFC 3708 §3; Linux: `undo_retrans`).

/// The retransmissions since a timeout that no DSACK has reported.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Undo {
    /// SND.UNA when the timer expired first.
    marker: i64,
    unreported: u32,
}

impl Undo {
    /// Starts at a timeout with `unacked` as SND.UNA and so many segments retransmitted and outstanding.
    pub(super) fn begin(&mut self, unacked: i64, outstanding: u32) {
        (self.marker, self.unreported) = (unacked, outstanding);
    }

    /// Counts a retransmission.
    pub(super) fn on_retransmission(&mut self) {
        self.unreported = self.unreported.saturating_add(1);
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

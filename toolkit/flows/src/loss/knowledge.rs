//! What is known when a decision is taken.

use super::arrival_order::{ArrivalOrder, Duplicates};
use crate::cause::REO_WND_DIVISOR;
use crate::scoreboard::Transmission;

/// Properties of the path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// Minimum RTT from the capture point to the receiver.
    pub min_rtt_ns: Option<i64>,
    /// That, or less if a retransmission may have repaired a hole sooner.
    pub shortest_rtt_ns: Option<i64>,
    /// The capture point is at the receiver: all segments captured have arrived.
    pub at_receiver: bool,
    /// ACKs of this direction were captured.
    pub acknowledged: bool,
}

/// What is known at the time of a decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knowledge<'a> {
    pub(super) path: Path,
    /// IPv4 IDs that the ACKs skipped, if the IDs count the ACKs.
    pub(super) ids_skipped: Option<u32>,
    /// The last sent of the transmissions that are known to have arrived: the segment was sent once, or the ACK echoes its
    /// timestamp.
    pub(super) newest: Transmission,
    /// The receiver has reported a duplicate (RFC 2883).
    pub(super) reports_duplicates: bool,
    pub(super) order: &'a ArrivalOrder,
    pub(super) duplicates: Duplicates,
}

impl Knowledge<'_> {
    /// The reordering window (RFC 8985 §6.2).
    fn window_ns(&self) -> Option<i64> {
        Some(self.path.min_rtt_ns? / REO_WND_DIVISOR)
    }

    /// The record of a segment that `sent` would have overtaken if it had caused the ACK `by`, of a record and a time, by
    /// more than the reordering window.
    pub(super) fn overtaken(&self, sent: &Transmission, by: (u64, i64)) -> Option<u64> {
        self.order.overtaken(sent, by, self.window_ns()?)
    }

    /// The same of a retransmission that the receiver reported as a duplicate.
    pub(super) fn overtaken_duplicate(&self, sent: &Transmission, by: (u64, i64)) -> Option<u64> {
        self.duplicates.overtaken(sent, by.1, self.window_ns()?)
    }

    /// Whether `sent` would have overtaken either.
    pub(super) fn overtakes(&self, sent: &Transmission, by: (u64, i64)) -> bool {
        self.overtaken_duplicate(sent, by).is_some() || self.overtaken(sent, by).is_some()
    }
}

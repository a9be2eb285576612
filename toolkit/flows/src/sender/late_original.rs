//! Downstream of a loss: an original transmission that arrives after its retransmission, which overtook it on a path that
//! became shorter. Until then, it counts as lost.

use super::{Sender, Sent};
use crate::evidence::Reason;
use crate::loss::FlowDirection;
use crate::rows::{Event, EventCause, EventKind, Vantage};
use crate::scoreboard::{Overlap, Transmission};

impl Sender {
    /// Whether `sent` is the original transmission of a segment of which a retransmission was captured before. If so,
    /// it was not lost.
    pub(super) fn is_late_original(
        &mut self,
        sent: &Sent,
        overlap: &Overlap,
        flow: FlowDirection,
        events: &mut Vec<Event>,
    ) -> bool {
        if self.vantage == Vantage::Sender || sent.payload_bytes == 0 {
            return false;
        }
        let (octets, late) = ((sent.start, sent.end), &sent.transmission);
        let order = &self.order;
        let later = |again: &Transmission| order.sent_later(late, again) == Some(false);
        let (board, losses) = (&mut self.board, &mut self.losses);
        let on_board = board.add_late_original(octets, late, later);
        let overtaken_by =
            on_board.or_else(|| losses.add_late_original(octets, late, board.log(), later));
        let Some(record) = overtaken_by else {
            return false;
        };
        self.count_payload(sent, overlap.repeated_bytes);
        self.row.out_of_order_segments += u64::from(sent.segments_n);
        events.push(Event {
            record: Some(late.record),
            seq_start: Some(sent.start),
            seq_end: Some(sent.end),
            ..flow.event(
                EventKind::Reordering,
                EventCause::Unknown,
                late.t_ns,
                Reason::Overtaken { record },
            )
        });
        true
    }
}

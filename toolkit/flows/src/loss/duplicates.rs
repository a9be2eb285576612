//! Reports of duplicates: DSACKs (RFC 2883), and SACK blocks that report octets again.

use super::knowledge::Knowledge;
use super::{LossDetector, PendingRange};
use crate::retransmissions::Retransmissions;

/// Maximum number of entries searched for a DSACK that does not start at the start of a range.
const MAX_SEARCHED: usize = 256;

/// A DSACK block (RFC 2883), from `left` to before `right`.
#[derive(Clone, Copy, Debug)]
pub struct Dsack {
    /// First octet.
    pub left: i64,
    /// One past the last octet.
    pub right: i64,
    /// Record of the ACK.
    pub record: u64,
    /// Time of the ACK.
    pub t_ns: i64,
    /// Timestamp that the ACK echoes.
    pub ts_ecr: Option<u32>,
}

impl PendingRange {
    /// Whether the receiver may still report its last transmission as a duplicate: it has reported fewer than there are,
    /// and nothing sent later is known to have arrived. On a path that became longer, the answer takes longer than the timer of the path before.
    pub(super) fn awaits_report(&self, log: &Retransmissions, known: &Knowledge<'_>) -> bool {
        let last = self.range.retransmissions.map(|list| log.newest(list));
        let sent = last.map_or(self.range.first, |entry| entry.transmission);
        let echoed = self.ts_ecr.is_some() && self.ts_ecr == sent.ts_val;
        let answers = known.reports_duplicates && self.delivered_by.sack && !known.path.at_receiver;
        let more = || usize::from(self.dsacks) < log.iter(self.range.retransmissions).count();
        answers && !echoed && known.newest.record < sent.record && more()
    }

    fn on_dsack(&mut self, dsack: &Dsack, newest_record: u64) {
        if !std::mem::take(&mut self.reported_again) {
            self.dsacks = self.dsacks.saturating_add(1);
        }
        self.dsack_record = dsack.record;
        self.dsack_ns = dsack.t_ns;
        self.dsack_ecr = dsack.ts_ecr;
        self.newest_at_dsack = newest_record;
    }

    /// Processes a SACK block that contains the range. A block grows while the receiver remembers it. One that does not
    /// contain the block that reported the range before is another: a duplicate arrived. Returns whether one did.
    fn on_sack(&mut self, block: &Dsack, newest_record: u64) -> bool {
        let grown = |(left, right): (i64, i64)| block.left <= left && right <= block.right;
        let again = self.dsacks == 0 && self.delivered_by.block.is_some_and(|old| !grown(old));
        if again {
            self.on_dsack(block, newest_record);
            self.reported_again = true;
        }
        again
    }
}

impl LossDetector {
    /// Processes a SACK block: which ranges it reports again. Linux remembers four blocks and forgets the oldest, so
    /// that duplicates in its octets begin another block, which need not contain all that is contiguous.
    ///
    /// Deviation: RFC 2018 §4 has the receiver report the whole block, and RFC 2883 §4.2 a duplicate above the
    /// cumulative acknowledgement together with it. Returns whether there is one.
    pub fn on_sack(&mut self, block: &Dsack) -> bool {
        let (mut at, mut again) = (block.left, false);
        let newest_record = self.order.now.newest.record;
        while let Some(&number) = self.by_start.get(&at).filter(|_| at < block.right)
            && let Some(pending) = self.pending.get_mut((number - self.first) as usize)
        {
            if pending.range.end <= block.right {
                again |= pending.on_sack(block, newest_record);
            }
            at = pending.range.end.max(at + 1);
        }
        again
    }

    /// Processes a DSACK block.
    pub fn on_dsack(&mut self, dsack: &Dsack) {
        let (left, right) = (dsack.left, dsack.right);
        let newest_record = self.order.now.newest.record;
        self.reports_duplicates = true;
        let mut at = left;
        while let Some(&number) = self.by_start.get(&at).filter(|_| at < right) {
            let Some(pending) = self.pending.get_mut((number - self.first) as usize) else {
                return;
            };
            pending.on_dsack(dsack, newest_record);
            at = pending.range.end.max(at + 1);
        }
        if at == left {
            let overlaps =
                |entry: &&mut PendingRange| entry.range.start < right && left < entry.range.end;
            self.pending
                .iter_mut()
                .rev()
                .take(MAX_SEARCHED)
                .filter(overlaps)
                .for_each(|entry| entry.on_dsack(dsack, newest_record));
        }
    }
}

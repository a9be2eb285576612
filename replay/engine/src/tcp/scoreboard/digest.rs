//! The digest of one ACK: what the scoreboard has learned from it.
//!
//! Does not depend on how it is used.

use crate::sim::time::{Nanos, timestamp};

/// What an ACK taught: added up over its cumulative part and its SACK blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Digest {
    /// Timestamp that the ACK echoes; 0 means none.
    pub echo: Option<u32>,
    /// Segments that the cumulative ACK covers for the first time.
    pub acked: u32,
    /// Segments that left the network: acked or sacked, each once.
    pub delivered: u32,
    /// Segments newly sacked.
    pub sacked: u32,
    /// End of its highest SACK block; 0 if it has none.
    pub highest_block_end: u64,
    /// When the oldest segment of the cumulative ACK was sent, not counting sacked ones.
    pub oldest_acked_sent_at: Option<Nanos>,
    /// When the newest segment of the cumulative ACK was sent, not counting sacked and retransmitted ones.
    pub newest_acked_sent_at: Option<Nanos>,
    /// First octet of the lowest segment, sent only once, that the cumulative ACK covers and no SACK had reported.
    pub first_original_acked: Option<u64>,
    /// The same of those newly sacked.
    pub first_original_sacked: Option<u64>,
    /// End of the lowest of both.
    pub first_original_end: Option<u64>,
    /// When the oldest newly sacked, never retransmitted segment was sent.
    pub oldest_sacked_sent_at: Option<Nanos>,
    /// When the newest newly sacked, never retransmitted segment was sent.
    pub newest_sacked_sent_at: Option<Nanos>,
    /// The cumulative ACK covers a segment that was retransmitted.
    pub acked_retransmission: bool,
    /// A segment that was retransmitted is newly sacked.
    pub sacked_retransmission: bool,
    /// Latest transmission among the delivered, for a rate sample.
    pub latest: Option<Latest>,
    /// The same for RACK, which ignores an ACK of an earlier transmission.
    pub latest_for_rack: Option<Latest>,
    /// When the last of those covered for the first time was sent last, and whether it had been sent before, again for
    /// RACK; the same of those newly sacked.
    pub last_acked: Option<(Nanos, bool)>,
    /// See `last_acked`.
    pub last_sacked: Option<(Nanos, bool)>,
}

/// The latest transmission among those that an ACK delivers.
#[derive(Clone, Copy, Debug)]
pub struct Latest {
    /// When it left.
    pub sent_at: Nanos,
    /// One past its last octet.
    pub end: u64,
    /// Number of the segment.
    pub number: u64,
    /// It had been sent before.
    pub retransmission: bool,
}

impl Latest {
    /// Order of transmission: time, then sequence number.
    pub fn order(&self) -> (Nanos, u64) {
        (self.sent_at, self.end)
    }

    pub(super) fn note_in(self, known: &mut Option<Self>) {
        if known.is_none_or(|known| known.order() < self.order()) {
            *known = Some(self);
        }
    }
}

impl Digest {
    /// RFC 8985 §6.2 step 2: the timestamp echoed is older than what left at `sent_at`, so that something else arrived.
    pub fn echoes_before(&self, sent_at: Nanos) -> bool {
        let before = |echo: u32| echo != 0 && (echo.wrapping_sub(timestamp(sent_at)) as i32) < 0;
        self.echo.is_some_and(before)
    }

    pub(super) fn note_original_end(&mut self, end: u64) {
        self.first_original_end = Some(self.first_original_end.map_or(end, |low| low.min(end)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::scoreboard::Scoreboard;

    #[test]
    fn oldest_and_newest_are_told_by_time_whatever_the_order_of_the_blocks() {
        for blocks in [[(2001, 4001), (6001, 8001)], [(6001, 8001), (2001, 4001)]] {
            let mut board = Scoreboard::new(1000, false);
            for number in 0..9 {
                board.push(1 + 1000 * number, 1000, 10 * number);
            }
            let mut digest = Digest::default();
            for (left, right) in blocks {
                board.sack(left, right, &mut digest);
            }
            let sent_at = (digest.oldest_sacked_sent_at, digest.newest_sacked_sent_at);
            assert_eq!(sent_at, (Some(20), Some(70)));
        }
    }
}

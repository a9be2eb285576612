//! The sender's scoreboard: a ring of segments from `snd_una` to `snd_nxt` with their marks, and counters over them.
//!
//! Does not depend on cwnd, timers or the recovery algorithm. No ACK walks the window: a segment is sacked, marked lost and
//! acknowledged once each; boundary tags let a walk skip runs of sacked segments.
//! Read RFC 6675 §4 first (IsLost, SetPipe).

mod digest;
mod dupacks;
mod fast_path;
#[cfg(test)]
mod invariants;
mod losses;
mod pieces;
mod reneging;
mod repeats;
mod send_order;

pub use digest::{Digest, Latest};
pub use fast_path::Covered;

use crate::sim::time::Nanos;

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// Retransmitted, and that retransmission still counts as in flight.
const RETRANSMITTED: u8 = 4;
/// Retransmitted at least once: Karn's rule bars it from RTT samples.
const EVER_RETRANSMITTED: u8 = 8;
/// First of a piece; see `pieces`.
const PIECE: u8 = 16;

/// RFC 6675 §2: DupThresh.
pub const DUP_THRESH: u64 = 3;

const NONE: u32 = u32::MAX;

/// One segment that has been sent and not yet acknowledged cumulatively.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Last transmission.
    sent_at: Nanos,
    /// First octet.
    seq: u64,
    len: u16,
    marks: u8,
    /// At the first (last) segment of a sacked run: the low bits of the number of the last (first).
    run: u32,
    /// Neighbours in the order of last transmission.
    older: u32,
    newer: u32,
}

impl Slot {
    /// When it was sent last, and whether that was a retransmission.
    fn departure(&self) -> (Nanos, bool) {
        (self.sent_at, self.marks & EVER_RETRANSMITTED != 0)
    }
}

/// The scoreboard. Segments have running numbers; number `n` sits in slot `n & mask`.
#[derive(Debug)]
pub struct Scoreboard {
    slots: Vec<Slot>,
    /// Number of the first segment not acknowledged, and one past the last one sent.
    base: u64,
    end: u64,
    smss_bytes: u64,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// Ever marked lost, each time that it was.
    lost_total: u64,
    /// Lost and not retransmitted since.
    waiting: u32,
    /// All not sacked below it are lost by RFC 6675; sacked segments from it on. What follows may lie below `base`, which
    /// then applies in its place.
    loss_edge: u64,
    sacked_beyond: u64,
    /// One past the highest sacked segment.
    high_sacked: u64,
    /// No lost segment waits below it, …
    retransmit_from: u64,
    /// … nor from here on.
    retransmit_end: u64,
    /// Ends of the list by last transmission, kept only if needed, and one past the last segment that was taken off it or
    /// sent again (see `send_order`).
    oldest: u32,
    newest: u32,
    linked_to: u64,
    keeps_order: bool,
    notes_latest: bool,
    /// Segments marked as the first of a piece, kept only if needed.
    pieces: u32,
    keeps_pieces: bool,
    /// Numbers of those marked lost since they were forgotten last, kept only if needed.
    lost_lately: Option<Vec<u64>>,
}

impl Scoreboard {
    /// An empty scoreboard. `keeps_order` maintains the order of transmission that RACK reads.
    pub fn new(smss_bytes: u32, keeps_order: bool) -> Self {
        Self {
            slots: vec![Slot::default(); 64],
            base: 0,
            end: 0,
            smss_bytes: u64::from(smss_bytes),
            sacked: 0,
            lost: 0,
            lost_total: 0,
            retransmitted: 0,
            waiting: 0,
            loss_edge: 0,
            sacked_beyond: 0,
            high_sacked: 0,
            retransmit_from: 0,
            retransmit_end: 0,
            oldest: NONE,
            newest: NONE,
            linked_to: 0,
            keeps_order,
            notes_latest: false,
            pieces: 0,
            keeps_pieces: false,
            lost_lately: None,
        }
    }

    /// The same, which tells the latest transmission that an ACK delivers.
    #[must_use]
    pub fn noting_latest(self, wanted: bool) -> Self {
        Self {
            notes_latest: wanted,
            ..self
        }
    }

    /// Segments outstanding: sent, not acknowledged cumulatively.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        (self.end - self.base) as u32
    }

    /// RFC 6675 §4, SetPipe: segments believed to be in the network.
    #[inline]
    pub fn pipe(&self) -> u32 {
        self.outstanding() + self.retransmitted - self.sacked - self.lost
    }

    /// Segments that SACK reported.
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Number of the segment after the forward-most one that has arrived (Mathis and Mahdavi 1996: snd.fack).
    pub fn forward_edge(&self) -> u64 {
        self.high_sacked.max(self.base)
    }

    /// Retransmissions that still count as in flight.
    pub fn retransmitted(&self) -> u32 {
        self.retransmitted
    }

    /// Whether one is in flight, or the first outstanding segment was sent again.
    pub fn holds_retransmissions(&self) -> bool {
        let sent_again = |first| self.slot(first).marks & EVER_RETRANSMITTED != 0;
        self.retransmitted > 0 || self.first().is_some_and(sent_again)
    }

    /// Whether SACK has reported segment `number`.
    pub fn is_sacked(&self, number: u64) -> bool {
        self.slot(number).marks & SACKED != 0
    }

    /// First octet of the highest segment that SACK reported; `snd_una` if there is none.
    pub fn highest_sacked_seq(&self, snd_una: u64) -> u64 {
        if self.sacked == 0 || self.high_sacked <= self.base {
            return snd_una;
        }
        self.slot(self.high_sacked - 1).seq
    }

    /// Nothing is lost after all.
    pub fn forget_losses(&mut self) {
        for number in self.base..self.end {
            let slot = self.slot_mut(number);
            if slot.marks & LOST != 0 {
                slot.marks &= !LOST;
                if self.keeps_order && self.is_unlinked(number) {
                    self.append(number);
                }
            }
        }
        (self.lost, self.waiting) = (0, 0);
        (self.retransmit_from, self.retransmit_end) = (self.base, self.base);
    }

    /// After a timeout under RACK: lost is the first segment, and all sent before `horizon`.
    pub fn mark_timed_out(&mut self, horizon: Nanos) {
        for number in self.base..self.end {
            if number == self.base || self.slot(number).sent_at <= horizon {
                self.mark_retransmission_lost(number);
            }
        }
    }

    /// Segments marked lost.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments ever marked lost; one whose retransmission was lost too counts again.
    #[inline]
    pub fn lost_total(&self) -> u64 {
        self.lost_total
    }

    #[inline]
    fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }

    #[inline]
    fn slot_mut(&mut self, number: u64) -> &mut Slot {
        let mask = self.slots.len() - 1;
        &mut self.slots[number as usize & mask]
    }

    /// The full number of which `low` is the low half: the one nearest to `base`, which may lie below it.
    #[inline]
    fn widen(&self, low: u32) -> u64 {
        let distance = low.wrapping_sub(self.base as u32) as i32;
        self.base.saturating_add_signed(distance.into())
    }

    /// Adds a segment just sent for the first time.
    #[inline]
    pub fn push(&mut self, seq: u64, len: u16, now: Nanos) {
        if (self.end - self.base) as usize == self.slots.len() {
            self.grow();
        }
        let number = self.end;
        self.end += 1;
        *self.slot_mut(number) = Slot {
            sent_at: now,
            seq,
            len,
            ..Slot::default()
        };
        if self.keeps_order {
            self.note_sent(number);
        }
    }

    fn grow(&mut self) {
        let mut slots = vec![Slot::default(); self.slots.len() * 2];
        let mask = slots.len() - 1;
        for number in self.base..self.end {
            slots[number as usize & mask] = *self.slot(number);
        }
        self.slots = slots;
    }

    /// First octet and length of segment `number`.
    pub fn span(&self, number: u64) -> (u64, u16) {
        let slot = self.slot(number);
        (slot.seq, slot.len)
    }

    /// When segment `number` was last sent.
    pub fn sent_at(&self, number: u64) -> Nanos {
        self.slot(number).sent_at
    }

    /// Number of the first outstanding segment, if any is.
    pub fn first(&self) -> Option<u64> {
        (self.base < self.end).then_some(self.base)
    }

    /// Number of the last outstanding segment, if any is.
    pub fn last(&self) -> Option<u64> {
        (self.base < self.end).then(|| self.end - 1)
    }

    /// Notes that segment `number` is sent again.
    pub fn retransmit(&mut self, number: u64, now: Nanos) {
        if self.keeps_order {
            self.unlink(number);
            self.append(number);
        }
        let slot = self.slot_mut(number);
        slot.sent_at = now;
        let before = slot.marks;
        slot.marks |= RETRANSMITTED | EVER_RETRANSMITTED;
        if before & RETRANSMITTED == 0 {
            self.retransmitted += 1;
            if before & LOST != 0 {
                self.waiting -= 1;
            }
        }
        if number == self.retransmit_from {
            self.retransmit_from += 1;
        }
    }

    /// Takes a cumulative acknowledgement of everything before `ack`.
    #[inline]
    pub fn acknowledge(&mut self, ack: u64, digest: &mut Digest) {
        while self.base < self.end {
            let number = self.base;
            let slot = *self.slot(number);
            if slot.seq + u64::from(slot.len) > ack {
                break;
            }
            self.base += 1;
            digest.acked += 1;
            let repeated = slot.marks & EVER_RETRANSMITTED != 0;
            digest.acked_retransmission |= repeated;
            if slot.marks & SACKED == 0 {
                digest.delivered += 1;
                if !repeated {
                    digest.first_original_acked.get_or_insert(slot.seq);
                    digest.note_original_end(slot.seq + u64::from(slot.len));
                    digest.oldest_acked_sent_at.get_or_insert(slot.sent_at);
                    digest.newest_acked_sent_at = Some(slot.sent_at);
                }
                // Deviation: RFC 8985 §6.2 step 2 tests sacked data too; Linux (`tcp_skb_spurious_retrans`) does not.
                let late = repeated && digest.echoes_before(slot.sent_at);
                self.note_latest(number, &slot, !late, digest);
                if self.keeps_order && !late {
                    digest.last_acked = Some(slot.departure());
                }
            }
            if self.keeps_order && !self.is_in_sequence() {
                // Also one that SACK had reported: a timeout may have sent it again.
                self.take_off(number);
            }
            self.forget_marks(number, slot.marks);
        }
        if self.keeps_pieces {
            self.begin_piece(self.base);
        }
    }

    /// Notes a segment that the ACK delivers; `for_rack`: it shows RACK when.
    #[inline]
    fn note_latest(&self, number: u64, slot: &Slot, for_rack: bool, digest: &mut Digest) {
        let latest = Latest {
            sent_at: slot.sent_at,
            end: slot.seq + u64::from(slot.len),
            number,
            retransmission: slot.marks & EVER_RETRANSMITTED != 0,
        };
        if self.notes_latest {
            latest.note_in(&mut digest.latest);
        }
        if self.keeps_order && for_rack {
            latest.note_in(&mut digest.latest_for_rack);
        }
    }

    /// Takes the marks of a segment out of the counters.
    #[inline]
    fn forget_marks(&mut self, number: u64, marks: u8) {
        if marks & (SACKED | LOST | RETRANSMITTED | PIECE) == 0 {
            return;
        }
        self.pieces -= u32::from(marks & PIECE != 0);
        if marks & SACKED != 0 {
            self.sacked -= 1;
            self.sacked_beyond -= u64::from(number >= self.loss_edge);
        }
        self.lost -= u32::from(marks & LOST != 0);
        self.retransmitted -= u32::from(marks & RETRANSMITTED != 0);
        self.waiting -= u32::from(marks & (LOST | RETRANSMITTED) == LOST);
    }

    /// Takes a SACK block of the octets `left..right`.
    pub fn sack(&mut self, left: u64, right: u64, digest: &mut Digest) {
        digest.highest_block_end = digest.highest_block_end.max(right);
        let mut number = self.number_at(left);
        while number < self.end {
            let slot = *self.slot(number);
            if slot.seq + u64::from(slot.len) > right {
                break;
            }
            if slot.marks & SACKED != 0 {
                // A run's first segment knows its last; a stale tag inside a run still lies within the run.
                number = self.widen(slot.run).clamp(number, self.end - 1) + 1;
                continue;
            }
            self.sack_one(number, &slot, digest);
            number += 1;
        }
    }

    fn sack_one(&mut self, number: u64, slot: &Slot, digest: &mut Digest) {
        digest.sacked += 1;
        digest.delivered += 1;
        if slot.marks & EVER_RETRANSMITTED == 0 {
            let lowest = digest.first_original_sacked.get_or_insert(slot.seq);
            *lowest = slot.seq.min(*lowest);
            digest.note_original_end(slot.seq + u64::from(slot.len));
            let oldest = digest.oldest_sacked_sent_at.get_or_insert(slot.sent_at);
            *oldest = slot.sent_at.min(*oldest);
            // The blocks do not come in order: the first is the latest (RFC 2018 §4).
            digest.newest_sacked_sent_at = digest.newest_sacked_sent_at.max(Some(slot.sent_at));
        } else {
            digest.sacked_retransmission = true;
        }
        self.note_latest(number, slot, true, digest);
        if self.keeps_order {
            self.unlink(number);
            digest.last_sacked = Some(slot.departure());
        }
        self.forget_marks(number, slot.marks & !PIECE);
        self.sacked += 1;
        self.sacked_beyond += u64::from(number >= self.loss_edge);
        self.high_sacked = self.high_sacked.max(number + 1);
        self.slot_mut(number).marks = SACKED | slot.marks & (EVER_RETRANSMITTED | PIECE);
        self.join_run(number);
        if self.keeps_pieces {
            self.join_sacked_piece(number);
        }
    }

    /// Tags the ends of the sacked run that `number` now belongs to.
    fn join_run(&mut self, number: u64) {
        let is_sacked = |board: &Self, n: u64| board.slot(n).marks & SACKED != 0;
        let first = if number > self.base && is_sacked(self, number - 1) {
            self.widen(self.slot(number - 1).run)
                .clamp(self.base, number - 1)
        } else {
            number
        };
        let last = if number + 1 < self.end && is_sacked(self, number + 1) {
            self.widen(self.slot(number + 1).run)
                .clamp(number + 1, self.end - 1)
        } else {
            number
        };
        self.slot_mut(number).run = number as u32;
        self.slot_mut(first).run = last as u32;
        if first != last {
            self.slot_mut(last).run = first as u32;
        }
    }

    /// Number of the first segment that begins at or after `seq`.
    fn number_at(&self, seq: u64) -> u64 {
        if self.base == self.end {
            return self.end;
        }
        let first = self.slot(self.base).seq;
        if seq <= first {
            return self.base;
        }
        // Segments are full but for the last of a write: the guess by division is nearly always right.
        let guess = self.base + (seq - first) / self.smss_bytes;
        if guess < self.end && self.slot(guess).seq == seq {
            return guess;
        }
        let (mut low, mut high) = (self.base, self.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.slot(middle).seq < seq {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// RFC 6675 §4, IsLost, for all at once: marks lost what has `dup_thresh` sacked segments above it.
    /// Returns how many were marked.
    ///
    /// Deviation: counts segments, as Linux does, where the RFC counts octets or discontiguous blocks; equal for
    /// full segments.
    pub fn mark_lost_by_sack(&mut self, dup_thresh: u64) -> u32 {
        let before = self.lost;
        while self.sacked_beyond >= dup_thresh {
            let number = self.loss_edge.max(self.base);
            self.loss_edge = number + 1;
            if self.slot(number).marks & SACKED != 0 {
                self.sacked_beyond -= 1;
            } else {
                self.mark_lost(number);
            }
        }
        self.lost - before
    }

    /// Marks segment `number` lost; nothing if it is sacked or lost already.
    pub fn mark_lost(&mut self, number: u64) {
        let slot = self.slot_mut(number);
        if slot.marks & (SACKED | LOST) != 0 {
            return;
        }
        slot.marks |= LOST;
        let waits = slot.marks & RETRANSMITTED == 0;
        self.lost += 1;
        self.note_loss(number);
        if waits {
            self.queue_retransmission(number);
        }
    }

    /// Marks lost the retransmission of segment `number` as well: it waits again.
    pub fn mark_retransmission_lost(&mut self, number: u64) {
        let slot = self.slot_mut(number);
        if slot.marks & RETRANSMITTED != 0 {
            slot.marks &= !RETRANSMITTED;
            let was_lost = slot.marks & LOST != 0;
            self.retransmitted -= 1;
            if was_lost {
                self.note_loss(number);
                self.queue_retransmission(number);
            }
        }
        self.mark_lost(number);
    }

    fn queue_retransmission(&mut self, number: u64) {
        self.waiting += 1;
        self.retransmit_from = self.retransmit_from.min(number);
        self.retransmit_end = self.retransmit_end.max(number + 1);
    }

    /// After a retransmission timeout: all that is not sacked is lost, retransmissions too.
    pub fn mark_all_lost(&mut self) {
        for number in self.base..self.end {
            self.mark_retransmission_lost(number);
        }
        self.loss_edge = self.end;
        self.sacked_beyond = 0;
    }

    /// Forgets what SACK reported, and with it which segments are lost or retransmitted.
    pub fn forget(&mut self) {
        for number in self.base..self.end {
            self.slot_mut(number).marks &= EVER_RETRANSMITTED | PIECE;
        }
        (self.sacked, self.lost, self.retransmitted, self.waiting) = (0, 0, 0, 0);
        (self.loss_edge, self.high_sacked) = (self.base, self.base);
        self.sacked_beyond = 0;
        (self.retransmit_from, self.retransmit_end) = (self.end, self.base);
    }

    /// The first lost segment that waits to be retransmitted.
    pub fn next_retransmission(&mut self) -> Option<u64> {
        if self.waiting == 0 {
            return None;
        }
        let mut number = self.retransmit_from.max(self.base);
        while number < self.retransmit_end.min(self.end) {
            let slot = self.slot(number);
            if slot.marks & (LOST | RETRANSMITTED) == LOST {
                self.retransmit_from = number;
                return Some(number);
            }
            number = if slot.marks & SACKED != 0 {
                self.widen(slot.run).clamp(number, self.end - 1)
            } else {
                number
            };
            number += 1;
        }
        self.retransmit_from = number;
        None
    }

    /// RFC 6675 §4, NextSeg rule (3): the first segment below the highest sacked one that is neither sacked nor
    /// retransmitted.
    pub fn next_speculative(&self, from: u64) -> Option<u64> {
        (from.max(self.base)..self.high_sacked)
            .find(|&n| self.slot(n).marks & (SACKED | RETRANSMITTED) == 0)
    }

    /// The first segment from number `from` on that is neither acknowledged nor reported by SACK.
    pub fn next_unacknowledged(&self, from: u64) -> Option<u64> {
        (from.max(self.base)..self.end).find(|&n| self.slot(n).marks & SACKED == 0)
    }

    /// The highest outstanding segment that SACK has not reported.
    pub fn last_unsacked(&self) -> Option<u64> {
        let mut number = self.last()?;
        while self.slot(number).marks & SACKED != 0 {
            // A run's last segment knows its first.
            number = self
                .widen(self.slot(number).run)
                .clamp(self.base, number)
                .checked_sub(1)?;
            if number < self.base {
                return None;
            }
        }
        Some(number)
    }
}

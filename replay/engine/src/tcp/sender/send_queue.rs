//! The send queue: octets written and not yet sent, in the pieces in which Linux keeps them (skbs): as large as the largest
//! burst, filled one after the other.
//!
//! Does not depend on the application or on the memory that a piece takes. Linux 6.18: `tcp_sendmsg_locked`,
//! `tcp_xmit_size_goal`, `tcp_grow_skb`.

use super::Sender;
use crate::app::Buffered;
use crate::config::NagleRule;
use crate::sim::ring::Ring;
use crate::sim::time::Nanos;

/// Linux (`sk_dst_gso_max_size`): octets of the largest burst, and what of them is for headers.
const BURST_BYTES: u64 = 65_536;
const HEADROOM_BYTES: u64 = 193;
/// Linux (`net.core.max_skb_frags`): fragments of a piece.
const MAX_FRAGMENTS: usize = 17;

/// Pieces of what is written and not sent.
#[derive(Debug, Default)]
pub(in crate::tcp) struct SendQueue {
    /// Where those end that are not wholly sent; the last one, which may grow, is not among them.
    ends: Ring<u64>,
    /// Where another fragment begins of what is written and not sent, and of what may be written next. None where the
    /// application does not hand over pages of memory.
    fragments: Ring<u64>,
    /// The receiver's largest window at a write.
    max_window_bytes: u32,
    /// A piece that is the next to leave has just been filled: a burst of it does not wait for more
    /// (`tcp_push_one`).
    pub pushed: bool,
    /// The application waits for room in the send buffer (Linux: SOCK_NOSPACE).
    pub writer_waits: bool,
    /// A segment has come since it began to wait.
    pub segment_came: bool,
}

impl Sender {
    /// Whether the application waits for room in the send buffer. If it waits no more, it writes now.
    pub fn note_writer(&mut self, waits: bool) {
        self.send_queue.segment_came &= self.send_queue.writer_waits;
        if self.send_queue.writer_waits && !waits {
            self.note_late_write();
        }
        self.send_queue.writer_waits = waits;
    }

    /// The application limits the rate if it writes when all has been sent, what was lost too, and the window has room
    /// (Linux: `tcp_rate_check_app_limited`).
    fn note_late_write(&mut self) {
        if !self.has_unsent_segment() {
            self.note_write_after_all();
        }
    }

    /// The same, of a write when all has been sent but for what was lost.
    pub(super) fn note_write_after_all(&mut self) {
        if self.board.lost() <= self.board.retransmitted() && !self.is_window_full() {
            self.limit_rates();
        }
    }

    /// Whether a full segment is written and not sent.
    #[inline]
    pub(in crate::tcp) fn has_unsent_segment(&self) -> bool {
        self.write_end - self.snd_nxt >= u64::from(self.params.smss_bytes)
    }

    /// The application has written up to stream offset `end`; `finished`: that was its last octet. What waits to leave with
    /// more may leave now (`tcp_push`).
    pub fn write_to(&mut self, end: u64, finished: bool) {
        if self.board.keeps_pieces() {
            self.fill_piece(end);
        }
        if end > self.write_end || finished {
            self.window_use.called_early_at = None;
            self.deferred = false;
        }
        self.write_end = self.write_end.max(end);
        self.finished |= finished;
    }

    /// Octets up to `end` do not wait for more, unless more is written.
    pub fn push_to(&mut self, end: u64) {
        self.pushed_to = end;
    }

    /// Whether what has been written waits for no more.
    #[inline]
    pub(in crate::tcp) fn is_pushed(&self) -> bool {
        self.finished || self.pushed_to == self.write_end
    }

    /// End of the octets that the application has written.
    #[inline]
    pub fn write_end(&self) -> u64 {
        self.write_end
    }

    /// What it holds of what the application has written.
    pub fn buffered(&self, now: Nanos) -> Buffered {
        Buffered {
            octets: self.write_end - self.snd_una,
            unsent: self.write_end - self.snd_nxt,
            pieces: self.board.pieces() + self.queued_pieces(),
            tail_has_room: self.tail_room() > 0,
            window_has_room: self.send_queue.segment_came
                && (f64::from(self.board.pipe()) < self.effective_window().floor()
                    || self.was_throttled(now)),
            cwnd: self.effective_window(),
            reordering: self.undo_state.reordering,
            models_path: self.capabilities.models_path,
        }
    }

    /// Octets that the last piece takes before it is full, or a new one where it is.
    pub fn piece_room(&self) -> u64 {
        match self.tail_room() {
            0 => self.full_end(self.write_end) - self.write_end,
            room => room,
        }
    }

    /// The memory of what may be written from octet `start` on does not continue what lies before: it is another
    /// fragment of a piece. In ascending order, before it is written.
    pub fn begin_fragment(&mut self, start: u64) {
        self.send_queue.fragments.push_back(start);
    }

    /// Octets that the last piece takes before it is full; 0: there is none, or it is full.
    fn tail_room(&self) -> u64 {
        let start = self.tail_start();
        if self.write_end > start {
            self.full_end(start).saturating_sub(self.write_end)
        } else {
            0
        }
    }

    /// Where a piece that begins at `start` is full: it has as many octets or as many fragments as a piece may have
    /// (`skb_splice_from_iter`).
    fn full_end(&self, start: u64) -> u64 {
        let mut others = (self.send_queue.fragments.iter()).filter(|begin| **begin > start);
        let fragmented = others.nth(MAX_FRAGMENTS - 1).copied();
        (start + self.piece_bytes()).min(fragmented.unwrap_or(u64::MAX))
    }

    /// Segments of the piece that leaves next.
    pub(in crate::tcp) fn head_pkts(&self) -> u64 {
        let end = self.send_queue.ends.front().copied();
        (end.unwrap_or(self.write_end) - self.snd_nxt).div_ceil(self.params.smss_bytes.into())
    }

    /// Pieces that are not wholly sent.
    fn queued_pieces(&self) -> u32 {
        self.send_queue.ends.len() as u32 + u32::from(self.write_end > self.tail_start())
    }

    /// Data have left: forgets the pieces that are wholly sent, so that nobody has to look past them.
    #[inline]
    pub(in crate::tcp) fn drop_sent_pieces(&mut self) {
        let ends = &mut self.send_queue.ends;
        while ends.front().is_some_and(|end| *end <= self.snd_nxt) {
            ends.pop_front();
        }
        let fragments = &mut self.send_queue.fragments;
        while fragments
            .front()
            .is_some_and(|begin| *begin <= self.snd_nxt)
        {
            fragments.pop_front();
        }
    }

    /// The application writes up to `end`, no more than the last piece takes.
    fn fill_piece(&mut self, end: u64) {
        self.send_queue.max_window_bytes = self.largest_window_bytes();
        if self.write_end > self.tail_start() && self.tail_room() == 0 {
            self.send_queue.ends.push_back(self.write_end);
        }
        let full = end - self.tail_start() >= self.piece_bytes();
        self.send_queue.pushed = full && self.send_queue.ends.is_empty();
    }

    /// Where the last piece begins.
    fn tail_start(&self) -> u64 {
        let full_to = self.send_queue.ends.back().copied().unwrap_or(0);
        full_to.max(self.snd_nxt)
    }

    /// Octets of the next new segment, if the application and the receiver's window allow one.
    #[inline(always)]
    pub(super) fn sendable(&mut self, now: Nanos) -> Option<u16> {
        let smss = u64::from(self.params.smss_bytes);
        let mut len = self.write_end - self.snd_nxt;
        if len >= smss {
            len = smss;
        } else if len == 0 || self.must_fill_up() {
            return None;
        }
        if self.snd_nxt + len > self.edge {
            return self.sendable_before_edge(now);
        }
        Some(len as u16)
    }

    /// Of a segment that the receiver's window cuts off: Linux (`tcp_mss_split_point`) sends what is within the window as the
    /// end of a burst, where Nagle's algorithm lets a partial segment leave.
    #[cold]
    fn sendable_before_edge(&mut self, now: Nanos) -> Option<u16> {
        let within = self.edge.saturating_sub(self.snd_nxt);
        if within > 0 && self.rules.sends_bursts && self.is_in_burst(now) && !self.must_fill_up() {
            return Some(within as u16);
        }
        if self.board.outstanding() == 0 && !self.persist_timer.is_set() {
            self.arm_persist(now);
        }
        None
    }

    /// Whether a segment that is not full waits for more: not where no more will come (RFC 9293 §3.7.4), nor where it
    /// would be a probe (Linux, `tcp_send_loss_probe`).
    #[inline(never)]
    pub(super) fn must_fill_up(&self) -> bool {
        !self.is_pushed()
            && !self.rack.probe_due
            && match self.params.nagle {
                NagleRule::Off => false,
                NagleRule::Rfc => self.board.outstanding() > 0,
                NagleRule::Minshall => self.small_end > self.snd_una,
            }
    }

    fn largest_window_bytes(&self) -> u32 {
        self.send_queue.max_window_bytes.max(self.last_wnd_bytes)
    }

    /// Whole segments of the largest burst, or of half the largest window if that is less (`tcp_bound_to_half_wnd`).
    fn piece_bytes(&self) -> u64 {
        let smss = u64::from(self.params.smss_bytes);
        let window = self.largest_window_bytes();
        let max = (BURST_BYTES - HEADROOM_BYTES).min(u64::from(window) / 2);
        (max / smss).max(1) * smss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::catalogue::Variant;
    use crate::config::{Profile, StackOverrides};
    use crate::sim::time::MILLISECOND;
    use crate::tcp::ladder::{parse, sender};

    /// Segments of 1000 octets: 65 of them are a piece.
    const PIECE: u64 = 65_000;

    fn writer() -> Sender {
        let overrides = StackOverrides {
            smss_bytes: Some(1000),
            send_buffer_bytes: Some(1 << 20),
            ..StackOverrides::default()
        };
        let mut sender = sender(Variant::LinuxReno, Profile::Linux, overrides);
        (sender.write_end, sender.send_queue) = (1, SendQueue::default());
        sender
    }

    fn write(sender: &mut Sender, octets: u64) -> (u32, u64, bool) {
        sender.write_to(sender.write_end + octets, false);
        let pushed = std::mem::take(&mut sender.send_queue.pushed);
        (sender.queued_pieces(), sender.piece_room(), pushed)
    }

    fn send_to(sender: &mut Sender, snd_nxt: u64) {
        sender.snd_nxt = snd_nxt;
        sender.drop_sent_pieces();
    }

    /// A full buffer of 1 GiB is 16,000 pieces: what is asked at each event looks at the first one only, which is so if
    /// it is the first that is not sent.
    #[test]
    fn what_has_been_sent_is_never_looked_at_again() {
        let mut sender = writer();
        let mut ends = Vec::new();
        while sender.write_end < 1 << 30 {
            write(&mut sender, PIECE);
            ends.push(sender.write_end);
        }
        for snd_nxt in (1..1 << 30).step_by(100 * PIECE as usize + 700) {
            send_to(&mut sender, snd_nxt);
            let unsent = ends.iter().filter(|end| **end > snd_nxt);
            let (pieces, head) = (unsent.clone().count(), unsent.copied().next());
            assert_eq!(sender.queued_pieces() as usize, pieces);
            let head_pkts = head.map_or(0, |end| (end - snd_nxt).div_ceil(1000));
            assert_eq!(sender.head_pkts(), head_pkts);
        }
        assert!(ends.len() > 16_000);
    }

    #[test]
    fn writes_fill_the_last_piece_before_they_begin_another() {
        let mut sender = writer();
        assert_eq!((sender.queued_pieces(), sender.piece_room()), (0, PIECE));
        assert_eq!(write(&mut sender, 64_999), (1, 1, false));
        // The next to leave is full, and is pushed; what lies behind it is not.
        assert_eq!(write(&mut sender, 1), (1, PIECE, true));
        assert_eq!(write(&mut sender, 10), (2, PIECE - 10, false));
        assert_eq!(write(&mut sender, PIECE - 10), (2, PIECE, false));
        assert_eq!(write(&mut sender, 1), (3, PIECE - 1, false));
    }

    #[test]
    fn what_leaves_makes_room_in_the_last_piece_once_it_is_the_only_one() {
        let mut sender = writer();
        write(&mut sender, PIECE);
        sender.snd_nxt = 2001;
        assert_eq!((sender.queued_pieces(), sender.piece_room()), (1, 2000));
        sender.snd_nxt = 1;
        write(&mut sender, 500);
        let sent = |sender: &mut Sender, octets| {
            send_to(sender, 1 + octets);
            (sender.queued_pieces(), sender.piece_room())
        };
        assert_eq!(sent(&mut sender, PIECE - 1), (2, PIECE - 500));
        assert_eq!(sent(&mut sender, PIECE), (1, PIECE - 500));
        assert_eq!(sent(&mut sender, PIECE + 200), (1, PIECE - 300));
        assert_eq!(sent(&mut sender, PIECE + 500), (0, PIECE));
        assert_eq!(write(&mut sender, PIECE), (1, PIECE, true));
    }

    #[test]
    fn the_piece_that_leaves_next_ends_where_it_was_full() {
        let mut sender = writer();
        write(&mut sender, PIECE);
        write(&mut sender, 10_000);
        assert_eq!(sender.head_pkts(), 65);
        send_to(&mut sender, PIECE);
        assert_eq!(sender.head_pkts(), 1);
        send_to(&mut sender, 1 + PIECE);
        assert_eq!(sender.head_pkts(), 10);
    }

    /// The recorded senders' first pieces: 22 segments, half of the 65,535 octets that a SYN-ACK can offer.
    #[test]
    fn half_the_largest_window_bounds_a_piece() {
        let mut sender = writer();
        sender.last_wnd_bytes = 65_535;
        assert_eq!(sender.piece_room(), 32_000);
        sender.last_wnd_bytes = 1 << 20;
        assert_eq!(write(&mut sender, 1000), (1, PIECE - 1000, false));
        sender.last_wnd_bytes = 4000;
        assert_eq!(sender.piece_room(), PIECE - 1000);
    }

    #[test]
    fn a_piece_is_full_with_17_fragments() {
        let mut sender = writer();
        (0..40).for_each(|n| sender.begin_fragment(1 + 2000 * n));
        assert_eq!((sender.queued_pieces(), sender.piece_room()), (0, 34_000));
        assert_eq!(write(&mut sender, 33_500), (1, 500, false));
        assert_eq!(write(&mut sender, 500), (1, 34_000, false));
        assert!(!sender.buffered(0).tail_has_room);
        // What leaves makes room for as many fragments; the rest of one counts.
        send_to(&mut sender, 4500);
        assert_eq!((sender.queued_pieces(), sender.piece_room()), (1, 4000));
        assert!(sender.buffered(0).tail_has_room);
        assert_eq!(write(&mut sender, 4000), (1, 34_000, false));
        assert_eq!(write(&mut sender, 1), (2, 33_999, false));
    }

    #[test]
    fn linux_looks_for_room_in_the_window_when_a_segment_comes_after_the_application_began_to_wait()
    {
        let mut sender = writer();
        write(&mut sender, PIECE);
        while sender.poll_transmit(0).is_some() {}
        let now = 100 * MILLISECOND;
        sender.receive(&parse("ack 3", now), now);
        sender.note_writer(true);
        assert!(!sender.buffered(now).window_has_room, "not since it waits");
        sender.receive(&parse("ack 4", now), now);
        sender.note_writer(true);
        assert!(sender.buffered(now).window_has_room, "it goes on waiting");
    }
}

//! What is written and not sent, in the pieces in which Linux keeps it: as large as the largest burst, filled one after
//! the other.
//!
//! Must not know who writes or what a piece costs. Linux 6.18: `tcp_sendmsg_locked`, `tcp_xmit_size_goal`.

use super::Sender;
use crate::application::Buffered;

/// Linux (`sk_dst_gso_max_size`): octets of the largest burst, with headers and without.
const BURST_BYTES: u64 = 65_536;
const HEADROOM_BYTES: u64 = 193;

/// The last piece of what is written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unsent {
    /// Where it begins; at or below `snd_nxt`: it is the only one, and has begun to leave.
    tail: u64,
    /// A piece that is the next to leave has just been filled: a burst of it does not wait for more
    /// (`tcp_push_one`).
    pub pushed: bool,
}

impl Sender {
    /// The application has written up to stream offset `end`; `finished`: that was its last octet.
    pub fn write_to(&mut self, end: u64, finished: bool) {
        if self.board.keeps_pieces() {
            self.fill_piece(end);
        }
        self.write_end = self.write_end.max(end);
        self.finished |= finished;
    }

    /// End of the octets that the application has written.
    #[inline]
    pub fn write_end(&self) -> u64 {
        self.write_end
    }

    /// What it holds of what the application has written.
    pub fn buffered(&self) -> Buffered {
        Buffered {
            octets: self.write_end - self.snd_una,
            unsent: self.write_end - self.snd_nxt,
            pieces: self.board.pieces() + self.unsent_pieces(),
            in_network: self.board.pipe(),
            cwnd: self.effective_window(),
            reordering: self.doubt.reordering,
            models_path: self.controller.models_path(),
        }
    }

    /// Octets that the last piece takes before it is full, or a new one where it is.
    pub fn piece_room(&self) -> u64 {
        let held = self.write_end - self.tail_start();
        match self.piece_bytes() - held.min(self.piece_bytes()) {
            0 => self.piece_bytes(),
            room => room,
        }
    }

    /// Pieces that are not sent.
    fn unsent_pieces(&self) -> u32 {
        if self.write_end == self.snd_nxt {
            return 0;
        }
        let before_tail = self.unsent.tail.saturating_sub(self.snd_nxt);
        before_tail.div_ceil(self.piece_bytes()) as u32 + 1
    }

    /// The application writes up to `end`, no more than the last piece takes.
    fn fill_piece(&mut self, end: u64) {
        if self.write_end - self.tail_start() >= self.piece_bytes() {
            self.unsent.tail = self.write_end;
        }
        let full = end - self.tail_start() >= self.piece_bytes();
        self.unsent.pushed = full && self.unsent.tail <= self.snd_nxt;
    }

    fn tail_start(&self) -> u64 {
        self.unsent.tail.max(self.snd_nxt)
    }

    /// Whole segments.
    fn piece_bytes(&self) -> u64 {
        let smss = u64::from(self.params.smss_bytes);
        ((BURST_BYTES - HEADROOM_BYTES) / smss).max(1) * smss
    }
}

#[cfg(test)]
mod tests {
    use super::super::ladder::sender;
    use super::*;
    use crate::catalogue::Variant;
    use crate::config::{Profile, StackOverrides};

    /// Segments of 1000 octets: 65 of them are a piece.
    const PIECE: u64 = 65_000;

    fn writer() -> Sender {
        let overrides = StackOverrides {
            smss_bytes: Some(1000),
            send_buffer_bytes: Some(1 << 20),
            ..StackOverrides::default()
        };
        let mut sender = sender(Variant::LinuxReno, Profile::Linux, overrides);
        (sender.write_end, sender.unsent) = (1, Unsent::default());
        sender
    }

    fn write(sender: &mut Sender, octets: u64) -> (u32, u64, bool) {
        sender.write_to(sender.write_end + octets, false);
        let pushed = std::mem::take(&mut sender.unsent.pushed);
        (sender.unsent_pieces(), sender.piece_room(), pushed)
    }

    #[test]
    fn writes_fill_the_last_piece_before_they_begin_another() {
        let mut sender = writer();
        assert_eq!((sender.unsent_pieces(), sender.piece_room()), (0, PIECE));
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
        write(&mut sender, 500);
        let sent = |sender: &mut Sender, octets| {
            sender.snd_nxt = 1 + octets;
            (sender.unsent_pieces(), sender.piece_room())
        };
        assert_eq!(sent(&mut sender, PIECE - 1), (2, PIECE - 500));
        assert_eq!(sent(&mut sender, PIECE), (1, PIECE - 500));
        assert_eq!(sent(&mut sender, PIECE + 200), (1, PIECE - 300));
        assert_eq!(sent(&mut sender, PIECE + 500), (0, PIECE));
    }
}

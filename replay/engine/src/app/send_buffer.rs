//! A send buffer: when an application that asks before each write may write, as Linux counts and answers it.
//!
//! Does not depend on what is written. Linux 6.18: memory is `sk_wmem_queued`, the limit `sk_sndbuf`, the question `tcp_poll`
//! and the answer `__sk_stream_is_writeable`; the constants say which function has them.
//!
//! Deviation: sizes of the kernel's structures depend on its build. These are of x86-64 without wireless and tunnel
//! devices (`LL_MAX_HEADER` 32), as the kernel that the engine is held beside; others count up to twice as much.

/// Linux (`MAX_TCP_HEADER`): room for the headers of all layers.
const HEADROOM_BYTES: u64 = 192;
/// Linux (`struct skb_shared_info`, `struct sk_buff`, aligned to cache lines).
const SHARED_INFO_BYTES: u64 = 320;
const SK_BUFF_BYTES: u64 = 256;
/// Linux (`tcp_stream_alloc_skb`, `SKB_TRUESIZE`): memory that a piece takes besides its octets: its structures and
/// the least head that the allocator keeps (`skbuff_small_head`).
const PIECE_OVERHEAD_BYTES: u64 = 256 + SK_BUFF_BYTES + SHARED_INFO_BYTES;
/// Linux (`tcp_sndbuf_expand`): windows of packets for which growth allows: one in flight, one waiting; one more for
/// `bbr`, which overshoots (`bbr_sndbuf_expand`).
const GROWTH_WINDOWS: u64 = 2;
const GROWTH_WINDOWS_OF_MODEL: u64 = 3;
/// Linux (`TCP_INIT_CWND`): it allows for so many packets at least.
const MIN_GROWTH_PKTS: u64 = 10;

/// What a sender holds of the written octets.
#[derive(Clone, Copy, Debug)]
pub struct Buffered {
    /// Octets written and not acknowledged.
    pub octets: u64,
    /// Of these, not sent.
    pub unsent: u64,
    /// Pieces in which they lie.
    pub pieces: u32,
    /// The congestion window takes more than was in the network when the application was thought of.
    pub window_has_room: bool,
    /// Congestion window in packets.
    pub cwnd: f64,
    /// Duplicates that reordering alone explains.
    pub reordering: u32,
    /// The window is that of a model of the path.
    pub models_path: bool,
}

impl Buffered {
    fn memory(&self) -> u64 {
        self.octets + u64::from(self.pieces) * PIECE_OVERHEAD_BYTES
    }
}

/// Limits of a send buffer.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_field_names, reason = "their unit")]
pub struct Limits {
    /// Memory for what is written and not acknowledged.
    pub memory_bytes: u64,
    /// Up to where it grows with cwnd; none: it does not.
    pub max_bytes: Option<u64>,
    /// Unsent octets that are enough (`TCP_NOTSENT_LOWAT`); none: any number.
    pub unsent_bytes: Option<u64>,
    /// Largest segment that the other end takes.
    pub mss_bytes: u32,
}

/// The buffer's limits and whether the application waits for room.
#[derive(Clone, Copy, Debug)]
pub struct SendBuffer {
    limits: Limits,
    waiting: bool,
}

impl SendBuffer {
    /// A buffer within `limits`.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            waiting: false,
        }
    }

    /// Whether the application may write a piece now, or has to wait. `midway`: a write is not finished.
    pub fn is_writable(&mut self, held: &Buffered, midway: bool) -> bool {
        if self.waiting {
            self.grow(held);
        }
        let used = held.memory();
        let limit = self.limits.memory_bytes;
        let enough_unsent = self.limits.unsent_bytes.unwrap_or(u64::MAX);
        let writable = if midway && !self.waiting {
            used < limit && held.unsent < enough_unsent
        } else {
            // Asked before a write, Linux wants a third of the memory free and half of what is enough sent.
            used + used / 2 <= limit && held.unsent < enough_unsent.div_ceil(2)
        };
        self.waiting = !writable;
        writable
    }

    /// Linux (`tcp_new_space`): the memory grows where the application waits although cwnd has room.
    fn grow(&mut self, held: &Buffered) {
        let Limits {
            memory_bytes,
            max_bytes: Some(max),
            mss_bytes,
            ..
        } = self.limits
        else {
            return;
        };
        if !held.window_has_room {
            return;
        }
        let cwnd = held.cwnd as u64;
        let per_packet = (u64::from(mss_bytes) + HEADROOM_BYTES + SHARED_INFO_BYTES)
            .next_power_of_two()
            + SK_BUFF_BYTES;
        let packets = cwnd
            .max(MIN_GROWTH_PKTS)
            .max(u64::from(held.reordering) + 1);
        let windows = if held.models_path {
            GROWTH_WINDOWS_OF_MODEL
        } else {
            GROWTH_WINDOWS
        };
        // A window has no bound of its own: Hybla's, with its greatest exponent, leaves 64 bits.
        let wanted = packets.saturating_mul(windows * per_packet);
        self.limits.memory_bytes = memory_bytes.max(wanted.min(max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(max_bytes: Option<u64>, unsent_bytes: Option<u64>) -> SendBuffer {
        SendBuffer::new(Limits {
            memory_bytes: 90_000,
            max_bytes,
            unsent_bytes,
            mss_bytes: 1460,
        })
    }

    fn held(octets: u64, pieces: u32) -> Buffered {
        Buffered {
            octets,
            unsent: 0,
            pieces,
            window_has_room: true,
            cwnd: 10.0,
            reordering: 3,
            models_path: false,
        }
    }

    #[test]
    fn a_write_begins_with_a_third_of_the_memory_free_and_goes_on_to_the_limit() {
        let mut free = buffer(None, None);
        assert!(free.is_writable(&held(60_000, 0), false));
        assert!(free.is_writable(&held(89_999, 0), true));
        assert!(!free.is_writable(&held(90_000, 0), true));
        // Once it waits, a write that is not finished asks like a new one.
        assert!(!free.is_writable(&held(60_001, 0), true));
        assert!(free.is_writable(&held(60_000, 0), true));
        assert!(!free.is_writable(&held(60_001, 0), false));
    }

    /// A kernel with 755,712 octets of memory took a write at 357,015 octets in 171 pieces and one unsent, none at
    /// 359,911 in 172 and one unsent (the recorded run S11-reno): two thirds are 503,808.
    #[test]
    fn a_piece_takes_832_octets_besides_its_own() {
        let takes = |octets, pieces| {
            let mut buffer = buffer(None, None);
            buffer.limits.memory_bytes = 2 * 2304 * 164;
            buffer.is_writable(&held(octets, pieces), false)
        };
        assert!(takes(357_015, 172));
        assert!(!takes(359_911, 173));
    }

    #[test]
    fn unsent_octets_are_enough_at_half_the_mark_before_a_write_and_at_the_mark_within() {
        let unsent = |octets| Buffered {
            unsent: octets,
            ..held(octets, 0)
        };
        let mut marked = buffer(None, Some(40_000));
        assert!(marked.is_writable(&unsent(19_999), false));
        assert!(marked.is_writable(&unsent(39_999), true));
        assert!(!marked.is_writable(&unsent(40_000), true));
        assert!(!marked.is_writable(&unsent(20_000), true));
        assert!(marked.is_writable(&unsent(19_999), true));
    }

    /// The memory of a buffer that an application has waited for, with room in a window of `cwnd`.
    fn grown(max_bytes: Option<u64>, change: impl Fn(&mut Buffered)) -> u64 {
        let mut buffer = buffer(max_bytes, None);
        buffer.waiting = true;
        let mut held = held(90_000, 50);
        held.cwnd = 40.9;
        change(&mut held);
        buffer.is_writable(&held, false);
        buffer.limits.memory_bytes
    }

    #[test]
    fn a_window_without_bound_grows_it_to_its_most() {
        assert_eq!(grown(Some(1 << 30), |held| held.cwnd = 1e19), 1 << 30);
    }

    #[test]
    fn it_grows_to_two_windows_only_while_it_waits_with_cwnd_to_spare() {
        const MAX: Option<u64> = Some(1 << 30);
        assert_eq!(grown(None, |_| {}), 90_000);
        assert_eq!(grown(MAX, |held| held.window_has_room = false), 90_000);
        assert_eq!(grown(MAX, |_| {}), 2 * 40 * 2304);
        assert_eq!(grown(MAX, |held| held.models_path = true), 3 * 40 * 2304);
        assert_eq!(grown(MAX, |held| held.reordering = 60), 2 * 61 * 2304);
        assert_eq!(grown(Some(100_000), |_| {}), 100_000);
        let mut asked = buffer(MAX, None);
        asked.is_writable(&held(90_000, 0), false);
        assert_eq!(asked.limits.memory_bytes, 90_000);
    }
}

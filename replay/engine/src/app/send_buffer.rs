//! The send buffer: when an application that waits for writability may write. Memory is accounted as in Linux.
//!
//! Does not depend on what is written. Linux 6.18: the memory is `sk_wmem_queued`, the limit `sk_sndbuf`, the test is
//! `__sk_stream_is_writeable` as `tcp_poll` calls it; each constant names its function.
//!
//! Deviation: the sizes of the kernel's structures depend on its build. These are of x86-64 without wireless and tunnel
//! devices (`LL_MAX_HEADER` 32), as in the kernel that the engine is compared with; other builds account for up to twice
//! as much.

/// Linux (`MAX_TCP_HEADER`): space for the headers of all layers.
const HEADROOM_BYTES: u64 = 192;
/// Linux (`struct skb_shared_info`, `struct sk_buff`, aligned to cache lines).
const SHARED_INFO_BYTES: u64 = 320;
const SK_BUFF_BYTES: u64 = 256;
/// Linux (`tcp_stream_alloc_skb`, `SKB_TRUESIZE`): memory of a piece without its octets: its structures and the smallest
/// head that the allocator has (`skbuff_small_head`).
const PIECE_OVERHEAD_BYTES: u64 = 256 + SK_BUFF_BYTES + SHARED_INFO_BYTES;
/// Linux (`tcp_sndbuf_expand`): the memory grows to two congestion windows, one in flight and one queued; to three for
/// `bbr`, which overshoots (`bbr_sndbuf_expand`).
const AUTOTUNED_WINDOWS: u64 = 2;
const AUTOTUNED_WINDOWS_OF_MODEL: u64 = 3;
/// Linux (`TCP_INIT_CWND`): the minimum window that it grows for.
const MIN_AUTOTUNED_PKTS: u64 = 10;

/// What a sender has of the written octets.
#[derive(Clone, Copy, Debug)]
pub struct Buffered {
    /// Octets written and not acknowledged.
    pub octets: u64,
    /// Those of them that are not sent.
    pub unsent: u64,
    /// Pieces (Linux: `skb`) that they are in.
    pub pieces: u32,
    /// The last piece takes more octets.
    pub tail_has_room: bool,
    /// The congestion window exceeds the flight, and a segment has come since the application began to wait: Linux
    /// (`tcp_check_space`) considers waking it when one does.
    pub window_has_room: bool,
    /// Congestion window in packets.
    pub cwnd: f64,
    /// Reordering degree: duplicate ACKs that reordering alone explains.
    pub reordering: u32,
    /// The window follows a model of the path.
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
    /// Memory for octets that are written and not acknowledged.
    pub memory_bytes: u64,
    /// Maximum that autotuning grows it to; none: no autotuning.
    pub max_memory_bytes: Option<u64>,
    /// Unsent octets above which the application waits (`TCP_NOTSENT_LOWAT`); none: any number.
    pub lowat_bytes: Option<u64>,
    /// Maximum segment size of the connection.
    pub mss_bytes: u32,
}

/// A send buffer: its limits, and whether the application waits for space.
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

    /// Whether the application may write a piece now. `midway`: it continues a write.
    pub fn is_writable(&mut self, buffered: &Buffered, midway: bool) -> bool {
        if self.waiting {
            self.autotune(buffered);
        }
        let used = buffered.memory();
        let limit = self.limits.memory_bytes;
        let lowat = self.limits.lowat_bytes.unwrap_or(u64::MAX);
        let writable = if midway && !self.waiting {
            // It looks for memory only when it begins a piece (`tcp_sendmsg_locked`).
            buffered.tail_has_room || used < limit && buffered.unsent < lowat
        } else {
            // Before a write, Linux requires a third of the memory to be free and no more than half of the low-water mark
            // to be unsent.
            used + used / 2 <= limit && buffered.unsent < lowat.div_ceil(2)
        };
        self.waiting = !writable;
        writable
    }

    /// Linux (`tcp_new_space`): the memory grows if the application waits although the congestion window has room.
    fn autotune(&mut self, buffered: &Buffered) {
        let Limits {
            memory_bytes,
            max_memory_bytes: Some(max),
            mss_bytes,
            ..
        } = self.limits
        else {
            return;
        };
        if !buffered.window_has_room {
            return;
        }
        let cwnd = buffered.cwnd as u64;
        let per_packet = (u64::from(mss_bytes) + HEADROOM_BYTES + SHARED_INFO_BYTES)
            .next_power_of_two()
            + SK_BUFF_BYTES;
        let packets = cwnd
            .max(MIN_AUTOTUNED_PKTS)
            .max(u64::from(buffered.reordering) + 1);
        let windows = if buffered.models_path {
            AUTOTUNED_WINDOWS_OF_MODEL
        } else {
            AUTOTUNED_WINDOWS
        };
        // A congestion window has no upper bound: Hybla's, with its largest exponent, overflows 64 bits.
        let wanted = packets.saturating_mul(windows * per_packet);
        self.limits.memory_bytes = memory_bytes.max(wanted.min(max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(max_memory_bytes: Option<u64>, lowat_bytes: Option<u64>) -> SendBuffer {
        SendBuffer::new(Limits {
            memory_bytes: 90_000,
            max_memory_bytes,
            lowat_bytes,
            mss_bytes: 1460,
        })
    }

    fn buffered(octets: u64, pieces: u32) -> Buffered {
        Buffered {
            octets,
            unsent: 0,
            pieces,
            tail_has_room: false,
            window_has_room: true,
            cwnd: 10.0,
            reordering: 3,
            models_path: false,
        }
    }

    #[test]
    fn a_write_starts_with_a_third_of_the_memory_free_and_continues_to_the_limit() {
        let mut free = buffer(None, None);
        assert!(free.is_writable(&buffered(60_000, 0), false));
        assert!(free.is_writable(&buffered(89_999, 0), true));
        assert!(!free.is_writable(&buffered(90_000, 0), true));
        // Once the application waits, the rest of a write needs as much space as a new one.
        assert!(!free.is_writable(&buffered(60_001, 0), true));
        assert!(free.is_writable(&buffered(60_000, 0), true));
        assert!(!free.is_writable(&buffered(60_001, 0), false));
    }

    #[test]
    fn the_last_piece_is_filled_without_memory_but_not_by_a_new_write() {
        let full = Buffered {
            tail_has_room: true,
            ..buffered(90_000, 0)
        };
        let mut buffer = buffer(None, None);
        assert!(buffer.is_writable(&full, true));
        assert!(!buffer.is_writable(&full, false));
        assert!(!buffer.is_writable(&full, true), "it waits");
    }

    /// In the recorded run S11-reno a kernel with 755,712 octets of memory accepted a write at 357,015 octets in 171 sent
    /// pieces and one unsent, and none at 359,911 octets in 172 and one: two thirds are 503,808.
    #[test]
    fn a_piece_takes_832_octets_of_memory_and_its_own() {
        let accepts = |octets, pieces| {
            let mut buffer = buffer(None, None);
            buffer.limits.memory_bytes = 2 * 2304 * 164;
            buffer.is_writable(&buffered(octets, pieces), false)
        };
        assert!(accepts(357_015, 172));
        assert!(!accepts(359_911, 173));
    }

    #[test]
    fn the_low_water_mark_is_halved_before_a_write() {
        let unsent = |octets| Buffered {
            unsent: octets,
            ..buffered(octets, 0)
        };
        let mut marked = buffer(None, Some(40_000));
        assert!(marked.is_writable(&unsent(19_999), false));
        assert!(marked.is_writable(&unsent(39_999), true));
        assert!(!marked.is_writable(&unsent(40_000), true));
        assert!(!marked.is_writable(&unsent(20_000), true));
        assert!(marked.is_writable(&unsent(19_999), true));
    }

    /// The memory of a buffer after its application has waited, with room in the congestion window.
    fn autotuned(max_memory_bytes: Option<u64>, change: impl Fn(&mut Buffered)) -> u64 {
        let mut buffer = buffer(max_memory_bytes, None);
        buffer.waiting = true;
        let mut buffered = buffered(90_000, 50);
        buffered.cwnd = 40.9;
        change(&mut buffered);
        buffer.is_writable(&buffered, false);
        buffer.limits.memory_bytes
    }

    #[test]
    fn an_enormous_window_grows_it_to_its_maximum() {
        assert_eq!(
            autotuned(Some(1 << 30), |buffered| buffered.cwnd = 1e19),
            1 << 30
        );
    }

    #[test]
    fn it_grows_to_two_windows_only_while_the_application_waits_with_room_in_cwnd() {
        const MAX: Option<u64> = Some(1 << 30);
        assert_eq!(autotuned(None, |_| {}), 90_000);
        assert_eq!(
            autotuned(MAX, |buffered| buffered.window_has_room = false),
            90_000
        );
        assert_eq!(autotuned(MAX, |_| {}), 2 * 40 * 2304);
        assert_eq!(
            autotuned(MAX, |buffered| buffered.models_path = true),
            3 * 40 * 2304
        );
        assert_eq!(
            autotuned(MAX, |buffered| buffered.reordering = 60),
            2 * 61 * 2304
        );
        assert_eq!(autotuned(Some(100_000), |_| {}), 100_000);
        let mut first = buffer(MAX, None);
        first.is_writable(&buffered(90_000, 0), false);
        assert_eq!(first.limits.memory_bytes, 90_000);
    }
}

//! A send buffer: how many octets an application may have written and not yet seen acknowledged, as Linux counts it.
//!
//! Must not know what is written. Linux 6.x: `tcp_sendmsg`, `sk_stream_memory_free`, `sk_stream_is_writeable` and
//! `tcp_sndbuf_expand` are what the rules below follow; the constants say where.

/// Memory that a packet in flight takes besides its octets.
///
/// Deviation: Linux sends bursts of two segments as one buffer with 1280 octets of book-keeping; half of that counts
/// per packet here, however the segments were sent.
const OVERHEAD_BYTES: u64 = 640;
/// Octets that one buffer of unsent data takes at most: once begun it is filled, also beyond the limit.
const PIECE_BYTES: u64 = 65_536;
/// Memory that growth allows per packet of cwnd: a full segment with headers rounded up to a power of two, and its
/// book-keeping (`tcp_sndbuf_expand`, for an Ethernet MSS).
const GROWTH_BYTES: f64 = 4352.0;
/// Windows of packets for which growth allows: one in flight and one waiting (`tcp_sndbuf_expand`).
const GROWTH_WINDOWS: f64 = 2.0;

/// What a sender holds of the written octets.
#[derive(Clone, Copy, Debug)]
pub struct Buffered {
    /// Octets written and not acknowledged.
    pub octets: u64,
    /// Packets outstanding.
    pub outstanding: u32,
    /// Packets that the sender believes in the network.
    pub in_network: u32,
    /// Congestion window in packets.
    pub cwnd: f64,
}

/// The buffer's limit and whether the application waits for room.
#[derive(Clone, Copy, Debug)]
pub struct SendBuffer {
    limit_bytes: u64,
    /// Up to where it grows with cwnd; none: it does not.
    most_bytes: Option<u64>,
    waiting: bool,
}

impl SendBuffer {
    /// A buffer of `limit_bytes` that grows to `most_bytes`.
    pub fn new(limit_bytes: u64, most_bytes: Option<u64>) -> Self {
        Self {
            limit_bytes,
            most_bytes,
            waiting: false,
        }
    }

    /// Octets that the application may write now; none: it has to wait.
    pub fn room(&mut self, held: &Buffered) -> Option<u64> {
        let used = held.octets + u64::from(held.outstanding) * OVERHEAD_BYTES;
        if self.waiting {
            self.grow(held);
            // One that had to wait is woken when a third of the buffer is free.
            let free = self.limit_bytes.saturating_sub(used);
            self.waiting = free < used / 2;
        } else {
            self.waiting = used >= self.limit_bytes;
        }
        (!self.waiting).then_some(PIECE_BYTES)
    }

    /// The buffer grows where it, and not cwnd, holds the sender back.
    fn grow(&mut self, held: &Buffered) {
        let Some(most) = self.most_bytes else {
            return;
        };
        if f64::from(held.in_network) < held.cwnd {
            let wanted = (GROWTH_WINDOWS * held.cwnd * GROWTH_BYTES) as u64;
            self.limit_bytes = self.limit_bytes.max(wanted.min(most));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(octets: u64, outstanding: u32, cwnd: f64) -> Buffered {
        Buffered {
            octets,
            outstanding,
            in_network: outstanding,
            cwnd,
        }
    }

    #[test]
    fn a_write_begun_below_the_limit_goes_in_and_the_next_waits_for_a_third() {
        let mut buffer = SendBuffer::new(90_000, None);
        assert_eq!(buffer.room(&held(89_999, 0, 10.0)), Some(PIECE_BYTES));
        assert_eq!(buffer.room(&held(90_000, 0, 10.0)), None);
        // 60,001 + 29,999: free is less than half of what is used.
        assert_eq!(buffer.room(&held(60_001, 0, 10.0)), None);
        assert_eq!(buffer.room(&held(60_000, 0, 10.0)), Some(PIECE_BYTES));
        // It does not wait any more: up to the limit again.
        assert_eq!(buffer.room(&held(89_999, 0, 10.0)), Some(PIECE_BYTES));
    }

    #[test]
    fn packets_in_flight_take_more_than_their_octets() {
        let mut buffer = SendBuffer::new(20_000, None);
        assert_eq!(buffer.room(&held(19_359, 1, 10.0)), Some(PIECE_BYTES));
        assert_eq!(buffer.room(&held(19_360, 1, 10.0)), None);
    }

    #[test]
    fn it_grows_only_while_it_waits_with_cwnd_to_spare() {
        let waiting = |most| SendBuffer {
            limit_bytes: 90_000,
            most_bytes: most,
            waiting: true,
        };
        let spare = held(90_000, 20, 40.0);
        let full = held(90_000, 40, 40.0);
        assert_eq!(waiting(None).room(&spare), None);
        assert_eq!(waiting(Some(1 << 30)).room(&full), None);
        let mut grown = waiting(Some(1 << 30));
        assert_eq!(grown.room(&spare), Some(PIECE_BYTES));
        assert_eq!(grown.limit_bytes, 2 * 40 * 4352);
        let mut capped = waiting(Some(100_000));
        assert_eq!(capped.room(&spare), None);
        assert_eq!(capped.limit_bytes, 100_000);
    }
}

//! Records that the capture stores more than once: a mirror port copies both directions of an interface, or several
//! interfaces capture the same packet.

use hindflight_decoder::{Segment, flags};

/// Maximum time between two copies of a packet with an IPv4 identification, which a retransmission does not share.
const MAX_DELAY_NS: i64 = 2_000_000;

/// The same without one (IPv6, or 0 as Linux sends it with DF): no sender retransmits that soon.
const MAX_DELAY_WITHOUT_ID_NS: i64 = 10_000;

/// The same with equal timestamps (RFC 7323 §3), whose clock ticks at most every millisecond.
const MAX_DELAY_WITH_TIMESTAMPS_NS: i64 = 100_000;

/// The last segment of each direction.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Copies {
    last: [Option<Last>; 2],
    /// A segment that occupies sequence space was stored twice.
    seen: bool,
}

/// What two copies have in common.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Fields {
    seq: u32,
    ack: u32,
    payload_bytes: u32,
    flags: u16,
    window: u16,
    timestamps: Option<(u32, u32)>,
    ip_id: Option<u16>,
}

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Last {
    t_ns: i64,
    fields: Fields,
    first_sack: Option<(u32, u32)>,
}

impl Copies {
    /// Whether `segment` of direction `index` is a copy of the one before.
    ///
    /// Of two equal ACKs, the second may be a duplicate ACK. It counts as a copy only on a connection whose other
    /// segments are stored twice.
    pub fn observe(&mut self, index: usize, segment: &Segment) -> bool {
        let options = &segment.options;
        let last = Last {
            t_ns: segment.t_ns,
            fields: Fields {
                seq: segment.seq,
                ack: segment.ack,
                payload_bytes: segment.payload_bytes,
                flags: segment.flags,
                window: segment.window,
                timestamps: options.timestamps,
                ip_id: segment.ip_id,
            },
            first_sack: options.sack.as_slice().first().copied(),
        };
        let Some(before) = self.last[index].replace(last) else {
            return false;
        };
        if before.fields != last.fields || before.first_sack != last.first_sack {
            return false;
        }
        let occupies = segment.payload_bytes > 0 || segment.flags & (flags::SYN | flags::FIN) != 0;
        let max_delay_ns = match (segment.ip_id, options.timestamps) {
            (Some(1..), _) => MAX_DELAY_NS,
            (_, Some(_)) if occupies => MAX_DELAY_WITH_TIMESTAMPS_NS,
            _ => MAX_DELAY_WITHOUT_ID_NS,
        };
        let copy =
            (0..max_delay_ns).contains(&(last.t_ns - before.t_ns)) && (occupies || self.seen);
        self.seen |= copy;
        copy
    }
}

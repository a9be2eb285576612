//! What Wireshark remembers of one direction of a conversation, and its comparison of sequence numbers.

use super::verdict::flag;

/// Whether `a` is before `b` modulo 2^32.
#[inline]
pub fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Segments that have not been acknowledged, beyond which no more are remembered.
pub const MAX_UNACKED: usize = 10_000;

/// A segment that has not been acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unacked {
    /// Number of its record.
    pub record: u64,
    /// First number that has not been acknowledged.
    pub seq: u32,
    /// The number after its last.
    pub next: u32,
    /// Time.
    pub t_ns: i64,
}

/// Window scale of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// The handshake was not captured.
    #[default]
    Unknown,
    /// Not used.
    Unused,
    /// The shift.
    Shift(u8),
}

/// State of a direction.
#[derive(Debug, Default)]
pub struct Flow {
    /// The initial sequence number, or the one before the first that was seen.
    pub base: Option<u32>,
    /// Highest number plus one; 0 before the first segment. Its record and time.
    pub next: u32,
    pub next_record: u64,
    pub next_ns: i64,
    /// Highest number plus one without a gap before it.
    pub max_to_be_acked: u32,
    /// Of the last segment: acknowledgement number, time, window, flags.
    pub last_ack: u32,
    pub last_ns: i64,
    pub window: Option<u16>,
    pub last_flags: u32,
    /// Duplicate acknowledgements in a row; -1 after one of a segment that was not captured.
    pub dupacks: i32,
    /// The record with the first of them.
    pub first_ack_record: u64,
    /// Segments that have not been acknowledged, in the order of the capture.
    pub unacked: Vec<Unacked>,
    pub scale: Scale,
    /// Only a SYN so far, whose window is not scaled.
    pub awaits_first_ack: bool,
    /// Whether octets in flight are counted: not from a gap to the next acknowledgement.
    pub counts_flight: bool,
    /// Octets since the last PSH, and whether the last segment had it.
    pub push_bytes: u32,
    pub pushed: bool,
    /// Sum of the SACK blocks of the last segment, at most three.
    pub sacked_bytes: u32,
}

impl Flow {
    /// A direction without segments.
    pub fn new() -> Self {
        Self {
            counts_flight: true,
            ..Self::default()
        }
    }

    /// The window of the last segment in octets.
    pub fn scaled_window(&self) -> u32 {
        let window = self.window.map_or(u32::MAX, u32::from);
        match self.scale {
            Scale::Shift(shift) if !self.awaits_first_ack => window << (shift & 31),
            _ => window,
        }
    }

    /// Whether the last segment had this flag.
    pub fn had(&self, bit: u32) -> bool {
        self.last_flags & bit != 0
    }

    /// Whether a keep-alive came last.
    pub fn kept_alive(&self) -> bool {
        self.had(flag::KEEP_ALIVE)
    }
}

//! What Wireshark says of a segment, and its text form.

use crate::cells::Cells;

/// Flags, one bit each, in the order of [`FLAGS`].
pub mod flag {
    /// Sent again.
    pub const RETRANSMISSION: u32 = 1;
    /// Sent again after two duplicate acknowledgements.
    pub const FAST_RETRANSMISSION: u32 = 1 << 1;
    /// Sent again although it was acknowledged.
    pub const SPURIOUS_RETRANSMISSION: u32 = 1 << 2;
    /// Late.
    pub const OUT_OF_ORDER: u32 = 1 << 3;
    /// SYN of another connection between the same ends.
    pub const REUSED_PORTS: u32 = 1 << 4;
    /// Follows a gap.
    pub const LOST_SEGMENT: u32 = 1 << 5;
    /// Acknowledges what was not captured.
    pub const ACK_LOST_SEGMENT: u32 = 1 << 6;
    /// Changes only the window.
    pub const WINDOW_UPDATE: u32 = 1 << 7;
    /// Fills the window.
    pub const WINDOW_FULL: u32 = 1 << 8;
    /// Repeats the last number.
    pub const KEEP_ALIVE: u32 = 1 << 9;
    /// Answers a keep-alive.
    pub const KEEP_ALIVE_ACK: u32 = 1 << 10;
    /// One octet into a zero window.
    pub const ZERO_WINDOW_PROBE: u32 = 1 << 11;
    /// Offers no window.
    pub const ZERO_WINDOW: u32 = 1 << 12;
    /// Answers a probe.
    pub const ZERO_WINDOW_PROBE_ACK: u32 = 1 << 13;
    /// Repeats an acknowledgement.
    pub const DUPLICATE_ACK: u32 = 1 << 14;
}

/// Names of the flags, below `tcp.analysis`.
pub const FLAGS: [&str; 15] = [
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "reused_ports",
    "lost_segment",
    "ack_lost_segment",
    "window_update",
    "window_full",
    "keep_alive",
    "keep_alive_ack",
    "zero_window_probe",
    "zero_window",
    "zero_window_probe_ack",
    "duplicate_ack",
];

/// Names of the other fields, in Wireshark's syntax, before and after the flags.
const FIRST: [&str; 4] = [
    "frame.number",
    "tcp.stream",
    "tcp.completeness",
    "tcp.window_size_scalefactor",
];
const LAST: [&str; 9] = [
    "duplicate_ack_num",
    "duplicate_ack_frame",
    "acks_frame",
    "ack_rtt",
    "initial_rtt",
    "rto",
    "rto_frame",
    "bytes_in_flight",
    "push_bytes_sent",
];

/// What Wireshark says of a segment. Times in nanoseconds; `None` and 0 mean that it shows no such field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Number of the record.
    pub record: u64,
    /// Number of the conversation, from 0.
    pub stream: u32,
    /// What the conversation had before this segment, as bits.
    pub completeness: u8,
    /// Window scale factor; -1 unknown, -2 not used; `None` with SYN.
    pub scale_factor: Option<i64>,
    /// Bits of [`flag`].
    pub flags: u32,
    /// Number of the duplicate acknowledgement, and the record that it repeats.
    pub dupack: Option<(i32, u64)>,
    /// The record that it acknowledges, and the time since.
    pub acks: Option<(u64, i64)>,
    /// Initial round-trip time.
    pub initial_rtt_ns: i64,
    /// Time since the record that a retransmission repeats, and its number.
    pub rto: Option<(i64, u64)>,
    /// Octets in flight.
    pub bytes_in_flight: u32,
    /// Octets since the last PSH.
    pub push_bytes_sent: u32,
    /// Whether Wireshark shows an analysis.
    pub analysed: bool,
}

/// The names of all fields.
pub fn names() -> Vec<String> {
    let analysis = FLAGS.iter().chain(&LAST);
    FIRST
        .iter()
        .map(|&name| name.to_owned())
        .chain(analysis.map(|name| format!("tcp.analysis.{name}")))
        .collect()
}

impl Verdict {
    /// Writes the fields. Flags are 1 or without a value, as tshark prints them.
    pub fn write(&self, out: &mut impl Cells) {
        out.integer(self.record);
        out.integer(u64::from(self.stream));
        out.integer(u64::from(self.completeness));
        match self.scale_factor {
            Some(factor) => out.signed(factor),
            None => out.missing(),
        }
        for bit in 0..FLAGS.len() {
            if self.flags & 1 << bit == 0 {
                out.missing();
            } else {
                out.integer(1);
            }
        }
        let positive = |value: u64| (value > 0).then_some(value);
        let integers = [
            self.dupack
                .map(|(number, _)| u64::try_from(number).unwrap_or(0)),
            self.dupack.map(|(_, record)| record),
            self.acks.map(|(record, _)| record),
        ];
        for value in integers {
            optional(value, out);
        }
        let shown = |ns: i64| (ns != 0).then_some(ns);
        seconds(self.acks.and_then(|(_, ns)| shown(ns)), out);
        let initial = shown(self.initial_rtt_ns).filter(|_| self.analysed);
        seconds(initial, out);
        seconds(self.rto.map(|(ns, _)| ns), out);
        optional(self.rto.map(|(_, record)| record), out);
        optional(positive(u64::from(self.bytes_in_flight)), out);
        optional(positive(u64::from(self.push_bytes_sent)), out);
    }
}

fn optional(value: Option<u64>, out: &mut impl Cells) {
    match value {
        Some(value) => out.integer(value),
        None => out.missing(),
    }
}

fn seconds(ns: Option<i64>, out: &mut impl Cells) {
    match ns {
        Some(ns) => out.seconds(ns),
        None => out.missing(),
    }
}

//! The three-way handshake: its times, its round-trip time, where on the path the capture was taken, and the window
//! scale.

use hindflight_decoder::{Segment, flags};

use crate::rows::Vantage;

/// Minimum RTT from which the capture point is determined. Below, the delays of the hosts dominate.
const MIN_VANTAGE_RTT_NS: i64 = 200_000;

/// Maximum share of the RTT, in percent, between the capture point and the end where it counts as located.
const NEAR_END_PERCENT: i64 = 10;

/// The RTT of the path, and its part between the capture point and the receiver.
#[derive(Clone, Copy, Debug)]
pub struct SplitRtt {
    /// Of the path.
    pub path_ns: i64,
    /// From the capture point to the receiver.
    pub downstream_ns: i64,
}

impl SplitRtt {
    /// The capture point.
    pub fn vantage(self) -> Vantage {
        let near_ns = self.path_ns / 100 * NEAR_END_PERCENT;
        if self.path_ns < MIN_VANTAGE_RTT_NS {
            Vantage::Unknown
        } else if self.path_ns - self.downstream_ns <= near_ns {
            Vantage::Sender
        } else if self.downstream_ns <= near_ns {
            Vantage::Receiver
        } else {
            Vantage::Middle
        }
    }
}

/// The window scale option of a SYN (RFC 7323 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum WindowScale {
    /// The SYN was not captured.
    #[default]
    Unknown,
    /// The SYN has no such option.
    Absent,
    /// Shift count.
    Shift(u8),
}

impl WindowScale {
    /// The option of a SYN, if any.
    pub fn of_syn(shift: Option<u8>) -> Self {
        shift.map_or(Self::Absent, Self::Shift)
    }

    /// The window in bytes for the `field` of the end with this option; `None` if one of the two SYNs was not captured.
    pub fn scaled(self, field: i64, peer: Self) -> Option<i64> {
        match (self, peer) {
            (Self::Unknown, _) | (_, Self::Unknown) => None,
            // RFC 7323 §2.3: the maximum shift count is 14.
            (Self::Shift(shift), Self::Shift(_)) => Some(field << shift.min(14)),
            _ => Some(field),
        }
    }
}

/// Times of the segments of the three-way handshake.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
#[allow(clippy::struct_field_names, reason = "the unit belongs to the name")]
pub struct Handshake {
    /// Of the last SYN.
    pub syn_ns: Option<i64>,
    /// Of the last SYN/ACK.
    pub syn_ack_ns: Option<i64>,
    /// Of the ACK of the SYN/ACK.
    pub ack_ns: Option<i64>,
    /// That ACK is missing, and data after it: the RTT is an upper bound.
    pub is_late: bool,
    /// Timestamp of the SYN.
    syn_ts_val: Option<u32>,
    /// The SYN/ACK has a timestamp: the connection uses them (RFC 7323 §3.2).
    timestamps: bool,
    /// A SYN or SYN/ACK was repeated, so that the answer may be to the first (Karn, RFC 6298 §3).
    ambiguous: bool,
}

impl Handshake {
    /// Processes a SYN or SYN/ACK.
    pub fn on_syn(&mut self, segment: &Segment) {
        let timestamps = segment.options.timestamps;
        if segment.flags & flags::ACK == 0 {
            if self.syn_ack_ns.is_none() {
                self.ambiguous |= self.syn_ns.is_some();
                self.syn_ns = Some(segment.t_ns);
                self.syn_ts_val = timestamps.map(|pair| pair.0);
            }
        } else if self.ack_ns.is_none() {
            // RFC 7323 §4: the echo names the SYN.
            let named = timestamps.is_some() && timestamps.map(|pair| pair.1) == self.syn_ts_val;
            self.ambiguous = self.syn_ack_ns.is_some() || (self.ambiguous && !named);
            self.syn_ack_ns = Some(segment.t_ns);
            self.timestamps = timestamps.is_some();
        }
    }

    /// Whether the SYN/ACK shows that the connection uses no timestamps.
    pub fn lacks_timestamps(self) -> bool {
        self.syn_ack_ns.is_some() && !self.timestamps
    }

    /// The RTT of the path, unless it is ambiguous.
    pub fn path_rtt_ns(self) -> Option<i64> {
        self.rtt()
            .filter(|_| !self.ambiguous)
            .map(|rtt| rtt.path_ns)
    }

    /// The RTT of the handshake, as seen from the end that opened the connection.
    pub fn rtt(self) -> Option<SplitRtt> {
        let path_ns = self.ack_ns? - self.syn_ns?;
        let downstream_ns = self.syn_ack_ns? - self.syn_ns?;
        (path_ns >= 0).then_some(SplitRtt {
            path_ns,
            downstream_ns,
        })
    }
}

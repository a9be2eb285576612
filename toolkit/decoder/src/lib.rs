//! Decoder: TCP segments from a packet capture. Handles compression, the pcap and pcapng formats, link layers, IP, and TCP with its
//! options.
//!
//! [`Reader`] reads from any `std::io::Read` and returns one [`Segment`] after another. It never panics on its input: a
//! damaged record becomes an [`Issue`], and reading continues. [`encode_record`] is the inverse.
//!
//! The crate has no state beyond one record and does not depend on tables or files.

mod buffer;
mod checksum;
mod compression;
mod container;
mod dissector;
mod encode;
mod encode_pcapng;
mod esp;
mod fragments;
mod framed;
mod ip;
mod issue;
mod link;
mod merge;
mod octets;
mod pcap;
mod pcapng;
mod reader;
mod segment;
mod skipped;
mod tally;
mod tcp;
mod tunnel;
mod wlan;

pub use checksum::Checksum;
pub use compression::Compression;
pub use container::{CaptureHeader, Format};
pub use dissector::Dissector;
pub use encode::{EncodeError, capture_header, encode_frame, encode_record};
pub use encode_pcapng::{encode_packet, pcapng_header};
pub use issue::{DecodeError, Issue, IssueKind};
pub use link::LinkType;
pub use merge::Part;
pub use reader::{CLOCK_STEP_NS, Captured, Reader, Window};
pub use segment::{SackBlocks, Segment, TcpOptions, flags};
pub use tally::{Count, Other, OtherPacket, Tally};

//! Bytes of a capture into TCP segments: containers, link layers, IP, TCP with its options.
//!
//! Knows nothing of connections, tables or files: it reads from any `std::io::Read`, never panics on what it
//! reads, and reports a damaged record instead of stopping. Start with [`Reader`] and [`Segment`]. [`encode_record`]
//! goes the other way.

mod buffer;
mod container;
mod encode;
mod ip;
mod issue;
mod link;
mod octets;
mod pcap;
mod reader;
mod segment;
mod tally;
mod tcp;

pub use container::Compression;
pub use encode::{EncodeError, capture_header, encode_record};
pub use issue::{DecodeError, Issue, IssueKind};
pub use link::LinkType;
pub use pcap::CaptureHeader;
pub use reader::{Captured, Reader, Window};
pub use segment::{SackBlocks, Segment, TcpOptions, flags};
pub use tally::{Count, Other, OtherPacket, Tally};

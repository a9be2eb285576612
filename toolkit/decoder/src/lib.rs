//! Bytes of a capture into TCP segments: containers, link layers, IP, TCP with its options.
//!
//! Knows nothing of connections, tables or files: it reads from any `std::io::Read`, never panics on what it
//! reads, and reports a damaged record instead of stopping. Start with [`Segment`].

mod segment;

pub use segment::{SackBlocks, Segment, TcpOptions, flags};

//! Profiles: counts and flags as other analysers define them, in one pass over the segments of a capture.
//!
//! [`Tcptrace`] counts per connection as tcptrace does, [`Wireshark`] analyses segments as Wireshark does, [`Flows`]
//! writes the table `flows`. [`Pipeline`] reads a capture on a second thread. The crate does not depend on tables; it
//! keeps a small state per connection and no segments.

mod cells;
mod flows;
mod pack;
mod packet;
mod pipeline;
mod tcptrace;
mod wireshark;

pub use cells::Format;
pub use flows::Flows;
pub use packet::{End as Endpoint, Ends, NO_SCALE, Packet};
pub use pipeline::{End, Next, Pipeline};
pub use tcptrace::Tcptrace;
pub use wireshark::{FLAGS, Verdict, Wireshark, WiresharkRows, flag};

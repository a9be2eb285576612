//! Flow analysis: connections, retransmissions and their causes, losses, round-trip times, flight size and congestion
//! window, from TCP segments in the order of time.
//!
//! [`Tracker`] makes one pass over the segments of a capture or of a replay; only live connections take memory.
//! `toolkit/schema` defines the columns of its rows. The crate does not depend on files, Arrow or a clock.

mod artefacts;
mod cause;
mod clock_fix;
mod connection;
mod cwnd;
mod evidence;
mod handshake;
mod intervals;
mod jump;
mod key;
mod loss;
mod missing;
mod ordering;
mod passes;
mod remote;
mod retransmissions;
mod rows;
mod rtt;
mod scoreboard;
mod sender;
mod sequence;
mod tracker;
mod untimed;
mod upstream_rtt;

pub use clock_fix::{ClockFix, Corrected};
pub use evidence::{End, Evidence, Reason};
pub use rows::{
    Direction, DirectionRow, Edges, Event, EventCause, EventKind, FlowRow, Mechanism, Note, Phase,
    Sample, Source, Vantage,
};
pub use tracker::Tracker;

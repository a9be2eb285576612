//! Segments into connections: directions, unwrapped sequence numbers, retransmissions and their causes, losses,
//! round-trip times, flight, and the state of the sender as far as a capture shows it.
//!
//! One streaming pass with memory for live connections only. It must know no file, no Arrow and no clock: whatever
//! yields [`hindflight_decoder::Segment`]s in order of time, a capture or a replay, can feed a [`Tracker`]. Read
//! `toolkit/schema` for the meaning of every column, then [`Tracker`].

mod cause;
mod connection;
mod echo;
mod evidence;
mod history;
mod inference;
mod intervals;
mod key;
mod ordering;
mod rows;
mod rtt;
mod scoreboard;
mod sender;
mod sequence;
mod tracker;
mod unseen;
mod verdict;

pub use evidence::{End, Evidence, Reason};
pub use rows::{
    Direction, DirectionRow, Edges, Event, EventCause, EventKind, FlowRow, Note, Phase, Sample,
    Source, Vantage,
};
pub use tracker::Tracker;

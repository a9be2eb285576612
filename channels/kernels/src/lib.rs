//! Channel processes: which packet a link loses, drawn from a model or read from a trace, and how a link's state
//! goes on over time.
//!
//! Pure: no clock, no I/O, nothing of ours beneath it. It must not know segments, flows or tables; a caller tells
//! it a packet's size and time and is told whether the channel lost it. Read `docs/channels/` first, then
//! [`LossProcess`].

mod ahead;
mod bernoulli;
mod chain;
mod fading;
pub mod fit;
mod gilbert_elliott;
mod multipath;
mod passage;
mod process;
mod protect;
mod rng;
mod sight;
mod steps;
mod street;
mod timeline;
mod trace;

pub use bernoulli::{Bernoulli, BitErrors};
pub use chain::{ChainLoss, ChainParams, Clock, StateLoss, Stay, Walk};
pub use fading::{FadeRun, Fading, FadingPace, StateSignal};
pub use gilbert_elliott::{GilbertElliott, GilbertElliottParams};
pub use passage::{Edge, Pace, Passage, Run, SET, Sample};
pub use process::LossProcess;
pub use protect::{Arq, ArqParams, Fec, FecParams, Guard};
pub use rng::{Purpose, RunLength, StreamKey, StreamRng};
pub use sight::{Aim, Canyon, DEEPEST_DB, Direction, knife_edge_db, radians};
pub use street::{Building, LengthLaw, Piece, Side, Street, StreetParams};
pub use timeline::{Span, Timeline};
pub use trace::{LossTrace, TraceFates, TraceMode};

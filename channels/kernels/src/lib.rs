//! Channel processes: which packets a link loses, from a model or from a trace, and how the state of a link evolves
//! over time.
//!
//! Does not depend on segments, flows or tables, and does no I/O: the caller passes the size and the time of a packet
//! and learns whether it is lost. Every random number comes from a [`StreamRng`], so equal seeds give equal results
//! on every machine. `docs/channels/` describes the models; start with [`LossProcess`].

mod bernoulli;
mod chain;
mod fading;
pub mod fit;
mod gilbert_elliott;
mod line_of_sight;
mod link_layer;
mod lookahead;
mod multipath;
mod process;
mod rng;
mod state_runs;
mod street;
mod street_visibility;
mod timeline;
mod trace;

pub use bernoulli::{Bernoulli, BitErrors};
pub use chain::{ChainLoss, ChainParams, Clock, StateLoss, Stay, Walk};
pub use fading::{FadeRun, Fading, FadingPace, StateSignal};
pub use gilbert_elliott::{GilbertElliott, GilbertElliottParams};
pub use line_of_sight::{Canyon, Direction, MAX_LOSS_DB, RayGeometry, knife_edge_db, radians};
pub use link_layer::{Arq, ArqParams, Fec, FecParams, Guard};
pub use process::LossProcess;
pub use rng::{Purpose, RunLength, StreamKey, StreamRng};
pub use street::{Building, LengthLaw, Piece, Side, Street, StreetParams};
pub use street_visibility::{Edge, Pace, Run, SET, Sample, VisibilityRuns};
pub use timeline::{Span, Timeline};
pub use trace::{LossSequence, LossTrace, TraceMode};

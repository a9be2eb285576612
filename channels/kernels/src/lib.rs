//! Per-packet channel processes: which packet a link loses, drawn from a model or read from a trace.
//!
//! Pure: no clock, no I/O, nothing of ours beneath it. It must not know segments, flows or tables; a caller tells
//! it a packet's size and is told whether the channel lost it. Read `docs/channels/` first, then [`LossProcess`].

mod bernoulli;
mod gilbert_elliott;
mod process;
mod rng;
mod trace;

pub use bernoulli::{Bernoulli, BitErrors};
pub use gilbert_elliott::{GilbertElliott, GilbertElliottParams};
pub use process::LossProcess;
pub use rng::{Purpose, StreamKey, StreamRng};
pub use trace::{LossTrace, TraceMode};

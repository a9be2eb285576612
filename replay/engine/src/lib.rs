//! A deterministic TCP in user space: clock, links, endpoints, congestion control, split proxies.
//!
//! Pure: no I/O, no clock of its own, one seed decides everything random. Start with [`Config`] and [`run`]; the
//! loop is in `world`, an endpoint's halves in `sender` and `receiver`, a named variant in `catalogue`.

#![cfg_attr(
    test,
    allow(
        clippy::float_cmp,
        reason = "values that are exact are worked out by hand"
    )
)]

mod alone;
mod application;
mod arena;
mod assembly;
mod calendar;
mod catalogue;
mod config;
pub mod controller;
mod datagram;
mod histogram;
#[cfg(test)]
mod invariants;
mod jiffies;
mod jitter;
mod link;
mod network;
mod node;
mod outlook;
mod proxy;
mod queue;
mod rate_trace;
mod reassembly;
mod receiver;
mod ring;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod serialiser;
mod sink;
mod source;
mod summary;
mod takeover;
mod tap;
mod ticks;
mod time;
mod timer;
mod world;

pub use alone::{Alone, Misfit, Recorded, follow};
pub use assembly::{Leg, Transport};
pub use catalogue::{EXTERNAL, VARIANTS, Variant};
pub use config::{
    AdvertisePolicy, ApplicationConfig, BurstConfig, ChangeConfig, ClockConfig, CodelConfig,
    Config, ConfigError, DatagramConfig, DirectionConfig, DropTailConfig, DrrConfig, FlowConfig,
    HandoverRule, JitterConfig, LinkConfig, LossConfig, LossScope, NagleRule, PathConfig,
    PieConfig, PriorityConfig, Profile, ProxyConfig, QueueConfig, RecoveryKind, RedConfig, RtoRule,
    SlowStartKind, SpanConfig, Spread, StackOverrides, StackParams, StateConfig, StayConfig,
    TraceModeConfig, unheeded_by_all,
};
pub use link::DropCause;
pub use segment::{Direction, Ecn, Purpose, Segment, flags};
pub use sender::{BoardCounts, PhaseName, SenderCounters, SenderSample};
pub use summary::{DatagramSummary, FlowSummary, RunSummary};
pub use tap::{Event, Tap};
pub use time::{MILLISECOND, Nanos, SECOND};
pub use world::{RunError, World, run};

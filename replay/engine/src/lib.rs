//! A deterministic TCP in user space: clock, links, endpoints, congestion control, split proxies.
//!
//! Pure: no I/O, no system clock, one seed decides everything random. Start with [`Config`] and [`run`]; the
//! event loop is `sim/world.rs`, the two halves of a connection are `tcp/sender` and `tcp/receiver`, the list of variants
//! is `cc/catalogue.rs`.

#![allow(
    clippy::inline_always,
    reason = "on the path of every segment `#[inline]` alone is ignored"
)]
#![allow(
    clippy::struct_excessive_bools,
    reason = "options, rules and requests that are independent of one another"
)]
#![cfg_attr(
    test,
    allow(
        clippy::float_cmp,
        reason = "values that are exact are worked out by hand"
    )
)]

mod app;
pub mod cc;
mod config;
mod net;
mod proxy;
mod sim;
mod tcp;

pub use app::{ProgressSummary, SecondsSummary};
pub use cc::catalogue::{EXTERNAL, VARIANTS, Variant};
pub use config::{
    AcknowledgePolicy, AdvertisePolicy, ApplicationConfig, BufferSize, BurstConfig, ChangeConfig,
    ClockConfig, CodelConfig, Config, ConfigError, ConfigErrorKind, ConfigErrors, DatagramConfig,
    DirectionConfig, DropTailConfig, DrrConfig, FaultConfig, FaultKind, FlowConfig, ForwardWindow,
    HandoverRule, HandshakePolicy, JitterConfig, KeyPath, LegStack, LinkConfig, LossConfig,
    LossScope, NagleRule, NoEffectReason, Number, ParameterProblem, PathConfig, PathStep,
    PieConfig, PriorityConfig, Profile, ProxyConfig, QueueConfig, RecoveryKind, RedConfig,
    Relation, RtoRule, SlowStartKind, SpanConfig, Spread, StackOverrides, StackParams, StateConfig,
    StayConfig, TraceModeConfig, ineffective_in_all,
};
pub use net::link::DropCause;
pub use proxy::ProxyCounts;
pub use sim::assembly::{Leg, Transport};
pub use sim::open_loop::{OpenLoopState, RecordedEvent, ReplayMismatch, replay_open_loop};

pub use sim::summary::{DatagramSummary, FlowSummary, LinkCounts, RunSummary};
pub use sim::time::{MILLISECOND, Nanos, SECOND};
pub use sim::trace::{Event, Tap};
pub use sim::world::{RunError, World, run, run_alike};
pub use tcp::segment::{Direction, Ecn, Purpose, Segment, flags};
pub use tcp::sender::{BoardCounts, PhaseName, ProxySample, SenderCounters, SenderSample};

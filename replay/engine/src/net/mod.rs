//! The network: links with queues, losses, jitter and schedules, handovers between links, and cross traffic.

pub(crate) mod cross_traffic;
pub(crate) mod handover;
pub(crate) mod handover_forecast;
pub(crate) mod jitter;
pub(crate) mod link;
pub(crate) mod network;
pub(crate) mod queue;
pub(crate) mod rate_trace;
mod recorded;
pub(crate) mod serialiser;

//! The simulator: event loop, calendar, packet pool, trace sink, and the statistics of a run.

pub(crate) mod assembly;
pub(crate) mod calendar;
pub(crate) mod histogram;
#[cfg(test)]
pub(crate) mod invariants;
pub(crate) mod node;
pub(crate) mod open_loop;
pub(crate) mod packet_pool;
pub(crate) mod ring;
pub(crate) mod shared;
pub(crate) mod stops;
pub(crate) mod summary;
pub(crate) mod time;
pub(crate) mod trace;
pub(crate) mod world;

//! A TCP connection: segments, sender, receiver, loss recovery, scoreboard, round-trip times and timers.

pub(crate) mod jiffies;
#[cfg(test)]
mod ladder;
pub(crate) mod ns2_rtt;
pub(crate) mod reassembly;
pub(crate) mod receiver;
mod recovery;
pub(crate) mod rtt;
pub(crate) mod scoreboard;
pub(crate) mod segment;
pub(crate) mod sender;
mod stack_rules;
pub(crate) mod timer;

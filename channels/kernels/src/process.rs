//! The closed choice of loss processes, one call per packet.
//!
//! Must not know links. Each process has its own file and its page under `docs/channels/`.

use crate::{Bernoulli, BitErrors, ChainLoss, GilbertElliott, LossTrace, Timeline};

/// What decides the fate of a packet on the channel.
#[derive(Clone, Debug)]
pub enum LossProcess {
    /// Nothing is lost.
    None,
    /// Independent losses of packets.
    Bernoulli(Bernoulli),
    /// Independent errors of bits.
    BitErrors(BitErrors),
    /// Two-state bursts, stepped per packet.
    GilbertElliott(GilbertElliott),
    /// States of any number, stepped per packet or in time.
    Chain(Box<ChainLoss>),
    /// A trace by position.
    Trace(LossTrace),
    /// A trace by the clock.
    Timeline(Box<Timeline>),
}

impl LossProcess {
    /// Whether the next packet, of `size_bytes` (IP length), which is on the channel at `now_ns`, is lost.
    /// `now_ns` never falls from call to call.
    #[inline]
    pub fn lost(&mut self, size_bytes: u32, now_ns: u64) -> bool {
        match self {
            Self::None => false,
            Self::Bernoulli(process) => process.lost(),
            Self::BitErrors(process) => process.lost(size_bytes),
            Self::GilbertElliott(process) => process.lost(),
            Self::Chain(process) => process.lost(size_bytes, now_ns),
            Self::Trace(trace) => trace.lost(),
            Self::Timeline(timeline) => timeline.lost(size_bytes, now_ns),
        }
    }

    /// Packets that lay beyond the end of a replayed trace; 0 for models.
    pub fn beyond_pkts(&self) -> u64 {
        if let Self::Trace(trace) = self {
            trace.beyond_pkts()
        } else {
            0
        }
    }
}

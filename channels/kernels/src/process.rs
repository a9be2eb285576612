//! The closed choice of loss processes, one call per packet.
//!
//! Must not know links. Each process has its own file and its page under `docs/channels/`.

use crate::{Bernoulli, BitErrors, GilbertElliott, LossTrace};

/// What decides the fate of a packet on the channel.
#[derive(Clone, Debug)]
pub enum LossProcess {
    /// Nothing is lost.
    None,
    /// Independent losses of packets.
    Bernoulli(Bernoulli),
    /// Independent errors of bits.
    BitErrors(BitErrors),
    /// Two-state bursts.
    GilbertElliott(GilbertElliott),
    /// A trace by position.
    Trace(LossTrace),
}

impl LossProcess {
    /// Whether the next packet, of `size_bytes` (IP length), is lost.
    #[inline]
    pub fn lost(&mut self, size_bytes: u32) -> bool {
        match self {
            Self::None => false,
            Self::Bernoulli(process) => process.lost(),
            Self::BitErrors(process) => process.lost(size_bytes),
            Self::GilbertElliott(process) => process.lost(),
            Self::Trace(trace) => trace.lost(),
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

//! The closed choice of loss processes, one call per packet.
//!
//! Must not know links. Each process has its own file and its page under `docs/channels/`.

use crate::{Bernoulli, BitErrors, ChainLoss, GilbertElliott, Guard, LossTrace, Span, Timeline};

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
    /// A link layer over another process.
    Guarded(Box<Guard>),
}

impl LossProcess {
    /// What the channel adds to the delay of the next packet, of `size_bytes` (IP length), which is on it at `now_ns`;
    /// none if it is lost. `now_ns` never falls from call to call.
    #[inline]
    pub fn pass(&mut self, size_bytes: u32, now_ns: u64) -> Option<u64> {
        let lost = match self {
            Self::None => false,
            Self::Bernoulli(process) => process.lost(),
            Self::BitErrors(process) => process.lost(size_bytes),
            Self::GilbertElliott(process) => process.lost(),
            Self::Chain(process) => process.lost(size_bytes, now_ns),
            Self::Trace(trace) => return trace.pass(),
            Self::Timeline(timeline) => timeline.lost(size_bytes, now_ns),
            Self::Guarded(guard) => return guard.pass(size_bytes, now_ns),
        };
        (!lost).then_some(0)
    }

    /// Packets of `size_bytes`, `spacing_ns` apart from `now_ns` on, that pass before the next loss, `most_pkts` at most;
    /// for models stepped per packet the time it takes does not grow with the packets.
    pub fn pass_until_loss(
        &mut self,
        size_bytes: u32,
        (now_ns, spacing_ns): (u64, u64),
        most_pkts: u64,
    ) -> Option<u64> {
        match self {
            Self::None => None,
            Self::GilbertElliott(process) => process.pass_until_loss(most_pkts),
            Self::Chain(process) if process.is_stepped() => {
                process.pass_until_loss(size_bytes, most_pkts)
            }
            process => (0..most_pkts).find(|i| {
                let at_ns = now_ns.saturating_add(i.saturating_mul(spacing_ns));
                process.pass(size_bytes, at_ns).is_none()
            }),
        }
    }

    /// Tells a timeline, or the one beneath a link layer, of later spans, so that it need not be held whole; says whether
    /// there is one. It must not have been asked for a time from the last span on that it knew: see [`Self::reach_ns`].
    pub fn extend(&mut self, spans: Vec<Span>) -> bool {
        match self {
            Self::Timeline(timeline) => {
                timeline.extend(spans);
                true
            }
            Self::Guarded(guard) => guard.extend(spans),
            _ => false,
        }
    }

    /// The latest time for which the channel may be asked when a packet comes at `now_ns`.
    pub fn reach_ns(&self, now_ns: u64) -> u64 {
        match self {
            Self::Guarded(guard) => guard.reach_ns(now_ns),
            _ => now_ns,
        }
    }

    /// Whether it may add to a delay.
    pub fn repairs(&self) -> bool {
        match self {
            Self::Trace(trace) => trace.repairs(),
            Self::Guarded(_) => true,
            _ => false,
        }
    }

    /// Whether it goes by the clock.
    pub fn by_clock(&self) -> bool {
        match self {
            Self::Chain(chain) => !chain.is_stepped(),
            Self::Timeline(_) => true,
            Self::Guarded(guard) => guard.by_clock(),
            _ => false,
        }
    }

    /// Whether packets come in the order in which they went in.
    pub fn keeps_order(&self) -> bool {
        match self {
            Self::Trace(trace) => !trace.repairs(),
            Self::Guarded(guard) => guard.keeps_order(),
            _ => true,
        }
    }

    /// Packets that lay beyond the end of a replayed trace; 0 for models.
    pub fn beyond_pkts(&self) -> u64 {
        match self {
            Self::Trace(trace) => trace.beyond_pkts(),
            Self::Guarded(guard) => guard.beyond_pkts(),
            _ => 0,
        }
    }
}

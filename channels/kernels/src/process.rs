//! The closed set of loss processes, with one call per packet. Each process has a file here and a page in
//! `docs/channels/`.

use crate::{Bernoulli, BitErrors, ChainLoss, GilbertElliott, Guard, LossTrace, Span, Timeline};

/// Decides which packets the channel loses.
#[derive(Clone, Debug)]
pub enum LossProcess {
    /// Nothing is lost.
    None,
    /// Independent packet losses.
    Bernoulli(Bernoulli),
    /// Independent bit errors.
    BitErrors(BitErrors),
    /// The Gilbert-Elliott chain of two states, stepped per packet.
    GilbertElliott(GilbertElliott),
    /// A chain of any number of states, stepped per packet or in time.
    Chain(Box<ChainLoss>),
    /// A trace, by packet position.
    Trace(LossTrace),
    /// Losses by time.
    Timeline(Box<Timeline>),
    /// A link layer with ARQ or FEC over another process.
    Guarded(Box<Guard>),
}

impl LossProcess {
    /// The delay that the channel adds to the next packet, of `size_bytes` (IP length), which is on it at `now_ns`;
    /// none if the packet is lost. `now_ns` never decreases from call to call.
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
            Self::Guarded(link_layer) => return link_layer.pass(size_bytes, now_ns),
        };
        (!lost).then_some(0)
    }

    /// The number of packets that pass before the next loss; none if the first `max_pkts` pass. The packets have
    /// `size_bytes` and are `spacing_ns` apart from `now_ns` on.
    ///
    /// For models stepped per packet the cost does not grow with the number of packets.
    pub fn pass_until_loss(
        &mut self,
        size_bytes: u32,
        (now_ns, spacing_ns): (u64, u64),
        max_pkts: u64,
    ) -> Option<u64> {
        match self {
            Self::None => None,
            Self::GilbertElliott(process) => process.pass_until_loss(max_pkts),
            Self::Chain(process) if process.is_stepped() => {
                process.pass_until_loss(size_bytes, max_pkts)
            }
            process => (0..max_pkts).find(|i| {
                let at_ns = now_ns.saturating_add(i.saturating_mul(spacing_ns));
                process.pass(size_bytes, at_ns).is_none()
            }),
        }
    }

    /// Appends later spans to a timeline, or to the timeline under a link layer, so that it need not be in memory as a
    /// whole. Returns whether there is a timeline.
    ///
    /// No query may have been made at or after the start of the last span so far; see [`Self::reach_ns`].
    pub fn extend(&mut self, spans: Vec<Span>) -> bool {
        match self {
            Self::Timeline(timeline) => {
                timeline.extend(spans);
                true
            }
            Self::Guarded(link_layer) => link_layer.extend(spans),
            _ => false,
        }
    }

    /// The latest time at which the channel may be queried for a packet that arrives at `now_ns`.
    pub fn reach_ns(&self, now_ns: u64) -> u64 {
        match self {
            Self::Guarded(link_layer) => link_layer.reach_ns(now_ns),
            _ => now_ns,
        }
    }

    /// Whether the process may add a delay.
    pub fn adds_delay(&self) -> bool {
        match self {
            Self::Trace(trace) => trace.adds_delay(),
            Self::Guarded(_) => true,
            _ => false,
        }
    }

    /// Whether the losses depend on the time of a packet and not on its position.
    pub fn by_clock(&self) -> bool {
        match self {
            Self::Chain(chain) => !chain.is_stepped(),
            Self::Timeline(_) => true,
            Self::Guarded(link_layer) => link_layer.by_clock(),
            _ => false,
        }
    }

    /// Whether packets leave in the order in which they enter.
    pub fn keeps_order(&self) -> bool {
        match self {
            Self::Trace(trace) => !trace.adds_delay(),
            Self::Guarded(link_layer) => link_layer.keeps_order(),
            _ => true,
        }
    }

    /// Packets past the end of a replayed trace; 0 for models.
    pub fn beyond_pkts(&self) -> u64 {
        match self {
            Self::Trace(trace) => trace.beyond_pkts(),
            Self::Guarded(link_layer) => link_layer.beyond_pkts(),
            _ => 0,
        }
    }
}

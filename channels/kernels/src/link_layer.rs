//! Link-layer protection over any loss process: retransmission (ARQ) and an erasure code (FEC), with the residual
//! losses and the delay that they add (`docs/channels/protect.md`).

use crate::lookahead::Lookahead;
use crate::{LossProcess, Span};

/// Parameters of ARQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArqParams {
    /// Retransmissions after the first transmission.
    pub retries: u32,
    /// Time from a transmission until its failure is known.
    pub try_ns: u64,
    /// Whether later packets wait while a packet is retransmitted.
    pub in_order: bool,
}

/// Parameters of an erasure code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FecParams {
    /// Packets per block, including the redundant ones.
    pub block: u32,
    /// Redundant packets per block: the number of losses that can be recovered.
    pub repair: u32,
    /// Time between the packets of a block.
    pub packet_ns: u64,
    /// Whether later packets wait for a packet that is being recovered.
    pub in_order: bool,
}

/// The process under the link layer: queried in order of time, or at any time.
#[derive(Clone, Debug)]
enum Under {
    InOrder(LossProcess),
    Lookahead(Lookahead),
}

impl Under {
    fn new(process: LossProcess, ordered: bool) -> Self {
        match process {
            LossProcess::Chain(chain) if !ordered && !chain.is_stepped() => {
                Self::Lookahead(chain.lookahead())
            }
            LossProcess::Timeline(timeline) if !ordered => Self::Lookahead(timeline.lookahead()),
            process => Self::InOrder(process),
        }
    }

    fn discard_before(&mut self, base_ns: u64) {
        if let Self::Lookahead(lookahead) = self {
            lookahead.discard_before(base_ns);
        }
    }

    fn lost(&mut self, size_bytes: u32, at_ns: u64) -> bool {
        match self {
            Self::InOrder(process) => process.pass(size_bytes, at_ns).is_none(),
            Self::Lookahead(lookahead) => lookahead.lost(size_bytes, at_ns),
        }
    }

    fn extend(&mut self, spans: Vec<Span>) -> bool {
        match self {
            Self::InOrder(process) => process.extend(spans),
            Self::Lookahead(lookahead) => lookahead.extend(spans),
        }
    }

    fn beyond_pkts(&self) -> u64 {
        match self {
            Self::InOrder(process) => process.beyond_pkts(),
            Self::Lookahead(_) => 0,
        }
    }
}

/// A link layer with ARQ.
#[derive(Clone, Debug)]
pub struct Arq {
    under: Under,
    params: ArqParams,
    /// When the packet before was delivered or given up.
    free_ns: u64,
}

impl Arq {
    /// ARQ over `process`: each transmission is a packet of that process.
    pub fn new(process: LossProcess, params: ArqParams) -> Self {
        Self {
            under: Under::new(process, params.in_order),
            params,
            free_ns: 0,
        }
    }

    /// The delay added to a packet that arrives at `now_ns`; none if the packet is given up.
    pub fn pass(&mut self, size_bytes: u32, now_ns: u64) -> Option<u64> {
        let params = self.params;
        self.under.discard_before(now_ns);
        let mut at_ns = self.first_transmission_ns(now_ns);
        let mut left = params.retries;
        while self.under.lost(size_bytes, at_ns) {
            if left == 0 {
                self.free_ns = at_ns;
                return None;
            }
            left -= 1;
            at_ns = at_ns.saturating_add(params.try_ns);
        }
        self.free_ns = at_ns;
        Some(at_ns - now_ns)
    }

    /// When a packet that arrives at `now_ns` is transmitted for the first time.
    fn first_transmission_ns(&self, now_ns: u64) -> u64 {
        if self.params.in_order {
            now_ns.max(self.free_ns)
        } else {
            now_ns
        }
    }

    fn reach_ns(&self, now_ns: u64) -> u64 {
        let retries_ns = u64::from(self.params.retries).saturating_mul(self.params.try_ns);
        self.first_transmission_ns(now_ns)
            .saturating_add(retries_ns)
    }
}

/// A link layer with FEC.
#[derive(Clone, Debug)]
pub struct Fec {
    under: Under,
    params: FecParams,
    /// Which packets of the present block are lost, and how many of its data packets have arrived.
    lost: Vec<bool>,
    arrived: u32,
    /// When all packets before have been delivered.
    free_ns: u64,
}

impl Fec {
    /// FEC over `process`: every packet of a block is a packet of that process.
    pub fn new(process: LossProcess, params: FecParams) -> Self {
        Self {
            under: Under::new(process, false),
            params,
            lost: Vec::new(),
            arrived: 0,
            free_ns: 0,
        }
    }

    /// The delay added to a packet that arrives at `now_ns`; none if the packet is lost and cannot be recovered.
    pub fn pass(&mut self, size_bytes: u32, now_ns: u64) -> Option<u64> {
        let params = self.params;
        if self.arrived == 0 {
            self.under.discard_before(now_ns);
            let times = (0..params.block)
                .map(|i| now_ns.saturating_add(u64::from(i).saturating_mul(params.packet_ns)));
            let under = &mut self.under;
            self.lost = times.map(|at| under.lost(size_bytes, at)).collect();
        }
        let index = self.arrived;
        self.arrived = (self.arrived + 1) % params.block.saturating_sub(params.repair).max(1);
        let losses = self.lost.iter().filter(|lost| **lost).count();
        let mut added_ns = 0;
        if self.lost.get(index as usize).copied().unwrap_or(false) {
            if losses > params.repair as usize {
                return None;
            }
            // Taken as recovered at the end of the block.
            let left = params.block.saturating_sub(1 + index);
            added_ns = u64::from(left).saturating_mul(params.packet_ns);
        }
        if params.in_order {
            added_ns = added_ns.max(self.free_ns.saturating_sub(now_ns));
            self.free_ns = now_ns.saturating_add(added_ns);
        }
        Some(added_ns)
    }

    fn reach_ns(&self, now_ns: u64) -> u64 {
        let last = u64::from(self.params.block.saturating_sub(1));
        now_ns.saturating_add(last.saturating_mul(self.params.packet_ns))
    }
}

/// A link layer that recovers losses.
#[derive(Clone, Debug)]
pub enum Guard {
    /// Retransmission.
    Arq(Arq),
    /// An erasure code.
    Fec(Fec),
}

impl Guard {
    /// The delay added to a packet that arrives at `now_ns`; none if the packet is lost.
    pub fn pass(&mut self, size_bytes: u32, now_ns: u64) -> Option<u64> {
        match self {
            Self::Arq(arq) => arq.pass(size_bytes, now_ns),
            Self::Fec(fec) => fec.pass(size_bytes, now_ns),
        }
    }

    /// Appends later spans to the timeline under the link layer; returns whether there is one.
    pub(crate) fn extend(&mut self, spans: Vec<Span>) -> bool {
        match self {
            Self::Arq(arq) => arq.under.extend(spans),
            Self::Fec(fec) => fec.under.extend(spans),
        }
    }

    /// The latest time at which the process under the link layer may be queried for a packet that arrives at `now_ns`.
    pub(crate) fn reach_ns(&self, now_ns: u64) -> u64 {
        match self {
            Self::Arq(arq) => arq.reach_ns(now_ns),
            Self::Fec(fec) => fec.reach_ns(now_ns),
        }
    }

    /// Packets past the end of a replayed trace under the link layer.
    pub fn beyond_pkts(&self) -> u64 {
        match self {
            Self::Arq(arq) => arq.under.beyond_pkts(),
            Self::Fec(fec) => fec.under.beyond_pkts(),
        }
    }

    /// Whether the losses depend on the time of a packet and not on its position.
    pub fn by_clock(&self) -> bool {
        let under = match self {
            Self::Arq(arq) => &arq.under,
            Self::Fec(fec) => &fec.under,
        };
        match under {
            Under::Lookahead(_) => true,
            Under::InOrder(process) => process.by_clock(),
        }
    }

    /// Whether packets leave in the order in which they enter.
    pub fn keeps_order(&self) -> bool {
        match self {
            Self::Arq(arq) => arq.params.in_order,
            Self::Fec(fec) => fec.params.in_order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::test_rng;
    use crate::{ChainLoss, ChainParams, Clock, Span, StateLoss, Stay, Timeline};

    const MS: u64 = 1_000_000;

    fn spans(bad_ms: std::ops::Range<u64>) -> Vec<Span> {
        let span = |start_ms: u64, probability| Span {
            start_ns: start_ms * MS,
            loss: StateLoss::Packets(probability),
        };
        vec![span(0, 0.0), span(bad_ms.start, 1.0), span(bad_ms.end, 0.0)]
    }

    fn timeline(bad_ms: std::ops::Range<u64>) -> LossProcess {
        LossProcess::Timeline(Box::new(Timeline::new(spans(bad_ms), test_rng(1))))
    }

    fn arq(process: LossProcess, retries: u32, in_order: bool) -> Arq {
        let params = ArqParams {
            retries,
            try_ns: 4 * MS,
            in_order,
        };
        Arq::new(process, params)
    }

    #[test]
    fn each_transmission_is_lost_by_the_state_at_its_time() {
        // All is lost from 10 to 20 ms. Packets arrive at 0, 9, 11 and 13 ms; transmissions are 4 ms apart.
        let offered = [0, 9, 11, 13].map(|ms| ms * MS);
        let mut apart = arq(timeline(10..20), 3, false);
        let added = offered.map(|now| apart.pass(1500, now));
        assert_eq!(added, [Some(0), Some(0), Some(12 * MS), Some(8 * MS)]);
        // In order the packet of 13 ms waits until that of 11 ms is delivered at 23 ms.
        let mut queued = arq(timeline(10..20), 3, true);
        let added = offered.map(|now| queued.pass(1500, now));
        assert_eq!(added, [Some(0), Some(0), Some(12 * MS), Some(10 * MS)]);
        // Two retries end at 19 ms; then the next packet has the link.
        let mut few = arq(timeline(10..20), 2, true);
        let added = offered.map(|now| few.pass(1500, now));
        assert_eq!(added, [Some(0), Some(0), None, Some(10 * MS)]);
    }

    /// Each kind of link layer over the same process.
    fn link_layers(process: &LossProcess) -> Vec<LossProcess> {
        let code = |in_order| FecParams {
            block: 6,
            repair: 2,
            packet_ns: MS,
            in_order,
        };
        let layers = [false, true].map(|in_order| {
            [
                Guard::Arq(arq(process.clone(), 3, in_order)),
                Guard::Fec(Fec::new(process.clone(), code(in_order))),
            ]
        });
        let boxed = layers.into_iter().flatten();
        boxed
            .map(|layer| LossProcess::Guarded(Box::new(layer)))
            .collect()
    }

    #[test]
    fn a_timeline_extended_span_by_span_equals_the_whole_timeline() {
        let span = |i: u64| Span {
            start_ns: i * 7 * MS,
            loss: StateLoss::Packets([0.0, 0.3, 1.0, 0.7][i as usize % 4]),
        };
        let all: Vec<Span> = (0..2000).map(span).collect();
        let bare = |spans: &[Span]| {
            LossProcess::Timeline(Box::new(Timeline::new(spans.to_vec(), test_rng(3))))
        };
        let (mut whole, mut parts) = (link_layers(&bare(&all)), link_layers(&bare(&all[..5])));
        whole.push(bare(&all));
        parts.push(bare(&all[..5]));
        for (whole, part) in whole.iter_mut().zip(&mut parts) {
            let mut known = 5;
            let mut lost = 0;
            for now_ns in (0..9000).map(|ms| ms * MS) {
                while part.reach_ns(now_ns) >= all[known - 1].start_ns && known < all.len() {
                    assert!(part.extend(all[known..=known].to_vec()));
                    known += 1;
                }
                let delay = whole.pass(1500, now_ns);
                assert_eq!(delay, part.pass(1500, now_ns), "{now_ns}");
                lost += u64::from(delay.is_none());
            }
            assert!((100..7000).contains(&lost), "{lost}");
        }
        assert!(!LossProcess::None.extend(all));
    }

    #[test]
    fn lookahead_does_not_change_the_shares_of_the_states() {
        let chain = || {
            let params = ChainParams {
                clock: Clock::Time,
                states: vec![
                    (StateLoss::Packets(0.0), Stay::Exponential(90e6)),
                    (StateLoss::Packets(1.0), Stay::Exponential(10e6)),
                ],
                jumps: vec![vec![0.0, 1.0], vec![1.0, 0.0]],
                start: vec![0.9, 0.1],
            };
            LossProcess::Chain(Box::new(ChainLoss::new(params, test_rng(4))))
        };
        for in_order in [false, true] {
            let mut none = arq(chain(), 0, in_order);
            let lost = (0..1_000_000_u64)
                .filter(|i| none.pass(1500, i * MS).is_none())
                .count();
            assert!((lost as f64 / 1e6 - 0.1).abs() < 0.004, "{lost}");
            // A packet is lost if the state is bad at all three transmissions, 4 ms apart: 0.1 (0.1 + 0.9 e^-(4/9))^2.
            let mut two = arq(chain(), 2, in_order);
            let left = (0..1_000_000_u64)
                .filter(|i| two.pass(1500, i * 100 * MS).is_none())
                .count() as f64;
            let never_left = 0.1 * (0.1 + 0.9 * libm::exp(-4.0 / 9.0)).powi(2);
            assert!(
                (left / 1e6 / never_left - 1.0).abs() < 0.03,
                "{left} {never_left}"
            );
        }
    }

    #[test]
    fn a_block_recovers_as_many_losses_as_it_has_redundant_packets() {
        let params = FecParams {
            block: 6,
            repair: 2,
            packet_ns: MS,
            in_order: false,
        };
        // Packets are 1 ms apart. In the first block those of 1 and 2 ms are lost, in the second three.
        let mut fec = Fec::new(timeline(1..3), params);
        let added: Vec<_> = (0..4).map(|i| fec.pass(1500, i * MS)).collect();
        assert_eq!(added, [Some(0), Some(4 * MS), Some(3 * MS), Some(0)]);
        let mut fec = Fec::new(timeline(1..4), params);
        let added: Vec<_> = (0..5).map(|i| fec.pass(1500, i * MS)).collect();
        assert_eq!(added, [Some(0), None, None, None, Some(0)]);
        let ordered = FecParams {
            in_order: true,
            ..params
        };
        let mut fec = Fec::new(timeline(1..3), ordered);
        let added: Vec<_> = (0..4).map(|i| fec.pass(1500, i * MS)).collect();
        assert_eq!(added, [Some(0), Some(4 * MS), Some(3 * MS), Some(2 * MS)]);
    }
}

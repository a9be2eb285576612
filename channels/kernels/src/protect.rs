//! What a link layer makes of losses: retransmission (ARQ) and an erasure code (FEC) over any process, and what they add
//! to the delay.
//!
//! Must not know links. Read `docs/channels/protect.md` first.

use crate::ahead::Ahead;
use crate::{LossProcess, Span};

/// Retransmission by the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArqParams {
    /// Tries after the first one.
    pub retries: u32,
    /// What a try takes until it is known to have failed.
    pub try_ns: u64,
    /// Whether later packets wait for the one that is being tried.
    pub in_order: bool,
}

/// An erasure code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FecParams {
    /// Packets of a block, the redundant ones among them.
    pub block: u32,
    /// Redundant packets of a block: so many losses are made good.
    pub repair: u32,
    /// What a packet of a block takes.
    pub packet_ns: u64,
    /// Whether later packets wait for one that is being made good.
    pub in_order: bool,
}

/// The process beneath: in order of time, or by the clock at any time.
#[derive(Clone, Debug)]
enum Beneath {
    Stepped(LossProcess),
    Clocked(Ahead),
}

impl Beneath {
    fn new(process: LossProcess, ordered: bool) -> Self {
        match process {
            LossProcess::Chain(chain) if !ordered && !chain.is_stepped() => {
                Self::Clocked(chain.ahead())
            }
            LossProcess::Timeline(timeline) if !ordered => Self::Clocked(timeline.ahead()),
            process => Self::Stepped(process),
        }
    }

    fn forget(&mut self, base_ns: u64) {
        if let Self::Clocked(ahead) = self {
            ahead.forget(base_ns);
        }
    }

    fn lost(&mut self, size_bytes: u32, at_ns: u64) -> bool {
        match self {
            Self::Stepped(process) => process.pass(size_bytes, at_ns).is_none(),
            Self::Clocked(ahead) => ahead.lost(size_bytes, at_ns),
        }
    }

    fn extend(&mut self, spans: Vec<Span>) -> bool {
        match self {
            Self::Stepped(process) => process.extend(spans),
            Self::Clocked(ahead) => ahead.extend(spans),
        }
    }

    fn beyond_pkts(&self) -> u64 {
        match self {
            Self::Stepped(process) => process.beyond_pkts(),
            Self::Clocked(_) => 0,
        }
    }
}

/// Retransmission in play.
#[derive(Clone, Debug)]
pub struct Arq {
    beneath: Beneath,
    params: ArqParams,
    /// When the packet before has been passed on or given up.
    free_ns: u64,
}

impl Arq {
    /// Over `process`: each try is a packet to it.
    pub fn new(process: LossProcess, params: ArqParams) -> Self {
        Self {
            beneath: Beneath::new(process, params.in_order),
            params,
            free_ns: 0,
        }
    }

    /// What is added to the delay of a packet that comes at `now_ns`; none if it is given up.
    pub fn pass(&mut self, size_bytes: u32, now_ns: u64) -> Option<u64> {
        let params = self.params;
        self.beneath.forget(now_ns);
        let mut at_ns = self.first_try_ns(now_ns);
        let mut left = params.retries;
        while self.beneath.lost(size_bytes, at_ns) {
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

    /// When a packet that comes at `now_ns` is tried for the first time.
    fn first_try_ns(&self, now_ns: u64) -> u64 {
        if self.params.in_order {
            now_ns.max(self.free_ns)
        } else {
            now_ns
        }
    }

    fn reach_ns(&self, now_ns: u64) -> u64 {
        let tries_ns = u64::from(self.params.retries).saturating_mul(self.params.try_ns);
        self.first_try_ns(now_ns).saturating_add(tries_ns)
    }
}

/// An erasure code in play.
#[derive(Clone, Debug)]
pub struct Fec {
    beneath: Beneath,
    params: FecParams,
    /// The fates of the packets of this block, and how many of its data packets have been seen.
    fates: Vec<bool>,
    seen: u32,
    /// When all before has been passed on.
    free_ns: u64,
}

impl Fec {
    /// Over `process`: every packet of a block is a packet to it.
    pub fn new(process: LossProcess, params: FecParams) -> Self {
        Self {
            beneath: Beneath::new(process, false),
            params,
            fates: Vec::new(),
            seen: 0,
            free_ns: 0,
        }
    }

    /// What is added to the delay of a packet that comes at `now_ns`; none if it cannot be made good.
    pub fn pass(&mut self, size_bytes: u32, now_ns: u64) -> Option<u64> {
        let params = self.params;
        if self.seen == 0 {
            self.beneath.forget(now_ns);
            let times = (0..params.block)
                .map(|i| now_ns.saturating_add(u64::from(i).saturating_mul(params.packet_ns)));
            let beneath = &mut self.beneath;
            self.fates = times.map(|at| beneath.lost(size_bytes, at)).collect();
        }
        let place = self.seen;
        self.seen = (self.seen + 1) % params.block.saturating_sub(params.repair).max(1);
        let gone = self.fates.iter().filter(|lost| **lost).count();
        let mut added_ns = 0;
        if self.fates.get(place as usize).copied().unwrap_or(false) {
            if gone > params.repair as usize {
                return None;
            }
            // Made good when enough of the block has come: at its end, at the latest.
            let left = params.block.saturating_sub(1 + place);
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

/// A link layer that repairs losses.
#[derive(Clone, Debug)]
pub enum Guard {
    /// By retransmission.
    Arq(Arq),
    /// By an erasure code.
    Fec(Fec),
}

impl Guard {
    /// What is added to the delay of a packet that comes at `now_ns`; none if it is lost.
    pub fn pass(&mut self, size_bytes: u32, now_ns: u64) -> Option<u64> {
        match self {
            Self::Arq(arq) => arq.pass(size_bytes, now_ns),
            Self::Fec(fec) => fec.pass(size_bytes, now_ns),
        }
    }

    /// Tells the timeline beneath of later spans; says whether there is one.
    pub(crate) fn extend(&mut self, spans: Vec<Span>) -> bool {
        match self {
            Self::Arq(arq) => arq.beneath.extend(spans),
            Self::Fec(fec) => fec.beneath.extend(spans),
        }
    }

    /// The latest time for which the process beneath may be asked when a packet comes at `now_ns`.
    pub(crate) fn reach_ns(&self, now_ns: u64) -> u64 {
        match self {
            Self::Arq(arq) => arq.reach_ns(now_ns),
            Self::Fec(fec) => fec.reach_ns(now_ns),
        }
    }

    /// Packets that lay beyond the end of a replayed trace beneath.
    pub fn beyond_pkts(&self) -> u64 {
        match self {
            Self::Arq(arq) => arq.beneath.beyond_pkts(),
            Self::Fec(fec) => fec.beneath.beyond_pkts(),
        }
    }

    /// Whether it goes by the clock.
    pub fn by_clock(&self) -> bool {
        let beneath = match self {
            Self::Arq(arq) => &arq.beneath,
            Self::Fec(fec) => &fec.beneath,
        };
        match beneath {
            Beneath::Clocked(_) => true,
            Beneath::Stepped(process) => process.by_clock(),
        }
    }

    /// Whether packets come in the order in which they went in.
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
    fn a_try_meets_the_channel_of_its_own_time() {
        // Lost from 10 to 20 ms. Packets at 0, 9, 11 and 13 ms; tries 4 ms apart.
        let offered = [0, 9, 11, 13].map(|ms| ms * MS);
        let mut apart = arq(timeline(10..20), 3, false);
        let added = offered.map(|now| apart.pass(1500, now));
        assert_eq!(added, [Some(0), Some(0), Some(12 * MS), Some(8 * MS)]);
        // In order the one at 13 ms waits until that of 11 ms has passed at 23 ms.
        let mut queued = arq(timeline(10..20), 3, true);
        let added = offered.map(|now| queued.pass(1500, now));
        assert_eq!(added, [Some(0), Some(0), Some(12 * MS), Some(10 * MS)]);
        // Two retries end at 19 ms; what follows has the link from then on.
        let mut few = arq(timeline(10..20), 2, true);
        let added = offered.map(|now| few.pass(1500, now));
        assert_eq!(added, [Some(0), Some(0), None, Some(10 * MS)]);
    }

    /// Guards of each kind over the same process.
    fn guards(process: &LossProcess) -> Vec<LossProcess> {
        let code = |in_order| FecParams {
            block: 6,
            repair: 2,
            packet_ns: MS,
            in_order,
        };
        let guards = [false, true].map(|in_order| {
            [
                Guard::Arq(arq(process.clone(), 3, in_order)),
                Guard::Fec(Fec::new(process.clone(), code(in_order))),
            ]
        });
        let boxed = guards.into_iter().flatten();
        boxed
            .map(|guard| LossProcess::Guarded(Box::new(guard)))
            .collect()
    }

    #[test]
    fn told_bit_by_bit_a_timeline_is_the_same_as_told_at_once() {
        let span = |i: u64| Span {
            start_ns: i * 7 * MS,
            loss: StateLoss::Packets([0.0, 0.3, 1.0, 0.7][i as usize % 4]),
        };
        let all: Vec<Span> = (0..2000).map(span).collect();
        let bare = |spans: &[Span]| {
            LossProcess::Timeline(Box::new(Timeline::new(spans.to_vec(), test_rng(3))))
        };
        let (mut whole, mut parts) = (guards(&bare(&all)), guards(&bare(&all[..5])));
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
                let fate = whole.pass(1500, now_ns);
                assert_eq!(fate, part.pass(1500, now_ns), "{now_ns}");
                lost += u64::from(fate.is_none());
            }
            assert!((100..7000).contains(&lost), "{lost}");
        }
        assert!(!LossProcess::None.extend(all));
    }

    #[test]
    fn looking_ahead_leaves_the_share_of_the_states_alone() {
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
            // Still bad after 8 ms, two tries on: 0.1 + 0.9 e^-(8 (1/10 + 1/90)) of the first losses, of both tries.
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
    fn a_block_makes_good_as_many_as_it_has_redundant_packets() {
        let params = FecParams {
            block: 6,
            repair: 2,
            packet_ns: MS,
            in_order: false,
        };
        // Packets 1 ms apart: of the first block those at 1 and 2 ms are lost, of the second three.
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

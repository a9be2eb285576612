//! Other senders next to the first one of a run, behind which a proxy splits the connection. While one would send the same
//! segments at the same times, all else is the same run; its run is then known without making it.
//!
//! Does not depend on what a sender is made of.

use std::mem::swap;
use std::sync::atomic::AtomicBool;

use super::{Node, RunError, World};
use crate::app::sink::Sink;
use crate::app::source::Source;
use crate::config::Config;
use crate::sim::assembly::build;
use crate::sim::node::{Endpoint, Sent};
use crate::sim::packet_pool::PacketHandle;
use crate::sim::summary::{FlowSummary, RunSummary};
use crate::sim::time::Nanos;
use crate::sim::trace::Tap;
use crate::tcp::segment::{Direction, Segment};

/// Number of the node that sends the data of the first flow.
const FIRST: usize = 0;

/// Those that have sent the same so far.
#[derive(Default)]
pub struct Followers {
    /// When the first sender needs to be called, as it was after its last visit.
    due: Nanos,
    all: Vec<Follower>,
}

/// Another sender.
struct Follower {
    /// Number among the configurations that were given.
    number: usize,
    source: Box<Source>,
    due: Nanos,
    /// It takes part in this visit, and may have more to send in it.
    asked: bool,
    slot: Segment,
    /// Its receiver would report no SACK blocks.
    without_sack: bool,
    /// Numbers of the flow when it came to its end.
    closed: Option<FlowSummary>,
}

impl Followers {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// When any of them, or the first sender, needs to be called.
    fn next_deadline(&self) -> Nanos {
        let due = self.all.iter().map(|follower| follower.due);
        due.fold(self.due, Nanos::min)
    }

    /// Data may have arrived at the other end.
    pub fn note_arrived(&mut self, sink: &Sink, now: Nanos) {
        for follower in &mut self.all {
            follower.source.note_arrived(sink, now);
        }
    }

    pub fn settle(&mut self, end: Nanos) {
        for follower in &mut self.all {
            follower.source.settle(end);
        }
    }
}

/// The first sender with its followers, during a visit.
struct Followed<'a> {
    source: &'a mut Source,
    asked: bool,
    followers: &'a mut Followers,
}

impl Endpoint for Followed<'_> {
    fn receive(&mut self, segment: &Segment, now: Nanos) {
        self.asked = true;
        self.source.receive(segment, now);
        // The receiver is that of the first sender: what it would not report to a follower ends the likeness.
        let reports = segment.sack_len > 0;
        (self.followers.all).retain(|follower| !(reports && follower.without_sack));
        for follower in &mut self.followers.all {
            follower.asked = true;
            follower.source.receive(segment, now);
        }
    }

    fn next_deadline(&self) -> Nanos {
        self.followers.next_deadline()
    }

    /// Each is called at its own deadline, as it would be in its own run.
    fn on_deadline(&mut self, now: Nanos) {
        self.asked = self.followers.due <= now;
        if self.asked {
            self.source.on_deadline(now);
        }
        for follower in &mut self.followers.all {
            follower.asked = follower.due <= now;
            if follower.asked {
                follower.source.on_deadline(now);
            }
        }
    }

    fn transmit(&mut self, now: Nanos, slot: &mut Segment) -> Sent {
        let sent = if self.asked {
            self.source.transmit(now, slot)
        } else {
            Sent::Nothing
        };
        (self.followers.all).retain_mut(|follower| follower.sends_alike((sent, slot), now));
        sent
    }
}

impl Follower {
    /// Whether it sends the same as the first sender does.
    fn sends_alike(&mut self, (sent, segment): (Sent, &Segment), now: Nanos) -> bool {
        let own = self.transmit(now);
        if sent == Sent::Nothing || own == Sent::Nothing {
            return sent == own;
        }
        // The first sender is not asked again if it said so; a follower that did not is, and must have nothing.
        alike(&self.slot, segment) && (sent != Sent::Last || self.transmit(now) == Sent::Nothing)
    }

    /// What it sends, unless it has said that there is nothing more.
    fn transmit(&mut self, now: Nanos) -> Sent {
        if !self.asked {
            return Sent::Nothing;
        }
        let own = self.source.transmit(now, &mut self.slot);
        self.asked = own == Sent::One;
        own
    }

    /// Whether the visit leaves it where it leaves the first sender, seen from outside; `stopped` is the end of that one's
    /// stream, if it has just stopped.
    fn stays_alike(&mut self, first: &Source, stopped: Option<u64>) -> bool {
        let (own, first) = (self.source.sender(), first.sender());
        own.has_ended() == first.has_ended()
            && own.reset_at() == first.reset_at()
            && self.source.take_stop() == stopped
    }
}

/// Whether two segments are the same to all who see them.
fn alike(one: &Segment, other: &Segment) -> bool {
    let sack = one.sack;
    let blocks = |segment: &Segment| usize::from(segment.sack_len);
    // Blocks beyond the length mean nothing.
    one.sack[..blocks(one)] == other.sack[..blocks(other)] && *one == Segment { sack, ..*other }
}

impl<T: Tap> World<'_, T> {
    /// Lets the first senders of `others` follow that of the run.
    fn follow(&mut self, others: &[&Config], seed: u64) -> Result<(), RunError> {
        let Some(Node::Source(first)) = self.nodes.first() else {
            return Ok(());
        };
        self.followers.due = first.next_deadline();
        for (number, other) in others.iter().enumerate() {
            let parts = build(other, seed)?;
            let params = parts.legs[0].params;
            if let Some(Node::Source(source)) = parts.nodes.into_iter().next() {
                self.followers.all.push(Follower {
                    number,
                    due: source.next_deadline(),
                    source,
                    asked: false,
                    slot: Segment::new(0, Direction::Forward),
                    without_sack: !params.sack_enabled() && self.legs[0].params.sack_enabled(),
                    closed: None,
                });
            }
        }
        Ok(())
    }

    /// Visits the first sender and its followers. Returns the flow if it has come to its end.
    #[inline(never)]
    pub(super) fn visit_followed(
        &mut self,
        came: Option<PacketHandle>,
        now: Nanos,
    ) -> Option<usize> {
        let Node::Source(source) = &mut self.nodes[FIRST] else {
            return None;
        };
        let mut followed = Followed {
            source,
            asked: false,
            followers: &mut self.followers,
        };
        self.network.serve(&mut followed, came, now);
        let stopped = source.take_stop();
        (self.followers.all).retain_mut(|follower| follower.stays_alike(source, stopped));
        self.followers.due = source.next_deadline();
        for follower in &mut self.followers.all {
            follower.due = follower.source.next_deadline();
        }
        self.network.call(FIRST, self.followers.next_deadline());
        stopped.and_then(|end| self.end_stream(FIRST, end, now))
    }

    /// The first flow has come to its end: so have those of the followers.
    pub(super) fn close_books_of_followers(&mut self) {
        for at in 0..self.followers.all.len() {
            self.exchange_first(at);
            self.followers.all[at].closed = Some(self.books().flow(0));
            self.exchange_first(at);
        }
    }

    /// The first sender and a follower change places.
    fn exchange_first(&mut self, at: usize) {
        if let Node::Source(first) = &mut self.nodes[FIRST] {
            swap(first, &mut self.followers.all[at].source);
        }
    }

    /// Of each of `count` other configurations: what its run came to, if its sender followed to the end.
    fn followed(&mut self, count: usize) -> Vec<Option<RunSummary>> {
        let mut summaries = vec![None; count];
        for at in 0..self.followers.all.len() {
            self.exchange_first(at);
            let mut closed = self.closed.clone();
            closed[0] = self.followers.all[at].closed.take();
            let summary = self.books().summarise(&closed, self.network.links());
            self.exchange_first(at);
            summaries[self.followers.all[at].number] = Some(summary);
        }
        summaries
    }
}

/// Runs `config` with `seed`. Returns what came of it, and of each of `others` with the same seed where that is known
/// without a run of its own; they must be such that [`Config::differs_in_first_sender`].
///
/// # Errors
/// As [`World::new`] and [`World::run`].
pub fn run_alike(
    config: &Config,
    others: &[&Config],
    seed: u64,
    interrupt: &AtomicBool,
) -> Result<(RunSummary, Vec<Option<RunSummary>>), RunError> {
    let mut tap = ();
    let mut world = World::new(config, seed, &mut tap)?;
    world.follow(others, seed)?;
    let summary = world.run(interrupt)?;
    let followed = world.followed(others.len());
    Ok((summary, followed))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::config::ProxyKind;
    use crate::sim::invariants::scenarios::scenario;
    use crate::sim::world::run;

    const VARIANTS: [&str; 6] = ["linux-reno", "sack", "newreno", "cubic", "westwood", "bbr"];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn a_run_that_is_known_is_the_one_that_would_be_made(
            config in scenario(true), names in select(&VARIANTS[..]).prop_flat_map(
                |first| (Just(first), select(&VARIANTS[..]))
            ), short in any::<bool>(), seed in 0..1000_u64,
        ) {
            let [config, other] = [names.0, names.1].map(|name| with_variant(&config, name, short));
            if !config.differs_in_first_sender(&other) || other.validate().is_err() {
                return Ok(());
            }
            let never = AtomicBool::new(false);
            if let Ok((summary, known)) = run_alike(&config, &[&other], seed, &never) {
                prop_assert_eq!(&summary, &run(&config, seed).expect("valid"));
                if let [Some(known)] = &known[..] {
                    prop_assert_eq!(known, &run(&other, seed).expect("valid"));
                }
            }
        }
    }

    /// The same with another variant of the first flow, whose proxies have their own; `short`: its first link loses nothing.
    fn with_variant(config: &Config, variant: &str, short: bool) -> Config {
        let mut config = config.clone();
        let flow = &mut config.flows[0];
        flow.variant = variant.to_owned();
        flow.params.clear();
        for proxy in &mut flow.proxies {
            if proxy.kind == ProxyKind::Split && proxy.variant.is_none() {
                proxy.variant = Some("cubic".to_owned());
            }
        }
        if short {
            let first = &mut config.path.links[0].forward;
            (first.rate_bps, first.delay_ns) = (None, 100_000);
            (first.loss, first.queue) = Default::default();
        }
        config
    }
}

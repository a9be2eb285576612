//! From a configuration and a seed to the parts of a run: links with their random streams, nodes, legs.
//!
//! Does not depend on how a run proceeds. Random streams are keyed by link, direction and purpose, never by variant or
//! proxy: every variant of a comparison meets the same channel.

use std::collections::BTreeMap;
use std::sync::Arc;

use hindflight_kernels::{Purpose, StreamKey, StreamRng};

use super::node::Node;
use super::shared::{ack_filters, gates, pools};
use super::stops::{Stop, stops};
use super::time::{Nanos, SECOND};
use crate::app::sink::Sink;
use crate::app::source::Source;
use crate::app::{Application, Client};
use crate::cc::{Controller, Sharers};
use crate::config::{
    AdvertisePolicy, Config, ConfigErrors, DatagramConfig, DirectionConfig, FlowConfig,
    HandoverRule, Profile, ProxyConfig, ProxyKind, StackOverrides, StackParams, Tree,
};
use crate::net::cross_traffic::DatagramSource;
use crate::net::handover_forecast::{HandoverForecast, PathChange};
use crate::net::jitter::Jitter;
use crate::net::link::LinkDirection;
use crate::proxy::{
    Admission, AgentNode, Cache, Gate, Part, Pool, Proxy, Relay, Share, min_promise,
};
use crate::tcp::receiver::{Forecast, Receiver, Space};
use crate::tcp::segment::Direction;
use crate::tcp::sender::Sender;

/// What a leg carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP connection; data go forward.
    Tcp,
    /// Datagrams, in either direction.
    Datagrams,
}

/// One TCP connection of the path: the whole flow, or the part of it between two split proxies. Or a stream of
/// datagrams: then `source` is the node from which the first link leads forward, whichever end sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leg {
    /// What it carries.
    pub transport: Transport,
    /// Number of its flow; the streams of datagrams are numbered behind the flows.
    pub flow: usize,
    /// 0 for the leg that leaves the data sender, 1 behind the first proxy, …
    pub index: u8,
    /// Nodes (of the run) that send and receive its data.
    pub source: usize,
    /// See `source`.
    pub sink: usize,
    /// Places where they sit, by the nodes of the configuration.
    pub source_site: usize,
    /// See `source_site`.
    pub sink_site: usize,
    /// Number of places between them.
    pub routers: u8,
    /// Parameters of both its ends.
    pub params: StackParams,
    /// Differentiated services code point of all its packets.
    pub dscp: u8,
    /// Window scale that its receiver announces.
    pub wscale: u8,
    /// Initial sequence numbers of its two ends, for the wire.
    pub isn: [u32; 2],
}

/// The parts of a run.
pub struct Parts {
    /// Link directions: `2 i` forward, `2 i + 1` reverse.
    pub links: Vec<LinkDirection>,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Legs; a segment names its leg by the index here.
    pub legs: Vec<Leg>,
    /// Of each leg: the link directions from its source to its sink.
    pub ways: Vec<Vec<usize>>,
    /// By the sites of a leg's ends: connections that share a window there, where they do.
    sharers: BTreeMap<(usize, usize), Sharers>,
}

/// What all flows of a run have in common.
struct Net<'a> {
    config: &'a Config,
    tree: Tree,
    /// Memory that proxies share, by its name.
    pools: BTreeMap<&'a str, Arc<Pool>>,
    /// Limits of proxies, by their names.
    gates: BTreeMap<&'a str, Arc<Gate>>,
    seed: u64,
}

impl Net<'_> {
    /// The part of shared memory that is there for connections of `params` that end at `proxy`, if it has one.
    fn share(&self, proxy: &ProxyConfig, cache: Cache, params: &StackParams) -> Option<Share> {
        let pool = self.pools.get(proxy.pool.as_deref()?)?;
        let min_bytes = min_promise(params.smss_bytes.into(), cache.receive_bytes());
        Some(Share::new(Arc::clone(pool), min_bytes))
    }

    /// What limits the connections through `proxy`, if anything does.
    fn admission(&self, proxy: &ProxyConfig) -> Option<Admission> {
        let gate = proxy.limit.as_ref().and_then(|limit| {
            let gate = self.gates.get(limit.name.as_str())?;
            Some((Arc::clone(gate), limit.beyond))
        });
        let timeouts = [proxy.idle_timeout_ns, proxy.pending_timeout_ns];
        let limits = gate.is_some() || timeouts.iter().any(Option::is_some);
        limits.then(|| Admission::new(gate, timeouts))
    }

    /// What such a connection may promise before its first segment: what its [`Share`] has reserved by then.
    fn first_part(&self, proxy: &ProxyConfig, cache: Cache, params: &StackParams) -> Option<Part> {
        let pool = self.pools.get(proxy.pool.as_deref()?)?;
        let min_bytes = min_promise(params.smss_bytes.into(), cache.receive_bytes());
        Some(pool.first_part(min_bytes, params.handshake))
    }
}

/// Builds the parts.
///
/// # Errors
/// As [`Config::validate`].
pub fn build(config: &Config, seed: u64) -> Result<Parts, ConfigErrors> {
    config.validate()?;
    let tree = config.path.tree()?;
    let mut parts = Parts {
        links: links(config, &tree, seed),
        nodes: Vec::new(),
        legs: Vec::new(),
        ways: Vec::new(),
        sharers: BTreeMap::new(),
    };
    let net = Net {
        config,
        tree,
        pools: pools(config),
        gates: gates(config),
        seed,
    };
    for (number, flow) in config.flows.iter().enumerate() {
        add_flow(&mut parts, &net, number, flow)?;
    }
    for (number, datagrams) in config.datagrams.iter().enumerate() {
        add_datagrams(&mut parts, &net, config.flows.len() + number, datagrams)?;
    }
    Ok(parts)
}

fn links(config: &Config, tree: &Tree, seed: u64) -> Vec<LinkDirection> {
    let filters = ack_filters(config, tree);
    let direction = |number: usize, direction: u8, config: &DirectionConfig| {
        let key = StreamKey {
            seed,
            owner: number as u32,
            direction,
            purpose: Purpose::Loss,
        };
        let queue = StreamRng::new(key.with(Purpose::Queue));
        let delay = StreamRng::new(key.with(Purpose::Delay));
        let jitter = config.jitter.clone().map(|law| Jitter::new(law, delay));
        LinkDirection::new(config, config.loss.process(key), queue).with_jitter(jitter)
    };
    let mut links = Vec::new();
    for (number, link) in config.path.links.iter().enumerate() {
        for (way, config) in [(0, &link.forward), (1, &link.reverse)] {
            links.push(match filters.get(&(2 * number + usize::from(way))) {
                Some(legs) => direction(number, way, &config.filtering(legs)),
                None => direction(number, way, config),
            });
        }
    }
    links
}

fn add_flow(
    parts: &mut Parts,
    net: &Net<'_>,
    number: usize,
    flow: &FlowConfig,
) -> Result<(), ConfigErrors> {
    let key = StreamKey::new(net.seed, number as u32, Purpose::SequenceNumber);
    let plan = Plan {
        net,
        number,
        flow,
        key,
        stops: stops(net.config, flow)?,
    };
    let first_node = parts.nodes.len();
    let mut ends = Vec::new();
    for (first, last) in plan.connections() {
        plan.add_connection(parts, first_node, (first, last), &mut ends);
    }
    plan.add_nodes(&mut parts.nodes, ends);
    Ok(())
}

fn add_datagrams(
    parts: &mut Parts,
    net: &Net<'_>,
    number: usize,
    datagrams: &DatagramConfig,
) -> Result<(), ConfigErrors> {
    let key = StreamKey::new(net.seed, number as u32, Purpose::Application);
    let (from, to) = net.config.path.ends(
        "datagrams",
        datagrams.from.as_deref(),
        datagrams.to.as_deref(),
    )?;
    let leg = parts.legs.len() as u16;
    let node = parts.nodes.len();
    let mut way = net.tree.way(from, to);
    let forward = way.first().is_none_or(|first| first % 2 == 0);
    let (mut source_site, mut sink_site) = (from, to);
    if !forward {
        (source_site, sink_site) = (to, from);
        way = net.tree.way(to, from);
    }
    let direction = if forward {
        Direction::Forward
    } else {
        Direction::Reverse
    };
    let source = DatagramSource::new(leg, direction, datagrams, StreamRng::new(key));
    let mut ends = [
        Node::DatagramSource(Box::new(source)),
        Node::DatagramSink(Box::default()),
    ];
    if !forward {
        ends.reverse();
    }
    parts.nodes.extend(ends);
    parts.legs.push(Leg {
        transport: Transport::Datagrams,
        flow: number,
        index: 0,
        source: node,
        sink: node + 1,
        source_site,
        sink_site,
        routers: way.len() as u8 - 1,
        params: StackParams::resolve(Profile::default(), &StackOverrides::default()),
        dscp: datagrams.dscp,
        wscale: 0,
        isn: [0, 0],
    });
    parts.ways.push(way);
    Ok(())
}

/// What the connections of one flow are made from.
struct Plan<'a> {
    net: &'a Net<'a>,
    number: usize,
    flow: &'a FlowConfig,
    key: StreamKey,
    stops: Vec<Stop<'a>>,
}

/// A leg of a flow while it is being built: its number, and the ends of a connection that are there.
struct Ends {
    leg: u16,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
}

impl Plan<'_> {
    /// The stops where each connection begins and ends.
    fn connections(&self) -> Vec<(usize, usize)> {
        let ends = (0..self.stops.len()).filter(|&i| !self.stops[i].is_agent());
        let ends: Vec<usize> = ends.collect();
        ends.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    /// Adds the legs of the connection between two stops, one for each agent on its way and one more.
    fn add_connection(
        &self,
        parts: &mut Parts,
        first_node: usize,
        (first, last): (usize, usize),
        ends: &mut Vec<Ends>,
    ) {
        let mut isn = StreamRng::new(self.key);
        // One pair of numbers for each connection before it.
        let before = self.stops[..first].iter().filter(|stop| !stop.is_agent());
        for _ in 0..2 * before.count() {
            isn.next_u64();
        }
        let isn = [isn.next_u64() as u32, isn.next_u64() as u32];
        let legs = parts.legs.len() as u16;
        let receiver = self.receiver((first, last), legs + (last - first - 1) as u16);
        let sites = (self.stops[first].site, self.stops[last].site);
        let sharers = parts.sharers.entry(sites).or_default();
        let sender = self
            .sender((first, last), legs, sharers)
            .with_clock_phase(u64::from(isn[0]));
        let wscale = receiver.wscale();
        let (mut sender, mut receiver) = (Some(sender), Some(receiver));
        for i in first..last {
            let (source_site, sink_site) = (self.stops[i].site, self.stops[i + 1].site);
            let way = self.net.tree.way(source_site, sink_site);
            ends.push(Ends {
                leg: parts.legs.len() as u16,
                sender: sender.take(),
                receiver: if i + 1 == last { receiver.take() } else { None },
            });
            parts.legs.push(Leg {
                transport: Transport::Tcp,
                flow: self.number,
                index: i as u8,
                source: first_node + i,
                sink: first_node + i + 1,
                source_site,
                sink_site,
                routers: way.len() as u8 - 1,
                params: self.stops[i].params,
                dscp: self.flow.dscp,
                wscale,
                isn,
            });
            parts.ways.push(way);
        }
    }

    /// The end that takes the data of the connection between two stops, on its last `leg`.
    fn receiver(&self, (first, last): (usize, usize), leg: u16) -> Receiver {
        let params = self.stops[first].params;
        let forecast = params
            .freeze_warning_ns
            .map(|warning| Forecast::new(&self.forecast(first, last).outages, warning));
        let stop = &self.stops[last];
        let proxy = stop.proxy.as_ref();
        let first_part =
            proxy.and_then(|(config, cache)| self.net.first_part(config, *cache, &params));
        Receiver::new(leg, &params, space(stop, &params, first_part)).warning_of(forecast)
    }

    /// The end that sends the data of the connection between two stops, on its first `leg`.
    fn sender(&self, (i, last): (usize, usize), leg: u16, sharers: &Sharers) -> Sender {
        let stop = &self.stops[i];
        let params = stop.params;
        let draws = StreamKey {
            direction: i as u8,
            purpose: Purpose::Controller,
            ..self.key
        };
        let mut controller = stop.controller(&self.net.config.externals, StreamRng::new(draws));
        if let Controller::Windowed(windowed) = &mut controller {
            windowed.share_with(sharers);
        }
        let sender = Sender::new(leg, &params, controller);
        if !params.reads_schedule() {
            return sender;
        }
        let forecast = self.forecast(i, last);
        let announced: &[PathChange] = match params.handover_adaptation {
            HandoverRule::Off => &[],
            HandoverRule::SlowStart | HandoverRule::Jump => &forecast.states,
        };
        // A router that knows no rate has nothing to limit.
        let rate_bps = forecast.rate_at(self.flow.start_ns);
        sender
            .with_handover_forecast(announced)
            .granted(Some(rate_bps.unwrap_or(f64::INFINITY)))
    }

    /// What the schedule says of the path of the connection between two stops.
    fn forecast(&self, first: usize, last: usize) -> HandoverForecast {
        self.forecast_between(self.stops[first].site, self.stops[last].site)
    }

    /// When the outages of the links of the flow end, as far as they do.
    fn ends_of_outages(&self) -> Vec<Nanos> {
        let (Some(first), Some(last)) = (self.stops.first(), self.stops.last()) else {
            return Vec::new();
        };
        let forecast = self.forecast_between(first.site, last.site);
        let ends = forecast.outages.into_iter().map(|(_, end)| end);
        ends.filter(|&end| end < Nanos::MAX).collect()
    }

    fn forecast_between(&self, from: usize, to: usize) -> HandoverForecast {
        let direction = |number: usize| self.net.config.path.direction(number);
        let way = self.net.tree.way(from, to);
        let there: Vec<_> = way.iter().map(|&number| direction(number)).collect();
        let back: Vec<_> = way.iter().map(|&number| direction(number ^ 1)).collect();
        HandoverForecast::of(&there, &back)
    }

    /// Whether a proxy of the flow damages what it stores.
    fn notes_damage(&self) -> bool {
        self.flow.proxies.iter().any(ProxyConfig::damages)
    }

    /// Adds the flow's source, its proxies and its sink, of the `ends` on each leg.
    fn add_nodes(&self, nodes: &mut Vec<Node>, mut ends: Vec<Ends>) {
        let window_after = |ends: &[Ends], i: usize| {
            let next = ends.iter().skip(i).position(|end| end.receiver.is_some());
            let window = next.and_then(|next| ends[i + next].receiver.as_ref());
            let agents = self.stops.iter().skip(i + 1).take(next.unwrap_or(0));
            let memory = agents.filter_map(|stop| stop.proxy).filter_map(promise);
            memory.fold(window.map_or(0, Receiver::window), u64::min)
        };
        let first_window = window_after(&ends, 0);
        if let Some(sender) = ends.first_mut().and_then(|ends| ends.sender.take()) {
            let stack = StackParams::resolve(self.flow.profile, &self.flow.stack);
            let application = Application::new(self.flow, &stack, self.key);
            let source = Source::new(sender, application, self.flow.start_ns, first_window);
            nodes.push(Node::Source(Box::new(source)));
        }
        for i in 0..ends.len() {
            let (before, stop) = (&self.stops[i], &self.stops[i + 1]);
            let window = window_after(&ends, i + 1);
            let legs = [ends[i].leg, ends.get(i + 1).map_or(0, |onward| onward.leg)];
            let sender = ends.get_mut(i + 1).and_then(|onward| onward.sender.take());
            nodes.push(match (ends[i].receiver.take(), stop.proxy, sender) {
                (Some(receiver), Some((config, cache)), Some(sender)) => {
                    let sockets = (config.advertise == AdvertisePolicy::Sockets)
                        .then(|| Relay::new(&before.params, &stop.params, config));
                    let (memory, opening) = ((cache, sockets), (window, self.flow.start_ns));
                    let proxy = Proxy::new(receiver, sender, config, memory, opening);
                    let share = self.net.share(config, cache, &before.params);
                    let admission = self.net.admission(config);
                    let proxy = proxy.sharing(share).limited(admission);
                    Node::Proxy(Box::new(proxy.noting_damage(self.notes_damage())))
                }
                (Some(receiver), _, _) => self.sink(receiver),
                (None, Some((config, _)), _) => {
                    Node::Agent(Box::new(AgentNode::new(config, legs, &stop.params, window)))
                }
                (None, None, _) => continue,
            });
        }
    }

    fn sink(&self, receiver: Receiver) -> Node {
        let client = Client::new(self.flow, self.key);
        let (start, outages) = (self.flow.start_ns, self.ends_of_outages());
        let sink = Sink::new(receiver, client, start, outages);
        Node::Sink(Box::new(sink.noting_damage(self.notes_damage())))
    }
}

/// Where what arrives at `stop` goes; `first_part` is what a connection may promise of shared memory there.
fn space(stop: &Stop<'_>, params: &StackParams, first_part: Option<Part>) -> Space {
    match stop.proxy {
        Some((config, _)) if config.advertise == AdvertisePolicy::Sockets => Space::Process {
            buffer_bytes: params.receive_buffer_bytes,
            read_to: 1,
        },
        Some((_, cache)) => Space::Granted {
            window_bytes: first_part.map_or_else(
                || cache.window_bytes(0),
                |part| cache.window_of(part, false),
            ),
            buffer_bytes: cache.receive_bytes(),
        },
        None => application_space(params),
    }
}

/// Where what arrives at the end of a flow goes.
pub fn application_space(params: &StackParams) -> Space {
    Space::Application {
        buffer_bytes: params.receive_buffer_bytes,
        octets_per_ns: params.read_rate_bps.map(|bps| bps / 8.0 / SECOND as f64),
    }
}

/// The most that the agent of `config` lets a sender have unacknowledged.
fn promise((config, memory): (&ProxyConfig, Cache)) -> Option<u64> {
    (config.kind == ProxyKind::Spoofing).then(|| memory.receive_bytes())
}

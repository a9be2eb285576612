//! Random scenarios for the invariants: paths, queues, losses, flows with every kind of application, datagrams.
//!
//! Does not depend on what is checked.

use proptest::prelude::*;

use crate::cc::ParamValues;
use crate::cc::catalogue::VARIANTS;
use crate::cc::tests::random_params::drawn;
use crate::config::{
    AcknowledgePolicy, AdvertisePolicy, ApplicationConfig, BufferSize, BurstConfig, CodelConfig,
    Config, DatagramConfig, DirectionConfig, DropTailConfig, DrrConfig, FlowConfig, ForwardWindow,
    HandoverRule, HandshakePolicy, JitterConfig, LegStack, LinkConfig, LossConfig, LossScope,
    NagleRule, PathConfig, PieConfig, PriorityConfig, Profile, ProxyConfig, ProxyKind, QueueConfig,
    RedConfig, Spread, StackOverrides,
};
use crate::sim::time::{MILLISECOND, SECOND};

fn loss() -> impl Strategy<Value = LossConfig> {
    prop_oneof![
        Just(LossConfig::None),
        (0.0..0.08).prop_map(|per| LossConfig::Bernoulli { per }),
        (0.0..5e-6).prop_map(|ber| LossConfig::Ber { ber }),
        (0.0..0.01, 0.1..1.0).prop_map(|(p, r)| LossConfig::GilbertElliott {
            p,
            r,
            h: 0.0,
            k: 1.0
        }),
    ]
}

fn direction() -> impl Strategy<Value = DirectionConfig> {
    let rate = prop_oneof![Just(None), (1e5..2e7).prop_map(Some)];
    let spread = prop_oneof![4 => Just(None), 1 => (1..30_u64).prop_map(Some)];
    let delay = (1..200_u64, spread, any::<bool>());
    (rate, delay, queue(), loss(), any::<bool>()).prop_map(
        |(rate_bps, (delay_ms, spread_ms, in_order), queue, loss, all)| DirectionConfig {
            rate_bps,
            rate_trace: None,
            delay_ns: delay_ms * MILLISECOND,
            queue: if rate_bps.is_some() {
                queue
            } else {
                QueueConfig::default()
            },
            loss,
            loss_applies_to: if all { LossScope::All } else { LossScope::Data },
            jitter: spread_ms.map(|ms| JitterConfig::Exponential {
                spread_ns: ms * MILLISECOND,
            }),
            in_order,
            schedule: Vec::new(),
        },
    )
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let limit = 1..80_u32;
    let bytes = (3000..120_000_u64).prop_map(|limit_bytes| {
        QueueConfig::DropTail(DropTailConfig {
            limit_pkts: None,
            limit_bytes: Some(limit_bytes),
        })
    });
    let red =
        (limit.clone(), 0.0..10.0, any::<bool>()).prop_map(|(limit_pkts, min_pkts, gentle)| {
            QueueConfig::Red(RedConfig {
                limit_pkts,
                min_pkts,
                max_pkts: 3.0 * min_pkts + 1.0,
                gentle,
                weight: 0.02,
                ..RedConfig::default()
            })
        });
    let pie = (limit.clone(), 1..100_u64).prop_map(|(limit_pkts, target_ms)| {
        QueueConfig::Pie(PieConfig {
            limit_pkts,
            target_ns: target_ms * MILLISECOND,
            ..PieConfig::default()
        })
    });
    let codel = (limit.clone(), 1..100_u64).prop_map(|(limit_pkts, target_ms)| {
        QueueConfig::Codel(CodelConfig {
            limit_pkts,
            target_ns: target_ms * MILLISECOND,
            ..CodelConfig::default()
        })
    });
    let priority = limit.clone().prop_map(|limit_pkts| {
        QueueConfig::Priority(PriorityConfig {
            limit_pkts,
            ..PriorityConfig::default()
        })
    });
    let drr = (limit.clone(), 100..3000_u32).prop_map(|(limit_pkts, quantum_bytes)| {
        QueueConfig::Drr(DrrConfig {
            quantum_bytes,
            limit_pkts,
        })
    });
    prop_oneof![
        2 => limit.prop_map(QueueConfig::packets),
        1 => bytes,
        1 => red,
        1 => pie,
        1 => codel,
        1 => priority,
        1 => drr,
    ]
}

/// Delayed ACKs after slow start, milliseconds of a freeze warning, reaction to handovers, rate of Quick-Start.
fn mechanisms() -> impl Strategy<Value = (Option<bool>, Option<u64>, HandoverRule, Option<f64>)> {
    let rules = vec![
        HandoverRule::Off,
        HandoverRule::SlowStart,
        HandoverRule::Jump,
    ];
    (
        proptest::option::weighted(0.2, Just(true)),
        proptest::option::weighted(0.2, 1..2000_u64),
        proptest::sample::select(rules),
        proptest::option::weighted(0.2, 8e4..1e7),
    )
}

fn stack() -> impl Strategy<Value = StackOverrides> {
    let read = prop_oneof![3 => Just(None), 1 => (5e4..5e6).prop_map(Some)];
    let base = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        1..20_u32,
        2..200_u64,
        read,
        proptest::sample::select(vec![NagleRule::Off, NagleRule::Rfc, NagleRule::Minshall]),
    )
        .prop_map(
            |(handshake, timestamps, delayed_ack, window, buffer, read_rate_bps, nagle)| {
                StackOverrides {
                    handshake: Some(handshake),
                    timestamps: Some(timestamps),
                    delayed_ack: Some(delayed_ack),
                    initial_window_pkts: Some(window),
                    receive_buffer_bytes: Some(buffer * 1500),
                    read_rate_bps,
                    nagle: Some(nagle),
                    // A bad state of 15 packets loses every retransmission: no sender may give up before its end.
                    retry_limit: Some(255),
                    syn_retry_limit: Some(127),
                    ..StackOverrides::default()
                }
            },
        );
    (base, any::<bool>(), any::<bool>(), mechanisms()).prop_map(
        |(base, ecn, fast_open, mechanisms)| {
            let (asks, delays) = (base.handshake == Some(true), base.delayed_ack == Some(true));
            StackOverrides {
                ecn: Some(ecn),
                fast_open: Some(fast_open && asks),
                delayed_ack_after_slow_start: mechanisms.0.filter(|_| delays),
                freeze_warning_ns: mechanisms.1.map(|ms| ms * MILLISECOND),
                handover_adaptation: Some(mechanisms.2),
                quick_start_bps: mechanisms.3.filter(|_| asks),
                ..base
            }
        },
    )
}

/// Size and application of a flow, endless or not.
fn application(endless: bool) -> BoxedStrategy<(Option<u64>, ApplicationConfig)> {
    let spread =
        || proptest::sample::select(vec![Spread::Fixed, Spread::Exponential, Spread::Pareto]);
    let pages = (1..60_000_u64, 0..5000_u64, spread(), 1..1400_u16, 1..6_u64).prop_map(
        move |(page_bytes, think_ms, spread, request_bytes, pages)| ApplicationConfig::Pages {
            page_bytes,
            think_ns: think_ms * MILLISECOND,
            spread,
            request_bytes,
            pages: (!endless).then_some(pages),
        },
    );
    if endless {
        let on_off = (1e4..2e6, 1..3000_u64, 0..3000_u64, spread()).prop_map(
            |(rate_bps, on_ms, off_ms, spread)| ApplicationConfig::OnOff {
                rate_bps,
                on_ns: on_ms * MILLISECOND,
                off_ns: off_ms * MILLISECOND,
                spread,
                write_bytes: None,
            },
        );
        let stream =
            (1e4..2e6, 0..2000_u64, 0..2000_u64).prop_map(|(rate_bps, startup_ms, resume_ms)| {
                ApplicationConfig::Stream {
                    rate_bps,
                    write_every_ns: 40 * MILLISECOND,
                    startup_ns: startup_ms * MILLISECOND,
                    resume_ns: resume_ms * MILLISECOND,
                }
            });
        let greedy = Just(ApplicationConfig::default());
        let bursts = (0..500_u64, 1..1000_u64, 0..1000_u64).prop_map(|(first, on, off)| {
            let from_ns = (0..4).map(|i| (first + i * (on + off)) * MILLISECOND);
            ApplicationConfig::Bursts {
                from_ns: from_ns.clone().collect(),
                until_ns: from_ns.map(|from| from + on * MILLISECOND).collect(),
            }
        });
        prop_oneof![pages, on_off, stream, greedy, bursts]
            .prop_map(|kind| (None, kind))
            .boxed()
    } else {
        let writes = proptest::option::of(1..70_000_u32);
        let greedy = (1..300_000_u64, writes, 0..3_u64).prop_map(|(size, write_bytes, tenths)| {
            let first_write_ns = tenths * 100 * MILLISECOND;
            let greedy = ApplicationConfig::Greedy {
                write_bytes,
                first_write_ns,
                first_left_pkts: None,
            };
            (Some(size), greedy)
        });
        let writes = proptest::collection::vec((0..3000_u64, 1..20_000_u32), 1..20).prop_map(
            |mut writes| {
                writes.sort_unstable();
                let (at_ms, bytes): (Vec<_>, Vec<_>) = writes.into_iter().unzip();
                ApplicationConfig::Writes {
                    at_ns: at_ms.iter().map(|at| at * MILLISECOND).collect(),
                    bytes,
                }
            },
        );
        prop_oneof![3 => greedy, 1 => pages.prop_map(|kind| (None, kind)), 1 => writes.prop_map(|kind| (None, kind))]
            .boxed()
    }
}

/// A variant with values of its parameters.
fn variant(profile: Profile) -> impl Strategy<Value = (String, ParamValues)> {
    proptest::sample::select(VARIANTS)
        .prop_flat_map(move |known| (Just(known.info().name.into()), drawn(known, profile)))
}

fn buffer_size() -> impl Strategy<Value = BufferSize> {
    let pkts = prop_oneof![1 => 1..4_u32, 2 => 4..60_u32];
    prop_oneof![
        3 => pkts.prop_map(BufferSize::Pkts),
        1 => (1460..90_000_u64).prop_map(BufferSize::Bytes),
    ]
}

/// The policies of a proxy at `node`.
fn policies(node: String) -> impl Strategy<Value = ProxyConfig> {
    let advertise = proptest::sample::select(vec![
        AdvertisePolicy::HalfFree,
        AdvertisePolicy::Free,
        AdvertisePolicy::Third,
        AdvertisePolicy::Sockets,
    ]);
    let acknowledge = proptest::sample::select(vec![
        AcknowledgePolicy::OnReceipt,
        AcknowledgePolicy::AfterForwarding,
        AcknowledgePolicy::OnDelivery,
    ]);
    let forward_window =
        proptest::sample::select(vec![ForwardWindow::Unlimited, ForwardWindow::Third]);
    let buffers = (buffer_size(), proptest::option::of(buffer_size()));
    (buffers, advertise, acknowledge, forward_window).prop_map(
        move |((receive_buffer, send_buffer), advertise, acknowledge, forward_window)| {
            // Sockets have the buffers of the stacks.
            let own = advertise != AdvertisePolicy::Sockets;
            let forward_window = if own {
                forward_window
            } else {
                ForwardWindow::Unlimited
            };
            ProxyConfig {
                node: node.clone(),
                kind: ProxyKind::Split,
                variant: None,
                params: ParamValues::new(),
                stack: None,
                receive_buffer: own.then_some(receive_buffer),
                send_buffer: send_buffer.filter(|_| own),
                pool: None,
                acknowledge,
                advertise,
                forward_window,
                first_read_ns: 0,
                first_left_pkts: None,
                handshake: HandshakePolicy::Accept,
                limit: None,
                idle_timeout_ns: None,
                pending_timeout_ns: None,
                faults: Vec::new(),
            }
        },
    )
}

/// An agent at `node` that does not split.
fn agent(node: String) -> impl Strategy<Value = ProxyConfig> {
    let kind = proptest::sample::select(vec![ProxyKind::Snoop, ProxyKind::Spoofing]);
    (kind, buffer_size()).prop_map(move |(kind, size)| ProxyConfig {
        node: node.clone(),
        kind,
        variant: None,
        params: ParamValues::new(),
        stack: None,
        receive_buffer: Some(size),
        send_buffer: None,
        pool: None,
        acknowledge: AcknowledgePolicy::default(),
        advertise: AdvertisePolicy::default(),
        forward_window: ForwardWindow::default(),
        first_read_ns: 0,
        first_left_pkts: None,
        handshake: HandshakePolicy::default(),
        limit: None,
        idle_timeout_ns: None,
        pending_timeout_ns: None,
        faults: Vec::new(),
    })
}

/// A proxy at `node`, or none; with its own variant and stack, or the flow's.
fn proxy(node: String, profile: Profile) -> impl Strategy<Value = Option<ProxyConfig>> {
    let own = proptest::option::of(variant(profile));
    let smss_bytes = proptest::option::of(500..1461_u32);
    let agent = agent(node.clone());
    let proxy = (policies(node), own, smss_bytes, any::<bool>()).prop_map(
        move |(policies, own, smss_bytes, hold)| {
            let (variant, params) = own.unzip();
            let overrides = StackOverrides {
                smss_bytes,
                handshake: Some(true),
                retry_limit: Some(255),
                syn_retry_limit: Some(127),
                ..StackOverrides::default()
            };
            ProxyConfig {
                variant,
                params: params.unwrap_or_default(),
                stack: smss_bytes.map(|_| LegStack { profile, overrides }),
                handshake: if hold {
                    HandshakePolicy::Hold
                } else {
                    HandshakePolicy::Accept
                },
                ..policies
            }
        },
    );
    proptest::option::of(prop_oneof![4 => proxy, 1 => agent])
}

/// A proxy can hold the SYN only of a connection that begins with one.
fn without_idle_holds(handshake: bool, proxies: Vec<ProxyConfig>) -> Vec<ProxyConfig> {
    let mut shakes_hands = handshake;
    let each = proxies.into_iter().map(|proxy| {
        if proxy.kind != ProxyKind::Split {
            return proxy;
        }
        let accepts = !std::mem::replace(
            &mut shakes_hands,
            if proxy.stack.is_some() {
                true
            } else {
                handshake
            },
        );
        ProxyConfig {
            handshake: if accepts {
                HandshakePolicy::Accept
            } else {
                proxy.handshake
            },
            ..proxy
        }
    });
    each.collect()
}

/// Profile, variant and parameters of a flow, and what each of `nodes` is.
type Setup = (Profile, (String, ParamValues), Vec<Option<ProxyConfig>>);

fn setup(nodes: Vec<String>) -> impl Strategy<Value = Setup> {
    proptest::sample::select(vec![Profile::Rfc, Profile::Linux, Profile::Ns2]).prop_flat_map(
        move |profile| {
            let proxies: Vec<_> = nodes.iter().map(|n| proxy(n.clone(), profile)).collect();
            (Just(profile), variant(profile), proxies)
        },
    )
}

fn flow(nodes: Vec<String>, endless: bool) -> impl Strategy<Value = FlowConfig> {
    let sites: Vec<usize> = (0..nodes.len()).collect();
    let whole = vec![0, nodes.len() - 1];
    let ends = prop_oneof![3 => Just(whole), 1 => proptest::sample::subsequence(sites, 2)];
    let buffer = (3000..200_000_u64, any::<bool>());
    let buffer = proptest::option::weighted(0.4, buffer);
    let setup = setup(nodes.clone());
    let traffic = (stack(), application(endless), buffer).prop_map(fit_together);
    (setup, traffic, 0..3000_u64, ends).prop_map(
        move |((profile, (variant, params), proxies), traffic, start_ms, ends)| {
            let (stack, (size_bytes, application)) = traffic;
            let proxies = proxies.into_iter().take(ends[1]).skip(ends[0] + 1);
            FlowConfig {
                name: "flow".into(),
                from: Some(nodes[ends[0]].clone()),
                to: Some(nodes[ends[1]].clone()),
                dscp: if profile == Profile::Linux { 46 } else { 0 },
                start_ns: start_ms * MILLISECOND,
                stop_ns: None,
                size_bytes,
                application,
                variant,
                params,
                profile,
                proxies: without_idle_holds(
                    stack.handshake != Some(false),
                    proxies.flatten().collect(),
                ),
                stack,
            }
        },
    )
}

/// A stack, a size with an application, and octets of an autotuned send buffer.
type Traffic = (
    StackOverrides,
    (Option<u64>, ApplicationConfig),
    Option<(u64, bool)>,
);

/// Removes keys that contradict the application, and gives the stack its send buffer.
fn fit_together(
    (mut stack, (size_bytes, mut application), buffer): Traffic,
) -> (StackOverrides, (Option<u64>, ApplicationConfig)) {
    stack.send_buffer_bytes = buffer.map(|(bytes, _)| bytes);
    stack.send_buffer_max_bytes = buffer.and_then(|(bytes, grows)| grows.then_some(4 * bytes));
    match &mut application {
        ApplicationConfig::Greedy { write_bytes, .. } if buffer.is_none() => *write_bytes = None,
        ApplicationConfig::Stream { .. } => stack.read_rate_bps = None,
        _ => {}
    }
    (stack, (size_bytes, application))
}

/// Slow and, in long runs, of short duration, so that the flows finish.
fn datagrams(nodes: Vec<String>, endless: bool) -> impl Strategy<Value = DatagramConfig> {
    let spread = proptest::sample::select(vec![Spread::Fixed, Spread::Exponential, Spread::Pareto]);
    let bursts = (1..500_u64, 0..500_u64, spread).prop_map(|(on_ms, off_ms, spread)| BurstConfig {
        on_ns: on_ms * MILLISECOND,
        off_ns: off_ms * MILLISECOND,
        spread,
    });
    let ends = proptest::sample::subsequence(nodes, 2).prop_shuffle();
    (
        0..3000_u64,
        ends,
        29..1500_u16,
        1e3..1e6,
        proptest::option::of(bursts),
        any::<bool>(),
    )
        .prop_map(
            move |(start_ms, ends, packet_bytes, rate_bps, bursts, stops)| DatagramConfig {
                name: "datagrams".into(),
                start_ns: start_ms * MILLISECOND,
                stop_ns: (stops || !endless).then_some((start_ms + 5000) * MILLISECOND),
                from: Some(ends[0].clone()),
                to: Some(ends[1].clone()),
                dscp: packet_bytes as u8 % 64,
                packet_bytes,
                rate_bps,
                bursts,
                recorded: None,
            },
        )
}

/// Runs to the end of all flows, or for some seconds of endless flows; over a chain, or a tree.
pub fn scenario(endless: bool) -> impl Strategy<Value = Config> {
    let net = prop_oneof![3 => chain(endless), 1 => tree(endless)];
    (net, proptest::option::of(0..90_000_u64)).prop_map(|(config, spare_bytes)| match spare_bytes {
        Some(spare_bytes) => with_pools(config, spare_bytes),
        None => config,
    })
}

/// The proxies at each node share memory for a packet of each connection and so many octets more.
fn with_pools(mut config: Config, spare_bytes: u64) -> Config {
    let connections = config.flows.len() as u64;
    for proxy in config.flows.iter_mut().flat_map(|flow| &mut flow.proxies) {
        if proxy.advertise != AdvertisePolicy::Sockets && proxy.kind == ProxyKind::Split {
            proxy.pool = Some(proxy.node.clone());
            proxy.receive_buffer = Some(BufferSize::Bytes(1460 * connections + spare_bytes));
        }
    }
    config
}

/// A chain to which links of some flows join a new node, at which these flows begin or end; some flows go backward.
fn tree(endless: bool) -> impl Strategy<Value = Config> {
    let own = proptest::collection::vec((direction(), direction(), any::<[bool; 3]>()), 3);
    (chain(endless), own).prop_map(|(mut config, own)| {
        let links = config.flows.iter_mut().zip(own).enumerate();
        let links = links.map(
            |(i, (flow, (forward, reverse, [begins, inward, backward])))| {
                if backward {
                    std::mem::swap(&mut flow.from, &mut flow.to);
                    flow.proxies.reverse();
                    for proxy in &mut flow.proxies {
                        proxy.handshake = HandshakePolicy::Accept;
                    }
                }
                let end = if begins { &mut flow.from } else { &mut flow.to };
                let leaf = Some(format!("leaf{i}"));
                let old = std::mem::replace(end, leaf.clone());
                let (from, to) = if inward { (leaf, old) } else { (old, leaf) };
                LinkConfig {
                    name: "own".into(),
                    from,
                    to,
                    forward,
                    reverse,
                }
            },
        );
        config.path.links.extend(links);
        let leaves = config.path.links.len() + 1 - config.path.nodes.len();
        (config.path.nodes).extend((0..leaves).map(|i| format!("leaf{i}")));
        config
    })
}

fn chain(endless: bool) -> impl Strategy<Value = Config> {
    (1..4_usize).prop_flat_map(move |hops| {
        let nodes: Vec<String> = (0..=hops).map(|n| format!("n{n}")).collect();
        let links = proptest::collection::vec((direction(), direction()), hops);
        let flows = proptest::collection::vec(flow(nodes.clone(), endless), 1..4);
        let others = proptest::collection::vec(datagrams(nodes.clone(), endless), 0..3);
        (links, flows, others).prop_map(move |(links, flows, others)| Config {
            datagrams: others,
            externals: crate::cc::Externals::default(),
            duration_ns: if endless {
                8 * SECOND
            } else {
                4 * 3600 * SECOND
            },
            path: PathConfig {
                nodes: nodes.clone(),
                links: links
                    .into_iter()
                    .map(|(forward, reverse)| LinkConfig {
                        name: "link".into(),
                        from: None,
                        to: None,
                        forward,
                        reverse,
                    })
                    .collect(),
            },
            flows,
        })
    })
}

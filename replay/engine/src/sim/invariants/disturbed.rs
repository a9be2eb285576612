//! Random chains of proxies with faults, limits and timeouts, and with filtered ACKs: octets are conserved but for what a
//! fault, a refusal or a reset loses, which is counted; nothing waits for ever; the right edge never moves to the left.

use proptest::prelude::*;

use super::scenarios::scenario;
use super::{Bookkeeper, play};
use crate::config::{
    BeyondLimit, Config, DropTailConfig, FaultConfig, FaultKind, FlowConfig, HandshakePolicy,
    LimitConfig, ProxyConfig, ProxyKind, QueueConfig,
};
use crate::sim::summary::FlowSummary;
use crate::sim::time::{MILLISECOND, Nanos};

/// What is special about one proxy.
#[derive(Clone, Debug)]
enum Disturbance {
    None,
    Faults(Vec<FaultConfig>),
    Timeouts(Option<Nanos>, Option<Nanos>),
    Filter,
}

fn fault() -> impl Strategy<Value = FaultConfig> {
    let kind = proptest::sample::select(vec![
        FaultKind::Restart,
        FaultKind::Failure,
        FaultKind::Corruption,
        FaultKind::Move,
    ]);
    let transfer = proptest::option::of(1..2000_u64);
    (0..20_000_u64, kind, transfer).prop_map(|(at_ms, kind, transfer_ms)| FaultConfig {
        at_ns: at_ms * MILLISECOND,
        kind,
        transfer_ns: transfer_ms
            .filter(|_| kind == FaultKind::Move)
            .map(|ms| ms * MILLISECOND),
    })
}

fn disturbance() -> impl Strategy<Value = Disturbance> {
    let faults = proptest::collection::vec(fault(), 1..3).prop_map(|mut faults| {
        faults.sort_by_key(|fault| fault.at_ns);
        Disturbance::Faults(faults)
    });
    let time = || proptest::option::of((1..20_000_u64).prop_map(|ms| ms * MILLISECOND));
    prop_oneof![
        2 => Just(Disturbance::None),
        3 => faults,
        1 => (time(), time()).prop_map(|(idle, pending)| Disturbance::Timeouts(idle, pending)),
        1 => Just(Disturbance::Filter),
    ]
}

/// Scenarios of flows that end, with a disturbance for each proxy, and perhaps a limit on all that split at one node.
fn disturbed() -> impl Strategy<Value = Config> {
    let limit = proptest::option::of((1..3_u32, any::<bool>()));
    let each = proptest::collection::vec(disturbance(), 12);
    (scenario(false), each, limit).prop_map(|(mut config, each, limit)| {
        let mut each = each.into_iter().cycle();
        for flow in &mut config.flows {
            for proxy in &mut flow.proxies {
                disturb(proxy, each.next().expect("a cycle"));
            }
        }
        if let Some((max_connections, pass)) = limit {
            limit_connections(&mut config, max_connections, pass);
        }
        let filters = |flow: &FlowConfig| {
            (flow.proxies.iter()).any(|proxy| proxy.kind == ProxyKind::AckFilter)
        };
        if config.flows.iter().any(filters) {
            queue_all(&mut config);
        }
        for flow in config.flows.iter_mut().filter(|flow| filters(flow)) {
            // What held a SYN may now be behind a connection without a handshake.
            for proxy in &mut flow.proxies {
                proxy.handshake = HandshakePolicy::Accept;
            }
        }
        config
    })
}

fn disturb(proxy: &mut ProxyConfig, disturbance: Disturbance) {
    let splits = proxy.kind == ProxyKind::Split;
    match disturbance {
        Disturbance::Faults(mut faults) => {
            faults.retain(|fault| splits || fault.kind != FaultKind::Corruption);
            proxy.faults = faults;
        }
        Disturbance::Timeouts(idle, pending) if splits => {
            proxy.idle_timeout_ns = idle;
            // It is of a connection that begins with a handshake.
            proxy.pending_timeout_ns = pending.filter(|_| proxy.stack.is_some());
        }
        Disturbance::Filter => {
            *proxy = ProxyConfig {
                kind: ProxyKind::AckFilter,
                ..bare(&proxy.node)
            };
        }
        Disturbance::None | Disturbance::Timeouts(..) => {}
    }
}

/// A proxy that gives nothing but its node.
fn bare(node: &str) -> ProxyConfig {
    serde_json::from_value(serde_json::json!({ "node": node })).expect("a node is enough")
}

/// All flows begin with a handshake, and those that split at the first node with a proxy count together there.
fn limit_connections(config: &mut Config, max_connections: u32, pass: bool) {
    let mut node = None;
    for flow in &mut config.flows {
        flow.stack.handshake = Some(true);
        for proxy in &mut flow.proxies {
            let first = node.get_or_insert_with(|| proxy.node.clone());
            if proxy.kind == ProxyKind::Split && *first == proxy.node {
                proxy.limit = Some(LimitConfig {
                    name: "limit".into(),
                    max_connections,
                    resume_connections: None,
                    beyond: if pass {
                        BeyondLimit::Pass
                    } else {
                        BeyondLimit::Refuse
                    },
                });
            }
        }
    }
}

/// ACKs are filtered in drop-tail queues of links with a rate.
fn queue_all(config: &mut Config) {
    for link in &mut config.path.links {
        for way in [&mut link.forward, &mut link.reverse] {
            if way.rate_trace.is_none() && way.rate_bps.is_none() {
                way.rate_bps = Some(1e6);
            }
            if !matches!(way.queue, QueueConfig::DropTail(_)) {
                way.queue = QueueConfig::DropTail(DropTailConfig::default());
            }
        }
    }
}

/// Whether nothing may ever tell the sender of `flow` that its connection is gone: a proxy that never answers again, or
/// one that has acknowledged on behalf of the receiver what it has lost.
fn may_hang(flow: &FlowConfig) -> bool {
    flow.proxies.iter().any(|proxy| {
        (proxy.faults.iter()).any(|fault| {
            fault.kind == FaultKind::Failure
                || proxy.kind == ProxyKind::Spoofing && fault.kind != FaultKind::Corruption
        })
    })
}

/// Whether something may end `flow` before its last octet.
fn may_end(flow: &FlowConfig) -> bool {
    flow.proxies.iter().any(ProxyConfig::may_end)
}

/// What the books say of a flow: octets acknowledged to its sender, and in order at its receiver.
fn ends_of(books: &Bookkeeper, number: usize) -> (u64, u64) {
    let legs = || (0..books.flows.len()).filter(|&leg| books.flows[leg] == number);
    let book = |leg: Option<usize>| leg.and_then(|leg| books.legs.get(&(leg as u16)));
    let acknowledged = book(legs().next()).map_or(0, |book| book.acknowledged.saturating_sub(1));
    let arrived = book(legs().next_back()).map_or(0, |book| book.rcv_nxt - 1);
    (acknowledged, arrived)
}

fn check_ending(config: &FlowConfig, flow: &FlowSummary, (acknowledged, arrived): (u64, u64)) {
    if !may_end(config) {
        assert!(flow.completed, "{config:?} {flow:?}");
        assert_eq!(flow.proxy_lost_bytes.unwrap_or(0), 0, "{config:?} {flow:?}");
    }
    if flow.completed {
        return;
    }
    let ended = flow.reset_ns.is_some();
    assert!(
        ended || may_hang(config),
        "it waits for ever: {config:?} {flow:?}"
    );
    let counts = flow.proxy_counts;
    let counted = counts.is_some_and(|counts| counts.refused + counts.timeouts > 0);
    let faulty = config.proxies.iter().any(|proxy| !proxy.faults.is_empty());
    assert!(
        counted || faulty,
        "nothing counts why it ended: {config:?} {flow:?}"
    );
    if ended
        && config
            .proxies
            .iter()
            .any(|proxy| proxy.kind != ProxyKind::AckFilter)
    {
        // The FIN takes a number, too.
        let lost = flow.proxy_lost_bytes.unwrap_or(0);
        assert!(
            acknowledged <= arrived + lost + 1,
            "{acknowledged} acknowledged, {arrived} arrived, {lost} lost: {config:?} {flow:?}"
        );
    }
}

fn check(config: &Config, seed: u64) {
    let (summary, books) = play(config, seed);
    for (number, flow) in summary.flows.iter().enumerate() {
        check_ending(&config.flows[number], flow, ends_of(&books, number));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn disturbed_chains_conserve_octets_and_never_wait_for_ever(config in disturbed(), seed in any::<u64>()) {
        check(&config, seed);
    }
}

//! Checks of a proxy: its connection onward, its buffers, and policies that contradict each other.

use super::{MAX_NS, MAX_PKTS, Place, validate_params, variant_at};
use std::collections::{BTreeMap, BTreeSet};

use crate::cc::catalogue::Variant;
use crate::config::error::ConfigErrorKind;
use crate::config::{
    AcknowledgePolicy, AdvertisePolicy, BufferSize, Config, FaultKind, FlowConfig, ForwardWindow,
    HandshakePolicy, LimitConfig, ProxyConfig, ProxyKind, QueueConfig, Tree,
};
use crate::proxy::min_promise;
use crate::sim::time::Nanos;

const MAX_BUFFER_BYTES: u64 = 1 << 40;

impl FlowConfig {
    /// `place` is that of the proxy.
    pub(super) fn validate_proxy(&self, place: &Place, proxy: &ProxyConfig, end: Nanos) {
        validate_faults(&place.key("faults"), proxy, end);
        if proxy.kind != ProxyKind::Split {
            refuse_keys_of_split(place, proxy);
            return self.validate_buffers(place, proxy);
        }
        let profile = proxy.stack.map_or(self.profile, |stack| stack.profile);
        let params = place.key("params");
        if let Some(variant) = &proxy.variant {
            if let Some(variant) = variant_at(&place.key("variant"), variant) {
                validate_params(&params, variant, profile, &proxy.params);
            }
        } else if !proxy.params.is_empty() {
            params.refuse(ConfigErrorKind::ParametersWithoutVariant);
        }
        self.validate_stack_of(place, proxy);
        self.validate_buffers(place, proxy);
        let upstream = self.stack_before(proxy);
        if proxy.handshake == HandshakePolicy::Hold && !upstream.handshake {
            place.key("handshake").requires("handshake", Some(true));
        }
        self.validate_limit(place, proxy);
    }

    /// ACKs can be filtered where they queue, in a drop-tail queue.
    pub(super) fn validate_ack_filters(&self, place: &Place, config: &Config, tree: &Tree) {
        for (i, proxy) in self.proxies.iter().enumerate() {
            let back = config.path.back_from(tree, self, &proxy.node);
            let Some(number) = back.filter(|_| proxy.kind == ProxyKind::AckFilter) else {
                continue;
            };
            let (list, link) = (place.key("proxies"), config.path.direction(number));
            let proxy = list.index(i);
            if !matches!(link.queue, QueueConfig::DropTail(_)) {
                proxy
                    .key("kind")
                    .refuse(ConfigErrorKind::FilterWithoutDropTail);
            } else if link.rate_bps.is_none() && link.rate_trace.is_none() {
                let queue = "ack_filter";
                proxy
                    .key("kind")
                    .refuse(ConfigErrorKind::QueueWithoutRate { queue });
            }
        }
    }

    /// A limit decides on a SYN, and a connection is pending only while it has none of its own answered.
    fn validate_limit(&self, place: &Place, proxy: &ProxyConfig) {
        let handshake = || ConfigErrorKind::Requires {
            key: "handshake",
            value: Some(true),
        };
        if let Some(limit) = &proxy.limit {
            let limits = place.key("limit");
            let max = limits.key("max_connections");
            max.within(limit.max_connections, 1, u32::MAX);
            if let Some(resume) = limit.resume_connections {
                let below = limit.max_connections.saturating_sub(1);
                limits.key("resume_connections").within(resume, 0, below);
            }
            if !self.stack_before(proxy).handshake {
                max.refuse(handshake());
            }
        }
        let idle = place.key("idle_timeout_ns");
        idle.within_if_given(proxy.idle_timeout_ns, 1, MAX_NS);
        let pending = place.key("pending_timeout_ns");
        pending.within_if_given(proxy.pending_timeout_ns, 1, MAX_NS);
        if proxy.pending_timeout_ns.is_some() && !self.stack_of(proxy).handshake {
            pending.refuse(handshake());
        }
    }

    fn validate_stack_of(&self, place: &Place, proxy: &ProxyConfig) {
        let stack = place.key("stack");
        let overrides = stack.key("overrides");
        let errors_before = place.found().count();
        let params = self.stack_of(proxy);
        if let Some(given) = proxy.stack {
            params.validate(&overrides, &given.overrides);
        }
        let (name, values) = match &proxy.variant {
            Some(own) => (own, &proxy.params),
            None => (&self.variant, &self.params),
        };
        let variant = Variant::from_name(name).ok();
        if let Some(variant) = variant.filter(|_| place.found().count() == errors_before) {
            let fixed = variant.fix(&params, values).recovery;
            let contradicts = match proxy.stack {
                Some(given) => given.overrides.sets_another(fixed),
                None => proxy.variant.is_some() && self.stack.lacks_sack_for(fixed),
            };
            if contradicts {
                let variant = name.clone();
                let recovery = overrides.key("recovery");
                recovery.refuse(ConfigErrorKind::FixedRecovery { variant });
            }
        }
    }

    /// Each buffer holds a full segment of the connection that fills it.
    fn validate_buffers(&self, place: &Place, proxy: &ProxyConfig) {
        let smss = u64::from(self.stack_before(proxy).smss_bytes);
        let onward = u64::from(self.stack_of(proxy).smss_bytes);
        let sockets = proxy.advertise == AdvertisePolicy::Sockets;
        let own = [
            ("receive_buffer", proxy.receive_buffer.is_some()),
            ("send_buffer", proxy.send_buffer.is_some()),
            ("pool", proxy.pool.is_some()),
            (
                "forward_window",
                proxy.forward_window == ForwardWindow::Third,
            ),
        ];
        for (name, given) in own {
            if sockets && given {
                let with = "sockets";
                place.key(name).refuse(ConfigErrorKind::Conflicts { with });
            }
        }
        let of_sockets = [
            ("first_read_ns", proxy.first_read_ns > 0),
            ("first_left_pkts", proxy.first_left_pkts.is_some()),
        ];
        for (name, given) in of_sockets {
            if !sockets && given {
                place.key(name).refuse(ConfigErrorKind::Requires {
                    key: "advertise",
                    value: None,
                });
            }
        }
        let first_left = place.key("first_left_pkts");
        first_left.within_if_given(proxy.first_left_pkts, 1, u32::MAX);
        let buffers = [
            ("receive_buffer", proxy.receive_buffer, smss),
            ("send_buffer", proxy.send_buffer, smss.max(onward)),
        ];
        for (name, size, min_bytes) in buffers {
            let buffer = place.key(name);
            match size {
                Some(BufferSize::Pkts(pkts)) => {
                    buffer.key("pkts").within(u64::from(pkts), 1, MAX_PKTS);
                }
                Some(BufferSize::Bytes(bytes)) => {
                    buffer
                        .key("bytes")
                        .within(bytes, min_bytes, MAX_BUFFER_BYTES);
                }
                None => {}
            }
        }
    }
}

/// Faults are in order, and each is one that this kind of proxy can have.
fn validate_faults(faults: &Place, proxy: &ProxyConfig, end: Nanos) {
    for (i, pair) in proxy.faults.windows(2).enumerate() {
        if pair[1].at_ns < pair[0].at_ns {
            let value = pair[1].at_ns.into();
            let fault = faults.index(i + 1);
            fault
                .key("at_ns")
                .refuse(ConfigErrorKind::NotAscending { value });
        }
    }
    for (i, fault) in proxy.faults.iter().enumerate() {
        let fault_place = faults.index(i);
        fault_place
            .key("at_ns")
            .within(fault.at_ns, 0, end.min(MAX_NS));
        if proxy.kind != ProxyKind::Split && fault.kind == FaultKind::Corruption {
            let with = proxy.kind.name();
            let kind = fault_place.key("kind");
            kind.refuse(ConfigErrorKind::Conflicts { with });
        }
        let transfer = fault_place.key("transfer_ns");
        transfer.within_if_given(fault.transfer_ns, 1, MAX_NS);
        if fault.transfer_ns.is_some() && fault.kind != FaultKind::Move {
            let with = "kind";
            transfer.refuse(ConfigErrorKind::Conflicts { with });
        }
    }
}

/// What does not split has neither a connection nor policies of its own.
fn refuse_keys_of_split(place: &Place, proxy: &ProxyConfig) {
    let filter = proxy.kind == ProxyKind::AckFilter;
    let given = [
        ("variant", proxy.variant.is_some()),
        ("params", !proxy.params.is_empty()),
        ("stack", proxy.stack.is_some()),
        ("receive_buffer", filter && proxy.receive_buffer.is_some()),
        ("send_buffer", proxy.send_buffer.is_some()),
        ("pool", proxy.pool.is_some()),
        (
            "acknowledge",
            proxy.acknowledge != AcknowledgePolicy::default(),
        ),
        ("advertise", proxy.advertise != AdvertisePolicy::default()),
        (
            "forward_window",
            proxy.forward_window != ForwardWindow::default(),
        ),
        ("first_read_ns", proxy.first_read_ns > 0),
        ("first_left_pkts", proxy.first_left_pkts.is_some()),
        ("handshake", proxy.handshake != HandshakePolicy::default()),
        ("limit", proxy.limit.is_some()),
        ("idle_timeout_ns", proxy.idle_timeout_ns.is_some()),
        ("pending_timeout_ns", proxy.pending_timeout_ns.is_some()),
        ("faults", filter && !proxy.faults.is_empty()),
    ];
    for (key, given) in given {
        if given {
            let with = proxy.kind.name();
            place.key(key).refuse(ConfigErrorKind::Conflicts { with });
        }
    }
}

impl Config {
    /// Octets of the memory `pool`, packets of which are full segments of its first connection, and what each of its
    /// connections may always promise of it.
    pub(crate) fn pool_bytes(&self, pool: &str) -> (u64, Vec<u64>) {
        let members = self.members(pool);
        let first = members
            .first()
            .and_then(|(_, _, proxy)| proxy.receive_buffer);
        let bytes_of = |smss: u64| match first.unwrap_or_default() {
            BufferSize::Bytes(bytes) => bytes,
            BufferSize::Pkts(pkts) => u64::from(pkts) * smss,
        };
        let segments = members
            .iter()
            .map(|&(_, flow, proxy)| flow.stack_before(proxy).smss_bytes);
        let segments: Vec<u64> = segments.map(u64::from).collect();
        let capacity = segments.first().copied().map_or(0, bytes_of);
        let min_bytes = segments
            .into_iter()
            .map(|smss| min_promise(smss, bytes_of(smss)));
        (capacity, min_bytes.collect())
    }

    /// Number of the flow, flow and proxy of each connection that names `pool`.
    fn members(&self, pool: &str) -> Vec<(usize, &FlowConfig, &ProxyConfig)> {
        let all =
            self.flows.iter().enumerate().flat_map(|(number, flow)| {
                flow.proxies.iter().map(move |proxy| (number, flow, proxy))
            });
        all.filter(|(_, _, proxy)| proxy.pool.as_deref() == Some(pool))
            .collect()
    }

    /// Connections that one limit counts agree on it.
    pub(super) fn validate_limits(&self, flows: &Place) {
        let mut first: BTreeMap<&str, (&String, &LimitConfig)> = BTreeMap::new();
        for (number, flow) in self.flows.iter().enumerate() {
            for (i, proxy) in flow.proxies.iter().enumerate() {
                let Some(limit) = &proxy.limit else {
                    continue;
                };
                let own = (&proxy.node, limit);
                if *first.entry(&limit.name).or_insert(own) != own {
                    let (flow, limit) = (flows.index(number), limit.name.clone());
                    let (proxies, differs) =
                        (flow.key("proxies"), ConfigErrorKind::LimitDiffers { limit });
                    proxies.index(i).key("limit").refuse(differs);
                }
            }
        }
    }

    /// Connections of a shared memory agree on it, and it has a packet for each of them.
    pub(super) fn validate_pools(&self, flows: &Place) {
        let names = self
            .flows
            .iter()
            .flat_map(|flow| &flow.proxies)
            .filter_map(|p| p.pool.as_deref());
        for pool in names.collect::<BTreeSet<_>>() {
            let members = self.members(pool);
            let Some(&(number, _, first)) = members.first() else {
                continue;
            };
            let flow = flows.index(number);
            let proxies = flow.key("proxies");
            let place = proxies.index(0);
            let alike = |proxy: &ProxyConfig| {
                (&proxy.node, proxy.receive_buffer) == (&first.node, first.receive_buffer)
            };
            if !members.iter().all(|(_, _, proxy)| alike(proxy)) {
                let pool = pool.to_owned();
                place
                    .key("pool")
                    .refuse(ConfigErrorKind::PoolDiffers { pool });
                continue;
            }
            let (capacity_bytes, least) = self.pool_bytes(pool);
            let (connections, min_bytes) = (least.len(), least.iter().sum());
            if capacity_bytes < min_bytes {
                place
                    .key("receive_buffer")
                    .refuse(ConfigErrorKind::PoolTooSmall {
                        connections,
                        capacity_bytes,
                        min_bytes,
                    });
            }
        }
    }
}

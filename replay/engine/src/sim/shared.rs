//! What several flows of a run have in common at a node: memory of a proxy, its limit, and a queue that filters ACKs.
//!
//! Does not depend on how a run is built.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::config::{Config, ProxyKind, Tree};
use crate::proxy::{Gate, Pool};

/// The memory that proxies share.
pub fn pools(config: &Config) -> BTreeMap<&str, Arc<Pool>> {
    let proxies = config.flows.iter().flat_map(|flow| &flow.proxies);
    let names: BTreeSet<&str> = proxies.filter_map(|proxy| proxy.pool.as_deref()).collect();
    let pool = |name| {
        let (capacity, least) = config.pool_bytes(name);
        let spare = capacity.saturating_sub(least.iter().sum()) / least.len() as u64;
        (name, Pool::new(capacity, spare))
    };
    names.into_iter().map(pool).collect()
}

/// The limits of proxies.
pub fn gates(config: &Config) -> BTreeMap<&str, Arc<Gate>> {
    let proxies = config.flows.iter().flat_map(|flow| &flow.proxies);
    let limits = proxies.filter_map(|proxy| proxy.limit.as_ref());
    limits
        .map(|limit| (limit.name.as_str(), Gate::new(limit)))
        .collect()
}

/// Of each link direction whose queue filters ACKs: the legs of the flows that ask for it.
pub fn ack_filters(config: &Config, tree: &Tree) -> BTreeMap<usize, Vec<Range<u16>>> {
    let mut filters: BTreeMap<usize, Vec<Range<u16>>> = BTreeMap::new();
    let mut first = 0;
    for flow in &config.flows {
        let (filter, rest): (Vec<_>, Vec<_>) =
            (flow.proxies.iter()).partition(|proxy| proxy.kind == ProxyKind::AckFilter);
        let legs = first..first + 1 + rest.len() as u16;
        first = legs.end;
        for proxy in filter {
            if let Some(number) = config.path.back_from(tree, flow, &proxy.node) {
                filters.entry(number).or_default().push(legs.clone());
            }
        }
    }
    filters
}

//! Configurations that differ in the variant of the sender before the first proxy alone.
//!
//! Does not depend on how they run: see `crate::sim::world`.

use super::{Config, FlowConfig, ProxyKind, StackParams, known_variant};
use crate::cc::catalogue::EXTERNAL;

impl Config {
    /// Whether `other` differs in the variant of the first flow alone, behind whose sender a proxy splits the connection:
    /// then a run of either is one of both, as long as the two senders send the same segments.
    pub fn differs_in_first_sender(&self, other: &Self) -> bool {
        let ([ours, flows @ ..], [theirs, their_flows @ ..]) = (&self.flows[..], &other.flows[..])
        else {
            return false;
        };
        ours.variant != theirs.variant
            && ours.ends_at_a_proxy()
            && ours.is_but_for_its_variant(theirs)
            && ours.receivers_of(theirs)
            && self.duration_ns == other.duration_ns
            && self.externals == other.externals
            && flows == their_flows
            && self.datagrams == other.datagrams
            && self.path == other.path
    }
}

impl FlowConfig {
    /// Whether its variant is that of the connection to the first proxy alone.
    fn ends_at_a_proxy(&self) -> bool {
        let splits = |kind| kind == ProxyKind::Split;
        let is_known = |variant: &str| !variant.starts_with(EXTERNAL);
        self.proxies.first().is_some_and(|first| splits(first.kind))
            && (self.proxies.iter())
                .filter(|proxy| splits(proxy.kind))
                .all(|proxy| proxy.variant.as_deref().is_some_and(is_known))
            && is_known(&self.variant)
    }

    fn is_but_for_its_variant(&self, other: &Self) -> bool {
        let Self {
            variant, params, ..
        } = self;
        *self
            == Self {
                variant: variant.clone(),
                params: params.clone(),
                ..other.clone()
            }
    }

    /// Whether the variant of `other` changes nothing of the stack but how losses are recovered, which a receiver takes
    /// no part in but for SACK. A window that connections share is no sender's own.
    fn receivers_of(&self, other: &Self) -> bool {
        let stack = |flow: &Self| {
            let variant = known_variant("variant", &flow.variant).ok()?;
            let resolved = StackParams::resolve(flow.profile, &flow.stack);
            Some(variant.fix(&resolved, &flow.params))
        };
        let (Some(ours), Some(theirs)) = (stack(self), stack(other)) else {
            return false;
        };
        let recovery = ours.recovery;
        ours == StackParams { recovery, ..theirs }
            && ours.fixed_window_pkts.is_none()
            && (ours.sack_enabled() || !theirs.sack_enabled())
    }
}

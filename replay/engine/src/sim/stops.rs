//! Where the connections of a flow begin and end: its source, its proxies and its sink, each with the stack and the
//! controller of the connection that begins there.
//!
//! Does not depend on links or on how the parts are built.

use hindflight_kernels::StreamRng;

use crate::cc::catalogue::{EXTERNAL, Variant};
use crate::cc::{Controller, Externals, ParamValues, Window};
use crate::config::{
    AdvertisePolicy, Config, ConfigErrors, FlowConfig, ProxyConfig, ProxyKind, StackParams,
    known_variant,
};
use crate::proxy::{Cache, with_send_buffer};

/// A variant under the name and with the parameters that the configuration gives it.
#[derive(Clone, Copy)]
struct Choice<'a> {
    variant: Variant,
    name: &'a str,
    values: &'a ParamValues,
}

/// One end of a leg while it is being built: where it sits and what it is.
#[derive(Clone, Copy)]
pub struct Stop<'a> {
    /// Number of its node on the path.
    pub site: usize,
    /// The proxy there and its memory.
    pub proxy: Option<(&'a ProxyConfig, Cache)>,
    /// Stack of the connection that begins there, as the variant leaves it.
    pub params: StackParams,
    choice: Choice<'a>,
}

impl Stop<'_> {
    /// Whether an agent is there that does not split the connection.
    pub fn is_agent(&self) -> bool {
        self.proxy.is_some_and(|(proxy, _)| proxy.kind.is_agent())
    }

    /// The controller of the sender at this stop.
    pub fn controller(&self, externals: &Externals, draws: StreamRng) -> Controller {
        let params = &self.params;
        let Choice {
            variant,
            name,
            values,
        } = self.choice;
        name.strip_prefix(EXTERNAL)
            .and_then(|name| externals.make(name, Window::initial(params)))
            .map_or_else(
                || variant.controller(params, values, draws),
                Controller::from,
            )
    }
}

/// The places where a flow's connections begin and end: its source, its proxies, its sink.
///
/// # Errors
/// A variant or a place that does not exist.
pub fn stops<'a>(config: &Config, flow: &'a FlowConfig) -> Result<Vec<Stop<'a>>, ConfigErrors> {
    let own = Choice {
        variant: known_variant("variant", &flow.variant)?,
        name: &flow.variant,
        values: &flow.params,
    };
    let (from, to) = config
        .path
        .ends("flows", flow.from.as_deref(), flow.to.as_deref())?;
    let stack = StackParams::resolve(flow.profile, &flow.stack);
    let end = |site: usize| Stop {
        site,
        proxy: None,
        params: own.variant.fix(&stack, own.values),
        choice: own,
    };
    let mut stops = vec![end(from)];
    let mut before = stops[0];
    for proxy in &flow.proxies {
        if proxy.kind == ProxyKind::AckFilter {
            continue;
        }
        // An agent does not split the connection, which goes on as it was.
        let (params, choice) = if proxy.kind.is_agent() {
            (before.params, before.choice)
        } else {
            onward(flow, proxy, own)?
        };
        let cache = Cache::new(proxy, [before.params.smss_bytes, params.smss_bytes]);
        before = Stop {
            site: (config.path.nodes.iter())
                .position(|name| *name == proxy.node)
                .unwrap_or(0),
            proxy: Some((proxy, cache)),
            params,
            choice,
        };
        stops.push(before);
    }
    stops.push(end(to));
    Ok(stops)
}

/// The stack and the variant of the connection that begins at `proxy`; `own`: that of the flow.
fn onward<'a>(
    flow: &FlowConfig,
    proxy: &'a ProxyConfig,
    own: Choice<'a>,
) -> Result<(StackParams, Choice<'a>), ConfigErrors> {
    let choice = match proxy.variant.as_deref() {
        Some(name) => Choice {
            variant: known_variant("proxies.variant", name)?,
            name,
            values: &proxy.params,
        },
        None => own,
    };
    let mut params = choice.variant.fix(&flow.stack_of(proxy), choice.values);
    if proxy.advertise == AdvertisePolicy::Sockets {
        params = with_send_buffer(&params);
    }
    Ok((params, choice))
}

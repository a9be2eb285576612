//! What feeds a flow: the kinds of sending application and their parameters.
//!
//! Does not depend on how they run: `crate::app` does.

use serde::Deserialize;

use super::FlowConfig;
use super::validate::{Checked, LONGEST_NS, rate, refuse, within};
use crate::sim::time::Nanos;

/// The sending application of a flow.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ApplicationConfig {
    /// Writes as much as the network takes, up to the flow's size if it has one.
    Greedy {
        /// Octets that one call writes; none: whatever can leave. Needs a send buffer.
        #[serde(default)]
        write_bytes: Option<u32>,
        /// Time from the flow's start to the first write; none: it writes as soon as it is connected.
        #[serde(default)]
        first_write_ns: Nanos,
    },
    /// Writes at a rate for a while, then pauses.
    OnOff {
        /// Rate at which it writes while it is on.
        rate_bps: f64,
        /// Mean time on.
        on_ns: Nanos,
        /// Mean pause.
        off_ns: Nanos,
        /// How both are spread about their means.
        #[serde(default)]
        spread: Spread,
        /// Octets of one write; none: a full segment.
        #[serde(default)]
        write_bytes: Option<u32>,
    },
    /// Sends a page whenever the receiving end asks for one; that end reads it, thinks, and asks for the next.
    Pages {
        /// Mean size of a page.
        page_bytes: u64,
        /// Mean time between the last octet of a page and the next request.
        think_ns: Nanos,
        /// How both are spread about their means.
        #[serde(default)]
        spread: Spread,
        /// Octets of a request.
        #[serde(default = "default_request_bytes")]
        request_bytes: u16,
        /// Pages to load; none: until the run ends.
        #[serde(default)]
        pages: Option<u64>,
    },
    /// Writes media at their own rate; the receiving end plays them out and stalls when they run dry.
    Stream {
        /// Rate of the media.
        rate_bps: f64,
        /// Time between two writes.
        #[serde(default = "default_write_every_ns")]
        write_every_ns: Nanos,
        /// Media that must have arrived before the first is played.
        #[serde(default = "default_buffered_ns")]
        startup_ns: Nanos,
        /// Media that must have arrived before play goes on after a stall.
        #[serde(default = "default_buffered_ns")]
        resume_ns: Nanos,
    },
    /// Writes when and what a captured application wrote.
    Writes {
        /// Times since the flow's start, ascending.
        at_ns: Vec<Nanos>,
        /// Octets of each write.
        bytes: Vec<u32>,
    },
}

/// How a random quantity is spread about its mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Always the mean.
    #[default]
    Fixed,
    /// Exponentially.
    Exponential,
    /// Pareto with shape 1.5: many small, few very large (ns-2's `Traffic/Pareto`).
    Pareto,
}

fn default_request_bytes() -> u16 {
    400
}

fn default_write_every_ns() -> Nanos {
    40_000_000
}

fn default_buffered_ns() -> Nanos {
    1_000_000_000
}

impl Default for ApplicationConfig {
    fn default() -> Self {
        Self::Greedy {
            write_bytes: None,
            first_write_ns: 0,
        }
    }
}

const MAX_BYTES: u64 = 1 << 40;
const MAX_WRITE_BYTES: u32 = 1 << 30;
const MAX_REQUEST_BYTES: u16 = 1400;

impl ApplicationConfig {
    /// Its name in a configuration.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Greedy { .. } => "greedy",
            Self::OnOff { .. } => "on_off",
            Self::Pages { .. } => "pages",
            Self::Stream { .. } => "stream",
            Self::Writes { .. } => "writes",
        }
    }

    /// Checks the application of `flow`, whose key path is `flow_key`.
    pub(super) fn validate(&self, flow_key: &str, flow: &FlowConfig) -> Checked {
        self.agrees_with(flow_key, flow)?;
        let key = format!("{flow_key}.application");
        let at = |name: &str| format!("{key}.{name}");
        let time = |name: &str, value, min| within(&at(name), value, min, LONGEST_NS);
        let write = |octets: &Option<u32>| {
            within(&at("write_bytes"), octets.unwrap_or(1), 1, MAX_WRITE_BYTES)
        };
        match self {
            Self::Greedy {
                write_bytes,
                first_write_ns,
            } => {
                time("first_write_ns", *first_write_ns, 0)?;
                write(write_bytes)
            }
            Self::OnOff {
                rate_bps,
                on_ns,
                off_ns,
                write_bytes,
                ..
            } => {
                rate(&at("rate_bps"), Some(*rate_bps))?;
                time("on_ns", *on_ns, 1)?;
                time("off_ns", *off_ns, 0)?;
                write(write_bytes)
            }
            Self::Pages {
                page_bytes,
                think_ns,
                request_bytes,
                pages,
                ..
            } => {
                within(&at("page_bytes"), *page_bytes, 1, MAX_BYTES)?;
                time("think_ns", *think_ns, 0)?;
                within(&at("request_bytes"), *request_bytes, 1, MAX_REQUEST_BYTES)?;
                within(&at("pages"), pages.unwrap_or(1), 1, 1 << 32)
            }
            Self::Stream {
                rate_bps,
                write_every_ns,
                startup_ns,
                resume_ns,
            } => {
                rate(&at("rate_bps"), Some(*rate_bps))?;
                time("write_every_ns", *write_every_ns, 1000)?;
                time("startup_ns", *startup_ns, 0)?;
                time("resume_ns", *resume_ns, 0)
            }
            Self::Writes { at_ns, bytes } => validate_writes(&key, at_ns, bytes),
        }
    }

    /// Refuses what `flow` says besides and this application does not go with.
    fn agrees_with(&self, flow_key: &str, flow: &FlowConfig) -> Checked {
        let (own_size, buffer) = (flow.size_bytes, flow.stack.send_buffer_bytes);
        match self {
            Self::Greedy {
                write_bytes: Some(_),
                ..
            } if buffer.is_none() => refuse(
                format!("{flow_key}.application.write_bytes"),
                "means nothing without send_buffer_bytes",
            ),
            Self::Greedy { .. } => Ok(()),
            _ if own_size.is_some() => {
                let problem = format!(
                    "contradicts an application of kind {:?}, which says itself how much it sends",
                    self.kind()
                );
                refuse(format!("{flow_key}.size_bytes"), problem)
            }
            Self::Stream { .. } if flow.stack.read_rate_bps.is_some() => {
                let problem =
                    "contradicts a stream, which is read as it comes and played at its own rate";
                refuse(format!("{flow_key}.stack.read_rate_bps"), problem)
            }
            _ => Ok(()),
        }
    }
}

fn validate_writes(key: &str, at_ns: &[Nanos], bytes: &[u32]) -> Checked {
    if at_ns.is_empty() || at_ns.len() != bytes.len() {
        let problem = format!(
            "{} times and {} sizes; as many of each, and one at least",
            at_ns.len(),
            bytes.len()
        );
        return refuse(key, problem);
    }
    let mut last = 0;
    for (i, (&at, &octets)) in at_ns.iter().zip(bytes).enumerate() {
        within(&format!("{key}.at_ns[{i}]"), at, last, LONGEST_NS)?;
        within(&format!("{key}.bytes[{i}]"), octets, 1, MAX_WRITE_BYTES)?;
        last = at;
    }
    Ok(())
}

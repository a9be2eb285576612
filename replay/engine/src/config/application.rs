//! The sending applications of a flow and their parameters.
//!
//! Does not depend on how they run: see `crate::app`.

use serde::Deserialize;

use super::error::ConfigErrorKind;
use super::recorded::validate_recorded;
use super::validate::{MAX_NS, Place};
use super::{FlowConfig, StackParams};
use crate::sim::time::Nanos;

/// The sending application of a flow.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ApplicationConfig {
    /// Writes as much as the network accepts, up to the flow's size if it has one.
    Greedy {
        /// Octets of one write, of which a buffer that becomes full takes a part; none: as many as can leave. Needs a send buffer.
        write_bytes: Option<u32>,
        /// Time from the flow's start to the first write; 0: as soon as it is connected.
        #[serde(default)]
        first_write_ns: Nanos,
        /// Number of segments of the first write that leave before the application goes on with it, at least 1 and
        /// fewer than the write has. `None`: the window alone decides. Needs `write_bytes`.
        first_left_pkts: Option<u32>,
    },
    /// Alternates between periods on, in which it writes at a rate, and periods off.
    OnOff {
        /// Rate of the writes in a period on.
        rate_bps: f64,
        /// Mean duration of a period on.
        on_ns: Nanos,
        /// Mean duration of a period off.
        off_ns: Nanos,
        /// Distribution of both.
        #[serde(default)]
        spread: Spread,
        /// Octets of one write; none: a full segment.
        write_bytes: Option<u32>,
    },
    /// Sends a page for each request of the client, which reads it, thinks, and requests the next one.
    Pages {
        /// Mean size of a page.
        page_bytes: u64,
        /// Mean time between the last octet of a page and the next request.
        think_ns: Nanos,
        /// Distribution of both.
        #[serde(default)]
        spread: Spread,
        /// Octets of a request.
        #[serde(default = "default_request_bytes")]
        request_bytes: u16,
        /// Pages in all; none: until the run ends.
        pages: Option<u64>,
    },
    /// Writes media at their rate; the client plays them and stalls when its playout buffer is empty.
    Stream {
        /// Rate of the media.
        rate_bps: f64,
        /// Time between two writes.
        #[serde(default = "default_write_every_ns")]
        write_every_ns: Nanos,
        /// Media that must have arrived before playback starts.
        #[serde(default = "default_buffered_ns")]
        startup_ns: Nanos,
        /// Media that must have arrived before playback resumes after a stall.
        #[serde(default = "default_buffered_ns")]
        resume_ns: Nanos,
    },
    /// Repeats the writes of a captured application.
    Writes {
        /// Times since the flow's start, ascending.
        at_ns: Vec<Nanos>,
        /// Octets of each write.
        bytes: Vec<u32>,
    },
    /// Writes as much as the network accepts for some periods, and nothing between them.
    Bursts {
        /// Starts of the periods since the flow's start, ascending.
        from_ns: Vec<Nanos>,
        /// Their ends.
        until_ns: Vec<Nanos>,
    },
}

/// Distribution of a random quantity with a given mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Constant.
    #[default]
    Fixed,
    /// Exponential.
    Exponential,
    /// Pareto with shape 1.5: many small values, few very large ones (ns-2, `Traffic/Pareto`).
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
            first_left_pkts: None,
        }
    }
}

const MAX_PAGE_BYTES: u64 = 1 << 40;
const MAX_PAGES: u64 = 1 << 32;
const MAX_WRITE_BYTES: u32 = 1 << 30;
const MAX_REQUEST_BYTES: u16 = 1400;
const MIN_WRITE_INTERVAL_NS: Nanos = 1000;
/// Shortest mean of a period on. A shorter one is a mistake of the unit.
pub(super) const MIN_ON_NS: Nanos = 1000;

impl ApplicationConfig {
    /// Its name in a configuration.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Greedy { .. } => "greedy",
            Self::OnOff { .. } => "on_off",
            Self::Pages { .. } => "pages",
            Self::Stream { .. } => "stream",
            Self::Writes { .. } => "writes",
            Self::Bursts { .. } => "bursts",
        }
    }

    /// Checks the application of `flow`, which stands at `flow_place`.
    pub(super) fn validate(&self, flow_place: &Place, flow: &FlowConfig) {
        self.agrees_with(flow_place, flow);
        let place = flow_place.key("application");
        let time = |name: &str, value, min| place.key(name).within(value, min, MAX_NS);
        match self {
            Self::Greedy { .. } => self.validate_greedy(&place, flow),
            Self::OnOff {
                rate_bps,
                on_ns,
                off_ns,
                write_bytes,
                ..
            } => {
                place.key("rate_bps").rate(*rate_bps);
                time("on_ns", *on_ns, MIN_ON_NS);
                time("off_ns", *off_ns, 0);
                validate_write_bytes(&place, *write_bytes);
            }
            Self::Pages {
                page_bytes,
                think_ns,
                request_bytes,
                pages,
                ..
            } => {
                place
                    .key("page_bytes")
                    .within(*page_bytes, 1, MAX_PAGE_BYTES);
                time("think_ns", *think_ns, 0);
                let request = place.key("request_bytes");
                request.within(*request_bytes, 1, MAX_REQUEST_BYTES);
                place.key("pages").within_if_given(*pages, 1, MAX_PAGES);
            }
            Self::Stream {
                rate_bps,
                write_every_ns,
                startup_ns,
                resume_ns,
            } => {
                place.key("rate_bps").rate(*rate_bps);
                time("write_every_ns", *write_every_ns, MIN_WRITE_INTERVAL_NS);
                time("startup_ns", *startup_ns, 0);
                time("resume_ns", *resume_ns, 0);
            }
            Self::Writes { at_ns, bytes } => validate_writes(&place, at_ns, bytes),
            Self::Bursts { from_ns, until_ns } => validate_bursts(&place, from_ns, until_ns),
        }
    }

    /// Checks a bulk application of `flow`, which stands at `place`.
    fn validate_greedy(&self, place: &Place, flow: &FlowConfig) {
        let Self::Greedy {
            write_bytes,
            first_write_ns,
            first_left_pkts,
        } = self
        else {
            return;
        };
        let first_write = place.key("first_write_ns");
        first_write.within(*first_write_ns, 0, MAX_NS);
        validate_write_bytes(place, *write_bytes);
        if let Some(pkts) = *first_left_pkts {
            let smss_bytes = StackParams::resolve(flow.profile, &flow.stack).smss_bytes;
            validate_first_left(place, pkts, *write_bytes, smss_bytes);
        }
    }

    /// Refuses keys of `flow` that contradict this application.
    fn agrees_with(&self, place: &Place, flow: &FlowConfig) {
        if let Self::Greedy { write_bytes, .. } = self {
            if write_bytes.is_some() && flow.stack.send_buffer_bytes.is_none() {
                let application = place.key("application");
                let write = application.key("write_bytes");
                write.requires("send_buffer_bytes", None);
            }
            return;
        }
        if flow.size_bytes.is_some() {
            let application = self.kind();
            let kind = ConfigErrorKind::SizeOfApplication { application };
            place.key("size_bytes").refuse(kind);
        }
        if matches!(self, Self::Stream { .. }) && flow.stack.read_rate_bps.is_some() {
            let with = "application";
            let stack = place.key("stack");
            stack
                .key("read_rate_bps")
                .refuse(ConfigErrorKind::Conflicts { with });
        }
    }
}

fn validate_write_bytes(place: &Place, write_bytes: Option<u32>) {
    let octets = place.key("write_bytes");
    octets.within_if_given(write_bytes, 1, MAX_WRITE_BYTES);
}

/// A part of the first write leaves, and a part of it does not.
fn validate_first_left(place: &Place, pkts: u32, write_bytes: Option<u32>, smss_bytes: u32) {
    let first_left = place.key("first_left_pkts");
    let Some(write_bytes) = write_bytes else {
        return first_left.requires("write_bytes", None);
    };
    let max = write_bytes.saturating_sub(1) / smss_bytes.max(1);
    if max > 0 {
        first_left.within(pkts, 1, max);
    } else {
        let with = "write_bytes";
        first_left.refuse(ConfigErrorKind::Conflicts { with });
    }
}

fn validate_bursts(place: &Place, from_ns: &[Nanos], until_ns: &[Nanos]) {
    if from_ns.is_empty() || from_ns.len() != until_ns.len() {
        place.refuse(ConfigErrorKind::UnequalLengths {
            keys: ["from_ns", "until_ns"],
            lengths: [from_ns.len(), until_ns.len()],
        });
    }
    let (starts, ends) = (place.key("from_ns"), place.key("until_ns"));
    let mut last = 0;
    for (i, (&from, &until)) in from_ns.iter().zip(until_ns).enumerate() {
        if !starts.index(i).within(from, last, MAX_NS) || !ends.index(i).within(until, from, MAX_NS)
        {
            break;
        }
        last = until;
    }
}

fn validate_writes(place: &Place, at_ns: &[Nanos], bytes: &[u32]) {
    if at_ns.is_empty() && bytes.is_empty() {
        place.refuse(ConfigErrorKind::UnequalLengths {
            keys: ["at_ns", "bytes"],
            lengths: [0, 0],
        });
    }
    validate_recorded(place, at_ns, bytes, (1, MAX_WRITE_BYTES));
}

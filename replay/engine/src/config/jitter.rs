//! Variation of a link's delay: its law and its size, or what was recorded of it.
//!
//! Must not know links. What is drawn is added to the propagation delay, packet by packet.

use serde::Deserialize;

use super::validate::{MAX_NS, Place};
use crate::sim::time::Nanos;

/// Law of what is added to the delay of each packet; never less than nothing.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum JitterConfig {
    /// Anything up to `spread_ns` alike.
    Uniform {
        /// The most.
        spread_ns: Nanos,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        spread_ns: Nanos,
    },
    /// The size of a normal number of mean 0.
    HalfNormal {
        /// Its standard deviation; the mean is sqrt(2/π) of it.
        spread_ns: Nanos,
    },
    /// What was recorded, in the order in which packets leave the loss stage; those beyond it wait for nothing.
    Recorded {
        /// One per packet.
        delays_ns: Vec<Nanos>,
    },
}

impl JitterConfig {
    pub(super) fn validate(&self, place: &Place) {
        match self {
            Self::Uniform { spread_ns }
            | Self::Exponential { spread_ns }
            | Self::HalfNormal { spread_ns } => {
                place.key("spread_ns").within(*spread_ns, 1, MAX_NS);
            }
            Self::Recorded { delays_ns } => {
                let list = place.key("delays_ns");
                for (i, delay_ns) in delays_ns.iter().enumerate() {
                    if !list.index(i).within(*delay_ns, 0, MAX_NS) {
                        break;
                    }
                }
            }
        }
    }
}

//! Jitter of a link: the distribution of what is added to the propagation delay of each packet, or a recording of it.
//!
//! Does not depend on links.

use serde::Deserialize;

use super::validate::{MAX_NS, Place};
use crate::sim::time::Nanos;

/// Distribution of what is added to the delay of each packet; never negative.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum JitterConfig {
    /// Uniform from 0 to `spread_ns`.
    Uniform {
        /// The maximum.
        spread_ns: Nanos,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        spread_ns: Nanos,
    },
    /// The absolute value of a normal variable with mean 0.
    HalfNormal {
        /// Standard deviation of the normal variable; the mean is sqrt(2/π) of it.
        spread_ns: Nanos,
    },
    /// As recorded, in the order in which packets leave the loss stage; 0 after the last one.
    Recorded {
        /// One value per packet.
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

//! What feeds a flow: the kinds of sending application and their parameters.
//!
//! Must not know how they run: `crate::application` does.

use serde::Deserialize;

/// The sending application of a flow.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ApplicationConfig {
    /// Writes as much as the network takes, up to the flow's size if it has one.
    Greedy {
        /// Octets that one call writes; none: whatever can leave. Needs a send buffer.
        #[serde(default)]
        write_bytes: Option<u32>,
    },
}

impl Default for ApplicationConfig {
    fn default() -> Self {
        Self::Greedy { write_bytes: None }
    }
}

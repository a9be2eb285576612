//! Packets of a capture as cross traffic, whatever sent them, and what recorded lists of times and sizes must be.
//!
//! Does not depend on how they run: see `crate::net::recorded`.

use serde::Deserialize;

use super::DATAGRAM_HEADER_BYTES;
use super::error::ConfigErrorKind;
use super::validate::{MAX_NS, Place};
use crate::sim::time::Nanos;

/// Packets of a capture, which leave as they did.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedConfig {
    /// Times since the start of the run, ascending.
    pub at_ns: Vec<Nanos>,
    /// Octets of each IP packet.
    pub bytes: Vec<u32>,
}

impl RecordedConfig {
    /// Refuses lists of unequal length, times that do not ascend, and packets of no octets or more than `max_bytes`.
    pub(super) fn validate(&self, place: &Place, max_bytes: u16) {
        let sizes = (u32::from(DATAGRAM_HEADER_BYTES) + 1, u32::from(max_bytes));
        validate_recorded(place, &self.at_ns, &self.bytes, sizes);
    }
}

/// Refuses recorded lists `at_ns` and `bytes` of unequal length, times that do not ascend, and sizes beyond `min` and `max`.
pub(super) fn validate_recorded(
    place: &Place,
    at_ns: &[Nanos],
    bytes: &[u32],
    (min, max): (u32, u32),
) {
    if at_ns.len() != bytes.len() {
        place.refuse(ConfigErrorKind::UnequalLengths {
            keys: ["at_ns", "bytes"],
            lengths: [at_ns.len(), bytes.len()],
        });
    }
    let (times, sizes) = (place.key("at_ns"), place.key("bytes"));
    let mut last = 0;
    for (i, &at) in at_ns.iter().enumerate() {
        if !times.index(i).within(at, last, MAX_NS) {
            break;
        }
        last = at;
    }
    for (i, &octets) in bytes.iter().enumerate() {
        if !sizes.index(i).within(octets, min, max) {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn recorded_packets_ascend_in_time_and_have_a_size_each() {
        let key = |recorded: &str| {
            let config = format!(
                r#"{{"duration_ns": 1000, "path": {{"nodes": ["a", "b"], "links": [{{"name": "ab",
                    "forward": {{"delay_ns": 1}}, "reverse": {{"delay_ns": 1}}}}]}},
                    "flows": [{{"name": "f", "variant": "sack"}}],
                    "datagrams": [{{"name": "d", "packet_bytes": 500, "rate_bps": 1e6, {recorded}}}]}}"#
            );
            let config: Config = serde_json::from_str(&config).expect("well-formed");
            config.validate().err().map(|errors| {
                let error = errors.into_vec().swap_remove(0);
                error.path.to_string()
            })
        };
        let bursts =
            r#""bursts": {"on_ns": 5000, "off_ns": 5}, "recorded": {"at_ns": [1], "bytes": [500]}"#;
        for (recorded, refused) in [
            (
                r#""recorded": {"at_ns": [1, 1, 7], "bytes": [29, 500, 60]}"#,
                None,
            ),
            (r#""recorded": {"at_ns": [], "bytes": []}"#, None),
            (r#""recorded": {"at_ns": [1], "bytes": []}"#, Some("")),
            (
                r#""recorded": {"at_ns": [2, 1], "bytes": [60, 60]}"#,
                Some(".at_ns[1]"),
            ),
            (
                r#""recorded": {"at_ns": [2, 3], "bytes": [60, 501]}"#,
                Some(".bytes[1]"),
            ),
            (
                r#""recorded": {"at_ns": [2], "bytes": [28]}"#,
                Some(".bytes[0]"),
            ),
            (bursts, Some("")),
        ] {
            let expected = refused.map(|rest| format!("datagrams[0].recorded{rest}"));
            assert_eq!(key(recorded), expected, "{recorded}");
        }
    }
}

//! Cross traffic of datagrams: sources of constant rate, on/off sources and recorded packets, without congestion control.
//!
//! Does not depend on how they run: see `crate::net::cross_traffic`.

use serde::Deserialize;

use super::application::MIN_ON_NS;
use super::error::ConfigErrorKind;
use super::queue::MAX_DSCP;
use super::validate::{MAX_NS, Place};
use super::{Config, DirectionConfig, JitterConfig, RecordedConfig, Spread, Tree};
use crate::sim::time::{Nanos, SECOND};

/// A source of datagrams and their destination.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramConfig {
    /// Name, for reports.
    pub name: String,
    /// When it starts.
    #[serde(default)]
    pub start_ns: Nanos,
    /// When it stops; none: at the end of the run.
    pub stop_ns: Option<Nanos>,
    /// Node that sends; none: the first one of the path.
    pub from: Option<String>,
    /// Node that receives, in either direction from the sending one; none: the last one of the path.
    pub to: Option<String>,
    /// Differentiated services code point of its packets (RFC 2474).
    #[serde(default)]
    pub dscp: u8,
    /// Octets of the IP packet of a datagram; of recorded ones the maximum.
    pub packet_bytes: u16,
    /// Rate of IP octets in a period on; of recorded ones no less than their mean rate.
    pub rate_bps: f64,
    /// Periods on and off; none: always on.
    pub bursts: Option<BurstConfig>,
    /// Packets of a capture, which leave as they did; none: at a rate.
    pub recorded: Option<RecordedConfig>,
}

/// Periods on and off.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstConfig {
    /// Mean duration of a period on.
    pub on_ns: Nanos,
    /// Mean duration of a period off.
    pub off_ns: Nanos,
    /// Distribution of both.
    #[serde(default)]
    pub spread: Spread,
}

/// IPv4 and UDP header.
pub const DATAGRAM_HEADER_BYTES: u16 = 28;

/// Maximum number of datagrams of one source in flight, about 1 GiB of memory; no window limits them.
const MAX_IN_FLIGHT_PKTS: u64 = 10_000_000;

impl DatagramConfig {
    pub(super) fn validate(&self, place: &Place, config: &Config, tree: Option<&Tree>) {
        let start = place.key("start_ns");
        start.within(self.start_ns, 0, config.duration_ns);
        let stop = place.key("stop_ns");
        stop.within_if_given(self.stop_ns, self.start_ns.saturating_add(1), MAX_NS);
        place.key("dscp").within(self.dscp, 0, MAX_DSCP);
        let ends = (config.path).ends_at(place, self.from.as_deref(), self.to.as_deref());
        if let (Some((from, to)), Some(tree)) = (ends, tree) {
            let way = tree.way(from, to);
            let directions = way.into_iter().map(|number| config.path.direction(number));
            self.limit_flight(&place.key("rate_bps"), config.duration_ns, directions);
        }
        let packet = place.key("packet_bytes");
        packet.within(self.packet_bytes, DATAGRAM_HEADER_BYTES + 1, u16::MAX);
        place.key("rate_bps").rate(self.rate_bps);
        if let Some(bursts) = &self.bursts {
            let place = place.key("bursts");
            place.key("on_ns").within(bursts.on_ns, MIN_ON_NS, MAX_NS);
            place.key("off_ns").within(bursts.off_ns, 0, MAX_NS);
        }
        if let Some(recorded) = &self.recorded {
            let place = place.key("recorded");
            if self.bursts.is_some() {
                place.refuse(ConfigErrorKind::Conflicts { with: "bursts" });
            }
            recorded.validate(&place, self.packet_bytes);
        }
    }

    /// Refuses a rate that puts more datagrams on the way over `directions` than memory may be spent on.
    fn limit_flight<'a>(
        &self,
        place: &Place,
        duration_ns: Nanos,
        directions: impl Iterator<Item = &'a DirectionConfig>,
    ) {
        let bits = f64::from(self.packet_bytes) * 8.0;
        let (mut bps, mut packets) = (self.rate_bps, 0.0);
        for direction in directions {
            bps = direction.max_rate_bps().map_or(bps, |link| link.min(bps));
            let stay_ns = direction.max_stay_ns().min(duration_ns);
            packets += bps / bits * stay_ns as f64 / SECOND as f64;
        }
        if packets > MAX_IN_FLIGHT_PKTS as f64 {
            place.refuse(ConfigErrorKind::TooManyPacketsInFlight {
                packets: packets as u64,
                max: MAX_IN_FLIGHT_PKTS,
            });
        }
    }
}

impl DirectionConfig {
    /// The highest rate at any time; none if there is a time without a serialiser.
    fn max_rate_bps(&self) -> Option<f64> {
        let first = match &self.rate_trace {
            Some(trace) => trace.rates_bps.iter().copied().reduce(f64::max),
            None => self.rate_bps,
        };
        let scheduled = self.schedule.iter().filter_map(|change| change.rate_bps);
        Some(scheduled.fold(first?, f64::max))
    }

    /// The longest time that a packet spends beyond the serialiser: propagation and jitter, and a hold if there is no
    /// serialiser whose queue would limit the packets that wait.
    fn max_stay_ns(&self) -> Nanos {
        let scheduled = self.schedule.iter().filter_map(|change| change.delay_ns);
        let delay = scheduled.fold(self.delay_ns, Nanos::max);
        let jitter = match &self.jitter {
            None => 0,
            Some(
                JitterConfig::Uniform { spread_ns }
                | JitterConfig::Exponential { spread_ns }
                | JitterConfig::HalfNormal { spread_ns },
            ) => *spread_ns,
            Some(JitterConfig::Recorded { delays_ns }) => {
                delays_ns.iter().copied().max().unwrap_or(0)
            }
        };
        let hold = match self.max_rate_bps() {
            Some(_) => 0,
            None => self.longest_hold_ns(),
        };
        delay.saturating_add(jitter).saturating_add(hold)
    }

    fn longest_hold_ns(&self) -> Nanos {
        let (mut since, mut longest) = (None, 0);
        for change in &self.schedule {
            match change.hold {
                Some(true) => since = since.or(Some(change.at_ns)),
                Some(false) => {
                    let held = since.take().map_or(0, |at| change.at_ns.saturating_sub(at));
                    longest = longest.max(held);
                }
                None => {}
            }
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PathStep;

    /// Key of the first error of a source of `rate_bps` from `ends` over two links, `link` and one of 1 s.
    fn refused(rate_bps: f64, ends: &str, link: &str) -> Option<String> {
        let other = r#"{"delay_ns": 1000000000}"#;
        let config = format!(
            r#"{{"duration_ns": 100000000000, "path": {{"nodes": ["a", "b", "c"], "links": [
                {{"name": "ab", "forward": {link}, "reverse": {link}}},
                {{"name": "bc", "forward": {other}, "reverse": {other}}}]}},
                "flows": [{{"name": "f", "variant": "sack"}}],
                "datagrams": [{{"name": "d", {ends} "packet_bytes": 125, "rate_bps": {rate_bps}}}]}}"#
        );
        let config: Config = serde_json::from_str(&config).expect("well-formed");
        let errors = config.validate().err()?.into_vec();
        let PathStep::Key(key) = errors[0].path.0.last()? else {
            return None;
        };
        Some(format!("{key}: {:?}", errors[0].kind))
    }

    /// 1 Gbit/s are a million datagrams a second.
    #[test]
    fn datagrams_in_flight_are_limited() {
        let rated = r#"{"rate_bps": 1e9, "delay_ns": 1000}"#;
        let long = r#"{"delay_ns": 9000000000}"#;
        let held = r#"{"delay_ns": 1000, "schedule": [{"at_ns": 0, "hold": true}, {"at_ns": 50000000000, "hold": false}]}"#;
        let jitter =
            r#"{"delay_ns": 1000, "jitter": {"kind": "uniform", "spread_ns": 20000000000}}"#;
        for (rate_bps, ends, link, allowed) in [
            (9.9e9, r#""from": "b","#, rated, true),
            (1.1e10, r#""from": "b","#, rated, false),
            (1e13, r#""from": "b", "to": "a","#, rated, true),
            // The first link limits what reaches the second, in the direction of the datagrams.
            (1e13, "", rated, true),
            (1e13, r#""from": "c", "to": "a","#, rated, false),
            (1e9, "", long, true),
            (1.01e9, "", long, false),
            (1e9, "", held, false),
            (1e8, "", held, true),
            (1e9, "", jitter, false),
        ] {
            let found = refused(rate_bps, ends, link);
            let expected = |found: &String| found.starts_with("rate_bps: TooManyPacketsInFlight ");
            assert_eq!(
                found.is_none(),
                allowed,
                "{rate_bps} {ends} {link}: {found:?}"
            );
            assert!(found.iter().all(expected), "{found:?}");
        }
    }
}

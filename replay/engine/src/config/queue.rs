//! Queue disciplines of a link and their parameters, with the defaults of their sources.
//!
//! Does not depend on how a queue works: see `net/queue/`. Read docs/queues.md first.

use std::ops::Range;

use serde::Deserialize;

use super::error::{ConfigErrorKind, Relation};
use super::validate::{MAX_PKTS, Place};
use crate::sim::time::{MILLISECOND, Nanos, SECOND};

/// A queue discipline: which packets wait, in which order they leave, and which are dropped or marked.
///
/// The packet in service does not count towards a limit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QueueConfig {
    /// First in, first out; an arriving packet that does not fit is dropped.
    DropTail(DropTailConfig),
    /// Random early detection (Floyd and Jacobson 1993, gentle).
    Red(RedConfig),
    /// Proportional integral controller enhanced (RFC 8033).
    Pie(PieConfig),
    /// Controlled delay (RFC 8289).
    Codel(CodelConfig),
    /// Strict priority by DSCP.
    Priority(PriorityConfig),
    /// Deficit round robin over flows (Shreedhar and Varghese 1996).
    Drr(DrrConfig),
    /// Drop-tail with ACK filtering: not of a link's own configuration, but of a proxy next to it.
    #[serde(skip)]
    AckFilter(AckFilterConfig),
}

/// Parameters of a queue that filters ACKs.
#[derive(Clone, Debug, PartialEq)]
pub struct AckFilterConfig {
    /// Its limit.
    pub queue: DropTailConfig,
    /// Legs whose ACKs it filters.
    pub legs: Vec<Range<u16>>,
}

/// Limit of a queue unless the scenario gives one.
const DEFAULT_LIMIT_PKTS: u32 = 1000;

/// Parameters of drop-tail: one of two limits.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DropTailConfig {
    /// Limit in packets; default 1000, none if `limit_bytes` is given.
    pub limit_pkts: Option<u32>,
    /// Limit in octets.
    pub limit_bytes: Option<u64>,
}

/// Parameters of RED. Defaults: S. Floyd, "RED: Discussions of Setting Parameters", 1997.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedConfig {
    /// Limit in packets.
    pub limit_pkts: u32,
    /// Average queue below which no packet is dropped or marked.
    pub min_pkts: f64,
    /// Average queue at which the probability is `max_probability`.
    pub max_pkts: f64,
    /// Probability of a drop or mark at `max_pkts`.
    pub max_probability: f64,
    /// Weight w_q of a sample in the average.
    pub weight: f64,
    /// Between `max_pkts` and twice that the probability rises to 1 instead of jumping (Floyd 2000).
    pub gentle: bool,
    /// Typical packet size, which converts idle time to packets.
    pub mean_packet_bytes: u32,
    /// Mark packets of ECN-capable transports instead of dropping them (RFC 3168 §7).
    pub ecn: bool,
}

impl Default for RedConfig {
    fn default() -> Self {
        Self {
            limit_pkts: DEFAULT_LIMIT_PKTS,
            min_pkts: 5.0,
            max_pkts: 15.0,
            max_probability: 0.1,
            weight: 0.002,
            gentle: true,
            mean_packet_bytes: 1500,
            ecn: true,
        }
    }
}

/// Parameters of PIE. Defaults: RFC 8033 §4.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PieConfig {
    /// Limit in packets.
    pub limit_pkts: u32,
    /// Target queueing delay.
    pub target_ns: Nanos,
    /// Interval of the updates of the probability.
    pub update_ns: Nanos,
    /// Duration of a burst that is allowed without drops.
    pub max_burst_ns: Nanos,
    /// Weight of the deviation from the target, per second.
    pub alpha: f64,
    /// Weight of the trend of the delay, per second.
    pub beta: f64,
    /// Typical packet size: two such packets may always wait.
    pub mean_packet_bytes: u32,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
    /// Probability from which ECN-capable packets are dropped as well.
    pub ecn_threshold: f64,
}

impl Default for PieConfig {
    fn default() -> Self {
        Self {
            limit_pkts: DEFAULT_LIMIT_PKTS,
            target_ns: 15 * MILLISECOND,
            update_ns: 15 * MILLISECOND,
            max_burst_ns: 150 * MILLISECOND,
            alpha: 0.125,
            beta: 1.25,
            mean_packet_bytes: 1500,
            ecn: true,
            ecn_threshold: 0.1,
        }
    }
}

/// Parameters of CoDel. Defaults: RFC 8289 §4.2 and §4.3.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodelConfig {
    /// Limit in packets.
    pub limit_pkts: u32,
    /// Acceptable standing delay.
    pub target_ns: Nanos,
    /// Time above the target before the first drop: a round-trip time of the slowest connections.
    pub interval_ns: Nanos,
    /// Octets that may always wait: one full packet.
    pub mtu_bytes: u32,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self {
            limit_pkts: DEFAULT_LIMIT_PKTS,
            target_ns: 5 * MILLISECOND,
            interval_ns: 100 * MILLISECOND,
            mtu_bytes: 1500,
            ecn: true,
        }
    }
}

/// Parameters of strict priority.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PriorityConfig {
    /// Code points of each class, in the order of priority. Code points that no class names have the lowest priority.
    pub classes: Vec<Vec<u8>>,
    /// Limit of each class in packets.
    pub limit_pkts: u32,
}

/// CS7, CS6 (RFC 4594 §3.1: routing) and EF (RFC 3246).
const URGENT_DSCP: [u8; 3] = [56, 48, 46];
/// Maximum of the six-bit code point (RFC 2474 §3).
pub const MAX_DSCP: u8 = 63;

impl Default for PriorityConfig {
    fn default() -> Self {
        Self {
            classes: vec![URGENT_DSCP.to_vec()],
            limit_pkts: DEFAULT_LIMIT_PKTS,
        }
    }
}

/// Parameters of deficit round robin.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DrrConfig {
    /// Octets that each flow may send per round; less than a full packet may leave a round without any packet.
    pub quantum_bytes: u32,
    /// Limit in packets, of all flows together.
    pub limit_pkts: u32,
}

impl Default for DrrConfig {
    fn default() -> Self {
        Self {
            quantum_bytes: 1500,
            limit_pkts: DEFAULT_LIMIT_PKTS,
        }
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self::DropTail(DropTailConfig::default())
    }
}

impl QueueConfig {
    /// Drop-tail with a limit of `limit_pkts`.
    pub fn packets(limit_pkts: u32) -> Self {
        Self::DropTail(DropTailConfig {
            limit_pkts: Some(limit_pkts),
            limit_bytes: None,
        })
    }

    /// Its name in scenarios.
    pub fn name(&self) -> &'static str {
        match self {
            Self::DropTail(_) => "drop_tail",
            Self::Red(_) => "red",
            Self::Pie(_) => "pie",
            Self::Codel(_) => "codel",
            Self::Priority(_) => "priority",
            Self::Drr(_) => "drr",
            Self::AckFilter(_) => "ack_filter",
        }
    }

    pub(super) fn validate(&self, place: &Place) {
        match self {
            Self::DropTail(queue) => queue.validate(place),
            Self::Red(queue) => queue.validate(place),
            Self::Pie(queue) => queue.validate(place),
            Self::Codel(queue) => queue.validate(place),
            Self::Priority(queue) => queue.validate(place),
            Self::Drr(queue) => queue.validate(place),
            Self::AckFilter(_) => {}
        }
    }
}

/// Limit of a queue in octets: `MAX_PKTS` packets of 64 KiB.
const MAX_BYTES: u64 = MAX_PKTS << 16;

impl DropTailConfig {
    /// The limit in packets, if it is one.
    pub fn packets(&self) -> Option<u32> {
        let default = self.limit_bytes.is_none().then_some(DEFAULT_LIMIT_PKTS);
        self.limit_pkts.or(default)
    }

    fn validate(&self, place: &Place) {
        if self.limit_pkts.is_some() && self.limit_bytes.is_some() {
            place.refuse(ConfigErrorKind::Exclusive {
                keys: ["limit_pkts", "limit_bytes"],
            });
        }
        validate_limit(place, self.limit_pkts.unwrap_or(0));
        let limit = place.key("limit_bytes");
        limit.within_if_given(self.limit_bytes, 0, MAX_BYTES);
    }
}

impl RedConfig {
    fn validate(&self, place: &Place) {
        validate_limit(place, self.limit_pkts);
        let max = MAX_PKTS as f64;
        place.key("min_pkts").within(self.min_pkts, 0.0, max);
        place.key("max_pkts").within(self.max_pkts, 0.0, max);
        if self.max_pkts <= self.min_pkts {
            place.key("max_pkts").refuse(ConfigErrorKind::Order {
                value: self.max_pkts.into(),
                must_be: Relation::Above,
                other: "min_pkts",
                other_value: self.min_pkts.into(),
                profile: None,
            });
        }
        let probability = place.key("max_probability");
        probability.probability(self.max_probability);
        place.key("weight").probability(self.weight);
        let mean = place.key("mean_packet_bytes");
        validate_packet_size(&mean, self.mean_packet_bytes);
    }
}

/// Weights of PIE's controller, far above any that is stable.
const MAX_WEIGHT: f64 = 1000.0;

impl PieConfig {
    fn validate(&self, place: &Place) {
        validate_limit(place, self.limit_pkts);
        validate_control_time(&place.key("target_ns"), self.target_ns);
        validate_control_time(&place.key("update_ns"), self.update_ns);
        let burst = place.key("max_burst_ns");
        burst.within(self.max_burst_ns, 0, MAX_CONTROL_NS);
        place.key("alpha").within(self.alpha, 0.0, MAX_WEIGHT);
        place.key("beta").within(self.beta, 0.0, MAX_WEIGHT);
        let mean = place.key("mean_packet_bytes");
        validate_packet_size(&mean, self.mean_packet_bytes);
        place.key("ecn_threshold").probability(self.ecn_threshold);
    }
}

impl CodelConfig {
    fn validate(&self, place: &Place) {
        validate_limit(place, self.limit_pkts);
        validate_control_time(&place.key("target_ns"), self.target_ns);
        let interval = place.key("interval_ns");
        validate_control_time(&interval, self.interval_ns);
        if self.interval_ns < self.target_ns {
            interval.refuse(ConfigErrorKind::Order {
                value: self.interval_ns.into(),
                must_be: Relation::AtLeast,
                other: "target_ns",
                other_value: self.target_ns.into(),
                profile: None,
            });
        }
        validate_packet_size(&place.key("mtu_bytes"), self.mtu_bytes);
    }
}

/// Maximum number of classes without the last one: there are 64 code points.
const MAX_CLASSES: usize = 63;

impl PriorityConfig {
    fn validate(&self, place: &Place) {
        validate_limit(place, self.limit_pkts);
        let classes = place.key("classes");
        classes.within(self.classes.len(), 1, MAX_CLASSES);
        let mut seen = Vec::new();
        for (i, class) in self.classes.iter().enumerate() {
            for &dscp in class {
                classes.index(i).within(dscp, 0, MAX_DSCP);
                if seen.contains(&dscp) {
                    let duplicate = ConfigErrorKind::DuplicateDscp { dscp };
                    classes.index(i).refuse(duplicate);
                } else {
                    seen.push(dscp);
                }
            }
        }
    }
}

impl DrrConfig {
    fn validate(&self, place: &Place) {
        validate_limit(place, self.limit_pkts);
        validate_packet_size(&place.key("quantum_bytes"), self.quantum_bytes);
    }
}

/// Longest time of a controller: a longer one is a mistake of the unit.
const MAX_CONTROL_NS: Nanos = 60 * SECOND;
/// Shortest time of a controller: a shorter one would update more often than packets arrive.
const MIN_CONTROL_NS: Nanos = 1000;
const MAX_PACKET_BYTES: u32 = 65_535;

fn validate_control_time(place: &Place, time: Nanos) {
    place.within(time, MIN_CONTROL_NS, MAX_CONTROL_NS);
}

fn validate_packet_size(place: &Place, bytes: u32) {
    place.within(bytes, 1, MAX_PACKET_BYTES);
}

fn validate_limit(place: &Place, limit_pkts: u32) {
    let limit = place.key("limit_pkts");
    limit.within(u64::from(limit_pkts), 0, MAX_PKTS);
}

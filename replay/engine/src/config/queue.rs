//! Queue disciplines of a link and their parameters, with the defaults that their sources give.
//!
//! Does not depend on how a queue works: `queue/` does. Read docs/queues.md first.

use serde::Deserialize;

use super::validate::{Checked, MAX_PKTS, probability, refuse, within};
use crate::sim::time::{MILLISECOND, Nanos, SECOND};

/// Which packets wait, which go first and which are dropped or marked.
///
/// The packet in service never counts in a limit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QueueConfig {
    /// First in, first out; what does not fit is dropped.
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
}

/// Packets that may wait where a scenario does not say.
const DEFAULT_LIMIT_PKTS: u32 = 1000;

/// Parameters of drop-tail: one of the two limits.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DropTailConfig {
    /// Packets that may wait; none with `limit_bytes`, else 1000.
    pub limit_pkts: Option<u32>,
    /// Octets that may wait.
    pub limit_bytes: Option<u64>,
}

/// Parameters of RED. Defaults: S. Floyd, "RED: Discussions of Setting Parameters", 1997.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedConfig {
    /// Packets that may wait.
    pub limit_pkts: u32,
    /// Averaged queue below which nothing is signalled.
    pub min_pkts: f64,
    /// Averaged queue at which the probability reaches `max_probability`.
    pub max_pkts: f64,
    /// Probability of a signal at `max_pkts`.
    pub max_probability: f64,
    /// Weight w_q of one sample in the average.
    pub weight: f64,
    /// From `max_pkts` to twice that the probability climbs to 1, instead of jumping (Floyd 2000).
    pub gentle: bool,
    /// Size of the typical packet, by which idle time counts.
    pub mean_packet_bytes: u32,
    /// Mark packets of ECN-capable transports where others are dropped (RFC 3168 §7).
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
    /// Packets that may wait.
    pub limit_pkts: u32,
    /// Queueing delay to hold.
    pub target_ns: Nanos,
    /// Time between two updates of the probability.
    pub update_ns: Nanos,
    /// Time for which a burst passes untouched.
    pub max_burst_ns: Nanos,
    /// Weight of the distance from the target, per second.
    pub alpha: f64,
    /// Weight of the trend, per second.
    pub beta: f64,
    /// Size of the typical packet: two of them may always wait.
    pub mean_packet_bytes: u32,
    /// Mark packets of ECN-capable transports where others are dropped.
    pub ecn: bool,
    /// Probability from which even they are dropped.
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
    /// Packets that may wait.
    pub limit_pkts: u32,
    /// Acceptable standing delay.
    pub target_ns: Nanos,
    /// Time above the target after which it drops: a round trip of the slowest connections.
    pub interval_ns: Nanos,
    /// Octets that may always wait: a full packet.
    pub mtu_bytes: u32,
    /// Mark packets of ECN-capable transports where others are dropped.
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
    /// DSCP values of each class, the first class served before all others; what no class names goes last.
    pub classes: Vec<Vec<u8>>,
    /// Packets that may wait in each class.
    pub limit_pkts: u32,
}

/// CS7, CS6 (RFC 4594 §3.1: routing) and EF (RFC 3246).
const URGENT_DSCP: [u8; 3] = [56, 48, 46];
/// Maximum DSCP: six bits (RFC 2474 §3).
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
    /// Octets that each flow may send per round; at least a full packet, or a round may send nothing.
    pub quantum_bytes: u32,
    /// Packets that may wait, of all flows together.
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
    /// Drop-tail with room for `limit_pkts`.
    pub fn packets(limit_pkts: u32) -> Self {
        Self::DropTail(DropTailConfig {
            limit_pkts: Some(limit_pkts),
            limit_bytes: None,
        })
    }

    /// Its name in a scenario.
    pub fn name(&self) -> &'static str {
        match self {
            Self::DropTail(_) => "drop_tail",
            Self::Red(_) => "red",
            Self::Pie(_) => "pie",
            Self::Codel(_) => "codel",
            Self::Priority(_) => "priority",
            Self::Drr(_) => "drr",
        }
    }

    pub(super) fn validate(&self, key: &str) -> Checked {
        match self {
            Self::DropTail(queue) => queue.validate(key),
            Self::Red(queue) => queue.validate(key),
            Self::Pie(queue) => queue.validate(key),
            Self::Codel(queue) => queue.validate(key),
            Self::Priority(queue) => queue.validate(key),
            Self::Drr(queue) => queue.validate(key),
        }
    }
}

impl DropTailConfig {
    /// The limit in packets, if it is one.
    pub fn packets(&self) -> Option<u32> {
        let default = self.limit_bytes.is_none().then_some(DEFAULT_LIMIT_PKTS);
        self.limit_pkts.or(default)
    }

    fn validate(&self, key: &str) -> Checked {
        if self.limit_pkts.is_some() && self.limit_bytes.is_some() {
            return refuse(key, "give limit_pkts or limit_bytes, not both");
        }
        limit(key, self.limit_pkts.unwrap_or(0))?;
        within(
            &format!("{key}.limit_bytes"),
            self.limit_bytes.unwrap_or(0),
            0,
            MAX_PKTS << 16,
        )
    }
}

impl RedConfig {
    fn validate(&self, key: &str) -> Checked {
        limit(key, self.limit_pkts)?;
        let max = MAX_PKTS as f64;
        within(&format!("{key}.min_pkts"), self.min_pkts, 0.0, max)?;
        within(&format!("{key}.max_pkts"), self.max_pkts, 0.0, max)?;
        if self.max_pkts <= self.min_pkts {
            let problem = format!(
                "{} is not above min_pkts = {}",
                self.max_pkts, self.min_pkts
            );
            return refuse(format!("{key}.max_pkts"), problem);
        }
        probability(&format!("{key}.max_probability"), self.max_probability)?;
        probability(&format!("{key}.weight"), self.weight)?;
        packet_size(&format!("{key}.mean_packet_bytes"), self.mean_packet_bytes)
    }
}

impl PieConfig {
    fn validate(&self, key: &str) -> Checked {
        limit(key, self.limit_pkts)?;
        control_time(&format!("{key}.target_ns"), self.target_ns)?;
        control_time(&format!("{key}.update_ns"), self.update_ns)?;
        within(
            &format!("{key}.max_burst_ns"),
            self.max_burst_ns,
            0,
            LONGEST_CONTROL_NS,
        )?;
        within(&format!("{key}.alpha"), self.alpha, 0.0, 1000.0)?;
        within(&format!("{key}.beta"), self.beta, 0.0, 1000.0)?;
        packet_size(&format!("{key}.mean_packet_bytes"), self.mean_packet_bytes)?;
        probability(&format!("{key}.ecn_threshold"), self.ecn_threshold)
    }
}

impl CodelConfig {
    fn validate(&self, key: &str) -> Checked {
        limit(key, self.limit_pkts)?;
        control_time(&format!("{key}.target_ns"), self.target_ns)?;
        control_time(&format!("{key}.interval_ns"), self.interval_ns)?;
        if self.interval_ns < self.target_ns {
            let (interval, target) = (self.interval_ns, self.target_ns);
            let problem = format!("{interval} is less than target_ns = {target}");
            return refuse(format!("{key}.interval_ns"), problem);
        }
        packet_size(&format!("{key}.mtu_bytes"), self.mtu_bytes)
    }
}

/// Most classes besides the last one.
const MAX_CLASSES: usize = 63;

impl PriorityConfig {
    fn validate(&self, key: &str) -> Checked {
        limit(key, self.limit_pkts)?;
        within(
            &format!("{key}.classes"),
            self.classes.len(),
            1,
            MAX_CLASSES,
        )?;
        let mut seen = Vec::new();
        for (i, class) in self.classes.iter().enumerate() {
            for &dscp in class {
                let key = format!("{key}.classes[{i}]");
                within(&key, dscp, 0, MAX_DSCP)?;
                if seen.contains(&dscp) {
                    return refuse(key, format!("DSCP {dscp} is named twice"));
                }
                seen.push(dscp);
            }
        }
        Ok(())
    }
}

impl DrrConfig {
    fn validate(&self, key: &str) -> Checked {
        limit(key, self.limit_pkts)?;
        packet_size(&format!("{key}.quantum_bytes"), self.quantum_bytes)
    }
}

/// Longest time of a controller: more is a slip of the unit.
const LONGEST_CONTROL_NS: Nanos = 60 * SECOND;
/// Shortest: less would update more often than packets come.
const SHORTEST_CONTROL_NS: Nanos = 1000;

fn control_time(key: &str, time: Nanos) -> Checked {
    within(key, time, SHORTEST_CONTROL_NS, LONGEST_CONTROL_NS)
}

fn packet_size(key: &str, bytes: u32) -> Checked {
    within(key, bytes, 1, 65_535)
}

fn limit(key: &str, limit_pkts: u32) -> Checked {
    within(
        &format!("{key}.limit_pkts"),
        u64::from(limit_pkts),
        0,
        MAX_PKTS,
    )
}

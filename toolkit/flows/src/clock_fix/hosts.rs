//! Which hosts have their times from which clock.
//!
//! A host is behind another one if its answers come before the questions, or if the time goes back from the other to it
//! and not from any segment to the next one of the same direction.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hindflight_decoder::Segment;

use super::exchange::Exchanges;
use super::flows::Flows;
use super::is_step;
use crate::artefacts::clocks::{MIN_COUNT, TOLERANCE_NS};

/// Hosts with evidence at most. Beyond, nothing is corrected.
pub const MAX_HOSTS: usize = 1 << 16;

/// Findings up to which a host alone proves nothing.
const MAX_UNSURE: usize = MIN_COUNT as usize - 1;

/// What was found about a host.
#[derive(Clone, Debug, Default)]
struct Findings {
    /// How often it was behind another host, and another one behind it.
    behind: u64,
    ahead: u64,
    /// The other hosts of its first findings.
    first: [Option<IpAddr>; MAX_UNSURE],
    /// It, or one of the other hosts, has at least [`MIN_COUNT`] findings.
    counts: bool,
}

impl Findings {
    fn total(&self) -> u64 {
        self.behind + self.ahead
    }
}

/// Collects which hosts answer too early.
#[derive(Debug, Default)]
pub struct HostSurvey {
    flows: Flows,
    /// Source and time of the last segment, if no step came before it.
    last: Option<(IpAddr, i64)>,
    hosts: BTreeMap<IpAddr, Findings>,
}

impl HostSurvey {
    /// Processes the next segment of the capture.
    pub fn push(&mut self, segment: &Segment) {
        if self.hosts.len() > MAX_HOSTS {
            return;
        }
        let mut found = [None; 3];
        let Some((index, flow)) = self.flows.find(segment) else {
            return;
        };
        let last = self.last.take();
        if let Some(last_ns) = flow.last_ns[index].replace(segment.t_ns) {
            if is_step(last_ns, segment.t_ns) {
                // Nothing is compared across a step.
                flow.exchanges = Exchanges::default();
            } else {
                self.last = Some((segment.src, segment.t_ns));
                if let Some((host, before_ns)) = last
                    && host != segment.src
                    && segment.t_ns < before_ns
                    && is_step(before_ns, segment.t_ns)
                {
                    found[2] = Some((segment.src, host));
                }
            }
        }
        let answers = flow.exchanges.observe(index, segment);
        for (found, answer) in found.iter_mut().zip(answers) {
            *found = answer
                .filter(|answer| answer.delay_ns < -TOLERANCE_NS)
                .map(|answer| {
                    if answer.by == index {
                        (segment.src, segment.dst)
                    } else {
                        (segment.dst, segment.src)
                    }
                });
        }
        for (behind, ahead) in found.into_iter().flatten() {
            self.find(behind, ahead);
        }
    }

    fn find(&mut self, behind: IpAddr, ahead: IpAddr) {
        self.hosts.entry(behind).or_default().behind += 1;
        self.hosts.entry(ahead).or_default().ahead += 1;
        for (host, other) in [(behind, ahead), (ahead, behind)] {
            let findings = self.hosts.entry(host).or_default();
            let total = findings.total();
            if total < MIN_COUNT {
                findings.first[total as usize - 1] = Some(other);
                continue;
            }
            findings.counts = true;
            let first = std::mem::take(&mut findings.first);
            for other in first.into_iter().flatten().chain([other]) {
                self.hosts.entry(other).or_default().counts = true;
            }
        }
    }

    /// The hosts with evidence, and whether their clock is behind the other one; `None` if there are too many. Hosts
    /// without any have one clock with those that keep their times.
    pub fn behind(&self) -> Option<BTreeMap<IpAddr, bool>> {
        let counts = self.hosts.iter().filter(|(_, findings)| findings.counts);
        let behind = counts.map(|(host, findings)| (*host, findings.behind > findings.ahead));
        (self.hosts.len() <= MAX_HOSTS).then(|| behind.collect())
    }
}

/// A segment of 1000 octets, for tests.
#[cfg(test)]
pub fn segment(record: u64, t_ns: i64, src: u32, dst: u32) -> Segment {
    Segment {
        record,
        t_ns,
        frame_bytes: 1054,
        captured_bytes: 54,
        src: IpAddr::V4(std::net::Ipv4Addr::from(src)),
        dst: IpAddr::V4(std::net::Ipv4Addr::from(dst)),
        src_port: 5001,
        dst_port: 5001,
        ip_id: None,
        ttl: 64,
        dscp_ecn: 0,
        ip_bytes: 1040,
        seq: record as u32 * 1000,
        ack: 1,
        flags: hindflight_decoder::flags::ACK,
        window: 60_000,
        urgent: 0,
        payload_bytes: 1000,
        missing_bytes: 0,
        ip_checksum: hindflight_decoder::Checksum::NotChecked,
        tcp_checksum: hindflight_decoder::Checksum::NotChecked,
        options: hindflight_decoder::TcpOptions::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    /// The survey of `servers` behind by 10 s, each of which sends after each of `clients`.
    fn surveyed(clients: u32, servers: u32) -> HostSurvey {
        let mut survey = HostSurvey::default();
        let (mut record, mut t_ns) = (0, 0);
        let mut push = |src: u32, dst: u32, behind_ns: i64| {
            record += 1;
            t_ns += 1_000;
            survey.push(&segment(record, t_ns - behind_ns, src, dst));
        };
        let (client, server) = (0x0a00_0000_u32, 0x0b00_0000_u32);
        for at in 0..clients {
            // Times are compared from the second segment of a flow on.
            push(client + at, 1, 0);
            push(client + at, 1, 0);
            for to in 0..servers {
                push(server + to, 2, 10 * SECOND_NS);
                push(client + at, 1, 0);
            }
        }
        survey
    }

    #[test]
    fn memory_grows_with_the_hosts_and_not_with_their_pairs() {
        let survey = surveyed(301, 300);
        assert_eq!(survey.hosts.len(), 600);
        let behind = survey.behind().expect("few hosts");
        assert_eq!(behind.len(), 600);
        assert_eq!(behind.values().filter(|&&behind| behind).count(), 300);
    }

    #[test]
    fn a_host_with_one_finding_counts_if_the_other_has_three() {
        let counting = |clients| surveyed(clients, 1).behind().expect("few hosts").len();
        assert_eq!((counting(3), counting(4), counting(10)), (0, 4, 10));
    }

    #[test]
    fn too_many_hosts_are_refused() {
        let survey = surveyed(MAX_HOSTS as u32 + 10, 2);
        assert!(survey.behind().is_none());
        assert!(survey.hosts.len() <= MAX_HOSTS + 2);
    }
}

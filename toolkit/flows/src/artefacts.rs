//! What the capture itself did to the packets, counted for the table `issues`: offload, damaged packets, packets that
//! it lost, two clocks.

pub mod clocks;
pub mod copies;
pub mod offload;
pub mod stray;
pub mod unseen;

use hindflight_decoder::{Checksum, Issue, IssueKind, Segment};

use crate::artefacts::clocks::Early;
use crate::rows::{Direction, FlowRow};

/// A number of things, and the record of the first.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    number: u64,
    record: u64,
}

impl Count {
    fn add(&mut self, number: u64, record: u64) {
        if self.number == 0 {
            self.record = record;
        }
        self.number += number;
    }
}

/// The counts of a capture.
#[derive(Debug, Default)]
pub struct Artefacts {
    /// Records that stand for several segments, and these segments.
    large: Count,
    large_segments: u64,
    /// Segments of which the interface fills in a checksum.
    offloaded: Count,
    /// Segments with another value in the checksum.
    wrong: Count,
    corrupted_segments: u64,
    /// Octets that were acknowledged and not captured.
    not_captured_bytes: u64,
    not_captured_flows: Count,
    /// Connections whose directions have different clocks, and the largest difference.
    clocks: Count,
    most: Option<(u32, Direction, Early)>,
}

impl Artefacts {
    /// Counts a segment.
    #[inline]
    pub fn observe(&mut self, segment: &Segment, segments_n: u16) {
        if segments_n > 1 {
            self.large.add(1, segment.record);
            self.large_segments += u64::from(segments_n);
        }
        let checksums = [segment.ip_checksum, segment.tcp_checksum];
        if checksums.contains(&Checksum::Bad) {
            self.wrong.add(u64::from(segments_n), segment.record);
        } else if checksums.contains(&Checksum::Offload) {
            self.offloaded.add(u64::from(segments_n), segment.record);
        }
    }

    /// Counts what is known at the end of a connection.
    pub fn add(&mut self, row: &FlowRow, early: Option<(Direction, Early)>) {
        let lost: u64 = row
            .directions
            .iter()
            .filter_map(|direction| direction.not_captured_bytes)
            .sum();
        if lost > 0 {
            self.not_captured_bytes += lost;
            self.not_captured_flows.add(1, u64::from(row.flow_id));
        }
        self.corrupted_segments += row
            .directions
            .iter()
            .map(|direction| direction.corrupted_segments)
            .sum::<u64>();
        if let Some((direction, early)) = early {
            self.clocks.add(1, early.record);
            if self
                .most
                .is_none_or(|(_, _, most)| early.most_ns > most.most_ns)
            {
                self.most = Some((row.flow_id, direction, early));
            }
        }
    }

    /// An issue for each kind of artefact, with its number; complete at the end of the capture.
    pub fn issues(&self) -> Vec<Issue> {
        let mut issues = Vec::new();
        let mut add = |kind: IssueKind, record: u64, text: String| {
            issues.push(Issue {
                file: 0,
                record,
                offset: 0,
                kind,
                text,
            });
        };
        if self.large.number > 0 {
            let (records, segments) = (self.large.number, self.large_segments);
            let text = format!(
                "{records} records hold more than the MSS (offload of segmentation); counted as the {segments} segments that they are cut into"
            );
            add(IssueKind::SegmentationOffload, self.large.record, text);
        }
        if self.offloaded.number > 0 {
            let number = self.offloaded.number;
            let text = format!(
                "{number} segments were captured before the interface filled in their checksum (offload); analysed like all others"
            );
            add(IssueKind::ChecksumOffload, self.offloaded.record, text);
        }
        if self.wrong.number > 0 {
            let (number, corrupted) = (self.wrong.number, self.corrupted_segments);
            let text = format!(
                "{number} segments have a wrong checksum; {corrupted} of them, among right ones, count as damaged on the way: no receiver accepts them"
            );
            add(IssueKind::Checksum, self.wrong.record, text);
        }
        if self.not_captured_flows.number > 0 {
            let (flows, flow) = (
                self.not_captured_flows.number,
                self.not_captured_flows.record,
            );
            let octets = self.not_captured_bytes;
            let text = format!(
                "{octets} octets of {flows} flows, of which flow {flow} ended first, were acknowledged but not captured: the capture lost them, not the network"
            );
            add(IssueKind::CaptureDrop, 0, text);
        }
        if let Some((flow, direction, early)) = self.most {
            let (direction, ms) = (direction.name(), early.most_ns as f64 / 1e6);
            let flows = self.clocks.number;
            let text = format!(
                "two clocks: in {flows} flows, segments come before what they answer, in flow {flow} those of {direction} by up to {ms:.3} ms ({} times); kept as it is",
                early.count
            );
            add(IssueKind::Clock, self.clocks.record, text);
        }
        issues
    }
}

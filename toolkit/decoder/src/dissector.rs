//! Link layers that the decoder does not go through itself: the slow path.

use crate::issue::{DecodeError, IssueKind, Issues};
use crate::link::{LinkType, unsupported_name};

/// Finds the IP packets in frames of link layers that are not a [`LinkType`].
pub trait Dissector: Send {
    /// Whether it goes through this link layer.
    fn knows(&self, link_number: u16) -> bool;

    /// The IP packet in a frame, and what follows it; `None` without one.
    fn ip_packet(&mut self, link_number: u16, frame: &[u8]) -> Option<Vec<u8>>;
}

/// Knows no link layer.
impl Dissector for () {
    fn knows(&self, _link_number: u16) -> bool {
        false
    }

    fn ip_packet(&mut self, _link_number: u16, _frame: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Refuses a capture of which no interface has a link type that can be read. One without interfaces is accepted.
pub(crate) fn check_links(numbers: &[u16], dissector: &dyn Dissector) -> Result<(), DecodeError> {
    let readable =
        |&number: &u16| LinkType::from_number(number).is_some() || dissector.knows(number);
    match numbers.first() {
        Some(&number) if !numbers.iter().any(readable) => Err(DecodeError::LinkType { number }),
        _ => Ok(()),
    }
}

/// A dissector, and counts of what it was given.
pub(crate) struct SlowPath {
    dissector: Box<dyn Dissector>,
    counts: Vec<Count>,
}

/// Frames of a link type.
struct Count {
    link_number: u16,
    frames: u64,
    without_ip: u64,
    /// Where the first one is stored.
    record: u64,
    offset: u64,
}

impl SlowPath {
    pub fn new(dissector: Box<dyn Dissector>) -> Self {
        Self {
            dissector,
            counts: Vec::new(),
        }
    }

    pub fn knows(&self, link_number: u16) -> bool {
        self.dissector.knows(link_number)
    }

    /// The IP packet in the frame that is stored at `record` and `offset`.
    pub fn ip_packet(
        &mut self,
        link_number: u16,
        frame: &[u8],
        (record, offset): (u64, u64),
    ) -> Option<Vec<u8>> {
        let packet = self.dissector.ip_packet(link_number, frame);
        let known = self
            .counts
            .iter()
            .position(|count| count.link_number == link_number);
        let at = known.unwrap_or_else(|| {
            self.counts.push(Count {
                link_number,
                frames: 0,
                without_ip: 0,
                record,
                offset,
            });
            self.counts.len() - 1
        });
        self.counts[at].frames += 1;
        self.counts[at].without_ip += u64::from(packet.is_none());
        packet
    }

    /// Moves the counts to `issues`, one issue per link type.
    pub fn report(&mut self, issues: &mut Issues) {
        for count in self.counts.drain(..) {
            issues.add(count.record, count.offset, IssueKind::SlowPath, || {
                format!(
                    "{} frames of link type {} ({}) were read on the slow path; {} of them hold no IP packet that it finds",
                    count.frames,
                    count.link_number,
                    unsupported_name(count.link_number),
                    count.without_ip
                )
            });
        }
    }
}

//! What is around the segments: tunnels whose packets are fragmented, and MPLS with Ethernet frames inside.
//!
//! The first fragment of a tunnel's packet holds the headers inside, and the segment counts with it. The others are only
//! watched, to tell whether the capture has them all.

use crate::container::Record;
use crate::fragments::{Carrier, Datagram};
use crate::ip::{self, Fragment, IpHeader, protocol};
use crate::issue::{IssueKind, Issues};
use crate::link::{self, Labelled, Network, PacketEnd};
use crate::segment::Segment;
use crate::skipped::Skipped;
use crate::tunnel::{self, Content};

use super::Decoder;

/// A number of frames, and the place of the first.
#[derive(Debug, Default)]
pub(super) struct Pseudowires {
    frames: u64,
    record: u64,
    offset: u64,
}

impl Pseudowires {
    /// Moves the number to `issues`.
    pub fn report(&mut self, issues: &mut Issues) {
        let frames = std::mem::take(&mut self.frames);
        if frames > 0 {
            issues.add(self.record, self.offset, IssueKind::Pseudowire, || {
                format!(
                    "{frames} MPLS packets hold an Ethernet frame, which no header names: recognised by the checksum or length of the IP packet inside; decoded"
                )
            });
        }
    }
}

impl Decoder {
    /// What follows the label stack that ends at `at`, in a packet that ends at `end`.
    #[cold]
    pub(super) fn labelled(&mut self, record: &Record<'_>, at: usize, end: PacketEnd) -> Network {
        match link::labelled(record.data, at, end) {
            Labelled::Plain(network) => network,
            Labelled::Pseudowire(network) => {
                let found = &mut self.pseudowires;
                if found.frames == 0 {
                    (found.record, found.offset) = (record.place.record, record.place.offset);
                }
                found.frames += 1;
                network
            }
        }
    }

    /// What is in the payload, from `at` to `end`, of an IP packet without TCP.
    pub(super) fn content(
        &mut self,
        record: &Record<'_>,
        at: usize,
        end: PacketEnd,
        ip: &IpHeader,
    ) -> Content {
        let content = match tunnel::content(record.data, at, end, ip) {
            Content::Tunnel(Network::Labelled(inner)) if !self.outer => {
                Content::Tunnel(self.labelled(record, inner, end))
            }
            content => content,
        };
        if ip.fragment != Fragment::None {
            self.first_outer_fragment(record, ip, content);
        }
        content
    }

    /// Watches the first fragment of a packet with this content.
    #[cold]
    fn first_outer_fragment(&mut self, record: &Record<'_>, ip: &IpHeader, content: Content) {
        let is_read = matches!(
            content,
            Content::Tunnel(Network::Ipv4(_) | Network::Ipv6(_))
        );
        if is_read && !self.outer {
            if let Some(later) = self.fragments.take_later(ip) {
                self.outer_fragments.adopt(later);
            }
            self.watch(record, ip);
        }
    }

    /// Handles a fragment after the first that does not name TCP. Behind an extension header it may be TCP all the same,
    /// which the first fragment shows.
    #[cold]
    pub(super) fn later_outer_fragment(
        &mut self,
        record: &Record<'_>,
        packet: &[u8],
        ip: &IpHeader,
    ) -> Option<Segment> {
        let shown = self.fragments.protocol(ip);
        if shown == Some(protocol::TCP) {
            let ip = IpHeader {
                protocol: protocol::TCP,
                ..*ip
            };
            return self.fragment(record, packet, &ip);
        }
        if shown.is_some()
            || (ip::hides_protocol(ip) && self.outer_fragments.protocol(ip).is_none())
        {
            return self.fragment(record, packet, ip);
        }
        if tunnel::may_carry(ip.protocol) {
            self.watch(record, ip);
        }
        self.count_other(record, ip)
    }

    fn watch(&mut self, record: &Record<'_>, ip: &IpHeader) {
        let length = ip.ip_bytes - ip.header_bytes as u32;
        self.give_up_outer_fragments(Some(record.t_ns));
        // What repeats or overlaps another one adds nothing; no octets are taken from it.
        let _ = self
            .outer_fragments
            .push(Carrier::of(record), ip, &[], length);
    }

    /// Handles packets of tunnels that have waited too long at `now_ns`; at the end of the input (`None`), all.
    pub(super) fn give_up_outer_fragments(&mut self, now_ns: Option<i64>) {
        while let Some(datagram) = self.outer_fragments.take_expired(now_ns) {
            self.report_incomplete(&datagram);
        }
    }

    pub(super) fn report_incomplete(&mut self, datagram: &Datagram) {
        let (place, protocol) = (datagram.carrier.place, datagram.ip.protocol);
        if datagram.has_first {
            let what = datagram.missing_bytes().map_or_else(
                || "the last fragment is".to_owned(),
                |octets| format!("{octets} octets are"),
            );
            self.issues.add(place.record, place.offset, IssueKind::Fragment, || {
                format!(
                    "of a fragmented packet of a tunnel, {what} missing; the segment in its first fragment counts as whole"
                )
            });
        } else if protocol != protocol::UDP {
            for _ in 0..datagram.pieces {
                self.skipped
                    .add(Skipped::Fragment(protocol), place.record, place.offset);
            }
        }
    }
}

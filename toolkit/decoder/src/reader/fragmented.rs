//! Segments in IP fragments: from the fragments to the segment, or to an issue.

use crate::container::Record;
use crate::fragments::{Carrier, Datagram, Outcome};
use crate::ip::{IpHeader, protocol};
use crate::issue::IssueKind;
use crate::segment::Segment;
use crate::tally::OtherPacket;
use crate::tcp::{self, OtherOptions};

use super::{Captured, Decoder, assemble, other_kind};

impl Decoder {
    /// Adds a fragment of a TCP packet. Returns the segment that it completes.
    #[cold]
    pub(super) fn fragment(
        &mut self,
        record: &Record<'_>,
        packet: &[u8],
        ip: &IpHeader,
    ) -> Option<Segment> {
        self.release_fragments(record.t_ns, ip);
        let carrier = Carrier::of(record);
        let length = ip.ip_bytes - ip.header_bytes as u32;
        let end = packet.len().min(ip.ip_bytes as usize);
        let octets = packet.get(ip.header_bytes..end).unwrap_or_default();
        let waits = match self.fragments.push(carrier, ip, octets, length) {
            Outcome::Complete(datagram, before) => {
                if let Some((carrier, ip)) = before {
                    self.count_fragment(&carrier, &ip);
                }
                return self.complete(record, &datagram);
            }
            Outcome::Waits(before) => {
                if let Some((carrier, ip)) = before {
                    self.count_fragment(&carrier, &ip);
                }
                // A first fragment may turn out to be all that the capture holds of its packet.
                self.fragments.is_only_first(ip)
            }
            Outcome::Repeats => false,
            Outcome::Overlaps => {
                self.report_fragment(&carrier, "the fragment overlaps another one; not used");
                false
            }
            Outcome::Invalid => {
                self.report_fragment(
                    &carrier,
                    "the position or length of the fragment is invalid; not used",
                );
                false
            }
        };
        if !waits {
            self.count_fragment(&carrier, ip);
        }
        None
    }

    /// Takes a segment that comes before the next record.
    pub(super) fn next_pending(&mut self) -> Option<Captured<'_>> {
        let (segment, options) = self.pending.pop_front()?;
        self.other_options = options;
        self.current = Some(segment);
        self.captured()
    }

    /// Puts the current segment behind those that are pending.
    #[cold]
    pub(super) fn hold_current(&mut self) {
        if let Some(segment) = self.current {
            self.hold(segment);
        }
    }

    /// Puts a segment behind those that are pending.
    #[cold]
    pub(super) fn hold(&mut self, segment: Segment) {
        self.pending
            .push_back((segment, self.other_options.clone()));
    }

    /// Before another packet of the hosts of `ip`: handles packets that will not be completed.
    #[cold]
    pub(super) fn release_fragments(&mut self, now_ns: i64, ip: &IpHeader) {
        while let Some(first) = self.fragments.take_only_first(Some(ip)) {
            self.decode_only_first(&first);
        }
        self.give_up_fragments(Some(now_ns));
    }

    /// Handles packets that have waited too long at `now_ns`; at the end of the input (`None`), all.
    pub(super) fn give_up_fragments(&mut self, now_ns: Option<i64>) {
        if now_ns.is_none() {
            while let Some(first) = self.fragments.take_only_first(None) {
                self.decode_only_first(&first);
            }
        }
        while let Some(datagram) = self.fragments.take_expired(now_ns) {
            if datagram.ip.protocol != protocol::TCP {
                // The first fragment, which would show whether it is TCP, has not come.
                self.report_incomplete(&datagram);
                continue;
            }
            if datagram.is_only_first() {
                self.count_fragment(&datagram.carrier, &datagram.ip);
            }
            let have = datagram.payload_bytes();
            let text = match datagram.missing_bytes() {
                Some(missing) => format!("{missing} of {} octets", have + missing),
                None => format!("the end, after {have} octets,"),
            };
            self.report_fragment(
                &datagram.carrier,
                &format!("of a fragmented TCP packet {text} are missing; not decoded"),
            );
        }
    }

    /// Decodes a packet that is complete with `record`.
    fn complete(&mut self, record: &Record<'_>, datagram: &Datagram) -> Option<Segment> {
        let mut ip = datagram.ip;
        let length = datagram.payload_bytes();
        let tcp = match tcp::parse(&datagram.octets(), length, &mut self.other_options) {
            Ok(tcp) => tcp,
            Err(error) => return self.report_bad_tcp(record, error, length),
        };
        self.tally.tcp(record.frame_bytes);
        ip.ip_bytes = ip.header_bytes as u32 + length;
        Some(Segment {
            frame_bytes: datagram.frame_bytes,
            captured_bytes: datagram.captured_bytes,
            missing_bytes: datagram.frame_bytes.saturating_sub(datagram.captured_bytes),
            ..assemble(record, ip.ip_bytes as usize, &ip, &tcp)
        })
    }

    /// Decodes a first fragment by itself.
    fn decode_only_first(&mut self, datagram: &Datagram) {
        let carrier = &datagram.carrier;
        let mut options = OtherOptions::new();
        let Ok(tcp) = tcp::parse(&datagram.octets(), datagram.payload_bytes(), &mut options) else {
            self.count_fragment(carrier, &datagram.ip);
            self.report_fragment(
                carrier,
                "the fragment ends within the TCP header; not decoded",
            );
            return;
        };
        self.report_fragment(
            carrier,
            "the capture has only the first fragment of the packet; the payload of the others is not counted",
        );
        self.tally.tcp(carrier.frame_bytes);
        let record = Record {
            number: carrier.number,
            place: carrier.place,
            t_ns: carrier.t_ns,
            frame_bytes: carrier.frame_bytes,
            link: Err(0),
            data: &[],
        };
        let segment = Segment {
            captured_bytes: carrier.captured_bytes,
            missing_bytes: carrier.frame_bytes.saturating_sub(carrier.captured_bytes),
            ..assemble(&record, datagram.ip.ip_bytes as usize, &datagram.ip, &tcp)
        };
        self.pending.push_back((segment, options));
    }

    /// Counts the record of a fragment that has no segment itself.
    fn count_fragment(&mut self, carrier: &Carrier, ip: &IpHeader) {
        let kind = other_kind(ip);
        self.other_packets.push(OtherPacket {
            record: carrier.number,
            t_ns: carrier.t_ns,
            kind,
            src: ip.src,
            dst: ip.dst,
            ip_bytes: ip.ip_bytes,
        });
        let _: Option<Segment> = self.tally.other(kind, carrier.frame_bytes);
    }

    fn report_fragment(&mut self, carrier: &Carrier, text: &str) {
        let place = carrier.place;
        self.issues
            .add(place.record, place.offset, IssueKind::Fragment, || {
                text.to_owned()
            });
    }
}

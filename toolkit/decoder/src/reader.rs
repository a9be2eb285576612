//! A capture as a stream of TCP segments: puts containers, links, IP and TCP together and counts the rest.
//! Knows nothing of connections. Start with [`Reader`].

use std::io::Read;

use crate::ip::{self, Fragment, IpFault, IpHeader, protocol};
use crate::issue::{DecodeError, Issue, IssueKind, Issues};
use crate::link::{self, LinkType, Network};
use crate::pcap::{CaptureHeader, Record, Records};
use crate::segment::Segment;
use crate::tally::{Other, OtherPacket, Tally};
use crate::tcp::{self, OptionsEnd, OtherOptions, TcpFault, TcpHeader};

/// Reads the TCP segments of a capture, from any `Read`, with one buffer.
///
/// ```
/// use hindflight_decoder::{DecodeError, Reader};
///
/// let nothing: &[u8] = &[];
/// assert!(matches!(Reader::new(nothing), Err(DecodeError::Empty)));
/// ```
pub struct Reader<R: Read> {
    records: Records<R>,
    decoder: Decoder,
    window: Window,
}

/// A segment and its options that no field holds.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The segment.
    pub segment: Segment,
    /// Other options as they stand on the wire (kind, length, data), one after another; empty without any.
    pub options_other: &'a [u8],
}

/// The part of a capture to read: from `from_ns` up to but not with `to_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// First time that belongs to it; none is the beginning.
    pub from_ns: Option<i64>,
    /// First time behind it; none is the end.
    pub to_ns: Option<i64>,
}

impl Window {
    #[inline]
    fn holds(self, t_ns: i64) -> bool {
        self.from_ns.is_none_or(|from| t_ns >= from) && self.to_ns.is_none_or(|to| t_ns < to)
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header of a capture; what is no capture, or of a link type that cannot be read, is an error.
    ///
    /// # Errors
    /// [`DecodeError`] says why not one packet of the input can be read.
    pub fn new(source: R) -> Result<Self, DecodeError> {
        let mut issues = Issues::default();
        let records = Records::new(source, &mut issues)?;
        let number = records.header().link_number;
        let link = LinkType::from_number(number).ok_or(DecodeError::LinkType { number })?;
        Ok(Self {
            records,
            decoder: Decoder {
                link,
                tally: Tally::default(),
                issues,
                others: OtherOptions::none(),
                other_packets: Vec::new(),
            },
            window: Window::default(),
        })
    }

    /// Restricts reading to a part of the capture; packets outside are counted and otherwise passed over.
    #[must_use]
    pub fn within(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// The next TCP segment; none at the end of what can be read.
    #[inline]
    pub fn next_segment(&mut self) -> Option<Captured<'_>> {
        while let Some(record) = self.records.next(&mut self.decoder.issues) {
            if !self.window.holds(record.t_ns) {
                self.decoder.tally.outside_window_packets += 1;
                continue;
            }
            if let Some(segment) = self.decoder.segment(&record) {
                let options_other = self.decoder.others.as_slice();
                return Some(Captured {
                    segment,
                    options_other,
                });
            }
        }
        self.decoder.issues.close(self.records.offset());
        None
    }

    /// What the file header says.
    pub fn header(&self) -> CaptureHeader {
        self.records.header()
    }

    /// The link type of all frames.
    pub fn link(&self) -> LinkType {
        self.decoder.link
    }

    /// What was read so far, by kind.
    pub fn tally(&self) -> &Tally {
        &self.decoder.tally
    }

    /// The IP packets that are no TCP segments since the last call; whoever reads much takes them often.
    pub fn take_others(&mut self) -> Vec<OtherPacket> {
        std::mem::take(&mut self.decoder.other_packets)
    }

    /// What was wrong so far. A hundred of each kind are listed; the last rows, at the end of the input, tell how
    /// many more there were.
    pub fn issues(&self) -> &[Issue] {
        self.decoder.issues.rows()
    }
}

/// From one record to one segment.
struct Decoder {
    link: LinkType,
    tally: Tally,
    issues: Issues,
    others: OtherOptions,
    other_packets: Vec<OtherPacket>,
}

impl Decoder {
    #[inline]
    fn segment(&mut self, record: &Record<'_>) -> Option<Segment> {
        self.tally.packet(record.t_ns);
        let bytes = record.frame_bytes;
        let (at, version) = match link::network(self.link, record.data) {
            Network::Ipv4(at) => (at, 4),
            Network::Ipv6(at) => (at, 6),
            Network::Arp => return self.tally.other(Other::Arp, bytes),
            Network::Other => return self.tally.other(Other::NotIp, bytes),
            Network::Cut => return self.too_short(record, "link header"),
        };
        let packet = record.data.get(at..).unwrap_or_default();
        let room = bytes.saturating_sub(at as u32);
        let parsed = match version {
            4 => ip::parse_v4(packet, room),
            _ => ip::parse_v6(packet, room),
        };
        let ip = match parsed {
            Ok(ip) => ip,
            Err(fault) => return self.bad_ip(record, fault),
        };
        if ip.protocol != protocol::TCP || ip.fragment == Fragment::Later {
            return self.other(record, &ip);
        }
        let octets = packet.get(ip.header_bytes..).unwrap_or_default();
        let length = ip.ip_bytes - ip.header_bytes as u32;
        let tcp = match tcp::parse(octets, length, &mut self.others) {
            Ok(tcp) => tcp,
            Err(fault) => return self.bad_tcp(record, fault, length),
        };
        if ip.length_zero || ip.ip_bytes > room || ip.fragment == Fragment::First {
            self.note_ip(record, &ip, room);
        }
        if tcp.options_end != OptionsEnd::Whole {
            self.note_options(record, tcp.options_end);
        }
        self.tally.tcp(bytes);
        Some(assemble(record, &ip, &tcp))
    }

    fn other(&mut self, record: &Record<'_>, ip: &IpHeader) -> Option<Segment> {
        let kind = other_kind(ip);
        self.other_packets.push(OtherPacket {
            record: record.number,
            t_ns: record.t_ns,
            kind,
            src: ip.src,
            dst: ip.dst,
            ip_bytes: ip.ip_bytes,
        });
        self.tally.other(kind, record.frame_bytes)
    }

    #[cold]
    fn too_short(&mut self, record: &Record<'_>, what: &str) -> Option<Segment> {
        let (captured, frame) = (record.data.len(), record.frame_bytes);
        self.issues
            .add(record.number, record.offset, IssueKind::FrameCut, || {
                format!("{captured} of {frame} octets captured end within the {what}; not decoded")
            });
        self.tally.other(Other::Undecoded, frame)
    }

    #[cold]
    fn bad_ip(&mut self, record: &Record<'_>, fault: IpFault) -> Option<Segment> {
        let text = match fault {
            IpFault::Cut => return self.too_short(record, "IP header"),
            IpFault::Version(version) => format!("the IP version is {version}"),
            IpFault::HeaderLength(bytes) => {
                format!("the IP header claims {bytes} octets, which its packet cannot have")
            }
        };
        self.issues
            .add(record.number, record.offset, IssueKind::IpHeader, || {
                format!("{text}; not decoded")
            });
        self.tally.other(Other::Undecoded, record.frame_bytes)
    }

    #[cold]
    fn bad_tcp(&mut self, record: &Record<'_>, fault: TcpFault, length: u32) -> Option<Segment> {
        let text = match fault {
            TcpFault::Cut => return self.too_short(record, "TCP header"),
            TcpFault::Short => format!("{length} octets are too few for a TCP header"),
            TcpFault::DataOffset(bytes) => {
                format!("the TCP header claims {bytes} octets in a packet with {length}")
            }
        };
        self.issues
            .add(record.number, record.offset, IssueKind::TcpHeader, || {
                format!("{text}; not decoded")
            });
        self.tally.other(Other::Undecoded, record.frame_bytes)
    }

    #[cold]
    fn note_ip(&mut self, record: &Record<'_>, ip: &IpHeader, room: u32) {
        let bytes = ip.ip_bytes;
        let mut add = |kind, text: &dyn Fn() -> String| {
            self.issues.add(record.number, record.offset, kind, text);
        };
        if ip.length_zero {
            add(IssueKind::IpLengthZero, &|| {
                format!(
                    "IP length 0, segmentation was left to the network card; taken as {bytes} by the frame"
                )
            });
        } else if bytes > room {
            add(IssueKind::IpLength, &|| {
                format!(
                    "the IP packet claims {bytes} octets, its frame has {room}; taken as {bytes}"
                )
            });
        }
        if ip.fragment == Fragment::First {
            add(IssueKind::Fragment, &|| {
                "first fragment of an IP packet; the payload of the others is not counted"
                    .to_owned()
            });
        }
    }

    #[cold]
    fn note_options(&mut self, record: &Record<'_>, end: OptionsEnd) {
        match end {
            OptionsEnd::Whole => {}
            OptionsEnd::Cut => {
                self.issues
                    .add(record.number, record.offset, IssueKind::OptionsCut, || {
                        "the capture ends within the TCP options; those before are kept".to_owned()
                    });
            }
            OptionsEnd::Malformed { kind, length } => {
                self.issues
                    .add(record.number, record.offset, IssueKind::TcpOptions, || {
                        format!("TCP option {kind} claims {length} octets; those before are kept")
                    });
            }
        }
    }
}

fn other_kind(ip: &IpHeader) -> Other {
    match ip.protocol {
        protocol::UDP => Other::Udp,
        protocol::ICMP | protocol::ICMPV6 => Other::Icmp,
        protocol::TCP => Other::TcpFragment,
        _ => Other::OtherIp,
    }
}

#[inline]
fn assemble(record: &Record<'_>, ip: &IpHeader, tcp: &TcpHeader) -> Segment {
    Segment {
        record: record.number,
        t_ns: record.t_ns,
        frame_bytes: record.frame_bytes,
        captured_bytes: record.data.len() as u32,
        src: ip.src,
        dst: ip.dst,
        src_port: tcp.src_port,
        dst_port: tcp.dst_port,
        ip_id: ip.ip_id,
        ttl: ip.ttl,
        dscp_ecn: ip.dscp_ecn,
        ip_bytes: ip.ip_bytes,
        seq: tcp.seq,
        ack: tcp.ack,
        flags: tcp.flags,
        window: tcp.window,
        payload_bytes: ip.ip_bytes - (ip.header_bytes + tcp.header_bytes) as u32,
        options: tcp.options,
    }
}

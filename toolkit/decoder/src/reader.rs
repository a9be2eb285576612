//! [`Reader`]: the TCP segments of a capture, record by record.

use std::collections::VecDeque;
use std::io::Read;

use crate::checksum::{self, Checksum};
use crate::container::{CaptureHeader, Record, Records};
use crate::dissector::{Dissector, SlowPath, check_links};
use crate::fragments::Fragments;
use crate::ip::{self, Fragment, IpHeader, protocol};
use crate::issue::{DecodeError, Issue, Issues};
use crate::link::{self, LinkType, Network, PacketEnd};
use crate::merge::{Merged, Part};
use crate::segment::Segment;
use crate::skipped::{Skipped, SkippedCounts};
use crate::tally::{Other, OtherPacket, Tally};
use crate::tcp::{self, OptionsEnd, OtherOptions, TcpHeader};
use crate::tunnel::Content;
use crate::wlan;

use outer::Pseudowires;

/// Reads the TCP segments of a capture from any `Read`, with a single buffer.
///
/// ```
/// use hindflight_decoder::{DecodeError, Reader};
///
/// let empty: &[u8] = &[];
/// assert!(matches!(Reader::new(empty), Err(DecodeError::Empty)));
/// ```
pub struct Reader<R: Read> {
    records: Records<R>,
    decoder: Decoder,
    window: Window,
    /// Packets without a segment since the last pause.
    packets_since_pause: u32,
    ended: bool,
}

/// Packets without a segment after which [`Reader::next_segment`] returns, so that the caller can take the others and
/// the user can interrupt.
const PACKETS_PER_PAUSE: u32 = 1 << 16;

/// A segment, and the options without a field in [`TcpOptions`](crate::TcpOptions).
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The segment.
    pub segment: &'a Segment,
    /// Other options in wire format (kind, length, data), concatenated.
    pub options_other: &'a [u8],
}

/// A time window: `from_ns` is included, `to_ns` is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Start; `None` for the start of the capture.
    pub from_ns: Option<i64>,
    /// End; `None` for the end of the capture.
    pub to_ns: Option<i64>,
}

impl Window {
    #[inline]
    fn contains(self, t_ns: i64) -> bool {
        self.from_ns.is_none_or(|from| t_ns >= from) && self.to_ns.is_none_or(|to| t_ns < to)
    }
}

impl<R: Read> Reader<R> {
    /// Opens a capture and reads its file header.
    ///
    /// # Errors
    /// [`DecodeError`] if the input is not a capture or has an unsupported link type.
    pub fn new(source: R) -> Result<Self, DecodeError> {
        Self::with_dissector(source, Box::new(()))
    }

    /// Opens a capture whose link layers may also be those that `dissector` knows.
    ///
    /// # Errors
    /// As [`Reader::new`].
    pub fn with_dissector(source: R, dissector: Box<dyn Dissector>) -> Result<Self, DecodeError> {
        let mut issues = Issues::default();
        let records = Records::new(source, &mut issues)?;
        check_links(&records.link_numbers(), &*dissector)?;
        Ok(Self::of(records, dissector, issues))
    }

    /// Opens several captures, to be merged in the order of time.
    ///
    /// # Errors
    /// The index of the file that is not a capture, and its error.
    pub fn merged(
        parts: Vec<Part<R>>,
        dissector: Box<dyn Dissector>,
    ) -> Result<Self, (usize, DecodeError)> {
        let mut issues = Issues::default();
        let merged = Merged::new(parts, &*dissector, &mut issues)?;
        Ok(Self::of(
            Records::Merged(Box::new(merged)),
            dissector,
            issues,
        ))
    }

    fn of(records: Records<R>, dissector: Box<dyn Dissector>, issues: Issues) -> Self {
        Self {
            records,
            decoder: Decoder {
                tally: Tally::default(),
                issues,
                last_ns: 0,
                current: None,
                other_options: OtherOptions::new(),
                other_packets: Vec::new(),
                skipped: SkippedCounts::default(),
                slow_path: SlowPath::new(dissector),
                fragments: Fragments::default(),
                outer_fragments: Fragments::default(),
                pseudowires: Pseudowires::default(),
                outer: false,
                checksums: true,
                pending: VecDeque::new(),
            },
            window: Window::default(),
            packets_since_pause: 0,
            ended: false,
        }
    }

    /// Restricts reading to a time window. Packets outside are counted and skipped.
    #[must_use]
    pub fn within(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// Leaves tunnels closed: only segments outside of them are decoded.
    #[must_use]
    pub fn outer(mut self, outer: bool) -> Self {
        self.decoder.outer = outer;
        self
    }

    /// Does not verify checksums: that reads all octets of a packet.
    #[must_use]
    pub fn without_checksums(mut self) -> Self {
        self.decoder.checksums = false;
        self
    }

    /// The next TCP segment; `None` at the end of the input, and after each 65,536 packets without a segment (see
    /// [`Reader::ended`]).
    #[inline]
    pub fn next_segment(&mut self) -> Option<Captured<'_>> {
        if !self.decoder.pending.is_empty() {
            return self.decoder.next_pending();
        }
        // By reference: a copy of what has just been written costs a stall.
        while let Some(record) = &self.records.next(&mut self.decoder.issues) {
            if !self.window.contains(record.t_ns) {
                self.decoder.tally.outside_window_packets += 1;
            } else if self.decoder.segment(record) {
                if !self.decoder.pending.is_empty() {
                    self.decoder.hold_current();
                    return self.decoder.next_pending();
                }
                return self.decoder.captured();
            }
            if !self.decoder.pending.is_empty() {
                return self.decoder.next_pending();
            }
            self.packets_since_pause += 1;
            if self.packets_since_pause == PACKETS_PER_PAUSE {
                self.packets_since_pause = 0;
                return None;
            }
        }
        self.end()
    }

    /// Handles the end of the input. Returns a segment that was waiting for it.
    #[cold]
    fn end(&mut self) -> Option<Captured<'_>> {
        self.decoder.give_up_fragments(None);
        if !self.decoder.pending.is_empty() {
            return self.decoder.next_pending();
        }
        self.ended = true;
        let offset = self.records.offset();
        self.decoder.give_up_outer_fragments(None);
        let Decoder {
            skipped,
            slow_path,
            pseudowires,
            issues,
            ..
        } = &mut self.decoder;
        pseudowires.report(issues);
        skipped.report(offset, issues);
        slow_path.report(issues);
        issues.close(offset);
        None
    }

    /// Whether all of the input has been read.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The file header.
    pub fn header(&self) -> CaptureHeader {
        self.records.header()
    }

    /// The link types of the interfaces so far, each once: names, or numbers of unsupported ones.
    pub fn link_names(&self) -> Vec<String> {
        let numbers = self.records.link_numbers().into_iter();
        let name = |number| LinkType::from_number(number).map(LinkType::name);
        numbers
            .map(|number| name(number).map_or_else(|| number.to_string(), str::to_owned))
            .collect()
    }

    /// Counts of the packets read so far.
    pub fn tally(&self) -> &Tally {
        &self.decoder.tally
    }

    /// The IP packets other than TCP segments since the last call. They take memory until the caller takes them.
    pub fn take_others(&mut self) -> Vec<OtherPacket> {
        std::mem::take(&mut self.decoder.other_packets)
    }

    /// The issues so far: at most one hundred of each kind. At the end of the input, a last row per kind gives the
    /// number of the others.
    pub fn issues(&self) -> &[Issue] {
        self.decoder.issues.rows()
    }
}

mod fragmented;
mod outer;
mod report;

/// Steps of the time from one packet to the next that are not an issue. Interfaces with several queues deliver packets
/// a little out of order; a day without a packet is more likely a clock that was set.
pub const CLOCK_STEP_NS: std::ops::Range<i64> = -1_000_000_000..86_400_000_000_000;

/// Maximum number of IP headers inside one another.
const MAX_NESTING: usize = 8;

/// Decodes a record to a segment.
pub(crate) struct Decoder {
    tally: Tally,
    issues: Issues,
    /// Time of the last packet.
    last_ns: i64,
    /// The last segment, at a fixed place: to hand it over by value costs two copies per packet.
    current: Option<Segment>,
    other_options: OtherOptions,
    other_packets: Vec<OtherPacket>,
    skipped: SkippedCounts,
    slow_path: SlowPath,
    fragments: Fragments,
    /// Packets of tunnels with a segment in their first fragment, or of which it has yet to come.
    outer_fragments: Fragments,
    pseudowires: Pseudowires,
    /// Tunnels are not opened.
    outer: bool,
    /// Checksums are verified.
    checksums: bool,
    /// Segments with their other options that come before the next record.
    pending: VecDeque<(Segment, OtherOptions)>,
}

impl Decoder {
    /// The last segment.
    #[inline]
    fn captured(&self) -> Option<Captured<'_>> {
        Some(Captured {
            segment: self.current.as_ref()?,
            options_other: self.other_options.as_slice(),
        })
    }

    /// Decodes a record. Returns whether it holds a segment, which is the current one then.
    #[inline]
    fn segment(&mut self, record: &Record<'_>) -> bool {
        self.tally.packet(record.t_ns);
        if !CLOCK_STEP_NS.contains(&record.t_ns.wrapping_sub(self.last_ns)) {
            self.report_clock(record);
        }
        self.last_ns = record.t_ns;
        let link = match record.link {
            Ok(link) => link,
            Err(number) => {
                self.current = self.dissected(record, number);
                return self.current.is_some();
            }
        };
        let bytes = record.frame_bytes;
        // Fast path: TCP in IPv4 in Ethernet.
        if let Some(packet) = link::plain_ipv4(link, record.data)
            && let available_bytes = bytes.saturating_sub(link::ETHERNET_BYTES as u32)
            && let Ok(ip) = ip::parse_v4(packet, available_bytes)
            && ip.protocol == protocol::TCP
            && ip.fragment == Fragment::None
        {
            let Some(segment) = self.tcp(record, packet, &ip, available_bytes) else {
                return false;
            };
            self.current = Some(segment);
            return true;
        }
        self.current = self.packet(record, link::network(link, record.data), bytes);
        self.current.is_some()
    }

    /// Decodes the packet that the dissector finds in a frame of an unsupported link type.
    #[cold]
    fn dissected(&mut self, record: &Record<'_>, number: u16) -> Option<Segment> {
        if !self.slow_path.knows(number) {
            return self.report_link(record, number);
        }
        let place = (record.place.record, record.place.offset);
        let Some(packet) = self.slow_path.ip_packet(number, record.data, place) else {
            return self.tally.other(Other::NotIp, record.frame_bytes);
        };
        let missing_bytes = record.frame_bytes.saturating_sub(record.data.len() as u32);
        let end = (packet.len() as u32).saturating_add(missing_bytes);
        let inner = Record {
            data: &packet,
            ..*record
        };
        let segment = self.packet(&inner, link::network(LinkType::Raw, &packet), end)?;
        Some(Segment {
            captured_bytes: record.data.len() as u32,
            ..segment
        })
    }

    /// Decodes the packet `network`; the one that encloses it ends at `end`.
    fn packet(
        &mut self,
        record: &Record<'_>,
        mut network: Network,
        mut end: u32,
    ) -> Option<Segment> {
        let bytes = record.frame_bytes;
        let mut is_first_fragment = false;
        for _ in 0..MAX_NESTING {
            let (at, version) = match network {
                Network::Ipv4(at) => (at, 4),
                Network::Ipv6(at) => (at, 6),
                Network::Labelled(at) => {
                    let whole = PacketEnd {
                        at: end as usize,
                        continues: false,
                    };
                    let inner = self.labelled(record, at, whole);
                    return self.packet(record, inner, end);
                }
                other => return self.not_ip(record, other),
            };
            let packet = record.data.get(at..).unwrap_or_default();
            let available_bytes = end.saturating_sub(at as u32);
            let parsed = match version {
                4 => ip::parse_v4(packet, available_bytes),
                _ => ip::parse_v6(packet, available_bytes),
            };
            let mut ip = match parsed {
                Ok(ip) => ip,
                Err(error) => return self.report_bad_ip(record, error),
            };
            if ip.protocol == protocol::TCP {
                if ip.fragment != Fragment::None {
                    return self.fragment(record, packet, &ip);
                }
                // The rest of a packet in the first fragment of another one is in those that follow.
                let available_bytes = if is_first_fragment {
                    available_bytes.max(ip.ip_bytes)
                } else {
                    available_bytes
                };
                return self.tcp(record, packet, &ip, available_bytes);
            }
            if ip.fragment.is_later() {
                return self.later_outer_fragment(record, packet, &ip);
            }
            end = end.min((at as u32).saturating_add(ip.ip_bytes));
            let payload = at + ip.header_bytes;
            is_first_fragment |= ip.fragment != Fragment::None;
            let packet_end = PacketEnd {
                at: end as usize,
                continues: is_first_fragment,
            };
            let content = self.content(record, payload, packet_end, &ip);
            network = match content {
                Content::Plain | Content::Tunnel(Network::Arp) => {
                    return self.count_other(record, &ip);
                }
                Content::Tunnel(Network::Other(what)) => {
                    self.skip(record, what);
                    return self.count_other(record, &ip);
                }
                Content::Skipped(what) => {
                    self.skip(record, Some(what));
                    return self.count_other(record, &ip);
                }
                Content::Tunnel(_) if self.outer => {
                    self.skip(record, Some(Skipped::Tunnel));
                    return self.count_other(record, &ip);
                }
                Content::Tunnel(inner) => inner,
                Content::Tcp(start, end) => {
                    ip.header_bytes = start - at;
                    ip.ip_bytes = (end - at) as u32;
                    return self.tcp(record, packet, &ip, available_bytes);
                }
            };
        }
        self.skip(record, Some(Skipped::Nesting));
        self.tally.other(Other::OtherIp, bytes)
    }

    /// Handles a frame, or the content of a tunnel, that is not an IP packet.
    #[cold]
    fn not_ip(&mut self, record: &Record<'_>, network: Network) -> Option<Segment> {
        let bytes = record.frame_bytes;
        match network {
            Network::Arp => self.tally.other(Other::Arp, bytes),
            Network::Other(what) => {
                self.skip(record, what);
                self.tally.other(Other::NotIp, bytes)
            }
            Network::Aggregate(at) => self.aggregate(record, at),
            Network::Truncated | Network::Ipv4(_) | Network::Ipv6(_) | Network::Labelled(_) => {
                self.report_truncated(record, "link or tunnel header")
            }
        }
    }

    /// Decodes the packets of an aggregate of wireless LAN. All but the last become pending.
    fn aggregate(&mut self, record: &Record<'_>, mut at: usize) -> Option<Segment> {
        let mut last = None;
        let mut empty = true;
        while let Some(subframe) = wlan::subframe(record.data, at) {
            empty = false;
            if let Some(segment) = last.take() {
                self.hold(segment);
            }
            let end = (at as u32).saturating_add(subframe.bytes);
            let part = Record {
                frame_bytes: subframe.bytes,
                ..*record
            };
            last = match subframe.network {
                // Aggregates are not nested.
                Network::Aggregate(_) => self.tally.other(Other::NotIp, subframe.bytes),
                network => self.packet(&part, network, end),
            };
            at = subframe.next;
        }
        let header_end = at + wlan::SUBFRAME_HEADER_BYTES;
        if header_end <= record.frame_bytes as usize && header_end > record.data.len() {
            if let Some(segment) = last.take() {
                self.hold(segment);
            }
            return self.report_truncated(record, "aggregate of wireless LAN");
        }
        if empty {
            return self.tally.other(Other::NotIp, record.frame_bytes);
        }
        last
    }

    fn skip(&mut self, record: &Record<'_>, what: Option<Skipped>) {
        if let Some(what) = what {
            self.skipped
                .add(what, record.place.record, record.place.offset);
        }
    }

    #[expect(
        clippy::inline_always,
        reason = "a result in memory costs a stall per packet"
    )]
    #[inline(always)]
    fn tcp(
        &mut self,
        record: &Record<'_>,
        packet: &[u8],
        ip: &IpHeader,
        available_bytes: u32,
    ) -> Option<Segment> {
        if !self.fragments.is_idle() {
            self.release_fragments(record.t_ns, ip);
        }
        let octets = packet.get(ip.header_bytes..).unwrap_or_default();
        let length = ip.ip_bytes - ip.header_bytes as u32;
        let tcp = match tcp::parse(octets, length, &mut self.other_options) {
            Ok(tcp) => tcp,
            Err(error) => {
                // Not as the result, which would have to be in memory.
                let _: Option<Segment> = self.report_bad_tcp(record, error, length);
                return None;
            }
        };
        if ip.length_zero || ip.ip_bytes > available_bytes {
            self.report_ip(record, ip, available_bytes);
        }
        if tcp.options_end != OptionsEnd::Complete {
            self.report_options(record, tcp.options_end);
        }
        self.tally.tcp(record.frame_bytes);
        let mut segment = assemble(record, packet.len(), ip, &tcp);
        if self.checksums {
            segment.ip_checksum = checksum::of_ip(packet, ip);
            segment.tcp_checksum = checksum::of_tcp(packet, ip);
        }
        Some(segment)
    }

    fn count_other(&mut self, record: &Record<'_>, ip: &IpHeader) -> Option<Segment> {
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
}

fn other_kind(ip: &IpHeader) -> Other {
    match ip.protocol {
        protocol::UDP => Other::Udp,
        protocol::ICMP | protocol::ICMPV6 => Other::Icmp,
        protocol::TCP => Other::TcpFragment,
        _ => Other::OtherIp,
    }
}

/// The segment of a packet of which `captured` octets were captured.
#[expect(
    clippy::inline_always,
    reason = "a result in memory costs a stall per packet"
)]
#[inline(always)]
pub(crate) fn assemble(
    record: &Record<'_>,
    captured: usize,
    ip: &IpHeader,
    tcp: &TcpHeader,
) -> Segment {
    let header_bytes = ip.header_bytes + tcp.header_bytes;
    let payload_bytes = ip.ip_bytes - header_bytes as u32;
    let captured_payload = captured.saturating_sub(header_bytes) as u32;
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
        urgent: tcp.urgent,
        payload_bytes,
        missing_bytes: payload_bytes.saturating_sub(captured_payload),
        ip_checksum: Checksum::NotChecked,
        tcp_checksum: Checksum::NotChecked,
        options: tcp.options,
    }
}

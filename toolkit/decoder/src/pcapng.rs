//! The pcapng format (draft-ietf-opsawg-pcapng §3 and §4): sections, interfaces, packets, and resynchronisation after
//! a damaged block.
//!
//! Blocks without packets (names, statistics, decryption secrets, custom and unknown ones) are skipped.

mod block;
mod interface;

use std::io::Read;

use crate::buffer::Buffer;
use crate::compression::Input;
use crate::container::{
    self, CaptureHeader, Format, MAX_CAPTURED_BYTES, Place, Record, incomplete_header,
    report_read_error,
};
use crate::issue::{DecodeError, IssueKind, Issues};

use block::{Block, BlockError, MIN_BLOCK_BYTES, Packet, kind};
use interface::Interface;

/// The first octets of a file: the type of a section header block, which is the same in both byte orders.
pub(crate) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Length of the shortest section header block.
const SECTION_HEADER_BYTES: usize = 28;
/// Maximum length of a block at which reading resumes: a packet with a few options.
const RESYNC_BYTES: usize = MAX_CAPTURED_BYTES as usize + (64 << 10);
/// Maximum number of interfaces of a section.
const MAX_INTERFACES: usize = 1 << 16;

/// A reader of the packets of a pcapng file.
pub(crate) struct Pcapng<R: Read> {
    buffer: Buffer<Input<R>>,
    header: CaptureHeader,
    big_endian: bool,
    interfaces: Vec<Interface>,
    link_numbers: Vec<u16>,
    number: u64,
    last_ns: i64,
    done: bool,
}

impl<R: Read> Pcapng<R> {
    /// Reads the blocks that precede the first packet.
    pub fn new(mut buffer: Buffer<Input<R>>, issues: &mut Issues) -> Result<Self, DecodeError> {
        if !buffer.ensure(SECTION_HEADER_BYTES) {
            return Err(incomplete_header(&mut buffer, SECTION_HEADER_BYTES));
        }
        let header = CaptureHeader {
            format: Format::Pcapng,
            compression: buffer.source().compression(),
            resolution_ns: 0,
            big_endian: false,
            snaplen_bytes: 0,
            link_number: 0,
        };
        let mut records = Self {
            buffer,
            header,
            big_endian: false,
            interfaces: Vec::new(),
            link_numbers: Vec::new(),
            number: 0,
            last_ns: 0,
            done: false,
        };
        if let Err(error) = records.block() {
            let found = format!("it starts like a pcapng file, but {error}");
            return Err(DecodeError::NotACapture { found });
        }
        records.read_to_first_packet(issues);
        Ok(records)
    }

    /// Reads the interfaces that precede the first packet.
    fn read_to_first_packet(&mut self, issues: &mut Issues) {
        while let Some(block) = self.next_block(issues) {
            if block.is_packet() {
                break;
            }
            self.skip_packetless(block, issues);
        }
        self.header.big_endian = self.big_endian;
        if let Some(first) = self.interfaces.first() {
            self.header.link_number = first.link_number;
        }
        let resolutions = self.interfaces.iter().map(|one| one.resolution.unit_ns());
        self.header.resolution_ns = resolutions.max().unwrap_or(1_000);
        let limits = || self.interfaces.iter().map(|one| one.snaplen_bytes);
        self.header.snaplen_bytes = if limits().any(|limit| limit == 0) {
            0
        } else {
            limits().max().unwrap_or(0)
        };
    }

    pub fn header(&self) -> CaptureHeader {
        self.header
    }

    /// The link types of the interfaces so far, each once.
    pub fn link_numbers(&self) -> &[u16] {
        &self.link_numbers
    }

    /// Offset of the next block in the uncompressed input.
    pub fn offset(&self) -> u64 {
        self.buffer.offset()
    }

    /// The next packet; `None` at the end of the input.
    pub fn next(&mut self, issues: &mut Issues) -> Option<Record<'_>> {
        loop {
            let block = self.next_block(issues)?;
            if !block.is_packet() {
                self.skip_packetless(block, issues);
                continue;
            }
            self.number += 1;
            let offset = self.buffer.offset();
            match self.packet(block, issues) {
                Ok((packet, interface)) => {
                    self.buffer.consume(block.bytes);
                    let octets = self.buffer.consumed(block.bytes);
                    let end = packet.data_at + packet.captured_bytes as usize;
                    return Some(Record {
                        number: self.number,
                        place: Place {
                            record: self.number,
                            offset,
                        },
                        t_ns: self.last_ns,
                        frame_bytes: packet.frame_bytes,
                        link: interface.link(),
                        data: octets.get(packet.data_at..end).unwrap_or_default(),
                    });
                }
                Err(text) => {
                    issues.add(self.number, offset, IssueKind::RecordHeader, || {
                        format!("{text}; not decoded")
                    });
                    self.buffer.consume(block.bytes);
                }
            }
        }
    }

    /// The complete block at the front, after resynchronisation if need be. `None` at the end of the input.
    #[inline]
    fn next_block(&mut self, issues: &mut Issues) -> Option<Block> {
        while !self.done {
            match self.block() {
                Ok(block) => return Some(block),
                Err(error) => self.recover(&error, issues),
            }
        }
        None
    }

    /// Parses and loads the block at the front.
    #[inline]
    fn block(&mut self) -> Result<Block, BlockError> {
        if !self.buffer.ensure(MIN_BLOCK_BYTES) {
            return Err(BlockError::HeaderCut);
        }
        let block = Block::parse(self.buffer.octets(), self.big_endian)?;
        if !self.buffer.ensure(block.bytes) {
            return Err(BlockError::Cut { bytes: block.bytes });
        }
        block.check_trailer(self.buffer.octets())?;
        Ok(block)
    }

    /// Reads the packet block at the front: its fields, its interface, and its time into `last_ns`.
    fn packet(&mut self, block: Block, issues: &mut Issues) -> Result<(Packet, Interface), String> {
        let offset = self.buffer.offset();
        let mut add = |kind, text: &dyn Fn() -> String| issues.add(self.number, offset, kind, text);
        let mut packet = block.packet(self.buffer.octets())?;
        let number = packet.interface as usize;
        let Some(&interface) = self.interfaces.get(number) else {
            let defined = self.interfaces.len();
            return Err(format!(
                "the packet names interface {number}, but the section defines {defined}"
            ));
        };
        if block.kind == kind::SIMPLE_PACKET {
            packet.limit_to(interface.snaplen_bytes);
            add(IssueKind::RecordTime, &|| {
                "a simple packet block has no time; took that of the packet before".to_owned()
            });
        } else if let Some(t_ns) = interface.t_ns(packet.ticks) {
            self.last_ns = t_ns;
        } else {
            add(IssueKind::RecordTime, &|| {
                format!(
                    "the time of {} ticks is out of range; took that of the packet before",
                    packet.ticks
                )
            });
        }
        let (captured, frame) = (packet.captured_bytes, packet.frame_bytes);
        if captured > frame {
            packet.frame_bytes = captured;
            add(IssueKind::RecordLength, &|| {
                format!(
                    "captured length {captured} above frame length {frame}; took {captured} for both"
                )
            });
        } else if interface.snaplen_bytes > 0 && captured > interface.snaplen_bytes {
            add(IssueKind::RecordLength, &|| {
                let limit = interface.snaplen_bytes;
                format!("captured length {captured} above snapshot length {limit}; kept")
            });
        }
        Ok((packet, interface))
    }

    /// Reads a block without a packet, and skips it.
    fn skip_packetless(&mut self, block: Block, issues: &mut Issues) {
        let offset = self.buffer.offset();
        match block.kind {
            kind::SECTION_HEADER => {
                self.big_endian = block.big_endian;
                self.interfaces.clear();
            }
            kind::INTERFACE => self.add_interface(block, issues),
            kind::INTERFACE_STATISTICS => {
                if let Some((interface, dropped)) = block.dropped_packets(self.buffer.octets()) {
                    issues.add(self.number, offset, IssueKind::CaptureDrop, || {
                        format!("the capture lost {dropped} packets on interface {interface}")
                    });
                }
            }
            _ => {}
        }
        self.buffer.consume(block.bytes);
    }

    fn add_interface(&mut self, block: Block, issues: &mut Issues) {
        let offset = self.buffer.offset();
        let number = self.interfaces.len();
        if number >= MAX_INTERFACES {
            issues.add(self.number, offset, IssueKind::FileHeader, || {
                format!(
                    "more than {MAX_INTERFACES} interfaces in a section; the others are not read"
                )
            });
            return;
        }
        let octets = block.body(self.buffer.octets());
        let (interface, complete) = Interface::parse(octets, self.big_endian);
        if !complete {
            issues.add(self.number, offset, IssueKind::FileHeader, || {
                format!("interface {number} has invalid options; took the default for the others")
            });
        }
        if !self.link_numbers.contains(&interface.link_number) {
            self.link_numbers.push(interface.link_number);
        }
        self.interfaces.push(interface);
    }

    /// Handles the end of the input or a damaged block: skips to the next valid block, or ends.
    #[cold]
    fn recover(&mut self, error: &BlockError, issues: &mut Issues) {
        let (number, offset) = (self.number + 1, self.buffer.offset());
        let left = self.buffer.octets().len();
        let kind = match error {
            BlockError::HeaderCut | BlockError::Cut { .. } => {
                if report_read_error(&mut self.buffer, self.number, issues) {
                    self.done = true;
                    return;
                }
                IssueKind::Cut
            }
            _ => IssueKind::RecordHeader,
        };
        let text = match error {
            BlockError::HeaderCut if left == 0 => {
                self.done = true;
                return;
            }
            BlockError::HeaderCut => {
                format!("the input ends within a block header, after {left} of 12 octets")
            }
            BlockError::Cut { bytes } => {
                format!("the input ends within a block, after {left} of {bytes} octets")
            }
            other => other.to_string(),
        };
        let big_endian = self.big_endian;
        let resumed = container::seek(&mut self.buffer, RESYNC_BYTES, |octets, at| {
            let rest = octets.get(at..).unwrap_or_default();
            Block::parse(rest, big_endian).is_ok_and(|block| {
                block.is_known() && block.bytes <= RESYNC_BYTES && block.check_trailer(rest).is_ok()
            })
        });
        if resumed {
            let skipped = self.buffer.offset() - offset;
            issues.add(number, offset, kind, || {
                format!("{text}; skipped {skipped} octets to the next block")
            });
            return;
        }
        self.done = true;
        issues.add(number, offset, kind, || {
            format!("{text}; no block follows, all earlier packets are kept")
        });
        report_read_error(&mut self.buffer, number, issues);
    }
}

//! A block: its type and length, which it repeats at its end, and the fields of those that concern packets.

use std::fmt;

use crate::octets::{u16_in, u32_in};

/// Block types (draft-ietf-opsawg-pcapng §4).
pub(super) mod kind {
    pub const INTERFACE: u32 = 1;
    /// Obsolete.
    pub const PACKET: u32 = 2;
    pub const SIMPLE_PACKET: u32 = 3;
    pub const NAME_RESOLUTION: u32 = 4;
    pub const INTERFACE_STATISTICS: u32 = 5;
    pub const ENHANCED_PACKET: u32 = 6;
    pub const DECRYPTION_SECRETS: u32 = 10;
    pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
}

/// Length of a block without a body: type, length, and the length again.
pub(super) const MIN_BLOCK_BYTES: usize = 12;
const HEADER_BYTES: usize = 8;
const TRAILER_BYTES: usize = 4;
/// Maximum length of a block; libpcap and Wireshark have the same limit.
const MAX_BLOCK_BYTES: u32 = 16 << 20;

/// A block with a valid header.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub kind: u32,
    pub bytes: usize,
    pub big_endian: bool,
}

/// Why no valid block is at the front of the input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockError {
    /// The input ends within the block header.
    HeaderCut,
    /// The input ends within the block.
    Cut {
        /// Length of the block.
        bytes: usize,
    },
    /// The length is not one that a block can have.
    Length { kind: u32, bytes: u32 },
    /// The length at the end differs.
    Trailer { bytes: usize, trailer: u32 },
    /// The section has no valid mark of its byte order.
    ByteOrder { mark: u32 },
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeaderCut => write!(f, "it ends within a block header"),
            Self::Cut { bytes } => write!(f, "it ends within a block of {bytes} octets"),
            Self::Length { kind, bytes } => {
                write!(
                    f,
                    "a block of type {kind:#x} has the invalid length {bytes}"
                )
            }
            Self::Trailer { bytes, trailer } => {
                write!(
                    f,
                    "a block of {bytes} octets ends with the length {trailer}"
                )
            }
            Self::ByteOrder { mark } => {
                write!(
                    f,
                    "the byte order of a section is marked {mark:#010x}, not 0x1a2b3c4d"
                )
            }
        }
    }
}

/// The fields of a packet block. Its data starts `data_at` octets after the start of the block.
#[derive(Clone, Copy)]
pub(super) struct Packet {
    pub interface: u32,
    /// Time in units of the interface; 0 in a simple packet block.
    pub ticks: u64,
    pub captured_bytes: u32,
    pub frame_bytes: u32,
    pub data_at: usize,
}

impl Packet {
    /// Applies the snapshot length of the interface, if any: a simple packet block does not store its captured length.
    pub fn limit_to(&mut self, snaplen_bytes: u32) {
        if snaplen_bytes > 0 {
            self.captured_bytes = self.captured_bytes.min(snaplen_bytes);
        }
    }
}

impl Block {
    /// Parses the header of the block at the start of `octets`, in a section of the given byte order.
    #[inline]
    pub fn parse(octets: &[u8], big_endian: bool) -> Result<Self, BlockError> {
        let field = |big_endian, at| u32_in(big_endian, octets, at).ok_or(BlockError::HeaderCut);
        let kind = field(big_endian, 0)?;
        let mut big_endian = big_endian;
        if kind == kind::SECTION_HEADER {
            big_endian = match field(true, 8)? {
                0x1a2b_3c4d => true,
                0x4d3c_2b1a => false,
                mark => return Err(BlockError::ByteOrder { mark }),
            };
        }
        let bytes = field(big_endian, 4)?;
        let min_bytes = match kind {
            kind::SECTION_HEADER => 28,
            kind::INTERFACE => 20,
            kind::PACKET | kind::ENHANCED_PACKET => 32,
            kind::SIMPLE_PACKET => 16,
            kind::INTERFACE_STATISTICS => 24,
            _ => MIN_BLOCK_BYTES as u32,
        };
        if bytes % 4 != 0 || !(min_bytes..=MAX_BLOCK_BYTES).contains(&bytes) {
            return Err(BlockError::Length { kind, bytes });
        }
        Ok(Self {
            kind,
            bytes: bytes as usize,
            big_endian,
        })
    }

    /// Checks that the block at the start of `octets` ends with its length.
    #[inline]
    pub fn check_trailer(self, octets: &[u8]) -> Result<(), BlockError> {
        let bytes = self.bytes;
        match u32_in(self.big_endian, octets, bytes - TRAILER_BYTES) {
            Some(trailer) if trailer as usize == bytes => Ok(()),
            Some(trailer) => Err(BlockError::Trailer { bytes, trailer }),
            None => Err(BlockError::Cut { bytes }),
        }
    }

    pub fn is_packet(self) -> bool {
        matches!(
            self.kind,
            kind::PACKET | kind::SIMPLE_PACKET | kind::ENHANCED_PACKET
        )
    }

    /// Whether the specification defines the block type.
    pub fn is_known(self) -> bool {
        let others = [
            kind::SECTION_HEADER,
            kind::INTERFACE,
            kind::NAME_RESOLUTION,
            kind::INTERFACE_STATISTICS,
            kind::DECRYPTION_SECRETS,
        ];
        self.is_packet() || others.contains(&self.kind)
    }

    /// The octets between the block's header and trailer.
    pub fn body(self, octets: &[u8]) -> &[u8] {
        octets
            .get(HEADER_BYTES..self.bytes - TRAILER_BYTES)
            .unwrap_or_default()
    }

    /// The fields of the packet block at the start of `octets`.
    #[inline]
    pub fn packet(self, octets: &[u8]) -> Result<Packet, String> {
        let u32_at = |at| u32_in(self.big_endian, octets, at).unwrap_or(0);
        let room = |data_at: usize| (self.bytes - TRAILER_BYTES - data_at) as u32;
        if self.kind == kind::SIMPLE_PACKET {
            let (frame_bytes, data_at) = (u32_at(8), 12);
            return Ok(Packet {
                interface: 0,
                ticks: 0,
                captured_bytes: frame_bytes.min(room(data_at)),
                frame_bytes,
                data_at,
            });
        }
        let interface = if self.kind == kind::PACKET {
            // The other half of the field is a count of drops.
            u32::from(u16_in(self.big_endian, octets, 8).unwrap_or(0))
        } else {
            u32_at(8)
        };
        let (captured_bytes, data_at) = (u32_at(20), 28);
        if captured_bytes > room(data_at) {
            return Err(format!(
                "the packet has {captured_bytes} captured octets, its block room for {}",
                room(data_at)
            ));
        }
        Ok(Packet {
            interface,
            ticks: u64::from(u32_at(12)) << 32 | u64::from(u32_at(16)),
            captured_bytes,
            frame_bytes: u32_at(24),
            data_at,
        })
    }

    /// The interface of the statistics block at the start of `octets`, and the packets that it and the system lost.
    /// `None` if they lost none.
    pub fn dropped_packets(self, octets: &[u8]) -> Option<(u32, u64)> {
        const INTERFACE_DROPS: u16 = 5;
        const SYSTEM_DROPS: u16 = 7;
        let body = self.body(octets);
        let interface = u32_in(self.big_endian, body, 0)?;
        let dropped = Options::new(body.get(12..)?, self.big_endian)
            .filter(|(code, _)| [INTERFACE_DROPS, SYSTEM_DROPS].contains(code))
            .filter_map(|(_, value)| u64_in(self.big_endian, value))
            .fold(0, u64::saturating_add);
        (dropped > 0).then_some((interface, dropped))
    }
}

/// The 64-bit integer that `octets` are, in the given byte order.
pub(super) fn u64_in(big_endian: bool, octets: &[u8]) -> Option<u64> {
    let octets: [u8; 8] = octets.try_into().ok()?;
    Some(if big_endian {
        u64::from_be_bytes(octets)
    } else {
        u64::from_le_bytes(octets)
    })
}

/// The options of a block: code and value.
pub(super) struct Options<'a> {
    octets: &'a [u8],
    big_endian: bool,
}

impl<'a> Options<'a> {
    pub fn new(octets: &'a [u8], big_endian: bool) -> Self {
        Self { octets, big_endian }
    }

    /// Whether iteration has ended at the end of the options, and not within one.
    pub fn complete(&self) -> bool {
        self.octets.is_empty()
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let code = u16_in(self.big_endian, self.octets, 0)?;
        let bytes = usize::from(u16_in(self.big_endian, self.octets, 2)?);
        if code == 0 {
            self.octets = &[];
            return None;
        }
        let value = self.octets.get(4..4 + bytes)?;
        self.octets = self.octets.get(4 + bytes.next_multiple_of(4)..)?;
        Some((code, value))
    }
}

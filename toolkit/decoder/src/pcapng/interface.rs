//! An interface of a section: link type, snapshot length, and what its timestamps count.

use crate::link::LinkType;
use crate::octets::{u16_in, u32_in};

use super::block::{Options, u64_in};

/// An interface description block.
#[derive(Clone, Copy)]
pub(super) struct Interface {
    pub link_number: u16,
    link: Option<LinkType>,
    /// 0 for no limit.
    pub snaplen_bytes: u32,
    pub resolution: Resolution,
    offset_s: i64,
}

/// The unit of timestamps.
#[derive(Clone, Copy)]
pub(super) enum Resolution {
    /// Multiples of this many nanoseconds.
    Multiple(u64),
    /// Fractions of a nanosecond: this many in one.
    Fraction(u64),
    /// Seconds divided by 2 to this power.
    Binary(u8),
}

const NS_PER_S: u64 = 1_000_000_000;
/// Option codes (draft-ietf-opsawg-pcapng §4.2).
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

impl Interface {
    /// Parses the body of an interface description block. Returns false if its options are invalid.
    pub fn parse(body: &[u8], big_endian: bool) -> (Self, bool) {
        let link_number = u16_in(big_endian, body, 0).unwrap_or(0);
        let mut interface = Self {
            link_number,
            link: LinkType::from_number(link_number),
            snaplen_bytes: u32_in(big_endian, body, 4).unwrap_or(0),
            resolution: Resolution::Multiple(1_000),
            offset_s: 0,
        };
        let mut options = Options::new(body.get(8..).unwrap_or_default(), big_endian);
        let mut valid = true;
        for (code, value) in options.by_ref() {
            match (code, value) {
                (IF_TSRESOL, &[octet]) => match Resolution::parse(octet) {
                    Some(resolution) => interface.resolution = resolution,
                    None => valid = false,
                },
                (IF_TSOFFSET, _) => match u64_in(big_endian, value) {
                    Some(offset) => interface.offset_s = i64::from_ne_bytes(offset.to_ne_bytes()),
                    None => valid = false,
                },
                (IF_TSRESOL, _) => valid = false,
                _ => {}
            }
        }
        (interface, valid && options.complete())
    }

    /// The link type, or the number of an unsupported one.
    #[inline]
    pub fn link(self) -> Result<LinkType, u16> {
        self.link.ok_or(self.link_number)
    }

    /// The time of a packet with this timestamp; `None` beyond the years that 64 bits of nanoseconds reach.
    #[inline]
    pub fn t_ns(self, ticks: u64) -> Option<i64> {
        let ns = i64::try_from(self.resolution.ns(ticks)?).ok()?;
        if self.offset_s == 0 {
            return Some(ns);
        }
        let offset_ns = i128::from(self.offset_s) * i128::from(NS_PER_S);
        i64::try_from(i128::from(ns) + offset_ns).ok()
    }
}

impl Resolution {
    /// Parses the option `if_tsresol`: the negative power of 10, or of 2 if the highest bit is set. `None` for units
    /// that 64 bits cannot count.
    fn parse(octet: u8) -> Option<Self> {
        let exponent = octet & 0x7f;
        match (octet & 0x80 != 0, exponent) {
            (false, ..=9) => Some(Self::Multiple(10_u64.pow(9 - u32::from(exponent)))),
            (false, ..=28) => Some(Self::Fraction(10_u64.pow(u32::from(exponent) - 9))),
            (true, ..=63) => Some(Self::Binary(exponent)),
            _ => None,
        }
    }

    #[inline]
    fn ns(self, ticks: u64) -> Option<u64> {
        match self {
            Self::Multiple(ns) => ticks.checked_mul(ns),
            Self::Fraction(per_ns) => Some(ticks / per_ns),
            Self::Binary(exponent) => {
                u64::try_from((u128::from(ticks) * u128::from(NS_PER_S)) >> exponent).ok()
            }
        }
    }

    /// Length of the unit, rounded up to nanoseconds.
    pub fn unit_ns(self) -> u32 {
        match self {
            Self::Multiple(ns) => ns as u32,
            Self::Fraction(_) => 1,
            Self::Binary(exponent) => NS_PER_S.div_ceil(1 << exponent) as u32,
        }
    }
}

//! The cells of many rows in little memory, to be written when their order is known.

use std::net::IpAddr;

use crate::cells::PlainCells;
use crate::pack::Pack;

/// What follows in the octets.
mod tag {
    /// A number of cells that hold 0.
    pub const ZEROS: u8 = 0;
    pub const INTEGER: u8 = 1;
    pub const SIGNED: u8 = 2;
    pub const FALSE: u8 = 3;
    pub const TRUE: u8 = 4;
    pub const TEXT: u8 = 5;
    pub const V4: u8 = 6;
    pub const V6: u8 = 7;
    pub const MISSING: u8 = 8;
    pub const END: u8 = 9;
}

/// PlainCells of rows, one after another.
#[derive(Default)]
pub struct PackedCells {
    octets: Vec<u8>,
    /// PlainCells that hold 0 and have not been written.
    zeros: u64,
}

impl PackedCells {
    /// Where the next row begins.
    pub fn offset(&self) -> usize {
        self.octets.len()
    }

    /// Ends a row.
    pub fn end_row(&mut self) {
        self.tag(tag::END);
    }

    fn tag(&mut self, tag: u8) {
        if self.zeros > 0 {
            self.octets.push(tag::ZEROS);
            std::mem::take(&mut self.zeros).pack(&mut self.octets);
        }
        self.octets.push(tag);
    }

    /// Writes the cells of the row at `offset`.
    pub fn replay(&self, offset: usize, out: &mut impl PlainCells) {
        let mut rest = &self.octets[offset..];
        while let Some((&tag, after)) = rest.split_first() {
            rest = after;
            match tag {
                tag::ZEROS => (0..u64::unpack(&mut rest)).for_each(|_| out.integer(0)),
                tag::INTEGER => out.integer(u64::unpack(&mut rest)),
                tag::SIGNED => out.signed(i64::unpack(&mut rest)),
                tag::FALSE => out.flag(false),
                tag::TRUE => out.flag(true),
                tag::MISSING => out.missing(),
                tag::TEXT => {
                    let length = (u64::unpack(&mut rest) as usize).min(rest.len());
                    let (text, after) = rest.split_at(length);
                    rest = after;
                    out.text(std::str::from_utf8(text).unwrap_or_default());
                }
                tag::V4 => out.address(IpAddr::from(octets::<4>(&mut rest))),
                tag::V6 => out.address(IpAddr::from(octets::<16>(&mut rest))),
                _ => return,
            }
        }
    }
}

fn octets<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let Some((first, after)) = rest.split_first_chunk::<N>() else {
        return [0; N];
    };
    *rest = after;
    *first
}

impl PlainCells for PackedCells {
    fn integer(&mut self, value: u64) {
        if value == 0 {
            self.zeros += 1;
        } else {
            self.tag(tag::INTEGER);
            value.pack(&mut self.octets);
        }
    }

    fn signed(&mut self, value: i64) {
        self.tag(tag::SIGNED);
        value.pack(&mut self.octets);
    }

    fn flag(&mut self, value: bool) {
        self.tag(if value { tag::TRUE } else { tag::FALSE });
    }

    fn text(&mut self, text: &str) {
        self.tag(tag::TEXT);
        (text.len() as u64).pack(&mut self.octets);
        self.octets.extend_from_slice(text.as_bytes());
    }

    fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(v4) => {
                self.tag(tag::V4);
                self.octets.extend_from_slice(&v4.octets());
            }
            IpAddr::V6(v6) => {
                self.tag(tag::V6);
                self.octets.extend_from_slice(&v6.octets());
            }
        }
    }

    fn missing(&mut self) {
        self.tag(tag::MISSING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::{Format, TextRows};
    use proptest::prelude::*;

    fn write(out: &mut impl PlainCells, numbers: &[u64], signed: i64, flag: bool) {
        for &number in numbers {
            out.integer(number);
        }
        out.signed(signed);
        out.flag(flag);
        out.text("a2b");
        out.address(IpAddr::from([10, 0, 0, 1]));
        out.address(IpAddr::from([7; 16]));
        out.missing();
    }

    proptest! {
        #[test]
        fn rows_come_back_in_any_order(
            numbers in proptest::collection::vec(prop_oneof![Just(0), any::<u64>()], 0..20),
            signed in any::<i64>(), flag in any::<bool>(),
        ) {
            let mut cells = PackedCells::default();
            let mut starts = Vec::new();
            for numbers in [&numbers[..], &[]] {
                starts.push(cells.offset());
                write(&mut cells, numbers, signed, flag);
                cells.end_row();
            }
            for (start, numbers) in starts.into_iter().zip([&numbers[..], &[]]).rev() {
                let (mut direct, mut replayed) = (Vec::new(), Vec::new());
                write(&mut TextRows::new(&mut direct, Format::Csv, &[]), numbers, signed, flag);
                cells.replay(start, &mut TextRows::new(&mut replayed, Format::Csv, &[]));
                prop_assert_eq!(direct, replayed);
            }
        }
    }
}

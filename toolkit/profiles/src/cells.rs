//! Rows as CSV or JSON: writes numbers without going through `core::fmt` where it can.

use std::io::Write;
use std::net::IpAddr;

/// Takes the cells of a row, one after another: what tables have.
pub trait PlainCells {
    /// An integer.
    fn integer(&mut self, value: u64);
    /// An integer that may be negative.
    fn signed(&mut self, value: i64);
    /// A truth value.
    fn flag(&mut self, value: bool);
    /// Text without characters that need quotes.
    fn text(&mut self, text: &str);
    /// An address.
    fn address(&mut self, address: IpAddr);
    /// No value.
    fn missing(&mut self);
}

/// Takes the cells of a row, one after another: also numbers as other analysers print them.
pub trait Cells: PlainCells {
    /// A time since 1970-01-01 UTC, in seconds with six digits after the point.
    fn time(&mut self, t_us: i64);
    /// A time in seconds with nine digits after the point.
    fn seconds(&mut self, ns: i64);
    /// A duration in hours, minutes, seconds and microseconds.
    fn duration(&mut self, us: u64);
    /// Milliseconds with one digit after the point.
    fn milliseconds(&mut self, us: u64);
    /// A number with at most three `digits` after the point; a missing value if it is not finite.
    fn decimal(&mut self, value: f64, digits: usize);
    /// Two integers with a slash between them.
    fn ratio(&mut self, first: u64, second: u64);
}

/// The format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines of comma-separated values.
    Csv,
    /// JSON objects, with commas between them; `null` without a value.
    Json,
}

/// Rows as text.
pub struct TextRows<'a> {
    out: &'a mut Vec<u8>,
    format: Format,
    /// What precedes the cells: a comma, and in JSON the name with its quotes and a colon.
    names: &'a [Vec<u8>],
    absent: &'static [u8],
    at: usize,
}

/// What precedes the cells of a row in `format`, for fields with these names.
pub fn separators(names: &[String], format: Format) -> Vec<Vec<u8>> {
    names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let comma = if at > 0 { "," } else { "" };
            match format {
                Format::Csv => comma.to_owned(),
                Format::Json => format!("{comma}\"{name}\":"),
            }
            .into_bytes()
        })
        .collect()
}

impl<'a> TextRows<'a> {
    /// Appends rows to `out`; `names` are the [`separators`] of this format.
    pub fn new(out: &'a mut Vec<u8>, format: Format, names: &'a [Vec<u8>]) -> Self {
        Self {
            out,
            format,
            names,
            absent: if format == Format::Json {
                b"null"
            } else {
                b"NA"
            },
            at: 0,
        }
    }

    /// Leaves the cells of a CSV without a value empty, instead of `NA`.
    #[must_use]
    pub fn with_empty_cells(mut self) -> Self {
        if self.format == Format::Csv {
            self.absent = b"";
        }
        self
    }

    /// Begins a row; `first` if no other precedes it.
    pub fn begin(&mut self, first: bool) {
        self.at = 0;
        if self.format == Format::Json {
            self.out
                .extend_from_slice(if first { b"\n{" } else { b",\n{" });
        }
    }

    /// Ends a row.
    pub fn end(&mut self) {
        self.out.extend_from_slice(if self.format == Format::Json {
            b"}"
        } else {
            b"\n"
        });
    }

    #[inline]
    fn separate(&mut self) {
        if self.format == Format::Csv {
            if self.at > 0 {
                self.out.push(b',');
            }
        } else if let Some(name) = self.names.get(self.at) {
            self.out.extend_from_slice(name);
        }
        self.at += 1;
    }

    #[inline]
    fn quoted(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.separate();
        let quotes = self.format == Format::Json;
        if quotes {
            self.out.push(b'"');
        }
        write(self.out);
        if quotes {
            self.out.push(b'"');
        }
    }
}

impl PlainCells for TextRows<'_> {
    #[inline]
    fn integer(&mut self, value: u64) {
        self.separate();
        push_integer(self.out, value);
    }

    fn signed(&mut self, value: i64) {
        self.separate();
        if value < 0 {
            self.out.push(b'-');
        }
        push_integer(self.out, value.unsigned_abs());
    }

    fn flag(&mut self, value: bool) {
        self.separate();
        // As Python writes them.
        self.out.extend_from_slice(match (self.format, value) {
            (Format::Csv, true) => b"True",
            (Format::Csv, false) => b"False",
            (Format::Json, true) => b"true",
            (Format::Json, false) => b"false",
        });
    }

    fn text(&mut self, text: &str) {
        self.quoted(|out| out.extend_from_slice(text.as_bytes()));
    }

    fn address(&mut self, address: IpAddr) {
        self.quoted(|out| push_address(out, address));
    }

    fn missing(&mut self) {
        self.separate();
        self.out.extend_from_slice(self.absent);
    }
}

impl Cells for TextRows<'_> {
    fn seconds(&mut self, ns: i64) {
        self.separate();
        if ns < 0 {
            self.out.push(b'-');
        }
        push_integer(self.out, ns.unsigned_abs() / 1_000_000_000);
        self.out.push(b'.');
        push_padded(self.out, ns.unsigned_abs() % 1_000_000_000, 9);
    }

    fn time(&mut self, t_us: i64) {
        self.separate();
        if t_us < 0 {
            self.out.push(b'-');
        }
        let us = t_us.unsigned_abs();
        push_integer(self.out, us / 1_000_000);
        self.out.push(b'.');
        push_padded(self.out, us % 1_000_000, 6);
    }

    fn duration(&mut self, us: u64) {
        let seconds = us / 1_000_000;
        self.quoted(|out| {
            push_integer(out, seconds / 3600);
            out.push(b':');
            push_padded(out, seconds / 60 % 60, 2);
            out.push(b':');
            push_padded(out, seconds % 60, 2);
            out.push(b'.');
            push_padded(out, us % 1_000_000, 6);
        });
    }

    #[inline]
    fn milliseconds(&mut self, us: u64) {
        // A half is not exact in binary: it is rounded as C rounds it.
        if us % 100 == 50 {
            self.decimal(us as f64 / 1000.0, 1);
            return;
        }
        self.separate();
        let tenths = us / 100 + u64::from(us % 100 > 50);
        push_integer(self.out, tenths / 10);
        self.out.push(b'.');
        self.out.push(b'0' + (tenths % 10) as u8);
    }

    #[inline]
    fn decimal(&mut self, value: f64, digits: usize) {
        const SCALES: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];
        if !value.is_finite() {
            self.missing();
            return;
        }
        self.separate();
        let scaled = value * SCALES[digits];
        let distance = (scaled - scaled.trunc() - 0.5).abs();
        if !(0.0..1e9).contains(&scaled) || distance < 1e-5 {
            // Writing to a vector cannot fail.
            let _ = write!(self.out, "{value:.digits$}");
            return;
        }
        let units = scaled as u64 + u64::from(scaled.fract() > 0.5);
        let scale = SCALES[digits] as u64;
        push_integer(self.out, units / scale);
        if digits > 0 {
            self.out.push(b'.');
            push_padded(self.out, units % scale, digits);
        }
    }

    fn ratio(&mut self, first: u64, second: u64) {
        self.quoted(|out| {
            push_integer(out, first);
            out.push(b'/');
            push_integer(out, second);
        });
    }
}

#[inline]
fn push_integer(out: &mut Vec<u8>, mut value: u64) {
    if value < 10 {
        out.push(b'0' + value as u8);
        return;
    }
    let mut digits = [0; 20];
    let mut at = digits.len();
    while value > 0 {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&digits[at..]);
}

fn push_padded(out: &mut Vec<u8>, value: u64, width: usize) {
    let start = out.len();
    out.resize(start + width, b'0');
    let mut rest = value;
    for digit in out[start..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => {
            for (at, &octet) in v4.octets().iter().enumerate() {
                if at > 0 {
                    out.push(b'.');
                }
                push_integer(out, u64::from(octet));
            }
        }
        IpAddr::V6(v6) => {
            // Writing to a vector cannot fail.
            let _ = write!(out, "{v6}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell(write: impl FnOnce(&mut TextRows<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut TextRows::new(&mut out, Format::Csv, &[]));
        String::from_utf8(out).expect("ASCII")
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_the_standard_library(value in any::<u64>(), us in 0_u64..1 << 45, mean in 0.0..1e12) {
            prop_assert_eq!(cell(|row| row.integer(value)), value.to_string());
            prop_assert_eq!(cell(|row| row.milliseconds(us)), format!("{:.1}", us as f64 / 1000.0));
            for digits in 0..4 {
                prop_assert_eq!(cell(|row| row.decimal(mean, digits)), format!("{:.digits$}", mean));
                let small = mean / 1e9;
                prop_assert_eq!(cell(|row| row.decimal(small, digits)), format!("{:.digits$}", small));
            }
        }
    }

    #[test]
    fn halves_are_rounded_by_their_binary_value() {
        assert_eq!(cell(|row| row.milliseconds(250)), "0.2");
        assert_eq!(cell(|row| row.milliseconds(50)), "0.1");
        assert_eq!(cell(|row| row.decimal(f64::NAN, 1)), "NA");
        assert_eq!(cell(|row| row.time(1_000_005)), "1.000005");
        assert_eq!(cell(|row| row.duration(3_725_000_001)), "1:02:05.000001");
    }
}

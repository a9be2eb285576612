//! tcptrace 6.6.7: the fields of `tcptrace -n -l -r -W` per connection and direction, counted as it counts.
//!
//! Sources: its manual, the documentation on tcptrace.org, and what the program prints. A super-segment is one packet,
//! copies of a packet count, and fields that a capture cannot show are its numbers. Differences are lines that start
//! `Deviation:`, and `docs/parity.md` lists them.

mod connection;
mod direction;
mod fields;
mod samples;
mod sequence_space;
mod table;

use crate::cells::{Format, TextRows, separators};
use crate::packet::Packet;
use table::{Rest, Table};

/// Counts the packets of a capture and writes a row per connection.
pub struct Tcptrace {
    phase: Phase,
    format: Format,
    separators: Vec<Vec<u8>>,
    rows: u64,
    out: Vec<u8>,
}

enum Phase {
    Counting(Table),
    Writing { rest: Rest, at: usize },
}

/// Connections that are written at once by each thread.
const CHUNK: usize = 1024;

/// Threads that write.
const WRITERS: usize = 2;

impl Tcptrace {
    /// Without a packet.
    pub fn new(format: Format) -> Self {
        let names = fields::names();
        let out = match format {
            Format::Csv => (names.join(",") + "\n").into_bytes(),
            Format::Json => Vec::new(),
        };
        Self {
            phase: Phase::Counting(Table::default()),
            format,
            separators: separators(&names, format),
            rows: 0,
            out,
        }
    }

    /// Counts packets.
    pub fn push(&mut self, packets: &[Packet]) {
        let Phase::Counting(table) = &mut self.phase else {
            return;
        };
        for packet in packets {
            table.push(packet);
        }
        let rows = table.take_given_out();
        let mut text = TextRows::new(&mut self.out, self.format, &self.separators);
        for row in rows {
            text.begin(self.rows == 0);
            fields::write(row.number, &row.ends, &row.connection, &mut text);
            text.end();
            self.rows += 1;
        }
    }

    /// Ends the capture, whose last packet came at `end_us`.
    pub fn finish(&mut self, end_us: i64) {
        if let Phase::Counting(table) = &mut self.phase {
            let rest = std::mem::take(table).finish(end_us);
            self.phase = Phase::Writing { rest, at: 0 };
        }
    }

    /// Takes the text that is ready. Empty before the end if no row had to be given out, and after the last row.
    pub fn take_text(&mut self) -> Vec<u8> {
        self.write_chunk();
        std::mem::take(&mut self.out)
    }

    /// Writes the next rows after the end of the capture.
    fn write_chunk(&mut self) {
        let Phase::Writing { rest, at } = &mut self.phase else {
            return;
        };
        let start = *at;
        let end = rest.count().min(start + CHUNK * WRITERS);
        let middle = end.min(start + CHUNK);
        *at = end;
        let (format, names, rows) = (self.format, &self.separators, self.rows);
        let rest = &*rest;
        let write = |range: std::ops::Range<usize>, out: &mut Vec<u8>| {
            let first = range.start - start;
            let mut text = TextRows::new(out, format, names);
            let mut count = 0;
            rest.for_each(range, |ends, number, connection| {
                text.begin(rows + first as u64 + count == 0);
                fields::write(number, ends, connection, &mut text);
                text.end();
                count += 1;
            });
        };
        if middle < end {
            let mut second = Vec::new();
            std::thread::scope(|scope| {
                scope.spawn(|| write(middle..end, &mut second));
                write(start..middle, &mut self.out);
            });
            self.out.append(&mut second);
        } else {
            write(start..end, &mut self.out);
        }
        self.rows += (end - start) as u64;
    }
}

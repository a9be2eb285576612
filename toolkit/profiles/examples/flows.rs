//! `flows CAPTURE [read | single]`: the table `flows` as CSV on stdout; for measurements without Python.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use hindflight_decoder::{Reader, Segment};
use hindflight_profiles::{Flows, Format, Next, Pipeline};

fn main() {
    let mut words = std::env::args().skip(1);
    let path = words.next().expect("a capture");
    let mode = words.next();
    let mut reader = Reader::new(File::open(path).expect("readable")).expect("a capture");
    let mut flows = Flows::new(Format::Csv, 1);
    match mode.as_deref() {
        Some("read") => {
            let mut count = 0_u64;
            while !reader.ended() {
                while let Some(captured) = reader.next_segment() {
                    count += u64::from(captured.segment.seq & 1);
                }
                reader.take_others();
            }
            eprintln!("{count}");
            return;
        }
        Some("single") => {
            while !reader.ended() {
                while let Some(captured) = reader.next_segment() {
                    flows.push(std::slice::from_ref(captured.segment));
                }
                reader.take_others();
            }
        }
        _ => {
            let pipeline = Pipeline::start(reader, |segment: &Segment, batch| batch.push(*segment));
            loop {
                match pipeline.next(Duration::from_secs(1)) {
                    Next::Segments(segments) => {
                        flows.push(&segments);
                        pipeline.reuse(segments);
                    }
                    Next::Waiting => {}
                    Next::End(_) | Next::Gone => break,
                }
            }
        }
    }
    flows.finish();
    let mut out = std::io::stdout().lock();
    loop {
        let text = flows.take_text();
        if text.is_empty() {
            break;
        }
        out.write_all(&text).expect("stdout");
    }
}

//! `tcptrace CAPTURE [single]`: the rows as CSV on stdout; for measurements without Python.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use hindflight_decoder::Reader;
use hindflight_profiles::{Format, Next, Packet, Pipeline, Tcptrace};

fn main() {
    let mut words = std::env::args().skip(1);
    let path = words.next().expect("a capture");
    let mode = words.next();
    let mut reader = Reader::new(File::open(path).expect("readable"))
        .expect("a capture")
        .without_checksums();
    let mut profile = Tcptrace::new(Format::Csv);
    let mut last_us = 0;
    match mode.as_deref() {
        Some("read") => {
            let mut count = 0_u64;
            while !reader.ended() {
                while let Some(c) = reader.next_segment() {
                    count += u64::from(c.segment.seq & 1);
                }
            }
            eprintln!("{count}");
            return;
        }
        Some("single") => {
            while !reader.ended() {
                while let Some(captured) = reader.next_segment() {
                    let packet = Packet::of(captured.segment);
                    last_us = packet.t_us;
                    profile.push(&[packet]);
                }
            }
        }
        _ => {
            let pipeline =
                Pipeline::start(reader, |segment, batch| batch.push(Packet::of(segment)));
            loop {
                match pipeline.next(Duration::from_secs(1)) {
                    Next::Segments(packets) => {
                        profile.push(&packets);
                        pipeline.reuse(packets);
                    }
                    Next::End(end) => {
                        last_us = end.last_us.unwrap_or(0);
                        break;
                    }
                    Next::Waiting => {}
                    Next::Gone => break,
                }
            }
        }
    }
    profile.finish(last_us);
    let mut out = std::io::stdout().lock();
    loop {
        let text = profile.take_text();
        if text.is_empty() {
            break;
        }
        out.write_all(&text).expect("stdout");
    }
}

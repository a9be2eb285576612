//! `wireshark CAPTURE`: the analysis of each segment as CSV on stdout; for measurements without Python.

use std::fs::File;
use std::io::Write;

use hindflight_decoder::Reader;
use hindflight_profiles::{Format, WiresharkRows};

fn main() {
    let path = std::env::args().nth(1).expect("a capture");
    let mut reader = Reader::new(File::open(path).expect("readable")).expect("a capture");
    let mut profile = WiresharkRows::new(Format::Csv);
    let mut out = std::io::stdout().lock();
    while !reader.ended() {
        while let Some(captured) = reader.next_segment() {
            profile.push(captured.segment);
        }
        reader.take_others();
        out.write_all(&profile.take_text()).expect("stdout");
    }
}

//! A file that begins as pcap, also with its times corrected.
#![no_main]
#[path = "../harness.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|file: &[u8]| harness::clocks(file));

//! A file that begins as snoop.
#![no_main]
#[path = "../harness.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|file: &[u8]| harness::container(file));

//! A compressed file: gzip, xz, zstd, bzip2, lz4.
#![no_main]
#[path = "../harness.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|file: &[u8]| harness::compressed(file));

//! Frames of the family rings.
#![no_main]
#[path = "../harness.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|input: &[u8]| harness::family("rings", input));

//! Frames of the family wlan.
#![no_main]
#[path = "../harness.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|input: &[u8]| harness::family("wlan", input));

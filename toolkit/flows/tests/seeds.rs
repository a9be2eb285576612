//! The seeds of the fuzz targets, whole, cut after every octet, and with an octet changed: a short form of
//! `cargo fuzz`.
#![allow(missing_docs)]

#[path = "../../decoder/fuzz/harness.rs"]
mod harness;

use std::fs;
use std::path::Path;

/// Calls `read` with each seed of target `name`.
fn each_seed(name: &str, read: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../decoder/fuzz/corpus")
        .join(name);
    let seeds = fs::read_dir(folder).expect("seeds of the target");
    let mut count = 0;
    for seed in seeds {
        let octets = fs::read(seed.expect("an entry").path()).expect("a seed");
        read(&octets);
        for length in 0..octets.len() {
            read(&octets[..length]);
        }
        let mut changed = octets.clone();
        for at in 0..changed.len() {
            for change in [0x01, 0x80, 0xff] {
                changed[at] ^= change;
                read(&changed);
                changed[at] = octets[at];
            }
        }
        count += 1;
    }
    assert!(count > 0, "{name} has no seed");
}

#[test]
fn containers() {
    each_seed("pcap", harness::clocks);
    for name in ["pcapng", "snoop", "erf"] {
        each_seed(name, harness::container);
    }
}

#[test]
fn archives() {
    each_seed("compressed", harness::compressed);
}

#[test]
fn families_of_layers() {
    for (name, _) in harness::FAMILIES {
        each_seed(name, |input| harness::family(name, input));
    }
}

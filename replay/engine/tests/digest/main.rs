//! A digest of what every variant does under every profile, compared with `golden.tsv`: a change that should not alter
//! results leaves it as it is; a change that should is explained by its diff.
//!
//! `cargo run --release -p hindflight-engine --example digest > replay/engine/tests/digest/golden.tsv` writes it anew.

mod measure;
mod scenarios;

use std::collections::BTreeMap;

const GOLDEN: &str = include_str!("golden.tsv");

/// Rows by their id, which is the first column.
fn rows(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .skip(1)
        .filter_map(|line| line.split_once('\t'))
        .collect()
}

#[test]
fn every_variant_does_under_every_profile_what_it_did() {
    let measured = measure::digest();
    let (measured, golden) = (rows(&measured), rows(GOLDEN));
    let ids: Vec<_> = measured.keys().collect();
    assert_eq!(ids, golden.keys().collect::<Vec<_>>());
    let moved: Vec<_> = ids
        .into_iter()
        .filter(|&id| measured[id] != golden[id])
        .map(|id| format!("{id}\n  was {}\n  is  {}", golden[id], measured[id]))
        .collect();
    assert!(
        moved.is_empty(),
        "{} of {} rows moved:\n{}",
        moved.len(),
        golden.len(),
        moved.join("\n")
    );
}

//! Prints a digest of what every variant does under every profile: goodput, counters and cwnd per data packet. The test
//! `digest` compares it with `tests/digest/golden.tsv`.

#[path = "../tests/digest/measure.rs"]
mod measure;
#[path = "../tests/digest/scenarios.rs"]
mod scenarios;

fn main() {
    print!("{}", measure::digest());
}

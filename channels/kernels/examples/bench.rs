//! Speed of the loss processes, in packets per second on one core: `cargo run --release -p hindflight-kernels
//! --example bench`.

use std::hint::black_box;

use hindflight_kernels::{
    ChainLoss, ChainParams, Clock, GilbertElliott, GilbertElliottParams, Purpose, StateLoss, Stay,
    StreamKey, StreamRng,
};

fn rng() -> StreamRng {
    StreamRng::new(StreamKey {
        seed: 1,
        owner: 0,
        direction: 0,
        purpose: Purpose::Loss,
    })
}

fn report(name: &str, packets: u64, work: impl FnOnce() -> u64) {
    #[allow(clippy::disallowed_methods, reason = "a bench reads the clock")]
    let start = std::time::Instant::now();
    let lost = black_box(work());
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{name:<44} {:>8.1} million packets/s, {:.4} lost",
        packets as f64 / seconds / 1e6,
        lost as f64 / packets as f64
    );
}

fn gilbert_elliott(name: &str, packets: u64, [p, r, h, k]: [f64; 4]) {
    let params = GilbertElliottParams { p, r, h, k };
    report(&format!("{name}, run lengths"), packets, || {
        let mut process = GilbertElliott::new(params, rng());
        let (mut left, mut lost) = (packets, 0);
        while let Some(passed) = process.pass_until_loss(left) {
            left -= passed + 1;
            lost += 1;
        }
        lost
    });
    let packets = packets / 10;
    report(&format!("{name}, packet by packet"), packets, || {
        let mut process = GilbertElliott::new(params, rng());
        (0..packets).map(|_| u64::from(process.lost())).sum()
    });
}

fn main() {
    gilbert_elliott("gilbert_elliott 1 %", 2_000_000_000, [0.002, 0.2, 0.0, 1.0]);
    gilbert_elliott("gilbert_elliott 25 %", 200_000_000, [0.1, 0.2, 0.3, 0.99]);
    let packets = 100_000_000;
    report("two states in time, packet by packet", packets, || {
        let params = ChainParams {
            clock: Clock::Time,
            states: vec![
                (StateLoss::Packets(0.0), Stay::Exponential(1e8)),
                (StateLoss::Packets(1.0), Stay::Exponential(1e7)),
            ],
            jumps: vec![vec![0.0, 1.0], vec![1.0, 0.0]],
            start: vec![1.0, 0.0],
        };
        let mut process = ChainLoss::new(params, rng());
        (0..packets)
            .map(|i| u64::from(process.lost(1500, i * 12_000)))
            .sum()
    });
}

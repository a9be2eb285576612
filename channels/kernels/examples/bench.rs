//! Speed of the loss processes, in packets per second on one core: `cargo run --release -p hindflight-kernels
//! --example bench`.

use std::hint::black_box;

use hindflight_kernels::{
    Canyon, ChainLoss, ChainParams, Clock, Direction, Edge, GilbertElliott, GilbertElliottParams,
    LengthLaw, Pace, Passage, Purpose, Sample, StateLoss, Stay, StreamKey, StreamRng, Street,
    StreetParams, radians,
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

/// One hour at 2 m/s in steps of 1 ms, the street as long as the way.
fn street(name: &str, edge: Edge, sky: Vec<Sample>) {
    #[allow(clippy::disallowed_methods, reason = "a bench reads the clock")]
    let start = std::time::Instant::now();
    let params = StreetParams {
        length_m: 7200.0,
        height: LengthLaw::LogNormal(20.6, 0.44),
        facade: LengthLaw::Uniform(10.0, 30.0),
        width: LengthLaw::Constant(20.0),
        lateral: 0.5,
        block: Some(LengthLaw::Uniform(60.0, 120.0)),
        crossing: LengthLaw::Constant(15.0),
    };
    let canyon = Canyon::new(Street::draw(&params, 1, 0), 1.5, 15.0);
    let pace = Pace {
        speed_mps: 2.0,
        start_m: 0.0,
        step_ns: 1_000_000,
        steps: 3_600_000,
    };
    let runs = black_box(Passage::new(canyon, pace, edge, sky).count());
    let seconds = start.elapsed().as_secs_f64();
    println!("{name:<44} {seconds:>8.3} s for one hour at 1 ms, {runs} runs");
}

fn sample(t_ns: u64, phi: f64, elevation: f64) -> Sample {
    let to = Direction {
        phi: radians(phi),
        elevation: radians(elevation),
    };
    Sample { t_ns, to }
}

fn main() {
    let still = vec![sample(0, 60.0, 37.8)];
    let moving = (0..3601)
        .map(|s| {
            sample(
                s * 1_000_000_000,
                20.0 + s as f64 / 30.0,
                5.0 + s as f64 / 60.0,
            )
        })
        .collect();
    let knife = Edge::Knife {
        wavelength_m: 0.025,
        step_db: 0.5,
    };
    street("street under a GEO, hard edge", Edge::Hard, still.clone());
    street("street under a GEO, knife edge", knife, still);
    street(
        "street under a moving satellite, hard edge",
        Edge::Hard,
        moving,
    );
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

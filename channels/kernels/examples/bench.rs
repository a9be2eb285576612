//! Speed of streets, loss processes, fading and fits on one core, with the target of each.
//!
//! `cargo run --release -p hindflight-kernels --example bench` runs everything, with the arguments `fits MODEL` the
//! fits of one model.

use std::hint::black_box;

use hindflight_kernels::fit::{MODELS, Runs, fit};

use hindflight_kernels::{
    Canyon, ChainLoss, ChainParams, Clock, Direction, Edge, Fading, FadingPace, GilbertElliott,
    GilbertElliottParams, LengthLaw, Pace, Purpose, Sample, StateLoss, StateSignal, Stay,
    StreamKey, StreamRng, Street, StreetParams, VisibilityRuns, radians,
};

fn rng() -> StreamRng {
    StreamRng::new(StreamKey {
        seed: 1,
        owner: 0,
        direction: 0,
        purpose: Purpose::Loss,
    })
}

/// The result of `work`, and the seconds that it takes.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    #[allow(clippy::disallowed_methods, reason = "a bench reads the clock")]
    let start = std::time::Instant::now();
    let result = black_box(work());
    (result, start.elapsed().as_secs_f64())
}

fn report(name: &str, target: &str, packets: u64, work: impl FnOnce() -> u64) {
    let (lost, seconds) = timed(work);
    println!(
        "{name:<44} {:>8.1} million packets/s, {:.4} lost{target}",
        packets as f64 / seconds / 1e6,
        lost as f64 / packets as f64
    );
}

fn gilbert_elliott(name: &str, packets: u64, [p, r, h, k]: [f64; 4]) {
    let params = GilbertElliottParams { p, r, h, k };
    report(
        &format!("{name}, run lengths"),
        "; target 100",
        packets,
        || {
            let mut process = GilbertElliott::new(params, rng());
            let (mut left, mut lost) = (packets, 0);
            while let Some(passed) = process.pass_until_loss(left) {
                left -= passed + 1;
                lost += 1;
            }
            lost
        },
    );
    let packets = packets / 10;
    report(&format!("{name}, packet by packet"), "", packets, || {
        let mut process = GilbertElliott::new(params, rng());
        (0..packets).map(|_| u64::from(process.lost())).sum()
    });
}

/// One hour at 2 m/s in steps of 1 ms, in a street that is as long as the route.
fn street(name: &str, edge: Edge, samples: Vec<Sample>) {
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
    let (runs, seconds) = timed(|| VisibilityRuns::new(canyon, pace, edge, samples).count());
    println!("{name:<44} {seconds:>8.3} s for one hour at 1 ms, {runs} runs; target 1 s");
}

/// One hour of Suzuki fading in steps of 1 ms.
fn fading(doppler_hz: f64) {
    let chain = ChainParams {
        clock: Clock::Time,
        states: vec![(StateLoss::Packets(0.0), Stay::Fixed(u64::MAX))],
        jumps: vec![vec![1.0]],
        start: vec![1.0],
    };
    let signal = StateSignal {
        direct_db: None,
        direct_sigma_db: 0.0,
        multipath_db: 0.0,
        multipath_sigma_db: 3.0,
    };
    let pace = FadingPace {
        doppler_hz,
        shadowing_ns: 7.5e8,
        step_ns: 1_000_000,
        steps: 3_600_000,
        level_db: 0.5,
    };
    let (runs, seconds) = timed(|| Fading::new(chain, vec![signal], pace, rng(), rng()).count());
    let name = format!("Suzuki fading, Doppler shift {doppler_hz} Hz");
    println!("{name:<44} {seconds:>8.3} s for one hour at 1 ms, {runs} runs");
}

/// Fits of ten million packets, including the goodness-of-fit tests.
fn fits(only: Option<&str>) {
    for [p, r, h, k] in [
        [0.0012, 0.125, 0.0, 1.0],
        [0.0, 1.0, 0.0, 0.99],
        [0.001, 0.02, 0.5, 0.999],
    ] {
        let params = GilbertElliottParams { p, r, h, k };
        let mut process = GilbertElliott::new(params, rng());
        let trace: Vec<u8> = (0..10_000_000).map(|_| u8::from(process.lost())).collect();
        let times: Vec<i64> = (0..10_000_000).map(|i| i * 1_000_000).collect();
        let (runs, seconds) = timed(|| Runs::in_time(&trace, &times));
        println!("10 million packets, p r h k = {p} {r} {h} {k}: runs counted in {seconds:.3} s");
        for model in MODELS {
            if only.is_none_or(|name| name == model.name()) {
                let (fitted, seconds) = timed(|| fit(model, &runs, 0.95));
                let name = format!("  fit of {}", model.name());
                println!(
                    "{name:<44} {seconds:>8.3} s, BIC {:.1}; target 5 s",
                    fitted.bic
                );
            }
        }
    }
}

fn sample(t_ns: u64, phi: f64, elevation: f64) -> Sample {
    let to = Direction {
        phi: radians(phi),
        elevation: radians(elevation),
    };
    Sample { t_ns, to }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "fits") {
        fits(words.get(1).map(String::as_str));
        return;
    }
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
    fading(10.0);
    fading(200.0);
    gilbert_elliott("gilbert_elliott 1 %", 2_000_000_000, [0.002, 0.2, 0.0, 1.0]);
    gilbert_elliott("gilbert_elliott 25 %", 200_000_000, [0.1, 0.2, 0.3, 0.99]);
    let packets = 100_000_000;
    report("two states in time, packet by packet", "", packets, || {
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
    fits(None);
}

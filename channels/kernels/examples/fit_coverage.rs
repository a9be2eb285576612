//! How often the 95 % intervals of fitted models hold the truth, over many synthetic traces; with `--speed`, how long a
//! fit of ten million packets takes (of one model, if one is named). Prints a table; see docs/channels/fit.md.

use std::time::Instant;

use hindflight_kernels::fit::{MODELS, Model, Runs, fit};
use hindflight_kernels::{GilbertElliott, GilbertElliottParams, Purpose, StreamKey, StreamRng};

const PACKETS: usize = 20_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--speed") {
        speed();
        return;
    }
    let traces: u64 = words
        .first()
        .and_then(|word| word.parse().ok())
        .unwrap_or(1000);
    println!(
        "{traces} traces of {PACKETS} packets each; share of the 95 % intervals that hold the truth"
    );
    for (model, [p, r, h, k]) in [
        (Model::Bernoulli, [0.0, 1.0, 0.0, 0.99]),
        (Model::Gilbert, [0.004, 0.15, 0.0, 1.0]),
        (Model::GilbertH, [0.006, 0.08, 0.4, 1.0]),
        (Model::GilbertK, [0.006, 0.2, 0.0, 0.995]),
        (Model::GilbertElliott, [0.01, 0.08, 0.4, 0.995]),
    ] {
        let truth = match model {
            Model::Bernoulli => vec![1.0 - k],
            Model::Gilbert => vec![p, r],
            Model::GilbertH => vec![p, r, h],
            Model::GilbertK => vec![p, r, k],
            _ => vec![p, r, h, k],
        };
        let mut held = vec![0_u64; truth.len()];
        let mut refused = 0;
        for seed in 0..traces {
            let fitted = fit(model, &Runs::new(&fates([p, r, h, k], seed, PACKETS)), 0.95);
            for ((count, parameter), x) in held.iter_mut().zip(&fitted.parameters).zip(&truth) {
                *count += u64::from(parameter.low <= *x && *x <= parameter.high);
            }
            refused += u64::from(fitted.refused());
        }
        print!("{:16}", model.name());
        for ((count, name), x) in held.iter().zip(model.parameters()).zip(&truth) {
            let share = 100.0 * *count as f64 / traces as f64;
            print!("  {name} = {x}: {share:.1} %");
        }
        println!("  refused: {:.1} %", 100.0 * refused as f64 / traces as f64);
    }
}

fn speed() {
    for truth in [
        [0.0012, 0.125, 0.0, 1.0],
        [0.0, 1.0, 0.0, 0.99],
        [0.001, 0.02, 0.5, 0.999],
    ] {
        println!("truth: p, r, h, k = {truth:?}");
        speed_of(&fates(truth, 1, 10_000_000));
    }
}

fn speed_of(trace: &[u8]) {
    #[allow(clippy::disallowed_methods)] // An example may look at the clock.
    let now = Instant::now;
    let begin = now();
    let runs = Runs::new(trace);
    println!(
        "10 million packets, {} runs, counted in {:.2?}",
        runs.len(),
        begin.elapsed()
    );
    let named = std::env::args().find_map(|word| Model::named(&word));
    for model in MODELS
        .into_iter()
        .filter(|model| named.is_none_or(|name| name == *model))
    {
        let begin = now();
        let fitted = fit(model, &runs, 0.95);
        println!(
            "{:16} {:.2?}, BIC {:.1}",
            model.name(),
            begin.elapsed(),
            fitted.bic
        );
    }
}

fn fates([p, r, h, k]: [f64; 4], seed: u64, count: usize) -> Vec<u8> {
    let key = StreamKey {
        seed,
        owner: 0,
        direction: 0,
        purpose: Purpose::Loss,
    };
    let params = GilbertElliottParams { p, r, h, k };
    let mut process = GilbertElliott::new(params, StreamRng::new(key));
    (0..count).map(|_| u8::from(process.lost())).collect()
}

//! Runs one configuration (JSON, first argument) with a seed (second) and prints what it comes to.

use std::process::ExitCode;

use hindflight_engine::{Config, run};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (Some(path), seed) = (
        args.next(),
        args.next().and_then(|s| s.parse().ok()).unwrap_or(1),
    ) else {
        eprintln!("usage: run CONFIG.json [SEED]");
        return ExitCode::from(2);
    };
    let config: Result<Config, _> = std::fs::read_to_string(&path)
        .map_err(|e| e.to_string())
        .and_then(|text| serde_json::from_str(&text).map_err(|e| e.to_string()));
    match config.and_then(|config| run(&config, seed).map_err(|e| e.to_string())) {
        Ok(summary) => {
            println!("{summary:#?}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::from(2)
        }
    }
}

//! Listens to a replay and keeps its state at even times: memory bounded by the number of samples, however long the
//! run. Of each interval the first state told; before an interval without one the last, which holds through it; and the
//! last of all.

use hindflight_engine::{Event, Leg, Nanos, Tap};
use hindflight_flows::Sample;
use pyo3::PyResult;

use crate::recorder::{RunTables, state_row};
use crate::rows::{self, Origin};

/// The sampler of one run.
pub struct Sampler {
    run_id: u32,
    interval: Nanos,
    legs: Vec<LegSamples>,
}

/// What is kept of one leg.
struct LegSamples {
    index: u8,
    flow_id: u32,
    /// End of the interval whose first state has been kept.
    until: Nanos,
    samples: Vec<Sample>,
    last: Option<Sample>,
}

impl Sampler {
    /// Keeps at most `most + 1` samples of each leg over `duration`.
    pub fn new(run_id: u32, most: u32, duration: Nanos) -> Self {
        Self {
            run_id,
            interval: duration.div_ceil(u64::from(most)).max(1),
            legs: Vec::new(),
        }
    }

    /// Is told, before the run, its legs.
    pub fn begin(&mut self, legs: &[Leg]) {
        let samples = |leg: &Leg| LegSamples {
            index: leg.index,
            flow_id: leg.flow as u32 + 1,
            until: 0,
            samples: Vec::new(),
            last: None,
        };
        self.legs = legs.iter().map(samples).collect();
    }

    /// The tables: `instruments` alone.
    pub fn finish(self) -> PyResult<RunTables> {
        let mut tables = RunTables::default();
        for mut leg in self.legs {
            leg.samples.extend(leg.last);
            let origin = Origin {
                run_id: self.run_id,
                leg: leg.index,
                input_id: 0,
            };
            let batch = rows::instruments(&leg.samples, origin)?;
            tables.instruments.push(batch);
        }
        Ok(tables)
    }
}

impl Tap for Sampler {
    fn event(&mut self, now: Nanos, event: Event<'_>) {
        let Event::State { leg, sample } = event else {
            return;
        };
        let leg = &mut self.legs[usize::from(leg)];
        let row = state_row(leg.flow_id, sample, now as i64);
        if now < leg.until {
            leg.last = Some(row);
            return;
        }
        let last = leg.last.take();
        if now >= leg.until + self.interval {
            leg.samples.extend(last);
        }
        leg.until = (now / self.interval + 1) * self.interval;
        leg.samples.push(row);
    }
}

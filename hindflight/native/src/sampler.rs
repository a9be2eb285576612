//! Listens to a replay and keeps the states of its senders: every one, or so many at even times that memory is bounded
//! however long the run. Kept are the first state of each interval; the last state before an interval without one,
//! which holds through it; and the last of all.

use std::num::NonZeroU32;

use hindflight_engine::{Event, Leg, Nanos, ProxySample, Tap};
use hindflight_flows::Sample;
use pyo3::PyResult;

use crate::recorder::{RunTables, state_row};
use crate::rows::{self, Origin};

/// The sampler of one run.
pub struct Sampler {
    run_id: u32,
    /// 0 to keep every state.
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
    /// Of each sample: the state of the proxy that the sender belongs to.
    proxies: Vec<Option<ProxySample>>,
    last: Option<(Sample, Option<ProxySample>)>,
}

impl Sampler {
    /// Keeps at most `max_samples` samples of each leg over `duration`, or every state.
    pub fn new(run_id: u32, max_samples: Option<NonZeroU32>, duration: Nanos) -> Self {
        // One of each interval, and the last; the end of the run is part of the last interval.
        let interval = |max_samples: NonZeroU32| match max_samples.get() - 1 {
            0 => Nanos::MAX,
            intervals => duration / u64::from(intervals) + 1,
        };
        Self {
            run_id,
            interval: max_samples.map_or(0, interval),
            legs: Vec::new(),
        }
    }

    /// Called before the run with its legs.
    pub fn begin(&mut self, legs: &[Leg]) {
        let first = if self.interval == Nanos::MAX {
            Nanos::MAX
        } else {
            0
        };
        let samples = |leg: &Leg| LegSamples {
            index: leg.index,
            flow_id: leg.flow as u32 + 1,
            // Where the last is all that is kept, no interval begins.
            until: first,
            samples: Vec::new(),
            proxies: Vec::new(),
            last: None,
        };
        self.legs = legs.iter().map(samples).collect();
    }

    /// The tables; only `instruments` has rows.
    pub fn finish(self) -> PyResult<RunTables> {
        let mut tables = RunTables::default();
        for mut leg in self.legs {
            leg.keep_last();
            let origin = Origin {
                run_id: self.run_id,
                leg: leg.index,
                input_id: 0,
            };
            let batch = rows::instruments(&leg.samples, &leg.proxies, origin)?;
            tables.instruments.push(batch);
        }
        Ok(tables)
    }
}

impl LegSamples {
    fn keep(&mut self, (sample, proxy): (Sample, Option<ProxySample>)) {
        self.samples.push(sample);
        self.proxies.push(proxy);
    }

    fn keep_last(&mut self) {
        if let Some(last) = self.last.take() {
            self.keep(last);
        }
    }
}

impl Tap for Sampler {
    /// It sits where data are sent.
    const FOLLOWS_RECEIVERS: bool = false;

    fn event(&mut self, now: Nanos, event: Event<'_>) {
        let Event::State { leg, sample } = event else {
            return;
        };
        let leg = &mut self.legs[usize::from(leg)];
        let row = (state_row(leg.flow_id, sample, now as i64), sample.proxy);
        if now < leg.until {
            leg.last = Some(row);
            return;
        }
        if now >= leg.until + self.interval {
            leg.keep_last();
        }
        leg.last = None;
        leg.until = match self.interval {
            0 => 0,
            interval => (now / interval + 1) * interval,
        };
        leg.keep(row);
    }
}

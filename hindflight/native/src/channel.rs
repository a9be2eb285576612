//! Channel models to Python: streets and what they hide, walks of states, losses packet by packet, all in batches so
//! that memory does not grow with the time synthesised. Decides nothing about models.

use std::sync::{Mutex, PoisonError};

use arrow_array::types::{Float64Type, Int16Type, UInt16Type, UInt32Type, UInt64Type};
use hindflight_engine::{ConfigErrors, LossConfig};
use hindflight_kernels::{
    Building, Canyon, Direction, Edge, Fading, FadingPace, LengthLaw, LossProcess, Pace, Purpose,
    SET, Sample, StateSignal, StreamKey, StreamRng, Street, StreetParams, VisibilityRuns, Walk,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::columns::{Batch, Columns};

/// Name of a law with its two parameters, metres.
type LawTuple = (String, f64, f64);
/// A building as start, end and height, metres.
type BuildingTuple = (f64, f64, f64);
/// A street: length, distances to the left and right facades, buildings of both sides.
type StreetTuple = (f64, (f64, f64), Vec<BuildingTuple>, Vec<BuildingTuple>);
/// A place of the satellite: time in ns, azimuth from the street and elevation in radians.
type SampleTuple = (u64, f64, f64);

fn law((name, a, b): &LawTuple) -> PyResult<LengthLaw> {
    match name.as_str() {
        "constant" => Ok(LengthLaw::Constant(*a)),
        "uniform" => Ok(LengthLaw::Uniform(*a, *b)),
        "normal" => Ok(LengthLaw::Normal(*a, *b)),
        "log_normal" => Ok(LengthLaw::LogNormal(*a, *b)),
        "rayleigh" => Ok(LengthLaw::Rayleigh(*a)),
        _ => Err(PyValueError::new_err(format!("no law of lengths {name:?}"))),
    }
}

/// What a street is drawn from, as keys of a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct StreetDraw {
    length_m: f64,
    height: LawTuple,
    facade: LawTuple,
    width: LawTuple,
    lateral: f64,
    block: Option<LawTuple>,
    crossing: LawTuple,
}

/// Draws a street.
#[pyfunction]
pub fn draw_street(params: StreetDraw, seed: u64, owner: u32) -> PyResult<StreetTuple> {
    let params = StreetParams {
        length_m: params.length_m,
        height: law(&params.height)?,
        facade: law(&params.facade)?,
        width: law(&params.width)?,
        lateral: params.lateral,
        block: params.block.as_ref().map(law).transpose()?,
        crossing: law(&params.crossing)?,
    };
    let street = Street::draw(&params, seed, owner);
    let buildings = |side: usize| {
        let each = street.sides[side].iter();
        each.map(|b| (b.start_m, b.end_m, b.height_m)).collect()
    };
    let [left, right] = street.distance_m;
    Ok((street.length_m, (left, right), buildings(0), buildings(1)))
}

/// A street with an antenna in it.
#[pyclass(frozen, module = "hindflight._native")]
pub struct StreetCanyon {
    canyon: Canyon,
}

#[pymethods]
impl StreetCanyon {
    #[new]
    #[pyo3(signature = (street, *, antenna_m, depth_m))]
    fn new(street: StreetTuple, antenna_m: f64, depth_m: f64) -> Self {
        let (length_m, (left_m, right_m), left, right) = street;
        let side = |tuples: Vec<BuildingTuple>| {
            let each = tuples.into_iter();
            each.map(|(start_m, end_m, height_m)| Building {
                start_m,
                end_m,
                height_m,
            })
            .collect()
        };
        let street = Street {
            length_m,
            sides: [side(left), side(right)],
            distance_m: [left_m, right_m],
        };
        Self {
            canyon: Canyon::new(street, antenna_m, depth_m),
        }
    }

    /// Whether the satellite is hidden, place by place.
    fn blocked(&self, places_m: Vec<f64>, phi: f64, elevation: f64) -> Vec<bool> {
        let aim = self.canyon.aim(Direction { phi, elevation });
        let hidden = |x: &f64| aim.is_some_and(|aim| self.canyon.blocked(*x, &aim));
        places_m.iter().map(hidden).collect()
    }

    /// Masking angles at one place, azimuth by azimuth, radians.
    fn masks(&self, place_m: f64, azimuths: Vec<f64>) -> Vec<f64> {
        let mask = |phi: &f64| self.canyon.mask(place_m, *phi);
        azimuths.iter().map(mask).collect()
    }

    /// Diffraction loss in dB, place by place.
    fn diffraction_db(
        &self,
        places_m: Vec<f64>,
        phi: f64,
        elevation: f64,
        wavelength_m: f64,
    ) -> Vec<f64> {
        let Some(aim) = self.canyon.aim(Direction { phi, elevation }) else {
            return vec![0.0; places_m.len()];
        };
        let loss = |x: &f64| self.canyon.diffraction_db(*x, &aim, wavelength_m);
        places_m.iter().map(loss).collect()
    }

    /// Goes along the street; `pace` is speed in m/s, first place in m, step in ns and number of steps.
    #[pyo3(signature = (pace, sky, knife=None))]
    fn walk(
        &self,
        pace: (f64, f64, u64, u64),
        sky: Vec<SampleTuple>,
        knife: Option<(f64, f64)>,
    ) -> PyResult<StreetWalk> {
        if sky.is_empty() {
            return Err(PyValueError::new_err("the satellite is nowhere"));
        }
        let sky = sky.into_iter().map(|(t_ns, phi, elevation)| Sample {
            t_ns,
            to: Direction { phi, elevation },
        });
        let edge = knife.map_or(Edge::Hard, |(wavelength_m, step_db)| Edge::Knife {
            wavelength_m,
            step_db,
        });
        let (speed_mps, start_m, step_ns, steps) = pace;
        let pace = Pace {
            speed_mps,
            start_m,
            step_ns,
            steps,
        };
        let runs = VisibilityRuns::new(self.canyon.clone(), pace, edge, sky.collect());
        Ok(StreetWalk {
            runs: Mutex::new(runs),
            step_ns,
        })
    }
}

/// What a terminal sees that goes along a street, in order of time.
#[pyclass(frozen, module = "hindflight._native")]
pub struct StreetWalk {
    runs: Mutex<VisibilityRuns>,
    step_ns: u64,
}

#[pymethods]
impl StreetWalk {
    /// The next `max_rows` runs as columns `start_ns`, `end_ns`, `level` and `set`; none when it is over.
    fn read(&self, py: Python<'_>, max_rows: usize) -> PyResult<Option<Columns>> {
        let runs: Vec<_> = py.detach(|| {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.by_ref().take(max_rows).collect()
        });
        if runs.is_empty() {
            return Ok(None);
        }
        let ns = |step: u64| step * self.step_ns;
        let level = |level| if level == SET { 0 } else { level };
        Batch::new(runs.len())
            .number::<UInt64Type>("start_ns", runs.iter().map(|r| ns(r.step)).collect())
            .number::<UInt64Type>(
                "end_ns",
                runs.iter().map(|r| ns(r.step + r.steps)).collect(),
            )
            .number::<UInt16Type>("level", runs.iter().map(|r| level(r.level)).collect())
            .flag("set", runs.iter().map(|r| r.level == SET).collect())
            .finish()
            .map(Some)
    }
}

fn config(text: &str) -> PyResult<LossConfig> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let config: LossConfig = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| PyValueError::new_err(format!("{}: {}", error.path(), error.inner())))?;
    let refused = |error: ConfigErrors| PyValueError::new_err(error.to_string());
    config.validate("loss").map_err(refused)?;
    Ok(config)
}

fn key(seed: u64, owner: u32, direction: u8, purpose: Purpose) -> StreamKey {
    StreamKey {
        seed,
        owner,
        direction,
        purpose,
    }
}

/// The states of a chain, one after the other.
#[pyclass(frozen, module = "hindflight._native")]
pub struct StateWalk {
    walk: Mutex<Walk>,
}

#[pymethods]
impl StateWalk {
    #[new]
    #[pyo3(signature = (chain, *, seed, owner=0, direction=0))]
    fn new(chain: &str, seed: u64, owner: u32, direction: u8) -> PyResult<Self> {
        let params = config(chain)?
            .chain()
            .ok_or_else(|| PyValueError::new_err("a walk needs a chain"))?;
        let rng = StreamRng::new(key(seed, owner, direction, Purpose::States));
        Ok(Self {
            walk: Mutex::new(Walk::new(params, rng)),
        })
    }

    /// The next `rows` states as columns `state` and `stay` (packets or ns).
    fn read(&self, rows: usize) -> PyResult<Columns> {
        let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
        let (states, stays): (Vec<_>, Vec<_>) = (0..rows)
            .map(|_| walk.step())
            .map(|(state, stay)| (state as u32, stay))
            .unzip();
        Batch::new(rows)
            .number::<UInt32Type>("state", states)
            .number::<UInt64Type>("stay", stays)
            .finish()
    }
}

/// Mean and standard deviation of the direct part (none if there is no direct part) and of the multipath, dB.
type SignalTuple = (Option<f64>, f64, f64, f64);

/// Fading of a signal in the states of a chain, in order of time.
#[pyclass(frozen, module = "hindflight._native")]
pub struct FadeWalk {
    fading: Mutex<Fading>,
    step_ns: u64,
}

#[pymethods]
impl FadeWalk {
    /// `pace` is Doppler in Hz, shadowing in ns, step in ns, number of steps and dB per level.
    #[new]
    #[pyo3(signature = (chain, signals, pace, *, seed, owner=0))]
    fn new(
        chain: &str,
        signals: Vec<SignalTuple>,
        pace: (f64, f64, u64, u64, f64),
        seed: u64,
        owner: u32,
    ) -> PyResult<Self> {
        let chain = config(chain)?
            .chain()
            .filter(|chain| chain.states.len() == signals.len())
            .ok_or_else(|| PyValueError::new_err("fading needs a chain and a signal per state"))?;
        let signals =
            signals
                .into_iter()
                .map(
                    |(direct_db, direct_sigma_db, multipath_db, sigma)| StateSignal {
                        direct_db,
                        direct_sigma_db,
                        multipath_db,
                        multipath_sigma_db: sigma,
                    },
                );
        let (doppler_hz, shadowing_ns, step_ns, steps, level_db) = pace;
        let pace = FadingPace {
            doppler_hz,
            shadowing_ns,
            step_ns,
            steps,
            level_db,
        };
        let stream = |purpose| StreamRng::new(key(seed, owner, 0, purpose));
        let (states, waves) = (stream(Purpose::States), stream(Purpose::Fading));
        let fading = Fading::new(chain, signals.collect(), pace, states, waves);
        Ok(Self {
            fading: Mutex::new(fading),
            step_ns,
        })
    }

    /// The next `max_rows` runs as columns `start_ns`, `end_ns`, `state` and `level`; none when it is over.
    fn read(&self, py: Python<'_>, max_rows: usize) -> PyResult<Option<Columns>> {
        let runs: Vec<_> = py.detach(|| {
            let mut fading = self.fading.lock().unwrap_or_else(PoisonError::into_inner);
            fading.by_ref().take(max_rows).collect()
        });
        if runs.is_empty() {
            return Ok(None);
        }
        let ns = |step: u64| step * self.step_ns;
        Batch::new(runs.len())
            .number::<UInt64Type>("start_ns", runs.iter().map(|r| ns(r.step)).collect())
            .number::<UInt64Type>(
                "end_ns",
                runs.iter().map(|r| ns(r.step + r.steps)).collect(),
            )
            .number::<UInt32Type>("state", runs.iter().map(|r| r.state as u32).collect())
            .number::<Int16Type>("level", runs.iter().map(|r| r.level).collect())
            .finish()
            .map(Some)
    }
}

/// A loss process and what has been asked of it.
struct Offered {
    process: LossProcess,
    /// Packets that it has seen.
    seen: u64,
    /// The spans of its timeline are complete up to this time.
    known_until_ns: u64,
}

/// A loss process and the packets that it has seen.
#[pyclass(frozen, module = "hindflight._native")]
pub struct LossStream {
    state: Mutex<Offered>,
}

impl LossStream {
    /// Works on the process without holding up other threads of Python.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Offered) -> T + Send) -> T {
        py.detach(|| work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl LossStream {
    /// The spans of the timeline are complete up to `known_until_ns`; `extend` adds later ones.
    #[new]
    #[pyo3(signature = (loss, *, seed, owner=0, direction=0, known_until_ns=u64::MAX))]
    fn new(
        loss: &str,
        seed: u64,
        owner: u32,
        direction: u8,
        known_until_ns: u64,
    ) -> PyResult<Self> {
        let process = config(loss)?.process(key(seed, owner, direction, Purpose::Loss));
        Ok(Self {
            state: Mutex::new(Offered {
                process,
                seen: 0,
                known_until_ns,
            }),
        })
    }

    /// Adds later spans to the timeline, which is then complete up to `known_until_ns`.
    fn extend(&self, py: Python<'_>, timeline: &str, known_until_ns: u64) -> PyResult<()> {
        let spans = config(timeline)?
            .spans()
            .ok_or_else(|| PyValueError::new_err("only a timeline has spans"))?;
        let extended = self.with(py, |offered| {
            offered.known_until_ns = known_until_ns;
            offered.process.extend(spans)
        });
        if extended {
            Ok(())
        } else {
            Err(PyValueError::new_err("there is no timeline to extend"))
        }
    }

    /// Offers `packets` packets of `size_bytes`, `spacing_ns` apart; positions of the lost ones, counted from the
    /// first packet of all.
    fn read(
        &self,
        py: Python<'_>,
        packets: u64,
        size_bytes: u32,
        spacing_ns: u64,
    ) -> PyResult<Columns> {
        let positions = self.with(py, |offered| {
            let first = offered.seen;
            offered.seen += packets;
            lost(
                &mut offered.process,
                first,
                packets,
                (size_bytes, spacing_ns),
            )
        });
        Batch::new(positions.len())
            .number::<UInt64Type>("position", positions)
            .finish()
    }

    /// Offers up to `packets` packets of `size_bytes`, `spacing_ns` apart, as far as the spans are known; a row for each:
    /// `lost`, and what is added to the delay of the others as `added_ns`.
    fn outcomes(
        &self,
        py: Python<'_>,
        packets: u64,
        size_bytes: u32,
        spacing_ns: u64,
    ) -> PyResult<Columns> {
        let outcomes: Vec<Option<u64>> = self.with(py, |offered| {
            let mut outcomes = Vec::new();
            for _ in 0..packets {
                let now_ns = offered.seen.saturating_mul(spacing_ns);
                let incomplete = offered.known_until_ns < u64::MAX;
                if incomplete && offered.process.reach_ns(now_ns) >= offered.known_until_ns {
                    break;
                }
                offered.seen += 1;
                outcomes.push(offered.process.pass(size_bytes, now_ns));
            }
            outcomes
        });
        let added = outcomes
            .iter()
            .map(|outcome| outcome.unwrap_or(0))
            .collect();
        Batch::new(outcomes.len())
            .flag("lost", outcomes.iter().map(Option::is_none).collect())
            .number::<UInt64Type>("added_ns", added)
            .finish()
    }
}

/// Positions of the lost packets.
fn lost(
    process: &mut LossProcess,
    first: u64,
    packets: u64,
    (size_bytes, spacing_ns): (u32, u64),
) -> Vec<u64> {
    let end = first + packets;
    let (mut next, mut positions) = (first, Vec::new());
    let at_ns = |position: u64| position.saturating_mul(spacing_ns);
    while let Some(passed) =
        process.pass_until_loss(size_bytes, (at_ns(next), spacing_ns), end - next)
    {
        positions.push(next + passed);
        next += passed + 1;
    }
    positions
}

/// A column of angles or lengths, drawn from the stream of states: standard normal numbers for slow processes.
#[pyfunction]
#[pyo3(signature = (rows, *, seed, owner=0, direction=0))]
pub fn normal_numbers(rows: usize, seed: u64, owner: u32, direction: u8) -> PyResult<Columns> {
    let mut rng = StreamRng::new(key(seed, owner, direction, Purpose::States));
    Batch::new(rows)
        .number::<Float64Type>("normal", (0..rows).map(|_| rng.normal()).collect())
        .finish()
}

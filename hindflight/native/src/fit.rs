//! Fits of loss models to Python: loss sequences in, dictionaries of numbers out, with the GIL released. Decides nothing.

use hindflight_kernels::fit::{Fit, MODELS, Model, Runs, Shape, Test, fit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Names of the models that can be fitted, the simplest first, each with its parameters.
#[pyfunction]
pub fn loss_models() -> Vec<(&'static str, Vec<&'static str>)> {
    let named = MODELS.iter();
    named
        .map(|model| (model.name(), model.parameters().to_vec()))
        .collect()
}

/// What a fit and its trace look like side by side.
struct Fitted {
    fit: Fit,
    gap_longer: Vec<f64>,
    burst_longer: Vec<f64>,
    autocorrelation: Vec<f64>,
}

/// Run lengths and autocorrelation of a loss sequence: one octet per packet, 0 for delivered.
#[pyfunction]
pub fn loss_shape<'py>(py: Python<'py>, sequence: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let (runs, shape) = py.detach(|| {
        let runs = Runs::new(sequence);
        let shape = Shape::of(&runs);
        (runs, shape)
    });
    let out = PyDict::new(py);
    out.set_item("packets", runs.packets)?;
    out.set_item("losses", runs.losses)?;
    for (outcome, name) in ["gap", "burst"].into_iter().enumerate() {
        out.set_item(
            format!("{name}_count"),
            runs.counts[outcome].iter().sum::<u64>(),
        )?;
        out.set_item(format!("{name}_lengths"), shape.lengths[outcome].clone())?;
        out.set_item(format!("{name}_longer"), shape.longer[outcome].clone())?;
    }
    out.set_item("lags", shape.lags)?;
    out.set_item("autocorrelation", shape.autocorrelation)?;
    Ok(out)
}

/// Fits each of `models` to the loss sequence; a dictionary each. `t_ns` holds the packets' times, eight octets each.
#[pyfunction]
#[pyo3(signature = (sequence, models, level, t_ns=None))]
pub fn fit_losses<'py>(
    py: Python<'py>,
    sequence: &[u8],
    models: Vec<String>,
    level: f64,
    t_ns: Option<&[u8]>,
) -> PyResult<Bound<'py, PyList>> {
    let models = models
        .iter()
        .map(|name| Model::named(name).ok_or_else(|| unknown(name)))
        .collect::<PyResult<Vec<_>>>()?;
    if !(level > 0.0 && level < 1.0) {
        return Err(PyValueError::new_err("level must lie between 0 and 1"));
    }
    let fitted: Vec<Fitted> = py.detach(|| {
        let runs = match t_ns {
            Some(octets) => Runs::in_time(sequence, &times(octets)),
            None => Runs::new(sequence),
        };
        let shape = Shape::of(&runs);
        let fitted = models.into_iter().map(|model| {
            let fit = fit(model, &runs, level);
            Fitted {
                gap_longer: fit.longer(false, &shape.lengths[0]),
                burst_longer: fit.longer(true, &shape.lengths[1]),
                autocorrelation: fit.autocorrelation(&shape.lags),
                fit,
            }
        });
        fitted.collect()
    });
    let out = PyList::empty(py);
    for one in &fitted {
        out.append(as_dict(py, one)?)?;
    }
    Ok(out)
}

fn times(octets: &[u8]) -> Vec<i64> {
    let each = octets.chunks_exact(8).map(|eight| {
        let mut word = [0; 8];
        word.copy_from_slice(eight);
        i64::from_ne_bytes(word)
    });
    each.collect()
}

fn unknown(name: &str) -> PyErr {
    PyValueError::new_err(format!("no model of losses {name:?}"))
}

fn as_dict<'py>(py: Python<'py>, fitted: &Fitted) -> PyResult<Bound<'py, PyDict>> {
    let fit = &fitted.fit;
    let out = PyDict::new(py);
    let parameters = fit.parameters.iter();
    let parameters: Vec<_> = parameters
        .map(|p| (p.name, p.value, p.standard_error, p.low, p.high))
        .collect();
    out.set_item("model", fit.model.name())?;
    out.set_item("parameters", parameters)?;
    out.set_item("log_likelihood", fit.log_likelihood)?;
    out.set_item("aic", fit.aic)?;
    out.set_item("bic", fit.bic)?;
    out.set_item("identified", fit.identified)?;
    out.set_item("profiled", fit.profiled)?;
    out.set_item("refused", fit.refused())?;
    out.set_item("tests", fit.tests.iter().map(test).collect::<Vec<_>>())?;
    out.set_item("gap_longer", fitted.gap_longer.clone())?;
    out.set_item("burst_longer", fitted.burst_longer.clone())?;
    out.set_item("autocorrelation", fitted.autocorrelation.clone())?;
    Ok(out)
}

/// Name, chi-square, degrees of freedom, p-value; of the worst bin: from, to, expected, observed, deviation.
type TestTuple = (
    &'static str,
    f64,
    usize,
    Option<f64>,
    Option<(u64, u64, f64, f64, f64)>,
);

fn test(test: &Test) -> TestTuple {
    let worst = test.worst.map(|bin| {
        (
            bin.from,
            bin.to,
            bin.expected,
            bin.observed,
            bin.deviation(),
        )
    });
    (test.name, test.statistic, test.freedom, test.p_value, worst)
}

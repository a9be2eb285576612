//! The catalogue of variants, as objects with named fields. Decides nothing.

use hindflight_engine::{VARIANTS, Variant as Known};
use pyo3::prelude::*;

type Text = &'static str;

/// A parameter of a variant; all values as text.
#[pyclass(frozen, get_all, module = "hindflight._native")]
pub struct Parameter {
    name: Text,
    default: String,
    allowed: String,
    unit: Text,
    source: Text,
    meaning: Text,
}

/// A TCP variant.
#[pyclass(frozen, get_all, module = "hindflight._native")]
pub struct Variant {
    name: Text,
    family: Text,
    summary: Text,
    source: Text,
    year: u16,
    parameters: Vec<Py<Parameter>>,
    profiles: Vec<Text>,
    needs_forecast: bool,
    other_names: Vec<Text>,
}

/// Every variant of the catalogue with its parameters.
#[pyfunction]
pub fn variants(py: Python<'_>) -> PyResult<Vec<Variant>> {
    VARIANTS.iter().map(|known| variant(py, *known)).collect()
}

fn variant(py: Python<'_>, known: Known) -> PyResult<Variant> {
    let info = known.info();
    let parameters = info.params.iter().map(|parameter| {
        let parameter = Parameter {
            name: parameter.name,
            default: parameter.default_text(),
            allowed: parameter.allowed_text(),
            unit: parameter.unit,
            source: parameter.source,
            meaning: parameter.meaning,
        };
        Py::new(py, parameter)
    });
    Ok(Variant {
        name: info.name,
        family: info.family,
        summary: info.summary,
        source: info.source,
        year: info.year,
        parameters: parameters.collect::<PyResult<_>>()?,
        profiles: known.profiles(),
        needs_forecast: info.needs_forecast,
        other_names: info.other_names.to_vec(),
    })
}

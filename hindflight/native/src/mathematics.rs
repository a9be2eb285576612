//! Functions of one or two numbers that give the same bits on every machine, for models whose numbers are made in
//! Python: those of the pure-Rust library that the kernels use. Must not know what they are for.

use pyo3::prelude::*;

/// e to the power of x.
#[pyfunction]
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// Natural logarithm.
#[pyfunction]
pub fn log(x: f64) -> f64 {
    libm::log(x)
}

/// Logarithm to the base of 10.
#[pyfunction]
pub fn log10(x: f64) -> f64 {
    libm::log10(x)
}

/// x to the power of y.
#[pyfunction]
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// Complementary error function.
#[pyfunction]
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// Sine.
#[pyfunction]
pub fn sin(x: f64) -> f64 {
    libm::sin(x)
}

/// Cosine.
#[pyfunction]
pub fn cos(x: f64) -> f64 {
    libm::cos(x)
}

/// Arc cosine.
#[pyfunction]
pub fn acos(x: f64) -> f64 {
    libm::acos(x)
}

/// Angle of the point (x, y).
#[pyfunction]
pub fn atan2(y: f64, x: f64) -> f64 {
    libm::atan2(y, x)
}

//! Tests that every variant has to pass.

mod contract;
mod fast_path;
pub(crate) mod random_params;

//! Tests that every variant has to pass.

mod contract;
pub(crate) mod random_params;

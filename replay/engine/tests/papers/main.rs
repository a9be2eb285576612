//! The equations, bounds and changes of state of the variants in the papers against tables worked by hand. Each
//! variant is made by name and parameters, as a scenario makes it, and seen through its windows alone, so that a
//! parameter which does not reach its equation is found as well.
//!
//! Does not depend on how a variant is put together. Read the variant's page in `docs/variants` first.

mod asran;
mod compound;
mod hybla;
mod support;
mod westwood;
mod westwood_abse;
mod westwood_bwe;

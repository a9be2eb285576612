//! The extension `hindflight._native`: hands bytes and numbers to the pure crates and their columns to Arrow.
//! It holds no logic. Read `hindflight/_native.pyi` for the surface it offers.

mod arrays;
mod capture;
mod captures;
mod catalogue;
mod channel;
mod columns;
mod controller;
mod dissector;
mod fit;
mod input;
mod mathematics;
mod open_loop;
mod packets;
mod pool;
mod profile;
mod recorder;
mod replay;
mod rows;
mod runs;
mod sampler;
mod sender_events;
mod transfer;
mod wire;

use pyo3::prelude::*;

/// Native core of hindflight; use it through `hindflight.toolkit.capture`, `channels` and `replay`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::capture::CaptureReader;
    #[pymodule_export]
    use super::catalogue::{Parameter, Variant, variants};
    #[pymodule_export]
    use super::channel::{
        FadeWalk, LossStream, StateWalk, StreetCanyon, StreetWalk, draw_street, normal_numbers,
    };
    #[pymodule_export]
    use super::columns::Columns;
    #[pymodule_export]
    use super::controller::{Ack, Congestion};
    #[pymodule_export]
    use super::fit::{fit_losses, loss_models, loss_shape};
    #[pymodule_export]
    use super::mathematics::{acos, atan2, cos, erfc, exp, log, log10, pow, sin};
    #[pymodule_export]
    use super::open_loop::replay_controller;
    #[pymodule_export]
    use super::packets::{pcapng_head, pcapng_packets};
    #[pymodule_export]
    use super::profile::{FlowRows, TcptraceRows, WiresharkRows};
    #[pymodule_export]
    use super::replay::{check, profile, replay, replay_batches};
}

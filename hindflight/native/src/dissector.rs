//! The slow path of the decoder: link layers that `hindflight.toolkit.slow_path` goes through with Python libraries.

use std::collections::BTreeMap;
use std::sync::Mutex;

use hindflight_decoder::Dissector;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::input::Progress;

const MODULE: &str = "hindflight.toolkit.slow_path";

/// Calls the module; an exception of it ends reading as one of a signal handler does.
pub struct SlowPath {
    progress: Progress,
    known: Mutex<BTreeMap<u16, bool>>,
}

impl SlowPath {
    /// For one input or several merged ones.
    pub fn new(progress: Progress) -> Self {
        Self {
            progress,
            known: Mutex::default(),
        }
    }

    /// The result of a function of the module; `None` after an exception, and where the interpreter has ended.
    fn call<T>(&self, ask: impl FnOnce(Bound<'_, PyModule>) -> PyResult<T>) -> Option<T> {
        let asked = Python::try_attach(|py| py.import(MODULE).and_then(ask))?;
        asked.map_err(|error| self.progress.interrupt(error)).ok()
    }
}

impl Dissector for SlowPath {
    fn knows(&self, link_number: u16) -> bool {
        let mut known = crate::input::locked(&self.known);
        if let Some(&answer) = known.get(&link_number) {
            return answer;
        }
        let answer = self.call(|module| module.call_method1("knows", (link_number,))?.extract());
        known.insert(link_number, answer.unwrap_or(false));
        answer.unwrap_or(false)
    }

    fn ip_packet(&mut self, link_number: u16, frame: &[u8]) -> Option<Vec<u8>> {
        self.call(|module| {
            let frame = PyBytes::new(module.py(), frame);
            module
                .call_method1("ip_packet", (link_number, frame))?
                .extract()
        })?
    }
}

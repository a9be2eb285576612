//! Long columns of a configuration, handed over as Arrow arrays through the PyCapsule interface instead of JSON lists.
//!
//! A configuration text is an object of `config` and, where there are any, `arrays`: key paths to indices into the list
//! of arrays that comes with the texts. At each of these key paths the configuration holds an empty list.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::types::{ArrowPrimitiveType, Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, StructArray, make_array};
use hindflight_engine::{
    ApplicationConfig, ChangeConfig, Config, DirectionConfig, JitterConfig, LossConfig, SpanConfig,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde::Deserialize;

/// An Arrow array from Python.
#[derive(Clone)]
pub struct Column(pub ArrayRef);

impl<'a, 'py> FromPyObject<'a, 'py> for Column {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let pair = object.call_method0("__arrow_c_array__")?;
        let (schema, array): (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>) = pair.extract()?;
        let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast();
        let array = array.pointer_checked(Some(c"arrow_array"))?.cast();
        // SAFETY: by the Arrow PyCapsule interface, capsules of these names hold these structures, and the capsules
        // outlive this call. `from_raw` moves the array out and leaves a released structure behind.
        let data = unsafe {
            let schema: &FFI_ArrowSchema = schema.as_ref();
            from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema)
        };
        let data = data.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(make_array(data)))
    }
}

/// A configuration text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    config: Config,
    #[serde(default)]
    arrays: BTreeMap<String, usize>,
}

impl Document {
    /// The configuration with its arrays in place; else the key path and the problem.
    pub fn resolve(self, columns: &[Column]) -> Result<Config, (String, String)> {
        let mut config = self.config;
        for (path, index) in self.arrays {
            let filled = columns
                .get(index)
                .ok_or_else(|| format!("there is no array {index}"))
                .and_then(|column| fill(&mut config, &path, &column.0));
            filled.map_err(|problem| (path, problem))?;
        }
        Ok(config)
    }
}

type Filled = Result<(), String>;

/// Puts the values of `array` where `path` leads.
fn fill(config: &mut Config, path: &str, array: &ArrayRef) -> Filled {
    let steps: Vec<&str> = path.split('.').collect();
    let unknown = || format!("{path}: no list of a configuration");
    match steps.as_slice() {
        ["path", "links", link, way, rest @ ..] => {
            let link = numbered(&mut config.path.links, link).ok_or_else(unknown)?;
            let direction = match *way {
                "forward" => &mut link.forward,
                "reverse" => &mut link.reverse,
                _ => return Err(unknown()),
            };
            fill_direction(direction, rest, array).ok_or_else(unknown)?
        }
        ["flows", flow, "application", name] => {
            let flow = numbered(&mut config.flows, flow);
            match (flow.map(|flow| &mut flow.application), *name) {
                (Some(ApplicationConfig::Writes { at_ns, .. }), "at_ns") => {
                    numbers::<UInt64Type>(array).map(|values| *at_ns = values)
                }
                (Some(ApplicationConfig::Writes { bytes, .. }), "bytes") => {
                    numbers::<UInt32Type>(array).map(|values| *bytes = values)
                }
                _ => Err(unknown()),
            }
        }
        ["datagrams", stream, "recorded", name] => {
            let stream = numbered(&mut config.datagrams, stream);
            match (stream.and_then(|stream| stream.recorded.as_mut()), *name) {
                (Some(recorded), "at_ns") => {
                    numbers::<UInt64Type>(array).map(|values| recorded.at_ns = values)
                }
                (Some(recorded), "bytes") => {
                    numbers::<UInt32Type>(array).map(|values| recorded.bytes = values)
                }
                _ => Err(unknown()),
            }
        }
        _ => Err(unknown()),
    }
}

/// The item that the step `number` of a path names; `None` if there is none.
fn numbered<'a, T>(items: &'a mut [T], number: &str) -> Option<&'a mut T> {
    items.get_mut(number.parse::<usize>().ok()?)
}

/// None where `steps` lead to no list.
fn fill_direction(
    direction: &mut DirectionConfig,
    steps: &[&str],
    array: &ArrayRef,
) -> Option<Filled> {
    match steps {
        ["rate_trace", name] => {
            let trace = direction.rate_trace.as_mut()?;
            match *name {
                "starts_ns" => {
                    Some(numbers::<UInt64Type>(array).map(|values| trace.starts_ns = values))
                }
                "rates_bps" => {
                    Some(numbers::<Float64Type>(array).map(|values| trace.rates_bps = values))
                }
                _ => None,
            }
        }
        ["jitter", "delays_ns"] => match &mut direction.jitter {
            Some(JitterConfig::Recorded { delays_ns }) => {
                Some(numbers::<UInt64Type>(array).map(|values| *delays_ns = values))
            }
            _ => None,
        },
        ["schedule"] => Some(changes(array).map(|values| direction.schedule = values)),
        ["loss", rest @ ..] => fill_loss(&mut direction.loss, rest, array),
        _ => None,
    }
}

/// Puts the values of `array` into the loss process where `steps` lead; none where they lead to no list.
pub fn fill_loss(loss: &mut LossConfig, steps: &[&str], array: &ArrayRef) -> Option<Filled> {
    match (loss, steps) {
        (LossConfig::Arq { over, .. } | LossConfig::Fec { over, .. }, ["over", rest @ ..]) => {
            fill_loss(over, rest, array)
        }
        (LossConfig::Trace { positions, .. }, ["positions"]) => {
            Some(numbers::<UInt64Type>(array).map(|values| *positions = values))
        }
        (LossConfig::Trace { late, .. }, ["late"]) => {
            Some(pairs(array).map(|values| *late = values))
        }
        (LossConfig::Timeline { spans: target }, ["spans"]) => {
            Some(spans(array).map(|values| *target = values))
        }
        _ => None,
    }
}

fn numbers<T: ArrowPrimitiveType>(array: &dyn Array) -> Result<Vec<T::Native>, String> {
    match array.as_primitive_opt::<T>() {
        Some(column) if column.null_count() == 0 => Ok(column.values().to_vec()),
        Some(_) => Err("nulls among its values".to_owned()),
        None => Err(format!(
            "an array of {}, {} needed",
            array.data_type(),
            T::DATA_TYPE
        )),
    }
}

/// A column of numbers that may be null.
fn optional<T: ArrowPrimitiveType>(
    rows: &StructArray,
    name: &str,
) -> Result<Vec<Option<T::Native>>, String> {
    let column = column(rows, name)?;
    let typed = column.as_primitive_opt::<T>();
    let typed = typed.ok_or_else(|| format!("{name}: an array of {}", column.data_type()))?;
    Ok(typed.iter().collect())
}

/// A column of flags that may be null.
fn flags(rows: &StructArray, name: &str) -> Result<Vec<Option<bool>>, String> {
    let column = column(rows, name)?;
    let typed = column.as_boolean_opt();
    let typed = typed.ok_or_else(|| format!("{name}: an array of {}", column.data_type()))?;
    Ok(typed.iter().collect())
}

fn column<'a>(rows: &'a StructArray, name: &str) -> Result<&'a ArrayRef, String> {
    rows.column_by_name(name)
        .ok_or_else(|| format!("no field {name}"))
}

fn rows(array: &ArrayRef) -> Result<&StructArray, String> {
    let rows = array.as_struct_opt();
    rows.ok_or_else(|| format!("an array of {}, a struct needed", array.data_type()))
}

/// Position and added delay of packets that arrive late.
fn pairs(array: &ArrayRef) -> Result<Vec<(u64, u64)>, String> {
    let rows = rows(array)?;
    let position = numbers::<UInt64Type>(column(rows, "position")?)?;
    let added = numbers::<UInt64Type>(column(rows, "added_ns")?)?;
    Ok(position.into_iter().zip(added).collect())
}

fn spans(array: &ArrayRef) -> Result<Vec<SpanConfig>, String> {
    let rows = rows(array)?;
    let start = numbers::<UInt64Type>(column(rows, "start_ns")?)?;
    let per = optional::<Float64Type>(rows, "per")?;
    let ber = optional::<Float64Type>(rows, "ber")?;
    let spans = start.into_iter().zip(per).zip(ber);
    Ok(spans
        .map(|((start_ns, per), ber)| SpanConfig { start_ns, per, ber })
        .collect())
}

fn changes(array: &ArrayRef) -> Result<Vec<ChangeConfig>, String> {
    let rows = rows(array)?;
    let at = numbers::<UInt64Type>(column(rows, "at_ns")?)?;
    let rate = optional::<Float64Type>(rows, "rate_bps")?;
    let delay = optional::<UInt64Type>(rows, "delay_ns")?;
    let outage = flags(rows, "outage")?;
    let hold = flags(rows, "hold")?;
    let overlap = optional::<UInt64Type>(rows, "overlap_ns")?;
    let change = |i: usize| ChangeConfig {
        at_ns: at[i],
        rate_bps: rate[i],
        delay_ns: delay[i],
        outage: outage[i],
        hold: hold[i],
        overlap_ns: overlap[i],
    };
    Ok((0..at.len()).map(change).collect())
}

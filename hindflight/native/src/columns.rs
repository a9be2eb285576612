//! Columns on their way to Python: one record batch behind the Arrow C data interface, moved, never copied.

use std::sync::Arc;

use arrow_array::ffi::to_ffi;
use arrow_array::types::{ArrowPrimitiveType, Int8Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Int8Array, ListArray,
    PrimitiveArray, StringArray, StructArray,
};
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A batch of named columns. Any Arrow library takes it: `pyarrow.table(columns)`, `polars.from_arrow(columns)`.
#[pyclass(frozen, module = "hindflight._native")]
pub struct Columns {
    array: StructArray,
}

#[pymethods]
impl Columns {
    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let (_, schema) = to_ffi(&self.array.to_data()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The protocol lets a producer ignore the request when it cannot convert.
        drop(requested_schema);
        let (array, schema) = to_ffi(&self.array.to_data()).map_err(refused)?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}

fn refused(error: arrow_schema::ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Collects columns in the order of the schema.
pub struct Batch {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
    rows: usize,
}

impl Batch {
    /// Starts a batch of `rows` rows.
    pub fn new(rows: usize) -> Self {
        Self {
            fields: Vec::new(),
            arrays: Vec::new(),
            rows,
        }
    }

    fn push(mut self, name: &str, array: ArrayRef, nullable: bool) -> Self {
        self.fields
            .push(Field::new(name, array.data_type().clone(), nullable));
        self.arrays.push(array);
        self
    }

    /// A column of numbers, its vector moved.
    pub fn number<T: ArrowPrimitiveType>(self, name: &str, values: Vec<T::Native>) -> Self {
        self.push(
            name,
            Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), None)),
            false,
        )
    }

    /// A column of numbers that may be null.
    pub fn optional<T: ArrowPrimitiveType>(
        self,
        name: &str,
        values: Vec<Option<T::Native>>,
    ) -> Self {
        self.push(
            name,
            Arc::new(values.into_iter().collect::<PrimitiveArray<T>>()),
            true,
        )
    }

    /// A column of truth values.
    pub fn flag(self, name: &str, values: Vec<bool>) -> Self {
        self.push(name, Arc::new(BooleanArray::from(values)), false)
    }

    /// A column of truth values that may be null.
    pub fn optional_flag(self, name: &str, values: Vec<Option<bool>>) -> Self {
        self.push(name, Arc::new(BooleanArray::from(values)), true)
    }

    /// A closed enumeration: one key per row into `names`.
    pub fn choice(self, name: &str, keys: Vec<i8>, names: &[&str]) -> Self {
        let keys = Int8Array::new(ScalarBuffer::from(keys), None);
        let values = Arc::new(StringArray::from(names.to_vec()));
        self.push(
            name,
            Arc::new(DictionaryArray::<Int8Type>::new(keys, values)),
            false,
        )
    }

    /// A closed enumeration that may be null.
    pub fn optional_choice(self, name: &str, keys: Vec<Option<i8>>, names: &[&str]) -> Self {
        let values = Arc::new(StringArray::from(names.to_vec()));
        self.push(
            name,
            Arc::new(DictionaryArray::<Int8Type>::new(
                Int8Array::from(keys),
                values,
            )),
            true,
        )
    }

    /// A column of text.
    pub fn text<S: AsRef<str>>(self, name: &str, values: &[S]) -> Self {
        self.push(name, Arc::new(StringArray::from_iter_values(values)), false)
    }

    /// A column of text that may be null.
    pub fn optional_text<S: AsRef<str>>(self, name: &str, values: &[Option<S>]) -> Self {
        self.push(
            name,
            Arc::new(
                values
                    .iter()
                    .map(|v| v.as_ref().map(AsRef::as_ref))
                    .collect::<StringArray>(),
            ),
            true,
        )
    }

    /// A column of numbers that may be null, gathered part by part.
    pub fn nullable<T: ArrowPrimitiveType>(self, name: &str, mut column: Nullable<T>) -> Self {
        let values = ScalarBuffer::from(column.values);
        let array = PrimitiveArray::<T>::new(values, column.nulls.finish());
        self.push(name, Arc::new(array), true)
    }

    /// A column of lists of 64-bit numbers, gathered row by row.
    pub fn list_column(self, name: &str, column: Lists) -> Self {
        let item = Arc::new(Field::new("item", DataType::Int64, false));
        let values = PrimitiveArray::<Int64Type>::new(ScalarBuffer::from(column.values), None);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(column.offsets));
        self.push(
            name,
            Arc::new(ListArray::new(item, offsets, Arc::new(values), None)),
            false,
        )
    }

    /// A column of octet strings that may be null, gathered row by row.
    pub fn octets_column(self, name: &str, mut column: Octets) -> Self {
        column.add_empty();
        let offsets = OffsetBuffer::new(ScalarBuffer::from(column.offsets));
        let array = BinaryArray::new(
            offsets,
            Buffer::from_vec(column.data),
            column.nulls.finish(),
        );
        self.push(name, Arc::new(array), true)
    }

    /// Closes the batch.
    pub fn finish(self) -> PyResult<Columns> {
        let array = StructArray::try_new_with_length(
            Fields::from(self.fields),
            self.arrays,
            None,
            self.rows,
        )
        .map_err(refused)?;
        Ok(Columns { array })
    }
}

/// A column of numbers that may be null, in the making.
pub struct Nullable<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> Nullable<T> {
    /// Room for `rows`.
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            values: Vec::with_capacity(rows),
            nulls: NullBufferBuilder::new(rows),
        }
    }

    /// Adds rows.
    #[inline]
    pub fn extend(&mut self, rows: impl ExactSizeIterator<Item = Option<T::Native>> + Clone) {
        let count = rows.len();
        match rows.clone().flatten().count() {
            0 => self.nulls.append_n_nulls(count),
            known if known == count => self.nulls.append_n_non_nulls(count),
            _ => rows
                .clone()
                .for_each(|row| self.nulls.append(row.is_some())),
        }
        self.values.extend(rows.map(Option::unwrap_or_default));
    }
}

/// A column of lists of 64-bit numbers, in the making.
pub struct Lists {
    offsets: Vec<i32>,
    values: Vec<i64>,
}

impl Lists {
    /// Room for `rows`.
    pub fn with_capacity(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            offsets,
            values: Vec::new(),
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, list: &[i64]) {
        self.values.extend_from_slice(list);
        self.offsets.push(self.values.len() as i32);
    }
}

/// A column of octet strings, in the making; an empty one is null.
pub struct Octets {
    offsets: Vec<i32>,
    data: Vec<u8>,
    nulls: NullBufferBuilder,
    /// Empty rows that follow; most rows are.
    empty: usize,
}

impl Octets {
    /// Room for `rows`.
    pub fn with_capacity(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            offsets,
            data: Vec::new(),
            nulls: NullBufferBuilder::new(rows),
            empty: 0,
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, octets: &[u8]) {
        if octets.is_empty() {
            self.empty += 1;
        } else {
            self.add_empty();
            self.data.extend_from_slice(octets);
            self.offsets.push(self.data.len() as i32);
            self.nulls.append_non_null();
        }
    }

    /// Adds the empty rows that have been counted.
    fn add_empty(&mut self) {
        let count = std::mem::take(&mut self.empty);
        let end = self.data.len() as i32;
        self.offsets.resize(self.offsets.len() + count, end);
        self.nulls.append_n_nulls(count);
    }
}

"""The declared tables in Arrow: their schemas, and data brought into them.

Imports pyarrow only when it is used.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hindflight.toolkit.schema.captured import (
    CLOCKS,
    EVENTS,
    FLOWS,
    INSTRUMENTS,
    ISSUES,
    OTHERS,
    PAIRS,
    SEGMENTS,
    TELEMETRY,
    VARIABLES,
)
from hindflight.toolkit.schema.model import SCHEMA_VERSION
from hindflight.toolkit.schema.papers import CLAIMS, POINTS
from hindflight.toolkit.schema.results import CHANNEL, FINDINGS, RUNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from hindflight.toolkit.schema.model import Column, Table, Type

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        SEGMENTS,
        FLOWS,
        INSTRUMENTS,
        VARIABLES,
        TELEMETRY,
        EVENTS,
        PAIRS,
        CLOCKS,
        CHANNEL,
        RUNS,
        FINDINGS,
        CLAIMS,
        POINTS,
        OTHERS,
        ISSUES,
    )
}
"""Every table by its name, in the order of docs/tables.md."""


def _arrow_type(type_: Type) -> pa.DataType:
    import pyarrow as pa

    types: dict[Type, pa.DataType] = {
        "bool": pa.bool_(),
        "u8": pa.uint8(),
        "u16": pa.uint16(),
        "u32": pa.uint32(),
        "u64": pa.uint64(),
        "i64": pa.int64(),
        "f64": pa.float64(),
        "text": pa.string(),
        "enum": pa.dictionary(pa.int8(), pa.string()),
        "list_i64": pa.list_(pa.field("item", pa.int64(), nullable=False)),
        "bytes": pa.binary(),
    }
    return types[type_]


@cache
def arrow_schema(name: str) -> pa.Schema:
    """Return the Arrow schema of table `name`, unit and meaning in each field's metadata; KeyError if unknown."""
    import pyarrow as pa

    table = TABLES[name]
    fields = [
        pa.field(c.name, _arrow_type(c.type), c.nullable, {"unit": c.unit, "meaning": c.meaning}) for c in table.columns
    ]
    return pa.schema(fields, {"hindflight.table": name, "hindflight.schema_version": str(SCHEMA_VERSION)})


def conform(name: str, data: pa.Table, columns: Sequence[str] | None = None) -> pa.Table:
    """Return `data` with exactly the columns of table `name` (or those named), in order, typed, with metadata.

    Enumerations are re-encoded with their declared values. ValueError for a missing column, a null where none
    may be, or a value outside an enumeration.
    """
    import pyarrow as pa

    schema = arrow_schema(name)
    if columns is not None:
        schema = pa.schema([schema.field(column) for column in columns], schema.metadata)
    arrays = []
    for field in schema:
        column = TABLES[name].column(field.name)
        if column.name not in data.column_names:
            raise ValueError(f"table {name} lacks column {column.name}")
        values = data[column.name]
        if column.type == "enum":
            values = _encode_enum(column, values)
        elif values.type != field.type:
            values = values.cast(field.type)
        if not column.nullable and values.null_count:
            raise ValueError(f"{name}.{column.name} has {values.null_count} nulls; none may be")
        arrays.append(values)
    return pa.Table.from_arrays(arrays, schema=schema)


def has_former_values(name: str) -> bool:
    """Return whether earlier schema versions wrote other values into a column of table `name`."""
    return any(column.former for column in TABLES[name].columns)


def with_current_values(name: str, data: pa.Table) -> pa.Table:
    """Return `data` of table `name` with the values of earlier schema versions replaced by today's."""
    for column in TABLES[name].columns:
        if column.former and column.name in data.column_names:
            position = data.column_names.index(column.name)
            data = data.set_column(position, column.name, _replaced(column, data[column.name]))
    return data


def _replaced(column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = values.cast(pa.string())
    for former, current in column.former:
        texts = pc.if_else(pc.equal(texts, former), current, texts)
    return texts


def _encode_enum(column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    declared = pa.array(column.values, pa.string())
    coded = pa.chunked_array(values) if isinstance(values, pa.Array) else values
    if not pa.types.is_dictionary(coded.type):
        coded = coded.cast(pa.string()).dictionary_encode()
    chunks = []
    for chunk in coded.chunks:
        keys = chunk.indices
        if not chunk.dictionary.equals(declared):
            keys = _declared_keys(column, chunk.dictionary).take(keys)
        chunks.append(pa.DictionaryArray.from_arrays(keys.cast(pa.int8()), declared))
    return pa.chunked_array(chunks, type=pa.dictionary(pa.int8(), pa.string()))


def _declared_keys(column: Column, dictionary: pa.Array) -> pa.Array:
    """The place of each value of `dictionary` among the column's declared values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = pc.index_in(dictionary.cast(pa.string()), value_set=pa.array(column.values, pa.string()))
    if keys.null_count:
        odd = dictionary[keys.is_null().index(True).as_py()]
        raise ValueError(f"{column.name} = {odd.as_py()!r} is not one of {', '.join(column.values)}")
    return keys


def table_from_rows(name: str, rows: list[dict[str, object]]) -> pa.Table:
    """Build table `name` from dictionaries; keys that are left out become nulls (allowed where nullable)."""
    import pyarrow as pa

    columns = {}
    for column in TABLES[name].columns:
        type_ = pa.string() if column.type == "enum" else _arrow_type(column.type)
        columns[column.name] = pa.array([row.get(column.name) for row in rows], type_)
    unknown = {key for row in rows for key in row} - set(columns)
    if unknown:
        raise ValueError(f"table {name} has no column {', '.join(sorted(unknown))}")
    return conform(name, pa.table(columns))


def empty_table(name: str) -> pa.Table:
    """Return table `name` with no rows."""
    return arrow_schema(name).empty_table()

"""The tables that the native code emits are those that toolkit/schema declares."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hindflight import _native
from hindflight.toolkit.capture import load_capture
from hindflight.toolkit.schema import TABLES, arrow_schema, conform, empty_table

DEMO = Path(__file__).parents[2] / "toolkit/demo/geo-burst-loss.pcap.xz"
NATIVE = ("segments", "flows", "events", "instruments", "others", "issues")


@pytest.fixture(scope="module")
def native() -> dict[str, pa.RecordBatch]:
    """What the native code gives for the demo capture, before Python touches it."""
    reader = _native.CaptureReader([DEMO], first_flow_id=1, input_ids=[0])
    columns = reader.read_batch(1 << 20)
    assert columns is not None
    assert reader.read_batch(1) is None
    rest = {name: pa.record_batch(getattr(reader, name)()) for name in NATIVE[1:]}
    return {"segments": pa.record_batch(columns), **rest}


@pytest.mark.parametrize("name", NATIVE)
def test_names_types_and_nullability(name: str, native: dict[str, pa.RecordBatch]) -> None:
    found, declared = native[name].schema, arrow_schema(name)
    assert found.names == declared.names
    assert [(f.name, f.type, f.nullable) for f in found] == [(f.name, f.type, f.nullable) for f in declared]


@pytest.mark.parametrize("name", NATIVE)
def test_enumerations_have_the_declared_values_in_order(name: str, native: dict[str, pa.RecordBatch]) -> None:
    for column in TABLES[name].columns:
        if column.type == "enum":
            values = native[name][column.name].dictionary.to_pylist()
            assert tuple(values) == column.values, column.name


@pytest.mark.parametrize("name", NATIVE)
def test_no_null_where_none_may_be(name: str, native: dict[str, pa.RecordBatch]) -> None:
    for column in TABLES[name].columns:
        if not column.nullable:
            assert native[name][column.name].null_count == 0, column.name


@pytest.mark.parametrize("name", NATIVE)
def test_loaded_tables_carry_the_metadata(name: str) -> None:
    table: pa.Table = getattr(load_capture(DEMO), name)
    assert table.schema.equals(arrow_schema(name), check_metadata=True)
    assert conform(name, table).equals(table)
    assert pa.concat_tables([table, empty_table(name)]).num_rows == table.num_rows

"""Rows as text: null, lists, octets, formulas and control characters in CSV and JSON lines."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa

from hindflight.toolkit.rows import csv_of, json_lines_of

ROWS = pa.table(
    {
        "number": pa.array([1, None], pa.int64()),
        "share": pa.array([0.5, float("nan")]),
        "flag": pa.array([True, False]),
        "blocks": pa.array([[1, 2], []], pa.list_(pa.int64())),
        "octets": pa.array([b"\x00\xff", None], pa.binary()),
        "text": pa.array(["=1+1", "a\x1b[0mb,c"]),
        "kind": pa.array(["loss", "rto"]).dictionary_encode(),
    }
)


def test_csv_has_one_form_for_every_type() -> None:
    names, first, second = csv.reader(io.StringIO(csv_of(ROWS, header=True)))
    assert names == ROWS.column_names
    assert first == ["1", "0.5", "true", "[1, 2]", "00ff", "'=1+1", "loss"]
    assert second == ["", "NaN", "false", "[]", "", "a\\x1b[0mb,c", "rto"]
    assert csv_of(ROWS, header=False).splitlines() == csv_of(ROWS, header=True).splitlines()[1:]


def test_json_lines_keep_values_and_hide_control_characters() -> None:
    text = json_lines_of(ROWS)
    assert "\x1b" not in text
    first, second = map(json.loads, text.splitlines())
    assert first == {
        "number": 1,
        "share": 0.5,
        "flag": True,
        "blocks": [1, 2],
        "octets": "00ff",
        "text": "=1+1",
        "kind": "loss",
    }
    assert second["share"] is None
    assert second["text"] == "a\x1b[0mb,c"

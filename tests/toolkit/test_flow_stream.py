"""The table `flows` in one pass without tables: its rows are those of the tables, in bounded memory."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benches.captures import write_short, write_syns
from hindflight.toolkit.capture import FlowStream, load_capture

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CAPTURES = sorted(path for path in FIXTURES.rglob("*.pcap*") if path.stat().st_size < 2_000_000)


def _json_rows(path: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(b"[" + b"".join(FlowStream(path, json=True).text()) + b"]")
    return rows


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_rows_are_those_of_the_table(path: Path) -> None:
    table = load_capture(path, input_id=1).flows
    expected = sorted(
        table.to_pylist(), key=lambda row: (-row[f"{row['data_direction']}_payload_bytes"], row["flow_id"])
    )
    rows = _json_rows(path)
    assert rows == expected
    assert list(rows[0]) == table.column_names
    stream = FlowStream(path)
    text = b"".join(stream.text()).decode()
    assert stream.totals() == (len(expected), min(row["start_ns"] for row in expected))
    cells = [["" if value is None else str(value) for value in row.values()] for row in expected]
    assert list(csv.reader(io.StringIO(text))) == [table.column_names, *cells]


def test_connections_of_one_syn_have_the_rows_of_the_table_and_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "syns.pcap"
    write_syns(path, 3000)
    assert _json_rows(path) == load_capture(path, input_id=1).flows.sort_by("flow_id").to_pylist()
    write_syns(path, 200_000)
    # 256 while open, and the row that waits for its place in the order.
    assert _octets_per_connection(path, 200_000) < 320


def test_connections_that_have_closed_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "short.pcap"
    write_short(path, 40_000)
    # A few hundred until their lifetime has ended, and the row.
    assert _octets_per_connection(path, 40_000) < 1200


def _octets_per_connection(path: Path, connections: int) -> int:
    program = (
        "import sys; from hindflight.toolkit.capture import FlowStream; from pathlib import Path;"
        "used = lambda: int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) * 1024; before = used();"
        "rows = sum(chunk.count(b'\\n') for chunk in FlowStream(Path(sys.argv[1])).text());"
        "print(rows, used() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program, path], check=True, capture_output=True, text=True)
    rows, octets = map(int, done.stdout.split())
    assert rows == connections + 1
    return octets // connections


def test_very_many_flows_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "short.pcap"
    write_short(path, 5000)
    rows = _json_rows(path)
    assert [row["flow_id"] for row in rows] == list(range(1, 5009))
    assert {row["a2b_payload_bytes"] for row in rows} == {900}


def test_listing_flows_loads_no_table_library() -> None:
    program = (
        "import sys; from hindflight.cli.app import main; code = main(['flows', sys.argv[1], '--csv']);"
        "heavy = {'pyarrow', 'polars', 'duckdb'} & sys.modules.keys(); assert not heavy, heavy; assert code == 0"
    )
    subprocess.run([sys.executable, "-c", program, CAPTURES[0]], check=True, capture_output=True)

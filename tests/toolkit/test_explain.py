"""`hindflight explain` prints what the schema says, at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from docs.scripts.make_tables_page import PAGE, page
from hindflight.cli.app import main
from hindflight.toolkit.schema import SCHEMA_VERSION, TABLES

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("pyarrow", "polars", "duckdb", "numpy", "rich", "altair", "pydantic", "hindflight._native")


def test_without_a_name_it_lists_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    shown = capsys.readouterr().out
    for name, table in TABLES.items():
        assert f"{name} " in shown
        assert table.row.split()[-1] in shown


def test_a_table_with_types_units_meanings_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "segments"]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.partition("\n\n")[2].splitlines() if not line.startswith(" ")] == [
        column.name for column in TABLES["segments"].columns
    ]
    assert "i64, ns?" in shown
    assert "One of: a2b, b2a." in " ".join(shown.split())


def test_one_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "instruments.cwnd_bytes"]) == 0
    shown = capsys.readouterr().out
    assert "cwnd_bytes  i64, bytes?  Congestion window" in shown
    assert "ssthresh" not in shown


def test_json_is_the_whole_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == SCHEMA_VERSION
    assert {t["name"]: [c["name"] for c in t["columns"]] for t in document["tables"]} == {
        name: [column.name for column in table.columns] for name, table in TABLES.items()
    }


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("segmets", "there is no table segmets", "did you mean 'segments'?"),
        ("cwnd_bytes", "it is a column", "instruments.cwnd_bytes"),
        ("events.knid", "has no column knid", "did you mean 'kind'"),
        ("zzz", "there is no table zzz", "tables: segments"),
    ],
)
def test_an_unknown_name_gets_the_nearest(
    capsys: pytest.CaptureFixture[str], name: str, message: str, hint: str
) -> None:
    assert main(["explain", name]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("hindflight: ")
    assert message in shown.err
    assert hint in shown.err


@pytest.mark.parametrize("arguments", [["explain"], ["explain", "flows"], ["--help"], ["query", "--help"]])
def test_nothing_heavy_is_imported(arguments: list[str]) -> None:
    script = f"""
import sys
from docs.scripts.make_tables_page import PAGE, page
from hindflight.cli.app import main
main({arguments!r})
heavy = sorted(name for name in {HEAVY!r} if name in sys.modules)
sys.exit(f"imported {{heavy}}" if heavy else 0)
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_the_page_of_the_tables_says_what_the_schema_says() -> None:
    assert PAGE.read_text() == page(), "docs/tables.md is stale: python -m docs.scripts.make_tables_page"


def test_no_meaning_trails_off(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "events.leg"]) == 0
    assert "the first split proxy, and so on." in " ".join(capsys.readouterr().out.split())
    for table in TABLES.values():
        assert main(["explain", table.name]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert not [end for end in (", .", "….", "..") if end in shown], table.name


def test_each_count_of_losses_says_which_packets_it_counts() -> None:
    runs = TABLES["runs"]
    for name in ("channel_losses", "queue_losses", "aqm_losses", "outage_losses"):
        assert runs.column(name).meaning.startswith("Data packets ")
    assert runs.column("control_losses").meaning.startswith("Packets without data ")

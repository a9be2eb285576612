"""`[keep]`, and captures of a replay: what is recorded of its runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hindflight as hf
from hindflight.toolkit.capture import load_capture
from tests.e2e.conftest import Command, error_line

SCENARIO = """
name = "kept"
duration = "{duration}"
path = ["a", "b", "c"]
[[links]]
name = "ab"
rate = "2 Mbit/s"
delay = "20 ms"
loss = {{ model = "bernoulli", per = 0.005 }}
[[links]]
name = "bc"
delay = "10 ms"
[compare]
variants = ["newreno", "cubic"]
proxies = ["none", "b"]
seeds = 2
{keep}
"""


def _file(folder: Path, keep: str = "", duration: str = "5 s") -> Path:
    path = folder / "s.toml"
    path.write_text(SCENARIO.format(keep=keep, duration=duration))
    return path


def _count(hindflight: Command, workspace: str, table: str) -> list[dict[str, int]]:
    query = f"SELECT run_id, leg, count(*) AS n FROM {table} GROUP BY ALL ORDER BY ALL"  # noqa: S608 - our own names
    ended = hindflight("query", workspace, query, "--json")
    assert ended.returncode == 0, ended.stderr
    rows: list[dict[str, int]] = json.loads(ended.stdout)["rows"]
    return rows


def test_export_of_a_scenario_writes_a_capture_of_every_node(hindflight: Command, tmp_path: Path) -> None:
    ended = hindflight("export", _file(tmp_path), "--format", "pcapng", "-o", "captures")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.splitlines()[-1] == "wrote 10 files to captures"
    names = sorted(path.name for path in (tmp_path / "captures").iterdir())
    alone = [f"{run}-none-{node}.pcapng" for run in ("1-newreno", "5-cubic") for node in "ac"]
    split = [f"{run}-b-{node}.pcapng" for run in ("3-newreno", "7-cubic") for node in "abc"]
    assert names == sorted(alone + split)
    assert hindflight("replay", _file(tmp_path), "-w", "ws").returncode == 0
    (stored,) = [row["n"] for row in _count(hindflight, "ws", "segments") if row["run_id"] == 1]
    assert load_capture(tmp_path / "captures" / "1-newreno-none-a.pcapng").segments.num_rows == stored


def test_the_former_option_says_what_to_write_now(hindflight: Command, tmp_path: Path) -> None:
    ended = hindflight("replay", _file(tmp_path), "-w", "ws", "--pcap", "captures")
    assert ended.returncode == 2
    assert error_line(ended).endswith("s.toml --format pcapng -o captures")
    assert not (tmp_path / "ws").exists()


def test_number_of_states_is_bounded_for_any_run_length_and_is_enough_for_a_report(
    hindflight: Command, tmp_path: Path
) -> None:
    sizes = {}
    for duration in ("5 s", "50 s"):
        path = _file(tmp_path, '[keep]\nseries = "states"\nsamples = 40', duration)
        assert hindflight("replay", path, "-w", "ws").returncode == 0
        sizes[duration] = _count(hindflight, "ws", "instruments")
        assert _count(hindflight, "ws", "segments") == []
    assert [(row["run_id"], row["leg"]) for row in sizes["5 s"]] == [(1, 0), (3, 0), (3, 1), (5, 0), (7, 0), (7, 1)]
    for rows in sizes.values():
        assert all(row["n"] <= 40 for row in rows)
        assert all(row["n"] >= 20 for row in rows if row["leg"] == 0)
    ended = hindflight("report", "ws", "-o", "report.html")
    assert ended.returncode == 0, ended.stderr
    assert "newreno" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("samples", [1, 2])
def test_states_are_limited_as_requested_and_include_the_last(
    hindflight: Command, tmp_path: Path, samples: int
) -> None:
    latest = "SELECT run_id, leg, max(t_ns) AS last FROM instruments GROUP BY ALL ORDER BY ALL"

    def kept(keep: str) -> tuple[list[int], list[dict[str, int]]]:
        assert hindflight("replay", _file(tmp_path, keep), "-w", "ws").returncode == 0
        ended = hindflight("query", "ws", latest, "--json")
        return [row["n"] for row in _count(hindflight, "ws", "instruments")], json.loads(ended.stdout)["rows"]

    counts, last = kept(f'[keep]\nseries = "states"\nsamples = {samples}')
    assert counts == [samples] * 6
    assert last == kept('[keep]\nseries = "states"')[1]


def test_keep_records_all_runs_or_none(hindflight: Command, tmp_path: Path) -> None:
    assert hindflight("replay", _file(tmp_path, '[keep]\nruns = "all"'), "-w", "ws").returncode == 0
    assert {row["run_id"] for row in _count(hindflight, "ws", "segments")} == set(range(1, 9))
    assert hindflight("replay", _file(tmp_path, '[keep]\nseries = "none"'), "-w", "ws").returncode == 0
    assert _count(hindflight, "ws", "segments") == _count(hindflight, "ws", "instruments") == []
    assert hindflight("report", "ws", "-o", "report.html").returncode == 0


def test_impossible_captures_give_one_line_and_leave_nothing(hindflight: Command, tmp_path: Path) -> None:
    export = ("--format", "pcapng", "-o", "captures")
    ended = hindflight("export", _file(tmp_path, '[keep]\nseries = "none"'), *export)
    assert (ended.returncode, error_line(ended)[:22]) == (2, 'keep.series = "none" r')
    ended = hindflight("export", _file(tmp_path, '[flow]\nheaders = "44 B"'), *export)
    assert ended.returncode == 2
    assert "flows[0]: no capture can hold segment 1 at 0 ns: its headers cannot be 52 B" in error_line(ended)
    assert not (tmp_path / "captures").exists()


def test_keep_works_from_python(tmp_path: Path) -> None:
    with hf.replay(_file(tmp_path)) as tables:
        assert tables.arrow("runs").num_rows == 8
    assert len(hf.export(_file(tmp_path), tmp_path / "captures", format="pcapng")) == 10
    (tmp_path / "file").write_text("")
    with pytest.raises(hf.HindflightError, match="not a folder"):
        hf.export(_file(tmp_path), tmp_path / "file", format="pcapng")

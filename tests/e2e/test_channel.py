"""`channel fit`, `convert` and `show` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.conftest import ROOT, Command, error_line

LOG = ROOT / "fixtures" / "kernel" / "S9-reno" / "link.csv.xz"


def test_fit_tells_what_fits_and_what_does_not(hindflight: Command, tmp_path: Path) -> None:
    ended = hindflight("channel", "fit", LOG, "--model", "gilbert", "--model", "bernoulli", "--charts", "pictures")
    assert ended.returncode == 0, ended.stderr
    assert "gilbert: fits" in ended.stdout
    assert "bernoulli: does not fit" in ended.stdout
    assert "go together more than the model has it" in ended.stdout
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"runs.png", "autocorrelation.png"}
    found = json.loads(hindflight("channel", "fit", LOG, "--model", "gilbert", "--level", "0.99", "--json").stdout)
    assert (found["packets"], found["losses"], found["best"]) == (9235, 46, "gilbert")
    p = found["fits"][0]["parameters"][0]
    assert p["name"] == "p"
    assert p["low"] < 0.0012626263 < p["high"]


def test_convert_and_show_round(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "a.down").write_text("1\n2\n2\n5\n")
    ended = hindflight("channel", "convert", "a.down", "a.csv")
    assert ended.returncode == 0, ended.stderr
    assert "a.csv: estimates, unknowns, counts and source of the trace are not in it." in ended.stderr
    assert hindflight("channel", "convert", "a.csv", "b.down").returncode == 0
    assert (tmp_path / "b.down").read_text() == "1\n2\n2\n5\n"
    shown = json.loads(hindflight("channel", "show", "b.down", "--json").stdout)
    assert {"section": "link over time", "name": "mean rate", "value": 9.6e6, "unit": "bit/s"} in shown["statistics"]
    assert "mean rate" in hindflight("channel", "show", "a.csv").stdout


def test_a_wrong_file_is_one_line(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "a.down").write_text("5\n4\n")
    ended = hindflight("channel", "show", "a.down")
    assert ended.returncode == 2
    assert "a.down: line 2: 4 ms is earlier than the line before (5 ms)" in error_line(ended)

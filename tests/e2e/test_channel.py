"""`channel fit`, `convert` and `show` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.conftest import ROOT, Command, error_line

LOG = ROOT / "fixtures" / "kernel" / "S9-reno" / "link.csv.xz"


def test_fit_reports_accepted_and_rejected_models(hindflight: Command, tmp_path: Path) -> None:
    ended = hindflight("channel", "fit", LOG, "--model", "gilbert", "--model", "bernoulli", "--charts", "pictures")
    assert ended.returncode == 0, ended.stderr
    assert "gilbert: fits" in ended.stdout
    assert "bernoulli: does not fit" in ended.stdout
    assert "are correlated more than in the model" in ended.stdout
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"runs.png", "autocorrelation.png"}
    found = json.loads(hindflight("channel", "fit", LOG, "--model", "gilbert", "--level", "0.99", "--json").stdout)
    assert (found["packets"], found["losses"], found["best"]) == (9235, 46, "gilbert")
    p = found["fits"][0]["parameters"][0]
    assert p["name"] == "p"
    assert p["low"] < 0.0012626263 < p["high"]


def test_convert_and_show_round_trip(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "a.down").write_text("1\n2\n2\n5\n")
    ended = hindflight("channel", "convert", "a.down", "a.csv")
    assert ended.returncode == 0, ended.stderr
    assert "a.csv: estimates, unknowns, counts and source of the trace are omitted." in ended.stderr
    assert hindflight("channel", "convert", "a.csv", "b.down").returncode == 0
    assert (tmp_path / "b.down").read_text() == "1\n2\n2\n5\n"
    shown = json.loads(hindflight("channel", "show", "b.down", "--json").stdout)
    (rate,) = [row for row in shown["statistics"] if row["name"] == "mean rate"]
    assert rate == {"section": "link outside outages", "name": "mean rate", "value": 9.6e6, "unit": "bit/s"}
    assert "mean rate" in hindflight("channel", "show", "a.csv").stdout


def test_show_draws_charts_of_a_model_and_a_skyline(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "street.toml").write_text(
        'model = "street"\nsatellite = { azimuth = 60.0, elevation = 40.0 }\nspeed = "20 m/s"\n'
    )
    ended = hindflight("channel", "show", "street.toml", "--duration", "2 min", "--charts", "pictures", "--json")
    assert ended.returncode == 0, ended.stderr
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"states.png", "skyline.png"}
    assert json.loads(ended.stdout)["statistics"]
    synth = ("channel", "synth", "street.toml", "-o", "s.parquet", "--skyline", "s.csv")
    assert hindflight(*synth).returncode == 0
    ended = hindflight("channel", "show", "s.csv", "--charts", "drawn")
    assert "left" in ended.stdout
    assert [path.name for path in (tmp_path / "drawn").iterdir()] == ["skyline.png"]
    burst = ("channel", "show", "gilbert_elliott", "-p", "mean_loss=0.05", "-p", "mean_burst=4.0", "--json")
    found = {row["name"]: row["value"] for row in json.loads(hindflight(*burst).stdout)["statistics"]}
    assert abs(found["loss rate"] - 0.05) < 0.01
    ended = hindflight("channel", "show", "gilbert_elliot")
    assert "there is no such file" in error_line(ended)


def test_parquet_is_not_written_with_the_suffix_of_another_format(hindflight: Command, tmp_path: Path) -> None:
    capture = ROOT / "fixtures" / "kernel" / "S2-reno" / "snd.pcap.xz"
    for command in (("synth", "uav"), ("extract", capture)):
        ended = hindflight("channel", *command, "-o", "a.csv")
        assert ended.returncode == 2
        assert error_line(ended) == "a.csv: the suffix is that of csv, but this command writes Parquet"
        assert not (tmp_path / "a.csv").exists()
    assert hindflight("channel", "synth", "uav", "-o", "a").returncode == 0
    assert "outages" in hindflight("channel", "show", "a").stdout


def test_invalid_file_gives_one_line(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "a.down").write_text("5\n4\n")
    ended = hindflight("channel", "show", "a.down")
    assert ended.returncode == 2
    assert "a.down: line 2: 4 ms is earlier than the previous line (5 ms)" in error_line(ended)


def test_damaged_trace_gives_one_line(hindflight: Command, tmp_path: Path) -> None:
    synth = ("channel", "synth", "bernoulli", "-p", "per=0.1", "--packets", 100, "-o", "a.parquet")
    assert hindflight(*synth).returncode == 0
    octets = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(octets[:200] + bytes([octets[200] ^ 255]) + octets[201:])
    for command in (("show", "a.parquet"), ("fit", "a.parquet"), ("convert", "a.parquet", "b.csv")):
        ended = hindflight("channel", *command)
        assert ended.returncode == 2
        assert "a.parquet: is not a Parquet file, or is damaged (" in error_line(ended)
    assert not (tmp_path / "b.csv").exists()

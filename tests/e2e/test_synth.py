"""`hindflight channel synth` on the command line: traces, summaries, and one line for invalid input."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hindflight.channels.trace import read_trace
from tests.channels.models.test_ephemeris import elements
from tests.e2e.conftest import Command, error_line, words


def test_synth_writes_a_trace_of_a_model_with_settings(hindflight: Command, tmp_path: Path) -> None:
    settings = ("-p", "mean_loss=0.05", "-p", "mean_burst=4.0", "--packets", 50_000)
    ended = hindflight("channel", "synth", "gilbert_elliott", *settings, "-o", "g.parquet", "--json")
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert said["lost_share"] == pytest.approx(0.05, abs=0.01)
    assert read_trace(tmp_path / "g.parquet").packets().num_rows == said["rows"] == 50_000


def test_model_file_gives_the_same_trace_for_the_same_seed(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "street.toml").write_text(
        'model = "street"\nsatellite = { geo = -96.0 }\nlatitude = 40.7\nlongitude = -74.0\nazimuth = 120.0\n'
    )
    for name in ("a", "b"):
        ended = hindflight("channel", "synth", "street.toml", "--duration", "10 min", "-o", f"{name}.parquet")
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.startswith("street: 600 s in ")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    span = ("--duration", "10 min", "-o")
    assert hindflight("channel", "synth", "street.toml", *span, "c.parquet", "--skyline", "s.csv").returncode == 0
    ended = hindflight("channel", "synth", "street.toml", "-p", "skyline=s.csv", *span, "d.parquet")
    assert ended.returncode == 0, ended.stderr
    drawn, read = (read_trace(tmp_path / f"{name}.parquet").channel for name in "cd")
    assert drawn.equals(read)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("stret",), "did you mean 'street'?"),
        (("bernoulli",), "bernoulli.per: this key is missing"),
        (("bernoulli", "-p", "per=nan"), "nan is not a finite number"),
        (("uav", "--duration", "-3 s"), "--duration: '-3 s': a time cannot be negative"),
        (("uav", "--duration", "1e30 s"), "--duration: '1e30 s' is too long; at most 720 h"),
        (("bernoulli", "-p", "per=0.1", "--packets", str(10**18)), "packets are too many; at most 1000000000"),
        (("uav", "-p", "share_zero"), "write it as KEY=VALUE"),
        (("uav", "--seed", str(2**64)), f"0<=x<={2**64 - 1}"),
        (("nowhere.toml",), "there is no such file"),
        (("uav", "--skyline", "s.csv"), "'uav' has no buildings"),
    ],
)
def test_invalid_model_gives_one_line(
    hindflight: Command, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    ended = hindflight("channel", "synth", *arguments, "-o", "x.parquet")
    assert ended.returncode == 2
    assert says in error_line(ended)
    assert not (tmp_path / "x.parquet").exists()


def test_maximum_seed_is_accepted(hindflight: Command) -> None:
    ended = hindflight("channel", "synth", "uav", "--seed", 2**64 - 1, "-o", "x.parquet")
    assert ended.returncode == 0, ended.stderr


def test_model_with_a_missing_file_gives_one_line(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "leo.tle").write_text("\n".join(elements(15.2)))
    (tmp_path / "pass.toml").write_text(
        'model = "track"\nnear = { latitude = 0.0, longitude = 0.0 }\n'
        'far = { tle = "leo.tle", at = 2026-06-01T00:00:00Z }\n'
    )
    assert "leo.tle: the elements are of 2026-03-01 and 92 days from 2026-06-01, which is out of date" in error_line(
        hindflight("channel", "synth", "pass.toml", "-o", "x.parquet")
    )
    (tmp_path / "sn.csv").write_text("t_s,ebn0_db\n0,5\n")
    ended = hindflight("channel", "synth", "signal", "-p", "file=sn.csv", "-o", "x.parquet")
    assert ended.stderr == "wrote x.parquet\n"
    assert "sn.csv" in read_trace(tmp_path / "x.parquet").source["model"]


@pytest.mark.parametrize(
    ("stop", "code", "said"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
)
def test_interrupted_synth_leaves_nothing(
    tmp_path: Path, environment: dict[str, str], stop: signal.Signals, code: int, said: str
) -> None:
    arguments = ("channel", "synth", "bernoulli", "-p", "per=0.01", "--packets", 1_000_000_000, "-o", "a.parquet")
    running = subprocess.Popen(words(*arguments), cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    while running.poll() is None and not list(tmp_path.glob(".hindflight-*.tmp")):
        time.sleep(0.05)
    assert running.poll() is None, "it ended before it could be stopped"
    running.send_signal(stop)
    _, stderr = running.communicate(timeout=30)
    assert (running.returncode, stderr.strip().splitlines()[-1]) == (code, f"hindflight: {said}")
    assert [path.name for path in tmp_path.iterdir()] == ["scratch"]


SWALLOWS = """
import os, signal, sys, time

import hindflight.__main__
import hindflight.cli.app as app

def run(words):
    try:
        os.kill(os.getpid(), signal.{stop})
    except BaseException:
        pass
    try:
        time.sleep(20)
    except BaseException as error:
        print(type(error).__name__)
        time.sleep(1.4)  # Cleaning up is not interrupted. It does not end when the next request is due.
        print("cleaned")
    return 7

app.main = run
sys.exit(hindflight.__main__.main())
"""


@pytest.mark.parametrize(("stop", "raised"), [("SIGINT", "Interrupted"), ("SIGTERM", "SystemExit")])
def test_end_that_a_library_drops_is_asked_for_again(stop: str, raised: str) -> None:
    program = SWALLOWS.format(stop=stop)
    ended = subprocess.run((sys.executable, "-c", program), check=False, capture_output=True, text=True, timeout=30)
    assert (ended.stdout.splitlines(), ended.returncode) == ([raised, "cleaned"], 7)

"""Names with a newline, with characters outside the BMP, and with octets that are not UTF-8: every command works."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.e2e.conftest import FLOW, words

ODD = (
    pytest.param(b"two\nlines", id="newline"),
    pytest.param("balloon 🎈".encode(), id="outside the BMP"),
    pytest.param(b"caf\xe9 [red]\x1b[31m", id="not UTF-8"),
)


STREET = ("street", "-p", "satellite={azimuth=60.0, elevation=40.0}", "-p", "speed=20 m/s", "--duration", "2 s")


class Runner:
    """Runs commands in a folder whose name is odd too, and checks that nothing of it reaches the terminal."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment

    def __call__(self, *arguments: str) -> str:
        ended = subprocess.run(
            words(*arguments), cwd=self.folder, env=self.environment, capture_output=True, timeout=120, check=False
        )
        assert ended.returncode == 0, ended.stderr
        for stream in (ended.stdout, ended.stderr):
            assert b"\x1b" not in stream
            stream.decode()
        return ended.stdout.decode()


@pytest.mark.parametrize("octets", ODD)
def test_every_command_takes_any_name(tmp_path: Path, environment: dict[str, str], octets: bytes) -> None:
    name = os.fsdecode(octets)
    folder = tmp_path / name
    folder.mkdir()
    run = Runner(folder, environment)
    capture, log = f"{name}.pcap.xz", f"{name}.csv.xz"
    (folder / capture).write_bytes((FLOW / "snd.pcap.xz").read_bytes())
    (folder / log).write_bytes((FLOW / "tcpinfo.csv.xz").read_bytes())
    run("info", capture)
    assert json.loads(run("info", capture, "--json"))["packets"] == 3130
    run("flows", capture)
    run("series", capture, "--flow", "1", "--csv")
    workspace = f"ws {name}"
    run("ingest", capture, log, "-w", workspace)
    run("flows", workspace)
    run("score", workspace)
    assert run("query", workspace, "SELECT count(*) AS n FROM segments", "--csv") == "n\n3130\n"
    run("channel", "extract", workspace, "-o", f"{name}.parquet")
    run("channel", "show", f"{name}.parquet", "--charts", f"pictures {name}")
    run("channel", "fit", f"{name}.parquet", "--model", "bernoulli")
    run("channel", "convert", f"{name}.parquet", f"{name}.csv")
    run("channel", "convert", f"{name}.csv", f"{name} again.parquet")
    run("channel", "synth", *STREET, "-o", f"{name} s.parquet", "--skyline", f"{name}.skyline")
    run("scenario", "init", capture, "-o", f"{name}.toml", "--seeds", "1")
    run("replay", f"{name}.toml", "-w", workspace)
    run("export", f"{name}.toml", "--format", "pcapng", "-o", f"captures {name}")
    run("export", workspace, "--format", "xpl", "-o", f"graphs {name}", "--run", "0")
    run("report", workspace, "-o", f"{name}.html", "--charts", f"charts {name}", "--csv", f"runs {name}.csv")


@pytest.mark.parametrize("octets", ODD)
def test_what_if_takes_any_name(tmp_path: Path, environment: dict[str, str], octets: bytes) -> None:
    name = os.fsdecode(octets)
    run = Runner(tmp_path, environment)
    capture = f"{name}.pcap"
    (tmp_path / capture).write_bytes((FLOW / "snd.pcap.xz").read_bytes())
    run("whatif", capture, "-o", f"out {name}", "--seeds", "1", "--variants", "newreno", "--proxy", "none")
    scenario = tomllib.loads((tmp_path / f"out {name}" / "scenario.toml").read_text(encoding="utf-8"))
    stored = scenario["captured"]["input"]
    assert stored == ("file:caf%E9%20%5Bred%5D%1B%5B31m.pcap" if octets.startswith(b"caf") else capture)
    assert b"\x1b" not in (tmp_path / f"out {name}" / "report.html").read_bytes()


def test_a_model_names_a_file_by_a_uri(tmp_path: Path, environment: dict[str, str]) -> None:
    run = Runner(tmp_path, environment)
    run("channel", "synth", *STREET, "-o", "drawn.parquet", "--skyline", os.fsdecode(b"caf\xe9.csv"))
    run("channel", "synth", *STREET, "-o", "read.parquet", "-p", "skyline=file:caf%E9.csv")

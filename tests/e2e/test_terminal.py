"""On a terminal of 80 columns no line wraps and no table breaks into rows; --wide shows all columns."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import FLOW, words

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terminal")
    ended = _run(folder, "ingest", FLOW / "snd.pcap.xz", FLOW / "tcpinfo.csv.xz", "-w", "out/workspace")
    assert ended.returncode == 0, ended.stderr
    ended = _run(folder, "whatif", FLOW / "snd.pcap.xz", "-o", "out", "--seeds", "2", "--variants", "cubic")
    assert ended.returncode == 0, ended.stderr
    (folder / "whatif.txt").write_text(ended.stdout)
    (folder / "said.txt").write_text(ended.stderr)
    return folder


def _run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command as on a terminal of 80 columns."""
    return subprocess.run(
        words(*arguments),
        cwd=folder,
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _widest(text: str) -> int:
    return max(map(len, text.splitlines()))


@pytest.mark.parametrize(
    "line",
    [
        "flows out/workspace",
        "series out/workspace --flow 1",
        "score out/workspace",
        f"info {FLOW / 'snd.pcap.xz'}",
        "channel show out/scenario.channel.parquet",
        "channel fit out/scenario.channel.parquet",
        "channel extract out/workspace",
        "channel sensitivity out/scenario.toml",
        "replay out/scenario.toml -w out/workspace",
        "variants",
        "variants bbr",
        "scenario profiles",
        "scenario profiles recovery",
        "scenario presets",
        "scenario presets pepsal",
        "explain",
        "explain runs",
        "--help",
        "flows --help",
        "query --help",
    ],
)
def test_nothing_is_wider_than_80_columns(folder: Path, line: str) -> None:
    ended = _run(folder, *line.split())
    assert ended.returncode == 0, ended.stderr
    long = [text for text in ended.stdout.splitlines() if len(text) > 80 and not _is_one_word(text)]
    assert not long
    assert "row 1" not in ended.stdout


def _is_one_word(text: str) -> bool:
    """Whether a line holds nothing that could move to the next line, such as a long path."""
    return len(text.split()) <= 2


def test_the_comparison_fits(folder: Path) -> None:
    text = (folder / "whatif.txt").read_text()
    assert _widest(text) <= 80
    assert "cubic" in text
    assert "gain %" in text


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("flows out/workspace", "captured at"),
        ("series out/workspace --flow 1", "snd_wnd_bytes"),
        ("variants", " year "),
    ],
)
def test_wide_shows_all_columns(folder: Path, line: str, column: str) -> None:
    heads = [_run(folder, *line.split(), *more).stdout.replace("--wide adds", "") for more in ([], ["--wide"])]
    tables = [text.split("─", 1)[0] for text in heads]
    assert column not in tables[0]
    assert column in tables[1]


def test_the_command_that_whatif_names_brings_the_report_up_to_date(folder: Path) -> None:
    scenario, report = folder / "out" / "scenario.toml", folder / "out" / "report.html"
    said = (folder / "said.txt").read_text().splitlines()
    (named,) = (text.strip() for text in said if text.strip().startswith("hindflight replay"))
    before = report.read_text()
    assert "vegas, through midway" not in before
    edited = scenario.read_text().replace('variants = ["cubic"]', 'variants = ["vegas"]')
    scenario.write_text(edited)
    command, *arguments = shlex.split(named)
    assert command == "hindflight"
    ended = subprocess.run([sys.executable, "-m", command, *arguments], cwd=folder, check=False, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    assert "vegas, through midway" in report.read_text()

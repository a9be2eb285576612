"""Runs the command in a separate process without a terminal, with separate stdout and stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
FLOW = ROOT / "fixtures" / "kernel" / "S2-reno"

Ended = subprocess.CompletedProcess[str]
Command = Callable[..., Ended]


def words(*arguments: object) -> list[str]:
    """Return the command line of `hindflight` with these arguments."""
    return [sys.executable, "-m", "hindflight", *map(str, arguments)]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a command, with a temporary folder in which leftovers are visible."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return os.environ | {"TMPDIR": str(scratch), "COLUMNS": "200"}


@pytest.fixture
def hindflight(tmp_path: Path, environment: dict[str, str]) -> Command:
    """Run `hindflight ARGUMENTS...` in a separate folder and return the result."""

    def run(*arguments: object) -> Ended:
        ended = subprocess.run(
            words(*arguments), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert not list((tmp_path / "scratch").iterdir()), "temporary files were left behind"
        return ended

    return run


def error_line(ended: Ended) -> str:
    """Return the error line of a failed command; check that there is no output, no traceback, at most one hint."""
    assert ended.stdout == ""
    lines = ended.stderr.splitlines()
    assert lines, "nothing was said"
    assert lines[0].startswith("hindflight: ")
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("  hint: ")), ended.stderr
    return lines[0].removeprefix("hindflight: ")

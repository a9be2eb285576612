"""Run the command as a user does: in a process of its own, with a terminal's absence and its streams kept apart."""

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
    """Return the whole command line of `hindflight` with these arguments."""
    return [sys.executable, "-m", "hindflight", *map(str, arguments)]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a command, with a temporary folder whose leftovers can be seen."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return os.environ | {"TMPDIR": str(scratch), "COLUMNS": "200"}


@pytest.fixture
def hindflight(tmp_path: Path, environment: dict[str, str]) -> Command:
    """Run `hindflight ARGUMENTS...` in a folder of its own and return how it ended."""

    def run(*arguments: object) -> Ended:
        ended = subprocess.run(
            words(*arguments), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert not list((tmp_path / "scratch").iterdir()), "temporary files were left behind"
        return ended

    return run


def error_line(ended: Ended) -> str:
    """Return the one line that told the error, and check that it is one: no output, no traceback, at most a hint."""
    assert ended.stdout == ""
    lines = ended.stderr.splitlines()
    assert lines, "nothing was said"
    assert lines[0].startswith("hindflight: ")
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("  hint: ")), ended.stderr
    return lines[0].removeprefix("hindflight: ")

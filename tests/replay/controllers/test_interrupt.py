"""Ctrl-C ends a replay: inside a controller's Python code that never returns, and inside a long native run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LOOP = """
while True:
    pass
"""
STUBBORN = """
while True:
    try:
        while True:
            pass
    except BaseException:
        if stubborn.append(1) or len(stubborn) > 2:
            raise
"""

SCRIPT = """
import hindflight as hf
stubborn = []

class Endless(hf.Controller, variant="endless"):
    def {method}:
        {before}
        print("in\\n", end="", flush=True)  # One write, as both threads print.
{body}

hf.replay("s.toml", threads=2)
"""

NATIVE = """
import hindflight as hf
print("in", flush=True)
hf.replay("s.toml", threads=2)
"""

SCENARIO = """
name = "two nodes"
duration = "{duration}"
path = ["sender", "receiver"]

[flow]
size = "greedy"

[[links]]
name = "link"
rate = "{rate}"
delay = "50 ms"

[compare]
variants = ["{variant}"]
seeds = 2
"""


def _interrupted(folder: Path, script: str, scenario: str) -> None:
    (folder / "s.toml").write_text(scenario)
    running = subprocess.Popen(
        [sys.executable, "-c", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "in\n"
        time.sleep(1)
        assert running.poll() is None, "it ended before it could be interrupted"
        start = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=20)
        assert time.monotonic() - start < 5
        assert said.rstrip().endswith("KeyboardInterrupt")
        assert running.returncode == -signal.SIGINT
    finally:
        running.kill()


@pytest.mark.parametrize("body", [LOOP, STUBBORN])
@pytest.mark.parametrize(
    ("method", "before"),
    [("on_ack(self, ack)", "super().on_ack(ack)"), ("__init__(self, c, s)", "super().__init__(c, s)")],
)
def test_a_controller_that_never_returns(tmp_path: Path, method: str, before: str, body: str) -> None:
    body = "\n".join(" " * 8 + line for line in body.strip().splitlines())
    script = SCRIPT.format(method=method, before=before, body=body)
    _interrupted(tmp_path, script, SCENARIO.format(duration="4 s", rate="10 Mbit/s", variant="endless"))


def test_a_long_run_of_the_engine(tmp_path: Path) -> None:
    _interrupted(tmp_path, NATIVE, SCENARIO.format(duration="3600 s", rate="10 Gbit/s", variant="cubic"))

"""SIGINT and SIGTERM end the command at any time: with 130 and 143, one line on stderr, and nothing half written."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STOPS = [(signal.SIGINT, 130, "hindflight: interrupted\n"), (signal.SIGTERM, 143, "hindflight: terminated\n")]

STARTS = """
import sys

from hindflight.__main__ import main
from hindflight.cli import stop

stop.handle()
print("handled", flush=True)
sys.exit(main())
"""


@pytest.mark.parametrize(("number", "code", "said"), STOPS)
def test_a_command_that_starts_ends_at_once(number: int, code: int, said: str, tmp_path: Path) -> None:
    """At moments 40 ms apart; nothing comes through the pipe, so that it never ends by itself."""
    arguments = ("ingest", "-", "-w", str(tmp_path / "workspace"))
    for moment in range(10):
        started = subprocess.Popen(
            [sys.executable, "-c", STARTS, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert started.stdout is not None
        assert started.stdout.readline() == "handled\n"
        time.sleep(0.04 * moment)
        started.send_signal(number)
        out, err = started.communicate(timeout=30)
        assert (started.returncode, out, err) == (code, "", said), f"after {40 * moment} ms"
        assert not list(tmp_path.iterdir())


STOPPED = """
import os, signal, sys, time

import hindflight.__main__
import hindflight.cli.app as app
from hindflight.cli.errors import run

def stop():
    os.kill(os.getpid(), signal.{stop})

class Field:
    def __set_name__(self, owner, name):
        stop()

class Dropped:
    def __del__(self):
        stop()

def replaced(words):
    type("Log", (), {{"field": Field()}})

def dropped(words):
    Dropped()
    time.sleep(20)

def executed(words):
    exec("stop()")

app.main = lambda words: run({command}, words)
sys.exit(hindflight.__main__.main())
"""


@pytest.mark.parametrize("command", ["replaced", "dropped", "executed"])
@pytest.mark.parametrize(("number", "code", "said"), STOPS)
def test_what_python_does_with_our_exception_changes_nothing(number: int, code: int, said: str, command: str) -> None:
    """It replaces one that ends `__set_name__`, drops one in a destructor, and notes a KeyboardInterrupt in `exec`."""
    program = STOPPED.format(stop=signal.Signals(number).name, command=command)
    ended = subprocess.run((sys.executable, "-c", program), check=False, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", said)

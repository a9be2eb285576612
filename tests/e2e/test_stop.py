"""SIGINT and SIGTERM end the command at any time: with 130 and 143, one line on stderr, and nothing half written."""

from __future__ import annotations

import os
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


@pytest.mark.parametrize(("number", "code", "message"), STOPS)
def test_a_command_that_starts_ends_at_once(number: int, code: int, message: str, tmp_path: Path) -> None:
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
        assert (started.returncode, out, err) == (code, "", message), f"after {40 * moment} ms"
        assert not list(tmp_path.iterdir())


def _run(program: str) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-c", program)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=30, env=buffered)


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
@pytest.mark.parametrize(("number", "code", "message"), STOPS)
def test_what_python_does_with_our_exception_changes_nothing(
    number: int, code: int, message: str, command: str
) -> None:
    """It replaces one that ends `__set_name__`, drops one in a destructor, and notes a KeyboardInterrupt in `exec`."""
    program = STOPPED.format(stop=signal.Signals(number).name, command=command)
    began_s = time.monotonic()
    ended = _run(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", message)
    assert time.monotonic() - began_s < 15, "`dropped` ends by itself after 20 s, with 0"


CLEANED_UP = """
import os, signal, sys, time

import hindflight.__main__
import hindflight.cli.app as app
from hindflight.cli.errors import run
from hindflight.toolkit.errors import HindflightError

def wait(words):
    os.kill(os.getpid(), signal.{first})
    time.sleep(20)

def remove():
    try:
        open("/missing/file")
    except FileNotFoundError:  # Expected, as cleanups do; both the second signal and the alarm come meanwhile.
        os.kill(os.getpid(), signal.{second})
        for _ in range(8):
            time.sleep(0.1)
    print("removed", flush=True)

def cleans_up(words):
    try:
        wait(words)
    finally:
        remove()

def fails(words):
    try:
        wait(words)
    finally:
        raise HindflightError("cannot remove it", "do it")

app.main = lambda words: run({command}, words)
sys.exit(hindflight.__main__.main())
"""


@pytest.mark.parametrize("second", STOPS)
@pytest.mark.parametrize("first", STOPS)
def test_no_signal_interrupts_a_cleanup(first: tuple[int, int, str], second: tuple[int, int, str]) -> None:
    names = {"first": signal.Signals(first[0]).name, "second": signal.Signals(second[0]).name}
    program = CLEANED_UP.format(**names, command="cleans_up")
    ended = _run(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (first[1], "removed\n", first[2])


def test_a_cleanup_that_fails_is_reported_next_to_the_signal() -> None:
    program = CLEANED_UP.format(first="SIGTERM", second="SIGTERM", command="fails")
    ended = _run(program)
    assert ended.returncode == 143
    assert ended.stderr == "hindflight: cannot remove it\n  hint: do it\nhindflight: terminated\n"


def test_closed_stderr_changes_no_exit_code() -> None:
    before = "import os\nfrom hindflight.cli import stop\nstop.handle()\nos.close(2)\nos.kill(os.getpid(), 15)"
    closes = CLEANED_UP.format(first="SIGTERM", second="SIGTERM", command="cleans_up")
    for program in (before, closes.replace("def wait(words):", "def wait(words):\n    os.close(2)")):
        ended = _run(program)
        assert ended.returncode == 143

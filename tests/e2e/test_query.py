"""`hindflight query` ends when it should: on Ctrl-C, on SIGTERM, at its time limit, at its memory limit."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import FLOW, Command, error_line, words

JOIN = "SELECT count(*) AS n FROM range(100000000) a, range(1000000) b WHERE a.range * b.range = 7"
"""DuckDB looks at a request to stop many times in this one …"""
FOLDED = "SELECT list_sum(range(400000000)) AS n"
"""… and never in this one, which it computes while it plans; it allocates beyond DuckDB's memory limit."""


@pytest.fixture
def workspace(hindflight: Command) -> str:
    ended = hindflight("ingest", FLOW / "snd.pcap.xz", "-w", "ws")
    assert ended.returncode == 0, ended.stderr
    return "ws"


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("sql", [JOIN, FOLDED])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_query_at_once(
    tmp_path: Path, environment: dict[str, str], workspace: str, sql: str, number: int, code: int
) -> None:
    running = subprocess.Popen(
        words("query", workspace, sql), cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not (children := _children(running.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)  # Until the child computes; the test holds wherever it is.
    assert running.poll() is None, "the query ended before it could be interrupted"
    start = time.monotonic()
    running.send_signal(number)
    _, stderr = running.communicate(timeout=30)
    # A second to the user; a busy machine with a gigabyte to return may take a little longer.
    assert time.monotonic() - start < 3
    assert running.returncode == code
    assert len(stderr.splitlines()) == 1
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_a_killed_command_leaves_no_query_behind(tmp_path: Path, environment: dict[str, str], workspace: str) -> None:
    running = subprocess.Popen(words("query", workspace, JOIN), cwd=tmp_path, env=environment)
    deadline = time.monotonic() + 60
    while not (children := _children(running.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    running.kill()
    running.wait(timeout=30)
    while any(_runs(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children
    assert not any(_runs(child) for child in children)


def _runs(pid: int) -> bool:
    """Whether the process exists and is no zombie, which nobody may be there to reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_time_limit(hindflight: Command, workspace: str) -> None:
    ended = hindflight("query", workspace, JOIN, "--timeout", "1 s")
    assert ended.returncode == 2
    assert error_line(ended) == "stopped after 1 s"
    ended = hindflight("query", workspace, "SELECT count(*) AS n FROM flows", "--timeout", "60 s", "--csv")
    assert (ended.returncode, ended.stdout) == (0, "n\n1\n")


@pytest.mark.parametrize(
    "sql", [FOLDED, "SELECT a.range AS n FROM range(100000) a, range(100000) b", "SELECT repeat('a', 800000000) AS t"]
)
def test_the_memory_limit(hindflight: Command, workspace: str, sql: str) -> None:
    ended = hindflight("query", workspace, sql, "--memory", "300 MB")
    assert ended.returncode == 3
    assert "memory" in error_line(ended)
    ended = hindflight("query", workspace, "SELECT count(*) AS n FROM flows", "--memory", "300 MB", "--csv")
    assert (ended.returncode, ended.stdout) == (0, "n\n1\n")


@pytest.mark.parametrize(
    ("option", "value"),
    [("--timeout", "1"), ("--timeout", "0 s"), ("--timeout", "1e9 h"), ("--memory", "1 kB"), ("--memory", "2 GHz")],
)
def test_limits_that_are_refused(hindflight: Command, workspace: str, option: str, value: str) -> None:
    ended = hindflight("query", workspace, "SELECT 1", option, value)
    assert ended.returncode == 2
    assert option in error_line(ended)


def test_errors_keep_their_exit_code(hindflight: Command, workspace: str) -> None:
    ended = hindflight("query", workspace, "SELECT nothing FROM flows")
    assert ended.returncode == 2
    assert "nothing" in error_line(ended)
    ended = hindflight("query", workspace, "SELECT nothing FROM flows", "--debug")
    assert "Traceback" in ended.stderr

"""Instructions that the engine takes per data packet of a session, counted by valgrind's cachegrind.

Does not depend on which sessions are compared.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BUILD = ("cargo", "build", "--release", "--locked", "-p", "hindflight-engine", "--message-format=json", "--example")
COUNT = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
SECONDS = (100, 200)
TOOLS = ("valgrind", "cargo")


def program(example: str) -> str:
    """Build an example of the engine and return its path."""
    built = subprocess.run([*BUILD, example], capture_output=True, text=True, check=True, cwd=HERE.parent)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    found = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == example]
    return str(found[0])


def count(command: list[str]) -> tuple[int, str]:
    """Return the instructions that a command takes, and what it prints."""
    ended = subprocess.run([*COUNT, *command], capture_output=True, text=True, check=True)
    counted = re.search(r"I\s+refs:\s+([\d,]+)", ended.stderr)
    if counted is None:
        raise SystemExit(f"valgrind did not say how many instructions it saw: {ended.stderr}")
    return int(counted[1].replace(",", "")), ended.stdout


def session_cost(run: str, config: dict[str, Any], seconds: int) -> tuple[int, int]:
    """Return instructions and data packets of a session that lasts so long."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({**config, "duration_ns": seconds * 1_000_000_000}, file)
        file.flush()
        instructions, said = count([run, file.name])
    return instructions, sum(int(sent) for sent in re.findall(r"segments_out: (\d+)", said))


def instructions_each(config: dict[str, Any], run: str) -> float:
    """Return the instructions per data packet of a session, its start left out; `run` is `program("run")`."""
    (shorter, fewer), (longer, more) = (session_cost(run, config, seconds) for seconds in SECONDS)
    return (longer - shorter) / (more - fewer)

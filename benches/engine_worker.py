"""One measurement of the engine in a process of its own: `python -m benches.engine_worker`, a case in JSON on stdin.

Prints JSON: data packets, nanoseconds on the processor and by the wall, and kB by which the greatest size of the
process exceeds its size before the run. Knows the engine through `replay.run` alone.
"""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from replay.controller import Controller
from replay.run import Configuration, run_configurations

PYTHON_RENO = "python-reno"


class PythonReno(Controller, variant=PYTHON_RENO):
    """Reno in Python, as the base class has it: what calling Python costs."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one measurement gave; `growth_kb` is 0 where the system does not tell."""

    packets: int
    cpu_ns: int
    wall_ns: int
    growth_kb: int


def _status_kb(field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) if found else 0


def measure(
    configs: list[dict[str, Any]], *, recorded: bool, segments: bool, samples: int | None, threads: int
) -> Figures:
    """Run each configuration with its number as the seed, after a short run that has loaded everything once."""
    jobs = [Configuration(config, seed, recorded) for seed, config in enumerate(configs, 1)]
    short = Configuration({**configs[0], "duration_ns": 1_000_000_000}, 1, recorded)
    run_configurations([short], threads=1, segments=segments, samples=samples)
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts anew
    size_kb = _status_kb("VmRSS")
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    tables = run_configurations(jobs, threads=threads, segments=segments, samples=samples)
    cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    growth_kb = _status_kb("VmHWM") - size_kb
    return Figures(sum(tables["runs"]["segments_out"].to_pylist()), cpu, wall, growth_kb)


if __name__ == "__main__":
    json.dump(asdict(measure(**json.load(sys.stdin))), sys.stdout)

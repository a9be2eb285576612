"""One measurement of the engine in a separate process: `python -m benches.engine_worker`, a case in JSON on stdin.

`measure` prints data packets, nanoseconds of processor and wall time, and kB by which the maximum size of the
process exceeds its size before the run; `compare` prints nanoseconds of processor time per data packet of two sessions
that alternate. Depends on the engine only through `hindflight.replay.experiment.run`.
"""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hindflight.replay.controllers.base import Controller
from hindflight.replay.experiment.run import Configuration, run_configurations

PYTHON_RENO = "python-reno"
MAX_GUESSES = 12
"""Maximum number of runs to find a duration."""
MAX_GROWTH = 20.0
"""Maximum factor by which such a run is longer than the previous one."""


class PythonReno(Controller, variant=PYTHON_RENO):
    """Reno in Python, as in the base class: shows the cost of calls to Python."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of one measurement; `growth_kb` is 0 if the system does not report it. `delivered_bytes`: by flow."""

    packets: int
    cpu_ns: int
    wall_ns: int
    growth_kb: int
    delivered_bytes: tuple[int, ...] = ()


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
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
    size_kb = _status_kb("VmRSS")
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    tables = run_configurations(jobs, threads=threads, segments=segments, samples=samples)
    cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    growth_kb = _status_kb("VmHWM") - size_kb
    packets, delivered = (tables["runs"][column].to_pylist() for column in ("segments_out", "delivered_bytes"))
    return Figures(sum(packets), cpu, wall, growth_kb, tuple(delivered))


def compare(configs: list[dict[str, Any]], *, pairs: int, packets: int) -> list[list[float]]:
    """Run two sessions in turn, `pairs` times, each for as long as it takes to send about `packets` data packets.

    Turns are short, so that what else the machine does meets both; returns nanoseconds per data packet of each turn.
    """
    lasting = [_lasting(config, packets) for config in configs]
    return [[_ns_each(config) for config in lasting] for _ in range(pairs)]


def _lasting(config: dict[str, Any], packets: int) -> dict[str, Any]:
    """Return `config` with the duration in which about `packets` data packets leave; a tenth less will do."""
    for _ in range(MAX_GUESSES):
        sent = _run(config)
        if sent > 0.9 * packets:
            return config
        growth = min(packets / max(sent, 1), MAX_GROWTH)
        config = {**config, "duration_ns": round(config["duration_ns"] * max(growth, 1.1))}
    raise SystemExit(f"{config['flows'][0]['variant']}: no {packets} data packets in {config['duration_ns'] / 1e9:g} s")


def _run(config: dict[str, Any]) -> int:
    """Run `config` on one thread and return its data packets."""
    runs = run_configurations([Configuration(config, 1, recorded=False)], threads=1, segments=False)["runs"]
    return sum(runs["segments_out"].to_pylist())


def _ns_each(config: dict[str, Any]) -> float:
    begin = time.process_time_ns()
    packets = _run(config)
    return (time.process_time_ns() - begin) / packets


if __name__ == "__main__":
    case = json.load(sys.stdin)
    json.dump(compare(**case) if "pairs" in case else asdict(measure(**case)), sys.stdout)

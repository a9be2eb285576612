"""Instructions per data packet of every variant, which no neighbour on the machine changes.

`python -m benches instructions [VARIANT ...]`, with valgrind and cargo. Counts the difference between a longer and a
shorter run of the same session, so that neither start-up nor slow start counts.
"""

from __future__ import annotations

import shutil

from benches.bench_engine import variant_session
from benches.cachegrind import SECONDS, TOOLS, instructions_each, program
from hindflight.replay.catalogue import engine_variant_names


def main(names: list[str]) -> None:
    """Count and print."""
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise SystemExit(f"instructions are counted by {tool}, which is not installed")
    run = program("run")
    newreno = 0.0
    print(f"instructions per data packet between {SECONDS[0]} and {SECONDS[1]} s of the session, and over newreno's")
    for name in ("newreno", *(name for name in names or engine_variant_names() if name != "newreno")):
        each = instructions_each(variant_session(name), run)
        newreno = newreno or each
        print(f"  {name:16} {each:6.0f} {each / newreno:.2f}", flush=True)

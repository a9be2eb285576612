"""`make bench`: every bench with its peers, one after another. Run it on an idle machine.

`python -m benches NAME [OPTIONS]` runs one of them: `ingest`, `engine`, `channels`, `whatif` or `report`;
`instructions` counts, with valgrind, what each variant takes; `lines` counts the lines of the engine's code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from benches import (
    bench_channels,
    bench_engine,
    bench_ingest,
    bench_report,
    bench_whatif,
    engine_instructions,
    engine_lines,
)

BENCHES: dict[str, Callable[[list[str]], None]] = {
    "ingest": bench_ingest.main,
    "engine": bench_engine.main,
    "channels": bench_channels.main,
    "whatif": bench_whatif.main,
    "report": bench_report.main,
}


def main(words: list[str]) -> None:
    """Run the bench that the first word names, with the other words as its options; all of them without a word."""
    if not words:
        for bench in BENCHES.values():
            bench([])
        return
    name, *options = words
    named = {**BENCHES, "instructions": engine_instructions.main, "lines": engine_lines.main}
    if name not in named:
        raise SystemExit(f"no bench {name!r}; there are {', '.join(named)}")
    named[name](options)


if __name__ == "__main__":
    main(sys.argv[1:])

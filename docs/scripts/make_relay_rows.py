"""Prints the tables of docs/proxies.md, "Compared with Linux": the recorded runs of FOLDER, and how many of them hold.

`python -m docs.scripts.make_relay_rows FOLDER` takes a second per run; `python -m validation relay --out FOLDER`
records them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from validation.rebuild import REPLAYS
from validation.relay.command import row
from validation.relay.judge import RelayResult, explain, validate_relay
from validation.relay.readings import Reading, readings

RUN_HEADS = {
    "run": "run",
    "variants": "variants",
    "kbit/s": "kbit/s, Linux / engine",
    "leg 0 cwnd": "window of leg 0, pkts",
    "leg 1 cwnd": "window of leg 1, pkts",
}
WHY = "reason of a miss"


def run_rows(results: Sequence[RelayResult]) -> list[dict[str, str]]:
    """Return a row per run."""
    shown = [(row(result), explain(result)) for result in results]
    return [{**{head: cells[name] for name, head in RUN_HEADS.items()}, WHY: why} for cells, why in shown]


def reading_rows(read: Sequence[Reading]) -> list[dict[str, str]]:
    """Return a row per line of the readings. Linux's spread needs five recordings of each run that misses."""
    return [
        {
            "within the bound": cells["counted"],
            "runs": cells["runs"],
            "wanted": str(cells["wanted"]),
            "or within Linux's spread": cells["or within Linux's spread"],
            f"median of {REPLAYS} replays": cells["median of replays"],
            "Linux against itself, pairs": cells["Linux against itself, pairs"],
        }
        for cells in (one.row for one in read)
    ]


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (list(rows[0]), *(list(each.values()) for each in rows))]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def main() -> None:
    """Print both tables."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m docs.scripts.make_relay_rows FOLDER")
    results = validate_relay(Path(sys.argv[1]))
    print(table(run_rows(results)), table(reading_rows(readings(results))), sep="\n\n")


if __name__ == "__main__":
    main()

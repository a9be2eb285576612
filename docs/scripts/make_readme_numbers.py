"""Writes the numbers of the demo into README.md, between its markers: `python -m docs.scripts.make_readme_numbers`.

The demo runs as a user runs it, on a terminal of 80 columns.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "README.md"
_BLOCK = "<!-- {name}: python -m docs.scripts.make_readme_numbers -->\n"
_END = "<!-- end -->\n"


def page(before: str) -> str:
    """Return README.md with the numbers of a demo that runs now."""
    with tempfile.TemporaryDirectory() as folder:
        text = _hindflight("demo", "-o", f"{folder}/out")
        query = ("query", f"{folder}/out/workspace")
        found = _rows(*query, "SELECT * FROM findings WHERE section = 'self_check'")
        lost = _rows(
            *query,
            "SELECT cause, count(*) AS n FROM channel WHERE kind = 'packet' AND cause IS NOT NULL GROUP BY cause",
        )
        (score,) = json.loads(_hindflight("score", f"{folder}/out/workspace", "--json"))["scores"]
    losses = {row["cause"]: row["n"] for row in lost}
    after = _replaced(before, "table", _fenced(_table(text)))
    after = _replaced(after, "losses", _losses(losses))
    return _replaced(after, "accuracy", _accuracy(found, score))


def _hindflight(*arguments: str) -> str:
    command = [sys.executable, "-m", "hindflight", *arguments]
    environment = os.environ | {"COLUMNS": "80"}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def _rows(*arguments: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(_hindflight(*arguments, "--json"))["rows"]
    return rows


def _table(text: str) -> str:
    """The comparison, from its title to the line that explains its columns."""
    lines = [line.rstrip() for line in text.splitlines()]
    start = lines.index("Goodput in kbit/s")
    return "\n".join(line for line in lines[start:] if line)


def _fenced(text: str) -> str:
    return f"```\n{text}\n```\n"


def _losses(losses: dict[str, int]) -> str:
    total, queue = losses["queue"] + losses["channel"], losses["queue"]
    return (
        f"Of the demo's {total} lost packets the full queue dropped {queue}; only the other {losses['channel']} are in "
        "the trace.\n"
    )


def _accuracy(found: list[dict[str, Any]], score: dict[str, Any]) -> str:
    best = next(row["subject"] for row in found if row["text"])
    difference = next(row["value"] for row in found if (row["subject"], row["metric"]) == (best, "goodput_difference"))
    return (
        "| quantity | compared with | result | command |\n"
        "|---|---|---|---|\n"
        f"| inferred cwnd, per round trip | the kernel's TCP_INFO | median error {score['median_error']:.2%}, coverage "
        f"{score['coverage']:.1%} | `hindflight score out/workspace` |\n"
        f"| goodput of the replayed variant | the capture | {difference:+.1f} % | `make demo` |\n"
    )


def _replaced(page: str, name: str, text: str) -> str:
    begin = _BLOCK.format(name=name)
    found = re.compile(re.escape(begin) + ".*?" + re.escape(_END), re.DOTALL)
    if len(found.findall(page)) != 1:
        raise SystemExit(f"README.md has no block {name!r}")
    return found.sub(lambda _: begin + text + _END, page)


def main() -> None:
    """Write README.md."""
    PAGE.write_text(page(PAGE.read_text()))


if __name__ == "__main__":
    main()

"""What commands print: one JSON document, CSV, or a table for the eye on stdout; words and progress on stderr."""

from __future__ import annotations

import csv
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="CSV on stdout.")]

SHOWN_ROWS = 1000
"""Rows of a table for the eye; --json and --csv give all."""

LISTED_ROWS = 10
"""Rows that are too wide for the terminal are listed up to this many; more make a table that is wider than it."""

Row = dict[str, Any]

_NUMBER = re.compile(r"-?\d+(\.\d+)?( ?(%|ms))?")


def command_line() -> str:
    """Return the command as it was typed, for a workspace's manifest."""
    return shlex.join(["hindflight", *sys.argv[1:]])


def say(text: str) -> None:
    """Print words for the person, not for a program: on stderr."""
    print(text, file=sys.stderr)


def print_json(document: Any) -> None:
    """Print `document` as the one JSON document on stdout."""
    json.dump(document, sys.stdout, indent=1, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def print_csv(names: Sequence[str], rows: Sequence[Row]) -> None:
    """Print `rows` as CSV with a header; null is an empty field."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_csv_field(row[name]) for name in names] for row in rows)


def endpoint(address: str, port: int) -> str:
    """Return one end of a connection as text, an IPv6 address in brackets (RFC 5952 §6)."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _csv_field(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def print_table(names: Sequence[str], rows: Sequence[Row], title: str = "") -> None:
    """Print `rows` as a table; few rows that are too wide for the terminal as a list, row by row."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    shown = [[_cell(row[name]) for name in names] for row in rows[:SHOWN_ROWS]]
    widths = [max([len(name), *(len(line[at]) for line in shown)]) for at, name in enumerate(names)]
    needed = sum(widths) + 3 * len(widths)  # A space on either side, and one between columns.
    if sys.stdout.isatty() and needed > Console().width and len(rows) <= LISTED_ROWS:
        _print_records(names, shown)
    else:
        console = Console(width=needed + 1, highlight=False, emoji=False, markup=False)
        table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", padding=(0, 1), pad_edge=False)
        for at, name in enumerate(names):
            numeric = any(_is_number(row[name]) for row in rows[:SHOWN_ROWS])
            table.add_column(name, justify="right" if numeric else "left", no_wrap=True, min_width=widths[at])
        for line in shown:
            table.add_row(*line)
        console.print(table)
    if len(rows) > SHOWN_ROWS:
        say(f"the first {SHOWN_ROWS} of {len(rows)} rows; --csv or --json gives all")


def _print_records(names: Sequence[str], shown: list[list[str]]) -> None:
    width = max(map(len, names))
    for number, line in enumerate(shown, 1):
        print(f"row {number}")
        for name, cell in zip(names, line, strict=True):
            print(f"  {name:<{width}}  {cell}")


def _is_number(value: Any) -> bool:
    """Whether a cell reads as a number, perhaps with its unit."""
    return isinstance(value, int | float) or (isinstance(value, str) and bool(_NUMBER.fullmatch(value)))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@contextmanager
def progress_on_stderr() -> Iterator[Callable[[Path, float], None]]:
    """Give a function to report the share of each input that is done; it draws a bar where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _path, _share: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[Path, Any] = {}

        def report(path: Path, share: float) -> None:
            if path not in tasks:
                tasks[path] = bars.add_task(path.name, total=1.0)
            bars.update(tasks[path], completed=share)

        yield report

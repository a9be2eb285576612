"""What commands print: one JSON document, CSV, or a table for people on stdout; messages and progress on stderr.

All text that may come from others (names of files, scenarios and columns, cells of a query) is printed here and nowhere
else, so that no control character reaches the terminal and no cell of a CSV is a formula.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.text import csv_cell, escape_json, printable, shell_line

if TYPE_CHECKING:
    from hindflight.selection import Selected


def _one_form(context: typer.Context, value: bool) -> bool:
    """Refuse --csv with --json: whichever of the two is read last finds the other."""
    given = [name for name in ("as_json", "as_csv") if context.params.get(name)]
    if value and given:
        raise HindflightError("--csv and --json contradict each other", "leave one of them out")
    return value


AsJson = Annotated[bool, typer.Option("--json", callback=_one_form, help="One JSON document on stdout.")]
AsCsv = Annotated[bool, typer.Option("--csv", callback=_one_form, help="CSV on stdout.")]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace files even if hindflight did not write them or they were changed since."),
]

Outer = Annotated[bool, typer.Option("--outer", help="Leave tunnels closed: the flows outside of them.")]

SHOWN_ROWS = 1000
"""Rows of a table for people; --json and --csv give all."""

LISTED_ROWS = 10
"""Rows that are too wide for the terminal are listed up to this many; more make a table that is wider than it."""

Row = dict[str, Any]

_NUMBER = re.compile(r"-?\d+(\.\d+)?( ?(%|ms))?")


def command_line() -> str:
    """Return the command as it was typed, for a workspace's manifest."""
    return shell_line(["hindflight", *sys.argv[1:]])


def say(text: str) -> None:
    """Print a line for a person, not for a program: on stderr."""
    print(printable(text), file=sys.stderr)


def echo(*lines: str) -> None:
    """Print lines for a person on stdout; an empty one without any."""
    for line in lines or ("",):
        print(printable(line))


def print_json(document: Any) -> None:
    """Print `document` as the one JSON document on stdout."""
    sys.stdout.write(escape_json(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)) + "\n")


def print_csv(names: Sequence[str], rows: Sequence[Row]) -> None:
    """Print `rows` as CSV with a header; null is an empty field, a text that begins as a formula has an apostrophe."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(_csv_field, names))
    writer.writerows([_csv_field(row[name]) for name in names] for row in rows)


def _csv_field(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
    return csv_cell(printable(text, keep="\n\t")) if isinstance(text, str) else text


def print_table(names: Sequence[str], rows: Sequence[Row], title: str = "", total: int | None = None) -> None:
    """Print `rows` as a table; few rows that are too wide for the terminal as a list, row by row.

    `total` is the number of all rows, where `rows` are the first of them.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    heads = [printable(name) for name in names]
    shown = [[_cell(row[name]) for name in names] for row in rows[:SHOWN_ROWS]]
    widths = [max([len(head), *(len(line[at]) for line in shown)]) for at, head in enumerate(heads)]
    needed = sum(widths) + 3 * len(widths)  # A space on either side, and one between columns.
    if sys.stdout.isatty() and needed > Console().width and len(rows) <= LISTED_ROWS:
        _print_records(heads, shown)
    else:
        console = Console(width=needed + 1, highlight=False, emoji=False, markup=False)
        table = Table(
            box=box.SIMPLE_HEAD, title=printable(title) or None, title_justify="left", padding=(0, 1), pad_edge=False
        )
        for at, name in enumerate(names):
            numeric = any(_is_number(row[name]) for row in rows[:SHOWN_ROWS])
            table.add_column(heads[at], justify="right" if numeric else "left", no_wrap=True, min_width=widths[at])
        for line in shown:
            table.add_row(*line)
        console.print(table)
    count = len(rows) if total is None else total
    if count > SHOWN_ROWS:
        say(f"the first {SHOWN_ROWS} of {count} rows; --csv or --json gives all")


def _print_records(heads: Sequence[str], shown: list[list[str]]) -> None:
    width = max(map(len, heads))
    for number, line in enumerate(shown, 1):
        print(f"row {number}")
        for head, cell in zip(heads, line, strict=True):
            print(f"  {head:<{width}}  {cell}")


def _is_number(value: Any) -> bool:
    """Whether a cell reads as a number, perhaps with its unit."""
    return isinstance(value, int | float) or (isinstance(value, str) and bool(_NUMBER.fullmatch(value)))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


@contextmanager
def progress_on_stderr() -> Iterator[Callable[[Path, float], None]]:
    """Give a function to report the share of each input that is done; it draws a bar where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _path, _share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, emoji=False), transient=True) as bars:
        tasks: dict[Path, Any] = {}

        def report(path: Path, share: float) -> None:
            if path not in tasks:
                tasks[path] = bars.add_task(printable(path.name), total=1.0)
            bars.update(tasks[path], completed=share)

        yield report


def print_csv_rows(found: Selected) -> None:
    """Print the rows as CSV, a batch at a time."""
    from hindflight.toolkit.rows import csv_of

    header = True
    for batch in found.rows.batches():
        sys.stdout.write(csv_of(batch, header=header))
        header = False


def print_json_rows(name: str, found: Selected) -> None:
    """Print the rows as one JSON document, `start_ns` and a list called `name`, a batch at a time."""
    from hindflight.toolkit.rows import json_lines_of

    batches = found.rows.batches()
    first = next(batches)  # An error in the expression comes before any output.
    sys.stdout.write(f'{{"start_ns": {found.start_ns}, "{name}": [')
    comma = "\n"
    for batch in chain([first], batches):
        lines = json_lines_of(batch).splitlines()
        if lines:
            sys.stdout.write(comma + ",\n".join(lines))
            comma = ",\n"
    sys.stdout.write("\n]}\n")

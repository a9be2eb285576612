"""How output fits the terminal: the columns of a table that fit, wrapped paragraphs and lists of names with a text."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from hindflight.cli.output import SHOWN_ROWS, Row, echo, print_table
from hindflight.toolkit.text import printable

Wide = Annotated[bool, typer.Option("--wide", help="Show all columns, even if they are wider than the terminal.")]

ENDS = frozenset({"sender", "receiver", "host a", "host b"})
"""Columns that hold the ends of connections."""

END_WIDTH = len("255.255.255.255:65535")
"""Characters of an end of a connection where not all columns fit."""

PROSE_WIDTH = 100
"""Longest line of text, on a wide terminal too."""


def terminal_width() -> int:
    """Return the width of the terminal; 80 where there is none and COLUMNS is not set."""
    return shutil.get_terminal_size((80, 24)).columns


def print_fitting(
    names: Sequence[str], rows: Sequence[Row], wide: bool = False, title: str = "", total: int | None = None
) -> None:
    """Print a table with the first of the columns `names`, as many as fit the terminal; with `wide` all of them.

    `total` is the number of all rows, where `rows` are the first of them. Where not all columns fit, long ends of
    connections lack their middle, so that IPv6 addresses leave room for other columns.
    """
    shown = list(names) if wide else _fitting(names, rows)
    if len(shown) < len(names):
        ends = [name for name in names if name in ENDS]
        rows = [{**row, **{name: shortened(str(row[name]), END_WIDTH) for name in ends}} for row in rows]
        shown = _fitting(names, rows)
    print_table(shown, rows, title, total)
    if left := [name for name in names if name not in shown]:
        paragraph(f"--wide adds: {', '.join(left)}.")


def _fitting(names: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """The longest run of columns from the first that fits; never less than the first."""
    width = terminal_width() - 1
    shown: list[str] = []
    for name in names:
        cells = (len(_text(row[name])) for row in rows[:SHOWN_ROWS])
        width -= max(len(name), max(cells, default=0)) + 3  # What print_table puts between columns.
        if width < 0 and shown:
            break
        shown.append(name)
    return shown


def shortened(text: str, width: int) -> str:
    """Return `text` without its middle if it is longer than `width` characters; more is left of its end."""
    if len(text) <= width:
        return text
    tail = 2 * width // 3
    return f"{text[: width - tail - 1]}…{text[-tail:]}"


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def paragraph(text: str, indent: str = "") -> None:
    """Print `text` in lines that fit the terminal, all but the first indented."""
    echo(*filled(printable(text), indent).splitlines())


def filled(text: str, indent: str = "", width: int = 0) -> str:
    """Return `text` in lines that fit the terminal; a word that is longer than a line keeps in one piece."""
    return textwrap.fill(
        text,
        width or min(terminal_width(), PROSE_WIDTH),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def print_list(entries: Iterable[tuple[str, str]]) -> None:
    """Print names and texts in two columns."""
    known = list(entries)
    start = max((len(name) for name, _ in known), default=0) + 2
    for name, text in known:
        paragraph(f"{name:<{start}}{text}", " " * start)

"""The channel table as CSV: `t_ns, position, lost, delay_ns, rate_bps` and any other column of `channel`.

A row with a position is a packet. A row without one is an interval, which lasts until `end_ns` or, without it, until
the next interval. See docs/channels/interop.md.
"""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any

from hindflight.channels.formats.rows import DIRECTION, HOP, omissions
from hindflight.channels.formats.text import INT64_MAX, Source, csv_rows, parse_integer
from hindflight.channels.trace import MAX_RATE_BPS, Trace
from hindflight.toolkit.schema import TABLES, table_from_rows
from hindflight.toolkit.text import csv_cell, from_csv_cell

if TYPE_CHECKING:
    from collections.abc import Callable

_COLUMNS = [column.name for column in TABLES["channel"].columns]
_CHOICES = {column.name: column.values for column in TABLES["channel"].columns if column.values}
_MOST = {"i64": INT64_MAX, "u32": 2**32 - 1, "u64": 2**64 - 1}
_WHOLE = {column.name: _MOST[column.type] for column in TABLES["channel"].columns if column.type in _MOST}
_BOOLS = {"1": True, "true": True, "0": False, "false": False, "": False}


def read(source: Source) -> Trace:
    """Read the table. Raises ChannelError with line and column."""
    lines = csv_rows(source)
    header, names = next(lines)
    for name in names:
        if name not in _COLUMNS:
            raise source.error_at(header, f"unknown column {name!r}; allowed: {', '.join(_COLUMNS)}")
        if names.count(name) > 1:
            raise source.error_at(header, f"the column {name} is repeated")
    if "t_ns" not in names:
        raise source.error_at(header, "the column t_ns is missing")
    rows = [(number, _row(source, number, dict(zip(names, fields, strict=True)))) for number, fields in lines]
    if not rows:
        raise source.empty_error()
    _check_order(source, rows)
    _close_intervals(source, rows)
    return Trace(table_from_rows("channel", [row for _, row in rows]), source={"name": source.name})


def _row(source: Source, line: int, fields: dict[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, word in fields.items():
        parse = _PARSERS.get(name)
        row[name] = (from_csv_cell(word) or None) if parse is None else parse(source, line, name, word)
    if row["t_ns"] is None:
        raise source.error_at(line, "t_ns is empty")
    kind = row.get("kind") or ("packet" if row.get("position") is not None else "interval")
    lost = bool(row.get("lost"))
    filler = {"kind": kind, "hop": HOP, "direction": DIRECTION, "cause": "channel" if lost else "none"}
    for name, value in filler.items():
        row[name] = row.get(name) or value
    row["lost"] = lost
    row["known"] = row.get("known", True)
    return row


def _whole(source: Source, line: int, name: str, word: str) -> int | None:
    return parse_integer(source, line, word, name, _WHOLE[name]) if word else None


def _choice(source: Source, line: int, name: str, word: str) -> str | None:
    if word and word not in _CHOICES[name]:
        raise source.error_at(line, f"{name} is {word!r}; allowed: {', '.join(_CHOICES[name])}")
    return word or None


def _real(source: Source, line: int, name: str, word: str) -> float | None:
    if not word:
        return None
    try:
        value = float(word)
    except ValueError:
        raise source.error_at(line, f"{name} is {word!r}, not a number") from None
    if not math.isfinite(value) or value < 0:
        raise source.error_at(line, f"{name} is {word}; it must be finite and not negative")
    if value > MAX_RATE_BPS:
        raise source.error_at(line, f"{name} is {word}; at most {MAX_RATE_BPS:g}")
    if name in {"per", "ber"} and value > 1:
        raise source.error_at(line, f"{name} is {word}; a probability is at most 1")
    return value


def _flag(source: Source, line: int, name: str, word: str) -> bool:
    if word.lower() not in _BOOLS:
        raise source.error_at(line, f"{name} is {word!r}; allowed: 0, 1, true, false")
    return _BOOLS[word.lower()]


_PARSERS: dict[str, Callable[[Source, int, str, str], Any]] = {
    **dict.fromkeys(_WHOLE, _whole),
    **dict.fromkeys(_CHOICES, _choice),
    **dict.fromkeys(("rate_bps", "per", "ber"), _real),
    **dict.fromkeys(("lost", "known"), _flag),
}


def _check_order(source: Source, rows: list[tuple[int, dict[str, Any]]]) -> None:
    """Check that times ascend and positions count up, for packets and intervals separately."""
    last: dict[str, int] = {}
    position = 0
    for line, row in rows:
        kind = str(row["kind"])
        if row["t_ns"] < last.get(kind, 0):
            raise source.error_at(
                line, f"t_ns is {row['t_ns']}, earlier than the previous {kind}: the trace is not sorted"
            )
        last[kind] = row["t_ns"]
        if kind == "packet" and row.get("position") is not None:
            if row["position"] != position:
                raise source.error_at(
                    line, f"position is {row['position']}, expected {position}: positions count 0, 1, 2, …"
                )
            position += 1


def _close_intervals(source: Source, rows: list[tuple[int, dict[str, Any]]]) -> None:
    """End each interval without `end_ns` at the start of the next one of its hop and direction."""
    open_rows = [(line, row) for line, row in rows if row["kind"] == "interval"]
    following: dict[object, int] = {}
    for line, row in reversed(open_rows):
        key = (row["hop"], row["direction"])
        if row.get("end_ns") is None:
            if key not in following:
                raise source.error_at(line, "the last interval needs end_ns")
            row["end_ns"] = following[key]
        following[key] = row["t_ns"]
        if row["end_ns"] < row["t_ns"]:
            raise source.error_at(line, f"end_ns is {row['end_ns']}, before t_ns")


def write(trace: Trace, _where: str) -> tuple[str, list[str]]:
    """Return the whole table as CSV, and what the text omits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in trace.channel.to_pylist():
        writer.writerow(_word(row[name]) for name in _COLUMNS)
    held = {"packets", "intervals", "known", "direction", *_COLUMNS}
    return text.getvalue(), omissions(trace, held)


def _word(value: object) -> object:
    if isinstance(value, str):
        return csv_cell(value)
    return int(value) if isinstance(value, bool) else repr(value) if isinstance(value, float) else value

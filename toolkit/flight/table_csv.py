"""Flight logs as CSV: a line of names, then values; the names say what a column is and in which unit.

Naming: docs/logs.md. Commas, semicolons or tabs separate; what is no number becomes text.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.flight.model import STARTED, UNITS, Samples
from hindflight.toolkit.logs.model import BATCH_ROWS, MAX_T_NS, UTC
from hindflight.toolkit.logs.octets import Line, LogFile
from hindflight.toolkit.logs.times import parse_moment

_SYNONYMS = {
    "latitude": "lat_deg", "lat": "lat_deg", "longitude": "lon_deg", "lon": "lon_deg", "lng": "lon_deg",
    "altitude": "alt_m", "alt": "alt_m", "altitude_m": "alt_m", "latitude_deg": "lat_deg", "longitude_deg": "lon_deg",
    "lng_deg": "lon_deg", "roll": "roll_deg", "pitch": "pitch_deg", "yaw": "yaw_deg", "heading": "heading_deg",
    "elevation": "elevation_deg", "azimuth": "azimuth_deg",
}  # fmt: skip
"""Our name of a column; degrees and metres are meant where the name has no unit."""
_KNOWN = re.compile(
    r"(lat|lon|alt|roll|pitch|yaw|heading|speed|groundspeed|airspeed|height|snr|sinr|cnr|cn0|esn0|ebn0|rssi|rsrp|rsrq"
    r"|modcod|mcs|cqi|elevation|azimuth|signal|doppler)(_.*)?"
)
_TIME_UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_TIME = re.compile(r"(?:t|time|timestamp|unix|epoch|unix_time|unixtime)(?:_utc)?(?:_(s|sec|seconds|ms|us|ns|utc|iso))?")
_TEXT_TIMES = {"utc", "datetime", "date_time", "datetime_utc", "gps_time", "time_utc"}
_UNIT = re.compile(r"(.*?)\s*[\[(]\s*([^\])]*)\s*[\])]")
_WALL_CLOCK_S = 946_684_800
_MAX_COLUMNS = 1000


@dataclass(frozen=True, slots=True)
class _Header:
    """What the first line says: the names of all columns, which is the time and in which unit (0: text or seconds)."""

    names: list[str]
    time_column: int
    time_unit_ns: int
    separator: str


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` has a time and at least one column that flight logs have."""
    header = _header(head.split(b"\n")[0])
    return header is not None and any(_KNOWN.fullmatch(name) for name in header.names)


def column_name(text: str) -> str:
    """Return the name of a column: `SNR [dB]` is snr_db, `Latitude` is lat_deg."""
    found = _UNIT.fullmatch(text.strip())
    name, unit = (text.strip(), "") if found is None else found.groups()
    plain = re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")
    known = {shown.lower(): ending for ending, shown in UNITS.items()}
    ending = known.get(unit.lower(), re.sub(r"[^0-9a-z]+", "_", unit.lower()).strip("_"))
    known_as = _SYNONYMS.get(plain, "")
    if known_as and (not ending or known_as.endswith(f"_{ending}")):
        return known_as
    return f"{plain}_{ending}" if ending else plain


def read(file: LogFile) -> Iterator[Samples]:
    """Yield all columns over time."""
    lines = file.lines()
    header = _header(next(lines, Line(1, 0, b"", False)).text)
    if header is None:
        raise LogError(f"{file.name} names no column of time")
    rows: list[tuple[int, list[str]]] = []
    relative: bool | None = None
    for line in lines:
        row = _row(header, line)
        if row is None:
            if line.text.strip():
                text = f"a row that is not {len(header.names)} values with a time was left out"
                file.issues.add(line.record, line.offset, "log_damaged", text)
            continue
        relative = row[0] < _WALL_CLOCK_S * 10**9 if relative is None else relative
        rows.append(row)
        if len(rows) == BATCH_ROWS:
            yield _samples(header, rows, bool(relative))
            rows = []
    if rows:
        yield _samples(header, rows, bool(relative))


def _header(line: bytes) -> _Header | None:
    text = line.decode("utf-8-sig", "replace").strip()
    separator = max(",;\t", key=text.count)
    try:
        titles = next(csv.reader([text], delimiter=separator), [])
    except csv.Error:
        return None
    names = [column_name(title) for title in titles]
    if not 2 <= len(names) <= _MAX_COLUMNS or len(set(names)) != len(names) or not all(names):
        return None
    for index, name in enumerate(names):
        found = _TIME.fullmatch(name)
        if found is not None:
            return _Header(names, index, _TIME_UNITS_NS.get((found[1] or "")[:2].rstrip("e"), 0), separator)
        if name in _TEXT_TIMES:
            return _Header(names, index, 0, separator)
    return None


def _row(header: _Header, line: Line) -> tuple[int, list[str]] | None:
    """The time and the values of a row; None if it is not whole. A last line without its end may be cut."""
    text = line.text.decode("utf-8", "replace")
    try:
        values = (
            text.split(header.separator) if '"' not in text else next(csv.reader([text], delimiter=header.separator))
        )
    except (csv.Error, StopIteration):
        return None
    if not line.ended or len(values) != len(header.names):
        return None
    t_ns = _time_ns(values[header.time_column].strip(), header.time_unit_ns)
    return None if t_ns is None else (t_ns, values)


def _time_ns(text: str, unit_ns: int) -> int | None:
    """A time in `unit_ns`, exact for integers; without a unit seconds, or a date and time in UTC."""
    number: int | None = _decimal(text, unit_ns or 10**9)
    if number is None and not unit_ns:
        moment = parse_moment(text)
        number = None if moment is None or moment.t_ns < _WALL_CLOCK_S * 10**9 else moment.t_ns
    return number if number is not None and 0 <= number < MAX_T_NS else None


def _decimal(text: str, unit_ns: int) -> int | None:
    found = re.fullmatch(r"(\d{1,19})(?:\.(\d{1,18}))?", text, re.ASCII)
    if found is None:
        return None
    whole, fraction = str(found[1]), str(found[2] or "")
    return int(whole) * unit_ns + int(fraction or 0) * unit_ns // int("1" + "0" * len(fraction))


def _samples(header: _Header, rows: list[tuple[int, list[str]]], relative: bool) -> Samples:
    values = {}
    texts: dict[str, list[str | None]] = {}
    for index, name in enumerate(header.names):
        if index == header.time_column:
            continue
        cells = [row[index].strip() for _, row in rows]
        numbers = [_float(cell) for cell in cells]
        if any(not math.isnan(number) for number in numbers):
            values[name] = np.array(numbers, np.float64)
        words = [
            cell if cell and math.isnan(number) and not _is_missing(cell) else None
            for cell, number in zip(cells, numbers, strict=True)
        ]
        if any(word is not None for word in words):
            texts[name] = words
    return Samples(np.array([t_ns for t_ns, _ in rows], np.int64), values, texts, STARTED if relative else UTC)


def _float(cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _is_missing(cell: str) -> bool:
    return cell.lower() in ("nan", "na", "n/a", "null", "none", "-", "inf", "-inf")

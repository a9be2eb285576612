"""Times as people write them into logs: `date` in its forms, seconds since 1970, the time of day."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from hindflight.toolkit.logs import model

DAY_NS = 86_400 * 10**9
TIME_OF_DAY = "the start of a day"
"""`clock` of a time without its date."""
LOCAL = "local time in an unknown zone"
"""`clock` of a time whose zone is not given."""

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?(?:\s*(?P<half>[AP]M))?"
_ZONE = r"(?P<zone>Z|UTC|GMT|[A-Z]{3,5}|[+-]\d\d:?\d\d)"
_MONTH = rf"(?P<month_name>{'|'.join(_MONTHS)})"
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?"
_FORMS = (
    r"(?P<epoch>1\d{9})(?:\.(?P<epoch_fraction>\d{1,9}))?",
    rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)[T _]{_CLOCK}(?:\s*{_ZONE})?",
    rf"{_WEEKDAY} {_MONTH} +(?P<day>\d{{1,2}}) {_CLOCK}(?: {_ZONE})? (?P<year>\d{{4}})",
    rf"{_WEEKDAY} +(?P<day>\d{{1,2}}) {_MONTH} (?P<year>\d{{4}}) {_CLOCK}(?: {_ZONE})?",
    _CLOCK,
)
_AT_START = [re.compile(rf"\s?[\[(]?{form}[\])]?(?=\s|$)", re.ASCII) for form in _FORMS]
_AT_END = [re.compile(rf"\s{form}\s*$", re.ASCII) for form in _FORMS]


class Moment(NamedTuple):
    """A time in ns since 1970-01-01, and what it really counts from."""

    t_ns: int
    clock: str


def moment_at_start(text: str) -> tuple[Moment | None, str]:
    """Return the time with which `text` begins, and what follows it."""
    for form in _AT_START:
        found = form.match(text)
        moment = None if found is None else _moment(found.groupdict())
        if found is not None and moment is not None:
            return moment, text[found.end() :]
    return None, text


def moment_at_end(text: str) -> tuple[Moment | None, str]:
    """Return the time with which `text` ends, and what comes before it."""
    tail = text[-64:]
    for form in _AT_END:
        found = form.search(tail)
        moment = None if found is None else _moment(found.groupdict())
        if found is not None and moment is not None:
            return moment, text[: len(text) - len(tail) + found.start()]
    return None, text


def parse_moment(text: str) -> Moment | None:
    """Return the time that `text` is, None if it is not a time."""
    moment, rest = moment_at_start(text.strip())
    return moment if not rest.strip() else None


def _moment(part: dict[str, str | None]) -> Moment | None:
    epoch = part.get("epoch")
    if epoch is not None:
        return Moment(int(epoch) * 10**9 + _fraction(part["epoch_fraction"]), model.UTC)
    hour, minute, second = (int(part[name] or 0) for name in ("hour", "minute", "second"))
    if part["half"] is not None:
        hour = hour % 12 + 12 * (part["half"] == "PM")
    if hour > 23 or minute > 59 or second > 60:
        return None
    in_day_ns = ((hour * 60 + minute) * 60 + second) * 10**9 + _fraction(part["fraction"])
    if part.get("year") is None:
        return Moment(in_day_ns, TIME_OF_DAY)
    name = part.get("month_name")
    month = int(part["month"] or 0) if name is None else _MONTHS.index(name) + 1
    try:
        date = datetime(int(part["year"] or 0), month, int(part["day"] or 0), tzinfo=UTC)
    except ValueError:
        return None
    if not 1970 <= date.year < 2100:
        return None
    zone = _zone(part["zone"])
    days_ns = (date - datetime(1970, 1, 1, tzinfo=UTC)).days * DAY_NS
    east_ns = 0 if zone is None else round(zone.utcoffset(None).total_seconds()) * 10**9
    return Moment(max(0, days_ns + in_day_ns - east_ns), LOCAL if zone is None else model.UTC)


def _fraction(digits: str | None) -> int:
    return int((digits or "").ljust(9, "0"))


def _zone(text: str | None) -> timezone | None:
    """The zone where it is without ambiguity: UTC, or hours and minutes."""
    if text in ("Z", "UTC", "GMT"):
        return UTC
    if text is None or text[0] not in "+-":
        return None
    east = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-east if text[0] == "-" else east) if east < timedelta(hours=24) else None

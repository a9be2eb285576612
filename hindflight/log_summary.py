"""What a kernel log or a flight log holds, without writing anything: for a first look."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hindflight.toolkit.flight import FLIGHT_KINDS, FlightReading
from hindflight.toolkit.flight.model import unit_of
from hindflight.toolkit.flight.overview import overview
from hindflight.toolkit.logs import KINDS, LogReading
from hindflight.toolkit.logs.clock import Clock
from hindflight.toolkit.logs.issues import LogIssue
from hindflight.toolkit.logs.model import UTC, Connection
from hindflight.toolkit.logs.survey import survey


@dataclass(frozen=True, slots=True)
class LoggedConnection:
    """One connection of a kernel log; times as logged, None for a log that does not name its connection."""

    connection: Connection | None
    rows: int
    start_ns: int
    end_ns: int
    sends: bool


@dataclass(frozen=True, slots=True)
class LoggedValue:
    """One name of a flight log: how many values, and their limits (None for texts)."""

    name: str
    unit: str
    rows: int
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What a log holds. `clock` is `utc`, or says what the times count from; `offset` is what the log knows of that."""

    kind: str
    label: str
    file_bytes: int
    rows: int
    start_ns: int
    end_ns: int
    clock: str
    offset: Clock | None
    connections: tuple[LoggedConnection, ...]
    values: tuple[LoggedValue, ...]
    issues: dict[str, int]
    first_issues: tuple[LogIssue, ...]

    @property
    def in_utc(self) -> bool:
        """Whether the times are since 1970."""
        return self.clock == UTC


def summarise_log(path: Path, kind: str) -> LogSummary:
    """Read the log in `path`, of `kind` (a key of KINDS or FLIGHT_KINDS). LogError: it holds no whole record."""
    return _kernel(path, kind) if kind in KINDS else _flight(path, kind)


def _kernel(path: Path, kind: str) -> LogSummary:
    reading = LogReading(path, kind)
    logs = list(survey(reading.parts()).values())
    found: Counter[str] = Counter(reading.file.issues.counts())
    for log in logs:
        found.update(log.issues.counts())
    first = [issue for log in logs for issue in log.issues.rows()]
    return LogSummary(
        kind,
        KINDS[kind].label,
        path.stat().st_size,
        sum(log.rows for log in logs),
        min(log.start_ns for log in logs),
        max(log.end_ns for log in logs),
        logs[0].clock,
        None,
        tuple(LoggedConnection(log.connection, log.rows, log.start_ns, log.end_ns, log.sends) for log in logs),
        (),
        dict(found),
        tuple([*first, *reading.issues()][:1]),
    )


def _flight(path: Path, kind: str) -> LogSummary:
    reading = FlightReading(path, kind)
    found = overview(reading.parts())
    values = [
        LoggedValue(name, unit_of(name), limits.rows, limits.minimum, limits.maximum)
        for name, limits in found.ranges.items()
    ]
    values += [LoggedValue(name, unit_of(name), rows, None, None) for name, rows in found.texts.items()]
    return LogSummary(
        kind,
        FLIGHT_KINDS[kind].label,
        path.stat().st_size,
        found.rows,
        found.start_ns,
        found.end_ns,
        found.clock,
        found.clock_estimate(),
        (),
        tuple(values),
        reading.file.issues.counts(),
        tuple(reading.issues()[:1]),
    )

"""Flight logs: where the aircraft was, how it was turned, and what its radio reported, become `telemetry`.

`open_flight_log` recognises a file by its content. Its samples come in parts; `clock` brings them onto the time axis of
the captures. CSV is read natively; the other kinds need the libraries of the extra `flight`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.flight import dataflash, gpx, mavlink, nmea, table_csv, ulog
from hindflight.toolkit.flight.model import Samples
from hindflight.toolkit.logs.issues import LogIssue
from hindflight.toolkit.logs.octets import LogFile

__all__ = ["FLIGHT_KINDS", "FlightKind", "FlightReading", "Samples", "flight_kind"]


class FlightKind(NamedTuple):
    """A kind of flight log: its label, whether a file begins like one, and how it is read."""

    label: str
    recognises: Callable[[bytes], bool]
    read: Callable[[LogFile], Iterator[Samples]]


FLIGHT_KINDS = {
    "ulog": FlightKind("PX4 ULog", ulog.recognises, ulog.read),
    "dataflash": FlightKind("ArduPilot DataFlash", dataflash.recognises, dataflash.read),
    "mavlink": FlightKind("MAVLink tlog", mavlink.recognises, mavlink.read),
    "gpx": FlightKind("GPX", gpx.recognises, gpx.read),
    "nmea": FlightKind("NMEA", nmea.recognises, nmea.read),
    "flight_csv": FlightKind("flight log as CSV", table_csv.recognises, table_csv.read),
}
"""Every kind by the name that `hindflight ingest` prints; the first that recognises a file reads it."""


class FlightReading:
    """A recognised flight log; `parts` can be read any number of times."""

    def __init__(self, path: Path, kind: str) -> None:
        self.kind = kind
        self.file = LogFile(path)

    def parts(self) -> Iterator[Samples]:
        """Yield the samples. LogError: there are none."""
        self.file = LogFile(self.file.path)
        found = False
        for part in FLIGHT_KINDS[self.kind].read(self.file):
            found |= len(part.t_ns) > 0
            yield part
        if not found:
            reasons = "; ".join(f"record {i.record}, octet {i.offset}: {i.text}" for i in self.file.issues.rows()[:1])
            raise LogError(
                f"{self.file.name} holds no whole record of {FLIGHT_KINDS[self.kind].label}", reasons or None
            )

    def issues(self) -> list[LogIssue]:
        """Return what was wrong with the file, as far as it has been read."""
        return self.file.issues.rows()


def flight_kind(path: Path) -> str | None:
    """Return the kind of the flight log in `path`, a key of FLIGHT_KINDS; None if it is no log of these."""
    head = LogFile(path).head()
    return next((name for name, kind in FLIGHT_KINDS.items() if kind.recognises(head)), None)

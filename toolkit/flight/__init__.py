"""Flight logs: where the aircraft was, how it was turned, and what its radio reported, become `telemetry`.

`open_flight_log` recognises a file by its content. Its samples come in parts; `clock` brings them onto the time axis of
the captures. CSV is read natively; the other kinds need the libraries of the extra `flight`.
"""

from __future__ import annotations

from pathlib import Path

from hindflight.toolkit.flight import dataflash, gpx, mavlink, nmea, table_csv, ulog
from hindflight.toolkit.flight.model import Samples
from hindflight.toolkit.logs.reading import Kind, Reading, kind_in

__all__ = ["FLIGHT_KINDS", "FlightReading", "Samples", "flight_kind"]


def _has_sample(part: Samples) -> bool:
    return len(part.t_ns) > 0


FLIGHT_KINDS: dict[str, Kind[Samples]] = {
    "ulog": Kind("PX4 ULog", ulog.recognises, ulog.read, _has_sample),
    "dataflash": Kind("ArduPilot DataFlash", dataflash.recognises, dataflash.read, _has_sample),
    "mavlink": Kind("MAVLink tlog", mavlink.recognises, mavlink.read, _has_sample),
    "gpx": Kind("GPX", gpx.recognises, gpx.read, _has_sample),
    "nmea": Kind("NMEA", nmea.recognises, nmea.read, _has_sample),
    "flight_csv": Kind("flight log as CSV", table_csv.recognises, table_csv.read, _has_sample),
}
"""Every kind by the name that `hindflight ingest` prints; the first that recognises a file reads it."""


class FlightReading(Reading[Samples]):
    """A flight log of a kind of FLIGHT_KINDS."""

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(path, kind, FLIGHT_KINDS)


def flight_kind(path: Path) -> str | None:
    """Return the kind of the flight log in `path`, a key of FLIGHT_KINDS; None if it is no log of these."""
    return kind_in(FLIGHT_KINDS, path)

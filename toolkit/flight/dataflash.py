"""ArduPilot's DataFlash logs (.bin) through pymavlink: times since the start of the autopilot, and GPS time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hindflight.toolkit.flight.external import guarded, library, unpacked_file
from hindflight.toolkit.flight.gps_time import utc_ns
from hindflight.toolkit.flight.model import STARTED, Gatherer, Samples
from hindflight.toolkit.logs.octets import LogFile

_MAGIC = b"\xa3\x95\x80\x80"
"""The first message describes the format of descriptions."""

_FIELDS = {
    "POS": {"Lat": "lat_deg", "Lng": "lon_deg", "Alt": "alt_m", "RelHomeAlt": "height_m"},
    "GPS": {
        "Lat": "gps_lat_deg",
        "Lng": "gps_lon_deg",
        "Alt": "gps_alt_m",
        "Spd": "groundspeed_m_s",
        "GCrs": "course_deg",
        "VZ": "down_m_s",
        "Status": "gps_fix",
        "NSats": "gps_satellites",
        "HDop": "gps_hdop",
    },
    "ATT": {"Roll": "roll_deg", "Pitch": "pitch_deg", "Yaw": "yaw_deg"},
    "RAD": {
        "RSSI": "radio_rssi",
        "RemRSSI": "radio_remote_rssi",
        "Noise": "radio_noise",
        "RemNoise": "radio_remote_noise",
        "RxErrors": "radio_rx_errors",
        "TxBuf": "radio_tx_buffer_pct",
    },
    "RSSI": {"RXRSSI": "rc_rssi", "RXLQ": "rc_link_quality_pct"},
}
"""Name of each field by message and its name there."""


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is such a log."""
    return head.startswith(_MAGIC)


def read(file: LogFile) -> Iterator[Samples]:
    """Yield position, attitude, speed and radio over time."""
    reader = library("pymavlink.DFReader", file, "an ArduPilot DataFlash log")
    with unpacked_file(file) as path:
        yield from guarded(file, lambda: _read(reader, str(path)))


def _read(reader: Any, path: str) -> Iterator[Samples]:
    gatherer = Gatherer(STARTED, "GPS times")
    log = _reader_in_python(reader)(path)
    try:
        while (message := log.recv_match(type=list(_FIELDS))) is not None:
            kind = message.get_type()
            at_us = getattr(message, "TimeUS", None)
            if not isinstance(at_us, int):
                continue
            values = {
                name: _number(getattr(message, field))
                for field, name in _FIELDS[kind].items()
                if hasattr(message, field)
            }
            known_ns = _gps_ns(message) if kind == "GPS" else 0
            instance = getattr(message, "I", 0) if kind == "GPS" else 0
            prefix = f"gps{instance}." if instance else ""
            named = {prefix + name: value for name, value in values.items()}
            yield from gatherer.add(prefix + kind, at_us * 1000, named, known_ns)
        yield from gatherer.rest()
    finally:
        log.close()


def _reader_in_python(reader: Any) -> Any:
    """pymavlink's reader without its index in C, which prints damage past Python."""

    class Reader(reader.DFReader_binary):  # type: ignore[misc]
        def __init__(self, path: str) -> None:
            try:
                super().__init__(path)
            except BaseException:
                self.filehandle.close()
                raise

        def init_arrays_fast(self, progress_callback: object = None) -> None:
            self.init_arrays(progress_callback)

    return Reader


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _gps_ns(message: Any) -> int:
    week, ms = getattr(message, "GWk", 0), getattr(message, "GMS", 0)
    return utc_ns(week, ms) if isinstance(week, int) and isinstance(ms, int) and message.Status >= 3 else 0

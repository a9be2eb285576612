"""MAVLink telemetry logs (tlog) through pymavlink: each message with the ground station's time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from hindflight.toolkit.flight.external import guarded, library, unpacked_file
from hindflight.toolkit.flight.model import Gatherer, Samples
from hindflight.toolkit.logs.octets import LogFile

_MAGIC = (0xFE, 0xFD)
"""MAVLink 1 and 2."""
_FROM_US, _TO_US = 946_684_800_000_000, 4_102_444_800_000_000
"""Times of a tlog lie from 2000 to 2100."""

Fields = dict[str, float | None]


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is a tlog: the time in 8 octets, then a message."""
    return len(head) > 8 and head[8] in _MAGIC and _FROM_US <= int.from_bytes(head[:8], "big") < _TO_US


def read(file: LogFile) -> Iterator[Samples]:
    """Yield position, attitude, speed and radio over time."""
    library("pymavlink", file, "a MAVLink tlog")
    mavutil = library("pymavlink.mavutil", file, "a MAVLink tlog")
    with unpacked_file(file) as path:
        yield from guarded(file, lambda: _read(file, mavutil, str(path)))


def _read(file: LogFile, mavutil: Any, path: str) -> Iterator[Samples]:
    gatherer = Gatherer()
    log = mavutil.mavlogfile(path)
    first: int | None = None
    number = 0
    try:
        while (message := log.recv_msg()) is not None:
            number += 1
            kind = message.get_type()
            if kind == "BAD_DATA":
                file.issues.add(number, log.f.tell(), "log_damaged", "octets that are no MAVLink message were left out")
            elif kind in _FIELDS:
                system = message.get_srcSystem()
                first = system if first is None else first
                prefix = "" if system == first else f"sys{system}."
                fields = {prefix + name: value for name, value in _FIELDS[kind](message).items()}
                yield from gatherer.add(f"{prefix}{kind}", round(message._timestamp * 1e6) * 1000, fields)
        yield from gatherer.rest()
    finally:
        log.close()


def _position(m: Any) -> Fields:
    fields: Fields = {"lat_deg": m.lat / 1e7, "lon_deg": m.lon / 1e7, "alt_m": m.alt / 1e3}
    fields |= {"height_m": m.relative_alt / 1e3, "north_m_s": m.vx / 100, "east_m_s": m.vy / 100}
    return fields | {"down_m_s": m.vz / 100, "heading_deg": None if m.hdg == 0xFFFF else m.hdg / 100}


def _gps(m: Any) -> Fields:
    fields: Fields = {"gps_lat_deg": m.lat / 1e7, "gps_lon_deg": m.lon / 1e7, "gps_alt_m": m.alt / 1e3}
    return fields | {"gps_fix": m.fix_type, "gps_satellites": m.satellites_visible}


def _attitude(m: Any) -> Fields:
    return {
        "roll_deg": math.degrees(m.roll),
        "pitch_deg": math.degrees(m.pitch),
        "yaw_deg": math.degrees(m.yaw),
    }


def _hud(m: Any) -> Fields:
    return {"airspeed_m_s": m.airspeed, "groundspeed_m_s": m.groundspeed, "climb_m_s": m.climb}


def _radio(m: Any) -> Fields:
    fields: Fields = {"radio_rssi": m.rssi, "radio_remote_rssi": m.remrssi, "radio_noise": m.noise}
    return fields | {"radio_remote_noise": m.remnoise, "radio_rx_errors": m.rxerrors, "radio_tx_buffer_pct": m.txbuf}


def _rc(m: Any) -> Fields:
    return {"rc_rssi": None if m.rssi == 0xFF else m.rssi}


_FIELDS: dict[str, Callable[[Any], Fields]] = {
    "GLOBAL_POSITION_INT": _position,
    "GPS_RAW_INT": _gps,
    "ATTITUDE": _attitude,
    "VFR_HUD": _hud,
    "RADIO_STATUS": _radio,
    "RADIO": _radio,
    "RC_CHANNELS": _rc,
}

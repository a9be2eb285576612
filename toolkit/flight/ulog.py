"""PX4's ULog through pyulog: times since the start of the autopilot, and the receiver's UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.flight.external import guarded, library, unpacked_file
from hindflight.toolkit.flight.model import STARTED, Samples
from hindflight.toolkit.logs.model import BATCH_ROWS, MAX_T_NS, Numbers
from hindflight.toolkit.logs.octets import LogFile

_MAGIC = b"ULog\x01\x12\x35"
Column = npt.NDArray[np.float64]
Columns = dict[str, Column]


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is such a log."""
    return head.startswith(_MAGIC)


def read(file: LogFile) -> Iterator[Samples]:
    """Yield position, attitude, speed and radio over time."""
    pyulog = library("pyulog", file, "a PX4 ULog")
    with unpacked_file(file) as path:
        yield from guarded(file, lambda: _read(file, pyulog, str(path)))


def _read(file: LogFile, pyulog: Any, path: str) -> Iterator[Samples]:
    with Path(path).open("rb") as handle:
        log = pyulog.ULog(handle, list(_TOPICS))
    if log.file_corruption:
        file.issues.add(0, 0, "log_damaged", "the library reports damage; what it could read was kept")
    for dropout in log.dropouts:
        text = f"the autopilot could not log for {dropout.duration} ms"
        file.issues.add(0, 0, "log_dropout", text)
    for topic in log.data_list:
        fields = {name: np.asarray(values) for name, values in topic.data.items()}
        stamp = fields.get("timestamp")
        if stamp is None:
            continue
        at_us = stamp.astype(np.float64)
        good = (at_us >= 0) & (at_us < MAX_T_NS // 1000)
        fields = {name: values[good] for name, values in fields.items()}
        prefix = f"{topic.multi_id}." if topic.multi_id else ""
        columns = {prefix + name: values for name, values in _TOPICS[topic.name](fields).items()}
        yield from _samples(fields, columns)


def _samples(fields: Mapping[str, Any], columns: Columns) -> Iterator[Samples]:
    t_ns = fields["timestamp"].astype(np.int64) * 1000
    utc_us = fields.get("time_utc_usec")
    usable = None if utc_us is None else (utc_us.astype(np.float64) < MAX_T_NS // 1000)
    for at in range(0, len(t_ns), BATCH_ROWS):
        rows = slice(at, at + BATCH_ROWS)
        utc_ns: Numbers | None = None
        if utc_us is not None and usable is not None:
            utc_ns = np.where(usable[rows], utc_us[rows].astype(np.int64), 0) * 1000
        values = {name: column[rows] for name, column in columns.items()}
        yield Samples(t_ns[rows], values, {}, STARTED, utc_ns, "UTC times of the GPS receiver")


def _scaled(fields: Mapping[str, Any], names: Mapping[str, tuple[str, float]]) -> Columns:
    """The fields that are there, by their new name, each divided by its scale."""
    return {new: fields[name].astype(np.float64) / scale for name, (new, scale) in names.items() if name in fields}


def _position(fields: Mapping[str, Any]) -> Columns:
    return _scaled(fields, {"lat": ("lat_deg", 1), "lon": ("lon_deg", 1), "alt": ("alt_m", 1)})


def _gps(fields: Mapping[str, Any]) -> Columns:
    names = {
        "lat": ("gps_lat_deg", 1e7),
        "lon": ("gps_lon_deg", 1e7),
        "alt": ("gps_alt_m", 1e3),
        "latitude_deg": ("gps_lat_deg", 1.0),
        "longitude_deg": ("gps_lon_deg", 1.0),
        "altitude_msl_m": ("gps_alt_m", 1.0),
        "vel_m_s": ("groundspeed_m_s", 1.0),
        "fix_type": ("gps_fix", 1.0),
        "satellites_used": ("gps_satellites", 1.0),
    }
    return _scaled(fields, names)


def _attitude(fields: Mapping[str, Any]) -> Columns:
    """Roll, pitch and yaw of the quaternion from body to earth (w, x, y, z)."""
    parts = [fields.get(f"q[{index}]") for index in range(4)]
    if any(part is None for part in parts):
        return {}
    w, x, y, z = (np.asarray(part, np.float64) for part in parts)
    return {
        "roll_deg": np.degrees(np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))),
        "pitch_deg": np.degrees(np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))),
        "yaw_deg": np.degrees(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))),
    }


def _radio(fields: Mapping[str, Any]) -> Columns:
    names = {
        "rssi": ("radio_rssi", 1.0),
        "remote_rssi": ("radio_remote_rssi", 1.0),
        "noise": ("radio_noise", 1.0),
        "remote_noise": ("radio_remote_noise", 1.0),
        "rxerrors": ("radio_rx_errors", 1.0),
    }
    return _scaled(fields, names)


def _rc(fields: Mapping[str, Any]) -> Columns:
    return _scaled(fields, {"rssi": ("rc_rssi", 1.0), "link_quality": ("rc_link_quality_pct", 1.0)})


def _satcom(fields: Mapping[str, Any]) -> Columns:
    return _scaled(fields, {"signal_quality": ("satcom_signal_quality", 1.0)})


_TOPICS: dict[str, Callable[[Mapping[str, Any]], Columns]] = {
    "vehicle_global_position": _position,
    "vehicle_gps_position": _gps,
    "sensor_gps": _gps,
    "vehicle_attitude": _attitude,
    "radio_status": _radio,
    "telemetry_status": _radio,
    "input_rc": _rc,
    "iridiumsbd_status": _satcom,
}

"""What a flight log says: numbers and texts over time, each by a name that carries its unit. Knows no file format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.logs.model import BATCH_ROWS, MAX_T_NS, UTC, Numbers
from hindflight.toolkit.schema import conform

if TYPE_CHECKING:
    import pyarrow as pa

STARTED = "the start of the log or of the machine"
"""`clock` of times that are not since 1970."""

UNITS = {
    "deg": "deg", "rad": "rad", "m": "m", "km": "km", "ft": "ft", "m_s": "m/s", "km_h": "km/h", "kt": "kt", "db": "dB",
    "dbm": "dBm", "dbhz": "dBHz", "hz": "Hz", "mhz": "MHz", "ghz": "GHz", "bps": "bit/s", "kbps": "kbit/s",
    "mbps": "Mbit/s", "pct": "%", "ms": "ms", "s": "s", "us": "us", "ns": "ns", "v": "V", "a": "A", "w": "W",
    "c": "degC", "hpa": "hPa", "pa": "Pa", "bytes": "bytes", "pkts": "packets", "g": "g", "deg_s": "deg/s",
}  # fmt: skip
"""Unit by the ending of a name: snr_db is in dB."""


def unit_of(name: str) -> str:
    """Return the unit that the ending of `name` says; empty where it says none."""
    parts = name.split("_")
    for count in (2, 1):
        unit = UNITS.get("_".join(parts[-count:])) if len(parts) > count else None
        if unit is not None:
            return unit
    return ""


@dataclass(slots=True)
class Samples:
    """Values over time, all as long as `t_ns`; NaN and None stand for no value.

    `clock` is `utc`, or says what the times count from; `utc_ns` then holds the times since 1970 of those rows for
    which the log knows it (0 for the others), and `utc_basis` says from where.
    """

    t_ns: Numbers
    values: dict[str, npt.NDArray[np.float64]]
    texts: dict[str, list[str | None]] = field(default_factory=dict)
    clock: str = UTC
    utc_ns: Numbers | None = None
    utc_basis: str = ""

    def telemetry(self, input_id: int, source: str, offset_ns: int) -> pa.Table:
        """Return the rows of `telemetry`."""
        import pyarrow as pa

        t_ns = self.t_ns + offset_ns
        parts = []
        for name, values in self.values.items():
            known = np.isfinite(values)
            rows = int(known.sum())
            parts.append((t_ns[known], [name] * rows, pa.array(values[known]), pa.nulls(rows, pa.string())))
        for name, texts in self.texts.items():
            at = [index for index, text in enumerate(texts) if text is not None]
            parts.append(
                (t_ns[at], [name] * len(at), pa.nulls(len(at), pa.float64()), pa.array([texts[i] for i in at]))
            )
        names = [name for part in parts for name in part[1]]
        table = pa.table(
            {
                "input_id": np.full(len(names), input_id, np.uint32),
                "t_ns": np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)]),
                "source": pa.array([source] * len(names), pa.string()),
                "name": pa.array(names, pa.string()),
                "unit": pa.array([unit_of(name) for name in names], pa.string()),
                "value": pa.chunked_array([part[2] for part in parts], pa.float64()),
                "text": pa.chunked_array([part[3].cast(pa.string()) for part in parts], pa.string()),
            }
        )
        return conform("telemetry", table.sort_by([("t_ns", "ascending"), ("name", "ascending")]))


class Gatherer:
    """Groups records that come one by one into Samples; records of one group have the same names."""

    def __init__(self, clock: str = UTC, utc_basis: str = "") -> None:
        self._clock = clock
        self._utc_basis = utc_basis
        self._groups: dict[str, tuple[list[int], list[int], dict[str, list[float]]]] = {}
        self._count = 0

    def add(self, group: str, t_ns: int, values: Mapping[str, float | None], utc_ns: int = 0) -> Iterator[Samples]:
        """Add a record; yield the samples if there are enough. A record with an impossible time is left out."""
        if not 0 <= t_ns < MAX_T_NS or not 0 <= utc_ns < MAX_T_NS:
            return
        times, known, columns = self._groups.setdefault(group, ([], [], {}))
        for name in dict.fromkeys((*columns, *values)):
            column = columns.setdefault(name, [np.nan] * len(times))
            value = values.get(name)
            column.append(np.nan if value is None else float(value))
        times.append(t_ns)
        known.append(utc_ns)
        self._count += 1
        if self._count >= BATCH_ROWS:
            yield from self.rest()

    def rest(self) -> Iterator[Samples]:
        """Yield the samples of all records that are still here."""
        groups, self._groups, self._count = self._groups, {}, 0
        for times, known, columns in groups.values():
            values = {name: np.array(column, np.float64) for name, column in columns.items()}
            utc_ns = np.array(known, np.int64) if any(known) else None
            yield Samples(np.array(times, np.int64), values, {}, self._clock, utc_ns, self._utc_basis)

"""Findings on outages and path changes: a sentence for the summary, and a table with a row each.

hindflight.channels.extraction.interruptions measures them.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hindflight.channels.extraction.interruptions import NAMES, Interruption, interruptions
from hindflight.toolkit.units import counted

if TYPE_CHECKING:
    import pyarrow as pa


PLACE_NAMES = ("lat_deg", "lon_deg", "alt_m")
"""Names in `telemetry` of the values that say where the platform is; the first two are required."""

NOT_LOGGED = "not logged"


def interruption_rows(
    channel: pa.Table, segments: pa.Table, direction: str, positions: pa.Table | None = None
) -> list[dict[str, Any]]:
    """Return rows of the sections `summary` and `interruptions` for the link of one captured flow; [] without any.

    `positions` are the rows of `telemetry` with PLACE_NAMES. Without a latitude and a longitude no row has a place.
    """
    logged = places_of(positions)
    found = interruptions(channel, segments, direction)
    rows = [_row("summary", "capture", "interruptions", text=_sentence(found, logged))] if found else []
    for number, each in enumerate(found, 1):
        subject = f"{number}: {each.kind}"
        records = f"{_shown(each.last_record)} to {_shown(each.next_record)}"
        rows += [
            _row("interruptions", subject, "start", float(each.start_ns), "utc"),
            *(
                [_row("interruptions", subject, "place", None, "text", place_text(logged, each.start_ns))]
                if logged
                else []
            ),
            _duration(subject, each),
            _row("interruptions", subject, "rtt_before", each.rtt_before_ns, "ns"),
            _row("interruptions", subject, "rtt_after", each.rtt_after_ns, "ns"),
            _row("interruptions", subject, "goodput_before", each.goodput_before_bps, "bit/s"),
            _row("interruptions", subject, "goodput_after", each.goodput_after_bps, "bit/s"),
            _row("interruptions", subject, "time_to_first_new_data", each.first_new_data_ns, "ns"),
            _row("interruptions", subject, "time_to_90_percent_of_goodput", each.back_ns, "ns"),
            _row("interruptions", subject, "packets", None, "text", records),
        ]
    return rows


def _duration(subject: str, each: Interruption) -> dict[str, Any]:
    """Return the row of how long it took: a path changes at once."""
    if each.end_ns == each.start_ns:
        return _row("interruptions", subject, "duration", None, "text", "-")
    return _row("interruptions", subject, "duration", float(each.end_ns - each.start_ns), "ns")


Places = dict[str, tuple[list[int], list[float]]]
"""Times and values of each name, in order of time."""


def places_of(positions: pa.Table | None) -> Places:
    """Return the places of rows of `telemetry`; empty without a latitude and a longitude."""
    logged: Places = {}
    rows = [] if positions is None else positions.sort_by("t_ns").to_pylist()
    for row in rows:
        if row["value"] is not None and row["name"] in PLACE_NAMES:
            times, values = logged.setdefault(row["name"], ([], []))
            times.append(row["t_ns"])
            values.append(row["value"])
    return logged if all(name in logged for name in PLACE_NAMES[:2]) else {}


def place_text(logged: Places, t_ns: int) -> str:
    """Return latitude, longitude and, if logged, altitude at a time, as the log says them; a value holds until the
    next."""
    at = [_at(*logged[name], t_ns) for name in PLACE_NAMES if name in logged]
    if at[0] is None or at[1] is None:
        return NOT_LOGGED
    altitude = f", {at[2]:,.0f} m" if len(at) > 2 and at[2] is not None else ""
    return f"{at[0]:.5f}°, {at[1]:.5f}°{altitude}"


def _at(times: list[int], values: list[float], t_ns: int) -> float | None:
    """Return the value in force at `t_ns`; None before the first and after the last of the log."""
    if not times[0] <= t_ns <= times[-1]:
        return None
    return values[bisect_right(times, t_ns) - 1]


def _row(
    section: str, subject: str, metric: str, value: float | None = None, unit: str = "", text: str = ""
) -> dict[str, Any]:
    known = value is not None or bool(text)
    return {
        "section": section, "subject": subject, "metric": metric, "value": None if value is None else float(value),
        "unit": unit, "verdict": "info" if known else "unknown", "text": text,
    }  # fmt: skip


def utc_text(t_ns: int) -> str:
    """Return a time as date and time of day in UTC, to the millisecond."""
    return datetime.fromtimestamp(t_ns / 1e9, UTC).isoformat(sep=" ", timespec="milliseconds")[:-6]


def _sentence(found: list[Interruption], logged: Places) -> str:
    out = [each for each in found if each.end_ns > each.start_ns]
    changes = sum(each.kind != NAMES["outage"] for each in found)
    often = {1: "once", 2: "twice"}.get(changes, f"{changes} times")
    changed = f"the delay or rate of the path changed {often}" if changes else ""
    if not out:
        return f"{changed[:1].upper()}{changed[1:]}."
    total_s = sum(each.end_ns - each.start_ns for each in out) / 1e9
    worst = max(out, key=lambda each: each.end_ns - each.start_ns + (each.first_new_data_ns or 0))
    at = f"{utc_text(worst.start_ns)} UTC"
    if logged and (place := place_text(logged, worst.start_ns)) != NOT_LOGGED:
        at += f" at {place}"
    stall = " no new data was acknowledged"
    if worst.first_new_data_ns is not None:
        stalled_s = (worst.end_ns - worst.start_ns + worst.first_new_data_ns) / 1e9
        stall = f" new data was acknowledged after {stalled_s:.2f} s"
    packets = f"packets {_shown(worst.last_record)} to {_shown(worst.next_record)} of the capture"
    return (
        f"The link had {counted(len(out), 'outage')}, {total_s:.2f} s in all{'; ' if changed else ''}{changed}. "
        f"In the longest, which began at {at},{stall} ({packets})."
    )


def _shown(record: int | None) -> str:
    return "not captured" if record is None else str(record)

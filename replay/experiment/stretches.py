"""Findings on the link between its steps: a table with a row per stretch.

hindflight.channels.extraction.link_stretches measures them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hindflight.channels.estimate import STRETCH_ESTIMATES, LinkStretch


def stretch_rows(stretches: Sequence[LinkStretch]) -> list[dict[str, Any]]:
    """Return rows of the section `stretches`; an estimate that is not known has no value."""
    rows = []
    for number, one in enumerate(stretches, 1):
        rows += [
            _row(number, "start", float(one.start_ns), "utc"),
            _row(number, "duration", float(one.end_ns - one.start_ns), "ns"),
            _row(number, "packets", float(one.packets), "pkts"),
        ]
        for name in STRETCH_ESTIMATES:
            estimate = one.estimate(name)
            value = estimate.value if estimate.known else None
            rows.append(_row(number, name, value, estimate.unit, (estimate.low, estimate.high)))
    return rows


def _row(
    number: int, metric: str, value: float | None, unit: str, ends: tuple[float | None, float | None] = (None, None)
) -> dict[str, Any]:
    return {
        "section": "stretches", "subject": str(number), "metric": metric, "value": value, "low": ends[0],
        "high": ends[1], "unit": unit, "verdict": "info" if value is not None else "unknown", "text": "",
    }  # fmt: skip

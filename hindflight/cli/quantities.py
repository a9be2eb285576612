"""How commands print estimates of a link: with the unit that keeps a number readable, and one row per stretch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hindflight.channels.estimate import Estimate, LinkStretch

STRETCH_COLUMNS = {"base_rtt_ns": "base RTT", "rate_bps": "rate", "queue_limit_pkts": "queue limit"}
"""Estimates of a stretch, and the headings of their columns."""


def quantity(value: float | None, unit: str) -> str:
    """Return a number as people write it."""
    from hindflight.toolkit.units import format_rate, format_time

    if value is None:
        return "-"
    match unit:
        case "bit/s":
            return format_rate(value)
        case "ns":
            return format_time(value)
        case "":
            return f"{100 * value:.3g} %"
        case _:
            return f"{value:.4g} {unit}"


def stretch_rows(stretches: Sequence[LinkStretch]) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Return the columns and rows of a table of stretches; times count from the first of them."""
    names = ("from", "to", "packets", *STRETCH_COLUMNS.values())
    begin_ns = stretches[0].start_ns if stretches else 0
    rows = []
    for one in stretches:
        times = (f"{(t_ns - begin_ns) / 1e9:.3f} s" for t_ns in (one.start_ns, one.end_ns))
        cells = (_cell(one.estimate(name)) for name in STRETCH_COLUMNS)
        rows.append(dict(zip(names, (*times, str(one.packets), *cells), strict=True)))
    return names, rows


def _cell(estimate: Estimate) -> str:
    """Return a value with its interval, or "not known" with the bound that is known, if any."""
    low, high = (quantity(end, estimate.unit) for end in (estimate.low, estimate.high))
    if estimate.known:
        return f"{quantity(estimate.value, estimate.unit)} [{low} to {high}]"
    if estimate.value is None and estimate.low is not None:
        return f"not known (at least {low})"
    return "not known" if estimate.value is None else f"not known (about {quantity(estimate.value, estimate.unit)})"

"""How commands print estimates of a link: with the unit that keeps a number readable, and one row per stretch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hindflight.channels.estimate import Estimate, LinkStretch

STRETCH_HEADINGS = {"base_rtt_ns": "base RTT", "rate_bps": "rate", "queue_limit_pkts": "queue limit"}
"""What the rows of the estimates of a stretch are called."""


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


def interval(estimate: Estimate) -> str:
    """Return the 95 % interval of an estimate; the unit stands once if both ends have it."""
    if estimate.low is None and estimate.high is None:
        return "-"
    low, high = (quantity(end, estimate.unit) for end in (estimate.low, estimate.high))
    number, _, unit = low.partition(" ")
    return f"{number if unit and high.endswith(f' {unit}') else low} to {high}"


def stretch_rows(stretches: Sequence[LinkStretch]) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Return the columns and rows of a table of stretches, a row per estimate; times count from the first stretch."""
    names = ("stretch", "what", "value", "95 % interval")
    begin_ns = stretches[0].start_ns if stretches else 0
    rows = []
    for one in stretches:
        start_s, end_s = ((t_ns - begin_ns) / 1e9 for t_ns in (one.start_ns, one.end_ns))
        cells = [("packets", str(one.packets), "-")]
        for name, heading in STRETCH_HEADINGS.items():
            estimate = one.estimate(name)
            value = quantity(estimate.value, estimate.unit) if estimate.known else "not known"
            cells.append((heading, value, interval(estimate)))
        times = (f"{start_s:.2f} to {end_s:.2f} s", *[""] * len(STRETCH_HEADINGS))
        rows += [dict(zip(names, (span, *row), strict=True)) for span, row in zip(times, cells, strict=True)]
    return names, rows

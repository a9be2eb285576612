"""The configurations of Lee et al. 2020 (ASRAN) and what is measured of each.

Depends on the lab; knows no claim.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hindflight.replay.papers.lab import Lab, Rows, Tables
from hindflight.replay.papers.model import Cell, Change, table
from hindflight.replay.papers.statistics import Samples

SHARED, EXCHANGE = "asran", "asran-exchange"
"""Two flows over one unstable path (section 5.1), and one flow while relays exchange places (section 5.2)."""
CUBIC, ASRAN = 0, 1
"""Rows of a run of `SHARED`: the flow under test, and the flow that shares its path."""
FLOWS = {CUBIC: "CUBIC", ASRAN: "ASRAN"}
NEWRENO, ASRAN_NEWRENO = "newreno", "asran-newreno"
BREAK_S, RESTORED_S = 20.0, 35.0
"""When the relays exchange their places, and when the route is restored."""
MAX_RUNS, MAX_QUICK_RUNS = 40, 10
"""Maximum number of recorded runs of a cell."""

INSTABILITY = Cell(SHARED, "cubic")
HEAVY = INSTABILITY.but(
    (
        "flows",
        (
            table(name="asran", variant="asran-cubic", profile="linux"),
            table(name="heavy", variant="cubic", profile="linux"),
        ),
    )
)
"""Section 5.1.3: a third flow that always has data; its algorithm is not given, CUBIC as the kernel has it."""


def goodput_of(flow: int, lab: Lab, cell: Cell) -> Samples:
    """Return the goodput of a flow of `FLOWS` in Mbit/s."""

    def mbps(rows: Rows) -> float:
        return float(rows[flow]["goodput_bps"]) / 1e6

    return lab.sample(cell, mbps)


def jain_of_means(first: float, second: float) -> float:
    """Return Jain's index of two means."""
    return (first + second) ** 2 / (2 * (first**2 + second**2))


@dataclass(frozen=True, slots=True)
class Throughput:
    """Throughput in Mbit/s of each second, by flow."""

    per_second: dict[int, npt.NDArray[np.float64]]


def throughput(tables: Tables) -> Throughput:
    """Return what was acknowledged in each second of every flow of a run."""
    import polars as pl

    states = pl.DataFrame(tables["instruments"])
    last = int(tables["runs"].to_pylist()[0]["duration_ns"] / 1e9)
    found = {}
    for flow_id in sorted(states["flow_id"].unique()):
        own = states.filter(pl.col("flow_id") == flow_id, pl.col("source") == "replay").sort("t_ns")
        times, acked = own["t_ns"].to_numpy() / 1e9, own["snd_una"].to_numpy()
        marks = np.searchsorted(times, np.arange(last + 1), side="right")
        levels = np.concatenate([[0], acked])[marks]
        found[int(flow_id) - 1] = 8e-6 * np.diff(levels).astype(np.float64)
    return Throughput(found)


def per_second(lab: Lab, cell: Cell) -> list[Throughput]:
    """Return the throughput of each second of every run of `cell`."""
    maximum = MAX_QUICK_RUNS if lab.quick else MAX_RUNS
    return lab.observe([cell], throughput, maximum=maximum, segments=False)[0]


def exchange(variant: str, *changes: Change) -> Cell:
    """Return one flow while the relays exchange their places."""
    return Cell(EXCHANGE, variant, "none", changes)


def break_of(interval_s: float) -> tuple[Change, ...]:
    """Return the changes for a break as long as the interval of the routing protocol."""
    events = (
        table(at=f"{BREAK_S:g} s", outage=True),
        table(at=f"{BREAK_S + interval_s:g} s", outage=False, delay="6 ms"),
    )
    return (("links.relays.changes", events),)


EXCHANGE_LINK_BPS, EXCHANGE_S = 9e6, 60.0
"""Rate of the relays and duration of `EXCHANGE`."""


def used_share(lab: Lab) -> dict[str, float]:
    """Return the share of the relays' rate that each variant delivered while it had a route, as means of the runs."""
    routed = 1.0 - (RESTORED_S - BREAK_S) / EXCHANGE_S
    return {
        name: float(lab.sample(exchange(variant), "goodput_bps").mean()) / (EXCHANGE_LINK_BPS * routed)
        for name, variant in (("NewReno", NEWRENO), ("ASRAN", ASRAN_NEWRENO))
    }


def disconnection_s(found: Throughput) -> float:
    """Longest time in s without throughput."""
    longest = run = 0
    for value in found.per_second[0]:
        run = run + 1 if value == 0 else 0
        longest = max(longest, run)
    return float(longest)

"""The configurations of Palazzi et al. 2005 and what is measured of each.

Depends on the lab; knows no claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hindflight.replay.papers.lab import Lab, Rows, Tables
from hindflight.replay.papers.model import Cell, Change, table
from hindflight.toolkit.errors import HindflightError

if TYPE_CHECKING:
    import polars as pl

OUT, BACK = "haps-split", "haps-split-return"
DIRECTIONS = (OUT, BACK)
NEWRENO, WESTWOOD = "newreno", "westwood"
VARIANTS = (NEWRENO, WESTWOOD)
NONE, TRUCK, DOUBLE = "none", "truck", "truck+satellite"
PERS = (0.001, 0.005, 0.01)
"""Packet error rates of the link W-U (section 4.2)."""
LOW, MIDDLE, HIGH = PERS
MSS_BYTES = 1460
CACHES = tuple(range(10, 251, 10))
"""Caches of the sweep (section 4.2)."""
FEW_CACHES = (10, 30, 50, 60, 70, 80, 90, 110, 150, 200, 250)

TRANSFER: tuple[Change, ...] = (("flow.size", "5 MB"), ("duration", "3600 s"))
"""Section 4.2: one file of 5 MByte; the time is long enough for every run to end."""
GREEDY: tuple[Change, ...] = ()
"""Section 4.2: 230 s, as the scenario file has it."""

_NAMES = {NEWRENO: "NewReno", WESTWOOD: "Westwood"}
_PLACES = {NONE: "no proxy", TRUCK: "proxy at T", DOUBLE: "proxies at T and S"}
_WAYS = {OUT: "W to G", BACK: "G to W"}


def per_of_first_link(per: float) -> tuple[Change, ...]:
    """Return the changes that give the link W-U this packet error rate, in both directions."""
    return (("links.W-U.loss.per", per), ("links.W-U.reverse.loss.per", per))


def cell(variant: str, proxy: str, per: float, traffic: tuple[Change, ...] = GREEDY, scenario: str = OUT) -> Cell:
    """Return one configuration: variant, proxies, PER of W-U, traffic and direction."""
    return Cell(scenario, variant, proxy, (*per_of_first_link(per), *traffic))


def with_cache(base: Cell, cache: int) -> Cell:
    """Return `base` with a cache of so many packets at T."""
    return base.but(("proxy.truck.receive_buffer", f"{cache} pkts"))


def with_bursts(base: Cell) -> Cell:
    """Return `base` with losses on W-U in bursts of 10 packets, 1 % of all: neither is given by the paper."""
    bursts = table(model="gilbert_elliott", mean_loss=0.01, mean_burst=10.0)
    kept = tuple(change for change in base.changes if not change[0].startswith("links.W-U."))
    return Cell(base.scenario, base.variant, base.proxy, kept).but(
        ("links.W-U.loss", bursts), ("links.W-U.reverse.loss", bursts)
    )


def describe(each: Cell) -> str:
    """Return a cell in words: variant, place of the proxies, direction."""
    return f"{_NAMES[each.variant]}, {_PLACES[each.proxy]}, {_WAYS[each.scenario]}"


def percent(per: float) -> str:
    """Return a packet error rate in percent."""
    return f"PER {100 * per:g} %"


def time_s(rows: Rows) -> float:
    """Time of the file in seconds. HindflightError for a run that did not deliver it."""
    if not rows[0]["completed"]:
        raise HindflightError(f"a file was not delivered within {rows[0]['duration_ns'] / 1e9:g} s")
    return float(rows[0]["duration_ns"]) / 1e9


def goodput_kbps(rows: Rows) -> float:
    """Goodput in kbit/s."""
    return float(rows[0]["goodput_bps"]) / 1e3


def _last_leg(tables: Tables) -> pl.DataFrame:
    """Return the states of the sender of the last connection of a run, in order of time."""
    import polars as pl

    states = pl.DataFrame(tables["instruments"])
    return states.filter(pl.col("leg") == states["leg"].max(), pl.col("cwnd_bytes").is_not_null()).sort("t_ns")


def last_window(tables: Tables) -> tuple[list[float], list[float]]:
    """Return times in s and the congestion window in packets of the last connection."""
    states = _last_leg(tables)
    return (states["t_ns"] / 1e9).to_list(), (states["cwnd_bytes"] / MSS_BYTES).to_list()


def mean_window_pkts(tables: Tables) -> float:
    """Mean over time of the congestion window of the last connection in packets."""
    times, windows = last_window(tables)
    return float(np.average(windows[:-1], weights=np.diff(times)))


def window_from_truck_pkts(tables: Tables) -> float:
    """Window that the connection from T to G exceeds in a tenth of the time, in packets, for data from W to G."""
    return _high_window_pkts(1, tables)


def window_to_truck_pkts(tables: Tables) -> float:
    """Window that the connection from G to T exceeds in a tenth of the time, in packets, for data from G to W."""
    return _high_window_pkts(0, tables)


def _high_window_pkts(leg: int, tables: Tables) -> float:
    import polars as pl

    states = pl.DataFrame(tables["instruments"]).filter(pl.col("leg") == leg).drop_nulls("cwnd_bytes").sort("t_ns")
    windows, weights = states["cwnd_bytes"].to_numpy()[:-1] / MSS_BYTES, np.diff(states["t_ns"].to_numpy())
    order = np.argsort(windows)
    share = np.cumsum(weights[order]) / weights.sum()
    return float(windows[order][np.searchsorted(share, 0.9)])


def windows_of_long_connection(lab: Lab) -> dict[str, float]:
    """Return these windows of each variant and direction, with a cache that limits nothing, as means of the runs."""
    found = {}
    for variant in VARIANTS:
        for scenario, measure in ((OUT, window_from_truck_pkts), (BACK, window_to_truck_pkts)):
            each = with_cache(cell(variant, TRUCK, HIGH, GREEDY, scenario), CACHES[-1])
            found[f"{_NAMES[variant]}, {_WAYS[scenario]}"] = float(lab.measure(each, measure).mean())
    return found


def halvings(tables: Tables) -> float:
    """Fast recoveries and timeouts of the last connection."""
    states = _last_leg(tables)
    return float(states["recoveries"].to_numpy()[-1] + states["rtos"].to_numpy()[-1])


def growth_pkts_per_s(tables: Tables) -> float:
    """Growth of the congestion window of the last connection in congestion avoidance, in packets per second.

    It counts the intervals between two states at and above ssthresh in which the window did not fall.
    """
    states = _last_leg(tables)
    time, window = states["t_ns"].to_numpy() / 1e9, states["cwnd_bytes"].to_numpy() / MSS_BYTES
    threshold = states["ssthresh_bytes"].fill_null(2**62).to_numpy() / MSS_BYTES
    grown, spent = np.diff(window), np.diff(time)
    counted = (window[:-1] >= threshold[:-1]) & (grown >= 0)
    return float(grown[counted].sum() / spent[counted].sum())


def min_rtt_ms(leg: int, tables: Tables) -> float:
    """Minimum round-trip time in ms of the connection number `leg`."""
    import polars as pl

    states = pl.DataFrame(tables["instruments"])
    return float(states.filter(pl.col("leg") == leg)["min_rtt_ns"].drop_nulls().to_numpy().min()) / 1e6


def first_loop_ms(tables: Tables) -> float:
    """Minimum round-trip time in ms of the connection T-S of a flow with proxies at T and S."""
    return min_rtt_ms(1, tables)


def second_loop_ms(tables: Tables) -> float:
    """Minimum round-trip time in ms of the connection S-G of a flow with proxies at T and S."""
    return min_rtt_ms(2, tables)

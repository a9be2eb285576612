"""The figures of Palazzi et al. 2005 with the paper's axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

from hindflight.replay.papers.haps_split.cells import (
    BACK,
    DOUBLE,
    GREEDY,
    HIGH,
    NEWRENO,
    NONE,
    OUT,
    PERS,
    TRANSFER,
    TRUCK,
    VARIANTS,
    cell,
    describe,
    goodput_kbps,
    last_window,
    time_s,
)
from hindflight.replay.papers.haps_split.judges import sweep
from hindflight.replay.papers.lab import Lab, Rows, mean_point
from hindflight.replay.papers.model import Change, Figure, Point

WINDOW_POINTS = 400


def _over_per(scenario: str, traffic: tuple[Change, ...], metric: Callable[[Rows], float], lab: Lab) -> list[Point]:
    points = []
    for variant, proxy, per in product(VARIANTS, (NONE, TRUCK), PERS):
        each = cell(variant, proxy, per, traffic, scenario)
        points.append(mean_point(describe(each), 100 * per, lab.sample(each, metric)))
    return points


def _windows(lab: Lab) -> list[Point]:
    points = []
    for proxy in (NONE, TRUCK, DOUBLE):
        each = cell(NEWRENO, proxy, HIGH)
        times, windows = last_window(lab.recorded(each))
        step = max(1, len(times) // WINDOW_POINTS)
        points += [Point(describe(each), t, w) for t, w in list(zip(times, windows, strict=True))[::step]]
    return points


def _placements(lab: Lab) -> list[Point]:
    points = []
    for variant, proxy in product(VARIANTS, (NONE, TRUCK, DOUBLE)):
        each = cell(variant, proxy, HIGH, TRANSFER)
        names = describe(each).split(", ")
        points.append(mean_point(names[0], None, lab.sample(each, time_s), label=names[1]))
    return points


def _over_cache(scenario: str, lab: Lab) -> list[Point]:
    points = []
    for variant in VARIANTS:
        caches, goodputs = sweep(lab, variant, scenario)
        name = describe(cell(variant, TRUCK, HIGH, GREEDY, scenario))
        points += [mean_point(name, cache, values) for cache, values in zip(caches, goodputs, strict=True)]
        plain = cell(variant, NONE, HIGH, GREEDY, scenario)
        flat = lab.sample(plain, goodput_kbps)
        points += [mean_point(describe(plain), cache, flat) for cache in (caches[0], caches[-1])]
    return points


_PER, _TIME, _KBPS = "PER on W-U [%]", "Time for 5 MB [s]", "Goodput [kbit/s]"
FIGURES = (
    Figure(
        "fig4", "Figure 4: time for 5 MB from W to G", _PER, _TIME, "line", partial(_over_per, OUT, TRANSFER, time_s)
    ),
    Figure(
        "fig5",
        "Figure 5: goodput from W to G over 230 s",
        _PER,
        _KBPS,
        "line",
        partial(_over_per, OUT, GREEDY, goodput_kbps),
    ),
    Figure(
        "fig6", "Figure 6: time for 5 MB from G to W", _PER, _TIME, "line", partial(_over_per, BACK, TRANSFER, time_s)
    ),
    Figure(
        "fig7",
        "Figure 7: goodput from G to W over 230 s",
        _PER,
        _KBPS,
        "line",
        partial(_over_per, BACK, GREEDY, goodput_kbps),
    ),
    Figure("fig8", "Figure 8: congestion window of the last connection", "Time [s]", "Window [pkts]", "step", _windows),
    Figure("fig9", "Figure 9: time for 5 MB from W to G by proxies", "", _TIME, "bar", _placements),
    Figure(
        "fig10",
        "Figure 10: goodput over the cache at T, W to G",
        "Cache [pkts]",
        _KBPS,
        "line",
        partial(_over_cache, OUT),
    ),
    Figure(
        "fig11",
        "Figure 11: goodput over the cache at T, G to W",
        "Cache [pkts]",
        _KBPS,
        "line",
        partial(_over_cache, BACK),
    ),
)

"""Goodput, and the two readings of "window quartiles per leg within 10 % in 80 % of runs", of the engine and of Linux.

One reading counts each quartile of each leg by itself over all runs, as `python -m validation captures` does. The
strict one counts the runs in which every quartile of both legs holds. Both are taken of Linux too: the pairs of
recordings of one run that differ by no more than the same bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from validation.judge import Check, Verdict
from validation.relay.judge import GOODPUT_SHARE, QUANTILE_SHARE, QUARTILES, SHARES, RelayResult

RUNS_SHARE = 0.80
"""Share of the runs in which quartiles have to hold; goodput has to hold in all."""
EVERY = "every quartile of both legs"


@dataclass(frozen=True, slots=True)
class Reading:
    """`held` runs have all that is counted within `bound` of Linux, `with_spread` within that or its own spread,
    `by_median` if the median of several replays counts. Of `pairs` of recordings of one run `alike` are as close to
    each other.
    """

    counted: str
    bound: float
    runs: int
    wanted: int
    held: int
    with_spread: int
    by_median: int
    alike: int
    pairs: int

    @property
    def verdict(self) -> Verdict:
        """Whether enough runs hold."""
        return self.check.verdict

    @property
    def check(self) -> Check:
        """Return it as a check; more runs than wanted are no miss."""
        metric = f"runs with {self.counted} within {100 * self.bound:.0f} %"
        text = f"relay: {self.held} of {self.runs} {metric}; {self.wanted} are wanted."
        return Check("relay", metric, min(self.held, self.wanted), self.wanted, 0, "", text)

    @property
    def row(self) -> dict[str, Any]:
        """Return it as texts by column."""
        return {
            "counted": f"{self.counted} within {100 * self.bound:.0f} %",
            "runs": _share(self.held, self.runs),
            "wanted": self.wanted,
            "verdict": self.verdict,
            "or within Linux's spread": _share(self.with_spread, self.runs),
            "median of replays": _share(self.by_median, self.runs),
            "Linux against itself, pairs": _share(self.alike, self.pairs),
        }


def readings(results: Sequence[RelayResult]) -> list[Reading]:
    """Return goodput, each quartile of each leg, and every quartile of both."""
    enough = math.ceil(RUNS_SHARE * len(results))
    return [
        _reading(results, "goodput", ("goodput",), GOODPUT_SHARE, len(results)),
        *(_reading(results, _in_words(metric), (metric,), QUANTILE_SHARE, enough) for metric in QUARTILES),
        _reading(results, EVERY, QUARTILES, QUANTILE_SHARE, enough),
    ]


def _reading(
    results: Sequence[RelayResult], counted: str, metrics: Sequence[str], bound: float, wanted: int
) -> Reading:
    shares = {metric: SHARES[metric] for metric in metrics}
    pairs = [spread.agreement(shares) for spread in {id(one.spread): one.spread for one in results}.values()]
    return Reading(
        counted,
        bound,
        len(results),
        wanted,
        sum(one.holds(metrics) for one in results),
        sum(one.holds_with_spread(metrics) for one in results),
        sum(one.medians_hold(metrics) for one in results),
        sum(alike for alike, _ in pairs),
        sum(made for _, made in pairs),
    )


def _in_words(metric: str) -> str:
    leg, _, quartile = metric.removeprefix("leg").split("_")
    return f"leg {leg}: {quartile.removeprefix('p')}th percentile"


def _share(held: int, of: int) -> str:
    return f"{held} of {of} ({100 * held / of:.0f} %)" if of else "-"

"""How goodput and delay of each compared variant vary together over the seeds, as rows of `findings`.

Reads the `runs` table; does not depend on the engine. With these rows a chart draws, for each variant, the ellipse of
one standard deviation around the means, as Pantheon does (Yan et al., USENIX ATC 2018).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import correlation, fmean, stdev
from typing import Any

from hindflight.replay.experiment.compare import MIN_SEEDS, Interval, finding, mean_interval

Sample = tuple[float, float]
"""Goodput [bit/s] and 95th percentile of the one-way delay of data [ns] of a run."""


def spread_findings(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return `one_way_delay_p95` (ns), the mean over the seeds, for each variant and proxy of section `what_if`.

    With at least MIN_SEEDS runs that vary in both, also `goodput_mean` and `goodput_sd` (bit/s),
    `one_way_delay_p95_sd` (ns) and `correlation` (between both, −1 to 1), over the seeds. Runs whose connection was
    reset, or in which no data arrived, are left out.
    """
    samples: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for run in runs:
        compared = run["purpose"] == "what_if" and run["role"] == "under_test" and run["channel_mode"] != "replayed"
        delay = run["one_way_delay_p95_ns"]
        if compared and run["reset_ns"] is None and delay is not None:
            samples[run["variant"], run["proxy"]].append((float(run["goodput_bps"]), float(delay)))
    rows = []
    for key, found in samples.items():
        goodputs, delays = [goodput for goodput, _ in found], [delay for _, delay in found]
        rows.append(finding(key, "one_way_delay_p95", "ns", mean_interval(delays)))
        if len(found) >= MIN_SEEDS and len(set(goodputs)) > 1 and len(set(delays)) > 1:
            rows.append(finding(key, "goodput_mean", "bit/s", Interval(fmean(goodputs), None, None)))
            rows.append(finding(key, "goodput_sd", "bit/s", Interval(stdev(goodputs), None, None)))
            rows.append(finding(key, "one_way_delay_p95_sd", "ns", Interval(stdev(delays), None, None)))
            rows.append(finding(key, "correlation", "", Interval(correlation(goodputs, delays), None, None)))
    return rows

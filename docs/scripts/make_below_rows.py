"""Prints the table of docs/proxies.md, "Gateways that protect links": splitting, ARQ and a code for TCP and datagrams.

`python -m docs.scripts.make_below_rows` takes a minute. The scenario is docs/scenarios/below-or-split.toml; for the
rows without TCP its flow sends one packet.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from hindflight.replay.catalogue import catalogue
from hindflight.replay.experiment.engine_inputs import plan_comparison
from hindflight.replay.experiment.run import run_jobs
from hindflight.replay.experiment.traffic import LOSSES
from hindflight.replay.scenario.model import parse_scenario

SCENARIO = Path(__file__).resolve().parents[1] / "scenarios" / "below-or-split.toml"
ENDS = ("p50", "p95", "p99", "max")
KNOWN = tuple(variant.name for variant in catalogue())


def rows(file: dict[str, Any], bulk: bool) -> Iterator[str]:
    """Yield a row for each chain: goodput of the flow, delays and losses of the datagrams, means over the seeds."""
    size = "greedy" if bulk else "1460 B"
    changed = {**file, "flow": {**file["flow"], "size": size}, "keep": {"series": "none"}}
    scenario = parse_scenario(changed, SCENARIO.name, KNOWN)
    jobs = dict(enumerate(plan_comparison(scenario, scenario.compare.variants), 1))
    runs = run_jobs(scenario, jobs, {})["runs"].to_pylist()
    for chain in scenario.compare.proxies:
        mine = [run for run in runs if run["proxy"] == chain]
        tcp = [run for run in mine if run["role"] == "under_test"]
        voice = [run for run in mine if run["variant"] == "udp"]
        delays = " | ".join(f"{fmean(run[f'app_delay_{end}_ns'] for run in voice) / 1e6:.0f}" for end in ENDS)
        lost = fmean(100 * sum(run[cause] for cause in LOSSES) / run["segments_out"] for run in voice)
        goodput = f"{fmean(run['goodput_bps'] for run in tcp) / 1e3:.0f}" if bulk else "no flow"
        yield f"| `{chain}` | {goodput} | {delays} | {lost:.2f} |"


def main() -> None:
    """Print the rows with a TCP flow, then those without one."""
    file = tomllib.loads(SCENARIO.read_text(encoding="utf-8"))
    print(
        "| proxies | TCP, kbit/s | UDP delay p50, ms | p95 | p99 | max | UDP lost, % |\n|---|---|---|---|---|---|---|"
    )
    for bulk in (True, False):
        for row in rows(file, bulk):
            print(row, flush=True)


if __name__ == "__main__":
    main()

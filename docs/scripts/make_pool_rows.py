"""Prints the table of docs/proxies.md, "Shared memory and its knee": the cache that 1, 2, 5 and 20 connections need.

`python -m docs.scripts.make_pool_rows` takes some minutes. The connections of docs/scenarios/onboard.toml share the
cache of the satellite, or have one each.
"""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

from hindflight.replay.catalogue import catalogue
from hindflight.replay.experiment.engine_inputs import plan_comparison
from hindflight.replay.experiment.place import KNEE_SHARE
from hindflight.replay.experiment.run import run_jobs
from hindflight.replay.scenario.model import parse_scenario

SCENARIO = Path(__file__).resolve().parents[1] / "scenarios" / "onboard.toml"
CONNECTIONS = (1, 2, 5, 20)
PAPER_PKTS = 63
PARTS = 4
SEEDS = 10
KNOWN = tuple(variant.name for variant in catalogue())


def with_small_packets(file: dict[str, Any]) -> dict[str, Any]:
    """Return the scenario with packets of a quarter of the octets, and queues for four times as many."""
    file = copy.deepcopy(file)
    file["flow"]["mss"] = f"{1460 // PARTS} B"
    for link in file["links"]:
        link["queue"] = f"{50 * PARTS} pkts"
    return file


def changed(file: dict[str, Any], connections: int, ber: float, pkts: int) -> dict[str, Any]:
    """Return the scenario with so many connections that share a cache of `pkts` packets."""
    file = copy.deepcopy(file)
    for link in file["links"]:
        link["loss"] = {"model": "ber", "ber": ber} if ber else {"model": "none"}
    (proxy,) = file["proxy"]
    proxy.update(receive_buffer=f"{pkts} pkts", pool="shared")
    flow = {**file["flow"], "variant": file["compare"]["variants"][0], "proxies": [proxy["name"]]}
    file["flows"] = [{**flow, "name": f"flow-{n}"} for n in range(2, connections + 1)]
    file["compare"].update(proxies=[proxy["name"]], seeds=SEEDS)
    file["keep"] = {"series": "none"}
    return file


def goodput_kbps(file: dict[str, Any], connections: int, ber: float, pkts: int) -> float:
    """Return the goodput of all connections together, mean over the seeds."""
    scenario = parse_scenario(changed(file, connections, ber, pkts), SCENARIO.name, KNOWN)
    jobs = dict(enumerate(plan_comparison(scenario, scenario.compare.variants), 1))
    runs = run_jobs(scenario, jobs, {})["runs"]["goodput_bps"].to_pylist()
    return float(sum(runs)) / SEEDS / 1e3


def knee(file: dict[str, Any], connections: int, ber: float, max_pkts: int = 4 * PAPER_PKTS) -> tuple[int, float]:
    """Return the smallest cache (packets) with KNEE_SHARE of the goodput at four times the paper's, and the latter."""
    best = goodput_kbps(file, connections, ber, max_pkts)
    low, high = connections - 1, max_pkts
    while high - low > max(1, high // 30):
        middle = (low + high) // 2
        enough = goodput_kbps(file, connections, ber, middle) >= KNEE_SHARE * best
        low, high = (low, middle) if enough else (middle, high)
    return high, best


def main() -> None:
    """Print a row for each bit error rate and number of connections."""
    file = tomllib.loads(SCENARIO.read_text(encoding="utf-8"))
    print("| bit error rate | connections | knee, pkts | goodput of all at 252 pkts, kbit/s |\n|---|---|---|---|")
    for ber in (0.0, 1e-7, 1e-6):
        for connections in CONNECTIONS:
            pkts, best = knee(file, connections, ber)
            print(f"| {ber:g} | {connections} | {pkts} | {best:.0f} |", flush=True)
    small = with_small_packets(file)
    for connections in CONNECTIONS:
        pkts, best = knee(small, connections, 0.0, 4 * PAPER_PKTS * PARTS)
        print(f"| 0, packets of a quarter | {connections} | {pkts / PARTS:.0f} | {best:.0f} |", flush=True)


if __name__ == "__main__":
    main()

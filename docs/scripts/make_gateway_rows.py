"""Prints the table of docs/proxies.md, "AeroTCP": utilisation of the satellite link of docs/scenarios/gateways.toml.

`python -m docs.scripts.make_gateway_rows` takes some minutes. Gateways with AeroTCP, with SACK and without any meet the
same channel at each seed.
"""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

from hindflight.replay.catalogue import catalogue
from hindflight.replay.experiment.compare import mean_interval
from hindflight.replay.experiment.engine_inputs import plan_comparison
from hindflight.replay.experiment.run import run_jobs
from hindflight.replay.scenario.model import parse_scenario

SCENARIO = Path(__file__).resolve().parents[1] / "scenarios" / "gateways.toml"
SATELLITE_BPS = 4e6
ERROR_RATES = (0.0, 1e-8, 1e-7, 1e-6, 1e-5)
SCHEMES = ("AeroTCP", "split SACK", "SACK end to end")
CHAIN = "ground-gateway+aircraft-gateway"


def changed(file: dict[str, Any], scheme: str, ber: float) -> dict[str, Any]:
    """Return the scenario with another bit error rate and other gateways, or none."""
    file = copy.deepcopy(file)
    file["keep"] = {"series": "none"}
    satellite = next(link for link in file["links"] if link["name"] == "satellite")
    satellite["loss"] = {"model": "ber", "ber": ber} if ber else {"model": "none"}
    if scheme == "split SACK":
        for proxy in file["proxy"]:
            proxy["variant"] = "sack"
    elif scheme == "SACK end to end":
        del file["proxy"]
        file["compare"]["proxies"] = ["none"]
        for flow in file["flows"]:
            del flow["proxies"]
    return file


def outcomes(file: dict[str, Any], scheme: str, ber: float) -> tuple[list[float], list[float]]:
    """Return the utilisation and the mean response time (s) of the downloads, one of each per seed.

    Utilisation is the octets of all downloads over what the satellite link carries until the last one is complete.
    """
    known = tuple(variant.name for variant in catalogue())
    scenario = parse_scenario(changed(file, scheme, ber), SCENARIO.name, known)
    jobs = dict(enumerate(plan_comparison(scenario, ("sack",)), 1))
    by_seed: dict[int, list[dict[str, Any]]] = {}
    for run in run_jobs(scenario, jobs, {})["runs"].to_pylist():
        by_seed.setdefault(run["seed"], []).append(run)
    utilisation, response = [], []
    for runs in by_seed.values():
        seconds = [run["duration_ns"] / 1e9 for run in runs]
        octets = sum(run["delivered_bytes"] for run in runs)
        utilisation.append(octets * 8 / SATELLITE_BPS / max(seconds))
        response.append(sum(seconds) / len(seconds))
    return utilisation, response


def main() -> None:
    """Print a row for each bit error rate and scheme."""
    file = tomllib.loads(SCENARIO.read_text(encoding="utf-8"))
    print("| bit error rate | gateways | utilisation | response time, s |\n|---|---|---|---|")
    for ber in ERROR_RATES:
        for scheme in SCHEMES:
            used, waited = (mean_interval(each) for each in outcomes(file, scheme, ber))
            shown = (
                f"{used.mean:.3f} ({used.low:.3f} to {used.high:.3f})" if used.low is not None else f"{used.mean:.3f}"
            )
            print(f"| {ber:g} | {scheme} | {shown} | {waited.mean:.1f} |", flush=True)


if __name__ == "__main__":
    main()

"""What each fault of a proxy cost, as rows of `findings`: the octets that it had acknowledged and that were lost.

Reads the scenario, rows of `runs` and the table `instruments`; runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.schema import run_subject

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.replay.scenario.model import Scenario

Run = Mapping[str, Any]


def fault_rows(scenario: Scenario, runs: Sequence[Run], instruments: pa.Table) -> list[dict[str, Any]]:
    """Return rows of the section `proxy_faults`: one subject per what-if choice and fault; [] without a fault.

    `runs` count what a whole run lost, its maximum over the seeds is given. With several faults in a run, the part of
    each is between nothing and what its proxy had acknowledged and not seen acknowledged onward at that time.
    """
    faults = {proxy.name: proxy.faults for proxy in scenario.proxy if proxy.faults}
    mine = [run for run in runs if run["purpose"] == "what_if" and run["role"] == "under_test"]
    rows: list[dict[str, Any]] = []
    for variant, chain in dict.fromkeys((run["variant"], run["proxy"]) for run in mine):
        chosen = [run for run in mine if (run["variant"], run["proxy"]) == (variant, chain)]
        legs = [proxy.name for proxy in scenario.proxies_of().chain(chain) if proxy.begins_leg]
        happened = [(leg, name, fault) for leg, name in enumerate(legs, 1) for fault in faults.get(name, ())]
        for leg, name, fault in sorted(happened, key=lambda one: one[2].at):
            subject = f"{run_subject(variant, chain)}: {fault.kind} of {name} at {fault.at / 1e9:g} s"
            pending = _pending_bytes(instruments, chosen, leg, fault.at)
            rows.append(_row(subject, "acknowledged_not_yet_onward_bytes", pending))
            for metric, column in (("lost_bytes", "proxy_lost_bytes"), ("damaged_bytes", "proxy_corrupted_bytes")):
                total = max((float(run[column] or 0) for run in chosen), default=0.0)
                if len(happened) == 1 or not total:
                    rows.append(_row(subject, metric, total))
                else:
                    most = total if pending is None else min(total, pending)
                    rows.append({**_row(subject, metric, None), "low": 0.0, "high": most, "verdict": "info"})
    return rows


def _pending_bytes(instruments: pa.Table, runs: Sequence[Run], leg: int, at_ns: int) -> float | None:
    """Return the octets that a proxy had acknowledged and not seen acknowledged onward just before a time, at most over
    the runs that recorded them; None if none did."""
    import pyarrow.compute as pc

    found = []
    known = instruments.filter(pc.is_valid(instruments["proxy_undelivered_bytes"]))
    known = known.filter(pc.and_(pc.equal(known["leg"], leg), pc.less_equal(known["t_ns"], at_ns)))
    for run in runs:
        of_flow = pc.and_(pc.equal(known["run_id"], run["run_id"]), pc.equal(known["flow_id"], run["flow_id"]))
        rows = known.filter(of_flow)
        if not rows.num_rows:
            continue
        latest = rows.filter(pc.equal(rows["t_ns"], pc.max(rows["t_ns"])))
        found.append(float(latest["proxy_undelivered_bytes"][-1].as_py()))
    return max(found, default=None)


def _row(subject: str, metric: str, octets: float | None) -> dict[str, Any]:
    known = octets is not None
    return {
        "section": "proxy_faults", "subject": subject, "metric": metric, "value": octets, "low": None, "high": None,
        "unit": "bytes", "verdict": "info" if known else "unknown", "text": "",
    }  # fmt: skip

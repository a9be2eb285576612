"""How much goodput varies by chance over the true link, which even a prediction that knows the link must allow for.

Each flight is the engine's over the link as configured: losses of data random, from its loss model; the emulator's
delays rotated; lost ACKs, and the times at which the application wrote, as recorded. Depends on the recorded run and
the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from hindflight.replay.experiment.run import FLOW_UNDER_TEST, Configuration, run_configurations
from validation.captures.report import runs_by_link
from validation.measured import engine_goodput_bps
from validation.rebuild import as_it_was_timed, late_as_at_another_time, rebuild
from validation.recorded import KernelRun, read_run

FLIGHTS = 39
"""The next flight lies between the outermost of so many with a probability of 1 - 2 / 40 = 95 %."""


@dataclass(frozen=True, slots=True)
class Flights:
    """Goodput of the first flow of a run in bit/s: of each flight of the engine, and as recorded."""

    run: str
    goodput_bps: Sequence[float]
    recorded_bps: float

    @property
    def width(self) -> float:
        """The range of the flights relative to their median."""
        middle = median(self.goodput_bps)
        return (max(self.goodput_bps) - min(self.goodput_bps)) / middle if middle else 0.0

    @property
    def holds(self) -> bool:
        """Whether the range holds what was recorded."""
        return min(self.goodput_bps) <= self.recorded_bps <= max(self.goodput_bps)


def fly_all(folder: Path, on_done: Callable[[int, int], None], first: int | None = None) -> list[Flights]:
    """Return the flights of each run in `folder`, with `first` of so many links; disturbed recordings left out."""
    runs = [path for runs in runs_by_link(folder, first).values() for path in runs.values()]
    flown = []
    for number, path in enumerate(runs, 1):
        flown.append(_fly(read_run(path)))
        on_done(number, len(runs))
    return flown


def _fly(run: KernelRun) -> Flights:
    import pyarrow.compute as pc

    flow = run.flows[0]
    rebuilt = _with_random_losses(rebuild(run, flow.end_ns), run.params)
    jobs = [
        Configuration(as_it_was_timed(rebuilt, late_as_at_another_time(run, flight)), seed=flight, recorded=False)
        for flight in range(1, 1 + FLIGHTS)
    ]
    runs = run_configurations(jobs)["runs"]
    octets = runs.filter(pc.equal(runs["flow_id"], FLOW_UNDER_TEST))["delivered_bytes"].to_pylist()
    return Flights(run.name, [engine_goodput_bps(flow, one) for one in octets], flow.goodput_bps)


def _with_random_losses(configuration: dict[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return `configuration` without what chance decided in the recording: lost data and parameters of the variants."""
    (link,) = configuration["path"]["links"]
    forward = {**link["forward"], "loss": random_losses(params.get("loss", "none"))}
    flows = [{key: value for key, value in flow.items() if key != "params"} for flow in configuration["flows"]]
    path = {**configuration["path"], "links": [{**link, "forward": forward}]}
    return {**configuration, "path": path, "flows": flows}


def random_losses(model: str) -> dict[str, Any]:
    """Return the loss model of a link as the recorder describes it: `none`, `bern:P` or `ge:p,r,h,k`."""
    kind, _, numbers = model.partition(":")
    match kind:
        case "none":
            return {"kind": "none"}
        case "bern":
            return {"kind": "bernoulli", "per": float(numbers)}
        case "ge":
            return {"kind": "gilbert_elliott", **dict(zip("prhk", map(float, numbers.split(",")), strict=True))}
        case _:
            raise ValueError(f"the loss of a recording has an unknown model {model!r}")

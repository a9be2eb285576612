"""The recorded runs of a relay compared with the engine's proxy of profile linux; the bounds are here.

Bounds: goodput of the whole path within 2 %, the quartiles of the window of each leg over time within 10 %. In how many
runs they have to hold is the matter of `readings`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.replay.experiment.run import Configuration, run_configurations
from validation.judge import Check, failures, within_share
from validation.measured import QUANTILES, held_quantiles, measure_kernel
from validation.rebuild import REPLAYS, as_it_was_timed, late_as_at_another_time
from validation.recorded import KernelFlow, KernelRun
from validation.relay.rebuild import rebuild_relay
from validation.relay.recorded import RelayRun, find_relay_runs, held_bytes, read_relay_run
from validation.relay.spread import Numbers, Spread, recorded_again, same_run

if TYPE_CHECKING:
    import pyarrow as pa

GOODPUT_SHARE = 0.02
QUANTILE_SHARE = 0.10
QUARTILES = tuple(f"leg{leg}_cwnd_p{100 * q:.0f}" for leg in range(2) for q in QUANTILES)
"""Metrics of the windows, in the order of legs and quantiles."""
SHARES = {"goodput": GOODPUT_SHARE, **dict.fromkeys(QUARTILES, QUANTILE_SHARE)}
"""How far each number may be off, by metric."""
LIMITED_SHARE = 0.25
"""Share of the time from which the relay's window counts as what limits a sender."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one side made of a run: goodput, quartiles of the window per leg in packets, mean octets that the relay
    held."""

    goodput_bps: float
    windows_pkts: tuple[tuple[float, ...], tuple[float, ...]]
    held_mean_bytes: float

    @property
    def numbers(self) -> dict[str, float]:
        """What is judged, by metric."""
        first, onward = self.windows_pkts
        return {"goodput": self.goodput_bps, **dict(zip(QUARTILES, (*first, *onward), strict=True))}


@dataclass(frozen=True, slots=True)
class RelayResult:
    """One run: both sides, the checks, and the engine with each packet as late as the emulator was (`timed`).

    `late_ns` are the median and the 99th percentile of that lateness, `limited_share` the share of the time in which
    the relay's window limited the recorded sender, as its kernel counts (`rwnd_limited`); `spread` is that of all
    recordings of this run. `medians` are the medians over several replays, each with the emulator's lateness: one as
    recorded (`timed`), the others rotated by a random offset.
    """

    name: str
    variants: tuple[str, str]
    kernel: Side
    engine: Side
    timed: Side
    medians: Numbers
    late_ns: tuple[float, float]
    limited_share: float
    checks: tuple[Check, ...]
    spread: Spread

    @property
    def timed_holds(self) -> bool:
        """Whether all quartiles of both legs hold with the delays of the recording."""
        timed = _checks(self.name, self.kernel, self.timed)
        return all(check.verdict == "pass" for check in timed if check.metric in QUARTILES)

    def holds(self, metrics: Collection[str]) -> bool:
        """Whether each of these numbers holds its bound."""
        return all(check.verdict == "pass" for check in self.checks if check.metric in metrics)

    def medians_hold(self, metrics: Collection[str]) -> bool:
        """Whether the median of the replays holds the bound of each of these numbers."""
        judged = [check for check in self.checks if check.metric in metrics]
        return all(abs(self.medians[check.metric] - check.reference) <= check.allowed for check in judged)

    def holds_with_spread(self, metrics: Collection[str]) -> bool:
        """Whether each of these numbers holds its bound or lies within the spread of Linux."""
        judged = [check for check in self.checks if check.metric in metrics]
        return all(check.verdict == "pass" or self.spread.holds(check) for check in judged)


def validate_relay(
    folder: Path, *, on_done: Callable[[int, int], None] = lambda _done, _all: None
) -> list[RelayResult]:
    """Compare every run under `folder`; LogError if there is none."""
    runs = [read_relay_run(path) for path in find_relay_runs(folder)]
    recordings: dict[str, list[Numbers]] = defaultdict(list)
    for run in (*runs, *recorded_again(folder)):
        recordings[same_run(run)].append(_kernel(run).numbers)
    spreads = {key: Spread(tuple(found)) for key, found in recordings.items()}
    results = []
    for done, run in enumerate(runs, 1):
        results.append(compare(run, spreads[same_run(run)]))
        on_done(done, len(runs))
    return results


def compare(run: RelayRun, spread: Spread) -> RelayResult:
    """Compare one run."""
    configuration = rebuild_relay(run)
    kernel, engine = _kernel(run), _engine(run, configuration)
    checks = _checks(run.name, kernel, engine)
    timed = [_engine(run, as_it_was_timed(configuration, *_legs_late(run, draw))) for draw in range(REPLAYS)]
    late = np.concatenate([way for leg in run.legs for way in leg.late_ns])
    variants = run.flows[0].variant, run.flows[1].variant
    return RelayResult(
        run.name,
        variants,
        kernel,
        engine,
        timed[0],
        {metric: median(side.numbers[metric] for side in timed) for metric in SHARES},
        (float(np.median(late)), float(np.quantile(late, 0.99))),
        _limited_share(run.flows[0]),
        checks,
        spread,
    )


def _legs_late(run: RelayRun, draw: int) -> list[KernelRun]:
    """Return the legs with the emulator's delays as recorded, for draw 0, or each leg's rotated by a random offset."""
    return [late_as_at_another_time(leg, draw and len(run.legs) * draw + at) for at, leg in enumerate(run.legs)]


def explain(result: RelayResult) -> str:
    """Say by rule why a run fails: the first rule that covers every failed check; "" where none fails.

    The rules need both sides' numbers alone: a difference of one packet, which below ten is more than the bound; the
    emulator's lateness, where the engine holds once it has that; Linux's own spread over recordings of this run; and a
    sender that the relay's window limits: its congestion window stays where it stood when the receive buffer had
    filled, and sawtooth and buffer meet by chance.
    """
    failed = failures(result.checks)
    if not failed:
        return ""
    windows = [check for check in failed if check.metric != "goodput"]
    if len(windows) == len(failed) and all(abs((check.value or 0) - check.reference) <= 1 for check in windows):
        return "one packet"
    if not failures(_checks(result.name, result.kernel, result.timed)):
        return "lateness"
    if all(result.spread.holds(check) for check in failed):
        return "Linux's spread"
    if all(check.metric.startswith("leg0") for check in failed) and result.limited_share >= LIMITED_SHARE:
        return f"window limits {100 * result.limited_share:.0f} %"
    return "not explained"


def _checks(name: str, kernel: Side, engine: Side) -> tuple[Check, ...]:
    own, reference = engine.numbers, kernel.numbers
    return tuple(
        within_share(name, metric, own[metric], reference[metric], share, "bit/s" if metric == "goodput" else "packets")
        for metric, share in SHARES.items()
    )


def _kernel(run: RelayRun) -> Side:
    quantiles = [measure_kernel(flow).cwnd_quantiles or () for flow in run.flows]
    t_ns, held = held_bytes(run.flows[1])
    first = run.flows[0]
    return Side(
        first.goodput_bps, (quantiles[0], quantiles[1]), _held_mean(t_ns, held, run.flows[1].start_ns, first.end_ns)
    )


def _engine(run: RelayRun, configuration: dict[str, Any]) -> Side:
    tables = run_configurations([Configuration(configuration, seed=1, recorded=True)], threads=1)
    first, onward = run.flows
    delivered = tables["runs"]["delivered_bytes"][0].as_py()
    windows = [_window_quantiles(tables, leg, flow) for leg, flow in enumerate(run.flows)]
    states = _states(tables, 1)
    held = states["proxy_undelivered_bytes"].to_numpy()
    return Side(
        delivered * 8e9 / (first.end_ns - first.start_ns),
        (windows[0], windows[1]),
        _held_mean(states["t_ns"].to_numpy(), held, onward.start_ns, first.end_ns),
    )


def _window_quantiles(tables: Mapping[str, pa.Table], leg: int, flow: KernelFlow) -> tuple[float, ...]:
    states = _states(tables, leg)
    window = states["cwnd_bytes"].to_numpy() / flow.smss_bytes
    return held_quantiles(states["t_ns"].to_numpy(), window, flow.start_ns, flow.end_ns)


def _states(tables: Mapping[str, pa.Table], leg: int) -> pa.Table:
    import pyarrow.compute as pc

    states = tables["instruments"]
    own = pc.and_(pc.equal(states["leg"], leg), pc.equal(states["source"].cast("string"), "replay"))
    return states.filter(own)


def _limited_share(flow: KernelFlow) -> float:
    info = flow.tcp_info
    return 0.0 if info is None else float(info["rwnd_limited"][-1]) * 1e3 / (flow.end_ns - flow.start_ns)


def _held_mean(t_ns: Any, held: Any, start_ns: int, end_ns: int) -> float:
    """Mean over time of a value that holds from each time to the next."""
    edges = np.clip(np.append(t_ns, end_ns), start_ns, end_ns)
    return float(np.sum(np.diff(edges) * held) / (end_ns - start_ns))

"""Every recorded run of the Linux stack compared with the engine's run over the same link.

Rebuilds, runs, measures and judges; the bounds are here. A run that cannot be compared says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from hindflight.replay.controllers.base import variant_names
from hindflight.replay.experiment.run import Configuration, run_configurations
from validation.divergence import Divergence, divergences
from validation.judge import Check, not_made, within_share
from validation.measured import QUANTILES, Measured, measure_engine, measure_kernel
from validation.rebuild import as_it_was_timed, late_as_at_another_time, missing_variants, rebuild
from validation.recorded import KernelRun, find_runs, read_run

GOODPUT_SHARES = {"reno": 0.02, "cubic": 0.02, "bbr": 0.03}
RETRANSMISSIONS_SHARE = 0.10
MIN_RETRANSMISSIONS = 10
"""The larger of a share and a number."""
RTOS = 1
CWND_MEDIAN = 0.05
CWND_QUANTILE_SHARE = 0.10
JAIN = 0.02

NO_TCP_INFO = "no TCP_INFO next to this run, so the kernel's window is not known"


@dataclass(frozen=True, slots=True)
class FlowResult:
    """One flow of one run: its checks, where it parts from the kernel first, by kind, and what was measured.

    `measured` is the kernel's and the engine's; None where they could not be compared. `medians` are the
    checks of the medians over several replays, that of `checks` among them; empty where there was but one.
    """

    subject: str
    variant: str
    checks: tuple[Check, ...]
    divergences: tuple[Divergence, ...]
    measured: tuple[Measured, Measured] | None
    medians: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run: its flows, and checks that concern them together."""

    name: str
    flows: tuple[FlowResult, ...]
    shared: tuple[Check, ...]

    @property
    def checks(self) -> list[Check]:
        """All checks of the run."""
        return [check for flow in self.flows for check in flow.checks] + list(self.shared)


def validate_runs(
    folder: Path,
    *,
    replays: int = 1,
    threads: int | None = None,
    on_done: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[RunResult]:
    """Compare every run under `folder`, each with so many replays; `on_done` is called with the runs done and the runs
    in all. LogError if none."""
    found = find_runs(folder)
    results = []
    for done, path in enumerate(found, 1):
        results.append(validate_run(read_run(path), replays=replays, threads=threads))
        on_done(done, len(found))
    return results


def validate_run(run: KernelRun, *, replays: int = 1, threads: int | None = None) -> RunResult:
    """Compare one run, flow by flow; each flow up to its own end.

    The first replay has every packet as late as it was; the others have the same delays rotated by a random offset.
    What they differ by is what the recording of one run cannot tell from chance.
    """
    missing = missing_variants(run, variant_names())
    subjects = [run.name if len(run.flows) == 1 else f"{run.name} flow {i}" for i, _ in enumerate(run.flows, 1)]
    if missing:
        why = f"{', '.join(missing)}: not built yet"
        flows = [
            FlowResult(subject, flow.variant, (not_made(subject, "all", why),), (), None)
            for subject, flow in zip(subjects, run.flows, strict=True)
        ]
        return RunResult(run.name, tuple(flows), ())
    kernel = [measure_kernel(flow) for flow in run.flows]
    drawn = [measure_runs(late_as_at_another_time(run, draw), threads=threads) for draw in range(replays)]
    pairs = list(zip(kernel, drawn[0], strict=True))
    checks = [
        _checks(subject, flow.variant, *pair) for subject, flow, pair in zip(subjects, run.flows, pairs, strict=True)
    ]
    shared = _shared_checks(run.name, pairs)
    medians = [
        _median_checks(subject, flow.variant, theirs, own) if replays > 1 else ()
        for subject, flow, theirs, own in zip(subjects, run.flows, kernel, zip(*drawn, strict=True), strict=True)
    ]
    results = [
        FlowResult(subject, flow.variant, tuple(own), tuple(divergences(*pair)), pair, of_medians)
        for subject, flow, own, pair, of_medians in zip(subjects, run.flows, checks, pairs, medians, strict=True)
    ]
    return RunResult(run.name, tuple(results), tuple(shared))


def measure_runs(run: KernelRun, *, threads: int | None = None) -> list[Measured]:
    """Return what the engine makes of `run`, flow by flow, each in a configuration that ends with it.

    Equal but for their ends, these give equal runs up to there.
    """
    configurations = [as_it_was_timed(rebuild(run, flow.end_ns), run) for flow in run.flows]
    jobs = [Configuration(configuration, seed=1, recorded=True) for configuration in configurations]
    tables = run_configurations(jobs, threads=threads)
    return [measure_engine(flow, tables, number, run.since_step_ns) for number, flow in enumerate(run.flows, 1)]


def _median_checks(subject: str, variant: str, kernel: Measured, drawn: Sequence[Measured]) -> tuple[Check, ...]:
    """Check the median of each quantity over several replays."""
    goodput = median(one.goodput_bps for one in drawn)
    checks = [within_share(subject, "goodput", goodput, kernel.goodput_bps, GOODPUT_SHARES[variant], "bit/s")]
    windows = [one.cwnd_quantiles for one in drawn if one.cwnd_quantiles is not None]
    if kernel.cwnd_quantiles is not None and windows:
        medians = [median(values) for values in zip(*windows, strict=True)]
        checks += _quantile_checks(subject, medians, kernel.cwnd_quantiles)
    return tuple(checks)


def _checks(subject: str, variant: str, kernel: Measured, engine: Measured) -> list[Check]:
    allowed = max(RETRANSMISSIONS_SHARE * kernel.retransmissions, MIN_RETRANSMISSIONS)
    return [
        within_share(subject, "goodput", engine.goodput_bps, kernel.goodput_bps, GOODPUT_SHARES[variant], "bit/s"),
        Check(subject, "retransmissions", engine.retransmissions, kernel.retransmissions, allowed, ""),
        Check(subject, "rtos", engine.rtos, kernel.rtos, RTOS, ""),
        *_cwnd_checks(subject, kernel, engine),
    ]


def _cwnd_checks(subject: str, kernel: Measured, engine: Measured) -> list[Check]:
    theirs, ours = kernel.cwnd_pkts, engine.cwnd_pkts
    if theirs is None or ours is None or kernel.cwnd_quantiles is None or engine.cwnd_quantiles is None:
        return [not_made(subject, "cwnd_error", NO_TCP_INFO)]
    n = min(len(theirs), len(ours))
    error = np.abs(ours[:n] - theirs[:n]) / theirs[:n]
    median_error = float(np.nanmedian(error))
    checks = [Check(subject, "cwnd_error", 100 * median_error, 0.0, 100 * CWND_MEDIAN, "%")]
    return checks + _quantile_checks(subject, engine.cwnd_quantiles, kernel.cwnd_quantiles)


def _quantile_checks(subject: str, engine: Sequence[float], kernel: Sequence[float]) -> list[Check]:
    return [
        within_share(subject, f"cwnd_p{100 * q:.0f}", own, reference, CWND_QUANTILE_SHARE, "packets")
        for q, own, reference in zip(QUANTILES, engine, kernel, strict=True)
    ]


def _shared_checks(name: str, pairs: list[tuple[Measured, Measured]]) -> list[Check]:
    if len(pairs) < 2:
        return []
    kernel = jain_index([theirs.goodput_bps for theirs, _ in pairs])
    engine = jain_index([ours.goodput_bps for _, ours in pairs])
    return [Check(name, "jain_index", engine, kernel, JAIN, "")]


def jain_index(rates: list[float]) -> float:
    """Return Jain's fairness index of `rates`: 1 if equal, 1/n if one has all (DEC-TR-301, 1984)."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))

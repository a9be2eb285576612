"""Every recorded run of the Linux stack compared with the engine's run over the same link.

Rebuilds, runs, measures and judges; the bounds are here. A run that cannot be compared says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hindflight.replay.controllers.base import variant_names
from hindflight.replay.experiment.run import Configuration, run_configurations
from validation.divergence import Divergence, divergences
from validation.judge import Check, not_made, within_share
from validation.measured import QUANTILES, Measured, measure_engine, measure_kernel
from validation.rebuild import as_it_was_timed, missing_variants, rebuild
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

    `measured` is the kernel's and the engine's; None where they could not be compared.
    """

    subject: str
    variant: str
    checks: tuple[Check, ...]
    divergences: tuple[Divergence, ...]
    measured: tuple[Measured, Measured] | None


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
    folder: Path, *, threads: int | None = None, on_done: Callable[[int, int], None] = lambda _done, _all: None
) -> list[RunResult]:
    """Compare every run under `folder`; `on_done` is called with the runs done and the runs in all. LogError if
    none."""
    found = find_runs(folder)
    results = []
    for done, path in enumerate(found, 1):
        results.append(validate_run(read_run(path), threads=threads))
        on_done(done, len(found))
    return results


def validate_run(run: KernelRun, *, threads: int | None = None) -> RunResult:
    """Compare one run, flow by flow; each flow up to its own end."""
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
    pairs = list(zip(kernel, measure_runs(run, threads=threads), strict=True))
    checks = [
        _checks(subject, flow.variant, *pair) for subject, flow, pair in zip(subjects, run.flows, pairs, strict=True)
    ]
    shared = _shared_checks(run.name, pairs)
    results = [
        FlowResult(subject, flow.variant, tuple(own), tuple(divergences(*pair)), pair)
        for subject, flow, own, pair in zip(subjects, run.flows, checks, pairs, strict=True)
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
    median = float(np.nanmedian(error))
    checks = [Check(subject, "cwnd_error", 100 * median, 0.0, 100 * CWND_MEDIAN, "%")]
    for q, own, reference in zip(QUANTILES, engine.cwnd_quantiles, kernel.cwnd_quantiles, strict=True):
        checks.append(within_share(subject, f"cwnd_p{100 * q:.0f}", own, reference, CWND_QUANTILE_SHARE, "packets"))
    return checks


def _shared_checks(name: str, pairs: list[tuple[Measured, Measured]]) -> list[Check]:
    if len(pairs) < 2:
        return []
    kernel = jain_index([theirs.goodput_bps for theirs, _ in pairs])
    engine = jain_index([ours.goodput_bps for _, ours in pairs])
    return [Check(name, "jain_index", engine, kernel, JAIN, "")]


def jain_index(rates: list[float]) -> float:
    """Return Jain's fairness index of `rates`: 1 if equal, 1/n if one has all (DEC-TR-301, 1984)."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))

"""The results as tables: a row per flow or per closed form, a mark at every number that fails.

Depends on results, not on how they were made, nor on whether a terminal or a page shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from validation.closed_forms import IN_ROUNDS
from validation.divergence import Divergence
from validation.judge import Check, failures
from validation.linux import (
    CWND_MEDIAN,
    CWND_QUANTILE_SHARE,
    GOODPUT_SHARES,
    JAIN,
    MIN_RETRANSMISSIONS,
    RETRANSMISSIONS_SHARE,
    RTOS,
    FlowResult,
    RunResult,
)
from validation.ns2 import SHARE, Cell, pooled
from validation.open_loop import MEDIAN, OpenLoopResult
from validation.repeated import Compared, Repeated, Sample
from validation.tcp_linux import BOUND_PERCENT, SHARE_OF_ROUNDS, WindowComparison

FAIL = "fail"
"""Marks a number outside its bound."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A table: title, bounds as a sentence, and rows of texts by column."""

    title: str
    bounds: str
    rows: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Results:
    """The comparisons: runs of the Linux stack, two flows recorded repeatedly, controllers in open loop, sessions of
    ns-2, windows of its TCP/Linux, closed forms."""

    linux: Sequence[RunResult] = ()
    repeated: Repeated | None = None
    open_loop: Sequence[OpenLoopResult] = ()
    ns2: Sequence[Cell] = ()
    ns2_modules: Sequence[Cell] = ()
    tcp_linux: Sequence[WindowComparison] = ()
    closed: Sequence[Check] = ()

    @property
    def others(self) -> list[Check]:
        """The checks other than those of runs."""
        repeated = self.repeated.checks if self.repeated is not None else []
        open_loop = [flow.check for flow in self.open_loop]
        windows = [comparison.check for comparison in self.tcp_linux]
        cells = [cell.check for cell in (*self.ns2, *self.ns2_modules) if cell.judged]
        return [*repeated, *open_loop, *cells, *windows, *self.closed]

    @property
    def tables(self) -> list[Shown]:
        """One table per comparison."""
        parts = [
            linux_table(self.linux) if self.linux else None,
            repeated_table(self.repeated) if self.repeated is not None else None,
            open_loop_table(self.open_loop) if self.open_loop else None,
            ns2_table(self.ns2) if self.ns2 else None,
            ns2_modules_table(self.ns2_modules) if self.ns2_modules else None,
            tcp_linux_table(self.tcp_linux) if self.tcp_linux else None,
            closed_form_table(self.closed) if self.closed else None,
        ]
        return [part for part in parts if part is not None]


def linux_table(results: Sequence[RunResult]) -> Shown:
    """Return a row per flow, and one for what flows share."""
    rows = []
    for run in results:
        rows += [_flow_row(flow) for flow in run.flows]
        rows += [_shared_row(check) for check in run.shared]
    bounds = (
        f"Bounds: goodput within {100 * GOODPUT_SHARES['reno']:.0f} % (bbr {100 * GOODPUT_SHARES['bbr']:.0f} %), "
        f"retransmissions within the larger of {100 * RETRANSMISSIONS_SHARE:.0f} % and {MIN_RETRANSMISSIONS}, "
        f"timeouts within {RTOS}, median cwnd error {100 * CWND_MEDIAN:.0f} %, quartiles of cwnd over time within "
        f"{100 * CWND_QUANTILE_SHARE:.0f} %, Jain's index within {JAIN}."
    )
    return Shown("The profile linux and the Linux stack (engine / kernel)", bounds, rows)


def repeated_table(repeated: Repeated) -> Shown:
    """Return a row per flow, and one for what flows share."""
    bounds = (
        f"Bound: means within the larger of a single run's bound (goodput {100 * GOODPUT_SHARES['reno']:.0f} %, Jain's "
        f"index {JAIN}) and the joint 95 % interval of the two means. A single run is not conclusive: of all pairs of "
        f"recordings, {100 * repeated.pairs_within:.0f} % agree within the bounds of a single run."
    )
    title = f"Two flows at one bottleneck, repeated (mean ± standard deviation, Linux {repeated.kernel})"
    return Shown(title, bounds, [_repeated_row(row) for row in repeated.rows])


def _repeated_row(row: Compared) -> dict[str, str]:
    in_bits = row.unit == "bit/s"
    allowed = row.check.allowed
    return {
        "quantity": f"{row.subject}: {row.metric}{', kbit/s' if in_bits else ''}",
        "kernel": _spread(row.kernel, in_bits),
        "engine": _spread(row.engine, in_bits),
        "difference": f"{100 * (row.check.relative or 0.0):+.1f} %" if in_bits else f"{row.difference:+.3f}",
        "bound": f"{100 * allowed / row.kernel.mean:.1f} %" if in_bits else f"{allowed:.3f}",
        "verdict": row.check.verdict,
    }


def _spread(sample: Sample, in_bits: bool) -> str:
    """Mean and standard deviation, in kbit/s or as they are."""
    if in_bits:
        return f"{sample.mean / 1e3:.0f} ± {sample.sd / 1e3:.0f} ({sample.sd_percent:.1f} %)"
    return f"{sample.mean:.3f} ± {sample.sd:.3f} ({sample.sd_percent:.1f} %)"


def open_loop_table(results: Sequence[OpenLoopResult]) -> Shown:
    """Return a row per flow."""
    rows = [
        {
            "run": result.subject,
            "ACKs compared": f"{result.compared}",
            "equal": f"{100 * result.equal:.1f} %",
            "median error": "-" if result.check.value is None else f"{result.check.value:.2f} %{_mark(result.check)}",
            "first ACK that differs (engine / kernel)": "none" if result.divergence is None else str(result.divergence),
            "verdict": result.check.text or result.check.verdict,
        }
        for result in results
    ]
    bounds = f"Bound: median error of the window within {100 * MEDIAN:.0f} %."
    return Shown("The controller in open loop, with the kernel's ACKs", bounds, rows)


def closed_form_table(checks: Sequence[Check]) -> Shown:
    """Return a row per check."""
    rows = [
        {
            "case": check.subject,
            "quantity": f"{check.metric} ({check.unit})" if check.unit else check.metric,
            "engine": f"{check.value or 0.0:.4g}",
            "closed form": f"{check.reference:.4g}",
            "difference": f"{100 * (check.relative or 0.0):+.1f} %",
            "bound": f"{100 * check.allowed / check.reference:.0f} %",
            "verdict": check.verdict,
        }
        for check in checks
    ]
    return Shown("The engine and closed forms", "", rows)


def ns2_table(cells: Sequence[Cell]) -> Shown:
    """Return a row per cell."""
    bounds = (
        f"Bound: mean goodput within the larger of {100 * SHARE:.0f} % and the joint 95 % interval of the two means. "
        "Where the interval is the larger, one cell in twenty fails it by chance."
    )
    return Shown("The ns2 profile compared with ns-2", bounds, _cell_rows(cells))


def ns2_modules_table(cells: Sequence[Cell]) -> Shown:
    """Return a row per cell, with ns-2's own spread."""
    rows = [
        {**row, "ns-2 spread": f"{100 * cell.spread:.0f} %"} for row, cell in zip(_cell_rows(cells), cells, strict=True)
    ]
    bounds = (
        "Bound: as above. A cell is not judged where the standard deviation of ns-2's sessions, its spread, is more "
        f"than {100 * cells[0].max_spread:.0f} % of their mean."
    )
    return Shown("The ns2 profile compared with ns-2's TCP/Linux", bounds, rows)


def _cell_rows(cells: Sequence[Cell]) -> list[dict[str, str]]:
    return [
        {
            "session": cell.check.subject,
            "engine kbit/s": f"{cell.engine_bps / 1e3:.1f}",
            "ns-2 kbit/s": f"{cell.ns2_bps / 1e3:.1f}",
            "difference": f"{100 * (cell.check.relative or 0.0):+.1f} %",
            "joint 95 % interval": f"{100 * cell.joint_bps / cell.ns2_bps:.1f} %",
            "verdict": cell.check.verdict if cell.judged else "not judged",
        }
        for cell in cells
    ]


def tcp_linux_table(comparisons: Sequence[WindowComparison]) -> Shown:
    """Return a row per case."""
    rows = [_comparison_row(comparison) for comparison in comparisons]
    bounds = (
        f"Bound: within {BOUND_PERCENT:g} % in {100 * SHARE_OF_ROUNDS:g} % of the round trips. If a case fails, "
        "the last column gives the reason, from the source code of both, and the column before it the result of the "
        "engine with ns-2's rule."
    )
    return Shown("The variants, ns-2 and recursions", bounds, rows)


def tcp_linux_summary(comparisons: Sequence[WindowComparison]) -> str:
    """Return how many pass, in a sentence."""
    checks = [comparison.check for comparison in comparisons]
    failed = failures(checks)
    explained = [one for one in comparisons if one.check.verdict == "fail" and one.explained]
    return (
        f"Windows of variants: {len(checks) - len(failed)} of {len(checks)} pass; of the others "
        f"{len(explained)} differ for a reason that is given, and pass with ns-2's rule."
    )


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _comparison_row(comparison: WindowComparison) -> dict[str, str]:
    case, off = comparison.case, comparison.off_percent
    settings = [f"{name} = {_setting(value)}" for name, value in case.params.items()]
    settings += ["delayed ACKs"] if case.delayed_ack else []
    verdict = comparison.check.verdict
    return {
        "variant": case.variant,
        "reference": case.reference,
        "path": case.path.name,
        "with": ", ".join(settings),
        "rounds": str(len(off)),
        "median": f"{np.median(off):.1f} %",
        "95 % of rounds": f"{comparison.check.value:.1f} %",
        "with ns-2's rule": f"{comparison.shown.check.value:.1f} %" if comparison.shown else "",
        "verdict": f"{verdict}: {case.reason}" if verdict == "fail" and case.reason else verdict,
    }


def summary(results: Results) -> list[str]:
    """Return how many runs, flows, sessions and closed forms pass, in sentences."""
    lines = []
    if results.linux:
        lines += _runs_summary(results.linux)
    if results.repeated is not None:
        lines.append(f"Two flows at one bottleneck, repeated: {_passing(results.repeated.checks)} means pass.")
    if results.open_loop:
        compared = [flow.check for flow in results.open_loop if flow.check.value is not None]
        lines.append(
            f"Open loop: {_passing(compared)} flows pass; {len(results.open_loop) - len(compared)} could not be "
            "compared."
        )
    if results.ns2:
        mean, width = pooled(results.ns2)
        lines.append(
            f"ns-2: {_passing([cell.check for cell in results.ns2])} sessions pass; over all of them the engine "
            f"differs by {100 * mean:+.1f} ± {100 * width:.1f} %."
        )
    if results.ns2_modules:
        judged = [cell.check for cell in results.ns2_modules if cell.judged]
        lines.append(
            f"ns-2's TCP/Linux: {_passing(judged)} judged sessions pass, of {len(results.ns2_modules)} in all."
        )
    if results.tcp_linux:
        lines.append(tcp_linux_summary(results.tcp_linux))
    if results.closed:
        lines.append(f"Closed forms: {_passing(results.closed)} pass.")
    return lines


def _runs_summary(runs: Sequence[RunResult]) -> list[str]:
    compared = [run for run in runs if any(check.value is not None for check in run.checks)]
    failing = [run for run in compared if failures(run.checks)]
    in_goodput = [run.name for run in failing if any(check.metric == "goodput" for check in failures(run.checks))]
    return [
        f"Linux: {len(compared) - len(failing)} of {len(compared)} runs pass in every number that could be compared; "
        f"{len(runs) - len(compared)} could not be compared at all.",
        f"Those that fail in goodput: {', '.join(in_goodput) or 'none'}.",
    ]


def _passing(checks: Sequence[Check]) -> str:
    return f"{len(checks) - len(failures(checks))} of {len(checks)}"


def failure_lines(results: Results) -> list[str]:
    """Return a line per flow or check that fails, with the distance and the first packets that differ."""
    lines = []
    for run in results.linux:
        for flow in run.flows:
            failed = failures([*flow.checks, *run.shared])
            if failed:
                words = "; ".join(_off(check) for check in failed)
                first = differences(flow.divergences)
                lines.append(f"{flow.subject}: {words}. First differences: {first}.")
    lines += [
        f"{check.subject}: {_off(check)}.{_in_rounds(check, results.closed)}" for check in failures(results.others)
    ]
    return lines


def _in_rounds(failed: Check, closed: Sequence[Check]) -> str:
    """Return the result of the same case in whole round trips; empty if it has no such result."""
    case, _, form = failed.subject.partition(" against ")
    _, _, cell = form.partition(", ")
    for check in closed:
        if check.subject == f"{case} against {IN_ROUNDS}, {cell}":
            return f" In {IN_ROUNDS}: {check.reference:.4g}, {100 * (check.relative or 0.0):+.1f} % ({check.verdict})."
    return ""


def differences(found: Sequence[Divergence]) -> str:
    """Return the first divergence of each kind as text, the earliest first."""
    return " — then ".join(map(str, found)) or "none, packet by packet"


def _off(check: Check) -> str:
    unit = f" {check.unit}" if check.unit else ""
    return f"{check.metric} {check.value or 0.0:.4g}{unit} where {check.reference:.4g} ± {check.allowed:.3g} is allowed"


def _flow_row(flow: FlowResult) -> dict[str, str]:
    by_metric = {check.metric: check for check in flow.checks}
    row = {"run": flow.subject}
    columns = {
        "goodput kbit/s": ("goodput", 1e3),
        "retransmissions": ("retransmissions", 1.0),
        "RTOs": ("rtos", 1.0),
        "cwnd error": ("cwnd_error", 1.0),
        "cwnd p25": ("cwnd_p25", 1.0),
        "p50": ("cwnd_p50", 1.0),
        "p75": ("cwnd_p75", 1.0),
    }
    for title, (metric, scale) in columns.items():
        row[title] = _cell(by_metric.get(metric), scale)
    row["verdict"] = _verdict(flow.checks)
    return row


def _shared_row(check: Check) -> dict[str, str]:
    row = dict.fromkeys(("goodput kbit/s", "retransmissions", "RTOs", "cwnd error", "cwnd p25", "p50", "p75"), "")
    row["goodput kbit/s"] = f"Jain {check.value or 0.0:.3f} / {check.reference:.3f}{_mark(check)}"
    return {"run": check.subject, **row, "verdict": check.verdict}


def _verdict(checks: Sequence[Check]) -> str:
    unknown = [check.text for check in checks if check.value is None]
    if failures(checks):
        return FAIL
    return "; ".join(unknown) or "pass"


def _cell(check: Check | None, scale: float) -> str:
    if check is None or check.value is None:
        return "-"
    if check.metric == "cwnd_error":
        return f"{check.value:.1f} %{_mark(check)}"
    return f"{_number(check.value / scale)} / {_number(check.reference / scale)}{_mark(check)}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def _mark(check: Check) -> str:
    return f" {FAIL}" if check.verdict == FAIL else ""

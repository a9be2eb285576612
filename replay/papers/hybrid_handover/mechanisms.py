"""What is measured next to the claims of the hybrid handover paper, to show why they hold under a reading or do not.

Depends on the configurations, not on claims or readings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from hindflight.replay.papers.hybrid_handover.cells import (
    CTCP,
    CUBIC,
    DELAYS,
    END_S,
    FIRST_S,
    HYBLA,
    NAMES,
    PLRS,
    RENO,
    SECOND_S,
    SMALL_WINDOW,
    WESTWOOD,
    Path,
    Trace,
    cell,
    handovers,
    traces,
)
from hindflight.replay.papers.lab import Lab, Tables
from hindflight.replay.papers.model import Mechanism

MEASURED_RUNS = 20
"""Runs of each flow that a mechanism looks at."""
MSS_BYTES = 1448
AFTER_NS = 1_000_000_000
"""Time after the handover in which a timer that is too short fires."""
END_TO_END = (HYBLA, CUBIC, CTCP, RENO, WESTWOOD)


def _means(flows: tuple[str, ...], path: Path, metric: Callable[[Trace], float], lab: Lab) -> Mapping[str, float]:
    """Return the mean over the runs of `metric` of each flow."""
    found = traces(lab, flows, path, maximum=MEASURED_RUNS)
    return {NAMES[flow]: float(np.mean([metric(run) for run in runs])) for flow, runs in found.items()}


def outstanding(flows: tuple[str, ...], path: Path, at_s: float) -> Mechanism:
    """Return the measure of what each flow has sent and does not know to have arrived in order.

    It waits in the queue, is on its way, or lies behind a hole that a loss has left.
    """
    return Mechanism(
        f"MB sent and not acknowledged in order at {at_s:g} s",
        partial(_means, flows, path, lambda run: run.sent_at(at_s) - run.acked_at(at_s)),
    )


def longest_pause(flows: tuple[str, ...], path: Path) -> Mechanism:
    """Return the measure of the longest time without new data in order while a flow is written."""
    return Mechanism(
        f"longest time in s without new data in order before {END_S:g} s", partial(_means, flows, path, _pause_s)
    )


def longest_pause_with_losses() -> Mechanism:
    """Return the same measure on the path of 001-C11 with the most losses, that of the delays under all readings."""
    measured = longest_pause(END_TO_END, (*handovers(DELAYS), ("links.emulator.loss.per", PLRS[-1])))
    return replace(measured, name=f"over the path of the delays, {measured.name}")


def _pause_s(run: Trace) -> float:
    times = run.acked_s[(run.acked_s > 1.0) & (run.acked_s < END_S)]
    return float(np.diff(np.append(times, END_S)).max())


def first_loss(flows: tuple[str, ...], path: Path, from_s: float) -> Mechanism:
    """Return the measure of when each flow retransmits for the first time; the end of the run if it does not."""
    return Mechanism(
        f"first retransmission after {from_s:g} s, in s",
        partial(_means, flows, path, lambda run: run.first_resent_s(from_s)),
    )


def flight_at_handover(flows: tuple[str, ...], path: Path) -> Mechanism:
    """Return the measure of what each flow has on its way when the first handover comes."""
    return Mechanism(
        f"packets sent and not acknowledged in order at {FIRST_S:g} s",
        partial(_means, flows, path, lambda run: 1e6 * (run.sent_at(FIRST_S) - run.acked_at(FIRST_S)) / MSS_BYTES),
    )


def timer_at_handover() -> Mechanism:
    """Return the measure of the timer of Reno when the delay rises, and of how long it then waits for ACKs."""

    def measure(lab: Lab) -> Mapping[str, float]:
        (runs,) = lab.observe([cell(RENO, SMALL_WINDOW)], timer, maximum=MEASURED_RUNS)
        names = (f"RTO at {SECOND_S:g} s", "longest wait for an ACK after it")
        return dict(zip(names, np.mean(runs, axis=0), strict=True))

    return Mechanism("ms", measure)


def timer(tables: Tables) -> tuple[float, float]:
    """Return the RTO at the second handover and the longest time between ACKs soon after it, in ms."""
    import polars as pl

    segments = pl.DataFrame(tables["segments"]).filter(pl.col("direction") == "b2a").sort("t_ns")
    times = segments.filter(pl.col("ack").diff() > 0)["t_ns"].to_numpy()
    at_ns = round(SECOND_S * 1e9)
    concerned = times[np.searchsorted(times, at_ns) - 1 : np.searchsorted(times, at_ns + AFTER_NS) + 1]
    states = pl.DataFrame(tables["instruments"]).filter(pl.col("source") == "replay").drop_nulls("rto_ns").sort("t_ns")
    rto_ns = states.filter(pl.col("t_ns") <= at_ns)["rto_ns"].to_numpy()[-1]
    return float(rto_ns) / 1e6, float(np.diff(concerned).max()) / 1e6

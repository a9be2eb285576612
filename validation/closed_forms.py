"""The engine compared with closed forms of the steady state: random loss, a full queue, one loss every 1/p packets.

Depends on formulas and the engine's configuration. Rates are differences of two runs with the same seed, one of which
ends where the other's start-up does: what both share is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hindflight.replay.experiment.run import Configuration, run_configurations
from validation.formulas import (
    cubic_rounds_window_pkts,
    cubic_window_pkts,
    pftk_rate_pps,
    reno_rounds_window_pkts,
    reno_window_pkts,
    sawtooth_utilisation,
)
from validation.judge import Check, within_share

PFTK_SHARE = 0.25
SAWTOOTH_SHARE = 0.05
RENO_SHARE = 0.05
CUBIC_SHARE = 0.10

SMSS_BYTES = 1448
PACKET_BYTES = 1500

STACK: dict[str, Any] = {"smss_bytes": SMSS_BYTES, "delayed_ack": False, "receive_buffer_bytes": 1 << 30}
"""Every packet is acknowledged (the forms' b = 1) and the receiver never holds the sender back."""

WARM_UP_LOSSES = 30
PFTK_LOSSES = 500
"""Expected losses of a run, and those excluded at its start; the rate's standard error is then some 3 %."""
PFTK_SEEDS = 2
PERIODS = 40
"""Sawteeth measured where losses come at equal distance."""
WARM_UP_PKTS = 10_000_000
WARM_UP_PERIODS = 2000
"""Excluded before them, whichever is less. Cubic needs this long: near its plateau the window hardly changes, so the
distance to the steady state falls only with the square root of the number of losses, and fast convergence (RFC 9438
§4.7), which the closed form neglects, takes the flow far below it at the start."""


IN_ROUNDS = "whole round trips"
"""The form without approximation; its difference from another form is the error of that form."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells to compute."""

    pftk_p: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
    pftk_rtt_s: tuple[float, ...] = (0.1, 0.3, 0.6)
    sawtooth_buffers: tuple[float, ...] = (0.1, 0.2, 0.5, 0.8, 1.0, 2.0)
    reno_p: tuple[float, ...] = (1e-4, 1e-3, 1e-2)
    cubic_p: tuple[float, ...] = (1e-5, 1e-4, 1e-3)
    cubic_rtt_s: tuple[float, ...] = (0.1, 0.3, 0.6)


QUICK = Grid((1e-3, 1e-2), (0.3,), (0.2, 0.5, 1.0), (1e-3, 1e-2), (1e-4, 1e-3), (0.3,))
"""A few seconds."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow over one link with its loss process; `rate_bps` None: packets take no time on the wire."""

    variant: str
    rtt_s: float
    loss: dict[str, Any]
    rate_bps: float | None = None
    queue_pkts: int = 1000
    initial_ssthresh_pkts: int | None = None
    params: dict[str, Any] = field(default_factory=dict)

    def configuration(self, duration_s: float, seed: int, recorded: bool = False) -> Configuration:
        """Return the run of this flow for `duration_s`."""
        delay_ns = round(self.rtt_s * 1e9 / 2)
        queue = {"kind": "drop_tail", "limit_pkts": self.queue_pkts}
        forward = {"delay_ns": delay_ns, "loss": self.loss, "rate_bps": self.rate_bps, "queue": queue}
        stack = {**STACK, "initial_ssthresh_pkts": self.initial_ssthresh_pkts}
        config = {
            "duration_ns": round(duration_s * 1e9),
            "path": {
                "nodes": ["sender", "receiver"],
                "links": [{"name": "link", "forward": forward, "reverse": {"delay_ns": delay_ns}}],
            },
            "flows": [
                {"name": "flow", "variant": self.variant, "profile": "rfc", "stack": stack, "params": self.params}
            ],
        }
        return Configuration(config, seed, recorded)


@dataclass(frozen=True, slots=True)
class Steady:
    """Packets per second of the steady state: those sent, and those that the application had."""

    sent_pps: float
    delivered_pps: float


def validate_closed_forms(grid: Grid | None = None, *, threads: int | None = None) -> list[Check]:
    """Return one check per cell of `grid`, the full one if left out."""
    grid = grid or Grid()
    return [
        *_pftk(grid, threads),
        *_sawtooth(grid.sawtooth_buffers, threads),
        *_reno(grid.reno_p, threads),
        *_cubic(grid, threads),
    ]


def _steady(flow: Flow, warm_up_s: float, end_s: float, seeds: Sequence[int], threads: int | None) -> Steady:
    """Return the mean over `seeds` of the rates between `warm_up_s` and `end_s`."""
    pairs = [flow.configuration(end, seed) for seed in seeds for end in (warm_up_s, end_s)]
    runs = run_configurations(pairs, threads=threads)["runs"]
    span_s = (end_s - warm_up_s) * len(seeds)

    def gained(name: str) -> float:
        counts = runs[name].to_numpy().astype(np.float64)
        return float((counts[1::2] - counts[::2]).sum())

    return Steady(gained("segments_out") / span_s, gained("delivered_bytes") / SMSS_BYTES / span_s)


def _pftk(grid: Grid, threads: int | None) -> Iterable[Check]:
    for rtt_s in grid.pftk_rtt_s:
        for p in grid.pftk_p:
            flow = Flow("newreno", rtt_s, {"kind": "bernoulli", "per": p})
            rto_s = _mean_rto_s(flow, p, threads)
            expected = pftk_rate_pps(p, rtt_s, rto_s)
            second_per_loss = 1 / (p * expected)
            end_s = (WARM_UP_LOSSES + PFTK_LOSSES) * second_per_loss
            seeds = range(1, 1 + PFTK_SEEDS)
            steady = _steady(flow, WARM_UP_LOSSES * second_per_loss, end_s, seeds, threads)
            subject = f"newreno against PFTK, p {p:g}, RTT {rtt_s:g} s"
            yield within_share(subject, "send rate", steady.sent_pps, expected, PFTK_SHARE, "packets/s")


def _mean_rto_s(flow: Flow, p: float, threads: int | None) -> float:
    """Return the RTO of the flow, without backoff, averaged over the second half of some 60 losses."""
    import pyarrow.compute as pc

    duration_s = 60 / (p * reno_window_pkts(p) / flow.rtt_s)
    states = run_configurations([flow.configuration(duration_s, 1, recorded=True)], threads=threads)["instruments"]
    states = states.filter(pc.equal(states["source"].cast("string"), "replay"))
    states = states.filter(pc.greater(states["t_ns"], duration_s * 1e9 / 2))
    t_ns, rto_ns = states["t_ns"].to_numpy(), states["rto_ns"].to_numpy().astype(np.float64)
    # From a timeout to the end of its retransmissions the RTO is backed off.
    without_backoff = pc.not_equal(states["phase"].cast("string"), "loss").to_numpy()
    return float(np.average(rto_ns[:-1], weights=np.diff(t_ns) * without_backoff[:-1]) / 1e9)


BDP_PKTS = 100
SAWTOOTH_RTT_S = 0.1
SAWTOOTH_CYCLES = 30


def _sawtooth(buffers: tuple[float, ...], threads: int | None) -> Iterable[Check]:
    rate_pps = BDP_PKTS / SAWTOOTH_RTT_S
    # The serialisation time is part of the round trip: the rest is propagation.
    propagation_s = SAWTOOTH_RTT_S - 1 / rate_pps
    for share in buffers:
        queue_pkts = round(share * BDP_PKTS)
        top = BDP_PKTS + queue_pkts + 1
        flow = Flow(
            "reno", propagation_s, {"kind": "none"}, rate_pps * PACKET_BYTES * 8, queue_pkts, math.ceil(top / 2)
        )
        cycle_s = top / 2 * max(SAWTOOTH_RTT_S, top / rate_pps)
        steady = _steady(flow, 2 * cycle_s, (2 + SAWTOOTH_CYCLES) * cycle_s, [1], threads)
        expected = sawtooth_utilisation(BDP_PKTS, queue_pkts)
        subject = f"reno against the sawtooth, buffer {share:g} BDP"
        yield within_share(subject, "utilisation", steady.sent_pps / rate_pps, expected, SAWTOOTH_SHARE, "")


def _reno(losses: tuple[float, ...], threads: int | None) -> Iterable[Check]:
    for p in losses:
        forms = {"sqrt(1.5/p)": reno_window_pkts(p), IN_ROUNDS: reno_rounds_window_pkts(p)}
        window = _window_under_periodic_loss(_under_periodic_loss("reno", p, 0.1, reno_window_pkts(p)), p, threads)
        for form, expected in forms.items():
            yield within_share(f"reno against {form}, p {p:g}", "mean window", window, expected, RENO_SHARE, "packets")


def _cubic(grid: Grid, threads: int | None) -> Iterable[Check]:
    for rtt_s in grid.cubic_rtt_s:
        for p in grid.cubic_p:
            expected = cubic_window_pkts(p, rtt_s)
            periods = min(WARM_UP_PERIODS, round(WARM_UP_PKTS * p))
            flow = _under_periodic_loss("cubic", p, rtt_s, expected)
            without = replace(flow, params={"fast_convergence": False})
            for name, one, fast_convergence, warm_up in (
                ("cubic", flow, True, periods),
                ("cubic without fast convergence", without, False, min(periods, WARM_UP_PERIODS // 10)),
            ):
                window = _window_under_periodic_loss(one, p, threads, warm_up)
                counted = cubic_rounds_window_pkts(p, rtt_s, fast_convergence, warm_up, PERIODS)
                for form, value in {"RFC 9438 §5.1": expected, IN_ROUNDS: counted}.items():
                    subject = f"{name} against {form}, p {p:g}, RTT {rtt_s:g} s"
                    yield within_share(subject, "mean window", window, value, CUBIC_SHARE, "packets")


def _under_periodic_loss(variant: str, p: float, rtt_s: float, expected: float) -> Flow:
    """Return a flow of which every 1/p-th packet is lost, and which begins at the window `expected`."""
    period = round(1 / p)
    every = {"kind": "trace", "mode": "replayed", "positions": [period - 1], "known_pkts": period}
    return Flow(variant, rtt_s, every, initial_ssthresh_pkts=max(2, round(expected)))


def _window_under_periodic_loss(
    flow: Flow, p: float, threads: int | None, warm_up_periods: int = WARM_UP_PERIODS
) -> float:
    """Return packets sent per round trip by a flow that loses every 1/p-th."""
    period = round(1 / p)
    cycle_s = period / (flow.initial_ssthresh_pkts or 2) * flow.rtt_s
    warm_up_s = min(WARM_UP_PKTS // period, warm_up_periods) * cycle_s
    return _steady(flow, warm_up_s, warm_up_s + PERIODS * cycle_s, [1], threads).sent_pps * flow.rtt_s

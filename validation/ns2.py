"""The `ns2` profile compared with ns-2: sessions over one GEO satellite and over two, with bit errors on every hop.

Depends on the engine's configuration and `simulator`. The paths are those of 003 in the papers' list: 31 s sessions,
packets of 1500 octets, data and ACKs alike exposed, windows not limited by the ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hindflight.replay.experiment.compare import t_quantile_975
from hindflight.replay.experiment.run import Configuration, run_configurations
from validation.judge import Check
from validation.simulator import HEADER_BYTES, MODULES, SMSS_BYTES, Chain, simulate

SHARE = 0.05
"""A mean may be off by this share, or by the joint 95 % interval where that is wider."""

REPETITIONS = 90
"""Sessions of a cell in ns-2. Each cell has separate random streams: cells that share them all err the same way."""

ENGINE_SHARE = 10
"""Sessions of the engine for each of ns-2's: they cost little, and leave the joint interval to ns-2 alone."""

DURATION_S = 31.0
PACKET_BITS = 8 * (SMSS_BYTES + HEADER_BYTES)

PATHS = {
    "GEO": (0.125, 0.125),
    "double GEO": (0.126, 0.2074, 0.1252),
    "2 x 125 ms": (0.125, 0.125),
    "2 x 250 ms": (0.25, 0.25),
}
"""One-way delays: up and down; for two satellites Rome to 0°, between the satellites, and -95° to Los Angeles."""

PARAMS: dict[str, dict[str, float]] = {"cubic": {"beta": 819 / 1024}}
"""What ns-2's modules have otherwise."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells to compare."""

    paths: tuple[str, ...] = ("GEO", "double GEO")
    rates_bps: tuple[float, ...] = (1e6, 20e6)
    bers: tuple[float, ...] = (1e-6, 1e-7, 1e-8)
    variants: tuple[str, ...] = ("newreno", "sack")
    repetitions: int = REPETITIONS
    engine_share: int = ENGINE_SHARE
    max_spread: float = math.inf
    """A cell is judged if the sessions of ns-2 spread less than this share of their mean."""


QUICK = Grid(rates_bps=(1e6,), bers=(1e-7, 1e-8), repetitions=30)
"""A few seconds."""

TCP_LINUX = Grid(
    paths=("2 x 125 ms", "2 x 250 ms"),
    variants=tuple(MODULES),
    repetitions=40,
    engine_share=1,
    max_spread=0.5,
)
"""The variants that ns-2 runs as modules of Linux."""

TCP_LINUX_QUICK = replace(TCP_LINUX, paths=("2 x 125 ms",), rates_bps=(1e6,), bers=(1e-6,), repetitions=10)
"""A few seconds."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: mean goodput on either side, and half the 95 % interval of their difference."""

    path: str
    chain: Chain
    engine_bps: float
    ns2_bps: float
    joint_bps: float
    spread: float = 0.0
    """Standard deviation of ns-2's sessions over their mean …"""
    max_spread: float = math.inf
    """… and the most with which the cell is judged."""

    @property
    def judged(self) -> bool:
        """Whether ns-2 itself is steady enough to compare with."""
        return self.spread <= self.max_spread

    @property
    def check(self) -> Check:
        """The cell as a check."""
        chain = self.chain
        subject = f"{chain.variant} over {self.path}, {chain.rate_bps / 1e6:g} Mbit/s, BER {chain.ber:g}"
        allowed = max(SHARE * self.ns2_bps, self.joint_bps)
        return Check(subject, "mean goodput", self.engine_bps, self.ns2_bps, allowed, "bit/s")


def compare_with_ns2(
    ns: str,
    grid: Grid | None = None,
    *,
    threads: int | None = None,
    on_done: Callable[[int, int], None] = lambda _done, _of: None,
) -> list[Cell]:
    """Return a cell for each of `grid`, the full one if left out; `ns` is the simulator's path.

    `on_done` is called with the number of finished cells and of all cells. MachineError where a simulation fails.
    """
    grid = grid or Grid()
    named = [
        (path, _chain(variant, PATHS[path], rate_bps, ber))
        for path in grid.paths
        for rate_bps in grid.rates_bps
        for ber in grid.bers
        for variant in grid.variants
    ]
    cells = []
    step = len(grid.variants) * len(grid.bers)
    for start in range(0, len(named), step):
        part = named[start : start + step]
        chains = [chain for _, chain in part]
        streams = range(start * grid.repetitions, (start + len(part)) * grid.repetitions, grid.repetitions)
        theirs = simulate(ns, list(zip(chains, streams, strict=True)), grid.repetitions, threads)
        ours = _replay(list(zip(chains, streams, strict=True)), grid, threads)
        cells += [_cell(path, chain, grid, both) for (path, chain), *both in zip(part, ours, theirs, strict=True)]
        on_done(len(cells), len(named))
    return cells


def _chain(variant: str, delays_s: tuple[float, ...], rate_bps: float, ber: float) -> Chain:
    """A queue takes as many packets as the path holds: the papers do not give its size."""
    path_pkts = math.ceil(2 * sum(delays_s) * rate_bps / PACKET_BITS)
    # Where ssthresh is not bounded, hybla's first round trip sends 2^16 packets.
    ssthresh_pkts = path_pkts if variant in MODULES else None
    return Chain(variant, delays_s, rate_bps, ber, path_pkts, DURATION_S, ssthresh_pkts)


def _cell(path: str, chain: Chain, grid: Grid, both: Sequence[Sequence[float]]) -> Cell:
    bps = 8 * SMSS_BYTES / chain.duration_s
    engine, ns2 = (np.asarray(packets) * bps for packets in both)
    variances = np.array([engine.var(ddof=1) / len(engine), ns2.var(ddof=1) / len(ns2)])
    # Welch's degrees of freedom: the samples differ in size and may in spread.
    degrees = variances.sum() ** 2 / (variances**2 / [len(engine) - 1, len(ns2) - 1]).sum() if variances.any() else 1.0
    joint = t_quantile_975(float(degrees)) * math.sqrt(variances.sum())
    spread = float(ns2.std(ddof=1) / ns2.mean())
    return Cell(path, chain, float(engine.mean()), float(ns2.mean()), joint, spread, grid.max_spread)


def pooled(cells: Sequence[Cell]) -> tuple[float, float]:
    """Return the mean of the relative differences and half its 95 % interval: what all cells say of a bias."""
    differences = [cell.engine_bps / cell.ns2_bps - 1 for cell in cells]
    widths = [cell.joint_bps / cell.ns2_bps for cell in cells]
    return float(np.mean(differences)), math.sqrt(sum(width**2 for width in widths)) / len(cells)


def _replay(sessions: Sequence[tuple[Chain, int]], grid: Grid, threads: int | None) -> list[list[float]]:
    """Return, by session, a chain and its first stream, the packets that the engine's receiver had in order."""
    count = grid.engine_share * grid.repetitions
    runs = run_configurations(
        [
            Configuration(_configuration(chain), grid.engine_share * first + number, recorded=False)
            for chain, first in sessions
            for number in range(1, count + 1)
        ],
        threads=threads,
    )["runs"]
    packets = runs["delivered_bytes"].to_numpy() / SMSS_BYTES
    return [list(row) for row in packets.reshape(len(sessions), count)]


def _configuration(chain: Chain) -> dict[str, Any]:
    loss = {"kind": "ber", "ber": chain.ber}
    links = []
    for number, delay_s in enumerate(chain.delays_s, 1):
        direction = {
            "rate_bps": chain.rate_bps,
            "delay_ns": round(delay_s * 1e9),
            "queue": {"kind": "drop_tail", "limit_pkts": chain.queue_pkts},
            "loss": loss,
            "loss_applies_to": "all",
        }
        links.append({"name": f"hop {number}", "forward": direction, "reverse": direction})
    stack = {"receive_buffer_bytes": 1 << 30, "smss_bytes": SMSS_BYTES, "header_bytes": chain.header_bytes}
    if chain.ssthresh_pkts is not None:
        stack["initial_ssthresh_pkts"] = chain.ssthresh_pkts
    flow = {
        "name": "flow",
        "variant": chain.variant,
        "profile": "ns2",
        "stack": stack,
        "params": PARAMS.get(chain.variant, {}),
    }
    return {
        "duration_ns": round(chain.duration_s * 1e9),
        "path": {"nodes": [f"node {n}" for n in range(len(chain.delays_s) + 1)], "links": links},
        "flows": [flow],
    }

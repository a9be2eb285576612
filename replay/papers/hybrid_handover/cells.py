"""The configurations of "Which Transport Protocol for Hybrid Terrestrial and Satellite Systems?" and what a run shows.

Depends on the lab; knows no claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hindflight.replay.papers.lab import Lab, Tables
from hindflight.replay.papers.model import Cell, Change, table
from hindflight.replay.papers.statistics import Samples

if TYPE_CHECKING:
    import polars as pl

SCENARIO = "hybrid-handover"
HYBLA, CUBIC, CTCP, RENO, WESTWOOD = "hybla-linux", "cubic", "ctcp", "linux-reno", "westwood-plus"
PEPSAL = "pepsal"
"""The server's default stack (CUBIC of Linux) behind the gateway, and Hybla from there on."""
FLOWS = (HYBLA, CUBIC, CTCP, RENO, WESTWOOD, PEPSAL)
NAMES = {
    HYBLA: "Hybla",
    CUBIC: "CUBIC",
    CTCP: "CTCP",
    RENO: "Reno",
    WESTWOOD: "Westwood",
    PEPSAL: "PEPsal",
}
FIRST_S, SECOND_S, END_S, LAST_S = 20.0, 40.0, 60.0, 90.0
"""Handovers, end of the writing, end of the run (section 4)."""
MAX_RUNS, MAX_QUICK_RUNS = 100, 4
"""Maximum number of runs of a cell: the path is hardly random, and each run keeps its packets."""
TRANSMITTED = "transmitted"
"""Readings whose names begin so count the highest sequence number sent, and not the highest acknowledged."""

FAST, SLOW = "2 Mbit/s", "512 kbit/s"
FAR, NEAR = "250 ms", "25 ms"
SHORT_BREAK_S, LONG_BREAK_S = 0.5, 1.0
PLRS = (0.0, 1e-5, 1e-4)
"""Packet loss ratios of the test whose values the text does not give."""
Path = tuple[Change, ...]
"""The changes that make the emulator a path."""
Phases = tuple[tuple[str, str], tuple[str, str], tuple[str, str]]
"""Rate and one-way delay before, between and after the two handovers."""
DELAYS: Phases = ((FAST, FAR), (FAST, NEAR), (FAST, FAR))
RATES_WIRED_FIRST: Phases = ((FAST, NEAR), (SLOW, NEAR), (FAST, NEAR))
RATES_SATELLITE_FIRST: Phases = ((SLOW, NEAR), (FAST, NEAR), (SLOW, NEAR))


def satellite() -> tuple[Change, ...]:
    """Return the changes for the satellite alone, as the scenario file has it."""
    return ()


def handovers(phases: Phases, break_s: float = 0.0) -> tuple[Change, ...]:
    """Return the changes for two handovers after breaks of `break_s`; without one the old link serves until then."""
    events = []
    for start_s, (rate, delay) in zip((FIRST_S, SECOND_S), phases[1:], strict=True):
        if break_s:
            events.append(table(at=f"{start_s:g} s", outage=True))
            events.append(table(at=f"{start_s + break_s:g} s", outage=False, rate=rate, delay=delay))
        else:
            events.append(table(at=f"{start_s:g} s", rate=rate, delay=delay))
    rate, delay = phases[0]
    link = "links.emulator"
    first = tuple(
        (f"{link}{way}.{key}", value) for way in ("", ".reverse") for key, value in (("rate", rate), ("delay", delay))
    )
    return (*first, (f"{link}.changes", tuple(events)))


NO_LOSSES: Change = ("links.emulator.loss", table(model="none"))
SMALL_WINDOW: Path = (
    *handovers(((FAST, NEAR), (FAST, NEAR), (FAST, FAR))),
    ("flow.receive_buffer", "16 KiB"),
    ("flow.frto", False),
    ("flow.undo", False),
    ("flow.tail_loss_probe", False),
    ("flow.recovery", "sack"),
    NO_LOSSES,
)
"""Section 2.2 describes a sender whose timeout is that of the wired path when the delay rises: one that undoes
nothing."""
WIRED_QUEUE: Path = (*handovers(RATES_WIRED_FIRST), ("links.emulator.queue", "8 pkts"), NO_LOSSES)
"""Section 2.2 describes a window that fits the old network: its queue holds one bandwidth-delay product of it."""


def cell(flow: str, path: tuple[Change, ...] = ()) -> Cell:
    """Return one configuration: a flow of `FLOWS` over the satellite alone, or the path of `handovers`."""
    return Cell(SCENARIO, CUBIC, PEPSAL, path) if flow == PEPSAL else Cell(SCENARIO, flow, "none", path)


Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trace:
    """What a run showed on its last connection: times in s, sequence numbers in MB.

    `sent` grows at `sent_s` and `acked` at `acked_s`; `resent_s` are the times of retransmissions, `dup_ack_s` those of
    duplicate ACKs. `last_sent_s` is the time of the last data segment.
    """

    sent_s: Numbers
    sent: Numbers
    acked_s: Numbers
    acked: Numbers
    resent_s: Numbers
    dup_ack_s: Numbers
    last_sent_s: float
    lost: int
    rtos: int

    def sent_at(self, at_s: float) -> float:
        """Return the highest sequence number sent by then, in MB."""
        return _step(self.sent_s, self.sent, at_s)

    def acked_at(self, at_s: float) -> float:
        """Return the highest sequence number acknowledged by then, in MB."""
        return _step(self.acked_s, self.acked, at_s)

    def resent(self, from_s: float, to_s: float) -> int:
        """Return the number of retransmissions in this time."""
        return int(((self.resent_s > from_s) & (self.resent_s <= to_s)).sum())

    def pause_s(self, handover_s: float) -> float:
        """Return the longest time without new data in order that spans the handover or begins within 10 s of it."""
        times = np.append(self.acked_s, LAST_S)
        concerned = (times[1:] > handover_s) & (times[:-1] < handover_s + 10.0)
        return float(np.diff(times)[concerned].max())

    def first_resent_s(self, from_s: float) -> float:
        """Return the time of the first retransmission after `from_s`, or the end of the writing without one."""
        later = self.resent_s[self.resent_s > from_s]
        return float(later[0]) if len(later) else END_S

    def per_second(self) -> Numbers:
        """Return what was acknowledged in each second from 5 s to the end of the writing, in Mbit/s."""
        marks = [self.acked_at(at_s) for at_s in np.arange(5.0, END_S + 1.0)]
        return 8.0 * np.diff(marks)


def _step(times: Numbers, values: Numbers, at_s: float) -> float:
    found = int(np.searchsorted(times, at_s, side="right"))
    return float(values[found - 1]) if found else 0.0


def trace(tables: Tables) -> Trace:
    """Reduce the tables of a recorded run to what the claims need."""
    import polars as pl

    segments = pl.DataFrame(tables["segments"])
    last = segments.filter(pl.col("leg") == segments["leg"].max())
    data = last.filter(pl.col("direction") == "a2b", pl.col("payload_bytes") > 0)
    acks = last.filter(pl.col("direction") == "b2a", pl.col("ack").is_not_null())
    sent_s, sent = _growth(_seconds(data), (data["seq"] + data["payload_bytes"]).to_numpy())
    acked_s, acked = _growth(_seconds(acks), acks["ack"].to_numpy())
    run = tables["runs"].to_pylist()[0]
    lost = run["queue_losses"] + run["channel_losses"] + run["outage_losses"]
    return Trace(
        sent_s,
        sent,
        acked_s,
        acked,
        _seconds(data.filter("retransmission")),
        _seconds(acks.filter("dup_ack")),
        float(_seconds(data)[-1]),
        lost,
        run["rtos"],
    )


def _seconds(rows: pl.DataFrame) -> Numbers:
    return rows["t_ns"].to_numpy() / 1e9


def _growth(times: Numbers, numbers: npt.NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """Return the moments at which a sequence number grew, and its values then in MB."""
    highest = np.maximum.accumulate(numbers)
    grew = np.diff(highest, prepend=-1) > 0
    return times[grew], (highest[grew] - 1) / 1e6


def traces(
    lab: Lab, flows: tuple[str, ...], path: tuple[Change, ...] = (), *, maximum: int | None = None
) -> dict[str, list[Trace]]:
    """Return what every run of each of `flows` over `path` showed, or the first `maximum` of them."""
    found = lab.observe([cell(flow, path) for flow in flows], trace, maximum=maximum)
    return dict(zip(flows, found, strict=True))


def samples(found: list[Trace], metric: Callable[[Trace], float]) -> Samples:
    """Return `metric` of every run."""
    return np.array([float(metric(each)) for each in found])


def sequence_at(lab: Lab, at_s: float) -> Callable[[Trace], float]:
    """Return the measure of the sequence number at this time, acknowledged or, under that reading, transmitted."""
    if lab.reading.name.startswith(TRANSMITTED):
        return lambda found: found.sent_at(at_s)
    return lambda found: found.acked_at(at_s)


def growth_over(lab: Lab, from_s: float, to_s: float) -> Callable[[Trace], float]:
    """Return the measure of what the sequence number grows by between two times."""
    before, after = sequence_at(lab, from_s), sequence_at(lab, to_s)
    return lambda found: after(found) - before(found)

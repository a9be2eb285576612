"""Claims of Palazzi et al. 2005 that one call into a part of the engine answers: Westwood's estimate, a closed window.

A sender repeats a made-up record of transmissions and ACKs; the equations of section 3.1, written out here, say what
its estimate must be. Depends on the open-loop replay, not on runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hindflight.replay.experiment.run import Event, replay_controller
from hindflight.replay.papers.haps_split.cells import HIGH, MSS_BYTES, NONE, WESTWOOD, cell
from hindflight.replay.papers.lab import Tables, config_of
from hindflight.replay.papers.model import Part
from hindflight.replay.papers.verdicts import holds

TAU_S = 0.5
"""Fixed time constant of the check, so that the filter is that of equation (1) alone."""
RTT_S = 0.5
MS = 1_000_000
CLOSE = 1e-6
DUPLICATES = 3


@dataclass(slots=True)
class Estimate:
    """Equations (1) to (3): the estimate in packets per second, ACK by ACK. `intervals` are the T_k so far in s."""

    rate: float = 0.0
    last_s: float | None = None
    arrivals: list[float] = field(default_factory=list)
    intervals: list[tuple[float, float, float]] = field(default_factory=list)
    agree: bool = True
    """Whether (2) and (3) gave the same interval so far."""

    def take(self, now_s: float, rtt_s: float, minimum_s: float, cwnd: float) -> None:
        """One ACK of one packet: T_k by (2) and (3), the sample, and the filter (1)."""
        self.arrivals.append(now_s)
        last_s, self.last_s = self.last_s, now_s
        if last_s is None:
            return
        spacing_s = now_s - last_s
        congested = self.rate * minimum_s < cwnd
        by_2 = rtt_s * (cwnd - self.rate * minimum_s) / cwnd
        by_3 = rtt_s * (cwnd / minimum_s - self.rate) / (cwnd / minimum_s)
        self.agree = self.agree and abs(by_2 - by_3) < CLOSE
        interval_s = min(rtt_s, max(spacing_s, by_2)) if congested else spacing_s
        self.intervals.append((spacing_s, interval_s, rtt_s))
        sample = sum(at_s > now_s - interval_s + 1e-9 for at_s in self.arrivals) / interval_s
        gain = max((2 * TAU_S - spacing_s) / (2 * TAU_S + spacing_s), 0.0)
        self.rate = gain * self.rate + (1 - gain) * sample


def _westwood(initial_ssthresh_pkts: int) -> dict[str, Any]:
    """Return the configuration of a Westwood sender with the fixed time constant."""
    changes = (("variants.westwood.tau", "fixed"), ("variants.westwood.tau_fixed", f"{TAU_S} s"))
    started = ("flow.initial_ssthresh", f"{initial_ssthresh_pkts} pkts")
    return config_of(cell(WESTWOOD, NONE, HIGH).but(*changes, started), 1)


def _record(spacing_ms: int, packets: int) -> tuple[list[Event], list[float]]:
    """Return a record of packets at even times, each acknowledged after one round trip, then of three duplicate ACKs.

    The packet after the last acknowledged one is lost. Also returns the times of the ACKs in s.
    """
    events: list[Event] = [(0, "syn", 0, 0, 0, [])]
    window = 1 << 20
    total = packets + 1 + DUPLICATES
    sent: list[Event] = [(n * spacing_ms * MS, "data", 1 + n * MSS_BYTES, MSS_BYTES, 0, []) for n in range(total)]
    acks: list[Event] = []
    for n in range(total):
        if n == packets:
            continue
        acknowledged = 1 + min(n + 1, packets) * MSS_BYTES
        acks.append((n * spacing_ms * MS + round(RTT_S * 1e9), "ack", acknowledged, window, 0, []))
    events += sorted([*sent, *acks], key=lambda event: event[0])
    return events, [event[0] / 1e9 for event in acks]


@dataclass(frozen=True, slots=True)
class Case:
    """The estimate by the equations after a record, and the engine's windows in packets before and after its loss."""

    expected: Estimate
    before: float
    ssthresh: float
    cwnd: float

    @property
    def right(self) -> float:
        """Return ssthresh by the equations: ERE RTTmin, at least 2 packets."""
        return max(self.expected.rate * RTT_S, 2.0)

    @property
    def agrees(self) -> bool:
        """Return whether the engine's ssthresh is that of the equations."""
        return abs(self.ssthresh - self.right) < CLOSE * self.right


def _case(spacing_ms: int, packets: int, initial_ssthresh_pkts: int, *, timeout: bool = False) -> Case:
    """Return what a record with three duplicate ACKs does or, with `timeout`, one whose duplicate ACKs are lost."""
    events, _ = _record(spacing_ms, packets)
    if timeout:
        events = _without_duplicates(events)
        events.append((events[-1][0] + 3_000 * MS, "timeout", 0, 0, 0, []))
    states = replay_controller(_westwood(initial_ssthresh_pkts), 0, events).to_pylist()
    expected = Estimate()
    cwnd, acknowledged, duplicates = 0.0, 0, 0
    for event, before in zip(events[1:], states, strict=False):
        if event[1] != "ack":
            continue
        duplicates = duplicates + 1 if event[2] == acknowledged else 0
        acknowledged = event[2]
        if duplicates <= 1:  # From the second duplicate on the state has limited transmit's segments as well.
            cwnd = before["cwnd_pkts"]
        expected.take(event[0] / 1e9, RTT_S, RTT_S, cwnd)
    return Case(expected, cwnd, float(states[-1]["ssthresh_pkts"]), float(states[-1]["cwnd_pkts"]))


def _without_duplicates(events: list[Event]) -> list[Event]:
    """Return a record without the ACKs that acknowledge nothing new."""
    kept, acknowledged = [], 0
    for event in events:
        if event[1] == "ack" and event[2] == acknowledged:
            continue
        acknowledged = event[2] if event[1] == "ack" else acknowledged
        kept.append(event)
    return kept


CASES = ((20, 30, 42), (50, 20, 42), (20, 30, 4), (5, 60, 1000))
"""Spacing of the packets in ms, packets, initial ssthresh: windows from below what the path delivers to far above."""


def interval_parts() -> list[Part]:
    """Return whether ssthresh after a loss is what equations (1) to (3) give, with windows that leave T_k at its lower
    bound, between its bounds and at its upper bound."""
    parts = []
    reached = set()
    for spacing_ms, packets, ssthresh in CASES:
        case = _case(spacing_ms, packets, ssthresh)
        name = f"{packets} packets, {spacing_ms} ms apart, initial ssthresh {ssthresh}"
        note = f"{case.ssthresh:.6g}, by the equations {case.right:.6g}"
        parts.append(holds(name, case.agrees and case.expected.agree, case.ssthresh, note))
        for low, interval, high in case.expected.intervals:
            reached.add("lower" if interval == low else "upper" if interval == high else "between")
    all_three = reached == {"lower", "between", "upper"}
    parts.append(holds("both bounds and the middle are reached", all_three, note=", ".join(sorted(reached))))
    return parts


def reaction_parts() -> list[Part]:
    """Return whether losses and timeouts set ssthresh and cwnd as section 3.1 says."""
    parts = []
    for spacing_ms, packets, ssthresh in CASES:
        where = f"{packets} packets, {spacing_ms} ms apart"
        case = _case(spacing_ms, packets, ssthresh)
        # Fast recovery adds the packets that the duplicate ACKs report (RFC 6582).
        window = min(case.before, case.ssthresh) + DUPLICATES
        note = f"ssthresh {case.ssthresh:.6g}, cwnd {case.cwnd:.6g}, by the text {case.right:.6g} and {window:.6g}"
        parts.append(holds(f"3 duplicate ACKs, {where}", case.agrees and abs(case.cwnd - window) < CLOSE, note=note))
        late = _case(spacing_ms, packets, ssthresh, timeout=True)
        note = f"ssthresh {late.ssthresh:.6g}, cwnd {late.cwnd:.6g}, by the text {late.right:.6g} and 1"
        parts.append(holds(f"timeout, {where}", late.agrees and late.expected.rate > 0 and late.cwnd == 1, note=note))
    return parts


def zero_window_part(tables: Tables) -> Part:
    """Return whether the proxy closed its window and opened it again, and the file arrived."""
    segments = tables["segments"].select(["leg", "direction", "window"]).to_pylist()
    windows = [row["window"] for row in segments if row["leg"] == 0 and row["direction"] == "b2a"]
    closings = sum(after == 0 < before for before, after in pairwise(windows))
    openings = sum(before == 0 < after for before, after in pairwise(windows))
    fact = closings > 0 and openings > 0 and bool(tables["runs"]["completed"][0].as_py())
    return holds("", fact, float(closings), f"closed {closings} times, opened {openings} times")

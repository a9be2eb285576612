"""Claims of Shang, Hadjitheodosiou and Baras 2005 about recovery, each answered by a run that loses chosen packets."""

from __future__ import annotations

import numpy as np

from hindflight.replay.papers.aerotcp.cells import AERO_WINDOW, GROUND_RTT_S, MSS_BYTES, ONE, SATELLITE_RTT_S
from hindflight.replay.papers.lab import Tables
from hindflight.replay.papers.losses import Segment, duplicate_acks_ms, run_with_losses, sent_by, timeouts_of
from hindflight.replay.papers.model import Cell, Part
from hindflight.replay.papers.statistics import mean
from hindflight.replay.papers.verdicts import holds, within

SATELLITE = 1
"""Number of the satellite link."""
TWICE_AS_MANY = 20
"""Connections that leave a window of 8 packets, as in figure 4."""
RTT_MS = 1e3 * (SATELLITE_RTT_S + GROUND_RTT_S)
SLACK = 1.15
"""The time to send the packets of a window adds to a round trip."""


def _aerotcp(lost: tuple[int, ...]) -> Tables:
    """Run a sender with a window of 8 packets over the whole path."""
    changes = (("variants.sat.connections", TWICE_AS_MANY), ("flow.handshake", False))
    return run_with_losses(Cell(ONE, AERO_WINDOW, "none", changes), SATELLITE, lost)


def _loses(variant: str, window: int, lost: int) -> Tables:
    """Run `variant`, which begins congestion avoidance at `window` packets and loses the first `lost` of the next."""
    changes = (
        ("flow.initial_window", f"{window} pkts"),
        ("flow.initial_ssthresh", f"{window} pkts"),
        ("flow.limited_transmit", False),
        ("flow.handshake", False),
        ("flow.size", f"{8 * window * MSS_BYTES} B"),
    )
    cell = Cell(ONE, variant, "none", changes)
    return run_with_losses(cell, SATELLITE, tuple(range(window, window + lost)))


_NEEDED_PKTS: dict[int, int | None] = {1: 4, 2: 10, 3: None}
"""By the paper: the window above which so many losses in a row need no timeout; three always do."""
_INITIAL_WINDOWS = {1: (2, 3, 4, 7), 2: (7, 8, 9, 10, 19), 3: (8, 9, 10, 11, 23, 39)}
"""Initial windows of the cases: on both sides of each threshold and far above; the window has grown by the loss."""


def fast_retransmit_parts() -> list[Part]:
    """Return whether Reno recovers one loss above 4 packets, two above 10, and three never without a timeout."""
    parts = []
    for lost, needed in _NEEDED_PKTS.items():
        for window in _INITIAL_WINDOWS[lost]:
            tables = _loses("reno", window, lost)
            flight = _flight_pkts(tables, window + 1)
            recovers = needed is not None and flight > needed
            what = "no timeout" if recovers else "a timeout"
            timeouts = timeouts_of(tables)
            parts.append(holds(f"{lost} lost of {flight} in flight: {what}", (timeouts == 0) == recovers, timeouts))
    return parts


def _flight_pkts(tables: Tables, first_lost: int) -> int:
    """Return the packets from the first lost one to the last that left before a retransmission: the window then."""
    sent = sent_by(tables, MSS_BYTES)
    before = next(at for at, each in enumerate(sent) if each.again)
    return max(each.number for each in sent[:before]) - first_lost + 1


def one_loss_per_rtt_parts() -> list[Part]:
    """Return whether NewReno retransmits one lost packet per round trip."""
    parts = []
    for lost in (2, 4):
        tables = _loses("newreno", 20, lost)
        times = [each.at_ms for each in sent_by(tables, MSS_BYTES) if each.again]
        gaps = np.diff(times) / RTT_MS
        fits = len(times) == lost and timeouts_of(tables) == 0 and bool(np.all((gaps > 1 / SLACK) & (gaps < SLACK)))
        parts.append(holds(f"{lost} lost, one round trip apart", fits, float(gaps.mean())))
    return parts


def figure_4_parts() -> list[Part]:
    """Return whether the sender sends what figure 4 shows, on the ACKs on which it shows it."""
    tables = _aerotcp((0, 1))
    sent = sent_by(tables, MSS_BYTES)
    order = [each.number for each in sent]
    duplicates = duplicate_acks_ms(tables)
    on_duplicates = [each.number for each in sent if each.at_ms in duplicates]
    parts = [
        holds("order of the packets", order[:20] == [*range(1, 9), 1, 2, *range(9, 19)], note=str(order[:20])),
        holds(
            "1, 2, 9 to 12 on the six duplicate ACKs", on_duplicates == [1, 2, 9, 10, 11, 12], note=str(on_duplicates)
        ),
    ]
    partial = [each for each in sent if each.number in {13, 14} and not each.again]
    parts.append(
        holds("13 and 14 together, on the partial ACK", partial[0].at_ms == partial[1].at_ms, partial[0].at_ms)
    )
    return [*parts, constant_window_part(tables)]


def aerotcp_example() -> list[Segment]:
    """Return what the sender of figure 4 sends until packet 20."""
    return [each for each in sent_by(_aerotcp((0, 1)), MSS_BYTES) if each.number <= 20]


def threshold_part() -> Part:
    """Return whether the first duplicate ACK starts the retransmission."""
    tables = _aerotcp((0, 1))
    first = next(each for each in sent_by(tables, MSS_BYTES) if each.again)
    duplicates = duplicate_acks_ms(tables)
    return holds("", first.at_ms == duplicates[0], 1 + duplicates.index(first.at_ms))


def constant_window_part(tables: Tables) -> Part:
    """Return whether the congestion window of the connection never changed."""
    rows = tables["instruments"].to_pylist()
    windows = {row["cwnd_bytes"] // MSS_BYTES for row in rows if row["cwnd_bytes"] and row["leg"] == 0}
    return holds("the window stays", len(windows) == 1, float(max(windows)), note=f"{sorted(windows)} packets")


def lossy_window_parts() -> list[Part]:
    """Return whether the window stays over losses, a lost retransmission and a timeout."""
    tables = _aerotcp((0, 8, 30, 31, 32))
    timed_out = timeouts_of(tables)
    return [holds("there was a timeout", timed_out > 0, timed_out), constant_window_part(tables)]


def copies_part() -> Part:
    """Return whether a timeout sends two copies of the packet whose retransmission was lost."""
    sent = sent_by(_aerotcp((0, 8)), MSS_BYTES)
    copies = [each for each in sent if each.number == 1 and each.again][1:]
    together = {each.at_ms for each in copies}
    return holds("", len(copies) == 2 and len(together) == 1, float(len(copies)))


def partial_ack_part() -> Part:
    """Return whether a partial ACK lets two packets leave, so that it took two off the pipe."""
    tables = _aerotcp((0, 1))
    sent = sent_by(tables, MSS_BYTES)
    at_ms = next(each.at_ms for each in sent if each.number == 13)
    leaving = sum(each.at_ms == at_ms for each in sent)
    return holds("", leaving == 2, float(leaving))


def burst_parts(bounds: tuple[float, float]) -> list[Part]:
    """Return how many round trips pass from the first duplicate ACK until a burst of losses is repaired."""
    parts = []
    for lost in (2, 4, 8):
        changes = (("flow.handshake", False),)
        tables = run_with_losses(Cell(ONE, AERO_WINDOW, "none", changes), SATELLITE, tuple(range(40, 40 + lost)))
        sent = sent_by(tables, MSS_BYTES)
        first = next(each for each in sent if each.again)
        highest = max(each.number for each in sent if each.at_ms <= first.at_ms)
        acks = [row for row in tables["segments"].to_pylist() if row["direction"] == "b2a" and row["ack"] is not None]
        done = next(row["t_ns"] / 1e6 for row in acks if row["ack"] > highest * MSS_BYTES)
        parts.append(within(f"{lost} lost", mean(np.array([(done - first.at_ms) / RTT_MS])), bounds))
    return parts

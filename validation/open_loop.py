"""Open-loop replay of a controller: the engine's sender follows a recorded flow, and its window is compared with the
kernel's after every ACK.

Depends on the recorded run and its sender's capture. The transmissions, the time and content of each ACK, and the times
at which the retransmission timer fired come from the record; scoreboard, recovery and window are the engine's. In a
closed loop an error of a sender changes its later input. In open loop it does not, so any difference is due to a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.replay.experiment.run import Event, replay_controller
from hindflight.toolkit.errors import LogError
from validation.judge import Check, not_made
from validation.linux import NO_TCP_INFO
from validation.rebuild import rebuild
from validation.recorded import KernelFlow, KernelRun, find_runs, read_run

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Integers = npt.NDArray[np.int64]

MEDIAN = 0.01
"""Bound on the median error of the window."""

CAPTURE = "snd.pcap.xz"
"""Capture at the sender's interface."""

TCP_INFO_BOARD = ("unacked", "sacked", "lost", "retrans")
ENGINE_BOARD = ("outstanding_pkts", "sacked_pkts", "lost_pkts", "retransmitted_pkts")
"""The scoreboard with the names of TCP_INFO and with those of `hindflight.replay.experiment.run.replay_controller`."""

HANDSHAKE_SEGMENTS = 1
"""Received before the first ACK of data: the SYN-ACK."""

SYN = 2
"""TCP flag."""

TIMESTAMP_MODULUS = 1 << 32
"""Timestamps wrap around here."""

MILLISECOND_NS = 1_000_000
LEAD_NS = 1_000_000_000
"""The record begins this late by the engine's clock, or up to a tick later, because a timestamp of 0 means none."""
LEAD_WINDOW_NS = 1_000_000_000
"""Time before a segment, and after it, in which those sent show how far the sender's timestamps lead the clock of the
capture. Linux corrects the rate of a clock by 500 ppm at most (MAXFREQ), so two clocks part by 1 ms at most in this
time, a tick of the timestamps."""


@dataclass(frozen=True, slots=True)
class Record:
    """The events at the sender of a flow. `acks[i]` and `sent[i]` count segments received and data packets sent."""

    events: list[Event]
    acks: Integers
    sent: Integers


@dataclass(frozen=True, slots=True)
class OpenLoopDivergence:
    """The first ACK after which the windows differ: its number and time, both windows and scoreboards.

    A scoreboard is packets outstanding, sacked, lost and retransmitted.
    """

    ack: int
    t_ns: int
    kernel_cwnd: int
    engine_cwnd: int
    kernel_board: tuple[int, ...]
    engine_board: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"ACK {self.ack} at {self.t_ns / 1e9:.4f} s: cwnd {self.engine_cwnd} / {self.kernel_cwnd}, outstanding, "
            f"sacked, lost, retransmitted {_board(self.engine_board)} / {_board(self.kernel_board)}"
        )


@dataclass(frozen=True, slots=True)
class OpenLoopResult:
    """One flow: the check, the ACKs that could be compared, the share with equal windows, and the first difference."""

    subject: str
    check: Check
    compared: int
    equal: float
    divergence: OpenLoopDivergence | None


def validate_open_loop(
    folder: Path,
    read_segments: Callable[[Path], pa.Table],
    *,
    on_done: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[OpenLoopResult]:
    """Compare every flow of every run under `folder`; `read_segments` reads a capture into the table `segments`."""
    found = find_runs(folder)
    results = []
    for done, path in enumerate(found, 1):
        results += follow_run(read_run(path), path / CAPTURE, read_segments)
        on_done(done, len(found))
    return results


def follow_run(run: KernelRun, capture: Path, read_segments: Callable[[Path], pa.Table]) -> list[OpenLoopResult]:
    """Compare the flows of `run`, whose sender's capture is `capture`."""
    subjects = [run.name if len(run.flows) == 1 else f"{run.name} flow {i}" for i, _ in enumerate(run.flows, 1)]
    if not capture.is_file():
        why = f"no {CAPTURE} next to this run"
        return [OpenLoopResult(subject, _unknown(subject, why), 0, 0.0, None) for subject in subjects]
    segments = read_segments(capture)
    return [_follow_flow(subject, run, number, segments) for number, subject in enumerate(subjects)]


def _follow_flow(subject: str, run: KernelRun, number: int, segments: pa.Table) -> OpenLoopResult:
    flow = run.flows[number]
    if flow.tcp_info is None:
        return OpenLoopResult(subject, _unknown(subject, NO_TCP_INFO), 0, 0.0, None)
    record = read_record(segments, number + 1, flow, flow.tcp_info)
    states = replay_controller(rebuild(run, flow.end_ns), number, record.events)
    return compare(subject, flow, flow.tcp_info, record, states)


def _unknown(subject: str, why: str) -> Check:
    return not_made(subject, "open_loop_cwnd_error", why)


def read_record(segments: pa.Table, flow_id: int, flow: KernelFlow, info: Mapping[str, Integers]) -> Record:
    """Return the events at the sender of connection `flow_id` of its capture, up to the end of the flow.

    The order is that of the file, in which the sender processed them: an ACK is stamped on arrival, so one that waited
    can have an earlier time than a segment sent before it was processed.
    """
    import pyarrow.compute as pc

    own = segments.filter(pc.equal(segments["flow_id"], flow_id))
    if own.num_rows == 0:
        raise LogError(f"the sender's capture has no connection number {flow_id}")
    columns = {
        name: own[name].to_pylist()
        for name in ("t_ns", "flags", "seq", "payload_bytes", "ack", "wnd_bytes", "ts_val", "ts_ecr", "sack")
    }
    outward = pc.equal(own["direction"].cast("string"), "a2b").to_pylist()
    rows = [
        dict(zip(columns, values, strict=True), is_sent=is_sent)
        for is_sent, *values in zip(outward, *columns.values(), strict=True)
    ]
    clock = _Clock(rows)
    end_ns = int(clock.at(np.int64(flow.end_ns - flow.syn_ns)))
    events = [event for row in rows if (event := _event(clock.read(row), row, clock)) and event[0] <= end_ns]
    events = _with_timeouts(events, clock.at(info["t_ns"] - flow.syn_ns), info["total_rto"])
    kinds = [kind for _, kind, *_ in events]
    return Record(
        events,
        np.cumsum([kind in ("ack", "syn_ack") for kind in kinds]),
        np.cumsum([kind == "data" for kind in kinds]),
    )


class _Clock:
    """The sender's clock, in milliseconds like its timestamps, so that sent and echoed timestamps compare as they did
    at the sender. A segment is stamped before the interface sees it. The clock of the capture is set meanwhile and runs
    at another rate: how far the timestamps lead it is what the segments sent around a time show."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._first_ns, self._first_stamp = rows[0]["t_ns"], rows[0]["ts_val"]
        sent = [row for row in rows if row["is_sent"]]
        self._sent_ns = np.maximum.accumulate([row["t_ns"] - self._first_ns for row in sent], dtype=np.int64)
        ahead = np.array([self._ahead_ns(row) for row in sent], np.int64)
        first = np.searchsorted(self._sent_ns, self._sent_ns - LEAD_WINDOW_NS, side="left")
        after = np.searchsorted(self._sent_ns, self._sent_ns + LEAD_WINDOW_NS, side="right")
        self._lead_ns = np.array([ahead[a:b].max() for a, b in zip(first, after, strict=True)], np.int64)
        self._latest_ns = 0
        self.begin_ns = int(self.at(np.int64(0)))

    def _ahead_ns(self, row: Mapping[str, Any]) -> int:
        """How much the earliest time since the first row that has the timestamp of `row` is ahead of its time."""
        if row["ts_val"] is None or self._first_stamp is None:
            return 0
        return self._stamped_ns(row) - int(row["t_ns"] - self._first_ns)

    def _stamped_ns(self, row: Mapping[str, Any]) -> int:
        return int((row["ts_val"] - self._first_stamp) % TIMESTAMP_MODULUS) * MILLISECOND_NS

    def at(self, elapsed_ns: Integers | np.int64) -> Integers:
        """The time that is `elapsed_ns` after the first row by the clock of the capture."""
        before = np.searchsorted(self._sent_ns, elapsed_ns, side="right") - 1
        return np.asarray(LEAD_NS + elapsed_ns + self._lead_ns[np.maximum(before, 0)])

    def read(self, row: Mapping[str, Any]) -> int:
        """The time at which the sender processed `row`, not before the previous row."""
        at_ns = int(self.at(row["t_ns"] - self._first_ns))
        if row["is_sent"] and row["ts_val"] is not None:
            at_ns = min(at_ns, LEAD_NS + self._stamped_ns(row) + MILLISECOND_NS - 1)
        self._latest_ns = max(self._latest_ns, at_ns)
        return self._latest_ns

    def echo(self, stamp: int | None) -> int:
        """The timestamp `stamp` on this clock; 0 without one."""
        if stamp is None or self._first_stamp is None:
            return 0
        return int(stamp - self._first_stamp + LEAD_NS // MILLISECOND_NS) % TIMESTAMP_MODULUS


def _event(at_ns: int, row: Mapping[str, Any], clock: _Clock) -> Event | None:
    """Return the event of `row` at the sender; None for a pure ACK that it sent."""
    syn = row["flags"] & SYN
    if row["is_sent"]:
        if syn:
            return (at_ns, "syn", 0, 0, 0, [])
        return (at_ns, "data", row["seq"], row["payload_bytes"], 0, []) if row["payload_bytes"] else None
    blocks = list(zip(row["sack"][::2], row["sack"][1::2], strict=True))
    return (at_ns, "syn_ack" if syn else "ack", row["ack"], row["wnd_bytes"], clock.echo(row["ts_ecr"]), blocks)


def _with_timeouts(events: list[Event], times: Integers, counts: Integers) -> list[Event]:
    """Insert a timeout before the first retransmission in each span in which the timeout counter of TCP_INFO rose."""
    rises = np.flatnonzero(np.diff(counts, prepend=0) > 0)
    spans = [(int(times[max(i - 1, 0)]), int(times[i])) for i in rises.tolist()]
    out: list[Event] = []
    highest = 0
    for event in events:
        at_ns, kind, octet, size, *_ = event
        while spans and at_ns > spans[0][1]:
            out.append((spans.pop(0)[1], "timeout", 0, 0, 0, []))
        if kind == "data":
            if spans and octet < highest and at_ns >= spans[0][0]:
                spans.pop(0)
                out.append((at_ns, "timeout", 0, 0, 0, []))
            highest = max(highest, octet + size)
        out.append(event)
    return out


def compare(
    subject: str, flow: KernelFlow, info: Mapping[str, Integers], record: Record, states: pa.Table
) -> OpenLoopResult:
    """Return the difference of the windows after each ACK for which TCP_INFO has a row."""
    rows, places = _pairs(info, record, flow.end_ns)
    if not len(rows):
        raise LogError(f"{subject}: TCP_INFO has no row that fits the sender's capture")
    kernel = info["snd_cwnd"][rows]
    own = np.floor(states["cwnd_pkts"].to_numpy()[places]).astype(np.int64)
    error = np.abs(own - kernel) / kernel
    check = Check(subject, "open_loop_cwnd_error", 100 * float(np.median(error)), 0.0, 100 * MEDIAN, "%")
    divergence = None
    if (own != kernel).any():
        first = int((own != kernel).argmax())
        row, place = int(rows[first]), int(places[first])
        divergence = OpenLoopDivergence(
            ack=int(info["segs_in"][row]),
            t_ns=int(info["t_ns"][row]),
            kernel_cwnd=int(kernel[first]),
            engine_cwnd=int(own[first]),
            kernel_board=tuple(int(info[name][row]) for name in TCP_INFO_BOARD),
            engine_board=tuple(int(states[name].to_numpy()[place]) for name in ENGINE_BOARD),
        )
    return OpenLoopResult(subject, check, len(rows), float((own == kernel).mean()), divergence)


def _pairs(info: Mapping[str, Integers], record: Record, end_ns: int) -> tuple[Integers, Integers]:
    """Return the first row of TCP_INFO after each ACK, and the place in the record with equal counts, if both exist.

    Of several places with equal counts it is the first: TCP_INFO shows a timeout together with its retransmission.
    """
    counts = zip(record.acks.tolist(), record.sent.tolist(), strict=True)
    place_of = {count: place for place, count in reversed(list(enumerate(counts)))}
    within = np.flatnonzero(info["t_ns"] <= end_ns)
    pairs: dict[int, tuple[int, int]] = {}
    for row, acks, sent in zip(within, info["segs_in"][within].tolist(), info["data_segs_out"][within], strict=True):
        place = place_of.get((acks, int(sent)))
        if place is not None and acks > HANDSHAKE_SEGMENTS:
            pairs.setdefault(acks, (int(row), place))
    both = np.array(list(pairs.values()), np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _board(counts: tuple[int, ...]) -> str:
    return "-".join(map(str, counts))

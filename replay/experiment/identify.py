"""Which congestion control a captured sender used: candidates are led through the captured ACKs, open loop.

After each ACK a candidate's window is compared with what was in flight when the sender stopped sending, and what
released each departure (an ACK, or a timer of pacing) is counted. That needs no channel, so an error of the extraction
cannot mislead it; the self-check asks the other question. Depends on tables and the engine, not on a drafted scenario.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hindflight.replay.experiment.run import Event, replay_controller
from hindflight.replay.scenario.captured_application import RESPONSE_NS, response_ns
from hindflight.toolkit.errors import LogError

if TYPE_CHECKING:
    import pyarrow as pa

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

SYN = 2
"""TCP flag."""

LEAD_NS = 1_000_000_000
"""Time of the first event: not zero, which timers take for unset."""

MAX_EVENTS = 40_000
"""Events of a capture that are followed: enough for hundreds of reductions, and a bound on the time that it takes."""

UNSCALED_WINDOW = 1 << 30
"""Receive window where the capture lacks its scale: it limits nothing."""

BURST_NS = 250_000
"""Time within which departures belong together: they share what released the first one."""

PRIOR: Mapping[str, float] = {
    "linux-reno": 0.2,
    "cubic": 0.4,
    "bbr": 0.2,
    "bbr3": 0.05,
    "westwood-bwe": 0.03,
    "hybla": 0.03,
    "compound": 0.03,
    "vegas": 0.03,
}
"""Prior of each candidate: defaults and common choices of today's stacks before rare ones. It decides only between
candidates that the capture cannot separate."""

PACED = frozenset({"bbr", "bbr3"})
"""Candidates whose departures a pacing timer releases."""

PACED_SHARE = (0.02, 0.6)
"""Probability that a timer released a departure, for senders clocked by ACKs and for those that pace."""

AGREES, DIFFERS = 0.95, 0.05
"""Probability that the window of the right candidate agrees with what was in flight, and that of a wrong one's."""

TOLERANCE = 0.1
"""Share of the window by which a difference reduces the agreement to 37 %: a window that grows with time or with the
round trip drifts by some packets, because a capture shows both with errors. A window exceeded by less is not
exceeded."""

DOUBTFUL_PERIODS = 1
"""Times between two reductions in which any candidate, also the right one, may seem to exceed its window, because a
single event is enough whose time or outcome no capture shows: bbr cuts its window in PROBE_RTT when its own estimate of
the RTT expires, and a sender undoes a reduction by what it alone may know."""

WINDOWS_EACH = 10
"""Windows after one another that count as one reduction's worth of evidence at least."""

MIN_FIT = 0.5
"""Share of comparisons in which a candidate must agree; below, the sender is none of the candidates."""

MIN_PROBABILITY = 0.8
"""Probability from which a candidate is named."""

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CapturedVariant:
    """The congestion control of a captured sender: a name, or `unknown`, and the probability of each candidate."""

    name: str
    probability: float
    candidates: Mapping[str, float]
    why: str


@dataclass(frozen=True, slots=True)
class Sender:
    """What the open-loop replay has to know of the captured sender; `steady_writes`: its application writes at a
    constant rate, so that a timer of the application, too, releases departures. `rebuilt`: it was captured at the
    receiver, and its departures are rebuilt."""

    mss_bytes: int
    header_bytes: int
    sack: bool
    initial_window_pkts: int | None
    steady_writes: bool = False
    rebuilt: bool = False


@dataclass(frozen=True, slots=True)
class _Record:
    """The events at a sender as arrays: kinds, times, right edges of what was sent and of the receiver's window."""

    events: list[Event]
    t_ns: Ints
    is_ack: Bools
    is_data: Bools
    sent_edge: Ints
    window_edge: Ints
    is_short: Bools
    is_new: Bools


def identify_variant(
    segments: pa.Table, events: pa.Table, direction: str, sender: Sender, waits: Sequence[tuple[int, int, int]]
) -> CapturedVariant:
    """Name the congestion control of the sender of `direction`; `segments` and `events` hold its flow only.

    `waits` are its waits for data of the application, (begin, end, octet) in ns of the capture.
    """
    record = _record_of(segments, events, (direction, sender.mss_bytes), [end for _, end, _ in waits])
    if record is None:
        return _unknown("the capture lacks the start of the flow")
    shift_ns = int(record.t_ns[0]) - segments["t_ns"][0].as_py()
    begins, ends = (np.array([wait[i] for wait in waits], dtype=np.int64) + shift_ns for i in (0, 1))
    reductions = np.sort(_reductions(events, direction)) + shift_ns
    at = np.searchsorted(begins, record.t_ns, side="right") - 1
    waiting = (at >= 0) & (record.t_ns <= ends[np.maximum(at, 0)]) if len(begins) else np.zeros(len(at), dtype=np.bool_)
    compared = _Compared(waiting, np.searchsorted(reductions, record.t_ns, side="right"))
    fits = {name: fit for name in PRIOR if (fit := _fit_of(name, record, sender, compared)) is not None}
    if not fits:
        return _unknown("the capture cannot be followed: it lacks segments")
    if sender.steady_writes:
        return _judge_bounds(fits, rebuilt=sender.rebuilt)
    pacing = _paced_share(record, ends, rebuilt=sender.rebuilt)
    return _judge(fits, pacing, len(reductions), rebuilt=sender.rebuilt)


def _unknown(why: str) -> CapturedVariant:
    return CapturedVariant(UNKNOWN, 0.0, {}, why)


def _judge(
    fits: Mapping[str, _Fit], pacing: tuple[float, int], reductions: int, *, rebuilt: bool = False
) -> CapturedVariant:
    """Weigh the evidence, and name the candidate that it leaves, if any.

    Departures of one second depend on one another, and so do windows between two reductions. Candidates that pace may
    stop below their windows, so that what exceeds these tells them from one another, too, unless departures are
    `rebuilt`: those may seem to exceed any window.
    """
    paced, rounds = pacing
    windows = {name: (fit.agreement, min(reductions, fit.windows / WINDOWS_EACH)) for name, fit in fits.items()}
    allowed = {} if rebuilt else {name: _allowed(fits[name]) for name in PACED & fits.keys()}
    candidates = _weighed(windows, pacing, allowed)
    best = next(iter(candidates))
    probability = candidates[best]
    if not fits[best].windows:
        return CapturedVariant(
            UNKNOWN, probability, candidates,
            "the congestion window never limited the sender after a reduction: the application or the receiver did",
        )  # fmt: skip
    if fits[best].agreement < MIN_FIT:
        return CapturedVariant(
            UNKNOWN, probability, candidates,
            f"the best match, {best}, agrees with {100 * fits[best].agreement:.0f} % of the windows only",
        )  # fmt: skip
    if best in PACED and not rounds:
        return CapturedVariant(
            UNKNOWN, probability, candidates,
            f"ACKs come so often that no departure shows whether a timer released it, as {best} needs",
        )  # fmt: skip
    if best in PACED and not _is_paced(paced):
        return _unknown(
            f"only the window of {best} fits, and it is not {best}: a timer released {100 * paced:.0f} % of the "
            "departures, and it paces"
        )
    if probability < MIN_PROBABILITY:
        likely = " and ".join(list(candidates)[:2])
        return CapturedVariant(UNKNOWN, probability, candidates, f"the capture cannot separate {likely}")
    return CapturedVariant(
        best, probability, candidates,
        f"its window agrees with what was in flight after {100 * fits[best].agreement:.0f} % of the ACKs, over "
        f"{reductions} reductions; a timer released {100 * paced:.0f} % of the departures",
    )  # fmt: skip


def _judge_bounds(fits: Mapping[str, _Fit], *, rebuilt: bool) -> CapturedVariant:
    """Name the candidate whose window alone allowed what was in flight, if there is one.

    A timer of the application may have released every departure, which then shows no pacing, and may have stopped the
    sender below its window. No sender exceeds its window, which each time between two reductions tests once. What is
    `rebuilt` may: a departure is known to a tick of the sender's clock, that of a lost segment is inferred. A window so
    large that it seldom stopped the sender allows anything, and shows nothing; a sender that paces may stop below its
    window at any time, so that its own may be as large.
    """
    candidates = _weighed({name: _allowed(fit) for name, fit in fits.items()})
    best = next(iter(candidates))
    probability, allowed_n = candidates[best], fits[best].periods - fits[best].exceeded
    if rebuilt:
        return CapturedVariant(
            UNKNOWN, probability, candidates,
            "a timer of the application released the departures, so they show no pacing, and a capture at the receiver "
            "does not show exactly what was in flight",
        )  # fmt: skip
    if fits[best].agreement < MIN_FIT:
        return CapturedVariant(
            UNKNOWN, probability, candidates,
            "a timer of the application released the departures, so they show no pacing, and the window of the best "
            f"candidate, {best}, seldom limited the sender",
        )  # fmt: skip
    if probability < MIN_PROBABILITY or allowed_n < max(1, MIN_FIT * fits[best].periods):
        return CapturedVariant(
            UNKNOWN, probability, candidates,
            "a timer of the application released the departures, so they show no pacing, and not just one candidate "
            "allowed what was in flight",
        )  # fmt: skip
    return CapturedVariant(
        best, probability, candidates,
        f"the application wrote at a constant rate, and its window alone allowed what was in flight, in {allowed_n} of "
        f"{fits[best].periods} times between reductions",
    )  # fmt: skip


def _allowed(fit: _Fit) -> tuple[float, float]:
    """Return in which share of the times between reductions the window allowed what was in flight, and their number,
    less those that exclude nobody."""
    exceeded = max(0, fit.exceeded - DOUBTFUL_PERIODS)
    return (1 - exceeded / fit.periods if fit.periods else 0.0), float(fit.periods)


def _weighed(
    agreements: Mapping[str, tuple[float, float]],
    pacing: tuple[float, int] = (0.0, 0),
    alternatives: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> dict[str, float]:
    """Return the probability of each candidate, the likeliest first, from its agreement and the number of independent
    comparisons, and the share of paced departures and the seconds in which any was counted.

    `alternatives` are agreements that distinguish some candidates from one another, and from no others.
    """
    paced, rounds = pacing
    among = {name: _log_agreement(*one) for name, one in alternatives.items()}
    score = {}
    for name, one in agreements.items():
        released = rounds * _log_likelihood(paced, PACED_SHARE[name in PACED])
        relative = among[name] - max(among.values()) if name in among else 0.0
        score[name] = math.log(PRIOR[name]) + released + _log_agreement(*one) + relative
    top = max(score.values())
    weight = {name: math.exp(value - top) for name, value in score.items()}
    total = sum(weight.values())
    return {name: value / total for name, value in sorted(weight.items(), key=lambda item: -item[1])}


def _log_agreement(share: float, independent: float) -> float:
    """Return the log likelihood that so many independent comparisons agree by this share."""
    return independent * (share * math.log(AGREES) + (1 - share) * math.log(DIFFERS))


def _is_paced(paced: float) -> bool:
    """Return whether a share of paced departures is likelier of a sender that paces than of one clocked by ACKs."""
    clocked, pacing = (_log_likelihood(paced, share) for share in PACED_SHARE)
    return pacing > clocked


def _log_likelihood(paced: float, share: float) -> float:
    return paced * math.log(share) + (1 - paced) * math.log(1 - share)


def _record_of(
    segments: pa.Table, events: pa.Table, sender: tuple[str, int], written_ns: Sequence[int]
) -> _Record | None:
    """Return the events at the captured sender in the order of the capture, with the timeouts of `events` and the
    writes that ended its waits for data. `sender` is the direction of its data and its MSS in octets."""
    direction, mss_bytes = sender
    rows = segments.slice(0, MAX_EVENTS)
    names = ("t_ns", "flags", "seq", "payload_bytes", "ack", "wnd_bytes", "sack", "record", "retransmission")
    columns = {name: rows[name].to_pylist() for name in names}
    sent = [way == direction for way in rows["direction"].cast("string").to_pylist()]
    if not any(sent) or mss_bytes <= 0:
        return None
    begins = bool(columns["flags"][0] & SYN)
    # Where the start is missing, a handshake stands in for it: the window is right after the first reductions.
    shift = 0 if begins else min(seq for seq, own in zip(columns["seq"], sent, strict=True) if own) - 1
    timeouts = {e["record"] for e in events.to_pylist() if e["kind"] == "rto" and e["record"] is not None}
    first_ns, latest_ns, writes = columns["t_ns"][0], 0, deque(sorted(written_ns))
    out: list[Event] = [] if begins else [(LEAD_NS - 2, "syn", 0, 0, 0, []), (LEAD_NS - 1, "syn_ack", 1, 65_535, 0, [])]
    new: list[bool] = [False] * len(out)
    for i, t_ns in enumerate(columns["t_ns"]):
        at_ns = latest_ns = max(latest_ns, t_ns - first_ns + LEAD_NS)
        syn, octets = columns["flags"][i] & SYN, columns["payload_bytes"][i]
        if sent[i] and octets and not columns["retransmission"][i] and writes and writes[0] <= t_ns:
            while writes and writes[0] <= t_ns:
                writes.popleft()
            out.append((at_ns, "write", 0, 0, 0, []))
        if not sent[i] and columns["ack"][i] is not None:
            if columns["ack"][i] <= shift:
                continue  # of data before the capture
            window = (columns["wnd_bytes"][i] or 0) if begins else UNSCALED_WINDOW  # the scale is in the handshake
            sack = [edge - shift for edge in columns["sack"][i] or []]
            blocks = list(zip(sack[::2], sack[1::2], strict=True))
            out.append((at_ns, "syn_ack" if syn else "ack", columns["ack"][i] - shift, window, 0, blocks))
        elif sent[i] and syn:
            out.append((at_ns, "syn", 0, 0, 0, []))
        elif sent[i] and octets:
            if columns["record"][i] in timeouts:
                out.append((at_ns, "timeout", 0, 0, 0, []))
            out.append((at_ns, "data", columns["seq"][i] - shift, octets, 0, []))
        else:
            continue
        new += [False] * (len(out) - len(new) - 1) + [not columns["retransmission"][i]]
    return _as_arrays(out, np.array(new), mss_bytes)


def _as_arrays(events: list[Event], new: Bools, mss_bytes: int) -> _Record:
    kinds = np.array([event[1] for event in events])
    edge = np.array([event[2] + event[3] for event in events])
    size = np.array([event[3] for event in events])
    is_data, is_ack = kinds == "data", (kinds == "ack") | (kinds == "syn_ack")
    return _Record(
        events=events,
        t_ns=np.array([event[0] for event in events]),
        is_ack=is_ack,
        is_data=is_data,
        sent_edge=np.maximum.accumulate(np.where(is_data, edge, 0)),
        window_edge=np.maximum.accumulate(np.where(is_ack, edge, 0)),
        is_short=is_data & (size < mss_bytes),
        is_new=is_data & new,
    )


def _paced_share(record: _Record, ends: Ints, *, rebuilt: bool) -> tuple[float, int]:
    """Return the share of departures that a pacing timer released, and the seconds in which any was counted.

    What an ACK released leaves within its `response_ns`. What a write or a timeout released is not counted, nor where
    that cannot be decided. Departures that are `rebuilt` are known to a tick of the sender's clock only.
    """
    written = set(ends.tolist())
    ack_ns = record.t_ns[record.is_ack].tolist()
    if rebuilt:
        within_ns, decided = [RESPONSE_NS] * len(ack_ns), [True] * len(ack_ns)
    else:
        shown = response_ns(record.t_ns[record.is_ack], record.t_ns[record.is_new])
        within_ns, decided = (array.tolist() for array in shown)
    acks_n, last_ns, cause = 0, -BURST_NS, "other"
    paced, counted, seconds = 0, 0, set()
    for t_ns, is_ack, is_data, new in zip(
        record.t_ns.tolist(), record.is_ack.tolist(), record.is_data.tolist(), record.is_new.tolist(), strict=True
    ):
        acks_n += is_ack
        if not is_data:
            continue
        if not acks_n or not decided[acks_n - 1]:
            cause = "other"
        elif t_ns - ack_ns[acks_n - 1] <= within_ns[acks_n - 1]:
            cause = "ack"
        elif t_ns in written or not new:
            cause = "other"
        elif t_ns - last_ns > BURST_NS:
            cause = "timer"
        last_ns = t_ns
        if cause != "other":
            counted += 1
            paced += cause == "timer"
            seconds.add(t_ns // 1_000_000_000)
    return (paced / counted if counted else 0.0), len(seconds)


def _reductions(events: pa.Table, direction: str) -> Ints:
    """Return the times of fast recoveries and timeouts of the sender of `direction`."""
    rows = zip(*(events[name].cast("string").to_pylist() for name in ("kind", "direction")), strict=True)
    reductions = [kind in ("recovery", "rto") and way == direction for kind, way in rows]
    return np.asarray(events["t_ns"].to_numpy()[np.array(reductions, dtype=np.bool_)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Compared:
    """Of each event of a record: whether the sender waited for its application, and how many reductions came before."""

    waiting: Bools
    period: Ints


@dataclass(frozen=True, slots=True)
class _Fit:
    """How far a candidate explains what was in flight: by its window where that stopped the sender, from 0 to 1 over
    `windows` of them; and as at most its window, but for `exceeded` of `periods` between two reductions."""

    agreement: float
    windows: int
    exceeded: int
    periods: int


def _fit_of(name: str, record: _Record, sender: Sender, compared: _Compared) -> _Fit | None:
    """Compare the candidate's windows with what was in flight; None if it cannot be followed.

    Compared where the sender stopped although the receiver's window and the application allowed more: its window then
    equals what is in flight. A paced sender may stop below its window, never above.
    """
    try:
        states = replay_controller(_configuration(name, sender), 0, record.events)
    except LogError:
        return None
    pipe = sum(
        sign * states[column].to_numpy().astype(np.int64)
        for sign, column in ((1, "outstanding_pkts"), (-1, "sacked_pkts"), (-1, "lost_pkts"), (1, "retransmitted_pkts"))
    )
    window = np.floor(states["cwnd_pkts"].to_numpy())
    excess = pipe - window
    sent = np.flatnonzero(record.is_new)
    exceeded = _exceeded(excess[sent] - 1 > TOLERANCE * window[sent], compared.period[sent])
    stops = np.flatnonzero(record.is_ack) - 1
    stops = stops[(stops >= 0) & record.is_data[stops]]
    room = record.window_edge[stops] - record.sent_edge[stops] >= sender.mss_bytes
    stops = stops[room & ~record.is_short[stops] & ~compared.waiting[stops]]
    if name not in PACED:
        ssthresh = np.asarray(states["ssthresh_pkts"].to_numpy(zero_copy_only=False), dtype=np.float64)
        stops = stops[~np.isnan(ssthresh[stops])]
        excess = np.abs(excess)
    agreement = float(np.mean(_agreement(excess[stops], window[stops]))) if len(stops) else 0.0
    return _Fit(agreement, len(stops), *exceeded)


def _agreement(excess: Floats, window: Floats) -> Floats:
    """Return how far windows explain what was in flight, from 0 to 1, by what exceeded them."""
    return np.asarray(np.exp(-np.maximum(0.0, excess - 1) / (TOLERANCE * window)))


def _exceeded(beyond: Bools, period: Ints) -> tuple[int, int]:
    """Return in how many periods departures were `beyond` the window and its error, and the number of all periods.

    One departure of a period may be a tail loss probe, which the window does not limit (RFC 8985 §7.3); two are not.
    """
    parts = np.split(beyond, np.flatnonzero(np.diff(period)) + 1)
    counts = [int(np.count_nonzero(part)) for part in parts if len(part) > 1]
    return sum(count > 1 for count in counts), len(counts)


def _configuration(name: str, sender: Sender) -> dict[str, Any]:
    """The engine's configuration of the candidate; the link is not used."""
    stack: dict[str, Any] = {"smss_bytes": sender.mss_bytes, "header_bytes": sender.header_bytes, "timestamps": False}
    if not sender.sack:
        stack["sack"] = False
    if sender.initial_window_pkts is not None:
        stack["initial_window_pkts"] = sender.initial_window_pkts
    way: dict[str, Any] = {
        "rate_bps": None, "delay_ns": 1_000_000, "queue": {"kind": "drop_tail", "limit_pkts": 1000},
        "loss": {"kind": "none"}, "in_order": False, "schedule": [],
    }  # fmt: skip
    return {
        "duration_ns": 3_600_000_000_000,
        "path": {"nodes": ["sender", "receiver"], "links": [{"name": "link", "forward": way, "reverse": way}]},
        "flows": [
            {"name": "flow", "variant": name, "profile": "linux", "application": {"kind": "greedy"}, "stack": stack}
        ],
    }

"""What a capture leaves open about a channel, drawn once per seed: the losses of another flight, and rate, delay,
queue, times of changes and outages within their intervals.

Changes an engine configuration; depends on traces, not on runs. All variants of a seed get the same draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.channels.breaks import PRIOR_SHARE, Break, runs_of
from hindflight.channels.estimate import Estimate
from hindflight.channels.trace import Trace

if TYPE_CHECKING:
    import numpy.typing as npt

    Bools = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

STREAM = 0x6472_6177
"""Separates these random numbers from those of the engine, which start from the same seed."""

REPEATS = 8
"""Length of the drawn loss sequence, in lengths of the captured one: no variant sends more."""

PRIOR_BURSTS = 0.1
"""Shape of the prior of the rate of bursts: near zero it is uniform over orders of magnitude. A flight without a loss
says that one in another flight of that length is unlikely (9 %), not that it is impossible."""

MAX_DEVIATION = 0.05
"""Maximum relative standard deviation of a factor for the whole flight. A wider interval is that of a quantity that
varied, and one factor for all of it would exaggerate."""

UNKNOWN_RATE_FACTOR = 4.0
"""Ratio up to which a rate that is known as a lower bound only may exceed it."""

UNKNOWN_QUEUE_PKTS = 1000
"""Queue limit of a draft where the capture never filled the queue: large enough not to invent losses."""

UNKNOWN_QUEUE = (8.0, 50.0)
"""A queue that was never seen full holds up to so many times what was seen in it, and so many packets more."""

HOST_NS = 4_000_000
"""Phase of the host's timer tick (250 Hz) at the start of a flow: no capture shows that of another flight."""


Ended = tuple[Break, int]
"""A break of the link and when it ended."""


@dataclass(frozen=True, slots=True)
class Open:
    """What a trace leaves open: its channel losses, those of `bursts` at `positions` among `packets`, and breaks of the
    link; estimates with intervals; the half width of each unknown edge of an outage, by its time since the start of the
    run. `unknown` marks the bursts that the queue may have made, `causes` counts the losses by the channel and by the
    queue of which the cause is known."""

    positions: Ints
    bursts: Ints
    breaks: tuple[Break, ...]
    packets: int
    rate: Estimate | None
    base_rtt: Estimate | None
    min_rtt: Estimate | None
    queue: Estimate | None
    edges: Mapping[int, int]
    unknown: Bools = field(default_factory=lambda: np.zeros(0, bool))
    causes: tuple[int, int] = (0, 0)


def open_of(trace: Trace, lost: Ints, packets: int) -> Open:
    """Read off `trace` what it leaves open; `lost` are the positions of its losses among `packets`."""
    runs = runs_of(trace, lost)
    return Open(
        positions=runs.positions,
        bursts=runs.bursts,
        breaks=runs.breaks,
        packets=packets,
        rate=trace.estimate("rate_bps"),
        base_rtt=trace.estimate("base_rtt_ns"),
        min_rtt=trace.estimate("min_rtt_ns"),
        queue=trace.estimate("queue_limit_pkts"),
        edges=_edges(trace),
        unknown=runs.unknown,
        causes=_causes(trace),
    )


def _causes(trace: Trace) -> tuple[int, int]:
    """Count the losses of known cause: those of the channel, and those of the queue."""
    import pyarrow.compute as pc

    packets = trace.packets()
    cause = packets.filter(packets["known"])["cause"].cast("string")
    channel, queue = (int(pc.sum(pc.equal(cause, name)).as_py() or 0) for name in ("channel", "queue"))
    return channel, queue


def _edges(trace: Trace) -> dict[int, int]:
    """Return the half width of each unknown edge of an outage: half of it was taken as outage."""
    rows = trace.intervals().to_pylist()
    if not rows:
        return {}
    origin = min(row["t_ns"] for row in rows)
    found = {}
    outages = [row for row in rows if row["cause"] == "outage"]
    for i, row in enumerate(outages):
        if row["known"]:
            continue
        begins = i + 1 < len(outages) and outages[i + 1]["known"] and outages[i + 1]["t_ns"] == row["end_ns"]
        at = row["t_ns"] if begins else row["end_ns"]
        found[at - origin] = row["end_ns"] - row["t_ns"]
    return found


def draw(
    config: Mapping[str, Any],
    open_: Open,
    seed: int,
    for_a_time: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
    traced: int = 0,
) -> dict[str, Any]:
    """Return `config` with one draw of all that is open; link number `traced` is that of the trace.

    `for_a_time` has, by the number of a flow, its application if it wrote for a time.
    """
    rng = np.random.default_rng((STREAM, seed))
    breaks, bursts = _breaks(open_, rng)
    losses = {
        "kind": "trace", "mode": "replayed", "positions": _losses(bursts, open_.packets, rng),
        "known_pkts": REPEATS * open_.packets, "late": [],
    }  # fmt: skip
    rate, delay, queue = _rate(open_, rng), _delay(open_, rng), _queue(open_, rng)
    trip_ns = open_.base_rtt.value if open_.base_rtt and open_.base_rtt.value else 0.0
    duration_ns = config["duration_ns"]
    links = list(config["path"]["links"])
    bottleneck = _bounded(links[traced], open_)
    shifts: dict[int, int] = {}
    drawn = {
        way: _broken(
            _way(bottleneck[way], rate, delay, lambda at: _shifted(at, open_.edges, shifts, trip_ns, rng), duration_ns),
            breaks,
            duration_ns,
            tuple(one for one, _ in breaks),
        )
        for way in ("forward", "reverse")
    }
    forward = {**drawn["forward"], "loss": losses}
    if queue is not None and forward["queue"].get("limit_pkts") == _drafted(open_):
        forward["queue"] = {**forward["queue"], "limit_pkts": queue}
    links[traced] = {**bottleneck, "forward": forward, "reverse": drawn["reverse"]}
    # Whether large writes last a time or an amount does not show: each reading has half of the draws.
    timed = bool(rng.random() < 0.5)
    flows = [
        {**flow, **({"application": for_a_time[number]} if timed and number in for_a_time else {})}
        for number, flow in enumerate(_in_other_phases(config["flows"], rng))
    ]
    return {**config, "path": {**config["path"], "links": links}, "flows": flows}


def in_other_phases(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return `config` with another phase of the host's timer tick for each flow, all else as it is."""
    return {**config, "flows": _in_other_phases(config["flows"], np.random.default_rng((STREAM, seed)))}


def _in_other_phases(flows: Sequence[Mapping[str, Any]], rng: np.random.Generator) -> list[dict[str, Any]]:
    return [{**flow, "start_ns": flow["start_ns"] + int(rng.integers(0, HOST_NS))} for flow in flows]


def as_captured(config: Mapping[str, Any], open_: Open, traced: int = 0) -> dict[str, Any]:
    """Return `config`, whose link number `traced` replays the trace, with the breaks of the link at their times.

    They are not at the packets that they lost: a replay that sends other packets meets them when the captured flow did.
    Bursts lost data only. Those of unknown cause are the queue's, which the replay makes itself, if most others are.
    """
    channel, queue = open_.causes
    dropped = np.repeat(open_.unknown, open_.bursts[: len(open_.unknown)]) if channel < queue else np.zeros(0, bool)
    if not open_.breaks and not dropped.any():
        return dict(config)
    kept = open_.positions[~dropped] if dropped.any() else open_.positions
    breaks = tuple((one, one.end_ns + one.unknown_ns // 2) for one in open_.breaks)
    links = list(config["path"]["links"])
    link = links[traced]
    both = tuple(ended for ended in breaks if ended[0].chance > 0)
    ways = {
        way: _broken(link[way], spans, config["duration_ns"], open_.breaks)
        for way, spans in (("forward", breaks), ("reverse", both))
    }
    ways["forward"]["loss"] = {**link["forward"]["loss"], "positions": [int(at) for at in kept]}
    links[traced] = {**link, **ways}
    return {**config, "path": {**config["path"], "links": links}}


def _breaks(open_: Open, rng: np.random.Generator) -> tuple[tuple[Ended, ...], Ints]:
    """Draw the breaks of the link and when each ended. Return the lengths of the bursts, too."""
    breaks: list[Ended] = []
    bursts = open_.bursts[_by_channel(open_, rng)].tolist()
    for one in open_.breaks:
        if rng.random() < one.chance:
            breaks.append((one, one.end_ns + int(one.unknown_ns * rng.random())))
        else:
            bursts.append(one.packets)
    return tuple(breaks), np.array(bursts, dtype=np.int64)


def _by_channel(open_: Open, rng: np.random.Generator) -> Bools:
    """Draw which bursts the channel made: of those of unknown cause, the share that it has of the others, from its
    posterior. The queue of the replay makes its own."""
    ours = np.ones(len(open_.bursts), bool)
    if open_.unknown.any():
        channel, queue = open_.causes
        share = rng.beta(channel + PRIOR_SHARE, queue + PRIOR_SHARE)
        ours = ~open_.unknown | (rng.random(len(ours)) < share)
    return ours


def _losses(bursts: Ints, packets: int, rng: np.random.Generator) -> list[int]:
    """Draw the positions of the losses of another flight from the lengths of the captured bursts among `packets`.

    Their bursts arrive at random with a rate from its posterior, a Gamma distribution. Each goes on with the next
    packet with a probability from its posterior, a Beta distribution, so that its length is geometric: few bursts do
    not show how long the longest gets, and one that outlasts what is in flight stops a flow until a retransmission
    survives.
    """
    length = REPEATS * packets
    per_packet = rng.gamma(len(bursts) + PRIOR_BURSTS) / packets
    count = int(rng.poisson(per_packet * length))
    starts = np.sort(rng.integers(0, length, size=count))
    sizes = _lengths(bursts, count, rng)
    # The place of each packet in its burst, from 0.
    places = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    lost = np.unique(np.repeat(starts, sizes) + places)
    positions: list[int] = lost[lost < length].tolist()
    return positions


def _lengths(bursts: Ints, count: int, rng: np.random.Generator) -> Ints:
    """Draw the lengths of `count` bursts, single packets where none was captured."""
    if not len(bursts):
        return np.ones(count, np.int64)
    ends = rng.beta(len(bursts) + PRIOR_SHARE, int(bursts.sum()) - len(bursts) + PRIOR_SHARE)
    return rng.geometric(max(ends, 1 / int(bursts.sum() + 1)), size=count)


def _broken(
    way: Mapping[str, Any], breaks: tuple[Ended, ...], duration_ns: int, around: tuple[Break, ...]
) -> dict[str, Any]:
    """Return one direction of a link with its breaks as outages, one with each outage that they overlap.

    A change that is first seen after a break of those `around` happened in it, at a time that nothing shows: at its
    beginning, as with an outage.
    """
    none = {"rate_bps": None, "delay_ns": None, "hold": None}
    spans = [(max(0, one.begin_ns), min(end, duration_ns - 1)) for one, end in breaks if one.begin_ns < duration_ns - 1]
    if not spans and not around:
        return dict(way)
    others = []
    since: int | None = None
    for change in way["schedule"]:
        if change["outage"] is True and since is None:
            since = change["at_ns"]
        elif change["outage"] is False and since is not None:
            spans.append((since, change["at_ns"]))
            since = None
        if any(value is not None for key, value in change.items() if key not in ("at_ns", "outage")):
            within = [one.begin_ns for one in around if one.begin_ns <= change["at_ns"] <= one.seen_ns]
            others.append({**change, "outage": None, "at_ns": max(0, min([change["at_ns"], *within]))})
    if since is not None:
        spans.append((since, duration_ns))
    edges = [
        {**none, "at_ns": at_ns, "outage": down}
        for begin, end in _merged(spans)
        for at_ns, down in ((begin, True), (end, False))
        if at_ns < duration_ns
    ]
    return {**way, "schedule": sorted([*others, *edges], key=lambda change: change["at_ns"])}


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union of spans of time, in order."""
    kept: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if kept and begin <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        elif end > begin:
            kept.append((begin, end))
    return kept


def _within(estimate: Estimate | None, rng: np.random.Generator) -> float:
    """Draw a factor from the interval of an estimate, normal with its 95 %."""
    if estimate is None or not estimate.value or estimate.low is None or estimate.high is None:
        return 1.0
    deviation = min(MAX_DEVIATION, float(estimate.high - estimate.low) / (2 * 1.96 * estimate.value))
    return float(1 + deviation * np.clip(rng.standard_normal(), -3, 3))


def _rate(open_: Open, rng: np.random.Generator) -> float:
    """Draw a factor for the rates; one that is a lower bound only may be larger, up to an upper bound."""
    rate = open_.rate
    if rate is None or rate.value is not None:
        return _within(rate, rng)
    most = rate.high / rate.low if rate.high is not None and rate.low else UNKNOWN_RATE_FACTOR
    return float(min(most, UNKNOWN_RATE_FACTOR) ** rng.random())


def _bounded(link: Mapping[str, Any], open_: Open) -> Mapping[str, Any]:
    """Return `link` with the lower bound of its rate where a draft has no rate, because it is known as no more."""
    if open_.rate is None or open_.rate.value is not None or not open_.rate.low:
        return link
    ways = {way: link[way] for way in ("forward", "reverse") if link[way]["rate_bps"] is None}
    return {**link, **{way: {**found, "rate_bps": float(open_.rate.low)} for way, found in ways.items()}}


def _delay(open_: Open, rng: np.random.Generator) -> float:
    """Draw a factor for the delays from the scatter of the smallest round trips: what is subtracted from them for
    serialisation is added again by the link."""
    return _within(open_.min_rtt, rng)


def _drafted(open_: Open) -> int:
    """Return the queue limit that a draft has; another one was chosen by its user, and stays."""
    known = None if open_.queue is None else open_.queue.value
    return UNKNOWN_QUEUE_PKTS if known is None else round(known)


def _queue(open_: Open, rng: np.random.Generator) -> int | None:
    """Draw the limit of the queue; None to leave it."""
    queue = open_.queue
    if queue is None:
        return None
    if queue.value is None:
        low = max(1.0, queue.low or 1.0)
        factor, more = UNKNOWN_QUEUE
        ratio = float((factor * low + more) / low)
        return round(low * math.exp(math.log(ratio) * rng.random()))
    if queue.low is None or queue.high is None:
        return None
    # The limit lies between a queue that took a packet and one that did not: as often below the estimate as above it,
    # however far either end is from it.
    place = 2 * float(rng.random())
    low, high, share = (queue.low, queue.value, place) if place < 1 else (queue.value, queue.high, place - 1)
    return max(1, round(low + (high - low) * share))


def _shifted(
    at_ns: int, edges: Mapping[int, int], shifts: dict[int, int], trip_ns: float, rng: np.random.Generator
) -> int:
    """Draw when a change happened: within the unknown time at an edge of an outage, else within half a round trip."""
    if at_ns not in shifts:
        near = [half for edge, half in edges.items() if abs(edge - at_ns) <= trip_ns / 2 + 1_000_000]
        half = near[0] if near else trip_ns / 4
        shifts[at_ns] = round(half * (2 * rng.random() - 1))
    return at_ns + shifts[at_ns]


def _way(way: Mapping[str, Any], rate: float, delay: float, shifted: Any, duration_ns: int) -> dict[str, Any]:
    """Return one direction of a link with its rates and delays scaled and its changes shifted, in order."""
    schedule = []
    latest = 0
    for change in way["schedule"]:
        latest = min(max(latest, shifted(change["at_ns"])), duration_ns - 1)
        schedule.append({**change, "at_ns": latest, **_scaled(change, rate, delay)})
    return {**way, **_scaled(way, rate, delay), "schedule": schedule}


def _scaled(part: Mapping[str, Any], rate: float, delay: float) -> dict[str, Any]:
    scaled: dict[str, Any] = {}
    if part["rate_bps"] is not None:
        scaled["rate_bps"] = part["rate_bps"] * rate
    if part["delay_ns"] is not None:
        scaled["delay_ns"] = max(0, round(part["delay_ns"] * delay))
    return scaled

"""What a capture leaves open about a channel, drawn once per seed: the losses of another flight, and rate, delay,
queue, times of changes and outages within their intervals.

Changes an engine configuration; depends on traces, not on runs. All variants of a seed get the same draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.channels.estimate import Estimate
from hindflight.channels.trace import Trace

if TYPE_CHECKING:
    import numpy.typing as npt

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

RARE_BURST = 0.01
"""A burst that the lengths of all others make less likely than this is a break of the link: it lasts a time, not a
number of packets, and belongs to its time as an outage does."""

OTHER_BURST_PKTS = 3
"""Length of the burst that few bursts are compared with."""

NEAR_PKTS = 200
"""Packets before a break whose smallest round trip tells how long its first packet waited in the queue."""

HOST_NS = 4_000_000
"""Phase of the host's timer tick (250 Hz) at the start of a flow: no capture shows that of another flight."""


@dataclass(frozen=True, slots=True)
class Open:
    """What a trace leaves open: bursts of channel losses (their lengths) among `packets`, breaks of the link that are
    too short for an outage (begin and end in ns since the start of the run), estimates with intervals, the half width
    of each unknown edge of an outage, by its time since the start of the run."""

    bursts: Ints
    breaks: tuple[tuple[int, int], ...]
    packets: int
    rate: Estimate | None
    base_rtt: Estimate | None
    min_rtt: Estimate | None
    queue: Estimate | None
    edges: Mapping[int, int]


def open_of(trace: Trace, lost: Ints, packets: int) -> Open:
    """Read off `trace` what it leaves open; `lost` are the positions of its losses among `packets`."""
    ends = np.append(np.flatnonzero(np.diff(lost) != 1), len(lost) - 1) if len(lost) else np.zeros(0, np.int64)
    lengths = np.diff(ends, prepend=-1)
    rare = _rare(lengths)
    return Open(
        bursts=lengths[~rare],
        breaks=_breaks(trace, lost[ends[rare] - lengths[rare] + 1], lengths[rare]) if rare.any() else (),
        packets=packets,
        rate=trace.estimate("rate_bps"),
        base_rtt=trace.estimate("base_rtt_ns"),
        min_rtt=trace.estimate("min_rtt_ns"),
        queue=trace.estimate("queue_limit_pkts"),
        edges=_edges(trace),
    )


def _rare(lengths: Ints) -> npt.NDArray[np.bool_]:
    """Mark the bursts that are too long for a geometric distribution with the mean of the others, longest first.

    One burst of OTHER_BURST_PKTS more stands for what few bursts cannot show.
    """
    rare = np.zeros(len(lengths), bool)
    for longest in np.argsort(-lengths, kind="stable"):
        left = int((~rare).sum())
        mean = (int(lengths[~rare].sum() - lengths[longest]) + OTHER_BURST_PKTS) / left
        # The chance that one of so many bursts is as long or longer.
        chance = 1 - (1 - (1 - 1 / mean) ** int(lengths[longest] - 1)) ** left
        if chance >= RARE_BURST:
            break
        rare[longest] = True
    return rare


def _breaks(trace: Trace, firsts: Ints, lengths: Ints) -> tuple[tuple[int, int], ...]:
    """Return when the link was down so that it lost the packets of each burst.

    A break loses what leaves the queue while it lasts and what would arrive then. One shorter than the path therefore
    shows two bursts, a one-way delay apart, of which the first had left before it; a longer one shows one burst.
    """
    intervals = trace.intervals()
    if intervals.num_rows == 0:
        return ()
    import pyarrow.compute as pc

    origin = pc.min(intervals["t_ns"]).as_py()
    packets = trace.packets()
    packets = packets.filter(pc.is_valid(packets["position"])).sort_by("position")
    position, sent_ns = packets["position"].to_numpy(), packets["t_ns"].to_numpy()
    trip_ns = packets["delay_ns"].cast("float64").to_numpy(zero_copy_only=False)
    found: list[tuple[int, int]] = []
    for first, length in zip(firsts, lengths, strict=True):
        at = int(np.searchsorted(position, first))
        near = trip_ns[max(0, at - NEAR_PKTS) : at]
        near = near[~np.isnan(near)]
        # The first packet waited as long as the one before it.
        wait_ns, one_way_ns = (int(near[-1] - near.min()), int(near.min() / 2)) if len(near) else (0, 0)
        last = min(at + int(length), len(position)) - 1
        lasts_ns = max(1, int(sent_ns[last] - sent_ns[at]))
        left_ns = int(sent_ns[at]) - origin + wait_ns
        if found and left_ns <= found[-1][1]:
            continue
        begin = left_ns + one_way_ns
        found.append((begin, left_ns + lasts_ns if lasts_ns >= 2 * one_way_ns else begin + lasts_ns))
    return tuple(found)


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
    losses = {
        "kind": "trace", "mode": "replayed", "positions": _losses(open_, rng),
        "known_pkts": REPEATS * open_.packets, "late": [],
    }  # fmt: skip
    rate, delay, queue = _rate(open_, rng), _delay(open_, rng), _queue(open_, rng)
    trip_ns = open_.base_rtt.value if open_.base_rtt and open_.base_rtt.value else 0.0
    duration_ns = config["duration_ns"]
    links = list(config["path"]["links"])
    bottleneck = links[traced]
    shifts: dict[int, int] = {}
    drawn = {
        way: _broken(
            _way(bottleneck[way], rate, delay, lambda at: _shifted(at, open_.edges, shifts, trip_ns, rng), duration_ns),
            open_.breaks,
            duration_ns,
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
        {
            **flow,
            "start_ns": flow["start_ns"] + int(rng.integers(0, HOST_NS)),
            **({"application": for_a_time[number]} if timed and number in for_a_time else {}),
        }
        for number, flow in enumerate(config["flows"])
    ]
    return {**config, "path": {**config["path"], "links": links}, "flows": flows}


def _losses(open_: Open, rng: np.random.Generator) -> list[int]:
    """Draw the positions of the losses of another flight.

    Their bursts arrive at random with a rate from its posterior, a Gamma distribution, and are as long as those
    captured.
    """
    length = REPEATS * open_.packets
    per_packet = rng.gamma(len(open_.bursts) + PRIOR_BURSTS) / open_.packets
    count = int(rng.poisson(per_packet * length))
    starts = np.sort(rng.integers(0, length, size=count))
    sizes = rng.choice(open_.bursts, size=count) if len(open_.bursts) else np.ones(count, np.int64)
    lost = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, sizes, strict=True)]) if count else starts
    return sorted({int(position) for position in lost if position < length})


def _broken(way: Mapping[str, Any], breaks: tuple[tuple[int, int], ...], duration_ns: int) -> dict[str, Any]:
    """Return one direction of a link with its breaks as outages, one with each outage that they overlap."""
    none = {"rate_bps": None, "delay_ns": None, "hold": None}
    spans = [(max(0, begin), min(end, duration_ns - 1)) for begin, end in breaks if begin < duration_ns - 1]
    if not spans:
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
            others.append({**change, "outage": None})
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
    """Draw a factor for the rates; one that is a lower bound only may be larger."""
    bounded = open_.rate is not None and open_.rate.value is None
    return float(UNKNOWN_RATE_FACTOR ** rng.random()) if bounded else _within(open_.rate, rng)


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
    return max(1, round(queue.value + (queue.high - queue.low) / (2 * 1.96) * float(rng.standard_normal())))


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

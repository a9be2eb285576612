"""Compares the channel extracted from a sender's capture with the emulated link: losses by cause, delay, rate, outages.

Depends on `extract` and on the run's parameters. A stretch lies between two changes of the link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from validation.captures.scores import Counts
from validation.captures.stretches import Given, Stretch, pooled, score_stretch
from validation.captures.truth import FlowTruth, RunTruth

if TYPE_CHECKING:
    from hindflight.channels.extraction.extract import Extraction

CAUSES = {"dropped_loss": "channel", "dropped_queue": "queue", "dropped_outage": "outage"}
"""The link log's word, and the table's."""

SHORT_OUTAGE_NS = 200_000_000
"""An outage shorter than this, or than one RTT, may be named channel or outage."""

TOLERANCE = 0.05
"""Relative error of rate or delay from which time counts as wrong."""

MIN_PACKETS = 200
"""Data packets of a stretch that is judged."""


@dataclass(frozen=True, slots=True)
class LinkScore:
    """Losses by cause; time judged, and time with delay or rate off by more than TOLERANCE or not known, in ns.

    `stretches` are the scores of RTT, rate and queue between two changes.
    `outage_edges` are the errors of the start and of the end of each outage that was found, in round trips of the link;
    `edges_unknown` counts those that the extraction says to be uncertain by more than one, `edges_unmarked` those of
    the same outages that no packet marks to one: all packets of both directions leave more than two open.
    `edges_withheld` counts those of `edges_unknown` that packets mark.
    """

    causes: Mapping[str, Counts] = field(default_factory=dict)
    judged_ns: int = 0
    delay_off_ns: int = 0
    delay_unknown_ns: int = 0
    rate_off_ns: int = 0
    rate_unknown_ns: int = 0
    outages: Counts = field(default_factory=Counts)
    outage_edges: list[float] = field(default_factory=list)
    edges_unknown: int = 0
    edges_unmarked: int = 0
    edges_withheld: int = 0
    stretches: Mapping[str, Given] = field(default_factory=dict)

    def __add__(self, other: LinkScore) -> LinkScore:
        """Pool two flows."""
        names = {*self.causes, *other.causes}
        return LinkScore(
            {name: self.causes.get(name, Counts()) + other.causes.get(name, Counts()) for name in sorted(names)},
            self.judged_ns + other.judged_ns,
            self.delay_off_ns + other.delay_off_ns,
            self.delay_unknown_ns + other.delay_unknown_ns,
            self.rate_off_ns + other.rate_off_ns,
            self.rate_unknown_ns + other.rate_unknown_ns,
            self.outages + other.outages,
            self.outage_edges + other.outage_edges,
            self.edges_unknown + other.edges_unknown,
            self.edges_unmarked + other.edges_unmarked,
            self.edges_withheld + other.edges_withheld,
            pooled(self.stretches, other.stretches),
        )


def score_link(run: RunTruth, flow: FlowTruth, extraction: Extraction) -> LinkScore:
    """Compare the channel that one flow shows with the run's link."""
    rows = extraction.channel.to_pylist()
    stretches = stretches_of(run, flow.transmissions[-1].t_ns)
    intervals = [row for row in rows if row["kind"] == "interval"]
    overflowed = any(packet.fate == "dropped_queue" for one in run.flows for packet in one.transmissions)
    score = LinkScore(causes=_causes(flow, [row for row in rows if row["kind"] == "packet"], stretches))
    for stretch in stretches:
        sent = sum(stretch.start_ns <= packet.t_ns < stretch.end_ns for packet in flow.transmissions)
        if not stretch.outage and sent >= MIN_PACKETS:
            score += _stretch_score(stretch, intervals)
            shown = score_stretch(stretch, run.params["queue"], run.queued, extraction.stretches)
            if "queue" in shown and not overflowed:
                # A queue that never dropped a packet shows no limit.
                shown["queue"] = replace(shown["queue"], hidden=1)
            score += LinkScore(stretches=shown)
    return score + _outages(run, stretches, [row for row in intervals if row["lost"]])


def stretches_of(run: RunTruth, end_ns: int) -> list[Stretch]:
    """Return the states of the link in order, from the first SYN to `end_ns`."""
    state: dict[str, Any] = {"rate": run.params["rate"], "rtt_ms": run.params["rtt_ms"], "outage": 0}
    changes: dict[int, dict[str, Any]] = {run.t0_ns: {}}
    for at_s, what, value in run.params.get("events", []):
        changes.setdefault(run.t0_ns + round(at_s * 1e9), {})[what] = value
    times = [*sorted(changes), end_ns]
    found = []
    for start, end in pairwise(times):
        state |= changes[start]
        if end > start:
            found.append(Stretch(start, end, state["rate"], state["rtt_ms"] * 1e6, bool(state["outage"])))
    return found


def _causes(flow: FlowTruth, packets: Sequence[Mapping[str, Any]], stretches: Sequence[Stretch]) -> dict[str, Counts]:
    """Losses by cause; what the analysis leaves unknown counts as neither right nor wrong, what it misses as missed.

    Unknown is what it does not claim to know, as in the counts of an extraction: whether a packet was lost, or why.
    """
    said = {row["record"]: row["cause"] if row["known"] else "unknown" for row in packets}
    counts = {name: Counts() for name in CAUSES.values()}
    brief = [
        (s.start_ns, s.end_ns) for s in stretches if s.outage and s.end_ns - s.start_ns < max(SHORT_OUTAGE_NS, s.rtt_ns)
    ]
    for packet in flow.transmissions:
        truth, claim = CAUSES.get(packet.fate), said.get(packet.record, "none")
        if truth is None and claim in ("none", "unknown"):
            continue
        either = truth == "outage" and claim == "channel" and _in_brief_outage(packet.arrived_ns, packet.t_ns, brief)
        if truth is not None and (claim == truth or either):
            counts[truth] += Counts(right=1)
        elif truth is not None and claim == "unknown":
            counts[truth] += Counts(unknown=1)
        else:
            if truth is not None:
                counts[truth] += Counts(missed=1)
            if claim in counts:
                counts[claim] += Counts(wrong=1)
    return counts


def _in_brief_outage(arrived_ns: int, sent_ns: int, brief: Sequence[tuple[int, int]]) -> bool:
    return any(sent_ns < end and max(arrived_ns, sent_ns) >= start for start, end in brief)


def _stretch_score(stretch: Stretch, intervals: Sequence[Mapping[str, Any]]) -> LinkScore:
    judged = delay_off = delay_unknown = rate_off = rate_unknown = 0
    for row in intervals:
        start, end = max(stretch.start_ns, row["t_ns"]), min(stretch.end_ns, row["end_ns"])
        if end <= start:
            continue
        span = end - start
        judged += span
        if row["delay_ns"] is None or not row["known"]:
            delay_unknown += span
        elif abs(2 * row["delay_ns"] / stretch.rtt_ns - 1) > TOLERANCE:
            delay_off += span
        if row["rate_bps"] is None or not row["known"]:
            rate_unknown += span
        elif abs(row["rate_bps"] / stretch.rate_bps - 1) > TOLERANCE:
            rate_off += span
    return LinkScore({}, judged, delay_off, delay_unknown, rate_off, rate_unknown)


def _outages(run: RunTruth, stretches: Sequence[Stretch], claimed: Sequence[Mapping[str, Any]]) -> LinkScore:
    """Match outages that overlap; one that no packet met may be missed without being counted."""
    merged: list[_Claimed] = []
    for row in claimed:
        width_ns = 0 if row["known"] else row["end_ns"] - row["t_ns"]
        if merged and row["t_ns"] <= merged[-1].end_ns:
            merged[-1] = replace(merged[-1], end_ns=row["end_ns"], end_within_ns=width_ns)
        else:
            merged.append(_Claimed(row["t_ns"], row["end_ns"], width_ns, width_ns))
    found = LinkScore()
    matched, right, missed = set(), 0, 0
    for stretch in stretches:
        if not stretch.outage:
            continue
        slack = round(stretch.rtt_ns)
        hit = next(
            (
                i
                for i, one in enumerate(merged)
                if one.start_ns < stretch.end_ns + slack and one.end_ns > stretch.start_ns - slack
            ),
            None,
        )
        if hit is not None:
            right += 1
            matched.add(hit)
            found += _edges(merged[hit], stretch, _edge_gaps_ns(run, stretch))
        elif _lost_data(run, stretch) and stretch.end_ns - stretch.start_ns >= max(SHORT_OUTAGE_NS, slack):
            missed += 1
    counts = Counts(right, len(merged) - len(matched), missed)
    return found + LinkScore(outages=counts)


def _edges(claimed: _Claimed, outage: Stretch, gaps_ns: tuple[float, float]) -> LinkScore:
    """Compare the start and the end of an outage that was found, given the times that all packets leave open there."""
    errors, unknown, unmarked, withheld = [], 0, 0, 0
    for said_ns, within_ns, true_ns, gap_ns in zip(
        (claimed.start_ns, claimed.end_ns),
        (claimed.start_within_ns, claimed.end_within_ns),
        (outage.start_ns, outage.end_ns),
        gaps_ns,
        strict=True,
    ):
        # The middle of what is open is within one round trip of the edge if two are open or less.
        is_unmarked, is_unknown = gap_ns > 2 * outage.rtt_ns, within_ns > round(outage.rtt_ns)
        unmarked += is_unmarked
        unknown += is_unknown
        withheld += is_unknown and not is_unmarked
        if not is_unknown:
            errors.append(abs(said_ns - true_ns) / outage.rtt_ns)
    return LinkScore(outage_edges=errors, edges_unknown=unknown, edges_unmarked=unmarked, edges_withheld=withheld)


def _lost_data(run: RunTruth, outage: Stretch) -> bool:
    """Return whether an outage lost data; one that lost none is none that a capture shows."""
    sent = [packet for flow in run.flows for packet in flow.transmissions]
    return any(p.fate == "dropped_outage" and outage.start_ns <= p.arrived_ns <= outage.end_ns for p in sent)


def _edge_gaps_ns(run: RunTruth, outage: Stretch) -> tuple[float, float]:
    """Return the times around the start and the end of an outage in which the link neither lost nor passed a packet, of
    data or ACKs: all from the last one before to the first one behind if it lost none.

    No reader of the capture knows more: it would need the true fate of every packet, also of the ACKs that are missing.
    A packet that was handed over found the link up then, and when it left the queue: half a round trip before, by the
    path behind the outage. What left before and was handed over behind it had the former way, which is not counted.
    """
    down = [t_ns for t_ns in run.broken if outage.start_ns <= t_ns <= outage.end_ns]
    seen = [t_ns - way_ns for t_ns in run.passed for way_ns in (0.0, outage.rtt_ns / 2)]
    before = max((t_ns for t_ns in seen if t_ns <= outage.start_ns), default=float(run.t0_ns))
    after = min((t_ns for t_ns in seen if t_ns >= outage.end_ns), default=float("inf"))
    return min(down, default=after) - before, after - max(down, default=before)


@dataclass(frozen=True, slots=True)
class _Claimed:
    """An outage that is claimed, and how far off its edges may be."""

    start_ns: int
    end_ns: int
    start_within_ns: int
    end_within_ns: int

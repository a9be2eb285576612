"""Compares claims with the truth of one flow: losses and causes packet by packet, windows round trip by round trip.

Depends on neither captures nor the engine. A score of several runs is the sum of their counts, never the mean of their
ratios.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from validation.captures.claims import UNKNOWN, CauseClaim, LossClaim, WindowClaim
from validation.captures.truth import FlowTruth, Steps

CAUSES = ("fast", "sack/rack", "rto", "after_rto", "tlp")


@dataclass(frozen=True, slots=True)
class Counts:
    """Right, wrong and missed claims of one kind; what is said to be unknown counts as neither."""

    right: int = 0
    wrong: int = 0
    missed: int = 0
    unknown: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Pool two flows."""
        return Counts(
            self.right + other.right, self.wrong + other.wrong, self.missed + other.missed, self.unknown + other.unknown
        )

    @property
    def precision(self) -> float | None:
        """Share of the claims that are right; None without claims."""
        return _share(self.right, self.right + self.wrong)

    @property
    def recall(self) -> float | None:
        """Share of the cases that are claimed; None without cases."""
        return _share(self.right, self.right + self.missed)

    @property
    def cases(self) -> int:
        """Cases that were decided."""
        return self.right + self.missed


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def score_losses(flow: FlowTruth, claims: Sequence[LossClaim], undecided: Sequence[LossClaim] = ()) -> Counts:
    """A transmission that no claim names is claimed not lost; a claim that names none is wrong.

    Octets that are `undecided` in unknown segments leave open only segments of which no claim names a transmission as
    lost: of the others, the claims tell which copies were lost.
    """
    lost = {packet.record for packet in flow.transmissions if packet.lost}
    claimed = _named(flow, claims)
    decided = {packet.seq for packet in flow.transmissions if packet.record in claimed}
    unknown = (_named(flow, undecided) | _within(flow, undecided, decided)) - claimed
    right = len(claimed & lost)
    return Counts(right, len(claims) - right, len(lost - claimed - unknown), len(unknown))


def _named(flow: FlowTruth, claims: Sequence[LossClaim]) -> set[int]:
    """Return the records of the transmissions that claims name, each at most one."""
    known = {packet.record for packet in flow.transmissions}
    by_copy: dict[tuple[int, int | None], int] = {
        (packet.seq, packet.copy): packet.record for packet in flow.transmissions
    }
    named = {by_copy.get((claim.seq, claim.copy)) if claim.record is None else claim.record for claim in claims}
    return {record for record in named if record in known}


def _within(flow: FlowTruth, claims: Sequence[LossClaim], decided: set[int]) -> set[int]:
    """Return the records of all transmissions in the octets of claims that name neither a record nor a copy, but for
    those of the segments that begin at `decided`."""
    octets = [(one.seq, one.end) for one in claims if one.record is None and one.copy is None and one.end is not None]
    return {
        packet.record
        for packet in flow.transmissions
        if packet.seq not in decided and any(start <= packet.seq and packet.end <= end for start, end in octets)
    }


@dataclass(frozen=True, slots=True)
class CauseScore:
    """Counts of each cause that occurs or is claimed; `spurious_shown` counts what the capture itself shows, `needed`
    retransmissions of which no earlier copy had arrived."""

    by_cause: dict[str, Counts] = field(default_factory=dict)
    spurious: Counts = field(default_factory=Counts)
    spurious_shown: Counts = field(default_factory=Counts)
    needed: Counts = field(default_factory=Counts)

    def __add__(self, other: CauseScore) -> CauseScore:
        """Pool two flows."""
        causes = {**self.by_cause}
        for cause, counts in other.by_cause.items():
            causes[cause] = causes.get(cause, Counts()) + counts
        return CauseScore(
            causes,
            self.spurious + other.spurious,
            self.spurious_shown + other.spurious_shown,
            self.needed + other.needed,
        )


def score_causes(flow: FlowTruth, claims: Iterable[CauseClaim]) -> CauseScore:
    """A retransmission without a claim is missed; a claim of what was no retransmission is wrong."""
    claimed = {claim.record: claim for claim in claims}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for packet in flow.transmissions:
        claim = claimed.get(packet.record)
        named = None if claim is None else claim.cause
        if packet.unsettled or (packet.cause is None and named in (None, UNKNOWN)):
            continue
        if named == packet.cause:
            counts[str(named)]["right"] += 1
            continue
        if named == UNKNOWN:
            counts[str(packet.cause)]["unknown"] += 1
            continue
        if named is not None:
            counts[named]["wrong"] += 1
        if packet.cause is not None:
            counts[packet.cause]["missed"] += 1
    by_cause = {cause: Counts(**counts[cause]) for cause in CAUSES if cause in counts}
    return CauseScore(by_cause, *_score_spurious(flow, claimed))


def _score_spurious(flow: FlowTruth, claimed: dict[int, CauseClaim]) -> tuple[Counts, Counts, Counts]:
    graded = [packet for packet in flow.transmissions if packet.retransmitted and not packet.ungraded]
    said = {record for record, claim in claimed.items() if claim.spurious}
    were = {packet.record for packet in graded if packet.spurious}
    shown = {packet.record for packet in graded if packet.shown}
    said &= {packet.record for packet in graded}
    all_ = Counts(len(said & were), len(said - were), len(were - said))
    truly = {packet.record for packet in graded} - were
    needed = {record for record, claim in claimed.items() if claim.spurious is False} & {p.record for p in graded}
    counts = Counts(len(needed & truly), len(needed - truly), len(truly - needed))
    return all_, Counts(len(said & shown), len(said - were), len(shown - said)), counts


@dataclass(frozen=True, slots=True)
class WindowScore:
    """Relative errors over the counted round trips that have an estimate, and how many of all those that count.

    `within`: off by at most one segment or 12 %. `held` of `bounded` intervals hold the truth; `widths` are relative to
    it.
    """

    errors: list[float] = field(default_factory=list)
    counted: int = 0
    within: int = 0
    held: int = 0
    bounded: int = 0
    widths: list[float] = field(default_factory=list)

    def __add__(self, other: WindowScore) -> WindowScore:
        """Pool two flows."""
        return WindowScore(
            self.errors + other.errors,
            self.counted + other.counted,
            self.within + other.within,
            self.held + other.held,
            self.bounded + other.bounded,
            self.widths + other.widths,
        )

    def quantile(self, share: float) -> float | None:
        """Return a quantile of the relative error, linear between order statistics; None without errors."""
        return quantile(self.errors, share)

    @property
    def coverage(self) -> float | None:
        """Share of the counted round trips with an estimate."""
        return _share(len(self.errors), self.counted)


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return a quantile, linear between order statistics; None of nothing."""
    return float(np.quantile(values, share)) if values else None


def score_windows(flow: FlowTruth, claims: Sequence[WindowClaim]) -> WindowScore:
    """cwnd by its median in each round trip; for bbr, which seldom fills its cwnd, the mean in-flight."""
    bbr = flow.congestion_control == "bbr"
    ordered = sorted(claims, key=lambda claim: claim.t_ns)
    times = [claim.t_ns for claim in ordered]
    if not times:
        return WindowScore(counted=sum(tile.excluded is None for tile in flow.tiles))
    values = Steps(times, [_pkts(c.inflight_bytes if bbr else c.cwnd_bytes, flow) for c in ordered], begins=True)
    low, high = (Steps(times, [_pkts(bound, flow) for bound in bounds], begins=True) for bounds in _bounds(ordered))
    score = WindowScore()
    for tile in flow.tiles:
        if tile.excluded is not None:
            continue
        span = tile.start_ns, tile.end_ns
        score += WindowScore(counted=1)
        if 2 * sum(weight for weight, _ in values.pieces(*span)) < tile.end_ns - tile.start_ns:
            continue
        truth = tile.inflight_pkts if bbr else tile.cwnd_pkts
        estimate = (values.mean if bbr else values.median)(*span) or 0.0
        error = abs(estimate - truth)
        bounds = None if bbr else (low.median(*span), high.median(*span))
        score += _tile_score(error, truth, bounds)
    return score


def _tile_score(error: float, truth: float, bounds: tuple[float | None, float | None] | None) -> WindowScore:
    held, bounded, widths = 0, 0, []
    if bounds is not None and bounds[0] is not None and bounds[1] is not None:
        held, bounded = int(bounds[0] <= truth <= bounds[1]), 1
        widths = [(bounds[1] - bounds[0]) / truth]
    within = int(error <= max(1.0, 0.12 * truth))
    return WindowScore([error / truth], 0, within, held, bounded, widths)


def _bounds(claims: Sequence[WindowClaim]) -> tuple[list[float | None], list[float | None]]:
    return [claim.low_bytes for claim in claims], [claim.high_bytes for claim in claims]


def _pkts(octets: float | None, flow: FlowTruth) -> float | None:
    return None if octets is None else octets / flow.smss_bytes

"""The self-check: candidates for the captured variant, replayed over the captured channel and compared with the
capture.

A replay that cannot reproduce the captured flow says nothing about other variants, so this comes first in every
report. Depends on outcomes (hindflight.replay.outcome) and the scenario, not on tables or
the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hindflight.replay.outcome import Outcome, cwnd_error
from hindflight.replay.scenario.model import Scenario
from hindflight.toolkit.schema import OTHERS_AS_TCP_METRIC

GOODPUT_BOUND = 0.05
"""Relative difference in goodput up to which the self-check passes."""

RETRANSMISSIONS_BOUND = (0.10, 10)
"""Relative and absolute difference in retransmissions; the larger one counts."""

RTOS_BOUND = 1
"""Difference in retransmission timeouts up to which they agree."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One variant compared with the capture. Differences are relative to the capture; `cwnd_error` is a median or
    None."""

    variant: str
    goodput_difference: float
    retransmissions: int
    retransmissions_captured: int
    rtos_difference: int
    cwnd_error: float | None

    @property
    def distance(self) -> float:
        """How far from the capture: goodput and, where known, cwnd; smaller is a better match."""
        return abs(self.goodput_difference) + (self.cwnd_error or 0.0)

    @property
    def retransmissions_agree(self) -> bool:
        """Whether the retransmissions lie within RETRANSMISSIONS_BOUND."""
        relative, absolute = RETRANSMISSIONS_BOUND
        allowed = max(relative * self.retransmissions_captured, absolute)
        return abs(self.retransmissions - self.retransmissions_captured) <= allowed


def rank_candidates(
    captured: Outcome, replays: Iterable[tuple[str, Outcome]], likely: Mapping[str, float] = MappingProxyType({})
) -> list[Candidate]:
    """Return one candidate per variant of `replays`, best match first; keeps none of the outcomes.

    Where the goodput of none is within GOODPUT_BOUND, a better match is no evidence: something else is wrong. Then the
    order is that of `likely`, the probabilities that the packets of the flow give the variants.
    """
    candidates = [
        Candidate(
            variant=variant,
            goodput_difference=replay.goodput_bps / captured.goodput_bps - 1,
            retransmissions=replay.retransmissions,
            retransmissions_captured=captured.retransmissions,
            rtos_difference=replay.rtos - captured.rtos,
            cwnd_error=cwnd_error(replay, captured),
        )
        for variant, replay in replays
    ]
    ranked = sorted(candidates, key=lambda candidate: candidate.distance)
    if _matches_none(ranked):
        ranked.sort(key=lambda candidate: -likely.get(candidate.variant, 0.0))
    return ranked


def _matches_none(candidates: Iterable[Candidate]) -> bool:
    """Return whether the goodput of no candidate is within GOODPUT_BOUND."""
    return all(abs(candidate.goodput_difference) > GOODPUT_BOUND for candidate in candidates)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What else is known where a self-check does not pass.

    `carried_difference` is the relative difference of the packets that all flows of the path sent over the link, None
    for one flow. `shared_difference` is the difference in goodput with the other flows replayed as TCP; where it is
    given, the self-check replayed their packets as captured, which share the link as in the capture. `repeats` are the
    differences of the same replay in other phases of the host's timer tick and with other random numbers of the
    congestion control.
    """

    carried_difference: float | None = None
    shared_difference: float | None = None
    repeats: tuple[float, ...] = ()


def suspects_of(scenario: Scenario, best: Candidate, evidence: Evidence = Evidence()) -> str:
    """Say which assumption of the replay most likely fails, by how it differs from the capture, goodput apart.

    How the drops of a full queue spread over the flows is part of how these share the link. If the link carries as
    many packets as in the capture, the losses of one flow say nothing about the link. If the captured flow lies among
    replays of one channel that differ in what no capture shows, none of the assumptions about the channel need fail.
    """
    if scenario.captured is not None and scenario.captured.variant == "auto" and best.distance > GOODPUT_BOUND:
        return "the congestion control is not known, and none of the likely ones matches"
    sharing, carried = bool(scenario.flows) and evidence.shared_difference is None, evidence.carried_difference
    if sharing and carried is not None and abs(carried) <= GOODPUT_BOUND:
        return (
            "the flows share the link differently, for together they sent as many packets over it "
            f"({100 * carried:+.1f} %)"
        )
    differences = (best.goodput_difference, *evidence.repeats)
    if min(differences) <= 0 <= max(differences):
        return (
            "a small difference grew: the same replay over the same channel, with its timers ticking up to 4 ms later "
            "and with other random numbers of the congestion control, differs from the captured flow by "
            f"{100 * min(differences):+.1f} to {100 * max(differences):+.1f} %"
        )
    if evidence.shared_difference is not None and abs(evidence.shared_difference) <= GOODPUT_BOUND:
        return (
            "the queue drops other packets of the flows that share the path than in the capture, and these packets do "
            "not react, for with all flows replayed as TCP the difference is within the bound"
        )
    agreed = "losses and timeouts agree, so rate or delay over time are not right, or the application is not"
    return _suspect_losses(best) or ("the flows share the link differently" if sharing else agreed)


def _suspect_losses(best: Candidate) -> str | None:
    """Say what losses and timeouts that differ say about the channel; None if they agree."""
    if best.rtos_difference < -RTOS_BOUND:
        return "the capture has more timeouts, so an outage or losses in succession are missing from the channel"
    if best.rtos_difference > RTOS_BOUND:
        return "the replay has more timeouts, so the channel has losses or outages that the capture did not meet"
    if not best.retransmissions_agree:
        more = best.retransmissions > best.retransmissions_captured
        return f"the replay loses {'more' if more else 'less'}, so the queue limit or the channel losses are not right"
    return None


def describe_self_check(
    captured: Outcome, ranked: list[Candidate], suspects: str, shared_difference: float | None = None
) -> list[dict[str, Any]]:
    """Return `findings` rows of section `self_check`: what happened, then every candidate, best match first.

    `suspects` says what most likely fails where the best match does not pass.

    `goodput_difference` (%) carries the verdict against GOODPUT_BOUND, `retransmissions` and `rtos` theirs against
    RETRANSMISSIONS_BOUND and RTOS_BOUND; the sentence is about the best match, which the other replays are compared
    with. `shared_difference` is that of the best match with the other flows of the capture replayed as TCP; the others
    are then replays with their packets as recorded.
    """
    best = ranked[0]
    rows = [
        _row("capture", "goodput", captured.goodput_bps, "bit/s"),
        _row("capture", "retransmissions", captured.retransmissions, ""),
        _row("capture", "rtos", captured.rtos, ""),
    ]
    for candidate in ranked:
        text = _sentence(captured, best, _choice(ranked), suspects, shared_difference) if candidate is best else ""
        difference = candidate.goodput_difference
        within = abs(difference) <= GOODPUT_BOUND
        goodput_bps = captured.goodput_bps * (1 + difference)
        rows += [
            _row(candidate.variant, "goodput", goodput_bps, "bit/s"),
            _row(candidate.variant, "goodput_difference", 100 * difference, "%", _verdict(within), text),
            _row(
                candidate.variant,
                "retransmissions",
                candidate.retransmissions,
                "",
                _verdict(candidate.retransmissions_agree),
            ),
            _row(
                candidate.variant,
                "rtos",
                captured.rtos + candidate.rtos_difference,
                "",
                _verdict(abs(candidate.rtos_difference) <= RTOS_BOUND),
            ),
        ]
        if candidate.cwnd_error is not None:
            rows.append(_row(candidate.variant, "cwnd_error", 100 * candidate.cwnd_error, "%"))
        if candidate is best and shared_difference is not None:
            verdict = _verdict(abs(shared_difference) <= GOODPUT_BOUND)
            rows.append(_row(candidate.variant, OTHERS_AS_TCP_METRIC, 100 * shared_difference, "%", verdict))
    return rows


def _choice(ranked: Sequence[Candidate]) -> str:
    """Say why the first candidate is the first."""
    if len(ranked) == 1:
        return "the captured variant"
    if ranked[0].distance > min(candidate.distance for candidate in ranked):
        return f"the most likely of {len(ranked)} variants tried, none of which matches"
    return f"the best match of {len(ranked)} variants tried"


def _sentence(
    captured: Outcome, best: Candidate, how: str, suspects: str, shared_difference: float | None = None
) -> str:
    judged = (
        "so replays of other variants can be compared with the capture"
        if abs(best.goodput_difference) <= GOODPUT_BOUND
        else f"so compare the replays with one another only, not with the capture. Most likely {suspects}"
    )
    cwnd = ""
    if best.cwnd_error is not None:
        cwnd = (
            f" Its cwnd differs from the captured flow's ({captured.cwnd_source}) by "
            f"{100 * best.cwnd_error:.1f} % in the median, compared at equal data segment."
        )
    others = "" if shared_difference is None else " and next to the packets of the other flows as captured"
    return (
        f"Replayed over the extracted channel{others}, {best.variant} ({how}) differs from the captured flow by "
        f"{100 * best.goodput_difference:+.1f} % in goodput; the bound is {100 * GOODPUT_BOUND:.0f} %, {judged}.{cwnd}"
        f"{_with_others_as_tcp(shared_difference)}"
    )


def _with_others_as_tcp(shared_difference: float | None) -> str:
    """Say how the flows share the link where all of them react; "" for a flow that shares its path with none."""
    if shared_difference is None:
        return ""
    said = (
        f" With the other flows replayed as TCP, as in the comparison, it differs by {100 * shared_difference:+.1f} %"
    )
    if abs(shared_difference) <= GOODPUT_BOUND:
        return f"{said}."
    return f"{said}: the flows share the link differently, which small differences of their timing decide."


def _verdict(holds: bool) -> str:
    return "pass" if holds else "fail"


def _row(subject: str, metric: str, value: float, unit: str, verdict: str = "info", text: str = "") -> dict[str, Any]:
    return {
        "section": "self_check",
        "subject": subject,
        "metric": metric,
        "value": float(value),
        "unit": unit,
        "verdict": verdict,
        "text": text,
    }

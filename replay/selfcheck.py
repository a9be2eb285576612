"""The self-check: candidates for the variant that flew, replayed over the captured channel, beside what happened.

A replay that cannot reproduce the captured flow has nothing to say about others, so this comes first in every
report. Knows outcomes (replay.outcome), not tables or the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from replay.outcome import Outcome, cwnd_error

GOODPUT_BOUND = 0.05
"""Relative difference in goodput up to which the self-check passes."""

RETRANSMISSIONS_BOUND = (0.10, 10)
"""Relative and absolute difference in retransmissions; the larger one counts."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One variant beside the capture. Differences are relative to the capture; `cwnd_error` is a median or None."""

    variant: str
    goodput_difference: float
    retransmissions: int
    retransmissions_captured: int
    rtos_difference: int
    cwnd_error: float | None

    @property
    def distance(self) -> float:
        """How far from the capture: goodput and, where known, cwnd; smaller is nearer."""
        return abs(self.goodput_difference) + (self.cwnd_error or 0.0)

    @property
    def retransmissions_agree(self) -> bool:
        """Whether the retransmissions lie within RETRANSMISSIONS_BOUND."""
        relative, absolute = RETRANSMISSIONS_BOUND
        allowed = max(relative * self.retransmissions_captured, absolute)
        return abs(self.retransmissions - self.retransmissions_captured) <= allowed


def rank_candidates(captured: Outcome, replays: Mapping[str, Outcome]) -> list[Candidate]:
    """Return one candidate per variant of `replays`, nearest first."""
    candidates = [
        Candidate(
            variant=variant,
            goodput_difference=replay.goodput_bps / captured.goodput_bps - 1,
            retransmissions=replay.retransmissions,
            retransmissions_captured=captured.retransmissions,
            rtos_difference=replay.rtos - captured.rtos,
            cwnd_error=cwnd_error(replay, captured),
        )
        for variant, replay in replays.items()
    ]
    return sorted(candidates, key=lambda candidate: candidate.distance)


def describe_self_check(captured: Outcome, ranked: list[Candidate], variant_given: bool) -> list[dict[str, Any]]:
    """Return `findings` rows of section `self_check`; the first is the verdict on the variant that replays use."""
    best = ranked[0]
    passed = abs(best.goodput_difference) <= GOODPUT_BOUND
    how = "as given" if variant_given else f"the nearest of {len(ranked)} that were tried"
    judged = (
        "so its replays of other variants can be compared with the capture"
        if passed
        else "so read the comparison between variants only, not against the capture"
    )
    rows = [
        _row(
            best.variant,
            "goodput_difference_percent",
            100 * best.goodput_difference,
            "%",
            "pass" if passed else "miss",
            f"Replayed over the extracted channel, {best.variant} ({how}) differs from the captured flow by "
            f"{100 * best.goodput_difference:+.1f} % in goodput ({captured.goodput_bps / 1e3:.0f} kbit/s captured); "
            f"the bound is {100 * GOODPUT_BOUND:.0f} %, {judged}.",
        ),
        _row(
            best.variant,
            "retransmissions",
            best.retransmissions,
            "segments",
            "pass" if best.retransmissions_agree else "miss",
            f"The replay retransmits {best.retransmissions} segments, the captured flow "
            f"{best.retransmissions_captured}; timeouts differ by {best.rtos_difference:+d}.",
        ),
    ]
    for candidate in ranked:
        if candidate.cwnd_error is not None:
            rows.append(
                _row(
                    candidate.variant,
                    "cwnd_error_percent",
                    100 * candidate.cwnd_error,
                    "%",
                    "info",
                    f"{candidate.variant}: goodput {100 * candidate.goodput_difference:+.1f} %, cwnd off by "
                    f"{100 * candidate.cwnd_error:.1f} % in the median (against {captured.cwnd_source}).",
                )
            )
    return rows


def _row(subject: str, metric: str, value: float, unit: str, verdict: str, text: str) -> dict[str, Any]:
    return {
        "section": "self_check",
        "subject": subject,
        "metric": metric,
        "value": float(value),
        "unit": unit,
        "verdict": verdict,
        "text": text,
    }

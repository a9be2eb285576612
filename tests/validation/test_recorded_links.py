"""What the analysis must get right on the links of fixtures/recorded: steps, breaks, bursts, pauses, two flows.

The rules were not read off these runs alone, but they were seen in development: accuracy is quoted on others (docs).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from validation.captures.lines import Line, cause_lines, link_lines, loss_lines, window_lines
from validation.captures.report import judge_captures

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "recorded"

EVERY_RTO = ("causes", "flows with every RTO found and none invented")

HELD = [
    *(
        (f"losses, {side}", metric)
        for side in ("sender", "receiver")
        for metric in (
            "precision, pooled",
            "recall, pooled",
            "worst flow with 20 losses or more, SACK",
            "worst flow with 20 losses or more, no SACK",
            "errors in a flow with fewer",
        )
    ),
    *(
        ("causes", f"{cause}: {share}")
        for cause in ("sack/rack", "after_rto", "fast", "spurious")
        for share in ("precision", "recall")
        if (cause, share) != ("spurious", "recall")
    ),
    EVERY_RTO,
    ("cwnd, sender", "median error"),
    ("cwnd, sender", "within 1 segment or 12 %"),
    ("cwnd, sender", "round trips with an estimate"),
    ("cwnd, sender", "95 % interval holds the truth"),
    ("channel", "channel losses: precision"),
    ("channel", "queue losses: precision"),
    ("channel", "queue losses: recall"),
    ("channel", "outage losses: precision"),
    ("channel", "time with rate off by more than 5 % (of s)"),
]
"""Lines of `python -m validation captures` that must pass."""


@pytest.fixture(scope="module")
def lines() -> dict[tuple[str, str], Line]:
    flows = judge_captures(RECORDED, lambda _done, _of: None).flows
    made = [*loss_lines(flows), *cause_lines(flows), *window_lines(flows), *link_lines(flows)]
    return {(line.subject, line.metric): line for line in made}


@pytest.mark.parametrize("name", HELD, ids=lambda name: f"{name[0]}, {name[1]}")
def test_a_property_holds(lines: dict[tuple[str, str], Line], name: tuple[str, str]) -> None:
    line = lines[name]
    assert line.verdict == "pass", f"{line.value} of {line.of} cases, bound {line.bound}"

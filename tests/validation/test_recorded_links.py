"""What the analysis must get right on the links of fixtures/recorded and fixtures/causes.

The rules were not read off these runs alone, but they were seen in development: accuracy is quoted on others (docs).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from validation.captures.lines import Line, cause_lines, link_lines, loss_lines, window_lines
from validation.captures.links import LinkScore
from validation.captures.report import FlowScore, judge_captures
from validation.captures.scores import Counts

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "recorded"
CAUSES = RECORDED.with_name("causes")

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


@pytest.fixture(scope="module")
def flows() -> list[FlowScore]:
    return judge_captures(CAUSES, lambda _done, _of: None).flows


def _links(flows: list[FlowScore], run: str) -> list[LinkScore]:
    return [flow.link for flow in flows if flow.run == run and flow.link is not None]


@pytest.mark.parametrize(
    ("run", "cause", "cases"),
    [
        # A second flow fills the queue unseen by the first, and the delay steps.
        ("L4602.9-cubic", "queue", 49),
        # The base is wrong after a break that hides a step: the gaps show the causes.
        ("L4502.2-reno", "queue", 50),
        # The queue is full when the link breaks.
        ("L4502.9-cubic", "queue", 75),
        ("L4502.9-cubic", "outage", 40),
        # An application that pauses, without SACK, over two steps of the delay.
        ("L4601.6-reno", "queue", 40),
    ],
)
def test_the_causes_of_losses_are_right(flows: list[FlowScore], run: str, cause: str, cases: int) -> None:
    counts = sum((link.causes.get(cause, Counts()) for link in _links(flows, run)), Counts())
    assert counts.right >= cases
    assert counts.wrong + counts.missed <= 0.06 * counts.right


def test_the_packets_of_a_parallel_flow_show_rate_and_delay(flows: list[FlowScore]) -> None:
    links = _links(flows, "L4602.9-cubic")
    assert len(links) == 2
    for link in links:
        assert link.rate_off_ns + link.delay_off_ns <= 0.02 * link.judged_ns
        # The flow that came later first met a queue that the other one filled.
        assert link.rate_unknown_ns <= 0.2 * link.judged_ns
    # The flow that was there from the beginning met an empty queue.
    assert links[0].delay_unknown_ns + links[0].delay_off_ns <= 0.05 * links[0].judged_ns

"""How stretches of an extracted link are judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hindflight.channels.estimate import Estimate, LinkStretch
from validation.captures.lines import _stretch_lines, link_lines
from validation.captures.links import LinkScore, _causes, _Claimed, _edge_gaps_ns, _edges, _lost_data, score_link
from validation.captures.report import FlowScore
from validation.captures.scores import CauseScore, Counts, WindowScore
from validation.captures.stretches import Given, Stretch, in_use_ns, pooled, score_stretch
from validation.captures.truth import FlowTruth, RunTruth, Transmission

S = 1_000_000_000
TRUE = Stretch(10 * S, 20 * S, 1.2e6, 5e7, outage=False)


def _claimed(start: int, end: int, rate: tuple[float, float] | None) -> LinkStretch:
    low, high = rate if rate is not None else (None, None)
    return LinkStretch(
        start,
        end,
        500,
        (
            Estimate("base_rtt_ns", 5e7, 4.9e7, 5.05e7, "ns", known=True, how=""),
            Estimate("rate_bps", 1.2e6, low, high, "bit/s", known=rate is not None, how=""),
            Estimate("queue_limit_pkts", 4.0, 3.0, 5.0, "pkts", known=True, how=""),
        ),
    )


def test_a_cause_that_is_not_claimed_to_be_known_is_neither_right_nor_wrong() -> None:
    fates = ["dropped_queue", "dropped_queue", "dropped_queue", "dropped_outage", "delivered"]
    sent = [Transmission(k, 10 * S + k, k, k + 1, 1, fate, 11 * S, None) for k, fate in enumerate(fates)]
    flow = FlowTruth("reno", 1, 2, 1448, 0, 30 * S, 1e6, sent, [])
    said = [("queue", True), ("none", False), ("none", True), ("outage", False), ("none", False)]
    rows = [{"record": k, "cause": cause, "known": known} for k, (cause, known) in enumerate(said)]
    found = _causes(flow, rows, [TRUE])
    assert found["queue"] == Counts(right=1, unknown=1, missed=1)
    assert found["outage"] == Counts(unknown=1)


def test_the_queue_is_in_use_while_packets_wait() -> None:
    # 10 ms a packet; the second enters behind one, the third behind two, much later one that finds nothing.
    queued = [(10 * S, 0), (10 * S, 1), (10 * S, 2), (15 * S, 0), (25 * S, 9)]
    assert in_use_ns(TRUE, queued) == 15_000_000
    assert in_use_ns(TRUE, [(20 * S - 1, 50)]) == 1


def test_a_stretch_is_compared_with_the_one_it_shares_most_time_with() -> None:
    busy = [(10 * S + k * S // 100, 2) for k in range(1000)]
    near, far = _claimed(9 * S, 19 * S, (1.1e6, 1.3e6)), _claimed(19 * S, 30 * S, (2e6, 3e6))
    found = score_stretch(TRUE, 4, busy, [near, far])
    assert (found["rate"].asked, found["rate"].given, found["rate"].inside) == (1, 1, 1)
    assert found["rate"].widths == pytest.approx([0.2 / 1.2])
    assert found["rtt"].widths == pytest.approx([0.03])
    # Of a short queue, 2 packets are as good as 20 % of a longer one.
    assert found["queue"].widths == pytest.approx([0.2])
    wrong = score_stretch(TRUE, 6, busy, [_claimed(9 * S, 19 * S, (1.3e6, 1.4e6))])
    assert (wrong["rate"].inside, wrong["queue"].inside) == (0, 0)
    both = pooled(found, wrong)
    assert (both["rate"].asked, both["rate"].given, both["rate"].inside) == (2, 2, 1)


def test_rate_and_queue_are_asked_for_only_where_the_queue_was_in_use() -> None:
    assert set(score_stretch(TRUE, 4, [(10 * S, 3)], [_claimed(9 * S, 19 * S, None)])) == {"rtt"}
    busy = [(10 * S + k * S // 100, 2) for k in range(1000)]
    assert score_stretch(TRUE, 4, busy, [_claimed(9 * S, 19 * S, None)])["rate"] == Given(asked=1)
    assert score_stretch(TRUE, 4, busy, [])["rtt"] == Given(asked=1)
    assert score_stretch(TRUE, 4, busy, [_claimed(30 * S, 39 * S, (1.0, 2.0))])["rate"] == Given(asked=1)


@pytest.mark.parametrize(("fate", "hidden"), [("dropped_loss", 1), ("dropped_queue", 0)])
def test_a_queue_that_dropped_nothing_shows_no_limit(fate: str, hidden: int) -> None:
    busy = [(10 * S + k * S // 100, 2) for k in range(1000)]
    sent = [Transmission(k, 10 * S + k, k, k + 1, 1, "delivered" if k else fate, 11 * S, None) for k in range(300)]
    flow = FlowTruth("reno", 1, 2, 1448, 0, 30 * S, 1e6, [*sent, replace(sent[-1], t_ns=20 * S)], [])
    params = {"rate": 1.2e6, "rtt_ms": 50.0, "queue": 4}
    run = RunTruth("run", Path(), params, 10 * S, sack=True, flows=[flow], queued=busy)
    extraction: Any = SimpleNamespace(
        channel=SimpleNamespace(to_pylist=list), stretches=[_claimed(9 * S, 19 * S, None)]
    )
    queue = score_link(run, flow, extraction).stretches["queue"]
    assert (queue.asked, queue.given, queue.hidden) == (1, 1, hidden)
    assert (queue + queue).hidden == 2 * hidden


def test_an_edge_of_an_outage_is_marked_by_what_was_lost_and_delivered_around_it() -> None:
    outage = replace(TRUE, rtt_ns=2e8, outage=True)
    sent = [
        Transmission(k, S, k, k + 1, 1, fate, at * S // 10, None)
        for k, (fate, at) in enumerate([("dropped_outage", 140), ("dropped_loss", 190)])
    ]
    flow = FlowTruth("reno", 1, 2, 1448, 0, 30 * S, 1e6, sent, [])
    passed, broken = (99 * S // 10, 231 * S // 10), (8 * S, 105 * S // 10, 14 * S)
    run = RunTruth("run", Path(), {}, 0, sack=True, flows=[flow], passed=passed, broken=broken)
    # Passed at 9.9 s, lost at 10.5 s; lost at 14 s, passed at 23.1 s: that one left the queue at 23 s.
    gaps_ns = _edge_gaps_ns(run, outage)
    assert gaps_ns == pytest.approx((0.6 * S, 9.0 * S))
    # An ACK that is lost marks an edge as data does, but an outage that lost no data is none that a capture shows. One
    # that lost no packet is open from the last one before it to the first one behind.
    assert _edge_gaps_ns(replace(run, broken=(10 * S, *broken)), outage) == pytest.approx((0.1 * S, 9.0 * S))
    assert _edge_gaps_ns(replace(run, broken=(8 * S,)), outage) == pytest.approx((13.1 * S, 13.1 * S))
    assert _lost_data(run, outage)
    assert not _lost_data(replace(run, flows=[replace(flow, transmissions=sent[1:])]), outage)


@pytest.mark.parametrize(
    ("within_s", "gap_s", "counted"),
    [(0.2, 0.4, (0, 0, 0)), (0.2, 0.41, (0, 1, 0)), (0.21, 0.4, (1, 0, 1)), (0.21, 0.41, (1, 1, 0))],
)
def test_an_edge_is_withheld_if_packets_mark_it(within_s: float, gap_s: float, counted: tuple[int, int, int]) -> None:
    outage, within_ns = replace(TRUE, rtt_ns=2e8, outage=True), round(within_s * S)
    found = _edges(_Claimed(10 * S, 20 * S + S // 10, 0, within_ns), outage, (0.0, gap_s * S))
    assert (found.edges_unknown, found.edges_unmarked, found.edges_withheld) == counted
    assert found.outage_edges == pytest.approx([0.0, 0.5][: 2 - counted[0]])
    lines = {line.metric: line for line in link_lines([_flow_with(found + found)])}
    others = lines["outage edges said to be uncertain by more, of all others"]
    assert (others.value, others.of) == (counted[2] / (2 - counted[1]), 4 - 2 * counted[1])
    assert lines["outage edges that no packet of the capture marks to one RTT"].value == counted[1] / 2


def _flow_with(link: LinkScore) -> FlowScore:
    return FlowScore("run", "sender", "reno", True, 1, 0, Counts(), CauseScore(), WindowScore(), link)


def test_a_queue_that_dropped_nothing_is_counted_apart() -> None:
    lines = {line.metric: line for line in _stretch_lines(LinkScore(stretches={"queue": Given(10, 6, 6, [], 3)}))}
    assert lines["stretches with queue given"].value == pytest.approx(0.6)
    assert lines["stretches of runs whose queue dropped nothing"].value == pytest.approx(0.3)
    others = lines["stretches with queue given, of all others"]
    assert others.value == pytest.approx(6 / 7)
    assert others.of == 7

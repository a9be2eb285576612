"""Parts of the extraction with constructed input: change points, queue replay, ceiling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from hindflight.channels.extraction import bottleneck as _bottleneck
from hindflight.channels.extraction import busy_spans as _busy_spans
from hindflight.channels.extraction import change_points as _change_points
from hindflight.channels.extraction import queue as _queue
from hindflight.channels.extraction.busy_spans import BusySpans
from hindflight.channels.extraction.queue import Arrivals


def test_change_point_fit_finds_levels_and_borders() -> None:
    rng = np.random.default_rng(1)
    series = np.concatenate((np.full(203, 10.0), np.full(150, 40.0), np.full(301, 10.0))) + rng.normal(0, 0.5, 654)
    series[::37] += 15  # what a timer delays
    fitted = _change_points.fit(series, 3.0)
    assert [round(value) for _, _, value in fitted.spans] == [10, 40, 10]
    assert abs(fitted.spans[0][1] - 203) <= 2
    assert abs(fitted.spans[1][0] - 203) <= 2
    assert abs(fitted.spans[2][0] - 353) <= 2
    assert fitted.coverage == pytest.approx(1 - 1 / 37, abs=0.02)
    level, inside = fitted.at(654)
    assert (level[100], level[300], level[600]) == tuple(value for _, _, value in fitted.spans)
    assert inside.mean() > 0.95


@pytest.mark.parametrize(
    ("end", "begins"),
    [
        ([1.35] * 22 + [0.67], [0, 200]),
        ([1.35] * 15, [0]),
        ([1.35] * 12 + [2.3] + [1.35] * 12, [0]),
        ([1.35, 0.67] * 11, [0]),
        ([3.5] * 22, [0]),
    ],
)
def test_a_short_level_at_the_end_is_lower_and_agrees_with_itself_and_never_with_that_before(
    end: list[float], begins: list[int]
) -> None:
    series = np.log(np.array([2.3] * 200 + end))
    levels = _change_points.fit(series, 0.08)
    assert len(levels.spans) == 1
    ended = _change_points.with_lower_end(levels, series, 0.08)
    assert [start for start, _, _ in ended.spans] == begins
    assert ended.spans[-1][1] == len(series)
    explained = np.abs(series - np.log(2.3)) < 0.08
    if len(begins) > 1:
        explained |= series == np.log(1.35)
    assert ended.coverage == pytest.approx(np.mean(explained))


@pytest.mark.parametrize(
    ("rest", "shown"),
    [
        (np.linspace(1.3, 3.0, 180), True),
        (np.linspace(0.3, 0.9, 180), False),  # slower: cross traffic takes a share
        (np.concatenate((np.linspace(1.3, 3.0, 150), np.linspace(0.8, 0.9, 30))), False),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_level_at_one_end_is_shown_if_the_rest_lies_above_it(
    rest: npt.NDArray[np.float64], shown: bool, first: bool
) -> None:
    parts = [np.zeros(160), np.log(rest)]
    found = _change_points.lowest_end(np.concatenate(parts if first else parts[::-1]), 0.08)
    where = slice(0, 160) if first else slice(192, 336)  # whole blocks
    assert found == (where if shown else None)


def test_a_level_in_the_middle_of_others_is_not_that_of_an_end() -> None:
    above = np.log(np.linspace(1.3, 3.0, 96))
    assert _change_points.lowest_end(np.concatenate((above, np.zeros(160), above)), 0.08) is None


@pytest.mark.parametrize(("paced", "shown"), [(150, True), (170, False)])
def test_half_of_the_busy_intervals_with_one_rate_stand_for_themselves(paced: int, shown: bool) -> None:
    # 160 packets of a link with 3 Mbit/s; then a sender paces its packets over a faster one.
    spans = np.concatenate((np.full(160, 4.0), np.resize([3.0, 1.2, 2.2, 1.6], paced))) * 1e6
    pairs = BusySpans(np.cumsum(spans).astype(np.int64), spans.astype(np.int64), np.full(len(spans), 1500))
    rate = _bottleneck._states_of_part(pairs)
    assert rate.steady is shown
    assert len(rate.busy.at_ns) == (160 if shown else len(spans))
    if shown:
        assert rate.bps == pytest.approx(3e6)


def test_constant_series_has_one_level_and_a_ramp_is_not_covered() -> None:
    assert len(_change_points.fit(np.full(500, 7.0), 0.1).spans) == 1
    assert len(_change_points.fit(np.full(20, 7.0), 0.1).spans) == 1
    ramp = _change_points.fit(np.linspace(0, 1000, 500), 3.0)
    assert ramp.coverage < 0.1


def test_a_short_state_of_the_rate_is_not_lost_where_spans_are_joined() -> None:
    # ACKs of a fast link that come late by up to a ninth of the time between them, and then a few of a slow link.
    rng = np.random.default_rng(5)
    late = rng.uniform(0, 0.7e6, 801)
    at = np.concatenate((6e6 * np.arange(801) + late, 800 * 6e6 + 40e6 * np.arange(1, 81)))
    span = np.diff(at).astype(np.int64)
    pairs = BusySpans(at[1:].astype(np.int64), span, np.full(len(span), 1500))
    joined = _busy_spans.joined_until_exact(pairs, np.ones(len(span), dtype=bool))
    assert len(joined.at_ns) < 0.6 * len(span)
    assert joined.served_bytes.sum() == pairs.served_bytes.sum()
    mbps = joined.served_bytes * 8e3 / joined.span_ns
    levels = _change_points.fit(np.log(mbps), _busy_spans.RATE_TOLERANCE)
    assert [round(float(np.exp(level)), 1) for _, _, level in levels.spans] == [2.0, 0.3]


def _arrivals(t: list[float], departed: list[float], lost: list[bool]) -> Arrivals:
    n = len(t)
    return Arrivals(
        np.array(t),
        np.full(n, 10.0),
        np.array(departed),
        np.array(lost),
        np.zeros(n, dtype=bool),
        np.full(n, 10.0),
        1.0,
        np.zeros(n, dtype=bool),
        np.full(n, 10.0),
    )


@pytest.mark.parametrize("limit", [np.inf, -np.inf])
def test_losses_of_a_break_may_have_been_served_at_the_rate_behind_it(limit: float) -> None:
    # Two losses of 10 ns each, which may have taken 30 as the packets behind them; one of these left at 200 ns.
    lost = [False, True, True, False, False]
    sure = _arrivals([0.0, 0.0, 0.0, 0.0, 1.0], [10.0, np.nan, np.nan, 200.0, np.nan], lost)
    service = np.where(np.arange(5) < 3, 10.0, 30.0)
    sure = replace(sure, leeway=0.0, service=service, full=service, most=service)
    loose = replace(sure, most=np.where(sure.lost, 30.0, service))
    waits = [_queue.replay(one, limit, unshared=True).wait_ns[4] + 1 for one in (sure, loose)]
    # The queue behind is as long as the departure shows, up to what the losses explain; refused ones count as full
    # packets of then anyway.
    assert waits == ([10 + 2 * 10 + 30, 10 + 2 * 30 + 30] if limit > 0 else [10 + 2 * 30 + 30] * 2)


def test_queue_replay_applies_the_limit_and_measures_gaps() -> None:
    # Three packets at once, 10 ns of service each. Two may wait: the third finds 20 ns, two packets, ahead of it.
    t, lost = [0.0, 0.0, 0.0, 1.0], [False, False, True, False]
    left = [10.0, 20.0, np.nan, 30.0]
    refused = _queue.replay(_arrivals(t, left, lost), limit=1.9, unshared=True)
    assert refused.level.tolist() == [0.0, 1.0, 2.0, 1.9]
    assert refused.entered.tolist() == [True, True, False, True]
    assert refused.residual[2] == pytest.approx(0.0)
    # Let in, it would have delayed the last one by a service time: the residual contradicts.
    admitted = _queue.replay(_arrivals(t, left, lost), limit=2.0, unshared=True)
    assert admitted.entered.tolist() == [True, True, True, True]
    assert admitted.residual[2] == pytest.approx(-1.0)
    # And a packet that used the link leaves its gap.
    gap = _queue.replay(_arrivals(t, [10.0, 20.0, np.nan, 40.0], lost), limit=1.9, unshared=True)
    assert gap.residual[2] == pytest.approx(1.0)


def test_late_departures_are_ack_delay_unless_the_queue_is_shared() -> None:
    # The third, which came while the second was waiting, shows that the link was not idle.
    arrivals = _arrivals([0.0, 0.0, 1.0], [10.0, 90.0, np.nan], [False, False, False])
    assert _queue.replay(arrivals, np.inf, unshared=True).late == 0.5
    # Behind the last one the receiver may have waited with its ACK, but not longer than it may.
    alone = _arrivals([0.0, 0.0], [10.0, 90.0], [False, False])
    assert _queue.replay(alone, np.inf, unshared=True).late == 0.0
    long = _arrivals([0.0, 0.0], [10.0, 90.0 + _queue.LATE_ACK_NS], [False, False])
    assert _queue.replay(long, np.inf, unshared=True).late == 0.5
    after = _arrivals([0.0, 0.0, 50.0], [10.0, 90.0, np.nan], [False, False, False])
    assert _queue.replay(after, np.inf, unshared=True).level[2] == 0.0
    assert _queue.replay(after, np.inf, unshared=False).level[2] == pytest.approx(4.0)


def test_departures_are_bounded_by_their_followers() -> None:
    lost = np.array([False, False, True, False])
    held = _queue.bound_by_followers(np.array([10.0, 38.0, np.nan, 30.0]), np.full(4, 10.0), lost)
    assert held[[0, 1, 3]].tolist() == [10.0, 20.0, 30.0]
    assert np.isnan(held[2])
    # What need not have been served in between takes no time.
    spared = _queue.bound_by_followers(np.array([25.0, np.nan, 30.0]), np.full(3, 10.0), np.array([False, True, False]))
    assert spared[0] == 20.0


def test_ceiling_requires_losses_above_a_level() -> None:
    rng = np.random.default_rng(2)
    level = rng.uniform(0, 50, 4000)
    channel = rng.random(4000) < 0.01
    everywhere = np.ones(4000, dtype=bool)
    assert _queue.ceiling(level, channel, np.zeros(4000), everywhere) is None
    found = _queue.ceiling(level, channel | (level > 45), np.zeros(4000), everywhere)
    assert found is not None
    assert 44.8 <= found.limit <= 45.2
    # One loss at the top proves nothing by itself; with a clear gap missing it does.
    level = np.append(level, 60.0)
    lost, gap = np.append(channel, True), np.zeros(4001)
    assert _queue.ceiling(level, lost, gap, np.ones(4001, dtype=bool)) is None
    gap[-1] = 3.0
    unshared = _queue.ceiling(level, lost, gap, np.ones(4001, dtype=bool))
    assert unshared is not None
    assert 50 <= unshared.limit <= 60

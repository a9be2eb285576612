"""Draws of what a capture leaves open: the same for a seed, within the intervals, with as many losses as captured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hindflight.channels.breaks import Break
from hindflight.channels.estimate import Estimate
from hindflight.channels.trace import Trace
from hindflight.replay.scenario.draws import REPEATS, Open, _breaks, as_captured, draw, open_of

SECOND = 1_000_000_000


def _estimate(name: str, value: float | None, low: float, high: float | None) -> Estimate:
    return Estimate(name, value, low, high, "", known=value is not None, how="")


def _open(bursts: list[int], **changes: Any) -> Open:
    given: dict[str, Any] = {
        "positions": np.zeros(0, np.int64), "bursts": np.array(bursts, dtype=np.int64), "breaks": (), "packets": 10_000,
        "rate": _estimate("rate_bps", 1e6, 0.98e6, 1.02e6),
        "base_rtt": _estimate("base_rtt_ns", 1e8, 0.99e8, 1.01e8),
        "min_rtt": _estimate("min_rtt_ns", 1.1e8, 1.1e8, 1.11e8),
        "queue": _estimate("queue_limit_pkts", 20.0, 18.0, 22.0), "edges": {},
    }  # fmt: skip
    return Open(**{**given, **changes})


def _config() -> dict[str, Any]:
    way = {
        "rate_bps": 1e6, "delay_ns": 50_000_000, "queue": {"kind": "drop_tail", "limit_pkts": 20},
        "loss": {"kind": "none"},
        "schedule": [{"at_ns": SECOND, "rate_bps": 2e6, "delay_ns": None, "outage": None, "hold": None}],
    }  # fmt: skip
    links = [{"name": "path", "forward": way, "reverse": way}]
    return {"duration_ns": 10 * SECOND, "path": {"links": links}, "flows": [{"start_ns": 0}]}


def _forward(open_: Open, seed: int) -> dict[str, Any]:
    forward: dict[str, Any] = draw(_config(), open_, seed)["path"]["links"][0]["forward"]
    return forward


def test_a_seed_gives_one_draw_and_another_seed_another() -> None:
    open_ = _open([1, 3, 2])
    assert draw(_config(), open_, 1) == draw(_config(), open_, 1)
    assert draw(_config(), open_, 1) != draw(_config(), open_, 2)


def test_losses_come_in_the_captured_bursts_and_number() -> None:
    counts = []
    for seed in range(200):
        positions = np.array(_forward(_open([4] * 25), seed)["loss"]["positions"])
        assert np.all(np.diff(positions) > 0)
        counts.append(len(positions) / REPEATS)
    assert np.mean(counts) == pytest.approx(100, rel=0.1)
    assert np.std(counts) > 10  # of 25 bursts the rate is known to a fifth


def _runs(open_: Open, seeds: int) -> list[list[int]]:
    """The lengths of the drawn bursts, by seed."""
    drawn = [_forward(open_, seed)["loss"]["positions"] for seed in range(seeds)]
    return [[len(run) for run in _consecutive(positions)] if positions else [] for positions in drawn]


def test_another_flight_may_meet_a_longer_burst_than_the_captured_one() -> None:
    # Of ten bursts with a mean of 3, one in a hundred flights or more has one of 20; of single losses hardly any is 5.
    longest = [max(lengths) for lengths in _runs(_open([1, 1, 1, 2, 2, 3, 3, 4, 5, 8]), 100)]
    assert max(longest) > 20
    assert np.median([np.mean(lengths) for lengths in _runs(_open([3] * 10), 100)]) == pytest.approx(3, rel=0.2)
    assert np.mean([max(lengths, default=1) < 5 for lengths in _runs(_open([1] * 30), 100)]) > 0.95


def test_losses_of_unknown_cause_are_the_channels_as_often_as_the_others() -> None:
    unknown = np.array([True] * 40 + [False] * 2)
    counts = {}
    for causes in ((1, 400), (400, 1), (2, 2)):
        open_ = _open([1] * 42, unknown=unknown, causes=causes)
        counts[causes] = [len(positions) / REPEATS for positions in _losses_of(open_, 100)]
    assert np.mean(counts[1, 400]) < 4
    assert np.mean(counts[400, 1]) == pytest.approx(42, rel=0.1)
    assert np.std(counts[2, 2]) > 7  # what the others leave open is open


def _losses_of(open_: Open, seeds: int) -> list[list[int]]:
    return [_forward(open_, seed)["loss"]["positions"] for seed in range(seeds)]


@pytest.mark.parametrize(("causes", "kept"), [((1, 400), [300]), ((400, 1), [300, 500, 501])])
def test_the_captured_flow_meets_losses_of_unknown_cause_where_the_channel_made_most(
    causes: tuple[int, int], kept: list[int]
) -> None:
    positions = np.array([300, 500, 501])
    open_ = _open([1, 2], positions=positions, unknown=np.array([False, True]), causes=causes)
    config = _config()
    config["path"]["links"][0]["forward"]["loss"] = {"kind": "trace", "positions": positions.tolist()}
    assert as_captured(config, open_)["path"]["links"][0]["forward"]["loss"]["positions"] == kept


def test_a_queue_limit_is_as_often_below_its_estimate_as_above_it() -> None:
    open_ = _open([], queue=_estimate("queue_limit_pkts", 20.0, 18.0, 70.0))
    limits = np.array([_forward(open_, seed)["queue"]["limit_pkts"] for seed in range(300)])
    assert np.mean(limits <= 20) == pytest.approx(0.5, abs=0.1)
    assert (limits.min(), limits.max() > 60) == (18, True)


def test_a_flight_without_losses_leaves_some_possible() -> None:
    lost = [len(_forward(_open([]), seed)["loss"]["positions"]) > 0 for seed in range(300)]
    assert 0.02 < np.mean(lost) < 0.5


def test_rate_delay_and_queue_stay_near_their_intervals() -> None:
    drawn = [_forward(_open([]), seed) for seed in range(200)]
    rates = np.array([way["rate_bps"] for way in drawn])
    assert np.std(rates) == pytest.approx(1e6 * 0.02 / 1.96, rel=0.2)
    assert {way["queue"]["limit_pkts"] for way in drawn} <= set(range(15, 26))
    steps = np.array([way["schedule"][0]["rate_bps"] for way in drawn])
    assert np.allclose(steps / rates, 2.0)


def test_a_rate_that_is_a_lower_bound_is_drawn_above_it() -> None:
    rates = [_forward(_open([], rate=_estimate("rate_bps", None, 1e6, None)), seed)["rate_bps"] for seed in range(50)]
    assert min(rates) >= 1e6
    assert max(rates) > 2e6


def test_a_rate_with_two_bounds_is_drawn_between_them() -> None:
    bounds = _estimate("rate_bps", None, 1e6, 1.3e6)
    rates = [_forward(_open([], rate=bounds), seed)["rate_bps"] for seed in range(50)]
    assert 1e6 <= min(rates) < 1.05e6
    assert 1.25e6 < max(rates) <= 1.3e6


def test_a_link_without_a_rate_has_at_least_the_lower_bound_of_its_rate() -> None:
    config = _config()
    for way in config["path"]["links"][0].values():
        if isinstance(way, dict):
            way["rate_bps"] = None
    bounded, unknown = _open([], rate=_estimate("rate_bps", None, 1e6, None)), _open([], rate=None)
    links = [draw(config, bounded, seed)["path"]["links"][0] for seed in range(50)]
    rates = [link["forward"]["rate_bps"] for link in links]
    assert rates == [link["reverse"]["rate_bps"] for link in links]
    assert 1e6 <= min(rates) < 1.5e6
    assert 3e6 < max(rates) <= 4e6
    assert draw(config, unknown, 1)["path"]["links"][0]["forward"]["rate_bps"] is None


def test_a_queue_that_the_user_chose_stays() -> None:
    chosen = _open([], queue=_estimate("queue_limit_pkts", 50.0, 40.0, 60.0))
    assert {_forward(chosen, seed)["queue"]["limit_pkts"] for seed in range(20)} == {20}


def test_a_large_write_lasts_a_time_in_half_of_the_draws() -> None:
    timed = {"kind": "bursts", "from_ns": [0], "until_ns": [SECOND]}
    drawn = [draw(_config(), _open([]), seed, {0: timed})["flows"][0].get("application") for seed in range(200)]
    assert all(application in (None, timed) for application in drawn)
    assert 0.35 < np.mean([application is not None for application in drawn]) < 0.65


def _break(begin_ns: int, end_ns: int, unknown_ns: int = 0, *, packets: int = 40, chance: float = 1.0) -> Break:
    return Break(begin_ns, end_ns, unknown_ns, end_ns + unknown_ns, packets, chance)


def _spans(open_: Open) -> list[tuple[int, int]]:
    return [(one.begin_ns, one.end_ns) for one in open_.breaks if one.chance == 1]


def _trace(
    sent_ns: list[int],
    trips_ns: list[int | None],
    doubtful: tuple[int, ...] = (),
    bursts_or_outages: tuple[tuple[int, int], ...] = (),
) -> Trace:
    """A link whose state is known from one second before the first of these packets on."""
    n = len(sent_ns)
    nothing = {"end_ns": None, "position": None, "delay_ns": None, "cause": "none", "known": True}
    rows = [{**nothing, "kind": "interval", "t_ns": 0, "end_ns": 100 * SECOND}] + [
        {
            **nothing,
            "kind": "packet",
            "t_ns": SECOND + sent_ns[i],
            "position": i,
            "delay_ns": trips_ns[i],
            "known": i not in doubtful,
        }
        for i in range(n)
    ]
    return Trace(pa.Table.from_pylist(rows), bursts_or_outages=bursts_or_outages)


def test_a_burst_that_the_others_do_not_explain_is_a_break_at_its_time() -> None:
    sent = [i * 1_000_000 for i in range(3000)]
    lost = np.array([500, 1500, 1501, *range(2000, 2040), 2500])
    trips = [None if i in lost else 50_000_000 + (7_000_000 if i >= 1990 else 0) for i in range(3000)]
    open_ = open_of(_trace(sent, trips), lost, 3000)
    assert open_.bursts.tolist() == [1, 2, 1]
    # Sent after 3 s, behind a queue of 7 ms, 25 ms before the break; the last of the 40, 39 ms later, had left too.
    assert _spans(open_) == [(3_032_000_000, 3_071_000_000)]
    assert open_.positions.tolist() == [500, 1500, 1501, 2500]


def test_a_long_burst_that_few_others_make_rare_may_be_one_of_them() -> None:
    sent = [i * 1_000_000 for i in range(3000)]
    others = [1, 1, 1, 1, 2, 2, 3, 3, 5, 11]
    lost = [100 * k + i for k, length in enumerate(others) for i in range(length)] + list(range(2000, 2022))
    trips = [None if i in lost else 50_000_000 for i in range(3000)]
    open_ = open_of(_trace(sent, trips), np.array(lost), 3000)
    assert (sorted(open_.bursts.tolist()), [one.chance for one in open_.breaks]) == (others, [0.5])
    alone = np.array([*range(0, 2000, 200), *range(2000, 2022)])
    assert [one.chance for one in open_of(_trace(sent, trips), alone, 3000).breaks] == [1.0]


def test_what_had_left_and_what_leaves_in_a_break_are_one_break() -> None:
    sent = [i * 1_000_000 for i in range(3000)]
    lost = np.array([*range(0, 1000, 50), *range(2000, 2020), *range(2026, 2036)])
    trips = [None if i in lost else 50_000_000 for i in range(3000)]
    open_ = open_of(_trace(sent, trips), lost, 3000)
    assert (open_.bursts.tolist(), _spans(open_)) == ([1] * 20, [(3_025_000_000, 3_044_000_000)])


def test_a_break_ends_with_the_last_packet_that_left_in_it() -> None:
    sent = [i * 1_000_000 for i in range(3000)]
    lost = np.array([*range(0, 1000, 50), *range(2000, 2020), *range(2026, 2090)])
    trips = [None if i in lost else 50_000_000 for i in range(3000)]
    (one,) = open_of(_trace(sent, trips), lost, 3000).breaks
    assert (one.begin_ns, one.end_ns, one.packets) == (3_025_000_000, 3_089_000_000, 84)
    # The next packet left a millisecond later, and its ACK came a round trip behind it.
    assert (one.unknown_ns, one.seen_ns) == (1_000_000, 3_140_000_000)


def test_a_break_longer_than_the_path_is_one_burst() -> None:
    sent = [i * 1_000_000 for i in range(3000)]
    lost = np.array([500, *range(2000, 2080), 2500])
    trips = [None if i in lost else 50_000_000 for i in range(3000)]
    assert _spans(open_of(_trace(sent, trips), lost, 3000)) == [(3_025_000_000, 3_079_000_000)]


def test_bursts_that_explain_one_another_are_drawn() -> None:
    lost = np.array([i for first in (100, 300, 700, 900) for i in range(first, first + 6)])
    open_ = open_of(_trace([i * 1_000_000 for i in range(1000)], [None] * 1000), lost, 1000)
    assert (open_.bursts.tolist(), open_.breaks) == ([6, 6, 6, 6], ())


def test_a_break_is_an_outage_of_both_directions_in_every_draw() -> None:
    satellite = _estimate("base_rtt_ns", 6e8, 5.9e8, 6.1e8)
    open_ = _open([1], breaks=(_break(3 * SECOND, 3 * SECOND + 40_000_000),), base_rtt=satellite)
    for seed in range(20):
        link = draw(_config(), open_, seed)["path"]["links"][0]
        for way in ("forward", "reverse"):
            schedule = link[way]["schedule"]
            assert [change["outage"] for change in schedule] == [None, True, False]
            assert schedule[2]["at_ns"] - schedule[1]["at_ns"] == 40_000_000


def test_the_link_of_the_trace_is_the_one_that_is_drawn() -> None:
    config, open_ = _config(), _open([1], breaks=(), base_rtt=None)
    access: dict[str, dict[str, Any]] = {
        way: {"rate_bps": None, "delay_ns": 100_000, "schedule": []} for way in ("forward", "reverse")
    }
    behind = {**config, "path": {**config["path"], "links": [access, *config["path"]["links"]]}}
    first, second = draw(behind, open_, 3, traced=1)["path"]["links"]
    assert first == access
    assert second == draw(config, open_, 3)["path"]["links"][0]


def _outages(config: dict[str, Any], breaks: tuple[tuple[int, int], ...]) -> list[tuple[int, bool]]:
    open_ = _open([1], breaks=tuple(_break(*span) for span in breaks), base_rtt=None)
    link = draw(config, open_, 1)["path"]["links"][0]
    return [(c["at_ns"], c["outage"]) for c in link["forward"]["schedule"] if c["outage"] is not None]


def test_a_break_at_the_end_of_the_run_is_clipped() -> None:
    assert _outages(_config(), ((9 * SECOND, 11 * SECOND),)) == [(9 * SECOND, True), (10 * SECOND - 1, False)]


def test_a_break_that_overlaps_an_outage_does_not_end_it_early() -> None:
    config = _config()
    none = {"rate_bps": None, "delay_ns": None, "hold": None}
    schedule = config["path"]["links"][0]["forward"]["schedule"]
    schedule += [{**none, "at_ns": at * SECOND, "outage": down} for at, down in ((3, True), (6, False))]
    whole = [(2 * SECOND, True), (6 * SECOND, False)]
    assert _outages(config, ((2 * SECOND, 4 * SECOND),)) == whole
    assert _outages(config, ((2 * SECOND, 4 * SECOND), (5 * SECOND, 5 * SECOND + 1))) == whole


def _probes() -> tuple[list[int], list[int]]:
    """A flow that loses its last five packets and two probes at its timeouts, 0.3 and 0.9 s later: positions 1000 on.

    The link has a second burst of 4 packets, so that one of 7 is possible; the third probe, after 2.1 s, arrives.
    """
    at = [*(i * 1_000_000 for i in range(1005)), 1_300_000_000, 1_900_000_000, 3_100_000_000]
    return at + [3_200_000_000 + i * 1_000_000 for i in range(500)], [*range(300, 304), *range(1000, 1007)]


def _doubtful() -> Open:
    sent, lost = _probes()
    trips = [None if i in lost else 50_000_000 for i in range(len(sent))]
    return open_of(_trace(sent, trips, tuple(range(1000, 1007))), np.array(lost), len(sent))


def test_losses_over_timeouts_may_be_a_burst_or_a_break_until_the_next_delivery() -> None:
    open_ = _doubtful()
    assert (open_.bursts.tolist(), open_.positions.tolist()) == ([4], [300, 301, 302, 303])
    # Sent 2 s after the start of the run and later; half a round trip on, the link was down.
    assert open_.breaks == (Break(2_025_000_000, 2_900_000_000, 1_200_000_000, 4_150_000_000, 7, 0.5),)
    drawn = [_forward(open_, seed) for seed in range(100)]
    broken = [way for way in drawn if any(change["outage"] for change in way["schedule"])]
    assert 35 < len(broken) < 65
    ends = [change["at_ns"] for way in broken for change in way["schedule"] if change["outage"] is False]
    assert min(ends) >= 2_900_000_000
    assert max(ends) <= 4_100_000_000
    assert np.std(ends) > 200_000_000


def test_a_run_that_is_known_to_be_a_burst_has_a_time_in_the_captured_flow_only() -> None:
    sent, lost = _probes()
    trips = [None if i in lost else 50_000_000 for i in range(len(sent))]
    open_ = open_of(_trace(sent, trips), np.array(lost), len(sent))
    assert (open_.bursts.tolist(), [one.chance for one in open_.breaks]) == ([4], [0.0])
    drawn = [_forward(open_, seed) for seed in range(20)]
    assert not any(change["outage"] for way in drawn for change in way["schedule"])
    lengths = {len(run) for way in drawn for run in _consecutive(way["loss"]["positions"])}
    assert {4, 7} <= lengths
    link = _captured_link(open_, ())
    assert [change["outage"] for change in link["forward"]["schedule"]] == [True, False]
    assert link["reverse"]["schedule"] == []


def _shorter_than_a_round_trip(bursts_or_outages: tuple[tuple[int, int], ...]) -> Open:
    """A GEO path that lost three runs of 40 packets over 400 ms, of which nothing else is known."""
    lost = [k for first in (500, 1000, 1500) for k in range(first, first + 40)]
    trips = [None if k in lost else 550_000_000 for k in range(2000)]
    trace = _trace([k * 10_000_000 for k in range(2000)], trips, tuple(lost), bursts_or_outages)
    return replace(open_of(trace, np.array(lost), 2000), causes=(20, 180))


def test_a_run_that_is_a_burst_or_an_outage_is_not_the_queues() -> None:
    runs = ((500, 539), (1000, 1039))
    open_ = _shorter_than_a_round_trip(runs)
    assert (open_.bursts.tolist(), open_.breaks) == ([40, 40, 40], ())
    assert open_.unknown.tolist() == [False, False, True]
    # The queue made most of the other losses, so it made the third run; those that it did not make are replayed.
    kept = _captured_link(open_, ())["forward"]["loss"]["positions"]
    assert kept == [*range(500, 540), *range(1000, 1040)]
    bursts = [len(_breaks(open_, np.random.default_rng(seed))[1]) for seed in range(200)]
    assert min(bursts) == 2
    assert np.mean(bursts) == pytest.approx(2.1, abs=0.07)


def test_a_run_in_part_the_queues_is_not_taken_from_the_channel() -> None:
    assert _shorter_than_a_round_trip(((500, 500), (1039, 1039))).unknown.tolist() == [False, False, True]
    assert _shorter_than_a_round_trip(()).unknown.tolist() == [True, True, True]


def _consecutive(positions: list[int]) -> list[Any]:
    return np.split(np.array(positions), np.flatnonzero(np.diff(positions) != 1) + 1)


def _captured_link(open_: Open, steps: tuple[int, ...]) -> dict[str, Any]:
    config = _config()
    change = {"rate_bps": 2e6, "delay_ns": None, "outage": None, "hold": None}
    loss = {"kind": "trace", "mode": "replayed", "positions": [300, 301, 302, 303, *range(1000, 1007)]}
    link = config["path"]["links"][0]
    for way in ("forward", "reverse"):
        link[way] = {**link[way], "loss": loss, "schedule": [{**change, "at_ns": at} for at in steps]}
    captured: dict[str, Any] = as_captured(config, open_)["path"]["links"][0]
    return captured


def test_the_captured_channel_is_down_at_a_break_whatever_packets_meet_it() -> None:
    forward = _captured_link(_doubtful(), ())["forward"]
    assert forward["loss"]["positions"] == [300, 301, 302, 303]
    assert [(c["at_ns"], c["outage"]) for c in forward["schedule"]] == [(2_025_000_000, True), (3_500_000_000, False)]


def test_a_step_that_is_first_seen_after_a_break_happens_at_its_beginning() -> None:
    steps = _captured_link(_doubtful(), (2_000_000_000, 4_120_000_000, 4_160_000_000))["forward"]["schedule"]
    assert [c["at_ns"] for c in steps if c["rate_bps"]] == [2_000_000_000, 2_025_000_000, 4_160_000_000]

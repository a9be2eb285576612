"""From a trace's intervals to a scenario's changes: levels by the clock, outages with their time of flight."""

from __future__ import annotations

from typing import Any

from hindflight.channels.trace import Trace
from hindflight.replay.scenario.link_schedule import link_schedule_of
from hindflight.replay.scenario.loss_trace import loss_trace
from hindflight.toolkit.schema import table_from_rows

MS = 1_000_000
START_NS = 1_000_000 * MS


def _interval(begin_ms: int, end_ms: int, **values: Any) -> dict[str, Any]:
    row = {"kind": "interval", "hop": "bottleneck", "direction": "a2b", "lost": False, "cause": "none", "known": True}
    return {**row, "t_ns": START_NS + begin_ms * MS, "end_ns": START_NS + end_ms * MS, **values}


def _packet(position: int, cause: str) -> dict[str, Any]:
    row = {"kind": "packet", "hop": "bottleneck", "direction": "a2b", "size_bytes": 1500, "known": True}
    return {**row, "position": position, "t_ns": START_NS + position, "lost": cause != "none", "cause": cause}


def _trace(*rows: dict[str, Any]) -> Trace:
    return Trace(table_from_rows("channel", list(rows)))


def test_a_level_that_holds_needs_no_change() -> None:
    history = link_schedule_of(_trace(_interval(0, 60_000, rate_bps=2e6, delay_ns=250 * MS)), "a2b")
    assert (history.states, history.rate_bps, history.round_trip_ns) == (1, 2e6, 500 * MS)
    assert list(history.changes) == []
    assert list(history.unknowns) == []


def test_steps_of_delay_and_rate_come_at_their_time() -> None:
    history = link_schedule_of(
        _trace(
            _interval(0, 20_000, rate_bps=2e6, delay_ns=250 * MS),
            _interval(20_000, 40_000, rate_bps=2e6, delay_ns=25 * MS),
            _interval(40_000, 60_000, rate_bps=1e6, delay_ns=25 * MS),
        ),
        "a2b",
    )
    listed = [(c.at_ns // MS, c.rate_bps, c.round_trip_ns) for c in history.changes]
    assert listed == [(20_000, None, 50.0 * MS), (40_000, 1e6, None)]
    assert history.states == 3
    assert len(history.unknowns) == 1


def test_an_outage_of_the_way_is_one_of_its_first_hop_that_takes_the_same_packets() -> None:
    half = {"lost": True, "cause": "outage", "evidence": "half of what is not known", "known": False}
    history = link_schedule_of(
        _trace(
            _interval(0, 20_000, rate_bps=2e6, delay_ns=250 * MS),
            _interval(20_000, 60_000, rate_bps=2e6, delay_ns=50 * MS),
            _interval(20_000, 20_100, **half),
            _interval(20_100, 20_900, lost=True, cause="outage", evidence="all lost"),
            _interval(20_900, 21_000, **half),
        ),
        "a2b",
    )
    listed = [(c.at_ns // MS, c.outage, c.round_trip_ns) for c in history.changes]
    # What left the queue from 19.75 s on was lost; on a hop of 125 ms that is what a break at 19.875 s takes.
    assert listed == [(19_875, True, None), (20_000, None, 100.0 * MS), (21_000, False, None)]
    assert history.changes[0].note == "all lost"
    assert (history.states, len(history.unknowns)) == (2, 2)


def test_losses_of_an_outage_have_no_position() -> None:
    trace = _trace(*(_packet(i, cause) for i, cause in enumerate(("none", "channel", "outage", "none"))))
    assert loss_trace(trace, "t").lost.to_pylist() == [1]
    assert loss_trace(trace, "t").length == 4

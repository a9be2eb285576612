"""Peach beside a flow that fills the link: what its dummy segments cost the other, behind a queue that knows them."""

from __future__ import annotations

from functools import cache

import pytest

from replay.run import Configuration, run_configurations

RATE_BPS = 10e6
ONE_WAY_NS = 125_000_000
DURATION_NS = 120_000_000_000
QUEUES = {
    "drop_tail": {"kind": "drop_tail", "limit_pkts": 200},
    "priority": {"kind": "priority", "limit_pkts": 200, "classes": [[0]]},
}


@cache
def shares_mbps(queue: str, newcomer: str) -> tuple[float, float]:
    """Goodput over the whole run of cubic, which was there first, and of who comes after 20 s."""
    forward = {"rate_bps": RATE_BPS, "delay_ns": ONE_WAY_NS, "queue": QUEUES[queue]}
    link = {"name": "geo", "forward": forward, "reverse": {"rate_bps": RATE_BPS, "delay_ns": ONE_WAY_NS}}
    common = {"profile": "linux", "stack": {"receive_buffer_bytes": 1 << 24}}
    flows = [
        {"name": "first", "variant": "cubic", **common},
        {"name": "second", "variant": newcomer, "start_ns": 20_000_000_000, **common},
    ]
    config = {"duration_ns": DURATION_NS, "path": {"nodes": ["ground", "user"], "links": [link]}, "flows": flows}
    runs = run_configurations([Configuration(config, 1, recorded=False)])["runs"]
    first, second = (8e3 * octets / DURATION_NS for octets in runs["delivered_bytes"].to_pylist())
    return first, second


def test_behind_a_priority_queue_dummies_find_no_room_where_data_fills_the_link() -> None:
    alone, newreno = shares_mbps("drop_tail", "newreno")
    first, peach = shares_mbps("priority", "peach")
    # Neither less nor more than a newcomer without dummy segments gets, and cubic keeps what it had beside that one.
    assert peach == pytest.approx(newreno, rel=0.2)
    assert first == pytest.approx(alone, rel=0.05)


def test_with_any_other_queue_dummies_take_from_the_other() -> None:
    alone, newreno = shares_mbps("drop_tail", "newreno")
    first, peach = shares_mbps("drop_tail", "peach")
    assert peach > 2.5 * newreno
    assert first < 0.85 * alone


def test_the_queue_alone_changes_nothing_for_others() -> None:
    assert shares_mbps("priority", "newreno") == shares_mbps("drop_tail", "newreno")

"""Which flows are parallel, how their packets join those of a flow, and what gaps say about levels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from hindflight.channels.extraction import attribution
from hindflight.channels.extraction.delivery import with_parallel_flows
from hindflight.channels.extraction.parallel_flows import MAX_FLOWS, parallel_flows_of
from hindflight.toolkit.schema import table_from_rows
from tests.channels.extraction.test_outages import _delivery
from tests.reference.shared_link import flown

OTHER: list[dict[str, Any]] = [
    {"a_addr": "10.0.0.9"},
    {"b_addr": "10.0.0.9"},
    {"a2b_acked_bytes": 0},
    {"a2b_payload_bytes": 9},
    {"vantage": "receiver"},
    {"input_id": 7},
]


@cache
def _captured() -> dict[str, Any]:
    return dict(flown({})["flows"].to_pylist()[0])


def _row(flow_id: int, **more: Any) -> dict[str, Any]:
    row = _captured()
    ends = {"a_addr": "10.0.0.1", "b_addr": "10.0.0.2", "data_direction": "a2b"}
    return row | ends | {"flow_id": flow_id, "a2b_payload_bytes": 1000, "a2b_acked_bytes": 900} | more


def test_parallel_flows_carry_data_between_the_same_hosts() -> None:
    flow = _row(1)
    turned = _row(
        3, a_addr="10.0.0.2", b_addr="10.0.0.1", data_direction="b2a", b2a_payload_bytes=2000, b2a_acked_bytes=1
    )
    rows = [flow, _row(2), turned, *(_row(10 + i, **more) for i, more in enumerate(OTHER))]
    assert [row["flow_id"] for row in parallel_flows_of(flow, table_from_rows("flows", rows))] == [3, 2]


def test_the_largest_parallel_flows_are_taken() -> None:
    rows = [_row(i, a2b_payload_bytes=1000 + i) for i in range(1, 20)]
    found = [row["flow_id"] for row in parallel_flows_of(rows[0], table_from_rows("flows", rows))]
    assert found == list(range(19, 19 - MAX_FLOWS, -1))


def test_packets_of_parallel_flows_are_interleaved_in_the_order_sent() -> None:
    own = _delivery([5])
    later = replace(_delivery([7]), t_ns=own.t_ns + 1_000_000, record=own.record + 1000)
    early = replace(_delivery([]), t_ns=own.t_ns - 15_000_000_000, record=own.record + 2000)
    joined = with_parallel_flows(own, [later, early])
    assert np.array_equal(joined.record[joined.from_flow], own.record)
    assert (np.diff(joined.t_ns) >= 0).all()
    assert joined.observed.all()
    assert joined.record[joined.lost].tolist() == [6, 1008]
    # The last packet of `later` follows the flow's last; what was sent long before shows when the queue was empty.
    assert len(joined) == 3 * len(own) - 1
    assert np.array_equal(joined.record[: len(own)], early.record)
    assert (np.diff(joined.ack_t_ns) >= 0).all()


@pytest.mark.parametrize(("contradicted", "most"), [(0, 8.0), (5, 0.0)])
def test_gaps_that_contradict_levels_bound_them_on_that_path_only(contradicted: int, most: float) -> None:
    levels, gaps = np.full(20, -8.0), np.zeros(20)
    gaps[:5] = -5.0
    gaps[:contradicted] = 5.0
    odds = attribution._agreeing(levels, gaps, np.arange(20), [(0, 10, 1.0), (10, 20, 1.0)])
    assert np.abs(odds[:10]).max() == pytest.approx(most)
    assert (odds[10:] == -8.0).all()


def test_one_contradiction_in_many_leaves_levels_known() -> None:
    gaps = np.full(100, -5.0)
    gaps[0] = 5.0
    odds = attribution._agreeing(np.full(100, -8.0), gaps, np.arange(100), [(0, 100, 1.0)])
    assert odds[0] == pytest.approx(-np.log(100), abs=0.01)


def test_losses_in_a_row_share_one_gap() -> None:
    # Ten losses behind one gap that contradicts the levels, and 40 gaps that agree with them.
    gaps = np.array([5.0] * 10 + [-5.0] * 40)
    group = np.array([0] * 10 + list(range(1, 41)))
    odds = attribution._agreeing(np.full(50, -8.0), gaps, group, [(0, 50, 1.0)])
    assert odds[0] == pytest.approx(-np.log(41), abs=0.01)
    # Packets delivered unseen between them make no second gap.
    group[[3, 6]] = -1
    assert np.array_equal(attribution._agreeing(np.full(50, -8.0), gaps, group, [(0, 50, 1.0)]), odds)


def test_a_gap_says_little_among_gaps_that_are_not_exact() -> None:
    exact, stretched = np.full(400, 0.01), np.full(400, 2.0)
    off_by = np.concatenate((exact, stretched))
    assert attribution._clear(off_by, 100) > 5.0
    assert attribution._clear(off_by, 700) < 0.01

"""When the rate of a link changed: states of single spans, and where a slower one begins."""

from __future__ import annotations

import numpy as np
import pytest

from hindflight.channels.extraction import bottleneck
from hindflight.channels.extraction.busy_spans import RATE_TOLERANCE, BusySpans, joined_until_exact
from hindflight.channels.extraction.change_points import fit
from hindflight.channels.extraction.delivery import Delivery

MS = 1_000_000


def _acked(acked_ms: list[float]) -> Delivery:
    """Full-sized packets that were acknowledged at these times; negative: lost."""
    n = len(acked_ms)
    acked = (MS * np.array(acked_ms)).astype(np.int64)
    acked[acked < 0] = -1
    none = np.zeros(n, dtype=np.bool_)
    return Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=np.arange(n) * MS, size_bytes=np.full(n, 1500),
        seq=np.arange(n), seq_end=np.arange(n) + 1, lost=acked < 0, acked_ns=acked, prompt=acked >= 0, undecided=none,
        covered_ns=acked, from_flow=~none, observed=~none, ack_t_ns=acked[acked >= 0], ack_bytes=40, handshake=None,
    )  # fmt: skip


@pytest.mark.parametrize("dropped", [False, True])
def test_a_slower_rate_begins_where_acks_come_at_it(dropped: bool) -> None:
    # 12 Mbit/s up to packet 50, then 3 Mbit/s; both are measured farther off, because the queue drops packets then.
    acked = [*np.arange(1.0, 51), *(50 + 4.0 * np.arange(1, 51))]
    if dropped:
        acked = [at for k, at in enumerate(acked) for at in ([-1.0, at] if 45 < k < 70 else [at])]
    delivery = _acked(acked)
    times = 40 * MS, 130 * MS
    assert bottleneck._slower_since(delivery, times, (12e6, 3e6)) == 54 * MS
    states = ((MS, times[0], 12e6), (times[1], 250 * MS, 3e6))
    assert bottleneck._begun(delivery, states) == (states[0], (54 * MS, 250 * MS, 3e6))


def test_where_acks_do_not_show_the_slower_rate_it_begins_with_its_first_measurement() -> None:
    # The application pauses in between: what came later than at the faster rate shows no other one.
    acked = [*np.arange(1.0, 51), *(100 + np.arange(1.0, 11)), *(130 + 4.0 * np.arange(1, 31))]
    assert bottleneck._slower_since(_acked(acked), (40 * MS, 130 * MS), (12e6, 3e6)) == 130 * MS
    assert bottleneck._slower_since(_acked(acked), (300 * MS, 310 * MS), (12e6, 3e6)) == 310 * MS


def test_a_state_of_the_rate_is_not_lost_where_many_single_spans_agree_with_none() -> None:
    # 2 Mbit/s, for a while with ACKs that come late by up to 4 ms, then 0.5 Mbit/s: the states explain 59 % of spans.
    late = np.diff(np.random.default_rng(1).uniform(0, 4, 301))
    span = np.concatenate((np.full(245, 6.0), 6 + late, np.full(190, 24.0)))
    span_ns = (MS * span).astype(np.int64)
    pairs = BusySpans(np.cumsum(span_ns), span_ns, np.full(len(span), 1500))
    joined = joined_until_exact(pairs, np.ones(len(span), dtype=np.bool_))
    levels = fit(np.log(joined.served_bytes * 8e3 / joined.span_ns), RATE_TOLERANCE)
    assert [round(float(np.exp(level)), 2) for _, _, level in levels.spans] == [2.0, 0.5]

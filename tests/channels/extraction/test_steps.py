"""When the link changed, at its own clock: by the first packet behind a handover, and in a pause."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction import states
from hindflight.channels.extraction.attribution import verdicts
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import of_delivery

MS = 1_000_000


def _delivery(lost: range) -> Delivery:
    """One packet each 10 ms over a path of 100 ms; `lost` ones are lost."""
    n = 600
    t = (10 * MS * np.arange(n)).astype(np.int64)
    gone = np.isin(np.arange(n), list(lost))
    acked = np.where(gone, -1, t + 100 * MS)
    all_packets = np.ones(n, dtype=np.bool_)
    return Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=t, size_bytes=np.full(n, 1500), seq=np.arange(n),
        seq_end=np.arange(n) + 1, lost=gone, acked_ns=acked, prompt=~gone, undecided=~all_packets,
        covered_ns=acked, from_flow=all_packets, observed=all_packets, ack_t_ns=acked[~gone], ack_bytes=40,
        handshake=None,
    )  # fmt: skip


def test_the_first_packet_behind_a_handover_shows_the_link_up_by_its_ack() -> None:
    # While the path changes no departure corrects the queue, but packet 250 was acknowledged 100 ms late.
    whole = _delivery(range(200, 250))
    link, found = of_delivery(whole), verdicts(whole, of_delivery(whole))
    late = np.isin(np.arange(600), [250])
    delivery = replace(whole, acked_ns=whole.acked_ns + np.where(late, 100 * MS, 0))
    moved, left_ns = replace(link, departed_ns=np.where(late, np.nan, link.departed_ns)), whole.t_ns + link.service_ns
    (exact,) = states._outages(whole, link, found, left_ns)
    assert exact.next_up_ns is not None
    for one, later_ns in ((delivery, 100 * MS), (replace(delivery, prompt=delivery.prompt & ~late), 0)):
        (broken,) = states._outages(one, moved, found, left_ns)
        assert broken.next_up_ns == pytest.approx(exact.next_up_ns + later_ns, abs=MS)


def test_a_delay_that_changed_in_a_pause_is_not_known_in_it() -> None:
    # After 5 s in which nothing is sent the path is longer by 60 ms.
    whole = _delivery(range(0))
    later = np.arange(600) >= 300
    t_ns = whole.t_ns + np.where(later, 5000 * MS, 0)
    acked = t_ns + np.where(later, 160 * MS, 100 * MS)
    paused = replace(whole, t_ns=t_ns, acked_ns=acked, covered_ns=acked, ack_t_ns=acked)
    link = of_delivery(paused)
    assert [first for first, _, _ in link.base.spans] == [0, 300]
    ((since_ns, until_ns),) = states.steps_of(paused, link, verdicts(paused, link)).unseen
    # The last packet before arrives half a round trip later.
    assert since_ns == pytest.approx(t_ns[299] + 50 * MS, abs=10 * MS)
    assert until_ns == pytest.approx(t_ns[300], abs=10 * MS)
    sure = replace(link, rate=replace(link.rate, known=True, steady=True), unshared=True)
    rows = states.interval_rows(paused, sure, verdicts(paused, link), 0)
    assert [(row["t_ns"], row["known"]) for row in rows] == [(0, True), (since_ns, False), (until_ns, True)]
    # Without a pause it changed between two packets.
    moved = replace(whole, acked_ns=acked - t_ns + whole.t_ns)
    assert not states.steps_of(moved, of_delivery(moved), verdicts(moved, of_delivery(moved))).unseen

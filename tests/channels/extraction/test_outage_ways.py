"""Which way the packets had that an outage lost at a handover: its edges are timed by that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction import states
from hindflight.channels.extraction.attribution import verdicts
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import Link, of_delivery

MS = 1_000_000
NUMBER = np.arange(600)


def _handover(*, last_acked: int) -> tuple[Delivery, Link, Floats]:
    """One packet each 10 ms. Packets 200 to 229 are lost, and behind a pause of 700 ms the round trip is 200 instead of
    1000 ms. Those behind `last_acked` that were delivered before have no ACK of their own."""
    lost, later = (NUMBER >= 200) & (NUMBER < 230), NUMBER >= 230
    t_ns = (10 * MS * NUMBER + np.where(later, 700 * MS, 0)).astype(np.int64)
    silent = (last_acked < NUMBER) & (NUMBER < 200)
    acked = np.where(
        later, t_ns + 200 * MS, np.where(lost, -1, np.where(silent, t_ns[230] + 200 * MS, t_ns + 1000 * MS))
    )
    none = np.zeros(600, dtype=np.bool_)
    delivery = Delivery(
        direction="a2b", record=NUMBER + 1, t_ns=t_ns, size_bytes=np.full(600, 1500), seq=NUMBER,
        seq_end=NUMBER + 1, lost=lost, acked_ns=acked, prompt=~lost & ~silent, undecided=none, covered_ns=acked,
        from_flow=~none, observed=~none, ack_t_ns=np.unique(acked[acked >= 0]), ack_bytes=40, handshake=None,
    )  # fmt: skip
    link = of_delivery(delivery)
    return delivery, link, t_ns + link.service_ns


def test_acks_that_came_until_the_losses_would_have_arrived_by_the_former_way_show_that_they_had_it() -> None:
    # The break at 2.5 s loses what was under way, and the ACKs of all packets behind 149.
    delivery, link, left_ns = _handover(last_acked=149)
    found = verdicts(delivery, link)
    assert [(first, last) for first, last, _ in found.outages] == [(200, 229)]
    (broken,) = states._outages(delivery, link, found, left_ns)
    assert broken.last_up_ns == pytest.approx(left_ns[199] + 500 * MS, abs=10 * MS)
    assert broken.first_ns == pytest.approx(left_ns[200] + 500 * MS, abs=10 * MS)
    assert broken.last_ns == pytest.approx(left_ns[229] + 500 * MS, abs=10 * MS)
    # Packet 230 left the queue behind that, so the link was up by then, and not only when it arrived.
    assert broken.next_up_ns == pytest.approx(left_ns[230], abs=10 * MS)


@pytest.mark.parametrize("last_acked", [100, 160])
def test_acks_show_no_former_way_if_none_came_after_the_break_or_one_in_it(last_acked: int) -> None:
    # None came behind the first loss by the way of 100 ms; or one came when those by the former way arrived.
    delivery, link, left_ns = _handover(last_acked=last_acked)
    assert states._way_of_losses_ns(delivery, link, left_ns, (200, 229, 230)) == pytest.approx(100 * MS, abs=10 * MS)


def test_the_first_packet_timed_on_a_shorter_path_may_have_been_on_the_former_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Packet 199 was acknowledged 600 ms after it left the queue: 500 ms by the former way, 100 ms by the one behind.
    delivery, link, left_ns = _handover(last_acked=149)
    number = np.array([199])
    mixed = replace(delivery, acked_ns=delivery.acked_ns.copy(), prompt=delivery.prompt.copy())
    mixed.prompt[number] = True
    (before, *_, behind) = (ns for _, _, ns in link.base.spans)
    early = replace(link, base=replace(link.base, spans=((0, 199, before), (199, 600, behind)), error_ns=(0.0, 0.0)))
    monkeypatch.setattr(states, "lost_acks_due_ns", lambda *_: 2050.0 * MS)
    found = verdicts(delivery, link)
    for trip_ms, way_ms in ((600, 500), (200, 100)):
        mixed.acked_ns[number] = left_ns[199] + trip_ms * MS
        (broken,) = states._outages(mixed, early, found, left_ns)
        # Its ACK is not due by the path that it only came back on.
        assert (broken.first_ns == 2050 * MS) == (way_ms == 100)
        assert states._way_from_ns(mixed, early, left_ns, 200) == pytest.approx(way_ms * MS, abs=10 * MS)
    # A longer path behind, or none timed on it, says nothing.
    assert states._way_from_ns(replace(mixed, prompt=delivery.prompt), early, left_ns, 200) == pytest.approx(
        100 * MS, abs=10 * MS
    )

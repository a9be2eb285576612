"""When the link changed, at its own clock: by the first packet behind a handover, and in a pause."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction import base_rtt, states
from hindflight.channels.extraction.attribution import verdicts
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import Link, left_queue_ns, of_delivery
from hindflight.channels.extraction.outage_runs import lost_acks_due_ns
from tests.channels.extraction.packets import packets

MS = 1_000_000


def _delivery(lost: range) -> Delivery:
    """One packet each 10 ms over a path of 100 ms; `lost` ones are lost."""
    n = 600
    t = (10 * MS * np.arange(n)).astype(np.int64)
    gone = np.isin(np.arange(n), list(lost))
    acked = np.where(gone, -1, t + 100 * MS)
    return packets(t, acked)


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


def _busy() -> Delivery:
    """A packet each 0.97 ms through a link that takes 1 ms and a queue of eight, over 6 ms; an interruption of 350
    packets."""
    n, trip_ns, service_ns = 3000, 6 * MS, MS
    t = (0.97 * MS * np.arange(n)).astype(np.int64)
    acked, free_ns = np.full(n, -1), 0
    for i, sent_ns in enumerate(t.tolist()):
        if free_ns - sent_ns < 8 * service_ns:
            free_ns = max(free_ns, sent_ns) + service_ns
            acked[i] = free_ns + trip_ns if not 1450 <= i < 1800 else -1
    return packets(t, acked)


def test_steps_that_a_queue_may_make_do_not_replace_a_base_that_explains_the_round_trips(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # An interruption divides the flow into two stretches of one path. The queue is never empty for long: a path that is
    # shorter by 4 ms, with four more packets in the queue, explains the round trips, too.
    delivery = _busy()
    base = replace(of_delivery(delivery).base, spans=((0, 3000, 6.0 * MS),), error_ns=(0.0,), least_ns=(6.0 * MS,))
    shorter = replace(
        base, per_packet_ns=base.per_packet_ns - 4 * MS, spans=((0, 3000, 2.0 * MS),), error_ns=(np.inf,), sure=False
    )
    monkeypatch.setattr(base_rtt, "stretch_base", lambda *_: base)
    monkeypatch.setattr(base_rtt, "piecewise_base", lambda *_: shorter)
    link = of_delivery(delivery)
    assert link.unshared
    assert link.base.spans == base.spans


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


def test_a_delay_that_changed_with_an_outage_changed_at_its_begin_and_is_not_unseen() -> None:
    # 5 s in which nothing is sent, and an outage shorter than the way of 50 ms: it began behind the last packet timed
    # or before that.
    whole = _delivery(range(0))
    later = np.arange(600) >= 300
    t_ns = whole.t_ns + np.where(later, 5000 * MS, 0)
    acked = t_ns + np.where(later, 160 * MS, 100 * MS)
    paused = replace(whole, t_ns=t_ns, acked_ns=acked, covered_ns=acked, ack_t_ns=acked)
    link = of_delivery(paused)
    left_ns = left_queue_ns(paused, link)
    for begin_ms, until_ms, behind in ((10, 30, True), (-30, 70, False)):
        begin_ns, until_ns = (int(left_ns[299]) + at_ms * MS for at_ms in (begin_ms, until_ms))
        outage = states._Outage(begin_ns, begin_ns, until_ns, until_ns)
        (cut,) = states._delay_cuts(paused, link, left_ns, [outage])
        assert cut == (begin_ns if behind else int(left_ns[300]))
        assert bool(states._unseen(paused, link, left_ns, [outage])) != behind


def test_the_acks_that_a_break_takes_show_it_broken_when_they_were_due() -> None:
    # The last packets before the break have no ACK of their own; the first one lost is sent a second later.
    whole = _delivery(range(200, 250))
    t_ns = whole.t_ns + np.where(np.arange(600) >= 200, 1000 * MS, 0)
    for missing, last in ((2, None), (4, 199), (5, 198)):
        silent = np.isin(np.arange(600), range(200 - missing, 200))
        acked = np.where(whole.lost, -1, np.where(silent, t_ns[250], t_ns) + 100 * MS)
        delivery = replace(
            whole, t_ns=t_ns, acked_ns=acked, covered_ns=acked, prompt=~whole.lost & ~silent,
            ack_t_ns=np.unique(acked[acked >= 0]),
        )  # fmt: skip
        link = of_delivery(delivery)
        (broken,) = states.steps_of(delivery, link, verdicts(delivery, link)).outages
        # An odd one out may have waited for the receiver's timer; two may have had one ACK, which was lost alone.
        due_ns = t_ns[200] + 50 * MS if last is None else t_ns[last] + 100 * MS
        assert broken.first_ns == pytest.approx(due_ns, abs=9 * MS)
        up_ns = max(t_ns[199] + 50 * MS, t_ns[199 - missing] + 100 * MS)
        assert broken.last_up_ns == pytest.approx(up_ns, abs=9 * MS)


def test_what_waited_behind_the_last_loss_shows_when_that_one_left() -> None:
    # Packet 250 is delivered 300 ms late: it waited for 249, which the model says to have left at once.
    whole = _delivery(range(200, 250))
    delivery = replace(whole, acked_ns=whole.acked_ns + np.where(np.arange(600) == 250, 300 * MS, 0))
    alone, found = replace(of_delivery(whole), unshared=True), verdicts(whole, of_delivery(whole))
    link = replace(alone, replay=replace(alone.replay, wait_ns=np.where(np.arange(600) == 250, 30.0 * MS, 0.0)))
    left_ns = whole.t_ns + link.service_ns

    def last_left_ns(one: Delivery, last: int, seen: Link = link) -> float:
        modelled_ns = left_ns + seen.replay.wait_ns
        return states._last_left_ns(one, seen, (modelled_ns, modelled_ns, found), (last, 250))

    shown_ns = delivery.acked_ns[250] - link.base.per_packet_ns[250] - link.service_ns[250]
    assert last_left_ns(delivery, 249) == pytest.approx(shown_ns)
    assert shown_ns > left_ns[249] + 250 * MS
    # It did not wait; it waited for another packet; its ACK may have been that of another one; the queue is shared, or
    # was empty by the model.
    assert last_left_ns(whole, 249) == left_ns[249]
    assert last_left_ns(delivery, 248) == left_ns[248]
    assert last_left_ns(replace(delivery, prompt=whole.lost), 249) == left_ns[249]
    for seen in (replace(link, unshared=False), alone):
        assert last_left_ns(delivery, 249, seen) == left_ns[249]
    # A base that may be shorter shows the earliest time only.
    wide = replace(link, base=replace(link.base, error_ns=(40e6,)))
    assert last_left_ns(delivery, 249, wide) == pytest.approx(shown_ns - 40 * MS)
    # It may have waited at the rate behind the break only.
    later_ns = left_ns + link.replay.wait_ns
    assert states._last_left_ns(delivery, alone, (left_ns, later_ns, found), (249, 250)) == pytest.approx(shown_ns)
    # It may have waited on the way, for what was sent before over a longer one.
    former_ns = 2 * (shown_ns + 100 * MS - left_ns[199])
    per_packet_ns = np.where(np.arange(600) < 200, former_ns, link.base.per_packet_ns)
    spans = ((0, 200, former_ns), (200, 600, link.base.per_packet_ns[250]))
    base = replace(link.base, spans=spans, error_ns=(0.0, 0.0), per_packet_ns=per_packet_ns, shown_by=())
    assert last_left_ns(delivery, 249, replace(link, base=base)) == left_ns[249]


def test_a_timed_packet_shows_when_those_before_it_left_that_waited_too() -> None:
    # Packets 250 and 251 are served one after the other; only the ACK of 251 times one.
    whole = _delivery(range(200, 250))
    number = np.arange(600)
    delivery = replace(
        whole, acked_ns=whole.acked_ns + np.where(number == 251, 300 * MS, 0), prompt=whole.prompt & (number != 250)
    )
    link, found = replace(of_delivery(whole), unshared=True), verdicts(whole, of_delivery(whole))
    left_ns = whole.t_ns + link.service_ns
    left = float(delivery.acked_ns[251] - link.base.per_packet_ns[251])
    begun_ns = states._begun_ns(delivery, link, (left_ns, found), 250)
    assert begun_ns == pytest.approx(left - link.service_ns[250] - link.service_ns[251])
    # Packet 251 did not wait, or it is not known whether 250 arrived.
    assert states._begun_ns(replace(delivery, acked_ns=whole.acked_ns), link, (left_ns, found), 250) == -np.inf
    unclear = replace(delivery, undecided=number == 250)
    assert states._begun_ns(unclear, link, (left_ns, found), 250) == -np.inf
    # Between two levels the base is not known.
    held = link.base.spans[0][2]
    between = replace(link.base, spans=((0, 245, held), (255, 600, held)), error_ns=(0.0, 0.0), shown_by=())
    assert states._begun_ns(delivery, replace(link, base=between), (left_ns, found), 250) == -np.inf


def test_what_an_ack_reports_behind_a_packet_shows_that_it_had_left() -> None:
    # By the model the last ten losses wait for 800 ms, but packet 250 was sent behind them and was acknowledged.
    delivery = _delivery(range(200, 250))
    fitted = of_delivery(delivery)
    waited = np.where(np.isin(np.arange(600), range(240, 250)), 800.0 * MS, 0.0)
    link = replace(fitted, replay=replace(fitted.replay, wait_ns=waited))
    base_ns = link.base.per_packet_ns[250]
    assert left_queue_ns(delivery, link)[249] == pytest.approx(delivery.acked_ns[250] - base_ns)
    # As late as the base may be shorter; none is timed.
    wide = replace(link, base=replace(link.base, error_ns=(40e6,)))
    assert left_queue_ns(delivery, wide)[249] == pytest.approx(delivery.acked_ns[250] - base_ns + 40 * MS)
    unseen = replace(delivery, prompt=delivery.prompt & (np.arange(600) < 200))
    assert left_queue_ns(unseen, link)[249] == delivery.t_ns[249] + 800 * MS + link.service_ns[249]
    # What was on the way when the path changed met both, also before the first packet of the shorter one.
    both = replace(
        fitted.base, spans=((0, 300, base_ns), (300, 600, 60.0 * MS)), error_ns=(0.0, 0.0),
        per_packet_ns=np.where(np.arange(600) < 300, base_ns, 60.0 * MS), trusted=np.arange(600) != 250,
    )  # fmt: skip
    assert left_queue_ns(delivery, replace(link, base=both))[249] == pytest.approx(delivery.acked_ns[251] - base_ns)
    # Between two levels the shorter one counts.
    spans = ((0, 200, 60.0 * MS), (300, 600, base_ns))
    moved = replace(link, base=replace(link.base, spans=spans, error_ns=(0.0, 0.0)))
    assert left_queue_ns(delivery, moved)[249] == pytest.approx(delivery.acked_ns[250] - 60 * MS)


def test_what_waits_in_an_outage_may_leave_at_the_rate_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = _delivery(range(200, 250))
    fitted, found = of_delivery(delivery), verdicts(delivery, of_delivery(delivery))
    waited = np.where(delivery.lost, 70.0 * MS, 0.0)
    link = replace(fitted, replay=replace(fitted.replay, wait_ns=waited))
    left_ns = delivery.t_ns + waited + link.service_ns
    for faster_ns in (0, 50 * MS):
        monkeypatch.setattr(states, "left_behind_breaks_ns", lambda *_, by=faster_ns: left_ns - by)
        (broken,) = states._outages(delivery, link, found, left_ns)
        assert broken.last_ns == pytest.approx(left_ns[249] - faster_ns, abs=1)


def test_acks_that_a_break_takes_were_due_over_the_path_before() -> None:
    whole = _delivery(range(200, 250))
    silent = np.isin(np.arange(600), range(196, 200))
    covered = np.where(silent, whole.acked_ns[250], whole.acked_ns)
    acked = np.where(silent, -1, whole.acked_ns)
    delivery = replace(whole, covered_ns=covered, acked_ns=acked, prompt=acked >= 0, ack_t_ns=acked[acked >= 0])
    fitted = of_delivery(delivery)
    # No level holds the packets around the break.
    spans = ((0, 190, 100.0 * MS), (260, 600, 20.0 * MS))
    per_packet_ns = np.where(np.arange(600) < 190, 100.0 * MS, 20.0 * MS)
    base = replace(fitted.base, spans=spans, error_ns=(0.0, 0.0), per_packet_ns=per_packet_ns, shown_by=(0, 260))
    link = replace(fitted, base=base)
    left_ns = delivery.t_ns + link.service_ns
    due_ns = lost_acks_due_ns(delivery, link, left_ns, np.arange(200))
    assert due_ns == left_ns[199] + 100 * MS


def test_a_packet_that_is_not_timed_may_have_left_at_the_rate_before() -> None:
    whole = _delivery(range(200, 250))
    untimed = np.isin(np.arange(600), range(250, 270))
    delivery = replace(whole, prompt=whole.prompt & ~untimed)
    fitted = of_delivery(whole)
    left_ns = delivery.t_ns + fitted.service_ns
    assert states._latest_left_ns(whole, fitted, (left_ns, left_ns), 250) == pytest.approx(left_ns[250], abs=MS)
    # Nine packets wait before it; before the outage each took 20 ms, or 100 ms: packet 270 was acknowledged before.
    replayed = replace(fitted.replay, level=np.where(untimed, 9.0, 0.0))
    departed_ns = np.where(untimed, np.nan, fitted.departed_ns)
    shown_ns = delivery.acked_ns[270] - fitted.base.per_packet_ns[270]
    for service_ms, latest_ns in ((20, delivery.t_ns[250] + 200 * MS), (100, shown_ns)):
        full_ns = np.where(np.arange(600) < 200, service_ms * MS, fitted.full_ns)
        link = replace(fitted, full_ns=full_ns, replay=replayed, departed_ns=departed_ns)
        assert states._latest_left_ns(delivery, link, (left_ns, left_ns), 250) == pytest.approx(latest_ns)
        # At the rate behind it, they may have waited until then.
        behind_ns = left_ns + 2 * full_ns[199]
        assert states._latest_left_ns(delivery, link, (left_ns, behind_ns), 250) == pytest.approx(shown_ns)

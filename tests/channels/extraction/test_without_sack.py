"""Flows without SACK: the copy that an ACK answers, and packets of which it is not known whether they arrived."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hindflight.channels.extraction import bottleneck, queue
from hindflight.channels.extraction import link as link_module
from hindflight.channels.extraction.bottleneck import Rate
from hindflight.channels.extraction.busy_spans import BusySpans
from hindflight.channels.extraction.delivery import Delivery, of_flow
from hindflight.channels.extraction.link import AllDropped
from hindflight.channels.extraction.path_steps import Stretch
from hindflight.channels.extraction.queue import Arrivals
from hindflight.toolkit.schema import TABLES, table_from_rows

MS = 1_000_000
SIZE = 1000


def _flow(echo: int | None) -> Delivery:
    """Three segments of which the second was lost and sent again; the ACK of the copy echoes the timestamp `echo`."""
    sent = [(1, 0, 1, 10), (2, 1, 1 + SIZE, 11), (3, 2, 1 + 2 * SIZE, 12), (5, 300, 1 + SIZE, 310)]
    acks = [(4, 101, 1 + SIZE, 10), (6, 401, 1 + 3 * SIZE, echo)]
    base: dict[str, Any] = {"sack": [], "flags": 16}
    rows = [
        {**base, "record": record, "t_ns": at * MS, "direction": "a2b", "seq": seq, "ack": 1, "payload_bytes": SIZE,
         "ip_bytes": SIZE + 52, "ts_val": stamp, "ts_ecr": 1}
        for record, at, seq, stamp in sent
    ]  # fmt: skip
    rows += [
        {**base, "record": record, "t_ns": at * MS, "direction": "b2a", "seq": 1, "ack": ack, "payload_bytes": 0,
         "ip_bytes": 52, "ts_val": 1 if stamp is not None else None, "ts_ecr": stamp}
        for record, at, ack, stamp in acks
    ]  # fmt: skip
    plain = {"bool": False, "text": "", "list_i64": [], "enum": None}
    blank = {c.name: plain.get(c.type, 0) for c in TABLES["segments"].columns if not c.nullable}
    blank |= {"flow_id": 1, "segments_n": 1, "ip_checksum": "not_checked", "tcp_checksum": "not_checked"}
    segments = table_from_rows("segments", [{**blank, **row} for row in rows])
    lost = {"run_id": 0, "flow_id": 1, "leg": 0, "t_ns": MS, "direction": "a2b", "kind": "loss", "cause": "unknown"}
    return of_flow(segments, table_from_rows("events", [{**lost, "record": 2}]), 1, "a2b")


def test_the_timestamp_that_an_ack_echoes_shows_which_copy_it_answers() -> None:
    timed = _flow(310)
    assert timed.prompt.tolist() == [True, False, False, True]
    assert timed.acked_ns[3] - timed.t_ns[3] == 101 * MS
    # The first copy may have arrived late, or nothing shows which one did.
    assert not _flow(11).prompt[3]
    assert not _flow(None).prompt[3]


def _arrivals(undecided: bool, full_ns: tuple[float, ...] = (10.0, 10.0, 10.0, 10.0)) -> Arrivals:
    n = len(full_ns)
    full = np.array(full_ns)
    return Arrivals(
        np.zeros(n),
        full,
        np.full(n, np.nan),
        np.zeros(n, bool),
        np.full(n, undecided),
        full,
        1.0,
        np.zeros(n, bool),
        full,
    )


def test_a_full_queue_refuses_what_may_not_have_arrived() -> None:
    assert queue.replay(_arrivals(True), 1.0, unshared=True).level.tolist() == [0.0, 1.0, 2.0, 2.0]
    assert queue.replay(_arrivals(False), 1.0, unshared=True).level.tolist() == [0.0, 1.0, 2.0, 3.0]
    # Without a limit nothing is refused.
    assert queue.replay(_arrivals(True), -np.inf, unshared=True).level.tolist() == [0.0, 1.0, 2.0, 3.0]


def _gap(undecided: bool) -> AllDropped:
    """Four packets at once, of which the second may be undecided and the third was lost; the fourth left the link as
    late as if both had used it. A fifth finds it idle."""
    full, lost = np.full(5, 10.0), np.array([0, 0, 1, 0, 0], bool)
    departed = np.array([10.0, np.nan, np.nan, 40.0, 110.0])
    unclear = np.array([0, undecided, 0, 0, 0], bool)
    sent = np.array([0.0, 0.0, 0.0, 0.0, 100.0])
    return AllDropped.of(
        Arrivals(sent, full, departed, lost, unclear, full, 1.0, np.zeros(5, bool), full), unshared=True
    )


def test_levels_and_gaps_behind_an_undecided_packet_are_not_exact() -> None:
    sure, unclear = _gap(undecided=False), _gap(undecided=True)
    assert sure.exact.all()
    assert unclear.exact.tolist() == [True, True, False, False, True]
    # The lost packet used the link, unless the undecided one may be what did.
    assert sure.gap[2] < 0
    assert unclear.gap[2] == 0


def test_the_limit_of_a_queue_is_taken_from_exact_levels() -> None:
    # The queue refuses at 20 packets and more. Inexact levels are four lower.
    level = np.tile(np.arange(10.0, 25.0), 20)
    lost, exact = level >= 20, np.arange(300) < 100
    delivery = replace(
        _flow(310), seq=np.arange(300), lost=lost, undecided=np.zeros(300, bool), observed=np.ones(300, bool),
        t_ns=np.arange(300), covered_ns=np.arange(300) + 10, ack_t_ns=np.arange(300) + 10,
    )  # fmt: skip
    level[~exact & lost] -= 4
    dropped = AllDropped(level, np.zeros(300), exact)
    none = np.zeros(300, bool)
    found = link_module._limit(delivery, dropped, none)
    assert found is not None
    assert 19 < found.limit <= 20
    within = link_module.limit_within(delivery, dropped, ~none)
    assert within is not None
    assert within.limit == found.limit


def test_a_step_of_the_rate_changes_the_wait_and_not_the_number_of_packets() -> None:
    replayed = queue.replay(_arrivals(False, (10.0, 10.0, 10.0, 40.0, 40.0)), np.inf, unshared=True)
    assert replayed.level.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert replayed.wait_ns.tolist() == [0.0, 10.0, 20.0, 30.0, 70.0]


def test_an_acknowledgement_behind_a_hole_does_not_say_at_which_rate_a_packet_left() -> None:
    delivery = _flow(310)
    # The third packet arrived before the copy of the second, and so at the rate of the time before it.
    acked = np.array([101, -1, 900, 401]) * MS
    acked[1] = -1
    slow, fast = 1e6, 1e7
    held = Rate(
        fast, fast, fast, 100, known=True, steady=True,
        states=((0, 500 * MS, fast), (600 * MS, 900 * MS, slow)), busy=BusySpans(acked[:1], acked[:1], acked[:1]),
    )  # fmt: skip
    at_ns = link_module._served_at_ns(replace(delivery, acked_ns=acked))
    service_ns = held.service_ns(delivery.size_bytes, at_ns)
    assert service_ns[2] == delivery.size_bytes[2] * 8e9 / fast


def test_what_waited_behind_a_hole_shows_no_higher_rate() -> None:
    # A packet each 10 ms, over 100 ms; 50 and 60 were lost. Without SACK the copy of 50, sent behind 79, reports
    # 51 to 59 as well, and the copy of 60, 100 ms later, all that had arrived since.
    n = 200
    t = np.concatenate((np.arange(81), [90], 91 + np.arange(118))) * 10 * MS
    seq = SIZE * np.concatenate((np.arange(80), [50, 60], 80 + np.arange(118)))
    acked = t + 100 * MS
    acked[51:60], acked[61:80] = acked[80], acked[81]
    acked[[50, 60]] = -1
    waited = np.isin(np.arange(n), [*range(50, 80)])
    delivery = replace(
        _flow(310), record=np.arange(n), t_ns=t, size_bytes=np.full(n, SIZE), seq=seq, seq_end=seq + SIZE,
        lost=acked < 0, acked_ns=acked, prompt=~waited,
        undecided=np.zeros(n, bool), covered_ns=acked, from_flow=np.ones(n, bool), observed=np.ones(n, bool),
    )  # fmt: skip
    most = bottleneck._most_carried(delivery, Stretch(0, n, 100.0 * MS))
    assert most <= 1.11 * SIZE * 8 / 0.01

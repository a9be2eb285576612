"""Which runs of losses are outages: bursts, breaks longer and shorter than the path, and what other traffic shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction import attribution, outage_runs, queue, states
from hindflight.channels.extraction.attribution import OUTAGE, QUEUE, verdicts
from hindflight.channels.extraction.delivery import Delivery, of_flow
from hindflight.channels.extraction.extract import _bursts_or_outages, extract
from hindflight.channels.extraction.link import Link, left_queue_ns, of_delivery
from hindflight.channels.extraction.queue import Ceiling
from hindflight.channels.extraction.states import interval_rows
from hindflight.channels.trace import Trace
from hindflight.replay.scenario.loss_trace import loss_trace
from tests.reference.link import LinkModel, bernoulli, fly

MS = 1_000_000
TRIP_MS = 100.0


def _delivery(lost: list[int], trip_ms: float = TRIP_MS, other: range = range(0), every_ms: float = 10.0) -> Delivery:
    """One packet each `every_ms` over a path with `trip_ms`; `lost` ones are lost, `other` ones another flow's."""
    n = 600
    t = (every_ms * MS * np.arange(n)).astype(np.int64)
    gone, foreign = np.isin(np.arange(n), lost), np.isin(np.arange(n), list(other))
    acked = np.where(gone | foreign, -1, t + int(trip_ms * MS))
    return Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=t, size_bytes=np.full(n, 1500), seq=np.arange(n),
        seq_end=np.arange(n) + 1, lost=gone, acked_ns=acked, prompt=acked >= 0, undecided=np.zeros(n, dtype=np.bool_),
        covered_ns=acked, from_flow=~foreign, observed=~foreign, ack_t_ns=acked[acked >= 0],
        ack_bytes=40, handshake=None,
    )  # fmt: skip


def _outages(delivery: Delivery) -> list[tuple[int, int]]:
    found = verdicts(delivery, of_delivery(delivery))
    assert all(found.cause[k] == OUTAGE for a, b, _ in found.outages for k in range(a, b + 1) if delivery.lost[k])
    return [(first, last) for first, last, _ in found.outages]


def test_a_break_longer_than_the_path_is_an_outage() -> None:
    assert _outages(_delivery(list(range(200, 250)))) == [(200, 249)]


def test_a_burst_as_long_as_others_is_none() -> None:
    bursts = [k for start in range(20, 560, 60) for k in range(start, start + 28)]
    assert _outages(_delivery(bursts, trip_ms=20.0, every_ms=5.0)) == []
    assert _outages(_delivery(bursts[:28], trip_ms=20.0, every_ms=5.0)) == [(20, 47)]


def test_a_break_shorter_than_the_path_loses_what_arrives_and_what_leaves() -> None:
    # 300 ms of break, 500 ms one way: what arrives in it is lost, and 500 ms later what leaves in it.
    lost = [*range(200, 230), *range(250, 280)]
    assert _outages(_delivery(lost, trip_ms=1000.0)) == [(200, 279)]
    # As one run, they have lasted 100 ms if they are ten losses or more, of which the queue made few.
    assert _outages(_delivery([*range(200, 215), *range(250, 265)], trip_ms=1000.0)) == [(200, 264)]
    assert _outages(_delivery([*range(200, 208), *range(250, 258)], trip_ms=1000.0)) == []
    # Without the distance of one way they are two bursts; nothing ties them together.
    assert (200, 299) not in _outages(_delivery([*range(200, 230), *range(270, 300)], trip_ms=1000.0))


def test_a_full_queue_drops_packets_in_an_outage_too() -> None:
    gone = list(range(200, 250))
    link = of_delivery(delivery := _delivery(gone))
    limit = Ceiling(limit=5.5, low=5.0, refused=6.0, high=6.0, losses_above=9, packets_above=9, gain=30.0)
    # From packet 220 on packets come in bursts of ten, and the limit is exact to 1.6.
    arrivals = replace(
        link.arrivals,
        t=np.where(np.arange(600) >= 220, np.floor(link.arrivals.t / 1e8) * 1e8, link.arrivals.t),
        service=np.full(600, 1e6),
        full=np.full(600, 1e6),
    )
    entered = queue.replay(arrivals, limit.limit, unshared=True).entered
    replayed = replace(link.replay, entered=entered)
    found = verdicts(delivery, replace(link, unshared=True, ceiling=limit, arrivals=arrivals, replay=replayed))
    assert (found.cause[200:220] == OUTAGE).all()
    # Two of each ten exceed the longer queue; between the two queues the cause is not known.
    assert [k for k in range(200, 250) if found.cause[k] == QUEUE] == [228, 229, 238, 239, 248, 249]
    assert [k for k in range(220, 230) if not found.known[k]] == [224, 225, 226, 227]


def test_while_other_traffic_passes_there_is_no_outage() -> None:
    delivery = _delivery([k for k in range(200, 260) if k % 2], other=range(200, 260, 2))
    assert _outages(delivery) == []


@pytest.mark.parametrize(("others", "least"), [(0, 10), (20, 13)])
def test_the_length_that_no_burst_has_depends_on_the_bursts(others: int, least: int) -> None:
    assert outage_runs._least_run([2] * others) == least


def test_the_length_that_no_burst_has_grows_with_theirs() -> None:
    assert outage_runs._least_run([6] * 20) > 2 * outage_runs._least_run([2] * 20)


def test_a_short_break_takes_the_acks_of_what_arrived_before_it() -> None:
    # 50 ms of break, and what was under way for 20 ms: too short to tell by its losses alone.
    broken = _delivery(list(range(200, 208)), trip_ms=40.0)
    assert _outages(broken) == []
    covered, silent = broken.covered_ns.copy(), range(196, 200)
    covered[list(silent)] = broken.acked_ns[212]
    acked = np.where(np.isin(np.arange(600), list(silent)), -1, broken.acked_ns)
    idle = replace(
        broken, covered_ns=covered, acked_ns=acked, prompt=acked >= 0, ack_t_ns=broken.acked_ns[acked >= 0]
    )  # fmt: skip
    assert _outages(idle) == [(200, 207)]


def test_one_ack_missing_before_a_run_shows_a_break_where_few_are_missing_elsewhere() -> None:
    # Runs of 22 and 30 losses may be bursts of each other's kind; the ACK of the packet before each is missing, too.
    runs = range(200, 222), range(400, 430)
    broken = _delivery([*runs[0], *runs[1]])
    covered = broken.covered_ns.copy()
    for run in runs:
        covered[run.start - 1] = broken.acked_ns[run.stop]
    silent = covered != broken.covered_ns
    acked = np.where(silent, -1, broken.acked_ns)
    broken = replace(broken, covered_ns=covered, acked_ns=acked, prompt=acked >= 0, ack_t_ns=acked[acked >= 0])
    link = of_delivery(broken)
    judged = [(1, np.arange(run.start - 1, run.stop + 1)) for run in runs]
    assert _outages(broken) == [(200, 221), (400, 429)]
    assert outage_runs._minimum_silent(broken, link, left_queue_ns(broken, link), judged) == 1
    # Where ACKs are missing at other times, too, one says nothing.
    often = broken.covered_ns.copy()
    for first in (*range(0, 190, 10), *range(440, 590, 10)):
        often[first : first + 2] = often[first + 2]
    acked = np.where(often != broken.covered_ns, -1, broken.acked_ns)
    seldom = replace(broken, covered_ns=often, acked_ns=acked, prompt=acked >= 0, ack_t_ns=acked[acked >= 0])
    link = of_delivery(seldom)
    assert outage_runs._minimum_silent(seldom, link, left_queue_ns(seldom, link), judged) > 1


def test_the_acks_that_a_break_takes_are_not_missing_elsewhere() -> None:
    # Each ACK reports two packets, but the first one behind each break four: it took the one before.
    runs = range(200, 222), range(400, 430)
    broken = _delivery([*runs[0], *runs[1]])
    answered = ~broken.lost & (np.arange(600) % 2 == 1)
    covered = np.where(broken.lost, -1, np.repeat(broken.acked_ns[1::2], 2))
    for run in runs:
        answered[run.start - 1] = False
        covered[run.start - 2 : run.start] = broken.acked_ns[run.stop + 1]
    acked = np.where(answered, broken.acked_ns, -1)
    broken = replace(broken, covered_ns=covered, acked_ns=acked, prompt=answered, ack_t_ns=acked[answered])
    link = of_delivery(broken)
    judged = [(2, np.arange(run.start - 1, run.stop + 1)) for run in runs]
    assert outage_runs._minimum_silent(broken, link, left_queue_ns(broken, link), judged) == 1


def test_a_break_of_what_was_under_way_takes_its_acks_too() -> None:
    # 300 ms of data on a way of 500 ms, and nothing sent behind them: bursts of that length occur on this link, but
    # they do not take the ACKs that come while they would arrive, from 3.5 to 3.8 s.
    bursts = [k for start in range(20, 180, 40) for k in range(start, start + 20)]
    paused = np.where(np.arange(600) >= 330, 2_000 * MS, 0)
    whole = _delivery([*bursts, *range(300, 330)], trip_ms=1000.0)
    t, acked = whole.t_ns + paused, np.where(whole.acked_ns < 0, -1, whole.acked_ns + paused)
    broken = replace(whole, t_ns=t, acked_ns=acked, covered_ns=acked, ack_t_ns=acked[acked >= 0])
    assert _outages(broken) == []
    unanswered = np.isin(np.arange(600), range(250, 280))
    covered, acked = np.where(unanswered, acked[280], acked), np.where(unanswered, -1, acked)
    silent = replace(broken, covered_ns=covered, acked_ns=acked, prompt=acked >= 0, ack_t_ns=acked[acked >= 0])
    assert _outages(silent) == [(300, 329)]


def test_a_run_of_losses_does_not_go_on_over_a_packet_that_may_have_arrived() -> None:
    delivery = _delivery(list(range(200, 250)))
    unclear = np.isin(np.arange(600), range(204, 250, 5))
    lost = delivery.lost & ~unclear
    due_ns = delivery.t_ns + int(TRIP_MS * MS)
    late = np.where(unclear, delivery.t_ns + 1_000 * MS, delivery.covered_ns)
    assert _outages(replace(delivery, lost=lost, undecided=unclear)) == [(200, 248)], "never acknowledged"
    silent = replace(delivery, lost=lost, undecided=unclear, covered_ns=late)
    assert _outages(silent) == [(200, 248)], "no ACK when theirs were due"
    answered = replace(silent, ack_t_ns=np.sort(np.concatenate((delivery.ack_t_ns, due_ns[unclear]))))
    assert _outages(answered) == []


def test_a_duplicate_ack_shows_that_the_link_passes_acks() -> None:
    # Without SACK the copy of 290, which is sent as 320, reports all behind it; 300 to 302 were lost, too.
    whole = _delivery([290, 300, 301, 302], trip_ms=20.0)
    behind = np.isin(np.arange(600), [*range(291, 300), *range(303, 320)])
    acked = np.where(behind, whole.acked_ns[320], whole.acked_ns)
    seq = np.where(np.arange(600) == 320, 290, whole.seq)
    duplicates = replace(whole, acked_ns=acked, covered_ns=acked, prompt=(acked >= 0) & ~behind, seq=seq)
    assert _outages(duplicates) == []
    assert _outages(replace(duplicates, ack_t_ns=np.unique(acked[acked >= 0]))) == [(300, 302)]


def test_a_gap_says_nothing_where_an_undecided_packet_may_have_used_the_link() -> None:
    model = LinkModel(2e6, 40_000_000, 200, 20_000_000_000, bernoulli(0.01, 3))
    flown = fly(model)
    delivery = of_flow(flown.segments, flown.events, 1, "a2b")
    clear = verdicts(delivery, link := of_delivery(delivery))
    lost = np.flatnonzero(delivery.lost & (clear.gap_odds != 0))
    assert len(lost) > 10
    before, k = lost[0] - 1, lost[0]
    undecided = np.isin(np.arange(len(delivery)), [before])
    seen = np.where(undecided, np.nan, link.departed_ns)
    arrivals = replace(link.arrivals, departed=seen, undecided=undecided)
    unclear = replace(link, departed_ns=seen, arrivals=arrivals)
    blurred = verdicts(replace(delivery, undecided=undecided), unclear)
    assert blurred.gap_odds[k] == 0
    assert np.sum(blurred.gap_odds != 0) >= len(lost) - 2


def test_a_link_that_passes_acks_is_not_broken() -> None:
    # 12 losses over 110 ms: without ACKs an outage, with them none.
    lost = list(range(200, 230))
    delivery = _delivery(lost, trip_ms=20.0)
    assert _outages(delivery) == [(200, 229)]
    passing = np.sort(np.concatenate((delivery.ack_t_ns, delivery.t_ns[[210, 220]])))
    few = replace(_delivery(lost[:15], trip_ms=20.0), ack_t_ns=passing)
    assert _outages(few) == []


def _silent_runs(starts: tuple[int, ...]) -> Delivery:
    """A round trip of 500 ms, and runs of 40 losses over 400 ms during which no ACK came."""
    delivery = _delivery([k for start in starts for k in range(start, start + 40)], trip_ms=500.0)
    acks = delivery.ack_t_ns
    for start in starts:
        sent = delivery.t_ns[start], delivery.t_ns[start + 39]
        acks = acks[(acks < sent[0] + 250 * MS) | (acks > sent[1])]
    return replace(delivery, ack_t_ns=acks)


def test_a_run_that_is_a_burst_or_an_outage_is_not_the_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = _silent_runs((100, 250, 400))
    found = verdicts(delivery, of_delivery(delivery))
    assert found.outages == ()
    assert not found.known[delivery.lost].any()
    assert (found.burst_or_outage == delivery.lost).all()
    # Of one loss the gap speaks against the level, so it may be the queue's as well; the packet before it is.
    odds = np.zeros(len(delivery))
    odds[109:111] = 15.0, 7.0
    monkeypatch.setattr(attribution, "_gap_odds", lambda *_: odds)
    found = verdicts(delivery, of_delivery(delivery))
    assert np.flatnonzero(found.burst_or_outage != delivery.lost).tolist() == [109, 110]
    assert found.cause[109] == QUEUE
    assert not found.known[109:111].any()
    # Positions count what reached the channel.
    runs = _bursts_or_outages(found, delivery.observed)
    assert runs == ((100, 108), (110, 138), (249, 288), (399, 438))


def test_uncertain_losses_of_an_outage_are_not_replayed_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "_refused", lambda delivery, *_: delivery.lost.astype(np.int8))
    model = LinkModel(2e6, 200_000_000, 50, 20_000_000_000, bernoulli(0.0, 1), outage=(10 * 10**9, 11 * 10**9))
    flown = fly(model)
    found = extract(flown.segments, flown.flows, flown.events, 1)
    rows = [row for row in found.channel.to_pylist() if flown.fate.get(row["record"]) == "outage"]
    assert len(rows) > 10
    assert {(row["cause"], row["lost"], row["known"]) for row in rows} == {("outage", True, False)}
    assert loss_trace(Trace(found.channel), "it").lost.to_pylist() == []
    assert found.counts["unknown"] == len(rows)


LIMIT = Ceiling(limit=1.0, low=0.5, refused=1.5, high=1.5, losses_above=9, packets_above=9, gain=30.0)


def test_an_empty_queue_refuses_nothing() -> None:
    link = of_delivery(delivery := _delivery(list(range(200, 250))))
    found = verdicts(delivery, replace(link, unshared=True, ceiling=LIMIT))
    assert link.replay.level[200:250].max() == 0.0
    assert (found.cause[200:250] == OUTAGE).all()
    assert found.known[200:250].all()


def test_what_a_shared_queue_refused_in_an_outage_is_not_known() -> None:
    link = of_delivery(delivery := _delivery(list(range(200, 250))))
    found = verdicts(delivery, replace(link, unshared=False, ceiling=LIMIT))
    assert (found.cause[200:250] == OUTAGE).all()
    assert not found.known[200:250].any()
    never_full = verdicts(delivery, replace(link, unshared=False, ceiling=None))
    assert never_full.known[200:250].all()


def test_what_a_queue_refused_is_not_known_where_gaps_contradict_its_level() -> None:
    lost = list(range(100, 500, 5))
    link = of_delivery(delivery := _delivery(lost))
    group = np.full(600, -1)
    group[lost] = np.arange(len(lost))
    link = replace(link, unshared=True, ceiling=LIMIT, replay=replace(link.replay, group=group))
    assert link.replay.entered.all()
    no_gaps = np.where(delivery.lost, 7.0, 0.0)
    assert (attribution._refused(delivery, link, no_gaps, 0.2)[lost] == 1).all()
    assert (attribution._refused(delivery, link, -no_gaps, 0.2)[lost] == 0).all()


def _in_tens(lost: list[int], limit: float) -> tuple[Delivery, Link]:
    """Packets that come in bursts of ten to a queue that takes `limit` of them and serves each in 1 ms; each loss has a
    gap of its own."""
    link = of_delivery(delivery := _delivery(lost))
    ms = np.full(600, 1e6)
    arrivals = replace(link.arrivals, t=np.floor(link.arrivals.t / 1e8) * 1e8, service=ms, full=ms)
    group = np.full(600, -1)
    group[lost] = np.arange(len(lost))
    replayed = replace(queue.replay(arrivals, limit, unshared=True), group=group)
    ceiling = replace(LIMIT, limit=limit)
    return delivery, replace(link, unshared=True, ceiling=ceiling, arrivals=arrivals, replay=replayed)


def test_a_gap_does_not_contradict_a_level_that_may_be_the_limit() -> None:
    delivery, link = _in_tens([*range(100, 180, 10), 205, 310], limit=5.0)
    gaps = np.where(delivery.lost, -7.0, 0.0)
    # Of two queues, a little shorter and a little longer than five packets, one refuses 205, and its gap is missing.
    gaps[205] = 7.0
    refusals = attribution._refused(delivery, link, gaps, 0.2)
    assert (refusals[205], refusals[310]) == (1, 0)


def test_what_a_queue_refuses_at_the_rate_behind_a_break_only_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    delivery, link = _in_tens(list(range(200, 250)), limit=5.5)
    slow = np.where(delivery.lost, 30e6, 1e6)
    behind = replace(link.arrivals, service=slow, full=slow)
    unclear = [216, 217, 226, 227]
    refused = []
    for arrivals in (link.arrivals, behind):
        monkeypatch.setattr(attribution, "served_behind_breaks", lambda *_, served=arrivals: served)
        refusals = attribution._refused(delivery, link, np.zeros(600), 0.2)
        assert (refusals[unclear] == 2).all()
        assert refusals[200] == 0
        refused.append(refusals)
    # At 30 ms each the second burst finds what is left of the first one.
    assert [refusals[214] for refusals in refused] == [0, 1]


def test_what_the_queue_dropped_does_not_time_an_outage() -> None:
    link = of_delivery(delivery := _delivery(list(range(208, 250))))
    limit = replace(LIMIT, limit=5.5)
    # Packets come in bursts of ten; both queues refuse the last two of each, and what precedes 210 is such a pair.
    arrivals = replace(
        link.arrivals, t=np.floor(link.arrivals.t / 1e8) * 1e8, service=np.full(600, 1e6), full=np.full(600, 1e6)
    )
    entered = queue.replay(arrivals, limit.limit, unshared=True).entered
    replayed = replace(link.replay, entered=entered)
    link = replace(link, unshared=True, ceiling=limit, arrivals=arrivals, replay=replayed)
    found = verdicts(delivery, link)
    assert (found.cause[[208, 209, 248, 249]] == QUEUE).all()
    assert found.outages == ((210, 247, 250),)
    (sure,) = (row for row in interval_rows(delivery, link, found, 0) if row["cause"] == "outage" and row["known"])
    assert int(str(sure["t_ns"])) >= delivery.t_ns[210] + 45 * MS
    assert int(str(sure["end_ns"])) <= delivery.t_ns[247] + link.service_ns[247]


def test_a_run_that_the_queue_dropped_is_no_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "_refused", lambda delivery, *_: 2 * delivery.lost.astype(np.int8))
    model = LinkModel(2e6, 200_000_000, 50, 20_000_000_000, bernoulli(0.0, 1), outage=(10 * 10**9, 11 * 10**9))
    flown = fly(model)
    rows = extract(flown.segments, flown.flows, flown.events, 1).channel.to_pylist()
    run = [row for row in rows if flown.fate.get(row["record"]) == "outage"]
    assert {row["cause"] for row in run} == {"queue"}
    assert all("both refuse it" in row["evidence"] and "log odds" not in row["evidence"] for row in run)
    assert not [row for row in rows if row["kind"] == "interval" and row["lost"]]


def test_the_first_packet_lost_left_at_the_rate_before_the_outage() -> None:
    delivery = _delivery(list(range(200, 250)))
    link, found = of_delivery(delivery), verdicts(delivery, of_delivery(delivery))
    # What follows the outage is served ten times slower, which the packets lost in it would seem to have been, too.
    slower = np.where(np.arange(600) >= 200, 10.0, 1.0) * link.full_ns
    changed = replace(link, full_ns=slower)
    left_ns = delivery.t_ns + slower
    assert states._first_left_ns(delivery, changed, (left_ns, found), 200) == delivery.t_ns[200] + link.full_ns[199]
    # Behind another loss the queue is all that shows it.
    assert states._first_left_ns(delivery, changed, (left_ns, found), 201) == left_ns[201]


def test_a_link_that_passes_acks_while_the_losses_would_arrive_is_not_broken() -> None:
    # Fifteen losses that were under way together: too long for a burst of this link, not for one in one direction.
    assert _outages(_then_pause(range(300, 315))) == []
    # Thirty are; the link may have broken in the direction of the data only, while ACKs sent before arrive.
    assert _outages(_then_pause(range(300, 330))) == [(300, 329)]


def test_a_short_run_whose_acks_are_missing_is_an_outage() -> None:
    # Eight losses may be a burst, and with the ACKs due from 3.5 to 3.58 s they are one.
    passed = _then_pause(range(300, 308))
    assert _outages(passed) == []
    unanswered = np.isin(np.arange(600), range(250, 258))
    covered = np.where(unanswered, passed.acked_ns[258], passed.acked_ns)
    acked = np.where(unanswered, -1, passed.acked_ns)
    missing = replace(passed, covered_ns=covered, acked_ns=acked, prompt=acked >= 0, ack_t_ns=acked[acked >= 0])
    assert _outages(missing) == [(300, 307)]


def _then_pause(lost: range) -> Delivery:
    """Losses over a path of a second, behind which the sender pauses for two."""
    whole = _delivery(list(lost), trip_ms=1000.0)
    paused = np.where(np.arange(600) >= lost.stop, 2_000 * MS, 0)
    t, acked = whole.t_ns + paused, np.where(whole.acked_ns < 0, -1, whole.acked_ns + paused)
    return replace(whole, t_ns=t, acked_ns=acked, covered_ns=acked, ack_t_ns=acked[acked >= 0])


def test_a_burst_across_which_the_path_changed_is_an_outage() -> None:
    # Runs of the same length make one another look like bursts, but one lies where the delay changed.
    runs = [*range(100, 128), *range(200, 228), *range(300, 328)]
    broken = _delivery(runs, trip_ms=20.0)
    assert _outages(broken) == []
    longer = np.where(np.arange(600) >= 328, 40 * MS, 0)
    acked = np.where(broken.acked_ns < 0, -1, broken.acked_ns + longer)
    moved = replace(broken, acked_ns=acked, covered_ns=acked, ack_t_ns=acked[acked >= 0])
    assert _outages(moved) == [(300, 327)]
    # In so long a pause a step may lie by chance.
    paused = np.where(np.arange(600) >= 328, 3_000 * MS, 0)
    acked = np.where(moved.acked_ns < 0, -1, moved.acked_ns + paused)
    rare = replace(moved, t_ns=moved.t_ns + paused, acked_ns=acked, covered_ns=acked, ack_t_ns=acked[acked >= 0])
    assert _outages(rare) == []


def test_losses_that_nothing_watched_are_not_known_to_be_the_channels() -> None:
    # Two losses, the second 500 ms after the first, and nothing in between; then three behind a pause of a second.
    for lost, gap_before in ((range(300, 302), 301), (range(300, 303), 300)):
        whole = _delivery(list(lost), trip_ms=20.0)
        paused = np.where(np.arange(600) >= gap_before, 1_000 * MS, 0)
        acked = np.where(whole.acked_ns < 0, -1, whole.acked_ns + paused)
        idle = replace(
            whole, t_ns=whole.t_ns + paused, acked_ns=acked, covered_ns=acked, ack_t_ns=acked[acked >= 0]
        )  # fmt: skip
        assert not verdicts(idle, of_delivery(idle)).known[list(lost)].any()
        assert verdicts(whole, of_delivery(whole)).known[list(lost)].all()


def test_only_what_is_known_to_have_arrived_shows_the_edges_of_an_outage() -> None:
    delivery = _delivery(list(range(200, 250)))
    link, found = of_delivery(delivery), verdicts(delivery, of_delivery(delivery))
    unclear = replace(delivery, undecided=np.isin(np.arange(600), [*range(190, 200), *range(250, 260)]))
    (exact,), (wide,) = (
        states._outages(one, link, found, delivery.t_ns + link.service_ns) for one in (delivery, unclear)
    )
    assert exact.next_up_ns is not None
    assert wide.last_up_ns == pytest.approx(exact.last_up_ns - 100 * MS, abs=MS)
    assert wide.next_up_ns == pytest.approx(exact.next_up_ns + 100 * MS, abs=MS)
    assert (wide.first_ns, wide.last_ns) == pytest.approx((exact.first_ns, exact.last_ns), abs=MS)


def test_an_outage_may_last_until_the_next_packet_has_left_by_its_ack() -> None:
    # Packet 250 leaves 100 ms later than the model says: what waited in the break left at the slower rate behind it.
    delivery = _delivery(list(range(200, 250)))
    link, found = of_delivery(delivery), verdicts(delivery, of_delivery(delivery))
    left_ns = delivery.t_ns + link.service_ns
    behind = np.where(np.arange(600) == 250, 100 * MS, 0)
    ends = [
        one.next_up_ns
        for departed in (link.departed_ns, link.departed_ns + behind, link.departed_ns - behind)
        for one in states._outages(delivery, replace(link, departed_ns=departed), found, left_ns)
    ]
    assert ends[0] is not None
    assert ends == pytest.approx([ends[0], ends[0] + 100 * MS, ends[0]], abs=MS)


def test_no_edge_of_an_outage_is_more_exact_than_the_base_round_trip() -> None:
    # The base may be 40 ms shorter: then packets arrived 20 ms later, and those that waited left 40 ms later.
    delivery = _delivery(list(range(200, 250)))
    delivery = replace(delivery, ack_t_ns=delivery.ack_t_ns[:100])
    link, found = of_delivery(delivery), verdicts(delivery, of_delivery(delivery))
    left_ns = delivery.t_ns + link.service_ns
    wide = replace(link, base=replace(link.base, error_ns=(40e6,)))
    waits = replace(wide, replay=replace(wide.replay, wait_ns=np.ones(600)))
    (exact,), (alone,), (waited,) = (states._outages(delivery, one, found, left_ns) for one in (link, wide, waits))
    assert exact.next_up_ns is not None
    assert alone.last_up_ns == pytest.approx(exact.last_up_ns - 20 * MS, abs=2)
    assert alone.first_ns == pytest.approx(exact.first_ns + 20 * MS, abs=2)
    assert (alone.last_ns, alone.next_up_ns) == (exact.last_ns, exact.next_up_ns)
    assert waited.last_ns == pytest.approx(exact.last_ns - 40 * MS, abs=2)
    assert waited.next_up_ns == pytest.approx(exact.next_up_ns + 40 * MS, abs=2)
    # What is not known at all is off by no more than itself.
    unknown = replace(link, base=replace(link.base, error_ns=(np.inf,)))
    (half,) = states._outages(delivery, unknown, found, left_ns)
    assert half.first_ns == pytest.approx(exact.first_ns + link.base.per_packet_ns[200] / 2, abs=2)


def test_the_last_ack_before_an_outage_shows_the_link_up() -> None:
    delivery = _delivery(list(range(200, 250)))
    link, found = of_delivery(delivery), verdicts(delivery, of_delivery(delivery))
    left_ns = delivery.t_ns + link.service_ns
    # Half of 90 ms behind packet 199, which left at 2 s, and 5 ms before the first loss would have arrived.
    shown_ns, last_ack_ns = int(left_ns[199]) + 45 * MS, int(left_ns[199]) + 50 * MS
    begins = [
        one.last_up_ns
        for later in ([last_ack_ns], [], [last_ack_ns, int(delivery.t_ns[230])])
        for one in states._outages(replace(delivery, ack_t_ns=np.array([MS, *later])), link, found, left_ns)
    ]
    # If one comes in the outage, only the direction of the data broke, and no ACK shows it.
    assert begins == pytest.approx([last_ack_ns, shown_ns, shown_ns], abs=MS)


def test_two_losses_that_nothing_watched_are_an_outage_where_the_path_changed() -> None:
    whole = _delivery([300, 301], trip_ms=20.0)
    later = np.arange(600) >= 301
    t = whole.t_ns + np.where(later, 500 * MS, 0)
    for longer, outages in ((40 * MS, [(300, 301)]), (0, [])):
        acked = np.where(whole.acked_ns < 0, -1, whole.acked_ns + np.where(later, 500 * MS + longer, 0))
        idle = replace(whole, t_ns=t, acked_ns=acked, covered_ns=acked, ack_t_ns=acked[acked >= 0])
        assert _outages(idle) == outages


def test_what_arrived_past_a_break_over_a_longer_way_left_before_it() -> None:
    # 300 ms of break, 500 ms one way before it and 100 ms behind it: packet 199 is on its way meanwhile, and arrives.
    whole = _delivery(list(range(200, 230)), trip_ms=1000.0)
    acked = np.where(np.arange(600) >= 230, whole.t_ns + 200 * MS, whole.acked_ns)
    delivery = replace(whole, acked_ns=acked, covered_ns=acked, ack_t_ns=np.sort(acked[acked >= 0]))
    link, found = of_delivery(delivery), verdicts(delivery, of_delivery(delivery))
    assert [(first, last) for first, last, _ in found.outages] == [(200, 229)]
    left_ns = delivery.t_ns + link.service_ns
    (broken,) = states._outages(delivery, link, found, left_ns)
    assert broken.last_up_ns == int(left_ns[199])
    assert broken.first_ns == pytest.approx(left_ns[200] + 100 * MS, abs=10 * MS)


def test_a_break_that_nothing_followed_at_once_may_have_lost_what_was_on_the_former_way() -> None:
    # As above, but the next packet is sent 700 ms later: the break may be that of what left in it, or what arrived.
    whole = _delivery(list(range(200, 230)), trip_ms=1000.0)
    later = np.arange(600) >= 230
    t_ns = whole.t_ns + np.where(later, 700 * MS, 0)
    acked = np.where(later, t_ns + 200 * MS, whole.acked_ns)
    delivery = replace(whole, t_ns=t_ns, acked_ns=acked, covered_ns=acked, ack_t_ns=np.sort(acked[acked >= 0]))
    link, found = of_delivery(delivery), verdicts(delivery, of_delivery(delivery))
    assert [(first, last) for first, last, _ in found.outages] == [(200, 229)]
    left_ns = delivery.t_ns + link.service_ns
    (broken,) = states._outages(delivery, link, found, left_ns)
    assert broken.last_up_ns == int(left_ns[199])
    assert broken.first_ns >= left_ns[200] + 250 * MS
    assert broken.first_ns <= broken.last_ns
    assert broken.next_up_ns == pytest.approx(left_ns[230], abs=20 * MS)


def test_an_ack_that_came_before_the_first_loss_could_have_arrived_does_not_show_the_link_up() -> None:
    # The queue is modelled too short by 30 ms: the ACK of the packet before comes later than the model has the first
    # loss arrive, and what was lost could be a burst of a link that passes ACKs.
    delivery = _delivery(list(range(200, 214)), trip_ms=20.0, every_ms=20.0)
    link = of_delivery(delivery)
    late = replace(delivery, acked_ns=delivery.acked_ns + 30 * MS * (delivery.acked_ns >= 0))
    acks = late.acked_ns[late.acked_ns >= 0]
    late = replace(late, covered_ns=late.acked_ns, ack_t_ns=acks)
    shown = replace(link, departed_ns=link.departed_ns + 30 * MS)
    by_channel = verdicts(late, link).cause == attribution.CHANNEL
    left_ns = left_queue_ns(late, link)
    runs = [outage_runs._runs(late, one, left_ns, (by_channel, late.undecided)) for one in (link, shown)]
    counts = [next(run.answers for run in found if run.count == 14) for found in runs]
    assert counts == [1, 0]


def test_a_short_run_before_which_acks_are_missing_is_an_outage() -> None:
    # Eight losses that were on the way behind four packets, after a pause of a second: no other ACK was due meanwhile.
    whole = _then_pause(range(300, 308))
    later = np.where(np.arange(600) >= 296, 1_000 * MS, 0)
    acked = np.where(whole.acked_ns < 0, -1, whole.acked_ns + later)
    passed = replace(
        whole, t_ns=whole.t_ns + later, acked_ns=acked, covered_ns=acked, ack_t_ns=np.sort(acked[acked >= 0])
    )  # fmt: skip
    assert _outages(passed) == []
    # The ACKs of the four were lost, too.
    silent = np.isin(np.arange(600), range(296, 300))
    covered, acked = np.where(silent, acked[320], acked), np.where(silent, -1, acked)
    missing = replace(passed, covered_ns=covered, acked_ns=acked, prompt=acked >= 0, ack_t_ns=acked[acked >= 0])
    assert _outages(missing) == [(300, 307)]

"""When the rate of a link changed: where a slower state begins by the ACKs, and which states joined spans show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hindflight.channels.extraction import attribution, bottleneck
from hindflight.channels.extraction import change_points as _change_points
from hindflight.channels.extraction import delivery as _delivery
from hindflight.channels.extraction import link as link_module
from hindflight.channels.extraction.attribution import QUEUE
from hindflight.channels.extraction.bottleneck import Rate
from hindflight.channels.extraction.busy_spans import (
    RATE_TOLERANCE,
    STEADY_SHARE,
    BusySpans,
    joined_until_exact,
    together,
)
from hindflight.channels.extraction.change_points import Floats
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import _served_at_ns, of_delivery, served_behind_breaks
from hindflight.channels.extraction.path_steps import Stretch, divided, stretches
from tests.channels.extraction.packets import packets

MS = 1_000_000
BASE_NS = 40 * MS
FAST_MS, SLOW_MS = 2.0, 8.0


def _acked(acked_ms: list[float]) -> Delivery:
    """Packets that left 1 ms apart and were acknowledged at these times; negative: lost."""
    acked = (MS * np.array(acked_ms)).astype(np.int64)
    return packets(np.arange(len(acked)) * MS, np.maximum(acked, -1))


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
    # A pause in between: what came later than at the faster rate shows no other one.
    acked = [*np.arange(1.0, 51), *(100 + np.arange(1.0, 11)), *(130 + 4.0 * np.arange(1, 31))]
    assert bottleneck._slower_since(_acked(acked), (40 * MS, 130 * MS), (12e6, 3e6)) == 130 * MS
    assert bottleneck._slower_since(_acked(acked), (300 * MS, 310 * MS), (12e6, 3e6)) == 310 * MS


def test_a_slower_rate_that_is_seen_right_behind_a_break_begins_there() -> None:
    # 12 Mbit/s up to packet 50, a break that loses 20 packets, then 3 Mbit/s: nothing shows at which rate those left.
    for rest_ms in (30.0, 70.0):
        acked = [*np.arange(1.0, 51), *np.full(20, -1.0), *(50 + rest_ms + 4.0 * np.arange(1, 31))]
        assert bottleneck._slower_since(_acked(acked), (40 * MS, 170 * MS), (12e6, 3e6)) == (54 + rest_ms) * MS
    # Behind the second of two breaks it is seen; two packets of a burst do not hide it.
    acked = [*np.arange(1.0, 51), *np.full(9, -1.0), 150.0, *np.full(9, -1.0), *(246 + 4.0 * np.arange(1, 31))]
    assert bottleneck._slower_since(_acked(acked), (40 * MS, 340 * MS), (12e6, 3e6)) == 250 * MS
    acked = [*np.arange(1.0, 51), *(50 + 4.0 * np.arange(1, 11)), -1.0, -1.0, *(98 + 4.0 * np.arange(1, 31))]
    assert bottleneck._slower_since(_acked(acked), (40 * MS, 170 * MS), (12e6, 3e6)) == 54 * MS


def test_a_full_queue_and_late_acks_do_not_hide_a_slower_rate() -> None:
    # Three of four packets are refused, and every second ACK comes 1 ms late.
    slow = [at for k in range(1, 41) for at in (-1.0, -1.0, -1.0, 50 + 4.0 * k + k % 2)]
    delivery = _acked([*np.arange(1.0, 51), *slow])
    assert bottleneck._slower_since(delivery, (40 * MS, 210 * MS), (12e6, 3e6)) <= 58 * MS


def test_what_was_delivered_before_a_break_left_at_the_rate_before_it() -> None:
    # The ACKs of packets 46 to 49 were lost with the packets behind them: the first ACK behind the break reports them.
    acked = [*np.arange(1.0, 47), *np.full(4, 120.0), *np.full(20, -1.0), *(120 + 4.0 * np.arange(30))]
    delivery = _acked(acked)
    at_ms = link_module._answered_at_ns(delivery) / MS
    assert at_ms[40:50].tolist() == [41, 42, 43, 44, 45, 46, 46, 46, 46, 46]
    assert at_ms[50:72].tolist() == [120.0] * 21 + [124.0]
    # A packet of other traffic, or one of unknown fate, in the break does not move its losses.
    for column in ("observed", "undecided"):
        value = getattr(delivery, column) ^ (np.arange(100) == 60)
        one = replace(delivery, lost=delivery.lost & (np.arange(100) != 60), **{column: value})
        assert (link_module._answered_at_ns(one) / MS)[44:72].tolist() == at_ms[44:72].tolist()
    # Nothing behind the last losses reports what came before them.
    ended = _acked([*np.arange(1.0, 47), *np.full(4, 120.0), *np.full(20, -1.0)])
    assert (link_module._answered_at_ns(ended) / MS)[44:].tolist() == [45.0, 46.0, *[120.0] * 24]


@pytest.mark.parametrize("paced", [True, False])
def test_a_queue_that_runs_down_makes_no_faster_rate(paced: bool) -> None:
    # 4 ms per packet up to packet 60, then 1 ms. From packet 20 on the queue is shorter, and almost empty in the end.
    # A sender that goes on at its pace behind the change shows the faster rate by its round trips alone.
    acked = [*(50 + 4.0 * np.arange(60)), *(290 + (4.0 if paced else 1.0) * np.arange(40))]
    waits = [*np.full(20, 80.0), *np.linspace(60, 12, 40), *np.full(40, 2.0)]
    delivery = packets(*((MS * np.array(times)).astype(np.int64) for times in (np.subtract(acked, waits) - 20, acked)))
    end_ns = int(delivery.acked_ns.max())
    states = ((50 * MS, 120 * MS, 3e6), (310 * MS, end_ns, 12e6))
    assert bottleneck._begun(delivery, states) == (states[0], (290 * MS, end_ns, 12e6))
    # With too few ACKs at the slower rate, the first shorter round trip is all that shows the change.
    few = packets(delivery.t_ns[[*range(24), *range(58, 100)]], delivery.acked_ns[[*range(24), *range(58, 100)]])
    assert bottleneck._begun(few, states)[1][0] == int(delivery.acked_ns[20])


def _falling(steps: int) -> tuple[Delivery, int]:
    """A full queue of 20 packets at 2 ms each, then at 8 ms, when it first refuses every second packet. Return the
    flow, and when the first packet was acknowledged that took 8 ms."""
    sent = [0.0] * 20 + [FAST_MS * k for k in range(400)]
    services = [FAST_MS] * len(sent)
    for _ in range(steps):
        sent += [sent[-1] + SLOW_MS / 2, sent[-1] + SLOW_MS]
        services += [0.0, SLOW_MS]
    sent += [sent[-1] + SLOW_MS * k for k in range(1, 301)]
    services += [SLOW_MS] * 300
    t, busy = (np.array(sent) * MS).astype(np.int64), 0.0
    acked = np.full(len(sent), -1, dtype=np.int64)
    for k, service in enumerate(services):
        if service:
            busy = max(busy, float(t[k])) + service * MS
            acked[k] = busy + BASE_NS
    delivery = packets(t, acked)
    assert _delivery._prompt(acked[~delivery.lost], acked[~delivery.lost]).all()
    return delivery, int(acked[np.flatnonzero(np.array(services) == SLOW_MS)[0]])


@pytest.mark.parametrize("steps", [8, 40])
def test_a_rate_that_falls_while_the_queue_drops_packets_makes_no_longer_path(steps: int) -> None:
    delivery, slower_ns = _falling(steps)
    link = of_delivery(delivery)
    (_, _, fast), (since_ns, _, slow) = link.rate.states
    assert fast == pytest.approx(6e6, rel=0.01)
    assert slow == pytest.approx(1.5e6, rel=0.01)
    assert since_ns == pytest.approx(slower_ns, abs=2 * SLOW_MS * MS)
    # The wait behind the slow packets is one of the queue, so the path is one, and the queue made all losses.
    assert len(link.base.spans) == 1
    verdicts = attribution.verdicts(delivery, link)
    assert (verdicts.cause[delivery.lost] == QUEUE).all()
    assert verdicts.known[delivery.lost].all()


def test_a_loss_is_not_attributed_by_levels_where_the_round_trips_fit_no_delay() -> None:
    delivery, _ = _falling(40)
    link = of_delivery(delivery)
    lost = np.flatnonzero(delivery.lost)
    # No gap shows how many packets used the link.
    untimed = replace(link, replay=replace(link.replay, residual=np.full(len(delivery), np.nan)))
    assert attribution.verdicts(delivery, untimed).known[lost[-1]]
    changing = replace(link.base, trusted=np.arange(len(delivery)) != lost[-1])
    for sure in (False, True):
        # What is sent just behind a sure step met both paths: its round trip says nothing, and refutes nothing.
        stepped = replace(untimed, base=replace(changing, sure=sure))
        assert attribution.verdicts(delivery, stepped).known[lost[-1]] == sure


def test_a_paced_flow_is_not_busy_because_a_round_trip_met_a_part_of_the_path_before() -> None:
    # 10 ms apart over an empty queue, then 4 ms apart behind each other; the first five met half of a shorter path.
    acked = [*(10.0 * np.arange(1, 101)), *(1000 + 4.0 * np.arange(1, 61))]
    trips = [*np.full(5, 25.0), *np.full(95, 50.0), *(74 + 2.0 * np.arange(60))]
    sent = (MS * (np.array(acked) - trips + 30)).astype(np.int64)
    delivery = packets(sent, (MS * (np.array(acked) + 30)).astype(np.int64))
    whole = Stretch(0, len(delivery), 50.0 * MS)
    for stretch in (whole, divided(delivery, whole, [159])[0]):
        found = bottleneck._rate_within(delivery, stretch)
        assert found is not None
        assert found.steady
        assert found.bps == pytest.approx(3e6, rel=0.001)


def _spans(acked_ns: Floats) -> BusySpans:
    """What a busy link served between these ACKs: one full-sized packet each."""
    span = np.diff(acked_ns).astype(np.int64)
    return BusySpans(acked_ns[1:].astype(np.int64), span, np.full(len(span), 1500))


def _states(spans: BusySpans) -> _change_points.PiecewiseConstant:
    """The states of the rate in Mbit/s, as the logarithm."""
    return _change_points.fit(np.log(spans.served_bytes * 8e3 / spans.span_ns), RATE_TOLERANCE)


def test_a_rate_begins_behind_the_pause_that_an_interval_precedes_which_agrees_by_chance() -> None:
    # The link serves a packet per ms until 161 ms and one per 2 ms from 5 s on. One ACK or two came late before.
    fast, slow = _spans(MS * np.arange(162.0)), _spans(5000 * MS + 2 * MS * np.arange(101.0))

    def begins_ms(late: int) -> float:
        between = _spans(161 * MS + 2 * MS * np.arange(late + 1.0))
        return bottleneck._states(together([fast, between, slow])).states[1][0] / MS

    assert [begins_ms(late) for late in (1, 2)] == [5002, 5002]
    assert begins_ms(3) == 163, "three do not agree by chance"


def _joined_states(pairs: BusySpans) -> _change_points.PiecewiseConstant:
    return _states(joined_until_exact(pairs, np.ones(len(pairs.at_ns), dtype=np.bool_)))


def test_a_state_with_few_spans_that_agree_is_found_next_to_many_that_do_not() -> None:
    # A fast link whose ACKs come late by up to a half of the time between them, but for the first and the last of them.
    late = np.concatenate((np.zeros(60), np.random.default_rng(5).uniform(0, 3e6, 380), np.zeros(60)))
    pairs = _spans(np.concatenate((6e6 * np.arange(500) + late, 499 * 6e6 + 40e6 * np.arange(1, 150))))
    assert _states(pairs).coverage < STEADY_SHARE
    assert [round(float(np.exp(level)), 1) for _, _, level in _joined_states(pairs).spans] == [2.0, 0.3]


def test_spans_joined_by_state_must_explain_more_than_those_joined_as_one() -> None:
    # One rate, but for the last spans; too few apart to be joined until the lateness of their ACKs does not matter.
    late = np.concatenate((np.zeros(50), np.random.default_rng(5).uniform(0, 1.2e6, 300), np.zeros(51)))
    pairs = _spans(np.cumsum(np.concatenate(([0.0], np.full(350, 3e6), np.full(50, 3.3e6)))) + late)
    single = _states(pairs)
    assert (len(single.spans), single.coverage < STEADY_SHARE) == (2, True)
    assert _joined_states(pairs).coverage > 0.8


def test_what_is_delivered_behind_a_break_left_the_queue_at_the_rate_behind_it() -> None:
    # Of what waits when the link breaks at packet 190, it loses ten; the link then serves the others a tenth as fast.
    k = np.arange(400)
    t = (10 * MS * k).astype(np.int64)
    acked = np.where(k < 200, t + 150 * MS, t[200] + 600 * MS + 100 * MS * (k - 200))
    acked[190:200] = -1
    at_ns = _served_at_ns(packets(t, acked))
    assert t[200] < acked[189] < acked[200]
    assert (at_ns[190:200] == acked[189]).all()
    assert (at_ns[200:] == acked[200:]).all()


@pytest.mark.parametrize(("service_ms", "shown"), [((1.0,), 12e6), ((4.0,), 3e6), ((1.0, 4.0), 6e6)])
def test_few_intervals_that_all_contradict_the_rate_before_show_another_one(
    service_ms: tuple[float, ...], shown: float
) -> None:
    # 60 packets at 6 Mbit/s, then a path with too few for an estimate: at one rate, or at two that contradict.
    few = np.cumsum(np.resize(service_ms, 18))
    sent = np.concatenate([np.arange(60.0), 1000 + 0.01 * np.arange(18)])
    acked = np.concatenate([100 + 2.0 * np.arange(60), 1050 + few])
    delivery = packets((MS * sent).astype(np.int64), (MS * acked).astype(np.int64))
    rate = bottleneck.rate(delivery, (Stretch(0, 60, 100.0 * MS), Stretch(60, 78, 50.0 * MS)))
    assert rate is not None
    assert rate.states[0][2] == pytest.approx(6e6, rel=0.01)
    assert rate.states[-1][2] == pytest.approx(shown, rel=0.01)


def test_acks_that_a_timer_delayed_do_not_hide_the_rate() -> None:
    # Trains too short for a standing queue, at 2 ms per packet. The last packet of nine in ten is acknowledged when the
    # receiver's timer expires: nearly every other span has that time in it, so that together they show no rate.
    sent, acked = [], []
    for train in range(40):
        for packet in range(3):
            delay_ns = 42 * MS if packet == 2 and train % 10 else 0
            sent.append(200 * train * MS)
            acked.append(sent[-1] + BASE_NS + int((packet + 1) * FAST_MS * MS) + delay_ns)
    delivery = packets(np.array(sent), np.array(acked))
    found = bottleneck.rate(delivery, stretches(delivery))
    assert found is not None
    assert found.steady
    assert found.bps == pytest.approx(1500 * 8e3 / FAST_MS)


def test_segments_that_were_alone_on_the_way_show_no_rate_by_the_time_between_their_acks() -> None:
    # Each leaves with the ACK of the one before, and a timer delays every fourth ACK by 45 ms: the time between two
    # ACKs is that timer's, not the link's.
    sent, acked, now = [], [], 0
    for packet in range(200):
        sent.append(now)
        now += BASE_NS + int(FAST_MS * MS) + (45 * MS if packet % 4 == 0 else 0)
        acked.append(now)
        now += 50_000
    delivery = packets(np.array(sent), np.array(acked))
    assert bottleneck.rate(delivery, stretches(delivery)) is None


def test_packets_that_wait_when_the_link_breaks_leave_it_at_the_rate_before(monkeypatch: pytest.MonkeyPatch) -> None:
    # A queue of ten packets at 1.2 Mbit/s; behind the break the link serves ten times as fast.
    n, broken = 400, range(190, 220)
    t = (10 * MS * np.arange(n)).astype(np.int64)
    t[220:] = t[219] + 500 * MS + MS * np.arange(1, n - 219)
    lost = np.isin(np.arange(n), broken)
    acked = np.where(np.arange(n) < 190, t + 150 * MS, t + 50 * MS)
    acked = np.where(lost, -1, acked)
    delivery = Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=t, size_bytes=np.full(n, 1500), seq=np.arange(n),
        seq_end=np.arange(n) + 1, lost=lost, acked_ns=acked, prompt=acked >= 0, undecided=np.zeros(n, dtype=np.bool_),
        covered_ns=acked, from_flow=np.ones(n, dtype=np.bool_), observed=np.ones(n, dtype=np.bool_),
        ack_t_ns=acked[acked >= 0], ack_bytes=40, handshake=None,
    )  # fmt: skip
    slow, fast = 1.2e6, 1.2e7
    starts = (int(acked[0]), int(acked[220]))
    found = Rate(
        slow, slow, slow, 100, known=True, steady=True,
        states=((starts[0], int(acked[189]), slow), (starts[1], int(acked[-1]), fast)),
        busy=BusySpans(acked[:1], acked[:1], acked[:1]),
    )  # fmt: skip
    at_ns = _served_at_ns(delivery)
    service_ns = found.service_ns(delivery.size_bytes, at_ns)
    # What was sent up to the last ACK waits in the queue when the link breaks.
    assert (service_ns[190:205] == 10 * MS).all()
    assert (service_ns[220:] == MS).all()
    # Behind a faster link nothing waited longer than that. Behind a slower one it may have.
    for before, after in ((slow, fast), (fast, slow)):
        rates = replace(found, states=((starts[0], int(acked[189]), before), (starts[1], int(acked[-1]), after)))
        monkeypatch.setattr(bottleneck, "rate", lambda *_, chosen=rates: chosen)
        monkeypatch.setattr(link_module, "with_bounds", lambda _delivery, _paths, chosen, _service: chosen)
        _, served = link_module._served(delivery, stretches(delivery))
        assert np.isin(range(190, 205), np.flatnonzero(np.asarray(served.most_ns) == 10 * MS)).all()
    monkeypatch.undo()
    # Nothing shows it, so they may have left at the rate behind it, too, but for what had left when the link broke.
    behind = served_behind_breaks(delivery, replace(of_delivery(delivery), rate=found)).service
    assert (behind[:191] == 10 * MS).all()
    assert (behind[204:] == MS).all()
    # So may the first ones delivered behind it that are not timed.
    untimed = replace(delivery, prompt=delivery.prompt & (np.arange(n) != 220))
    later = replace(found, states=(found.states[0], (int(acked[221]), int(acked[-1]), fast)))
    assert (served_behind_breaks(untimed, replace(of_delivery(untimed), rate=later)).service[204:220] == MS).all()

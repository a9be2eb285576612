"""What an application wrote, from constructed packets: a bulk sender, one that writes at a rate, one that pauses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hindflight.replay.scenario.captured_application import (
    SentData,
    captured_writes,
    first_end_ns,
    transfer_end_ns,
)

MS = 1_000_000
MSS = 1000


def _sent(packets: list[tuple[int, int]], pushed: bool = False, trip_ms: int = 50) -> SentData:
    """Packets of (time in ms, octets), each acknowledged a round trip later."""
    t = np.array([at * MS for at, _ in packets], dtype=np.int64)
    edges = np.concatenate(([1], 1 + np.cumsum([octets for _, octets in packets]))).astype(np.int64)
    return SentData(t, edges[:-1], edges[1:], np.full(len(t), pushed), t + trip_ms * MS, edges[1:], MSS)


def test_a_sender_whose_acks_release_its_segments_always_had_data() -> None:
    # One segment in flight, the next one leaves with the ACK.
    assert captured_writes(_sent([(50 * i, MSS) for i in range(100)])) is None


def test_short_segments_end_writes_that_come_back_at_their_times() -> None:
    writes = captured_writes(_sent([(20 * i + j, octets) for i in range(50) for j, octets in ((0, MSS), (0, 400))]))
    assert writes is not None
    assert writes.steady
    assert writes.wait_share > 0.9
    assert sum(writes.sizes) == 50 * 1400 - 1400
    assert list(writes.at_ns[:3]) == [0, 20 * MS, 40 * MS]
    assert set(writes.sizes) == {1400}


def test_short_segments_that_acks_release_were_held_back() -> None:
    # Nagle's algorithm: one short segment on the way, the next one leaves with its ACK.
    octets = [200 + 7 * i % 50 + (500 if i > 50 else 0) for i in range(100)]
    writes = captured_writes(_sent([(51 * i, size) for i, size in enumerate(octets)]))
    assert writes is not None
    assert not writes.steady
    assert writes.wait_share == 1
    assert writes.sizes == tuple(octets[:-1])
    assert writes.at_ns[:3] == (0, 51 * MS, 102 * MS)
    # It never paused, so that nothing shows a pause before the end either.
    sent = _sent([(51 * i, size) for i, size in enumerate(octets)])
    assert transfer_end_ns(replace(sent, fin_ns=int(sent.t_ns[-1]) + 1000 * MS)) == sent.t_ns[-1]


def test_an_application_at_a_constant_rate_wrote_while_its_segments_were_held() -> None:
    writes = captured_writes(_sent([(51 * i, 500) for i in range(101)]))
    assert writes is not None
    assert writes.steady
    assert len(writes.sizes) == 5100 // 20
    assert set(writes.sizes) == {198, 199}


def _rate_then_limited(limited: int, ends: tuple[int, ...] = (400,)) -> list[tuple[int, int]]:
    """1000 and some octets every 20 ms for 2 s, `ends` for equal times, then `limited` full segments, one per ACK."""
    written = [(20 * i, octets) for i in range(100) for octets in (MSS, ends[i * len(ends) // 100])]
    return written + [(2030 + 50 * k, MSS) for k in range(limited)]


def test_an_application_keeps_its_constant_rate_while_the_network_limits_the_flow() -> None:
    writes = captured_writes(_sent(_rate_then_limited(40)))
    assert writes is not None
    assert writes.steady
    # 70 octets a millisecond, and the first 1400 at once; 100 writes and 40 segments were sent.
    assert writes.unsent_bytes == 70 * 3980 + 1400 - 180_000
    assert sum(writes.sizes) == 70 * 3980 + 1400


def test_a_few_waits_show_a_rate_only_if_it_is_exact() -> None:
    # The sender waits for less than 2 % of the 150 s: a bulk sender, but for the line on which its waits lie.
    exact = captured_writes(_sent(_rate_then_limited(3000)))
    assert exact is not None
    assert exact.wait_share < 0.02
    assert exact.unsent_bytes == 70 * (2030 + 50 * 2999) + 1400 - 3_140_000
    assert not exact.times_departures
    assert captured_writes(_sent(_rate_then_limited(3000, ends=(300, 900)))) is None


def test_an_application_that_wrote_more_later_than_at_the_rate_of_its_first_waits_did_not_keep_it() -> None:
    # Three small writes, such as those of a handshake of the application, then one large one.
    small = [(100 * i, 300) for i in range(3)]
    assert captured_writes(_sent(small + [(300 + 50 * k, MSS) for k in range(1000)])) is None
    # As many octets as the rate comes to, or fewer, do not contradict it.
    slower = captured_writes(_sent(small + [(300 + 500 * k, MSS) for k in range(100)], trip_ms=500))
    assert slower is not None
    assert slower.steady


def test_a_full_segment_behind_a_short_one_was_not_held_back() -> None:
    assert captured_writes(_sent([(51 * i, 400 if i % 2 else MSS) for i in range(100)])) is None


def test_a_pause_after_everything_was_acknowledged_parts_two_writes() -> None:
    bulk = [(50 * i, MSS) for i in range(20)]
    writes = captured_writes(_sent([*bulk, *((5000 + at, octets) for at, octets in bulk)]))
    assert writes is not None
    assert not writes.steady
    assert writes.sizes == (20 * MSS, 20 * MSS)
    assert writes.at_ns == (0, 5000 * MS)


def test_full_segments_with_push_are_ends_of_short_writes() -> None:
    # Nagle's algorithm gathers small writes into full segments, which leave without an ACK.
    packets = [(30 * i, MSS) for i in range(50)]
    paced, pushed = captured_writes(_sent(packets)), captured_writes(_sent(packets, pushed=True))
    assert paced is None
    assert pushed is not None
    assert pushed.wait_share > 0.5


def test_a_sender_that_retransmits_after_a_short_segment_need_not_lack_data() -> None:
    # The send buffer ends in a short segment; its loss and those before it are sent again before new data.
    bulk = [(50 * i, MSS) for i in range(20)]
    sent = _sent([*bulk[:-1], (950, 400), *((5000 + at, octets) for at, octets in bulk)])
    acks = np.where(sent.t_ns < 900 * MS, sent.ack_t_ns, np.maximum(sent.ack_t_ns, 5000 * MS))
    recovering = replace(sent, ack_t_ns=acks, retransmitted_ns=np.arange(980, 4990, 30, dtype=np.int64) * MS)
    assert captured_writes(recovering) is None
    # Without a retransmission, or with all acknowledged before new data, it lacked them.
    assert captured_writes(replace(recovering, retransmitted_ns=np.zeros(0, np.int64))) is not None
    assert captured_writes(replace(recovering, ack_t_ns=np.minimum(acks, 1200 * MS))) is not None


def test_push_at_the_end_of_a_burst_of_the_host_ends_no_write() -> None:
    packets = [(30 * i, MSS) for i in range(50) for _ in range(2)]
    assert captured_writes(_sent(packets, pushed=True)) is None


def test_bursts_of_a_bulk_sender_have_ends_and_small_writes_have_none() -> None:
    bursts = captured_writes(_sent([(start + i // 2, MSS) for start in (0, 1500, 4000) for i in range(200)]))
    assert bursts is not None
    assert bursts.until_ns is not None
    # An application that writes for a time is 48 KiB ahead when it stops, which leave later: octets 150,849 and on.
    assert bursts.until_ns == (75 * MS, 1575 * MS, 4075 * MS)
    short = captured_writes(_sent([(start + i // 2, MSS) for start, n in ((0, 200), (1500, 40)) for i in range(n)]))
    assert short is not None
    # What fits into one write is written when it begins.
    assert short.until_ns == (75 * MS, 1500 * MS + 1000)
    pauses = captured_writes(_sent([(at + i, MSS) for at in (0, 700, 3000, 3400) for i in range(4)]))
    assert pauses is not None
    assert pauses.until_ns is None


def test_large_writes_at_equal_intervals_are_not_a_constant_rate() -> None:
    # Eight writes of 200 kB at a rate of their own: each wait begins at the same octet of its write.
    writes = captured_writes(_sent([(1000 * k + 2 * i, MSS) for k in range(8) for i in range(200)]))
    assert writes is not None
    assert not writes.steady
    assert set(writes.sizes) == {200 * MSS}
    assert writes.until_ns is not None


def _closed(packets: list[tuple[int, int]], fin_ms: int) -> int:
    """Return the end of the transfer in ms of packets that are followed by a FIN."""
    return transfer_end_ns(replace(_sent(packets), fin_ns=fin_ms * MS)) // MS


def test_the_last_pause_of_an_application_that_pauses_is_part_of_the_transfer() -> None:
    bulk = [(50 * i, MSS) for i in range(20)]
    pausing = [*bulk, *((5000 + at, octets) for at, octets in bulk)]
    # The last segment leaves at 5950 ms, its ACK arrives at 6000 ms; the pause before was 4 s long.
    assert _closed(pausing, 9000) == 9000
    assert _closed(pausing, 10_000) == 10_000
    # Kept for later: longer than any pause before.
    assert _closed(pausing, 10_001) == 5950
    # A FIN that the application sent while the network still worked on its data ends no pause.
    assert _closed(pausing, 5960) == 5950


def test_a_last_pause_longer_than_the_longest_is_one_of_several_at_random() -> None:
    bulk = [(50 * i, MSS) for i in range(20)]
    starts = (0, 2000, 5000, 10_000)
    pausing = [(start + at, octets) for start in starts for at, octets in bulk]
    # Pauses of 1, 2 and 4 s, then one from 11 s on: 95 % are shorter than 1.71 times their sum, 12 s.
    assert _closed(pausing, 22_900) == 22_900
    assert _closed(pausing, 23_100) == 10_950
    # After two pauses only the longest counts.
    assert _closed(pausing[:60], 9000) == 5950


def test_the_transfer_of_a_bulk_sender_ends_with_its_last_new_segment() -> None:
    bulk = [(50 * i, MSS) for i in range(100)]
    assert _closed(bulk, 6000) == 4950
    assert transfer_end_ns(_sent(bulk)) // MS == 4950


def test_a_bulk_sender_may_have_stopped_writing_when_the_rest_was_once_in_flight() -> None:
    # Ten segments in flight at first, then one: the last ten may have waited in the send buffer since the 90th.
    sent = _sent([(0, MSS)] * 10 + [(50 * i, MSS) for i in range(1, 91)])
    assert first_end_ns(sent) == (80 + 1) * 50 * MS
    one_by_one = _sent([(51 * i, MSS) for i in range(100)])
    assert first_end_ns(one_by_one) == 98 * 51 * MS + 50 * MS
    # Without an ACK, the last segment is all that is known.
    silent = replace(sent, ack=sent.ack[:0], ack_t_ns=sent.ack_t_ns[:0])
    assert first_end_ns(silent) == sent.t_ns[-1]


def _periods(bursts: Sequence[tuple[int, int]], every_ms: int) -> SentData:
    """Bursts of so many full segments at these times, the last one with a short segment behind it, over and over."""
    packets = []
    for start in range(0, 20 * every_ms, every_ms):
        for number, (at_ms, segments) in enumerate(bursts, 1):
            packets += [(start + at_ms, MSS)] * segments + ([(start + at_ms, 400)] if number == len(bursts) else [])
    return _sent(packets)


def test_small_writes_whose_ends_were_held_are_not_taken_for_a_large_one() -> None:
    # 5000 octets and some every 20 ms; the short segment that shows a wait leaves with every 17th write only.
    writes = captured_writes(_periods([(20 * k, 5) for k in range(17)], 340))
    assert writes is not None
    assert writes.steady
    assert writes.until_ns is None
    assert max(writes.sizes) < 7000


def test_large_writes_leave_with_the_acks_or_paced_and_are_followed_by_a_longer_wait() -> None:
    with_acks = captured_writes(_periods([(0, 10), (50, 20), (100, 40), (150, 15)], 340))
    paced = captured_writes(_periods([(3 * k, 1) for k in range(85)], 340))
    for writes in (with_acks, paced):
        assert writes is not None
        assert not writes.steady
        assert writes.until_ns is not None
        assert set(writes.sizes[:-1]) == {85_400}

"""What limited a sender, in constructed exchanges of segments and ACKs."""

from __future__ import annotations

import numpy as np
import pytest

from hindflight.replay.scenario.captured_application import SentData
from hindflight.replay.scenario.limits import Limits, limits_of

MS, MSS, RTT_MS = 1_000_000, 1000, 100


def _limits(sent_ms: list[float], ack_ms: list[float], acked: list[int], window: int = 10**9) -> Limits:
    """Full segments at `sent_ms`; ACKs at `ack_ms` for the first `acked` segments, with `window` segments more."""
    n = len(sent_ms)
    seq = MSS * np.arange(n)
    sent = SentData(
        t_ns=(np.array(sent_ms) * MS).astype(np.int64), seq=seq, seq_end=seq + MSS, pushed=np.zeros(n, dtype=np.bool_),
        ack_t_ns=(np.array(ack_ms) * MS).astype(np.int64), ack=MSS * np.array(acked), mss_bytes=MSS,
    )  # fmt: skip
    return limits_of(sent, np.arange(1, n + 1), MSS * (np.array(acked) + window), RTT_MS * MS)


def test_a_sender_that_its_acks_release_is_limited_by_the_network() -> None:
    sent = [0.0, 0.1, *(100.0 + 10 * k for k in range(20))]
    found = _limits(sent, sent[2:], list(range(1, 21)))
    assert found.shares()["network"] == pytest.approx(1.0)


def test_a_sender_whose_next_segment_does_not_fit_is_limited_by_the_receiver() -> None:
    sent = [0.0, 0.1, *(100.0 + 10 * k for k in range(20))]
    found = _limits(sent, [0.05, *sent[2:]], [0, *range(1, 21)], window=2)
    assert found.shares()["receiver"] == pytest.approx(1.0, abs=0.01)


def test_a_sender_that_has_sent_all_that_was_written_waits_for_its_application() -> None:
    # Two segments, acknowledged after 100 ms; the next ones come a second later.
    sent = [0.0, 0.1, 1100.0, 1100.1, 1200.2]
    found = _limits(sent, [100.0, 100.1, 1200.0, 1200.1], [1, 2, 3, 4])
    (wait,) = [span for span in found.spans if span.limit == "application"]
    assert (wait.start_ns, wait.end_ns, wait.record) == (int(100.1 * MS), 1100 * MS, 3)


def test_a_sender_whose_short_segments_nagles_algorithm_holds_back_waits_for_its_application() -> None:
    edges = 700 * np.arange(51)
    t = ((RTT_MS + 1) * MS * np.arange(50)).astype(np.int64)
    sent = SentData(t, edges[:-1], edges[1:], np.zeros(50, dtype=np.bool_), t + RTT_MS * MS, edges[1:], MSS)
    found = limits_of(sent, np.arange(1, 51), edges[1:] + 10**9, RTT_MS * MS)
    assert found.shares()["application"] == pytest.approx(1.0)


def test_segments_that_no_ack_releases_are_paced() -> None:
    sent = [5.0 * k for k in range(200)]
    found = _limits(sent, [102.5, 902.5], [1, 150])
    assert found.shares()["pacing"] > 0.95


@pytest.mark.parametrize(("offsets_us", "pacing"), [((20, 20), 0.0), ((600, 20), 0.0), ((0, 1100), 0.81)])
def test_pacing_shows_between_acks_that_come_more_often_than_a_host_may_take_to_answer(
    offsets_us: tuple[int, int], pacing: float
) -> None:
    # Acknowledged 20 ms later, one every 1.2 ms; each lets a segment go after the first offset, and up to the second
    # one more.
    least_us, more_us = offsets_us
    edges = MSS * np.arange(501)
    acked_ns = 20 * MS + 1_200_000 * np.arange(500)
    late_ns = 1000 * (least_us + 377 * np.arange(483) % more_us)
    sent_ns = np.concatenate([np.zeros(17, np.int64), acked_ns[:483] + late_ns])
    sent = SentData(sent_ns, edges[:-1], edges[1:], np.zeros(500, dtype=np.bool_), acked_ns, edges[1:], MSS)
    found = limits_of(sent, np.arange(1, 501), edges[1:] + 10**9, 20 * MS)
    assert found.shares()["pacing"] == pytest.approx(pacing, abs=0.05)


def test_a_timeout_is_of_the_network() -> None:
    found = _limits([0.0, 0.1, 0.2, 900.0], [100.0], [1])
    assert found.shares()["network"] == pytest.approx(1.0, abs=0.001)

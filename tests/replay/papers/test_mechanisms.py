"""What is measured next to the claims of the papers, to show why they hold under a reading or do not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hindflight.replay.papers.asran.cells import used_share
from hindflight.replay.papers.haps_split.cells import MSS_BYTES, window_from_truck_pkts, window_to_truck_pkts
from hindflight.replay.papers.hybrid_handover.cells import CTCP, HYBLA, satellite
from hindflight.replay.papers.hybrid_handover.mechanisms import _pause_s, longest_pause, outstanding, timer
from hindflight.replay.papers.hybrid_handover.readings import QUEUE_200
from hindflight.replay.papers.lab import Bench, Lab
from tests.replay.papers.test_measures import hand_made


def test_a_pause_ends_with_the_writing_and_the_first_retransmission_may_be_missing() -> None:
    found = hand_made([0.5, 2.0, 10.0, 40.0, 59.0, 80.0])
    assert _pause_s(found) == 30.0
    assert _pause_s(hand_made([2.0, 10.0, 80.0])) == 50.0
    assert [found.first_resent_s(from_s) for from_s in (0.0, 21.0, 41.0)] == [21.0, 25.0, 60.0]


def test_the_timer_is_compared_with_the_longest_wait_for_an_ack_after_the_handover() -> None:
    acks_ms = [39_900, 39_990, 40_230, 40_235, 40_400, 40_620, 40_840, 41_030, 42_400]
    segments = {"direction": ["b2a"] * 9, "t_ns": [ms * 1_000_000 for ms in acks_ms], "ack": range(1, 10)}
    states = {"t_ns": [39_000_000_000, 40_230_000_000], "source": ["replay"] * 2, "rto_ns": [268_000_000, 673_000_000]}
    assert timer({"segments": pa.table(segments), "instruments": pa.table(states)}) == (268.0, 240.0)


def test_a_short_queue_shortens_the_pauses_and_what_is_outstanding() -> None:
    bench = Bench()
    pauses, waiting = longest_pause((HYBLA, CTCP), satellite()), outstanding((HYBLA, CTCP), satellite(), 60.0)
    long, short = (
        (pauses.measure(lab), waiting.measure(lab))
        for lab in (Lab(bench, 1, quick=True), Lab(bench, 1, quick=True, reading=QUEUE_200))
    )
    for before, after in zip(long, short, strict=True):
        assert after["Hybla"] < before["Hybla"] / 2
        assert after["CTCP"] == pytest.approx(before["CTCP"])


def test_a_window_is_that_of_the_long_connection_and_weighted_by_time() -> None:
    times, pkts = [0, 50, 85, 95, 100], [10, 40, 60, 80, 1]
    rows = {"leg": [0] * 5 + [1] * 5, "t_ns": times * 2, "cwnd_bytes": [n * MSS_BYTES for n in (*pkts, *[5] * 5)]}
    tables = {"instruments": pa.table(rows)}
    # 40 packets or less for 85 % of the time, 60 or less for 95 %.
    assert (window_to_truck_pkts(tables), window_from_truck_pkts(tables)) == (60.0, 5.0)


def test_the_share_of_a_link_counts_the_time_with_a_route() -> None:
    shares = used_share(Lab(Bench(), 2, quick=True))
    assert set(shares) == {"NewReno", "ASRAN"}
    assert all(0.5 < share < 1.0 for share in shares.values())

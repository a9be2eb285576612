"""Phases that BBR drew, read from TCP_INFO."""

from __future__ import annotations

import numpy as np
import pytest

from validation.cycle_phases import first_phases

STARTUP, DRAIN, CRUISE, PROBE, EMPTY, DIP = (739, 739), (88, 739), (256, 512), (320, 512), (192, 512), (256, 256)
"""Pacing and window gain."""
ACKS_NS = np.arange(0, 10_000_000_000, 1_000_000)


def info(
    *rows: tuple[float, tuple[int, int]], min_rtt_us: int = 100_000, bw: list[int] | None = None, unacked: int = 0
) -> dict[str, np.ndarray]:
    """Return TCP_INFO of gains that hold from each time, in seconds, on; `bw` in octets/s, 1 MB/s if not given."""
    zero = np.zeros(len(rows), np.int64)
    return {
        "t_ns": np.array([round(t_s * 1e9) for t_s, _ in rows], np.int64),
        "bbr_pacing_gain": np.array([gains[0] for _, gains in rows], np.int64),
        "bbr_cwnd_gain": np.array([gains[1] for _, gains in rows], np.int64),
        "bbr_min_rtt": np.full(len(rows), min_rtt_us, np.int64),
        "bbr_bw": np.array(bw or [1_000_000] * len(rows), np.int64),
        "snd_mss": zero + 1000,
        "unacked": zero + unacked,
        "sacked": zero,
        "lost": zero,
        "retrans": zero,
    }


@pytest.mark.parametrize(("waited_s", "digit"), [(0.0, 8), (0.104, 7), (0.14, 7), (0.16, 6), (0.31, 5), (0.62, 2)])
def test_the_time_to_the_first_probing_phase_determines_the_first_phase(waited_s: float, digit: int) -> None:
    rows = [(0.0, STARTUP), (1.0, DRAIN), (2.0, CRUISE), (2.0 + waited_s, PROBE), (2.8, EMPTY), (3.0, PROBE)]
    assert first_phases(info(*(rows if waited_s else [*rows[:2], *rows[3:]])), ACKS_NS) == digit


def test_every_stay_has_its_digit_and_one_that_never_probes_begins_furthest_from_it() -> None:
    rows = [(0.0, STARTUP), (1.0, DRAIN), (2.0, PROBE), (2.1, EMPTY), (9.0, DIP), (9.2, CRUISE), (9.3, DIP)]
    assert first_phases(info(*rows, (9.5, CRUISE), (9.8, PROBE)), ACKS_NS) == 825


def test_the_first_stay_keeps_its_place_if_it_never_probes() -> None:
    rows = [(0.0, STARTUP), (1.0, DRAIN), (2.0, CRUISE), (2.3, DIP), (2.5, CRUISE), (2.6, PROBE)]
    assert first_phases(info(*rows), ACKS_NS) == 27


def test_a_run_that_never_left_startup_gives_nothing() -> None:
    assert first_phases(info((0.0, STARTUP)), ACKS_NS) == 0


def test_a_phase_ends_with_an_ack_and_therefore_lasts_longer_than_a_round_trip_where_acks_are_few() -> None:
    # Three phases of 100 ms, each of which the next ACK ends after 150 ms.
    rows = [(0.0, STARTUP), (1.0, DRAIN), (2.0, CRUISE), (2.45, PROBE)]
    assert first_phases(info(*rows), ACKS_NS[::50]) == 5


@pytest.mark.parametrize(("unacked", "digits"), [(100, 28), (101, 8)])
def test_a_drained_queue_draws_a_phase_although_the_same_ack_begins_probe_rtt(unacked: int, digits: int) -> None:
    # 1 MB/s over 100 ms: 100 segments of 1000 octets.
    rows = [(0.0, STARTUP), (1.0, DRAIN), (2.0, DIP), (2.2, PROBE)]
    assert first_phases(info(*rows, unacked=unacked), ACKS_NS) == digits


def test_the_end_of_the_long_term_rate_draws_another_phase() -> None:
    # 48 rounds of 100 ms at the long-term rate (PROBE_RTT between does not count), then two phases that cruise.
    rows = [(0.0, STARTUP), (1.0, PROBE), (1.1, CRUISE), (3.0, DIP), (3.2, CRUISE), (6.1, CRUISE), (6.3, PROBE)]
    bw = [1_000_000, 1_000_000, 500_000, 500_000, 500_000, 900_000, 900_000]
    assert first_phases(info(*rows, bw=bw), ACKS_NS) == 826


def test_a_long_term_rate_that_is_given_up_early_draws_nothing() -> None:
    # An undone reduction ends it (`bbr_undo_cwnd`), and the cycle goes on.
    rows = [(0.0, STARTUP), (1.0, PROBE), (1.1, CRUISE), (5.0, CRUISE), (5.2, PROBE)]
    bw = [1_000_000, 1_000_000, 500_000, 900_000, 900_000]
    assert first_phases(info(*rows, bw=bw), ACKS_NS) == 8

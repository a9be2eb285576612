"""Congestion windows compared with recursions, one step per round trip, for variants that ns-2 does not have.

Depends on each variant's equation in its simplest form and the link's rate and delay, not on the engine's code.
Between losses and outside recovery, a window of w segments takes max(RTT, w packets over the rate).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from validation.reference import abse, bbr3, peach
from validation.simulator import HEADER_BYTES, SMSS_BYTES
from validation.tcp_linux import INITIAL_PKTS, OPEN, QUEUE, Case, Course, WindowComparison, compare_windows

PACKET_BITS = 8 * (SMSS_BYTES + HEADER_BYTES)
LEDBAT_TARGET_S = 0.1
STREAM_PKTS = 5
SCPS_ACKS, SCPS_ALPHA = 4, 2
HYBLA_RTT_0_S = 0.025

Recursion = Callable[[Course], list[tuple[int, float]]]


def validate_recursions() -> list[WindowComparison]:
    """Return a comparison per case."""
    return [compare_windows(case, windows(case.path)) for case, windows in RECURSIONS]


def _rounds(course: Course, step: Callable[[float, float, bool], float], first: float) -> list[tuple[int, float]]:
    """Return packets sent and window per round trip; `step` gets window, round trip and whether one was lost."""
    sent, now_s, window, points = 0, 0.0, first, []
    while now_s < course.duration_s:
        round_s = max(course.rtt_s, window * PACKET_BITS / course.rate_bps)
        lost = any(sent <= number < sent + window for number in course.losses)
        sent += int(window)
        points.append((sent, window))
        window = step(window, round_s, lost)
        # A round trip of recovery with the reduced window follows a loss.
        if lost:
            sent += int(window)
            now_s += round_s
        now_s += round_s
    return points


def _reno_until(window: float, ssthresh: float) -> float:
    """Slow start to ssthresh, then a segment per round trip."""
    return min(2 * window, ssthresh) if window < ssthresh else window + 1


def _westwood(course: Course) -> list[tuple[int, float]]:
    """Reno, but a loss with a queue sets the window to the rate of the link times the minimum RTT."""
    product = course.rate_bps * course.rtt_s / PACKET_BITS

    def step(window: float, _round_s: float, lost: bool) -> float:
        return min(window, product) if lost else _reno_until(window, course.ssthresh_pkts)

    return _rounds(course, step, INITIAL_PKTS)


def _abse(course: Course, *, adaptive: bool = True) -> list[tuple[int, float]]:
    """The equations of the filter and Reno's increase, ACK by ACK."""
    estimate = abse.Abse(adaptive)
    rate, first, ssthresh = course.rate_bps / PACKET_BITS, float(INITIAL_PKTS), float(course.ssthresh_pkts)
    sender = abse.Sender(estimate, rate, course.rtt_s, course.losses, first, ssthresh)
    return abse.windows(sender, course.duration_s)


def _asran(course: Course) -> list[tuple[int, float]]:
    """Half after a loss, then slow start to the window before the previous loss, if that is larger."""
    ssthresh, last_max = float(course.ssthresh_pkts), 0.0

    def step(window: float, _round_s: float, lost: bool) -> float:
        nonlocal ssthresh, last_max
        if not lost:
            return _reno_until(window, ssthresh)
        ssthresh, last_max = max(window / 2, last_max), window
        return window / 2

    return _rounds(course, step, INITIAL_PKTS)


def _ledbat(course: Course) -> list[tuple[int, float]]:
    """A fraction of a segment per round trip: the relative distance of the queueing delay from the target."""

    def step(window: float, round_s: float, lost: bool) -> float:
        if lost:
            return window / 2
        return window + (LEDBAT_TARGET_S - (round_s - course.rtt_s)) / LEDBAT_TARGET_S

    return _rounds(course, step, INITIAL_PKTS)


def _hybla(course: Course) -> list[tuple[int, float]]:
    """W(t) of the paper: rho 2^(t / RTT_0) up to rho ssthresh, then plus rho^2 per round trip."""
    rho = course.rtt_s / HYBLA_RTT_0_S

    def step(window: float, _round_s: float, _lost: bool) -> float:
        top = rho * course.ssthresh_pkts
        return min(window * 2**rho, top) if window < top else window + rho**2

    return _rounds(course, step, rho)


def _afstart(course: Course) -> list[tuple[int, float]]:
    """Doubling until six ACKs of a flight show the rate, then half of the distance per round trip; then Reno."""
    rate = course.rate_bps / PACKET_BITS
    threshold, known, avoids = rate * course.rtt_s + 1, False, False

    def step(window: float, _round_s: float, lost: bool) -> float:
        nonlocal known, avoids
        if lost or avoids:
            avoids = True
            return window / 2 if lost else window + 1
        for number in range(int(window)):
            known |= number >= STREAM_PKTS
            missing = (threshold - window) / window
            window += min(max(missing / 2, 1 / window), 8.0) if known else 1.0
            if window >= threshold:
                avoids, window = True, threshold
                break
        return window

    return _rounds(course, step, INITIAL_PKTS)


def _freeze(course: Course) -> list[tuple[int, float]]:
    """Reno, unaffected by the outage."""
    return _rounds(course, lambda window, _s, _lost: _reno_until(window, course.ssthresh_pkts), INITIAL_PKTS)


def _fixed_window(course: Course) -> list[tuple[int, float]]:
    """SatBW SatRTT, regardless of losses."""
    window = float(int(course.rate_bps * course.rtt_s / PACKET_BITS))
    return _rounds(course, lambda window, _round_s, _lost: window, window)


def _peach(course: Course) -> list[tuple[int, float]]:
    """Sudden Start, avoidance and Rapid Recovery, packet by packet."""
    rate = course.rate_bps / PACKET_BITS
    return peach.windows(rate, course.rtt_s, course.losses, course.duration_s, INITIAL_PKTS)


def _scps_tp(course: Course) -> list[tuple[int, float]]:
    """Vegas with few ACKs: a window lasts a round trip plus the delay of its ACK, and losses have no effect.

    Vegas only sees the queue: a segment more per round trip while less than alpha segments are queued.
    """
    now_s, sent, window, points = 0.0, 0.0, float(INITIAL_PKTS), []
    packet_s = PACKET_BITS / course.rate_bps
    lasts_s = course.rtt_s * (1 + 1 / SCPS_ACKS)
    while now_s < course.duration_s:
        # The excess over the rate times that time is queued.
        queue_s = max(window * packet_s - lasts_s, 0.0)
        round_s = course.rtt_s + queue_s
        sent += window * round_s / (lasts_s + queue_s)
        points.append((int(sent), window))
        if window < course.ssthresh_pkts:
            window = min(window * 2 ** (round_s / lasts_s), course.ssthresh_pkts)
        elif window * queue_s / course.rtt_s < SCPS_ALPHA:
            window += 1
        now_s += round_s
    return points


def _bbr3(course: Course) -> list[tuple[int, float]]:
    """The states of the draft, packet by packet."""
    return bbr3.windows(course.rate_bps / PACKET_BITS, course.rtt_s, course.duration_s, INITIAL_PKTS)


CLEAN = replace(QUEUE, name="20 Mbit/s, RTT from 100 ms, no loss", losses=(), duration_s=20.0)
SLOW = replace(QUEUE, losses=(20_000,), duration_s=80.0)
ABSE = replace(QUEUE, name="20 Mbit/s, RTT from 100 ms", losses=(3000, 9000, 20_000), duration_s=16.0)
"""Losses below the bandwidth-delay product, with ACKs in a burst and a pause, close to it, and with a queue."""
FIXED = replace(ABSE, name="the same, tau fixed at 0.5 s", losses=(3000, 9000), duration_s=12.0)
BREAK = replace(OPEN, name="no queue, RTT 100 ms, down from 6 to 9 s", losses=(), ssthresh_pkts=64, outage_s=(6.0, 9.0))
HYBLA = {"scale_ssthresh": True, "spacing": True}
PATHS = tuple(
    Course(f"no queue, RTT {1000 * rtt_s:.0f} ms", rtt_s, 100e9, (), 16, 10.0) for rtt_s in (0.025, 0.05, 0.1)
)
LINK = {"satellite_rate": QUEUE.rate_bps, "satellite_rtt": QUEUE.rtt_s, "connections": 1}

RECURSIONS: tuple[tuple[Case, Recursion], ...] = (
    (Case("recursion", "westwood-bwe", QUEUE, agent=""), _westwood),
    (Case("recursion", "westwood-abse", ABSE, agent="", in_recovery=True), _abse),
    (
        Case("recursion", "westwood-abse", FIXED, {"tau": "fixed"}, agent="", in_recovery=True),
        partial(_abse, adaptive=False),
    ),
    (Case("recursion", "asran", OPEN, agent=""), _asran),
    (Case("recursion", "ledbat", SLOW, agent=""), _ledbat),
    *((Case("the paper's W(t)", "hybla", course, HYBLA, agent=""), _hybla) for course in PATHS),
    (Case("recursion", "afstart", QUEUE, agent=""), _afstart),
    (Case("recursion", "freeze-tcp", BREAK, agent=""), _freeze),
    (Case("recursion", "peach", OPEN, agent="", in_recovery=True), _peach),
    (Case("recursion", "scps-tp", QUEUE, agent=""), _scps_tp),
    (Case("recursion", "aerotcp", QUEUE, LINK, agent=""), _fixed_window),
    (Case("recursion", "supertcp", QUEUE, LINK, agent=""), _fixed_window),
    (Case("recursion of the draft", "bbr3", CLEAN, bbr3.PARAMS, agent=""), _bbr3),
)

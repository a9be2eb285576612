"""Closed forms of TCP's steady state, as functions of plain numbers. Windows in packets, times in seconds.

Does not depend on the engine. Every form leaves out the start-up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

CUBIC_C = 0.4
CUBIC_BETA = 0.7
"""RFC 9438 §4.1.2 and §4.6."""
CUBIC_ALPHA = 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA)
"""RFC 9438 §4.3."""


def pftk_rate_pps(p: float, rtt_s: float, rto_s: float, acked_per_ack: int = 1) -> float:
    """Return the send rate (packets/s) of Reno under loss rate `p`, window not limited.

    Padhye, Firoiu, Towsley, Kurose, "Modeling TCP Reno Performance", IEEE/ACM ToN 8(2), 2000, §II, the full model
    without the limit of the window: expected packets over expected time between two loss indications, of which a
    share `q` are timeouts of `rto_s`, before any back-off. `acked_per_ack` is the paper's b.
    """
    b = acked_per_ack
    window = _window_at_loss(p, b)
    q = _share_of_timeouts(p, window)
    packets = (1 - p) / p + window + q / (1 - p)
    time_s = rtt_s * (b / 2 * window + 1) + q * rto_s * _backoff(p) / (1 - p)
    return packets / time_s


def _window_at_loss(p: float, b: int) -> float:
    """The paper's E[W]: mean window when a loss is noticed (equation 13)."""
    c = (2 + b) / (3 * b)
    return c + math.sqrt(8 * (1 - p) / (3 * b * p) + c * c)


def _share_of_timeouts(p: float, window: float) -> float:
    """The paper's Q: probability that a loss in a round of `window` packets ends in a timeout."""
    if window <= 3:
        return 1.0
    kept = 1.0 - p
    share: float = (1 - kept**3) * (1 + kept**3 * (1 - kept ** (window - 3))) / (1 - kept**window)
    return min(1.0, share)


def _backoff(p: float) -> float:
    """The paper's f(p): mean length of a sequence of timeouts, in first timeouts, times 1 - p; doubled six times."""
    return 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6


def sawtooth_utilisation(bdp_pkts: float, queue_pkts: float) -> float:
    """Return the share of a bottleneck that one flow fills which halves its window whenever the queue is full.

    The window grows by one packet a round trip from half of W = BDP + queue + 1 (one is in service) to W. Below the
    BDP a round lasts the bare RTT and the link idles; above it, the window over the rate, and the link is busy.
    """
    top = bdp_pkts + queue_pkts + 1
    bottom = top / 2
    if bottom >= bdp_pkts:
        return 1.0
    packets = (top**2 - bottom**2) / 2
    rounds_below = bdp_pkts - bottom
    time_in_rtts = rounds_below + (top**2 - bdp_pkts**2) / (2 * bdp_pkts)
    return packets / (bdp_pkts * time_in_rtts)


def reno_window_pkts(p: float) -> float:
    """Return Reno's mean window with one loss every 1/p packets (Mathis et al., CCR 27(3), 1997; b = 1)."""
    return math.sqrt(1.5 / p)


def reno_rounds_window_pkts(p: float) -> float:
    """Return what `reno_window_pkts` is the limit of for small `p`: the same sawtooth counted in whole round trips.

    A cycle has a round trip of w packets for loss recovery, and then those of w, w + 1, … 2 w as the window increases:
    1/p packets in all, w + 2 round trips.
    """
    minimum = (math.sqrt(6.25 + 6 / p) - 2.5) / 3
    return 1 / p / (minimum + 2)


def cubic_window_pkts(p: float, rtt_s: float) -> float:
    """Return cubic's mean window with one loss every 1/p packets: RFC 9438 §5.1, or Reno's where that is larger.

    Cubic takes the larger of its two windows at every moment (§4.3).
    """
    cubic: float = (CUBIC_C * (3 + CUBIC_BETA) / (4 * (1 - CUBIC_BETA))) ** 0.25 * (rtt_s / p) ** 0.75
    return max(cubic, reno_window_pkts(p))


def cubic_rounds_window_pkts(p: float, rtt_s: float, fast_convergence: bool, warm_up: int, losses: int) -> float:
    """Return cubic's mean window with one loss every 1/p packets, by RFC 9438 worked out in whole round trips.

    The mean is over `losses` cycles behind `warm_up` others, the first of which begins at `cubic_window_pkts`.
    """
    cycles = list(islice(_cubic_cycles(p, rtt_s, fast_convergence), warm_up + losses))[warm_up:]
    return sum(packets for packets, _ in cycles) / sum(rounds for _, rounds in cycles)


def _cubic_cycles(p: float, rtt_s: float, fast_convergence: bool) -> Iterator[tuple[int, int]]:
    """Yield the packets and the round trips of each cycle, from the recovery of one loss to the next loss.

    A round trip sends the whole packets of the window, and each of its ACKs closes a window's share of the distance to
    the target (§4.2), so that a round trip leaves 1/e of it. Loss recovery takes one round trip without increase.
    """
    period = round(1 / p)
    cwnd = before = w_max = cubic_window_pkts(p, rtt_s)
    left = period
    while True:
        origin = max(w_max, cwnd)
        k_s = ((origin - cwnd) / CUBIC_C) ** (1 / 3)
        w_est, t_s = cwnd, 0.0
        packets, rounds = int(cwnd), 1
        left -= packets
        while left > 0:
            sent = int(cwnd)
            acked = min(sent, left - 1)
            left -= sent
            packets, rounds = packets + sent, rounds + 1
            target = min(max(_w_cubic(t_s + rtt_s, k_s, origin), cwnd), 1.5 * cwnd)
            w_est += (CUBIC_ALPHA if w_est < before else 1.0) * acked / cwnd
            grown = target - (target - cwnd) * math.exp(-acked / cwnd)
            cwnd = max(grown, w_est) if _w_cubic(t_s, k_s, origin) < w_est else grown
            t_s += rtt_s
        left += period
        yield packets, rounds
        w_max = cwnd * (1 + CUBIC_BETA) / 2 if fast_convergence and cwnd < w_max else cwnd
        before, cwnd = cwnd, max(2.0, CUBIC_BETA * cwnd)


def _w_cubic(t_s: float, k_s: float, origin: float) -> float:
    """RFC 9438 §4.2, equation 1."""
    return CUBIC_C * (t_s - k_s) ** 3 + origin


def asran_gain(first: float, last_max: float, span: float, step: float = 0.1) -> float:
    """Return what ASRAN delivers after a loss over what CUBIC does, in the model of the ASRAN paper §4.

    `first` is the window after the loss, `last_max` the one that both go back to, `span` the time that is looked at: in
    the paper's arbitrary units, sampled every `step`. ASRAN's slow start is (x + i)², CUBIC's curve (x - K)³ + W.
    """
    asran_k, cubic_k = math.sqrt(last_max) - first, math.cbrt(last_max - first)
    at = [step * n for n in range(1, round(span / step) + 1)]
    asran = sum((x + first) ** 2 if x <= asran_k else (x - asran_k) ** 3 + last_max for x in at)
    return asran / sum((x - cubic_k) ** 3 + last_max for x in at)

"""Where the recorded hosts' clock stood when a recording began: what their timers sent shows it.

Depends on recorded times only. Both hosts run on one kernel, whose timers expire at its ticks, and those of long times
at the steps of its timer wheel (Linux, kernel/time/timer.c): a timeout is retransmitted then, and a delayed ACK sent.
Such times all lie at one place within a step. Now and then one is a tick late.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

TICK_NS = 4_000_000
"""The recorded kernels' (HZ = 250)."""

SECOND_LEVEL_TICKS = 63
"""Linux (`LVL_START`): timers of so many ticks are in the second level of the wheel, …"""

LEVEL_STEP = 8
"""… whose steps, like those of each further level, are longer by this factor (`LVL_CLK_DIV`)."""

LEVELS = 3
"""Of a fourth one a recording has too few timers."""

ANSWERED_NS = 1_500_000
"""An arrival explains the ACKs for so long behind it: longer than Linux compresses ACKs with SACK blocks (1 ms)."""

LOGGED_LATE_NS = 1_000_000
"""And so long before its logged time. The link emulator reads the clock after `sendto` (`t_dep_ns`), and the ACK often
leaves within that call: less than 1 us before the logged time in most cases, longer where the emulator was stopped in
between. That time is part of its delay error, which exceeds 1 ms for at most 4 packets in 1,000 of the fixtures
(`timing_error_us` in `scenario.json`). An ACK of the timer's that precedes another arrival by less is left out."""

AFTER_STEP_NS = 100_000
"""Width of the interval in which what a timer sends at a step reaches the link: other timers of that tick expire first,
and the kernel stamps the packet when it is received (`t_arr_ns`), so that delays of the emulator do not count. In the
fixture S2-reno it holds 66 of 68 delayed ACKs (tests/validation/test_ticks.py)."""

BY_CHANCE = 0.01
"""How probable it may be that times gather as closely although no timer made them."""


def since_step_ns(timeouts_ns: Integers, rtos_ns: Integers, acks_ns: Integers) -> int:
    """Return how long before time 0 the clock made a step: the longest step whose place is shown; 0 if none is.

    `timeouts_ns` are retransmissions by timeout, after `rtos_ns`; `acks_ns` are ACKs that a timer may have sent.
    """
    for level in reversed(range(LEVELS)):
        step_ns = TICK_NS * int(LEVEL_STEP**level)
        shortest_ns = SECOND_LEVEL_TICKS * step_ns // LEVEL_STEP if level else 0
        at_ns = timeouts_ns[rtos_ns >= shortest_ns]
        place = place_in_step(at_ns if level else np.append(at_ns, acks_ns), step_ns)
        if place is not None:
            return -place % step_ns
    return 0


def place_in_step(at_ns: Integers, step_ns: int) -> int | None:
    """Return where in a step most of `at_ns` lie, or a tick later; None where they may do so by chance."""
    within = np.sort(at_ns % step_ns)
    twice = np.append(within, within + step_ns)
    late_ns = [0, TICK_NS] if step_ns > TICK_NS else [0]
    held = [
        (np.searchsorted(twice, within + late, side="left"), np.searchsorted(twice, within + late + AFTER_STEP_NS))
        for late in late_ns
    ]
    counts = sum(after - first for first, after in held)
    n, k = len(at_ns), int(np.max(counts, initial=0))
    # Any of n is the first of k, and any k - 1 of the rest lie behind it.
    share = len(late_ns) * AFTER_STEP_NS / step_ns
    if k < 2 or math.log(n) + _log_choices(n - 1, k - 1) + (k - 1) * math.log(share) > math.log(BY_CHANCE):
        return None
    first, after = (bound[int(np.argmax(counts))] for bound in held[0])
    return int(np.median(twice[first:after])) % step_ns


def _log_choices(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose `k` of `n`, which as a float overflows from n = 1030."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def unexplained(acks_ns: Integers, arrivals_ns: Integers) -> Integers:
    """Return those times of new ACKs at which no arrival can have been answered; both are in order."""
    before = np.searchsorted(arrivals_ns, acks_ns + LOGGED_LATE_NS, side="right") - 1
    latest = np.append(arrivals_ns, 0)[before]
    sent_by_timer = (before >= 0) & (acks_ns - latest > ANSWERED_NS)
    return np.asarray(acks_ns[sent_by_timer], np.int64)


def timeouts(info: Mapping[str, Integers], resent_ns: Integers) -> tuple[Integers, Integers]:
    """Return when retransmissions left by timeout, and after what RTO: the first of `resent_ns` between the polls of
    TCP_INFO that show it."""
    shown = np.flatnonzero(np.diff(info["total_rto"]) > 0)
    left = np.searchsorted(resent_ns, info["t_ns"][shown])
    at_ns = np.append(resent_ns, np.iinfo(np.int64).max)[left]
    seen = at_ns <= info["t_ns"][shown + 1]
    return at_ns[seen], 1000 * info["rto"][shown][seen]

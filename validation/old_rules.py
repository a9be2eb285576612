"""The rules of Linux 2.6.22 and of ns-2's TCP/Linux that variants differ from, as controllers in Python.

Each represents one reason that `tcp_linux` names: the engine with that rule instead of the variant's must come
within the bound of ns-2, else the reason is not what makes the difference. Depends on the rules, not on the engine's
code; counters and truncations are the kernel's, since they are part of some reasons.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hindflight.replay.controllers.base import Controller

if TYPE_CHECKING:
    from hindflight.replay.controllers.base import Ack, Congestion

OLD_BIC = "bic-of-2-6-22"
OLD_ILLINOIS = "illinois-of-2-6-22"
OLD_VEGAS = "vegas-of-2-6-22"
OLD_COMPOUND = "compound-of-ns-2"
OLD_WESTWOOD = "westwood-of-ns-2"
"""Names under which the controllers can be run."""

MIN_SAMPLES = 3
"""Vegas and Compound: round-trip times that a round needs to say anything."""


class OldReno(Controller, variant=None):
    """Windows in whole segments; increase by the ACK, and one ACK late: the count is compared before it is raised."""

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        """Begin with the windows of `Controller`."""
        super().__init__(cwnd, ssthresh)
        self.count = 0

    def price(self) -> int:
        """Return the number of ACKs per increment of the window."""
        return int(self.cwnd)

    def on_ack(self, ack: Ack) -> None:
        """Grow by the old rule."""
        if not ack.cwnd_limited:
            return
        if self.cwnd <= self.ssthresh:
            self.cwnd += 1
        elif self.count >= self.price():
            self.cwnd += 1
            self.count = 0
        else:
            self.count += 1

    def reduced(self) -> float:
        """Return ssthresh after a loss."""
        return self.cwnd // 2

    def on_congestion(self, signal: Congestion) -> None:  # noqa: ARG002
        """Reduce by the old rule."""
        self.cwnd = self.ssthresh = max(self.reduced(), 2.0)
        self.count = 0


class OldBic(OldReno, variant=OLD_BIC):
    """BIC whose price is a whole number of ACKs, halved for delayed ones, and paid one ACK late."""

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        """Begin with the windows of `Controller`."""
        super().__init__(cwnd, ssthresh)
        self.last_max = 0

    def price(self) -> int:
        """Return the number of ACKs per increment of the window, by the old rule."""
        cwnd = int(self.cwnd)
        if cwnd <= 14:
            price = cwnd
        elif cwnd < self.last_max:
            distance = (self.last_max - cwnd) // 4
            price = cwnd * 20 // 4 if distance <= 1 else cwnd // min(distance, 16)
        elif cwnd < self.last_max + 4:
            price = cwnd * 20 // 4
        elif cwnd < self.last_max + 48:
            price = cwnd * 3 // (cwnd - self.last_max)
        else:
            price = cwnd // 16
        if not self.last_max:
            price = min(price, 20)
        return max(price // 2, 1)

    def reduced(self) -> float:
        """Return ssthresh after a loss, by the old rule."""
        cwnd = int(self.cwnd)
        self.last_max = cwnd * (1024 + 819) // 2048 if cwnd < self.last_max else cwnd
        return cwnd // 2 if cwnd <= 14 else cwnd * 819 // 1024


class Rounds(OldReno, variant=None):
    """Rounds of Vegas: the outstanding data at its beginning, minimum round-trip times of the round and of all."""

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        """Begin with the windows of `Controller`."""
        super().__init__(cwnd, ssthresh)
        self.first = self.last = self.smss_bytes = 0
        self.base_us = self.min_us = 0
        self.samples = 0

    def observe(self, ack: Ack) -> None:
        """Take samples."""
        if ack.delivered_pkts and ack.acked_bytes and not self.smss_bytes:
            self.smss_bytes = ack.acked_bytes // ack.delivered_pkts
        if ack.rtt_s is not None:
            rtt_us = round(1e6 * ack.rtt_s) + 1
            self.base_us = min(self.base_us or rtt_us, rtt_us)
            self.min_us = min(self.min_us or rtt_us, rtt_us)
            self.samples += 1

    def on_recovery_exit(self, ack: Ack) -> None:
        """Begin a round."""
        self.last = ack.snd_nxt
        self.samples = self.min_us = 0

    def turned(self, ack: Ack) -> int:
        """Return the segments that were outstanding when the round began which this ACK ends; 0 within a round."""
        if ack.snd_una <= self.last:
            return 0
        outstanding = (self.last - self.first) // self.smss_bytes
        self.first, self.last = self.last, ack.snd_nxt
        return max(outstanding, 1)


class OldVegas(Rounds, variant=OLD_VEGAS):
    """Vegas that steps from the window of a round trip ago, and reckons with what was outstanding then."""

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        """Begin with the windows of `Controller`."""
        super().__init__(cwnd, ssthresh)
        self.old_cwnd = 0.0

    def on_ack(self, ack: Ack) -> None:
        """Grow by the old rule."""
        outstanding = self.turned(ack)
        if not outstanding:
            if self.cwnd <= self.ssthresh:
                self.cwnd += 1
            return
        before, self.old_cwnd = self.old_cwnd, self.cwnd
        if self.samples < MIN_SAMPLES:
            super().on_ack(ack)
        else:
            self.adjust(before, outstanding)
        self.samples = self.min_us = 0

    def adjust(self, before: float, outstanding: int) -> None:
        """Step by one towards the window before, less or more one; halves of segments, rounded down."""
        target = 2 * outstanding * self.base_us // self.min_us
        waiting = 2 * outstanding - target
        if self.cwnd <= self.ssthresh:
            if waiting > 2:
                self.ssthresh = 2
                self.cwnd = min(self.cwnd, target // 2 + 1)
            self.cwnd += 1
            return
        wanted = before - 1 if waiting > 8 else before + 1 if waiting < 4 else before
        self.cwnd = max(self.cwnd + (wanted > self.cwnd) - (wanted < self.cwnd), 2)


class OldCompound(Rounds, variant=OLD_COMPOUND):
    """Compound that leaves the delay window as a loss finds it, and takes all that is lost from Reno's part."""

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        """Begin with the windows of `Controller`."""
        super().__init__(cwnd, ssthresh)
        self.reno, self.dwnd = cwnd, 0

    def on_ack(self, ack: Ack) -> None:
        """Grow by the old rule."""
        if self.reno + self.dwnd > self.cwnd:
            if max(self.reno, self.dwnd) > self.cwnd:
                self.reno, self.dwnd = self.cwnd, 0
            else:
                self.reno = self.cwnd - self.dwnd
        if not ack.cwnd_limited:
            return
        grows = self.reno <= self.ssthresh
        if not grows:
            self.count += 1
        if self.count >= self.cwnd:
            grows, self.count = True, 0
        self.reno += grows
        outstanding = self.turned(ack)
        if outstanding:
            if self.samples >= MIN_SAMPLES:
                self.adjust(outstanding)
            self.samples = self.min_us = 0
        self.cwnd = self.reno + self.dwnd

    def adjust(self, outstanding: int) -> None:
        """Move the delay window once per round; the fourth root and its eighth are whole numbers."""
        waiting = 2 * outstanding - 2 * outstanding * self.base_us // self.min_us
        if waiting < 60:
            root = math.isqrt(math.isqrt(outstanding**3))
            self.dwnd += max(root // 8 - 1, 0)
        else:
            self.dwnd = max(2 * self.dwnd - waiting, 0) // 2


class OldIllinois(Rounds, variant=OLD_ILLINOIS):
    """Illinois that keeps beta of the window where it should lose it, and counts low rounds whatever lies between."""

    ALPHA_MAX, ALPHA_MIN = 1280, 38
    """In 128ths."""

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        """Begin with the windows of `Controller`."""
        super().__init__(cwnd, ssthresh)
        self.sum_us = self.max_rtt_us = 0
        self.alpha, self.beta = self.ALPHA_MAX, 32
        self.above, self.low = False, 0

    def observe(self, ack: Ack) -> None:
        """Take samples."""
        super().observe(ack)
        if ack.rtt_s is not None:
            rtt_us = round(1e6 * ack.rtt_s) + 1
            self.max_rtt_us = max(self.max_rtt_us, rtt_us)
            self.sum_us += rtt_us

    def on_recovery_exit(self, ack: Ack) -> None:
        """Begin a round. ns-2 does not, but its recovery differs, so that samples from it cannot be used here."""
        super().on_recovery_exit(ack)
        self.sum_us = 0

    def on_ack(self, ack: Ack) -> None:
        """Grow by the old rule."""
        if ack.snd_una > self.last:
            self.adjust()
            self.last, self.samples, self.sum_us = ack.snd_nxt, 0, 0
        if not ack.cwnd_limited:
            return
        if self.cwnd <= self.ssthresh:
            self.cwnd += 1
            return
        self.count += ack.delivered_pkts
        grown = (self.count * self.alpha >> 7) // int(self.cwnd)
        if grown:
            self.cwnd += grown
            self.count = 0

    def adjust(self) -> None:
        """Set increase and decrease once per round; beta in 64ths."""
        if self.cwnd < 15:
            self.alpha, self.beta = 128, 32
        elif self.samples:
            max_us, mean = self.max_rtt_us - self.base_us, self.sum_us // self.samples - self.base_us
            self.alpha = self.increase(mean, max_us)
            low, high = max_us // 10, 8 * max_us // 10
            if mean <= low:
                self.beta = 8
            elif mean >= high or high <= low:
                self.beta = 32
            else:
                self.beta = (8 * high - 32 * low + 24 * mean) // (high - low)

    def increase(self, mean: int, max_us: int) -> int:
        """Return alpha for the mean queueing delay of a round and the maximum of all."""
        edge = max_us // 100
        if mean > edge:
            self.above = True
            max_us, mean = max_us - edge, mean - edge
            return max_us * self.ALPHA_MAX // (max_us + mean * (self.ALPHA_MAX - self.ALPHA_MIN) // self.ALPHA_MIN)
        if not self.above:
            return self.ALPHA_MAX
        self.low += 1
        if self.low < 5:
            return self.alpha
        self.above, self.low = False, 0
        return self.ALPHA_MAX

    def reduced(self) -> float:
        """Return ssthresh after a loss, by the old rule."""
        return int(self.cwnd) * self.beta >> 6


class OldWestwood(OldReno, variant=OLD_WESTWOOD):
    """Westwood+ whose end of recovery nobody signals, with a clock of 1 ms."""

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        """Begin with the windows of `Controller`."""
        super().__init__(cwnd, ssthresh)
        self.since_ms: int | None = None
        self.segments = self.rtt_ms = self.min_ms = 0
        self.first_stage = self.rate = 0.0

    def observe(self, ack: Ack) -> None:
        """Take samples."""
        now_ms = int(1e3 * ack.now_s)
        if ack.srtt_s is not None:
            self.rtt_ms = int(1e3 * ack.srtt_s)
        if self.since_ms is None:
            self.since_ms = 0
        elapsed_ms = now_ms - self.since_ms
        if self.rtt_ms and elapsed_ms > max(self.rtt_ms, 50):
            sample = self.segments / elapsed_ms
            if self.rate:
                self.first_stage = (7 * self.first_stage + sample) / 8
                self.rate = (7 * self.rate + self.first_stage) / 8
            else:
                self.first_stage = self.rate = sample
            self.segments, self.since_ms = 0, now_ms
        self.segments += ack.delivered_pkts
        self.min_ms = min(self.min_ms or self.rtt_ms, self.rtt_ms)

    def on_congestion(self, signal: Congestion) -> None:
        """Reduce by the old rule."""
        super().on_congestion(signal)
        self.cwnd = max(self.cwnd, self.rate * self.min_ms // 1)

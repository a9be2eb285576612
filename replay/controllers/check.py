"""Checks that a controller in Python keeps the rules of every variant: the engine's contract suite, in Python.

Depends on the events and the rules, not on a network. The windows are set before each call and read after it, as the
engine does. Seeds determine the random sequences, so that a finding can be repeated.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from hindflight.replay.controllers.base import LOSS_WINDOW_PKTS, Controller
from hindflight.toolkit.errors import HindflightError

SEQUENCES = 20
EVENTS = 200
INITIAL_WINDOW_PKTS = 10.0
RESTART_WINDOW_PKTS = 4.0
MIN_AFTER_SIGNAL_PKTS = 2.0
"""A window of one may become two by a loss (RFC 5681 §3.1 equation 4), or unused (RFC 6817 §2.5)."""
SMSS_BYTES = 1448
MAX_FLIGHT_PKTS = 1_000_000

KINDS = ("used", "unused", "loss", "ecn_echo", "timeout", "repeated_timeout", "idle", "exit")
WEIGHTS = (70, 10, 8, 2, 3, 1, 2, 6)
EXTREMES: tuple[tuple[int, float | None], ...] = (
    (0, 0.0),
    (0, 1e-9),
    (1, 0.0),
    (1, 1e-9),
    (1 << 20, 1e-9),
    (1, 3600.0),
    (1, None),
)
"""Segments delivered and round-trip time [s] of ACKs that are rare."""


@dataclass(frozen=True, slots=True)
class RandomAck:
    """An ACK as the engine would report it."""

    now_s: float
    delivered_pkts: int
    rtt_s: float | None
    srtt_s: float | None
    flight_pkts: int
    snd_una: int
    cwnd_limited: bool
    recovery_phase: str = "none"
    ecn_echo: bool = False
    lost_pkts: int = 0
    newly_lost_pkts: int = 0
    app_limited: bool = False

    @property
    def delivered_total_pkts(self) -> int:
        """All that was delivered before it, and by it."""
        return self.snd_una // SMSS_BYTES

    @property
    def prior_delivered_pkts(self) -> int:
        """A flight before it."""
        return max(0, self.delivered_total_pkts - self.prior_flight_pkts)

    @property
    def delivery_rate_pkts_per_s(self) -> float | None:
        """The flight over the round-trip time."""
        return self.prior_flight_pkts / self.rtt_s if self.rtt_s else None

    @property
    def acked_bytes(self) -> int:
        """All that it delivers."""
        return self.delivered_pkts * SMSS_BYTES

    @property
    def min_rtt_s(self) -> float | None:
        """As the smoothed one."""
        return self.srtt_s

    @property
    def snd_nxt(self) -> int:
        """A flight beyond."""
        return self.snd_una + self.flight_pkts * SMSS_BYTES

    @property
    def prior_flight_pkts(self) -> int:
        """Before it delivered."""
        return self.flight_pkts + self.delivered_pkts


@dataclass(frozen=True, slots=True)
class RandomCongestion:
    """A congestion signal as the engine would report it."""

    now_s: float
    flight_pkts: float
    kind: str
    lost_pkts: int = 1


class BrokenError(Exception):
    """The controller raised, or left no valid window, and cannot be used any more."""


def check_controller(make: Callable[[float, float], Controller]) -> list[str]:
    """Return the rules that controllers of `make(cwnd, ssthresh)` break, a sentence each; an empty list if none.

    Windows are finite and at least one segment, whatever an ACK reports. Congestion signals, timeouts and idleness do
    not increase the window, and neither do ACKs while it is not fully used; ACKs of a fully used window without losses
    do. A loss decreases it; a timeout leaves one segment, idleness the initial window. Equal events give equal windows.
    A class with `holds_window` keeps its window instead. One with `models_path` must only leave valid, equal windows.
    HindflightError if `make` is not a class of controllers.
    """
    if not callable(make):
        raise HindflightError(f"{make!r} makes no controllers", "give the class itself: check_controller(Gentle)")
    models = getattr(make, "models_path", False)
    found: dict[str, str] = {}
    for seed in range(SEQUENCES):
        windows = [_sequence(Play(make, found), seed, judged=not models) for _ in range(2)]
        if windows[0] != windows[1]:
            found.setdefault("equal", "equal events give different windows")
    usual = () if models else (_increases, _decreases_on_loss, _restarts)
    for rule in (_extremes, *((_keeps_window,) if getattr(make, "holds_window", False) else usual)):
        try:
            rule(Play(make, found))
        except BrokenError:
            continue
    return list(found.values())


class Play:
    """A running controller: the window that it last left, and the calls for events."""

    def __init__(self, make: Callable[[float, float], Controller], found: dict[str, str]) -> None:
        self.found = found
        self.window = (INITIAL_WINDOW_PKTS, math.inf)
        self.number = 0
        self.now_s = 0.0
        self.controller: Controller | None = None
        try:
            self.controller = make(*self.window)
        except Exception as error:
            self._raised("__init__", error)
            return
        if hasattr(self.controller, "cwnd") and hasattr(self.controller, "ssthresh"):
            self._read("__init__")

    @property
    def cwnd(self) -> float:
        """The window."""
        return self.window[0]

    def call(self, method: str, *arguments: object) -> float:
        """Call `method`; return the window after it. BrokenError: it raised, or left no valid window."""
        if self.controller is None:
            raise BrokenError
        self.controller.cwnd, self.controller.ssthresh = self.window
        try:
            getattr(self.controller, method)(*arguments)
        except Exception as error:
            self._raised(method, error)
            raise BrokenError from error
        self._read(method)
        if self.controller is None:
            raise BrokenError
        return self.cwnd

    def acknowledge(self, *, delivered: int = 1, rtt_s: float | None = 0.1, limited: bool = True) -> float:
        """An ACK outside of recovery; return the window after it."""
        ack = self.ack(delivered, rtt_s, limited=limited)
        if getattr(self.controller, "observes", False):
            self.call("observe", ack)
        return self.call("on_ack", ack)

    def ack(self, delivered: int, rtt_s: float | None, *, limited: bool = True) -> RandomAck:
        """Return the next ACK under the window."""
        self.number += delivered
        flight = max(1, int(min(self.cwnd, MAX_FLIGHT_PKTS)))
        flight = flight if limited else flight // 4
        return RandomAck(self.now_s, delivered, rtt_s, rtt_s, flight, 1 + self.number * SMSS_BYTES, limited)

    def signal(self, kind: str, flight_pkts: float | None = None) -> float:
        """Signal congestion; return the window after it."""
        method = "on_timeout" if kind.endswith("timeout") else "on_congestion"
        flight = min(self.cwnd, MAX_FLIGHT_PKTS) if flight_pkts is None else flight_pkts
        return self.call(method, RandomCongestion(self.now_s, flight, kind))

    def note(self, rule: str, finding: str) -> None:
        """Keep the first finding against a rule."""
        self.found.setdefault(rule, finding)

    def _raised(self, method: str, error: Exception) -> None:
        self.controller = None
        self.note(f"raised {method}", f"{method} raises {type(error).__name__}: {error}")

    def _read(self, method: str) -> None:
        cwnd, ssthresh = getattr(self.controller, "cwnd", None), getattr(self.controller, "ssthresh", None)
        if not _holds(lambda: math.isfinite(cwnd) and cwnd >= 1 and ssthresh >= 1):  # type: ignore[arg-type, operator]
            self.controller = None
            left = f"cwnd = {cwnd!r} and ssthresh = {ssthresh!r}"
            self.note(f"window {method}", f"{method} leaves {left}: both are numbers of 1 at least, and cwnd is finite")
            return
        rate = getattr(self.controller, "pacing_rate_pkts_per_s", None)
        if getattr(self.controller, "paces", False) and not _holds(lambda: rate is None or rate > 0):
            self.note(f"rate {method}", f"{method} leaves pacing_rate_pkts_per_s = {rate!r}: None, or above 0")
        self.window = (float(cwnd), float(ssthresh))  # type: ignore[arg-type]


def _holds(condition: Callable[[], bool]) -> bool:
    """Return whether a condition on the values that a controller left holds; not if they are not numbers."""
    try:
        return bool(condition())
    except TypeError:
        return False


def _sequence(play: Play, seed: int, *, judged: bool) -> list[float]:
    """Play random events of `seed`; return the window after each. Without `judged` no rule is checked."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    windows = []
    try:
        for _ in range(EVENTS):
            play.now_s += draw.uniform(0.001, 0.5)
            _happen(play, draw.choices(KINDS, WEIGHTS)[0], draw, judged=judged)
            windows.append(play.cwnd)
    except BrokenError:
        pass
    return windows


def _happen(play: Play, kind: str, draw: random.Random, *, judged: bool = True) -> None:
    """Apply the event and check the rule that belongs to it."""
    before = play.cwnd
    delivered, rtt_s = draw.randint(1, 8), None if draw.random() < 0.1 else draw.uniform(0.001, 2.0)
    if kind == "used":
        play.acknowledge(delivered=delivered, rtt_s=rtt_s)
        return
    if kind == "exit":
        play.call("on_recovery_exit", play.ack(delivered, rtt_s))
        return
    if kind == "unused":
        after = play.acknowledge(delivered=delivered, rtt_s=rtt_s, limited=False)
        wrong = "a window that is not fully used increases"
    elif kind == "idle":
        after = play.call("on_idle", INITIAL_WINDOW_PKTS, 5.0)
        wrong = "idleness increases the window"
    else:
        after = play.signal(kind)
        names = {"loss": "a loss", "ecn_echo": "a congestion mark"}
        wrong = f"{names.get(kind, 'a timeout')} increases the window"
    if judged and after > max(before, MIN_AFTER_SIGNAL_PKTS):
        play.note(wrong, f"{wrong}: {before:g} to {after:g}")


def _extremes(play: Play) -> None:
    for delivered, rtt_s in EXTREMES:
        for n in range(50):
            play.acknowledge(delivered=delivered, rtt_s=rtt_s)
            if n % 17 == 16:
                play.signal("loss", 0.0)


def _after_acks(play: Play, acks: int) -> float:
    for _ in range(acks):
        play.now_s += 0.01
        play.acknowledge()
    return play.cwnd


def _increases(play: Play) -> None:
    before = play.cwnd
    after = _after_acks(play, 1 + 2 * int(before))
    if after <= before:
        play.note(
            "increases", "a fully used window without losses does not increase (unless the class has holds_window)"
        )


def _decreases_on_loss(play: Play) -> None:
    before = _after_acks(play, 60)
    after = play.signal("loss")
    if after >= before:
        play.note("decreases", f"a loss does not decrease the window: {before:g} to {after:g}")


def _restarts(play: Play) -> None:
    _after_acks(play, 60)
    after = play.call("on_idle", RESTART_WINDOW_PKTS, 5.0)
    if after > RESTART_WINDOW_PKTS:
        play.note("idle", f"idleness leaves {after:g} segments, not the initial window of {RESTART_WINDOW_PKTS:g}")
    _after_acks(play, 60)
    after = play.signal("timeout")
    if after != LOSS_WINDOW_PKTS:
        play.note("timeout", f"a timeout leaves {after:g} segments, not one (RFC 5681 §3.1)")


def _keeps_window(play: Play) -> None:
    fixed = play.cwnd
    for kind in ("loss", "exit", "timeout", "idle"):
        _happen(play, kind, random.Random(1))  # noqa: S311 - no secret
        if (after := _after_acks(play, 40)) != fixed:
            play.note("fixed", f"a fixed window (holds_window) changes from {fixed:g} to {after:g}")
            return

"""A congestion controller in Python: a subclass of `Controller` with a name is a variant like any other.

    class Gentle(Controller, variant="gentle"):
        def on_congestion(self, signal):
            self.cwnd = self.ssthresh = max(0.9 * self.cwnd, 2.0)

Depends on the engine's events, not on scenarios or runs. A scenario names it in
`compare.variants`; the stack profile detects and retransmits losses, as for any variant. It is slower than the
engine's own: every ACK calls Python (`make bench-engine` prints by how much). `check_controller` checks the rules that
every variant keeps.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Protocol

from hindflight.replay.catalogue import engine_variant_names
from hindflight.toolkit.errors import HindflightError

MIN_SSTHRESH_PKTS = 2.0
"""RFC 5681 §3.1 equation 4."""
LOSS_WINDOW_PKTS = 1.0
"""RFC 5681 §3.1."""

_registered: dict[str, type[Controller]] = {}


class Ack(Protocol):
    """What an ACK reports to a controller."""

    @property
    def now_s(self) -> float:
        """Time since the start of the run."""

    @property
    def delivered_pkts(self) -> int:
        """Segments that it acknowledges or sacks for the first time."""

    @property
    def acked_bytes(self) -> int:
        """Octets that it acknowledges cumulatively."""

    @property
    def rtt_s(self) -> float | None:
        """Round-trip time of the newest segment that it delivers; None where Karn's rule forbids a sample."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time."""

    @property
    def min_rtt_s(self) -> float | None:
        """Minimum round-trip time of the connection."""

    @property
    def snd_una(self) -> int:
        """Oldest octet not acknowledged."""

    @property
    def snd_nxt(self) -> int:
        """Next octet to be sent."""

    @property
    def flight_pkts(self) -> int:
        """Segments in the network (RFC 6675: pipe)."""

    @property
    def prior_flight_pkts(self) -> int:
        """The same before this ACK."""

    @property
    def lost_pkts(self) -> int:
        """Segments ever marked lost."""

    @property
    def newly_lost_pkts(self) -> int:
        """Segments that this ACK shows to be lost; seen by `on_ack` only."""

    @property
    def delivered_total_pkts(self) -> int:
        """Segments ever delivered, the SYN included; 0 unless `models_path`."""

    @property
    def delivery_rate_pkts_per_s(self) -> float | None:
        """Delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation §3); None without one, or `models_path`."""

    @property
    def prior_delivered_pkts(self) -> int | None:
        """`delivered_total_pkts` when the newest delivered segment was sent: a round trip ends when it reaches the
        total at the end of the round before. None without a sample."""

    @property
    def app_limited(self) -> bool:
        """The application, not the path, may have limited the sample."""

    @property
    def recovery_phase(self) -> str:
        """Recovery phase of the sender: none, recovery (fast recovery) or loss (after a timeout)."""

    @property
    def cwnd_limited(self) -> bool:
        """The sender was limited by cwnd, not by the application or the receiver's window."""

    @property
    def ecn_echo(self) -> bool:
        """The receiver echoes a congestion mark."""


class Congestion(Protocol):
    """A congestion signal: a reason to decrease the window."""

    @property
    def now_s(self) -> float:
        """Time since the start of the run."""

    @property
    def flight_pkts(self) -> float:
        """Segments in flight when it came (RFC 5681: FlightSize)."""

    @property
    def lost_pkts(self) -> int:
        """Segments ever marked lost."""

    @property
    def kind(self) -> str:
        """loss, ecn_echo, timeout or repeated_timeout."""


class Controller:
    """Reno's windows (RFC 5681 §3.1); a subclass overrides what it does otherwise.

    A loss halves FlightSize, also under profile `linux`, whose built-in variants halve cwnd.

    `cwnd` and `ssthresh` are in segments; the engine sets both before each call and reads them after it, after
    `__init__` too. cwnd is finite, both are 1 at least: anything else ends the replay with ControllerError, and so does
    whatever a method raises.
    """

    holds_window: ClassVar[bool] = False
    """The window is fixed: `check_controller` then checks that, and not increase and decrease."""

    models_path: ClassVar[bool] = False
    """It models the path, as BBR: delivery rates are sampled, `on_ack` is called for every ACK that delivers or reports
    something, in recovery too, and `cwnd` governs in recovery. `on_idle` is not called."""

    paces: ClassVar[bool] = False
    """Segments leave at `pacing_rate_pkts_per_s`, read after each call."""

    pacing_rate_pkts_per_s: float | None = None
    """Segments per second, if `paces`; None: as soon as the window allows."""

    observes: ClassVar[bool] = False
    """Whether `observe` is called: true for a class that overrides it."""

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        """Begin a connection with its initial window; `ssthresh` is infinite where it is not set."""
        self.cwnd = cwnd
        self.ssthresh = ssthresh
        self._counted = 0.0

    def __init_subclass__(cls, *, variant: str | None = "", **others: Any) -> None:
        """Make the class known as `variant`; with None it is a base for others.

        HindflightError: it has no name, or one that is taken.
        """
        super().__init_subclass__(**others)
        cls.observes = cls.observe is not Controller.observe
        if variant == "":
            raise HindflightError(
                f"the controller {cls.__name__} has no name that a scenario could use",
                f'class {cls.__name__}(Controller, variant="NAME"); variant=None makes a base for others',
            )
        if variant is not None:
            register_controller(variant, cls)

    def observe(self, ack: Ack) -> None:
        """Hear of every ACK, in recovery too, before the sender reacts to it."""

    def on_ack(self, ack: Ack) -> None:
        """Grow for an ACK outside of fast recovery: in slow start by what it delivers, then by a segment per window."""
        if not ack.cwnd_limited:
            return
        left = float(ack.delivered_pkts)
        if self.cwnd < self.ssthresh:
            grown = min(self.cwnd + left, self.ssthresh)
            left -= grown - self.cwnd
            self.cwnd = grown
        if self.cwnd >= self.ssthresh:
            self._count(left)

    def _count(self, acked_pkts: float) -> None:
        """Count acknowledged segments: a full window of them increases cwnd by one segment (RFC 3465 §2.1)."""
        window = math.floor(self.cwnd)
        self._counted += acked_pkts
        if self._counted >= window:
            bought = self._counted // window
            self._counted -= bought * window
            self.cwnd += bought

    def on_congestion(self, signal: Congestion) -> None:
        """Reduce for a loss or a congestion mark, once per window of data."""
        self.cwnd = self.ssthresh = max(signal.flight_pkts / 2, MIN_SSTHRESH_PKTS)
        self._counted = 0.0

    def on_timeout(self, signal: Congestion) -> None:
        """Reduce for a retransmission timeout; ssthresh only for the first of a row."""
        if signal.kind == "timeout":
            self.ssthresh = max(signal.flight_pkts / 2, MIN_SSTHRESH_PKTS)
        self.cwnd = LOSS_WINDOW_PKTS
        self._counted = 0.0

    def on_recovery_exit(self, ack: Ack) -> None:
        """Fast recovery ended with this ACK."""

    def on_idle(self, initial_window: float, idle_s: float) -> None:  # noqa: ARG002 - for those that override it
        """Data follows after a pause longer than the RTO: cwnd restarts from `initial_window` (RFC 5681 §4.1), or from
        more where the stack halves it for every RTO (profile `linux`, RFC 2861)."""
        self.cwnd = min(self.cwnd, initial_window)


def register_controller(variant: str, controller: type[Controller]) -> None:
    """Make `controller` known as `variant`. HindflightError where another class or the engine has the name."""
    if not isinstance(variant, str) or not variant.replace("-", "").replace("_", "").isalnum():
        raise HindflightError(f"{variant!r} cannot name a variant", "use letters, digits, - and _")
    known = _registered.get(variant)
    # A class that is defined again, as in a notebook, replaces the former one.
    other = known is not None and _place(known) != _place(controller)
    if other or variant in engine_variant_names():
        raise HindflightError(f"there is a variant {variant} already", "choose another name for the controller")
    _registered[variant] = controller


def registered_controllers() -> dict[str, type[Controller]]:
    """Return the classes that have a name, by it."""
    return dict(_registered)


def variant_names() -> tuple[str, ...]:
    """Return the names of the engine's variants and of the user's controllers."""
    return (*engine_variant_names(), *registered_controllers())


def _place(controller: type[Controller]) -> tuple[str, str]:
    return controller.__module__, controller.__qualname__

"""UAV and ad hoc links: full rate, partial rate, outages and route changes, with the shares of the ASRAN paper.

See docs/channels/uav.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from hindflight.channels.intervals import State, merge, truncate
from hindflight.channels.models.losses import Markov
from hindflight.channels.models.parameters import Parameters, Probability, Rate, Stay, Time
from hindflight.channels.models.state_sequences import state_sequence

if TYPE_CHECKING:
    from hindflight.channels.models.losses import Config

FULL, PARTIAL, BROKEN, REROUTED = range(4)
"""States: full rate, partial rate, an outage on the same route, a change of route."""

Hops = Annotated[int, Field(ge=1, le=64, strict=True)]


class Uav(Parameters):
    """A path over flying relays, which is in one of four states in every `slot`.

    The ASRAN paper, Fig. 1: of an offered 1 Mbit/s nothing arrives in 19 % of the seconds, all of it in fewer than
    half. The paper does not give sojourn times and routes; docs/channels/uav.md marks these defaults.
    """

    model: Literal["uav"]
    rate: Rate = 1e6
    slot: Stay = 1_000_000_000
    share_zero: Probability = 0.19
    share_full: Probability = 0.45
    partial: Annotated[float, Field(gt=0, lt=1, strict=True)] = 0.5
    mean_outage: Stay = 3_000_000_000
    mean_full: Stay = 6_000_000_000
    route_changes: Probability = 0.3
    mean_route_change: Stay = 5_000_000_000
    hops: Annotated[tuple[Hops, ...], Field(min_length=1)] = (2, 3)
    hop_delay: Time = 2_000_000
    queued: Literal["lost", "late"] = "lost"

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.share_zero + self.share_full >= 1:
            raise ValueError("share_zero + share_full must be less than 1: the rest is the partial rate")
        for name in ("mean_outage", "mean_full", "mean_route_change"):
            if getattr(self, name) < self.slot:
                raise ValueError(f"{name} is shorter than a slot")
        self.transitions()
        return self

    def transitions(self) -> list[list[float]]:
        """Return the transition probabilities per slot whose steady state has the given shares.

        An outage starts from and ends in the partial rate, which alternates with the full rate.
        """
        outage, change = self.mean_outage / self.slot, self.mean_route_change / self.slot
        full = self.mean_full / self.slot
        share_partial = 1 - self.share_zero - self.share_full
        mean_zero = (1 - self.route_changes) * outage + self.route_changes * change
        # Balance equations: a state is left as often as it is entered.
        fall = self.share_zero / mean_zero / share_partial
        rise = self.share_full / full / share_partial
        if fall + rise > 1:
            raise ValueError(
                "with these shares the partial rate lasts less than a slot: lengthen mean_outage or mean_full"
            )
        return [
            [1 - 1 / full, 1 / full, 0.0, 0.0],
            [rise, 1 - rise - fall, fall * (1 - self.route_changes), fall * self.route_changes],
            [0.0, 1 / outage, 1 - 1 / outage, 0.0],
            [0.0, 1 / change, 0.0, 1 - 1 / change],
        ]

    def chain(self) -> Config:
        """Return the states per slot as the kernel's configuration, starting in the steady state."""
        rows = tuple(tuple(row) for row in self.transitions())
        config = Markov(model="markov", transitions=rows, loss=(0.0,) * 4).config()
        outage, change = self.mean_outage, self.mean_route_change
        routed = self.route_changes * change / (self.route_changes * change + (1 - self.route_changes) * outage)
        partial = 1 - self.share_zero - self.share_full
        zero = self.share_zero
        return {**config, "start": [self.share_full, partial, zero * (1 - routed), zero * routed]}

    def states(self, span_ns: int, seed: int, owner: int = 0) -> Iterator[State]:
        """Return rate, delay and outages from 0 to `span_ns`."""
        return merge(truncate(self._slots(seed, owner), span_ns))

    def _slots(self, seed: int, owner: int) -> Iterator[State]:
        t_ns, route = 0, 0
        down = {"outage": True} if self.queued == "lost" else {}
        for state, slots in state_sequence(self.chain(), seed, owner):
            end_ns = t_ns + slots * self.slot
            if state == REROUTED:
                route += 1
            delay_ns = self.hops[route % len(self.hops)] * self.hop_delay
            if state in (FULL, PARTIAL):
                yield State(t_ns, end_ns, self.rate * (1.0 if state == FULL else self.partial), delay_ns)
            else:
                yield State(t_ns, end_ns, 0.0 if self.queued == "late" else None, delay_ns, **down)
            t_ns = end_ns

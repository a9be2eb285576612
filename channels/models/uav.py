"""UAV and ad hoc links: full rate, part of it, or nothing, and routes that change; tuned to paper 002's shares.

Parameters and the walk over time. Read docs/channels/uav.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from hindflight.channels.intervals import State, merged, until
from hindflight.channels.models.losses import Markov
from hindflight.channels.models.parameters import Parameters, Probability, Rate, Stay, Time
from hindflight.channels.models.state_sequences import packet_steps

if TYPE_CHECKING:
    from hindflight.channels.models.losses import Config

FULL, PARTIAL, BROKEN, REROUTED = range(4)
"""States: full rate, part of it, an outage that the same route survives, a change of route."""

Hops = Annotated[int, Field(ge=1, le=64, strict=True)]


class Uav(Parameters):
    """A path over relays that fly: every `slot` it is in one of four states.

    Paper 002, Fig. 1: of an offered 1 Mbit/s nothing arrives in 19 % of the seconds, all of it in fewer than half.
    What it does not give, the lengths of stays and the routes, is free; the defaults are marked in the page.
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
            raise ValueError("share_zero and share_full leave no time for a part of the rate")
        for name in ("mean_outage", "mean_full", "mean_route_change"):
            if getattr(self, name) < self.slot:
                raise ValueError(f"{name} is shorter than a slot")
        self.transitions()
        return self

    def transitions(self) -> list[list[float]]:
        """Probabilities per slot, chosen so that the steady state has the shares asked for.

        Out of an outage leads part of the rate, and into one too; between that and the full rate it goes to and fro.
        """
        outage, change = self.mean_outage / self.slot, self.mean_route_change / self.slot
        full = self.mean_full / self.slot
        share_partial = 1 - self.share_zero - self.share_full
        mean_zero = (1 - self.route_changes) * outage + self.route_changes * change
        # Balance of flows: as much leaves a state as enters it.
        fall = self.share_zero / mean_zero / share_partial
        rise = self.share_full / full / share_partial
        if fall + rise > 1:
            raise ValueError(
                "these shares need part of the rate to last less than a slot: lengthen mean_outage or mean_full"
            )
        return [
            [1 - 1 / full, 1 / full, 0.0, 0.0],
            [rise, 1 - rise - fall, fall * (1 - self.route_changes), fall * self.route_changes],
            [0.0, 1 / outage, 1 - 1 / outage, 0.0],
            [0.0, 1 / change, 0.0, 1 - 1 / change],
        ]

    def chain(self) -> Config:
        """The states per slot in the kernel's words, starting in the steady state."""
        rows = tuple(tuple(row) for row in self.transitions())
        config = Markov(model="markov", transitions=rows, loss=(0.0,) * 4).config()
        outage, change = self.mean_outage, self.mean_route_change
        routed = self.route_changes * change / (self.route_changes * change + (1 - self.route_changes) * outage)
        partial = 1 - self.share_zero - self.share_full
        zero = self.share_zero
        return {**config, "start": [self.share_full, partial, zero * (1 - routed), zero * routed]}

    def states(self, span_ns: int, seed: int, owner: int = 0) -> Iterator[State]:
        """Rate, delay and outages from time 0 to `span_ns`."""
        return merged(until(self._slots(seed, owner), span_ns))

    def _slots(self, seed: int, owner: int) -> Iterator[State]:
        t_ns, route = 0, 0
        down = {"outage": True} if self.queued == "lost" else {}
        for state, slots in packet_steps(self.chain(), seed, owner):
            end_ns = t_ns + slots * self.slot
            if state == REROUTED:
                route += 1
            delay_ns = self.hops[route % len(self.hops)] * self.hop_delay
            if state in (FULL, PARTIAL):
                yield State(t_ns, end_ns, self.rate * (1.0 if state == FULL else self.partial), delay_ns)
            else:
                yield State(t_ns, end_ns, 0.0 if self.queued == "late" else None, delay_ns, **down)
            t_ns = end_ns

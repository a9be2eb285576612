"""Handovers: links whose rate, delay and loss change at given times, or every slot of a constellation.

Parameters and the states they give. Read docs/channels/handover.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hindflight.channels.intervals import State, merged, until
from hindflight.channels.models.parameters import Parameters, Probability, Rate, Stay, Time
from hindflight.channels.models.state_sequences import normals, uniform


class Step(Parameters):
    """From `at` on these values hold; what is left out stays as it was.

    `gap`: break before make, the link is down that long before the new values hold. `overlap`: make before break with
    two links alive, the new one with a queue of its own; the old one serves what it has for so long, and packets of the
    two may overtake. With neither one link changes: what is queued goes on at the new values.
    """

    at: Time
    rate: Rate | None = None
    delay: Time | None = None
    per: Probability | None = None
    ber: Probability | None = None
    gap: Time = 0
    overlap: Time | None = None

    @model_validator(mode="after")
    def _one_loss(self) -> Self:
        if self.per is not None and self.ber is not None:
            raise ValueError("give per or ber, not both")
        if self.gap and self.overlap is not None:
            raise ValueError("gap breaks before it makes, overlap makes before it breaks: give one of them")
        return self


class Handover(Parameters):
    """A schedule of steps, the first at 0. `queued`: what meets a gap is lost, or waits for its end."""

    model: Literal["handover"]
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    queued: Literal["lost", "held"] = "lost"

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if self.steps[0].at != 0:
            raise ValueError("the first step must be at 0 s")
        if self.steps[0].overlap is not None:
            raise ValueError("steps[0].overlap: there is no link before the first one")
        for i, (before, after) in enumerate(pairwise(self.steps), 1):
            if after.at < before.at + before.gap:
                raise ValueError(f"steps[{i}].at is before the step above it, or in its gap")
            if before.overlap is not None and after.overlap is not None and after.at < before.at + before.overlap:
                raise ValueError(f"steps[{i}].overlap begins within that of the step above: three links at once")
        return self

    def states(self, span_ns: int, seed: int, owner: int = 0) -> Iterator[State]:
        """Rate, delay, loss and gaps from time 0 to `span_ns`; nothing is drawn."""
        del seed, owner
        return merged(until(self._states(span_ns), span_ns))

    def _states(self, span_ns: int) -> Iterator[State]:
        rate, delay, per, ber = None, None, None, None
        ends = [step.at for step in self.steps[1:]] + [max(span_ns, self.steps[-1].at + self.steps[-1].gap)]
        for step, end_ns in zip(self.steps, ends, strict=True):
            rate = step.rate if step.rate is not None else rate
            delay = step.delay if step.delay is not None else delay
            if step.per is not None or step.ber is not None:
                per, ber = step.per, step.ber
            start_ns = step.at + step.gap
            yield gap(step.at, start_ns, delay, self.queued)
            yield State(start_ns, end_ns, rate, delay, per, ber, overlap_ns=step.overlap)


class Slots(Parameters):
    """Every `slot` another satellite: rate and delay drawn evenly between two ends, a gap of `gap` at its beginning, or
    with `overlap` two links alive for so long (see `Step`).

    Defaults: slots of 15 s that begin 12 s past the minute, as measured at Starlink (Mohan et al., "A Multifaceted Look
    at Starlink Performance", WWW 2024; Garcia et al., LEO-NET 2023); rates and delays are of no single measurement.
    """

    model: Literal["slots"]
    slot: Stay = 15_000_000_000
    first: Time = 12_000_000_000
    rate_low: Rate = 50e6
    rate_high: Rate = 200e6
    delay_low: Time = 12_000_000
    delay_high: Time = 25_000_000
    gap: Time = 0
    overlap: Time | None = None
    queued: Literal["lost", "held"] = "held"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.rate_high < self.rate_low or self.delay_high < self.delay_low:
            raise ValueError("a high end is less than its low end")
        if self.gap >= self.slot:
            raise ValueError("the gap is as long as the slot")
        if self.overlap is not None and self.overlap > self.slot:
            raise ValueError("overlap is longer than the slot: three links at once")
        if self.gap and self.overlap is not None:
            raise ValueError("gap breaks before it makes, overlap makes before it breaks: give one of them")
        return self

    def states(self, span_ns: int, seed: int, owner: int = 0) -> Iterator[State]:
        """Rate and delay slot by slot from time 0 to `span_ns`."""
        return merged(until(self._states(seed, owner), span_ns))

    def _states(self, seed: int, owner: int) -> Iterator[State]:
        drawn = normals(seed, owner)
        first = self.first % self.slot
        for number in count():
            start_ns = max(0, first + (number - 1) * self.slot)
            end_ns = first + number * self.slot
            rate = self.rate_low + (self.rate_high - self.rate_low) * uniform(next(drawn))
            delay = round(self.delay_low + (self.delay_high - self.delay_low) * uniform(next(drawn)))
            open_ns = start_ns + (self.gap if number else 0)
            yield gap(start_ns, open_ns, delay, self.queued)
            yield State(open_ns, end_ns, rate, delay, overlap_ns=self.overlap if number and start_ns else None)


def gap(start_ns: int, end_ns: int, delay_ns: int | None, queued: Literal["lost", "held"]) -> State:
    """Return a break of the link: what meets it is lost, or what is queued waits."""
    if queued == "lost":
        return State(start_ns, end_ns, delay_ns=delay_ns, outage=True)
    return State(start_ns, end_ns, rate_bps=0.0, delay_ns=delay_ns)

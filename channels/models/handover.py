"""Handovers: rate, delay and loss change at given times, or in each slot of a constellation.

See docs/channels/handover.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hindflight.channels.intervals import State, merge, truncate
from hindflight.channels.models.parameters import Parameters, Probability, Rate, Stay, Time
from hindflight.channels.models.state_sequences import normals, uniform


class Step(Parameters):
    """Values that hold from `at` on. A value that is left out does not change.

    `gap`: break before make; the link is down for that long before the new values hold. `overlap`: make before break; a
    second link with a separate queue takes over, the previous one drains its queue for that long, and packets of the
    two may be reordered. With neither, the same link changes, and queued packets leave at the new values.
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
            raise ValueError("give gap (break before make) or overlap (make before break), not both")
        return self


class Handover(Parameters):
    """A schedule of steps, the first at 0. `queued`: packets that meet a gap are lost, or wait for its end."""

    model: Literal["handover"]
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    queued: Literal["lost", "held"] = "lost"

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if self.steps[0].at != 0:
            raise ValueError("the first step must be at 0 s")
        if self.steps[0].overlap is not None:
            raise ValueError("steps[0].overlap: there is no link before the first step")
        for i, (before, after) in enumerate(pairwise(self.steps), 1):
            if after.at < before.at + before.gap:
                raise ValueError(f"steps[{i}].at is before the previous step or within its gap")
            if before.overlap is not None and after.overlap is not None and after.at < before.at + before.overlap:
                raise ValueError(f"steps[{i}].overlap begins within that of the previous step: three links at once")
        return self

    def states(self, span_ns: int, seed: int, owner: int = 0) -> Iterator[State]:
        """Return rate, delay, loss and gaps from 0 to `span_ns`. Deterministic: `seed` is ignored."""
        del seed, owner
        return merge(truncate(self._states(span_ns), span_ns))

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
    """Handovers between satellites every `slot`: uniformly distributed rate and delay, a `gap` at the start of each
    slot, or an `overlap` of two links (see `Step`).

    Defaults: slots of 15 s that start 12 s past the minute, as measured at Starlink (Mohan et al., "A Multifaceted Look
    at Starlink Performance", WWW 2024; Garcia et al., LEO-NET 2023). Rates and delays are not from a single
    measurement.
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
            raise ValueError("rate_high is less than rate_low, or delay_high less than delay_low")
        if self.gap >= self.slot:
            raise ValueError("gap must be shorter than slot")
        if self.overlap is not None and self.overlap > self.slot:
            raise ValueError("overlap is longer than the slot: three links at once")
        if self.gap and self.overlap is not None:
            raise ValueError("give gap (break before make) or overlap (make before break), not both")
        return self

    def states(self, span_ns: int, seed: int, owner: int = 0) -> Iterator[State]:
        """Return rate and delay slot by slot from 0 to `span_ns`."""
        return merge(truncate(self._states(seed, owner), span_ns))

    def _states(self, seed: int, owner: int) -> Iterator[State]:
        numbers = normals(seed, owner)
        first = self.first % self.slot
        for number in count():
            start_ns = max(0, first + (number - 1) * self.slot)
            end_ns = first + number * self.slot
            rate = self.rate_low + (self.rate_high - self.rate_low) * uniform(next(numbers))
            delay = round(self.delay_low + (self.delay_high - self.delay_low) * uniform(next(numbers)))
            open_ns = start_ns + (self.gap if number else 0)
            yield gap(start_ns, open_ns, delay, self.queued)
            yield State(open_ns, end_ns, rate, delay, overlap_ns=self.overlap if number and start_ns else None)


def gap(start_ns: int, end_ns: int, delay_ns: int | None, queued: Literal["lost", "held"]) -> State:
    """Return an interruption of the link: packets are lost (`lost`) or wait in the queue (`held`)."""
    if queued == "lost":
        return State(start_ns, end_ns, delay_ns=delay_ns, outage=True)
    return State(start_ns, end_ns, rate_bps=0.0, delay_ns=delay_ns)

"""The kinds of application in a scenario file: what feeds a flow.

Depends on the keys of the file and of the engine (`hindflight._native.replay`), not on how applications run. Read
docs/scenario.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from hindflight.channels.models.parameters import LONGEST_NS
from hindflight.replay.scenario.quantities import Part, Rate, Size, Time, whole
from hindflight.toolkit.units import SIZE, TIME

Spread = Literal["fixed", "exponential", "pareto"]
Write = Annotated[int, whole(SIZE), Field(ge=1, le=2**30)]
PositiveTime = Annotated[Time, Field(ge=1)]


class Greedy(Part):
    """Writes as much as the network takes, up to the flow's size, from `first` after its start on; `write` octets per
    call into a send buffer."""

    kind: Literal["greedy"] = "greedy"
    write: Write | None = None
    first: Time = 0

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration."""
        return {"kind": "greedy", "write_bytes": self.write, "first_write_ns": self.first}


class OnOff(Part):
    """Writes at a rate for a while, then pauses."""

    kind: Literal["on_off"]
    rate: Rate
    on: PositiveTime
    off: Time
    spread: Spread = "fixed"
    write: Write | None = None

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration."""
        return {
            "kind": "on_off",
            "rate_bps": self.rate,
            "on_ns": self.on,
            "off_ns": self.off,
            "spread": self.spread,
            "write_bytes": self.write,
        }


class Pages(Part):
    """Sends a page whenever the receiving end asks for one; that end thinks before it asks for the next."""

    kind: Literal["pages"]
    page: Annotated[Size, Field(le=2**40)]
    think: Time
    spread: Spread = "fixed"
    request: Annotated[int, whole(SIZE), Field(ge=1, le=1400)] = 400
    pages: Annotated[int, Field(ge=1, le=2**32, strict=True)] | None = None

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration."""
        return {
            "kind": "pages",
            "page_bytes": self.page,
            "think_ns": self.think,
            "spread": self.spread,
            "request_bytes": self.request,
            "pages": self.pages,
        }


class Stream(Part):
    """Writes media at their own rate; the receiving end plays them out and stalls when they run dry."""

    kind: Literal["stream"]
    rate: Rate
    write_every: Annotated[int, whole(TIME), Field(ge=1000, le=LONGEST_NS)] = 40_000_000
    startup: Time = 1_000_000_000
    resume: Time = 1_000_000_000

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration."""
        return {
            "kind": "stream",
            "rate_bps": self.rate,
            "write_every_ns": self.write_every,
            "startup_ns": self.startup,
            "resume_ns": self.resume,
        }


class Writes(Part):
    """Writes when and what a captured application wrote: times since the flow's start, and the octets of each.

    `until` is when it may have stopped instead, had it written for a time: what-if draws both readings.
    """

    kind: Literal["writes"]
    at: Annotated[tuple[Time, ...], Field(min_length=1)]
    sizes: tuple[Write, ...]
    until: tuple[Time, ...] | None = None

    @model_validator(mode="after")
    def _paired(self) -> Writes:
        if len(self.at) != len(self.sizes):
            raise ValueError(f"{len(self.at)} times in `at` and {len(self.sizes)} sizes; give as many of each")
        for i, (before, after) in enumerate(pairwise(self.at), 1):
            if after < before:
                raise ValueError(f"at[{i}] is earlier than the one before it")
        if self.until is not None:
            _check_ends(self.at, self.until)
        return self

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration."""
        return {"kind": "writes", "at_ns": self.at, "bytes": self.sizes}

    def for_a_time(self) -> dict[str, Any] | None:
        """Return the engine's configuration of an application that writes until `until`; None without it."""
        if self.until is None:
            return None
        return {"kind": "bursts", "from_ns": self.at, "until_ns": self.until}


def _check_ends(at: tuple[int, ...], until: tuple[int, ...]) -> None:
    if len(at) != len(until):
        raise ValueError(f"{len(at)} times in `at` and {len(until)} in `until`; give as many of each")
    for i, (begin, end) in enumerate(zip(at, until, strict=True)):
        following = at[i + 1] if i + 1 < len(at) else end
        if not begin <= end <= following:
            raise ValueError(f"until[{i}] is not between at[{i}] and the next write")


class Bursts(Part):
    """Writes as much as the network takes between each time in `at` and that in `until`, since the flow's start."""

    kind: Literal["bursts"]
    at: Annotated[tuple[Time, ...], Field(min_length=1)]
    until: tuple[Time, ...]

    @model_validator(mode="after")
    def _paired(self) -> Bursts:
        _check_ends(self.at, self.until)
        return self

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration."""
        return {"kind": "bursts", "from_ns": self.at, "until_ns": self.until}


Application = Annotated[Greedy | OnOff | Pages | Stream | Writes | Bursts, Field(discriminator="kind")]

APPLICATIONS: dict[str, type[Part]] = {
    "greedy": Greedy,
    "on_off": OnOff,
    "pages": Pages,
    "stream": Stream,
    "writes": Writes,
    "bursts": Bursts,
}
"""By kind."""


def written_at(application: Application) -> Iterator[tuple[str, int]]:
    """Yield the keys that say when something is written, with their times in ns since the flow's start."""
    match application:
        case Greedy():
            yield "first", application.first
        case Writes() | Bursts():
            yield from ((f"at[{i}]", at) for i, at in enumerate(application.at))
        case OnOff() | Pages() | Stream():
            pass

"""The engine's variants as the catalogue tells them: family, source, year and typed parameters.

Knows nothing of how a variant works; `docs/variants/<name>.md` has its equations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache

from replay.run import variant_rows
from toolkit.errors import HindflightError

LIKE = 0.6
"""Least likeness of a name that is suggested, of 1; below, it is a guess …"""
ALIKE = 0.05
"""… and how much less like than the nearest another one may be that is suggested beside it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; all values as a scenario would write them."""

    name: str
    default: str
    allowed: str
    unit: str
    source: str
    meaning: str

    @property
    def bounds(self) -> str:
        """The range of a number in words, with its unit."""
        return f"{self.allowed.replace('..', ' and ')} {self.unit}".strip()


@dataclass(frozen=True, slots=True)
class Variant:
    """One TCP variant; `profiles` are those under which it has its parameters. One that `needs_forecast` of outages is
    nothing special without one, which no stack that was captured had."""

    name: str
    family: str
    summary: str
    source: str
    year: int
    parameters: tuple[Parameter, ...]
    profiles: tuple[str, ...]
    needs_forecast: bool


def catalogue() -> tuple[Variant, ...]:
    """Return every variant, in the order in which they are listed."""
    return tuple(
        Variant(
            name, family, summary, source, year, tuple(Parameter(*row) for row in parameters), tuple(profiles), forecast
        )
        for name, family, summary, source, year, parameters, profiles, forecast in variant_rows()
    )


@cache
def _all_parameters() -> dict[str, dict[str, Parameter]]:
    return {variant.name: {each.name: each for each in variant.parameters} for variant in catalogue()}


def parameters(variant: str) -> dict[str, Parameter]:
    """Return the parameters of a variant by name; none for a user's controller."""
    return _all_parameters().get(variant, {})


def find_variant(name: str) -> Variant:
    """Return the variant called `name`. Raises HindflightError with the nearest name if there is none."""
    known = {variant.name: variant for variant in catalogue()}
    if name in known:
        return known[name]
    raise unknown_name("variant", name, known)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> HindflightError:
    """Return the error for a `kind` that there is none of that `name`, with the nearest of those known."""
    names = list(known)
    likeness = {each: SequenceMatcher(None, each, name.lower()).ratio() for each in names}
    enough = max(LIKE, max(likeness.values()) - ALIKE)
    near = " or ".join(each for each in names if likeness[each] >= enough)
    guess = f"did you mean {near}? " if near else ""
    return HindflightError(f"there is no {kind} {name}", f"{guess}There are {', '.join(names)}")

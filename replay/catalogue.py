"""The engine's catalogue of variants: family, source, year and typed parameters.

Does not depend on how a variant works; `docs/variants/<name>.md` has its equations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from hindflight.replay import _native
from hindflight.toolkit.errors import HindflightError, did_you_mean


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
        """The range of a number as text, with its unit."""
        return f"{self.allowed.replace('..', ' and ')} {self.unit}".strip()


@dataclass(frozen=True, slots=True)
class Variant:
    """One TCP variant; `profiles` are those under which it has its parameters. One that `needs_forecast` of outages is
    nothing special without one, which no stack that was captured had. Its `other_names` are suggested, never taken."""

    name: str
    family: str
    summary: str
    source: str
    year: int
    parameters: tuple[Parameter, ...]
    profiles: tuple[str, ...]
    needs_forecast: bool
    other_names: tuple[str, ...]


def catalogue() -> tuple[Variant, ...]:
    """Return every variant, in the order in which they are listed."""
    return tuple(
        Variant(
            name=known.name,
            family=known.family,
            summary=known.summary,
            source=known.source,
            year=known.year,
            parameters=tuple(_parameter(parameter) for parameter in known.parameters),
            profiles=tuple(known.profiles),
            needs_forecast=known.needs_forecast,
            other_names=tuple(known.other_names),
        )
        for known in _native.variants()
    )


def _parameter(known: _native.Parameter) -> Parameter:
    names = (field.name for field in fields(Parameter))
    return Parameter(**{name: getattr(known, name) for name in names})


@cache
def _all_parameters() -> dict[str, dict[str, Parameter]]:
    return {variant.name: {each.name: each for each in variant.parameters} for variant in catalogue()}


def parameters(variant: str) -> dict[str, Parameter]:
    """Return the parameters of a variant by name; none for a user's controller."""
    return _all_parameters().get(variant, {})


def find_variant(name: str) -> Variant:
    """Return the variant called `name`. HindflightError, with the most similar name, if there is none."""
    known = {variant.name: variant for variant in catalogue()}
    if name in known:
        return known[name]
    guess = suggest_variant(name, known)
    raise HindflightError(f"there is no variant {name}", guess or f"there are {', '.join(known)}")


def suggest_variant(name: str, known: Iterable[str], *, lead: str = "") -> str:
    """Return `lead` and the question that suggests which of the `known` variants is meant; "" where none is like it.

    A name that other implementations use for a variant suggests that variant, whatever its name here.
    """
    elsewhere = {other: variant.name for variant in catalogue() for other in variant.other_names}
    return did_you_mean(elsewhere.get(name.lower(), name), known, lead=lead)


def engine_variant_names() -> tuple[str, ...]:
    """Return the names of the engine's variants."""
    return tuple(known.name for known in _native.variants())


def profile_parameters(profile: str) -> dict[str, Any]:
    """Return the stack parameters that `profile` fixes, by the engine's names; ValueError for an unknown profile."""
    parameters: dict[str, Any] = json.loads(_native.profile(profile))
    return parameters

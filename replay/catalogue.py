"""The engine's variants as the catalogue tells them: family, source, year and typed parameters.

Knows nothing of how a variant works; `docs/variants/<name>.md` has its equations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
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
        """The range of a number in words, with its unit."""
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
            name,
            family,
            summary,
            source,
            year,
            parameters=tuple(Parameter(*row) for row in parameters),
            profiles=tuple(profiles),
            needs_forecast=forecast,
            other_names=tuple(others),
        )
        for name, family, summary, source, year, parameters, profiles, forecast, others in _native.variants()
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
    guess = meant_variant(name, known)
    raise HindflightError(f"there is no variant {name}", guess or f"there are {', '.join(known)}")


def meant_variant(name: str, known: Iterable[str], *, lead: str = "") -> str:
    """Return `lead` and the question that suggests which of the `known` variants is meant; "" where none is like it.

    A name that a variant goes by elsewhere is taken for that variant, however unlike its own.
    """
    elsewhere = {other: variant.name for variant in catalogue() for other in variant.other_names}
    return did_you_mean(elsewhere.get(name.lower(), name), known, lead=lead)


def engine_variant_names() -> tuple[str, ...]:
    """Return the names of the engine's variants."""
    return tuple(name for name, *_ in _native.variants())


def profile_parameters(profile: str) -> dict[str, Any]:
    """Return the stack parameters that `profile` fixes, by the engine's names; ValueError for an unknown profile."""
    parameters: dict[str, Any] = json.loads(_native.profile(profile))
    return parameters

"""The engine's variants as the catalogue tells them: family, source, year and typed parameters.

Knows nothing of how a variant works; `docs/variants/<name>.md` has its equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from replay.run import variant_rows
from toolkit.errors import HindflightError


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; all values as a scenario would write them."""

    name: str
    default: str
    allowed: str
    unit: str
    source: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Variant:
    """One TCP variant."""

    name: str
    family: str
    summary: str
    source: str
    year: int
    parameters: tuple[Parameter, ...]


def catalogue() -> tuple[Variant, ...]:
    """Return every variant, in the order in which they are listed."""
    return tuple(
        Variant(name, family, summary, source, year, tuple(Parameter(*row) for row in parameters))
        for name, family, summary, source, year, parameters in variant_rows()
    )


def find_variant(name: str) -> Variant:
    """Return the variant called `name`. Raises HindflightError with the nearest name if there is none."""
    known = {variant.name: variant for variant in catalogue()}
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"variants: {', '.join(known)}"
    raise HindflightError(f"there is no variant {name}", hint)

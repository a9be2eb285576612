"""Variants with other parameters: `[variants.NAME]` of a scenario file.

Depends on names, values and their units; the engine checks the ranges. Read docs/scenario.md,
"Variants with other parameters".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from hindflight.replay.catalogue import Parameter, parameters
from hindflight.replay.scenario.flows import LegStack
from hindflight.replay.scenario.quantities import Name
from hindflight.replay.scenario.validation_errors import suggestion
from hindflight.toolkit.units import RATE, TIME, Quantity

QUANTITIES: dict[str, tuple[Quantity, float]] = {
    "bit/s": (RATE, 1.0),
    "ms": (TIME, 1e6),
    "s": (TIME, 1e9),
    "min": (TIME, 60e9),
}
"""Units of parameters that a file gives as a text with a unit, with their size in the quantity's own; what counts
segments, rounds or shares is a plain number."""


class VariantParameters(BaseModel):
    """A variant of the catalogue, the parameters that are not as it has them (all keys but these), and its stack."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)
    __pydantic_extra__: dict[str, Any]

    variant: Name
    stack: LegStack | None = None

    def problems(self) -> Iterator[str]:
        """Yield an error for each key that is no parameter, and each value that no parameter can have."""
        known = _parameters(self.variant)
        for name, value in self.__pydantic_extra__.items():
            if not known:
                yield f"{name}: {self.variant} has no parameters"
            elif name not in known:
                yield f"{name}: no such parameter{suggestion(name, tuple(known))}"
            else:
                try:
                    _number_or_text(known[name], value)
                except ValueError as error:
                    yield f"{name}: {error}"

    def params(self) -> dict[str, Any]:
        """Return the parameters by name, each in the unit of the catalogue."""
        known = _parameters(self.variant)
        return {name: _number_or_text(known[name], value) for name, value in self.__pydantic_extra__.items()}


def variant_config(variant: str, tuned: Mapping[str, VariantParameters]) -> dict[str, Any]:
    """Return the engine's configuration of the variant of that name, built in or one of `tuned`."""
    found = tuned.get(variant)
    return {"variant": variant} if found is None else {"variant": found.variant, "params": found.params()}


def _parameters(variant: str) -> dict[str, Parameter]:
    return parameters(variant)


def _number_or_text(parameter: Parameter, value: object) -> bool | float | str:
    """Return a value of the file as the engine takes it; ValueError for anything else."""
    if parameter.unit in QUANTITIES:
        quantity, size = QUANTITIES[parameter.unit]
        return quantity.parse(value) / size
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not between {parameter.bounds}")
    if not isinstance(value, bool | int | float | str):
        raise ValueError(f"{value!r} is neither a number nor a text; allowed: {parameter.allowed}")
    return value

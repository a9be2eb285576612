"""Variants under names of one's own: `[variants.NAME]` of a scenario file gives one other parameters.

Knows names and values; which parameters a variant has, and their ranges, is the engine's to know, which refuses others
with the nearest name. Read docs/scenario.md, "Variants with other parameters".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from replay.parts import Name


class Tuned(BaseModel):
    """A variant of the catalogue and the parameters that are not as it has them: all keys but `variant`."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, bool | float | str]

    variant: Name

    def params(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return dict(self.__pydantic_extra__)


def engine_words(variant: str, tuned: Mapping[str, Tuned]) -> dict[str, Any]:
    """Return the engine's words for the variant of that name, its own or one of `tuned`."""
    found = tuned.get(variant)
    return {"variant": variant} if found is None else {"variant": found.variant, "params": found.params()}

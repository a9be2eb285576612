"""The quantities of a scenario file with their ranges, and the base class of its tables.

Does not depend on the tables of a scenario. The ranges are the engine's (replay/engine/src/config/validate.rs).
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from hindflight.channels.models.parameters import LONGEST_NS
from hindflight.toolkit.units import PACKETS, RATE, SIZE, TIME, Quantity


def whole(quantity: Quantity) -> BeforeValidator:
    """Return what reads a `quantity` to the nearest whole of its base unit."""
    return BeforeValidator(partial(_parse_whole, quantity))


def _parse_whole(quantity: Quantity, text: object) -> int:
    return round(quantity.parse(text))


MIN_RATE_BPS = 8
"""The engine's minimum rate."""
MAX_RATE_BPS = 1e13
MAX_PKTS = 100_000_000
MAX_SEED = 2**63

Rate = Annotated[float, BeforeValidator(RATE.parse), Field(ge=MIN_RATE_BPS, le=MAX_RATE_BPS)]
Time = Annotated[int, whole(TIME), Field(le=LONGEST_NS)]
Duration = Annotated[int, whole(TIME), Field(ge=1_000_000, le=LONGEST_NS)]
Size = Annotated[int, whole(SIZE), Field(ge=1, le=2**60)]
Packets = Annotated[int, whole(PACKETS), Field(le=MAX_PKTS)]
Probability = Annotated[float, Field(ge=0, le=1, strict=True)]
Count = Annotated[int, Field(ge=0, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Dscp = Annotated[int, Field(ge=0, le=63, strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.+-]+$")]
Chain = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[A-Za-z0-9_.+-]+$")]
"""Names joined by +."""


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("names nothing; give at least one")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice!r} is there twice")
    return names


Names = Annotated[tuple[Name, ...], AfterValidator(_distinct)]
Chains = Annotated[tuple[Chain, ...], AfterValidator(_distinct)]


class Part(BaseModel):
    """A table of the file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

"""A street of buildings on both sides and the antenna in it: what they are drawn from, or the file that has them.

Knows no satellite and no time. Read docs/channels/street.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hindflight.channels.models.parameters import InputFile, Metres, Parameters
from hindflight.channels.models.skyline import Skyline, read_skyline

if TYPE_CHECKING:
    from hindflight.channels._native import StreetCanyon

LONGEST_M = 1e6
"""A street is drawn up to here; what lies further on it is the same again, reversed."""


class Law(Parameters):
    """A law of lengths: its name and the parameters that belong to it."""

    law: Literal["constant", "uniform", "normal", "log_normal", "rayleigh"]
    value: Metres | None = None
    low: Metres | None = None
    high: Metres | None = None
    mean: Metres | None = None
    deviation: Metres | None = None
    median: Metres | None = None
    sigma: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False, strict=True)] | None = None
    mode: Metres | None = None

    @model_validator(mode="after")
    def _its_own(self) -> Self:
        needed = _KEYS[self.law]
        given = tuple(name for name in type(self).model_fields if name != "law" and getattr(self, name) is not None)
        if set(given) != set(needed):
            raise ValueError(f"law {self.law!r} has {' and '.join(needed)}, not {' and '.join(given) or 'nothing'}")
        if self.low is not None and self.high is not None and self.high < self.low:
            raise ValueError("high is less than low")
        return self

    def kernel(self) -> tuple[str, float, float]:
        """The law as the kernel names it."""
        first, *second = (getattr(self, name) for name in _KEYS[self.law])
        return self.law, first, second[0] if second else 0.0


_KEYS = {
    "constant": ("value",),
    "uniform": ("low", "high"),
    "normal": ("mean", "deviation"),
    "log_normal": ("median", "sigma"),
    "rayleigh": ("mode",),
}


def _law(**values: Any) -> Law:
    return Law.model_validate(values)


class Canyon(Parameters):
    """A street with an antenna in it.

    Heights: log-normal with the median and sigma that Saunders and Evans (1997) give for Westminster. Widths: the
    distance from the facades of ITU-R P.681 §4.3 (17.5 m) would be a street of 35 m; 20 m is that of narrower ones.
    """

    antenna: Metres = 1.5
    depth: Metres = 0.0
    length: Annotated[Metres, Field(ge=1, le=LONGEST_M)] | None = None
    heights: Law = _law(law="log_normal", median="20.6 m", sigma=0.44)
    facades: Law = _law(law="uniform", low="10 m", high="30 m")
    width: Law = _law(law="constant", value="20 m")
    lateral: Annotated[float, Field(gt=0, lt=1, strict=True)] = 0.5
    blocks: Law | None = _law(law="uniform", low="60 m", high="120 m")
    crossings: Law = _law(law="constant", value="15 m")
    skyline: InputFile | None = None

    @model_validator(mode="after")
    def _one_width(self) -> Self:
        if self.skyline is not None and self.width.law != "constant":
            raise ValueError(
                f"a skyline's street has one width: width must have the law 'constant', not {self.width.law!r}"
            )
        return self

    def buildings(self, way_m: float, seed: int, owner: int = 0) -> Skyline:
        """Return the street for a way of this length: drawn by seed, or as its file has it."""
        from hindflight.channels._native import draw_street

        if self.skyline is not None:
            return read_skyline(Path(self.skyline), width_m=self.width.kernel()[1], lateral=self.lateral)
        params = {
            "length_m": self.length or min(max(way_m, 1000.0), LONGEST_M),
            "height": self.heights.kernel(),
            "facade": self.facades.kernel(),
            "width": self.width.kernel(),
            "lateral": self.lateral,
            "block": None if self.blocks is None else self.blocks.kernel(),
            "crossing": self.crossings.kernel(),
        }
        return Skyline(*draw_street(params, seed, owner))

    def with_antenna(self, street: Skyline) -> StreetCanyon:
        """Return such a street with the antenna in it."""
        from hindflight.channels._native import StreetCanyon

        return StreetCanyon(street.kernel(), antenna_m=self.antenna, depth_m=self.depth)

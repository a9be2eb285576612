"""One number that a capture or a file says about a link, with its interval and how it was found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """One quantity with its 95 % interval (None where there is none); `known` is false where it is a mere
    bound or an assumption; `how` says in one sentence how it was got."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    known: bool
    how: str

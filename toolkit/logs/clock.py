"""The offset of a log's clock, and how it is known."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """What is to be added to the times of a log, how exactly that is known, and from what."""

    offset_ns: int
    half_width_ns: int
    samples: int
    basis: str

    def __str__(self) -> str:
        return (
            f"clock offset {self.offset_ns / 1e9:+.6f} s ± {self.half_width_ns / 1e6:.3f} ms,"
            f" estimated from {self.samples} {self.basis}"
        )

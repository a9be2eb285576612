"""Quantities as people write them, "125 ms" or "1 Mbit/s", to and from plain numbers in base units.

Depends on no scenario and no model. A number without a unit is refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_NUMBER = re.compile(r"^\s*([+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµ%/]*)\s*$")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A kind of quantity: its units with their factor to the base unit, and an example for messages."""

    name: str
    units: dict[str, float]
    example: str

    def parse(self, text: object) -> float:
        """Return `text` in the base unit; ValueError says what is allowed."""
        if not isinstance(text, str):
            raise ValueError(f'write the {self.name} with its unit, as in "{self.example}"; got {text!r}')
        match = _NUMBER.match(text)
        if match is None:
            raise ValueError(f'{text!r} is not a {self.name}; write it as in "{self.example}"')
        number, unit = match.groups()
        if unit not in self.units:
            what = f"unit {unit!r} is not known" if unit else "the unit is missing"
            raise ValueError(f"{what} in {text!r}; a {self.name} has one of {', '.join(self.units)}")
        value = float(number) * self.units[unit]
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"{text!r}: a {self.name} cannot be negative or infinite")
        return value

    def write(self, value: float) -> str:
        """Return `value` of the base unit as a file may have it: in the largest unit of which it is a whole number."""
        factors = self._factors()
        whole = [factor for factor in factors if value >= factor and value % factor == 0]
        factor = max(whole, default=min(factors, key=lambda factor: abs(factor - 1)))
        number = f"{value / factor:.12g}"
        unit = factors[factor]
        return f"{number} {'pkt' if (number, unit) == ('1', 'pkts') else unit}"

    def write_readably(self, value: float) -> str:
        """Return `value` of the base unit in the largest unit of which there is at least one; hours only if whole."""
        factors = self._factors()
        reached = [factor for factor in factors if value >= factor]
        fitting = [factor for factor in reached if factors[factor] != "h" or value % factor == 0]
        factor = max(fitting, default=min(factors))
        return f"{value / factor:.12g} {factors[factor]}"

    def _factors(self) -> dict[float, str]:
        """The first name of each unit by its factor. Without minutes: nobody writes a timeout of 2 min."""
        return {factor: unit for unit, factor in reversed(self.units.items()) if unit != "min"}


RATE = Quantity(
    "rate",
    {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9},
    "1 Mbit/s",
)
"""Base unit bit/s."""

TIME = Quantity(
    "time",
    {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9},
    "125 ms",
)
"""Base unit ns."""

SIZE = Quantity(
    "size",
    {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3},
    "5 MB",
)
"""Base unit bytes."""

LENGTH = Quantity("length", {"mm": 1e-3, "m": 1.0, "km": 1e3}, "20 m")
"""Base unit metres."""

SPEED = Quantity("speed", {"m/s": 1.0, "km/h": 1 / 3.6, "kn": 1852 / 3600}, "2 m/s")
"""Base unit metres per second."""

FREQUENCY = Quantity("frequency", {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}, "12 GHz")
"""Base unit hertz."""

PACKETS = Quantity("number of packets", {"pkts": 1.0, "pkt": 1.0}, "50 pkts")
"""Base unit packets."""


QUANTITIES = (RATE, TIME, SIZE, LENGTH, SPEED, FREQUENCY, PACKETS)


def quantity_of(text: str) -> Quantity | None:
    """Return the kind of quantity whose unit `text` ends in; None if it is not a quantity."""
    match = _NUMBER.match(text)
    unit = match.group(2) if match else ""
    return next((quantity for quantity in QUANTITIES if unit in quantity.units), None)


def counted(count: int, noun: str) -> str:
    """Return "1 run", "3 runs"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def format_rate(rate_bps: float) -> str:
    """Return a rate with the unit that keeps it readable: 3.998 Mbit/s."""
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if rate_bps >= factor:
            return f"{rate_bps / factor:.4g} {unit}"
    return f"{rate_bps:.4g} bit/s"


def format_time(time_ns: float) -> str:
    """Return a time with the unit that keeps it readable: 480.3 ms."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if time_ns >= factor:
            return f"{time_ns / factor:.6g} {unit}"
    return f"{time_ns:.6g} ns"

"""Formatting of numbers: SI prefixes, significant digits, intervals."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TIMES = ((60e9, "min", 60e9), (1e9, "s", 1e9), (1e6, "ms", 1e6), (1e3, "µs", 1e3))
_COUNTS = {"", "segments", "pkts", "packets", "events"}


def digits(value: float, significant: int = 4) -> str:
    """Return `value` with `significant` digits and thousands separators, without an exponent from 1e-4 to 1e15."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "unlimited" if value > 0 else "minus unlimited"
    if value == 0:
        return "0"
    size = abs(value)
    if size < 1e-4 or size >= 1e15:
        return f"{value:.{significant - 1}e}".replace("-", "\N{MINUS SIGN}")
    return _places(value, _places_for(size, significant))


def _places_for(size: float, significant: int) -> int:
    return max(0, significant - 1 - math.floor(math.log10(size)))


def _places(value: float, places: int) -> str:
    return "0" if value == 0 else f"{value:,.{places}f}".replace("-", "\N{MINUS SIGN}")


def scale_of(value: float, unit: str) -> tuple[float, str]:
    """Return the divisor and the name of the multiple of `unit` that suits `value`, such as (1e6, "Mbit/s")."""
    size = abs(value)
    if not math.isfinite(size):
        return 1.0, ""
    if unit in {"bit/s", "bytes", "B"}:
        base = "bit/s" if unit == "bit/s" else "B"
        for factor, prefix in _SI:
            if size >= factor:
                return factor, prefix + base
        return 1.0, base
    if unit == "ns":
        for threshold, name, factor in _TIMES:
            if size >= 2 * threshold or (name != "min" and size >= threshold):
                return factor, name
        return 1.0, "ns"
    return 1.0, unit


def quantity(value: float | None, unit: str, bounds: tuple[float | None, float | None] = (None, None)) -> str:
    """Return `value` with its unit, such as "1.75 Mbit/s"; "not known" for None.

    A value with an interval, whose ends are `bounds`, has the interval's multiple and decimals.
    """
    if value is None:
        return "not known"
    if unit == "utc":
        return utc(value)
    ends = [abs(end) for end in bounds if end is not None]
    if len(ends) == 2 and not _is_count(value, unit) and _is_positive(max(ends)):
        factor, name = scale_of(max(ends), unit)
        return f"{_places(value / factor, _places_for(max(ends) / factor, _significant(unit)))} {name}".rstrip()
    factor, name = scale_of(value, unit)
    return f"{_plain(value / factor, unit)} {name}".rstrip()


def utc(value_ns: float) -> str:
    """Return nanoseconds since 1970 as UTC with milliseconds."""
    shown = datetime.fromtimestamp(value_ns / 1e9, UTC).isoformat(sep=" ", timespec="milliseconds")
    return f"{shown.removesuffix('+00:00')} UTC"


def with_minus_signs(text: str) -> str:
    """Return a sentence with minus signs, as numbers in tables and on axes have them, not hyphens, before numbers."""
    return re.sub(r"(?<![^\s(])-(?=\d)", "\N{MINUS SIGN}", text)


def short_exponents(text: str) -> str:
    """Return a text in which powers of ten have no leading zeros: "1e-6" for "1e-06"."""
    return re.sub(r"(?<=\de)(-?)0+(?=\d)", r"\1", text)


def _is_positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def interval(low: float | None, high: float | None, unit: str) -> str:
    """Return "low to high unit"; the larger magnitude sets multiple and decimals. Empty if an end is None."""
    if low is None or high is None:
        return ""
    magnitude = max(abs(low), abs(high))
    factor, name = scale_of(magnitude, unit)
    if not _is_positive(magnitude) or (_is_count(low, unit) and _is_count(high, unit)):
        ends = _plain(low / factor, unit), _plain(high / factor, unit)
    else:
        places = _places_for(magnitude / factor, _significant(unit))
        ends = _places(low / factor, places), _places(high / factor, places)
    return f"{ends[0]} to {ends[1]} {name}".rstrip()


def _plain(value: float, unit: str) -> str:
    return _places(value, 0) if _is_count(value, unit) else digits(value, _significant(unit))


def _is_count(value: float, unit: str) -> bool:
    return unit in _COUNTS and float(value).is_integer()


def _significant(unit: str) -> int:
    return 4 if unit in {"bit/s", "bytes", "B", "ns"} else 3

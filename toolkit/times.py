"""Times as people give and read them: seconds from a start, or UTC in ISO 8601. Inside, nanoseconds since 1970.

Knows no table and no capture.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from hindflight.toolkit.errors import HindflightError

_NS = 10**9


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, open where an end is None; `from_ns` belongs to it and `to_ns` does not."""

    from_ns: int | None
    to_ns: int | None

    def overlaps(self, start_ns: int, end_ns: int) -> bool:
        """Whether anything of start to end lies in the span."""
        return (self.to_ns is None or start_ns < self.to_ns) and (self.from_ns is None or end_ns >= self.from_ns)


def span(from_text: str, to_text: str, start_ns: int) -> Span:
    """Return the span between --from and --to, where seconds count from `start_ns`."""
    limits = [time_ns(text, start_ns) if text else None for text in (from_text, to_text)]
    if limits[0] is not None and limits[1] is not None and limits[0] > limits[1]:
        raise HindflightError(f"--from {from_text} is after --to {to_text}")
    return Span(limits[0], limits[1])


def time_ns(text: str, start_ns: int) -> int:
    """Return the time that `text` means: seconds from `start_ns`, or a date and time in UTC."""
    try:
        return start_ns + round(float(text) * _NS)
    except (ValueError, OverflowError):
        pass
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise HindflightError(
            f"{text!r} is not a time", "give seconds (12.5) or UTC in ISO 8601 (2026-01-31T12:00:00)"
        ) from None
    utc = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return round(utc.replace(microsecond=0).timestamp()) * _NS + utc.microsecond * 1000


def utc_text(t_ns: int) -> str:
    """Return `t_ns` as UTC in ISO 8601 with microseconds."""
    seconds, ns = divmod(t_ns, _NS)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{ns // 1000:06d}Z"


def seconds_text(t_ns: int, start_ns: int) -> str:
    """Return `t_ns` as seconds from `start_ns` with microseconds."""
    return f"{(t_ns - start_ns) / _NS:.6f}"

"""GPS time in UTC."""

from __future__ import annotations

WEEK_MS = 7 * 86_400_000
_EPOCH_MS = 315_964_800_000
"""1980-01-06."""
_LEAPS = ((1_483_228_800, 18), (1_435_708_800, 17), (1_341_100_800, 16), (1_230_768_000, 15), (1_136_073_600, 14))
"""From which second since 1970 on GPS time is how many seconds ahead of UTC (IERS Bulletin C)."""


def utc_ns(week: int, ms_of_week: int) -> int:
    """Return the time since 1970 in ns of a GPS time; 0 for a time that is not valid or before 2006."""
    if not (0 < week < 1 << 16 and 0 <= ms_of_week < WEEK_MS):
        return 0
    gps_ms = _EPOCH_MS + week * WEEK_MS + ms_of_week
    leap_s = next((leap for since, leap in _LEAPS if gps_ms - leap * 1000 >= since * 1000), None)
    return 0 if leap_s is None else (gps_ms - leap_s * 1000) * 10**6

"""Times as people write them."""

from __future__ import annotations

import pytest

from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.times import Span, seconds_text, span, time_ns, utc_text

START = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z


@pytest.mark.parametrize(
    ("text", "after_ns"),
    [
        ("0", 0),
        ("2.5", 2_500_000_000),
        ("-1", -1_000_000_000),
        ("1e-9", 1),
        ("2026-01-01", 0),
        ("2026-01-01T00:00:01", 1_000_000_000),
        ("2026-01-01T00:00:01.000001Z", 1_000_001_000),
        ("2026-01-01T01:00:00+01:00", 0),
    ],
)
def test_seconds_or_utc(text: str, after_ns: int) -> None:
    assert time_ns(text, START) == START + after_ns


@pytest.mark.parametrize("text", ["", "now", "nan", "inf", "2026-13-01", "12:00"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(HindflightError, match="is not a time"):
        time_ns(text, START)


def test_spans() -> None:
    assert span("", "", START) == Span(None, None)
    assert span("1", "2", 0) == Span(10**9, 2 * 10**9)
    with pytest.raises(HindflightError, match="--from 2 is after --to 1"):
        span("2", "1", 0)


@pytest.mark.parametrize(
    ("limits", "inside"),
    [
        (Span(None, None), True),
        (Span(10, None), True),
        (Span(11, None), False),
        (Span(None, 6), True),
        (Span(None, 5), False),
        (Span(6, 7), True),
    ],
)
def test_overlap_with_5_to_10(limits: Span, inside: bool) -> None:
    assert limits.overlaps(5, 10) is inside


def test_times_as_text() -> None:
    assert utc_text(START + 1_234_567_999) == "2026-01-01T00:00:01.234567Z"
    assert utc_text(-1) == "1969-12-31T23:59:59.999999Z"
    assert seconds_text(START + 1_500_000_000, START) == "1.500000"

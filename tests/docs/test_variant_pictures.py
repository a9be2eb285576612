"""What pictures of variants overlay agrees, segment by segment."""

from __future__ import annotations

import pytest

from docs.scripts.make_variant_pictures import HAND, supertcp


def test_supertcps_recovery_leaves_the_segments_of_the_ladder_when_it_says() -> None:
    rows = supertcp()
    engine = [(t, number) for series, t, number in rows if series != HAND]
    by_hand = sorted((t, number) for series, t, number in rows if series == HAND)
    assert [number for _, number in engine] == [number for _, number in by_hand]
    assert [t for t, _ in engine] == pytest.approx([t for t, _ in by_hand], abs=1e-4)
    # Three were lost and only they leave again, two of them a round trip after the first.
    repairs = [(round(t, 2), number) for t, number in by_hand if number in (41, 42, 43)][3:]
    assert repairs == [(0.31, 41), (0.41, 42), (0.41, 43)]

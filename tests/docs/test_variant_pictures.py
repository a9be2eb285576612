"""What pictures of variants overlay agrees, segment by segment."""

from __future__ import annotations

import pytest

from docs.scripts.make_variant_pictures import EXPECTED, supertcp


def test_supertcps_recovery_leaves_the_segments_of_the_ladder_when_it_says() -> None:
    rows = supertcp()
    engine = [(t, number) for series, t, number in rows if series != EXPECTED]
    expected = sorted((t, number) for series, t, number in rows if series == EXPECTED)
    assert [number for _, number in engine] == [number for _, number in expected]
    assert [t for t, _ in engine] == pytest.approx([t for t, _ in expected], abs=1e-4)
    # Three were lost and only they leave again, two of them a round trip after the first.
    retransmissions = [(round(t, 2), number) for t, number in expected if number in (41, 42, 43)][3:]
    assert retransmissions == [(0.31, 41), (0.41, 42), (0.41, 43)]

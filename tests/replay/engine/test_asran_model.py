"""The ASRAN paper's model of throughput (§4), by the figures that it prints and those worked from its equations."""

from __future__ import annotations

import math

import pytest

from validation.formulas import asran_gain

FIRST, LAST_MAX = 1.0, 2.0
"""The paper's example."""


def test_cubics_part_is_the_papers_sum() -> None:
    # Sampled every 0.1 from 0.1 to 2.5, by hand: sum of (x - 1)³ + 2 over 25 points, 62.375 as printed.
    cubic = sum((n / 10 - 1) ** 3 + 2 for n in range(1, 26))
    assert cubic == pytest.approx(62.375, abs=1e-9)
    # The paper prints 101.162 / 62.375 = 1.622; on the grid that gives its 62.375 exactly, ASRAN's sum is 100.263.
    gain = asran_gain(FIRST, LAST_MAX, 2.5)
    assert gain == pytest.approx(100.263 / 62.375, rel=1e-5)
    assert 0.98 < gain / 1.622 < 1.0


@pytest.mark.parametrize(
    ("span", "sampled", "continuous"),
    [(0.5, 1.028, 1.020), (1.0, 1.041, 1.035), (2.5, 1.607, 1.581), (5.0, 1.626, 1.632), (10.0, 1.282, 1.283)],
)
def test_gain_over_the_span(span: float, sampled: float, continuous: float) -> None:
    assert asran_gain(FIRST, LAST_MAX, span) == pytest.approx(sampled, abs=6e-4)
    assert asran_gain(FIRST, LAST_MAX, span, step=1e-4) == pytest.approx(continuous, abs=6e-4)
    # In closed form: the integrals of both parts, ASRAN's and CUBIC's.
    k = math.sqrt(LAST_MAX) - FIRST
    asran = ((k + FIRST) ** 3 - FIRST**3) / 3 + (span - k) ** 4 / 4 + LAST_MAX * (span - k)
    cubic = ((span - 1) ** 4 - 1) / 4 + LAST_MAX * span
    assert asran / cubic == pytest.approx(continuous, abs=6e-4)

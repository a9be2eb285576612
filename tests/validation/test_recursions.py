"""Variants compared with independent recursions: each agrees, and would not with another equation."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from validation.recursions import validate_recursions
from validation.tcp_linux import WindowComparison


@cache
def _found() -> tuple[WindowComparison, ...]:
    return tuple(validate_recursions())


def test_every_variant_agrees_with_its_recursion_and_a_tenth_off_misses() -> None:
    found = _found()
    variants = {"westwood-bwe", "westwood-abse", "asran", "ledbat", "hybla", "afstart", "freeze-tcp", "aerotcp"}
    variants |= {"peach", "scps-tp", "supertcp", "bbr3"}
    assert {comparison.case.variant for comparison in found} == variants
    for comparison in found:
        subject = comparison.case.subject
        # What is left is the phase within a round trip, largest for bbr3's steps of half and of four times.
        assert (comparison.check.value or 0.0) < (5.0 if comparison.case.variant == "bbr3" else 4.0), subject
        for factor in (0.9, 1.1):
            off = replace(comparison, reference_pkts=factor * comparison.reference_pkts)
            assert off.check.verdict == "fail", subject


@pytest.mark.parametrize("rounds", [-1, 1])
def test_bbr3_shifted_by_a_round_trip_fails(rounds: int) -> None:
    [comparison] = [one for one in _found() if one.case.variant == "bbr3"]
    shifted = replace(comparison, reference_pkts=np.roll(comparison.reference_pkts, rounds))
    assert shifted.check.verdict == "fail"
    # All states are there: STARTUP below 100 packets, PROBE_RTT at half the product, UP at 2.25 times it, else twice.
    product = 167
    for low, high in ((0.0, 0.3), (0.45, 0.55), (1.95, 2.05), (2.2, 2.3)):
        inside = (low * product < comparison.reference_pkts) & (comparison.reference_pkts < high * product)
        assert inside.sum() >= 5, (low, high)


def test_rapid_recovery_is_compared_and_another_one_misses() -> None:
    [comparison] = [one for one in _found() if one.case.variant == "peach"]
    reference = comparison.reference_pkts
    assert comparison.settled.all()
    # What Rapid Recovery has of the run: below a tenth less than the window has been.
    dips = reference < 0.9 * np.maximum.accumulate(reference)
    off = np.abs(comparison.engine_pkts - reference) / reference
    losses = len(comparison.case.path.losses)
    assert 10 * losses < dips.sum() < 25 * losses
    assert off[dips].max() < 0.03
    # The window is halved for a round trip and restored in half of another; losses of the link have no further effect.
    assert reference[dips].min() < 0.51 * reference.max()
    assert reference[-1] > reference.max() - 2
    # Two tenths of a round trip sooner or later, it fails.
    for shift in (-2, 2):
        assert np.abs(comparison.engine_pkts - np.roll(reference, shift))[dips].max() > 0.1 * reference.max()


def test_either_time_constant_of_abse_differs_from_the_other() -> None:
    adaptive, fixed = (one for one in _found() if one.case.variant == "westwood-abse")
    after = (adaptive.packet > 3100) & (adaptive.packet < 8000)
    engine = np.interp(fixed.packet, adaptive.packet, adaptive.engine_pkts)
    far = (fixed.packet > 3200) & (fixed.packet < 8000)
    assert np.abs(engine / fixed.reference_pkts - 1)[far].min() > 0.02
    assert np.median(np.abs(engine / fixed.reference_pkts - 1)[far]) > 0.05
    assert np.abs(adaptive.engine_pkts / adaptive.reference_pkts - 1)[after].max() < 0.02
    # Below the product an adaptive one keeps 107 of 125 segments, a fixed one 99, and neither half.
    first = [one.reference_pkts[(one.packet > 3150) & (one.packet < 3600)].min() for one in (adaptive, fixed)]
    assert first == pytest.approx([107.4, 98.6], abs=0.5)

"""Variants beside recursions worked by hand: each agrees, and would not with another equation."""

from __future__ import annotations

from dataclasses import replace

from replay.validation.by_hand import validate_by_hand


def test_every_variant_agrees_with_its_recursion_and_a_tenth_off_misses() -> None:
    found = {likeness.case.variant: likeness for likeness in validate_by_hand()}
    assert set(found) == {"westwood-bwe", "westwood-abse", "asran", "ledbat", "aerotcp"}
    for variant, likeness in found.items():
        # The bound is 5 %; what is left is the phase within a round trip.
        assert (likeness.check.value or 0.0) < 3.0, variant
        for factor in (0.9, 1.1):
            off = replace(likeness, reference_pkts=factor * likeness.reference_pkts)
            assert off.check.verdict == "miss", variant

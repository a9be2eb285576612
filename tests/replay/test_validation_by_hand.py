"""Variants beside recursions worked by hand: each agrees, and would not with another equation."""

from __future__ import annotations

from dataclasses import replace

from replay.validation.by_hand import validate_by_hand


def test_every_variant_agrees_with_its_recursion_and_a_tenth_off_misses() -> None:
    found = validate_by_hand()
    variants = {"westwood-bwe", "westwood-abse", "asran", "ledbat", "hybla", "afstart", "freeze-tcp", "aerotcp"}
    variants |= {"peach"}
    assert {likeness.case.variant for likeness in found} == variants
    for likeness in found:
        subject = likeness.case.subject
        # The bound is 5 %; what is left is the phase within a round trip.
        assert (likeness.check.value or 0.0) < 4.0, subject
        for factor in (0.9, 1.1):
            off = replace(likeness, reference_pkts=factor * likeness.reference_pkts)
            assert off.check.verdict == "miss", subject

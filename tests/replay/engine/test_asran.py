"""ASRAN over a full drop-tail queue, in each of its readings, and over random loss, which it is made for."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from docs.scripts.make_variant_rows import ASRAN, PROFILES, SHORT, Flow, drop_tail, shares_mbps

NEWRENOS = ("asran", "`hook`", "`revise`", "`hook`, `revise`")
CUBICS = ("over cubic", "over cubic, `hook`", "over cubic, `revise`", "over cubic, both")
READINGS = (*((name, "newreno") for name in NEWRENOS), *((name, "cubic") for name in CUBICS))
PATH = replace(SHORT, duration_s=30)
PRODUCT_PKTS = round(SHORT.product_pkts)


@cache
def lost(name: str, profile: str, *, overshoots: bool = True) -> float:
    """The share of what left that the queue dropped."""
    stack = {} if overshoots else {"initial_ssthresh_pkts": PRODUCT_PKTS}
    return drop_tail(replace(ASRAN[name], stack=stack), profile, PATH, (1,))[1]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("reading", "base"), READINGS)
def test_every_reading_loses_more_to_the_queue_than_its_base(reading: str, base: str, profile: str) -> None:
    # The base overshoots once and then loses a segment or two per sawtooth; ASRAN never loses a third.
    assert max(2 * lost(base, profile), 0.004) < lost(reading, profile) < 0.33


@pytest.mark.parametrize(("reading", "base"), READINGS)
def test_what_is_kept_is_the_first_slow_starts_overshoot(reading: str, base: str) -> None:
    without_overshoot = lost(reading, "linux", overshoots=False)
    assert 10 * without_overshoot < lost(reading, "linux")
    assert 10 * lost(base, "linux", overshoots=False) < without_overshoot < 0.02


def test_without_timeouts_the_reading_of_timeouts_changes_nothing() -> None:
    for profile in PROFILES:
        assert lost("asran", profile) == lost("`revise`", profile)
    # Under rfc `hook` loses retransmissions, and so times out: there it does.
    assert lost("`hook`", "rfc") < 0.5 * lost("`hook`, `revise`", "rfc")


def test_the_queue_is_longer() -> None:
    queues = [drop_tail(ASRAN[name], "linux", PATH, (1,))[2] for name in ("newreno", "asran", "`hook`")]
    assert queues[0] < 0.8 * queues[1]
    assert queues[1] < queues[2] < PRODUCT_PKTS + 1


def test_cubic_on_the_same_link_starves() -> None:
    newreno, cubic_with_newreno = shares_mbps(Flow("newreno"), Flow("cubic"), PATH)
    asran, cubic_with_asran = shares_mbps(Flow("asran"), Flow("cubic"), PATH)
    assert cubic_with_newreno > newreno
    assert 8 * cubic_with_asran < asran


@pytest.mark.parametrize("profile", PROFILES)
def test_over_random_loss_it_gains(profile: str) -> None:
    lossy = replace(PATH, loss=0.01)
    newreno, asran, hook = (drop_tail(ASRAN[name], profile, lossy, (1,))[0] for name in ("newreno", "asran", "`hook`"))
    assert 1.4 * newreno < asran < 4 * newreno
    assert hook > newreno

"""`hindflight compare`: what changed, with intervals, and exit codes for CI."""

from __future__ import annotations

import json

import pytest

import hindflight as hf
from hindflight.comparison import FIRED, TOO_LITTLE, parse_condition
from hindflight.toolkit.errors import HindflightError
from tests.e2e.conftest import FLOW, ROOT, Command

RENO = FLOW / "snd.pcap.xz"
BURSTS = ROOT / "fixtures" / "kernel" / "S9-reno" / "snd.pcap.xz"


def test_a_condition_fires_only_if_the_interval_excludes_its_bound(hindflight: Command) -> None:
    ended = hindflight("compare", RENO, BURSTS, "--fail-if", "goodput > 5%", "--json")
    document = json.loads(ended.stdout)
    goodput = document["changes"][0]
    low, high = goodput["percent_interval"]
    assert low < goodput["percent"] < high
    assert goodput["before"] == pytest.approx(336e3, rel=0.02)
    assert goodput["samples"][0] >= 8
    assert document["verdicts"][0]["outcome"] == ("fires" if low > 5 else "undecided")
    assert ended.returncode == document["exit_code"]
    beyond = hf.compare(RENO, BURSTS, fail_if=[f"goodput > {low - 1:.0f}%"])
    assert beyond.exit_code == FIRED
    within = hf.compare(RENO, BURSTS, fail_if=[f"goodput > {(low + high) / 2:.0f}%", f"goodput < {low - 5:.0f} %"])
    assert [verdict.outcome for verdict in within.verdicts] == ["undecided", "passes"]
    assert within.exit_code == 0


def test_the_same_flight_has_not_changed() -> None:
    same = hf.compare(RENO, RENO, fail_if=["goodput < -0.1%", "goodput > 0.1%"])
    assert {verdict.outcome for verdict in same.verdicts} == {"undecided"}
    assert all(change.percent == 0 for change in same.changes)


def test_too_little_data_has_its_own_exit_code(hindflight: Command) -> None:
    short = ROOT / "fixtures" / "recorded" / "L4101.1-bbr" / "snd.pcap.xz"
    assert hindflight("ingest", short, "-w", "w", "--to", "3").returncode == 0
    ended = hindflight("compare", "w", "w", "--fail-if", "goodput < -5%")
    assert ended.returncode == TOO_LITTLE
    assert "too little data" in ended.stdout


@pytest.mark.parametrize("text", ["goodput", "goodput < 5", "goodpt < -5%", "goodput <= 5%", "< 5%"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(HindflightError):
        parse_condition(text)


def test_conditions_are_read_with_subject_space_and_minus_sign() -> None:
    read = parse_condition("cubic, through relay: rtt_p95 > \N{MINUS SIGN}12.5 %")
    assert (read.subject, read.metric, read.below, read.bound_percent) == (
        "cubic, through relay",
        "rtt_p95",
        False,
        -12.5,
    )

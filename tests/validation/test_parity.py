"""The profiles against the installed tcptrace and tshark, over a few fixtures; `make validate` takes all captures."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from validation.parity import with_tcptrace, with_tshark
from validation.parity.compare import Difference, Outcome, captures
from validation.parity.page import share, tables

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
RECORDED = captures([FIXTURES / "kernel", FIXTURES / "recorded"])
CAPTURES = [path for path in captures([FIXTURES / "kernel"]) if path.name.startswith("rcv")]

needs_tcptrace = pytest.mark.skipif(shutil.which("tcptrace") is None, reason="needs tcptrace")
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")


@needs_tcptrace
@pytest.mark.parametrize(
    "path", captures([FIXTURES / "kernel", FIXTURES / "recorded"]), ids=lambda path: str(path)[-40:]
)
def test_all_fields_equal_those_of_tcptrace(path: Path) -> None:
    outcome = with_tcptrace.compare(path)
    assert outcome.compared >= 147
    assert not outcome.unexplained
    assert not outcome.only_ours
    assert not outcome.only_peer


@needs_tshark
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.parent.name)
def test_all_fields_equal_those_of_tshark(path: Path) -> None:
    outcome = with_tshark.compare(path)
    assert outcome.compared > 10_000
    assert not outcome.differences
    assert not outcome.only_ours
    assert not outcome.only_peer


def test_the_page_counts_every_difference() -> None:
    explained = Difference("a.pcap", "connection 1", "RTT_min_a2b", "1.0", "2.0", "mss")
    unexplained = Difference("a.pcap", "connection 1", "RTT_max_a2b", "1.0", "2.0", "")
    outcomes = [Outcome("a.pcap", compared=4, differences=[explained, unexplained]), Outcome("b.pcap", compared=4)]
    damaged = Outcome("c.pcap", damaged=True, compared=2, differences=[explained, explained])
    assert share([*outcomes, damaged]) == 0.75
    assert share([*outcomes, damaged], damaged=True) == 0.6
    page = tables("tcptrace", outcomes, {"mss": "a rule"})
    assert "2 differ, 1 of them without an explanation" in page
    assert "| mss | 1 | `a.pcap` connection 1: `RTT_min_a2b` is `1.0`, here `2.0` | a rule |" in page
    assert "| - | 1 |" in page
    assert "b.pcap" not in page

"""`hindflight limits` on recorded flows of the Linux stack, whose applications and receivers are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hindflight as hf
from hindflight.cli.app import main

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "recorded"


@pytest.mark.parametrize(
    ("run", "limit", "least"),
    [("L4101.3-reno", "network", 0.95), ("L4101.1-bbr", "application", 0.8), ("L4101.7-bbr", "pacing", 0.5)],
)
def test_the_largest_share_is_that_of_what_limited_the_flow(run: str, limit: str, least: float) -> None:
    shares = hf.limits(RECORDED / run / "snd.pcap.xz").shares()
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares[limit] > least, shares


def test_the_command_prints_shares_and_packet_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    capture = str(RECORDED / "L4101.3-reno" / "snd.pcap.xz")
    assert main(["limits", capture, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["shares"] == hf.limits(capture).shares()
    assert all(span["record"] >= 1 and span["start_ns"] < span["end_ns"] for span in document["spans"])
    assert main(["limits", capture]) == 0
    assert "until packet" in capsys.readouterr().out


def test_a_capture_at_the_receiver_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["limits", str(RECORDED / "L4101.3-reno" / "rcv.pcap.xz")]) == 2
    assert "taken at the receiver" in capsys.readouterr().err

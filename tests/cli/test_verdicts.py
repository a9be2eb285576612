"""`hindflight verdicts` on recorded flows of the Linux stack."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import hindflight as hf
from hindflight.cli.app import main
from hindflight.flow_verdicts import JUDGED, probability_of

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "recorded"
CAPTURE = RECORDED / "L4101.8-reno" / "snd.pcap.xz"


def test_every_retransmission_and_every_loss_has_a_verdict_with_its_packet() -> None:
    found = hf.verdicts(CAPTURE).verdicts
    events = hf.events(CAPTURE, where="kind = 'retransmission'")
    mechanisms = Counter(one.verdict for one in found if one.about == "retransmission")
    assert mechanisms == Counter(str(name) for name in events["mechanism"].to_list())
    needs = [one for one in found if one.about == "need"]
    assert sorted(one.first_packet or 0 for one in needs) == sorted(events["record"].to_list())
    assert any(one.about == "loss" for one in found)
    assert all(one.evidence for one in found)
    assert [one.verdict for one in found if one.about == "vantage"] == ["sender"]
    assert [one.t_ns for one in found] == sorted(one.t_ns for one in found)


def test_a_probability_is_that_of_judged_verdicts() -> None:
    right, of = JUDGED["retransmission", "sack"]
    assert probability_of("retransmission", "sack") == (right + 1) / (of + 2)
    assert probability_of("shape", "burst") is None
    assert all(0 <= right <= of for right, of in JUDGED.values())


def test_the_command_prints_verdicts_of_one_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verdicts", str(CAPTURE), "--about", "loss", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {one["about"] for one in document["verdicts"]} == {"loss"}
    assert main(["verdicts", str(CAPTURE)]) == 0
    shown = capsys.readouterr().out
    assert "Verdicts on flow 1" in shown
    assert f"packet {document['verdicts'][0]['first_packet']}," in shown
    assert main(["verdicts", str(CAPTURE), "--about", "weather"]) == 2
    assert "vantage, proxy" in capsys.readouterr().err


def test_a_capture_at_the_receiver_says_why_it_has_no_channel() -> None:
    found = hf.verdicts(RECORDED / "L4101.3-reno" / "rcv.pcap.xz")
    assert found.without_channel is not None
    assert "taken at the receiver" in found.without_channel
    assert not any(one.about in ("loss", "interruption") for one in found.verdicts)
    assert all(one.probability is None for one in found.verdicts)

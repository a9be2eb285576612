"""Extraction of recorded kernel flows compared with the link's log. Skips runs that are not available."""

from __future__ import annotations

from functools import cache

import pyarrow.compute as pc
import pytest

from hindflight.channels.extraction.cross_traffic import no_cross_traffic
from hindflight.channels.extraction.extract import Context, extract
from hindflight.toolkit.capture import load_capture
from tests.channels.extraction.kernel_table import KERNEL, Scored, runs, score

_score = cache(score)


def _scored(run: str) -> list[Scored]:
    if run not in runs():
        pytest.skip(f"{run} is not among the recorded flows in {KERNEL}")
    return _score(run)


def _only(run: str) -> Scored:
    (scored,) = _scored(run)
    return scored


@pytest.mark.parametrize("run", [f"{s}-{cc}" for s in ("S1", "S2", "S3", "S9") for cc in ("reno", "cubic", "bbr")])
def test_channel_losses_match_the_link_log(run: str) -> None:
    scored = _only(run)
    precision, recall = scored.precision_recall()
    assert precision is not None
    assert recall is not None
    assert precision >= 0.9
    assert recall >= 0.9


@pytest.mark.parametrize(
    "run",
    [f"{s}-{cc}" for s in ("S4", "S5", "S5f", "S6", "S7", "S8", "S10") for cc in ("reno", "cubic", "bbr")]
    + ["S12-cubic+reno"],
)
def test_no_queue_drop_is_attributed_to_the_channel(run: str) -> None:
    for scored in _scored(run):
        assert scored.queue_called_channel() == 0
        assert scored.fates["outage", "channel"] == 0


@pytest.mark.parametrize("run", [f"{s}-{cc}" for s in ("S7", "S8") for cc in ("reno", "cubic", "bbr")])
def test_outages_are_detected(run: str) -> None:
    scored = _only(run)
    lost = sum(n for (fate, _), n in scored.fates.items() if fate == "outage")
    assert scored.fates["outage", "outage"] >= 0.9 * lost
    assert scored.fates["queue", "outage"] == 0
    outages = [r for r in scored.extraction.channel.to_pylist() if r["kind"] == "interval" and r["cause"] == "outage"]
    assert [r["known"] for r in outages].count(True) == 2


@pytest.mark.parametrize("run", [f"{s}-{cc}" for s in ("S1", "S4", "S9") for cc in ("reno", "cubic")])
def test_estimates_match_the_scenario(run: str) -> None:
    scored = _only(run)
    truth = {
        "rate_bps": (scored.params["rate"], 0.03),
        "base_rtt_ns": (scored.params["rtt_ms"] * 1e6, 0.03),
        "queue_limit_pkts": (scored.params["queue"], 0.2),
    }
    for name, (value, tolerance) in truth.items():
        estimate = scored.extraction.estimate(name)
        assert estimate.known
        assert estimate.value == pytest.approx(value, rel=tolerance)
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low <= value <= estimate.high
        assert estimate.high - estimate.low <= 2 * tolerance * value


@pytest.mark.skipif(not (KERNEL / "S12-cubic+reno").is_dir(), reason="the recording of two flows is not at hand")
def test_shared_queue_is_detected_if_the_other_flow_is_not_captured() -> None:
    capture = load_capture(KERNEL / "S12-cubic+reno" / "snd.pcap.xz")
    for flow_id in (1, 2):
        alone = capture.flows.filter(pc.equal(capture.flows["flow_id"], flow_id))
        found = extract(capture.segments, alone, capture.events, flow_id, Context(no_cross_traffic()))
        assert not found.estimate("queue_limit_pkts").known
        assert any("cross traffic" in sentence.lower() for sentence in found.unknowns)


@pytest.mark.parametrize("run", ["S6-reno", "S6-cubic", "S6-bbr"])
def test_rate_changes_become_states(run: str) -> None:
    rows = [r for r in _only(run).extraction.channel.to_pylist() if r["kind"] == "interval"]
    assert [r["rate_bps"] for r in rows] == [pytest.approx(bps, rel=0.03) for bps in (512e3, 2e6, 512e3)]
    cuts = [(r["t_ns"] - rows[0]["t_ns"]) / 1e9 for r in rows[1:]]
    assert cuts == [pytest.approx(20, abs=0.5), pytest.approx(40, abs=0.5)]

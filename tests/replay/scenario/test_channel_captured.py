"""Outages and steps of delay extracted from a capture, replayed as a channel, compared with the truth."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hindflight.channels.extraction.arrivals import arrivals_of
from hindflight.channels.extraction.extract import Context, Extraction, extract
from hindflight.channels.trace import Trace, write_trace
from hindflight.replay.experiment.engine_inputs import Job
from hindflight.replay.experiment.run import Configuration, Recording, run_configurations, run_jobs
from hindflight.replay.scenario.channel import channel_config
from hindflight.replay.scenario.link_schedule import link_schedule_of
from hindflight.replay.scenario.model import ChannelFile, parse_scenario
from hindflight.toolkit.capture import load_capture
from tests.channels.extraction.kernel_table import KERNEL

SECOND = 10**9
MS = 10**6
RUNS = ("S7-reno", "S7-cubic", "S8-reno", "S8-cubic", "S8-bbr")
BREAKS_S = (20.0, 40.0)
"""When the recordings' links break; from then on they have another delay, too."""


@cache
def _recorded(run: str) -> tuple[Extraction, float]:
    """The extraction from the sender's capture of a recording, and the true time in outage, in seconds."""
    if not (KERNEL / run).is_dir():
        pytest.skip(f"{run} is not among the recorded flows in {KERNEL}")
    capture = load_capture(KERNEL / run / "snd.pcap.xz")
    events = json.loads((KERNEL / run / "scenario.json").read_text())["params"]["events"]
    begin, end = (t for t, what, _ in events[:3] if what == "outage")
    return extract(capture.segments, capture.flows, capture.events, 1), end - begin


def _schedule_of(extraction: Extraction, folder: Path, span_s: float) -> dict[str, Any]:
    """The forward words of a link that plays what was extracted."""
    path = folder / "link.parquet"
    write_trace(Trace(extraction.channel), path)
    return channel_config(ChannelFile(model="file", file=str(path)), round(span_s * SECOND), seed=1, owner=0, way="a2b")


def _lost(schedule: list[dict[str, Any]], delay_ns: int, span_s: float) -> int:
    """Datagrams at 1.99 Mbit/s that a link of 2 Mbit/s loses in outages."""
    span_ns = round(span_s * SECOND)
    forward = {
        "rate_bps": 2e6, "delay_ns": delay_ns, "schedule": schedule, "queue": {"kind": "drop_tail", "limit_pkts": 100}
    }  # fmt: skip
    config = {
        "duration_ns": span_ns,
        "path": {"nodes": ["a", "b"], "links": [{"name": "l", "forward": forward, "reverse": {"delay_ns": MS}}]},
        "flows": [{"name": "idle", "start_ns": span_ns, "variant": "reno"}],
        "datagrams": [{"name": "udp", "packet_bytes": 1500, "rate_bps": 1.99e6}],
    }
    rows = run_configurations([Configuration(config, 1, False)])["runs"].to_pylist()
    return int(next(row["outage_losses"] for row in rows if row["variant"] == "udp"))


def _truth(breaks_s: tuple[tuple[float, float, int], ...]) -> list[dict[str, Any]]:
    """Outages with a step of the delay at their beginning: (from, to, delay in ms)."""
    return [
        change
        for begin, end, delay_ms in breaks_s
        for change in (
            {"at_ns": round(begin * SECOND), "outage": True, "delay_ns": delay_ms * MS},
            {"at_ns": round(end * SECOND), "outage": False},
        )
    ]


def _edge_before(outage: dict[str, Any], rows: list[dict[str, Any]]) -> tuple[int, bool]:
    """How long before `outage` the link is not known to be up, and whether the state before that is known.

    Outage is assumed for the second half of that time.
    """
    assumed = next(row for row in rows if row["cause"] == "outage" and row["end_ns"] == outage["t_ns"])
    states = {row["end_ns"]: row for row in rows if row["cause"] == "none"}
    passing = states[assumed["t_ns"]]
    return outage["t_ns"] - passing["t_ns"], states[passing["t_ns"]]["known"]


@pytest.mark.parametrize("run", RUNS)
def test_a_recording_s_outages_are_within_what_is_said_of_them(run: str, tmp_path: Path) -> None:
    extraction, out_s = _recorded(run)
    rows = [row for row in extraction.channel.to_pylist() if row["kind"] == "interval"]
    origin = rows[0]["t_ns"]
    outages = [row for row in rows if row["cause"] == "outage"]
    surely = [row for row in outages if row["known"]]
    unsure = [row for row in rows if row["cause"] == "none" and not row["known"]]
    assert len(surely) == len(BREAKS_S)
    for row, begin_s in zip(surely, BREAKS_S, strict=True):
        begin, end = origin + round(begin_s * SECOND), origin + round((begin_s + out_s) * SECOND)
        # Packets are 6 ms apart, and the queue's level is an estimate. Where the queue never ran empty before the
        # break, the base is not known, and the edge is as much wider.
        edge_ns, exact = _edge_before(row, rows)
        assert row["t_ns"] - edge_ns <= begin
        assert begin - 3 * MS <= row["t_ns"] <= begin + (15 * MS if exact else edge_ns)
        assert row["t_ns"] + 200 * MS < row["end_ns"] <= end + 10 * MS
        open_until = max(state["end_ns"] for state in unsure if state["t_ns"] < row["end_ns"])
        assert end - 10 * MS <= open_until
    schedule = _schedule_of(extraction, tmp_path, 60)["schedule"]
    assert [c["at_ns"] / SECOND for c in schedule if "delay_ns" in c][1:] == pytest.approx(BREAKS_S, abs=0.015)
    drafted = link_schedule_of(Trace(extraction.channel), "a2b").changes
    assert [c.at_ns for c in drafted if c.outage is False] == [c["at_ns"] for c in schedule if c.get("outage") is False]


def test_a_recording_whose_packets_mark_both_ends_loses_what_the_true_link_loses(tmp_path: Path) -> None:
    extraction, out_s = _recorded("S8-cubic")
    played = _schedule_of(extraction, tmp_path, 60)
    truth = _truth(tuple((t, t + out_s, ms) for t, ms in zip(BREAKS_S, (25, 250), strict=True)))
    assert _lost(truth, 250 * MS, 60) == 211
    assert abs(_lost(played["schedule"], played["delay_ns"], 60) - 211) <= 2


def test_what_an_outage_takes_of_acknowledgements_is_no_loss_of_the_channel() -> None:
    if not (KERNEL / "S7-reno").is_dir():
        pytest.skip(f"S7-reno is not among the recorded flows in {KERNEL}")
    ends = [load_capture(KERNEL / "S7-reno" / f"{end}.pcap.xz") for end in ("snd", "rcv")]
    flow = ends[0].flows.to_pylist()[0]
    arrivals = arrivals_of(flow, ends[0].segments, ends[1].flows, ends[1].segments)
    share = extract(ends[0].segments, ends[0].flows, ends[0].events, 1, Context(None, arrivals)).estimate(
        "ack_loss_share"
    )
    # The link's log: 24 acknowledgements were lost, all of them in outages.
    assert arrivals.acks_lost == 24
    assert share.value == 0.0
    assert "not counting 24 of " in share.how


def _flown(breaks_s: tuple[tuple[float, float, int], ...], folder: Path) -> Extraction:
    """The extraction from the capture of a replay over a link of 250 ms with this outage."""
    changes = [
        {"at": f"{c['at_ns'] // MS} ms", "outage": c["outage"]}
        | ({"delay": f"{c['delay_ns'] // MS} ms"} if "delay_ns" in c else {})
        for c in _truth(breaks_s)
    ]
    link = {"name": "l", "rate": "2 Mbit/s", "delay": "250 ms", "queue": "100 pkts", "changes": changes}
    # The window fills the queue without ever filling it up, and lasts through an outage: both ends are marked.
    flow = {"size": "greedy", "receive_buffer": "300 KiB"}
    compare = {"variants": ["cubic"], "seeds": 1}
    data = {"name": "s", "duration": "60 s", "path": ["a", "b"], "links": [link], "flow": flow, "compare": compare}
    of, job = parse_scenario(data, "s.toml", ("cubic",)), Job("cubic", "none", "what_if", "model", 1, recorded=True)
    run_jobs(of, {1: job}, {}, recording=Recording(captures=folder))
    capture = load_capture(next(folder.glob("1-a.pcap")))
    return extract(capture.segments, capture.flows, capture.events, 1)


def test_a_flown_schedule_comes_back_from_its_capture(tmp_path: Path) -> None:
    breaks = ((20.0, 20.5, 25), (40.0, 40.5, 250))
    extraction = _flown(breaks, tmp_path)
    played = _schedule_of(extraction, tmp_path, 60)
    assert played["delay_ns"] == pytest.approx(250 * MS, rel=0.01)
    steps = [(c["at_ns"], c["delay_ns"]) for c in played["schedule"] if "delay_ns" in c][1:]
    rows = [row for row in extraction.channel.to_pylist() if row["kind"] == "interval"]
    surely = [row for row in rows if row["cause"] == "outage" and row["known"]]
    # The step is in the middle of the time in which the link may have broken.
    for (at, _), row, (begin, _, _) in zip(steps, surely, breaks, strict=True):
        edge_ns, exact = _edge_before(row, rows)
        assert exact
        assert abs(at - begin * SECOND) <= edge_ns / 2
    assert [delay for _, delay in steps] == pytest.approx([ms * MS for _, _, ms in breaks], rel=0.05)
    # The clock of departures, counted from the first data packet, gave 253.
    assert _lost(_truth(breaks), 250 * MS, 60) == 211
    assert abs(_lost(played["schedule"], played["delay_ns"], 60) - 211) <= 2

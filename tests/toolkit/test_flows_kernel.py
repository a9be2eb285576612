"""Flows of recorded kernel runs against the link's own log and the kernel's counters; skipped where there are none."""

from __future__ import annotations

import csv
import json
import lzma
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hindflight.toolkit.capture import Capture, load_capture

KERNEL = Path(__file__).parents[2].parent / "shared" / "data" / "kernel"
RUNS = sorted(path.name for path in KERNEL.iterdir() if path.is_dir()) if KERNEL.is_dir() else []
Row = dict[str, Any]

pytestmark = pytest.mark.skipif(not RUNS, reason=f"no recorded kernel flows at {KERNEL}")
every_run = pytest.mark.parametrize("run", RUNS)


@cache
def scenario(run: str) -> Row:
    document: Row = json.loads((KERNEL / run / "scenario.json").read_text())
    return document


STEADY = [run for run in RUNS if not scenario(run)["params"].get("events")]
steady_run = pytest.mark.parametrize("run", STEADY)


@cache
def captured(run: str, end: str = "snd") -> Capture:
    return load_capture(KERNEL / run / f"{end}.pcap.xz")


def flows(run: str, end: str = "snd") -> list[tuple[Row, Row]]:
    """The rows of `flows` with what the scenario says of the same flow."""
    rows = {row["a_port"]: row for row in captured(run, end).flows.to_pylist()}
    return [(rows[flow["sport"]], flow) for flow in scenario(run)["flows"]]


def fates(run: str, flow: Row) -> dict[int, str]:
    """What the link did to each data segment of a flow, by its record in the sender's capture."""
    segments = captured(run).segments.select(["flow_id", "record", "direction", "payload_bytes", "seq_raw"]).to_pylist()
    sent = [s for s in segments if s["flow_id"] == flow["flow_id"] and s["direction"] == "a2b" and s["payload_bytes"]]
    with lzma.open(KERNEL / run / "link.csv.xz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["dir"] == "data" and row["sport"] == str(flow["a_port"])]
    met = [row for row in rows if row["plen"] != "0"]
    assert [s["seq_raw"] for s in sent] == [int(row["seq"]) for row in met], "the link saw the same segments in order"
    return {s["record"]: row["fate"] for s, row in zip(sent, met, strict=True)}


def events(run: str, flow: Row, kind: str) -> list[Row]:
    return [e for e in captured(run).events.to_pylist() if e["flow_id"] == flow["flow_id"] and e["kind"] == kind]


@every_run
def test_retransmissions_equal_the_link_log(run: str) -> None:
    for flow, truth in flows(run):
        assert flow["a2b_retransmitted_segments"] == truth["retransmits_seen_on_link"]
        assert flow["a2b_out_of_order_segments"] == 0
        assert (flow["vantage"], flow["data_direction"]) == ("sender", "a2b")


@every_run
def test_lost_transmissions_are_those_that_the_link_dropped(run: str) -> None:
    for flow, _ in flows(run):
        dropped = {record for record, fate in fates(run, flow).items() if fate.startswith("dropped")}
        lost = [event["record"] for event in events(run, flow, "loss")]
        assert sorted(lost) == sorted(dropped)


@every_run
def test_what_dsack_disproves_was_not_lost(run: str) -> None:
    for flow, _ in flows(run):
        delivered = {record for record, fate in fates(run, flow).items() if fate == "delivered"}
        by_range: dict[tuple[int, int], list[Row]] = defaultdict(list)
        for event in events(run, flow, "retransmission"):
            by_range[event["seq_start"], event["seq_end"]].append(event)
        for repeats in by_range.values():
            needed = [event for event in repeats if event["cause"] != "spurious"]
            assert len([e for e in needed if e["record"] in delivered]) <= 1, "one copy is enough"


@every_run
def test_timeouts_are_those_that_the_kernel_counted(run: str) -> None:
    for flow, truth in flows(run):
        assert flow["a2b_rtos"] == truth["rto_count"]
        assert len(events(run, flow, "rto")) == flow["a2b_rtos"]


@steady_run
def test_the_minimum_round_trip_time_equals_the_kernels(run: str) -> None:
    for flow, truth in flows(run):
        assert flow["a2b_rtt_min_ns"] == pytest.approx(truth["min_rtt_ms"] * 1e6, rel=0.001, abs=0.1e6)


@every_run
def test_at_the_receiver_a_retransmission_is_not_reordering(run: str) -> None:
    overtaking = run.startswith("S5-")  # the link lets packets overtake when its delay falls
    for (sender, _), (receiver, _) in zip(flows(run), flows(run, "rcv"), strict=True):
        assert receiver["vantage"] == "receiver"
        assert (receiver["a2b_out_of_order_segments"] > 0) == overtaking
        ours, theirs = receiver["a2b_retransmitted_segments"], sender["a2b_retransmitted_segments"]
        # A retransmission that is lost too, or of the last segment that was sent, does not show here.
        assert 0.95 * theirs - 1 <= ours <= theirs


@steady_run
def test_at_the_receiver_causes_are_those_found_at_the_sender(run: str) -> None:
    for (sender, _), (receiver, _) in zip(flows(run), flows(run, "rcv"), strict=True):
        ours, theirs = (row["a2b_recoveries"] + row["a2b_rtos"] for row in (receiver, sender))
        assert abs(ours - theirs) <= 0.1 * theirs + 1
        assert abs(receiver["a2b_rtos"] - sender["a2b_rtos"]) <= 3


@pytest.mark.parametrize("run", [r for r in RUNS if r.split("-")[1] != "bbr" and not r.startswith("S11")])
def test_phases_follow_the_kernels_state(run: str) -> None:
    flow, truth = flows(run)[0]
    rows = [r for r in captured(run).instruments.to_pylist() if r["flow_id"] == flow["flow_id"]]
    with lzma.open(KERNEL / run / truth["tcpinfo"], "rt") as file:
        kernel = [(int(row["t_ns"]), row["ca_state"]) for row in csv.DictReader(file)]
    agree = asked = at = 0
    for row in rows:
        while at + 1 < len(kernel) and kernel[at + 1][0] <= row["t_ns"] + 5_000_000:
            at += 1
        if row["t_ns"] < truth["t_end_ns"]:
            asked += 1
            agree += (row["phase"] in {"recovery", "loss"}) == (kernel[at][1] in {"3", "4"})
    assert asked > 300
    assert agree >= 0.94 * asked

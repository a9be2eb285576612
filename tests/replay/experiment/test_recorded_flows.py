"""The self-check replays the flow under test next to the packets of other flows as captured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hindflight.channels.trace import Trace, write_trace
from hindflight.replay.catalogue import engine_variant_names
from hindflight.replay.experiment.engine_inputs import Job, engine_config
from hindflight.replay.experiment.experiment import CapturedFlow, Execution, _with_others, replay_scenario
from hindflight.replay.experiment.run import run_jobs
from hindflight.replay.experiment.selfcheck import Candidate, Evidence, suspects_of
from hindflight.replay.scenario.loss_trace import RecordedPackets, recorded_others
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.toolkit.schema import conform, table_from_rows
from tests.replay.losses import lost

VARIANTS = engine_variant_names()
FILE = "t.channel.parquet"
LINK = {"name": "sky", "rate": "2 Mbit/s", "delay": "30 ms", "queue": "20 pkts"}
OTHERS = RecordedPackets(pa.array([5, 7], pa.uint64()), pa.array([1500, 476], pa.uint32()))


def _scenario(other: str | None = "newreno", **more: Any) -> Scenario:
    data = {
        "name": "s",
        "duration": "20 s",
        "path": ["a", "b"],
        "links": [{**LINK, "loss": {"model": "trace", "file": FILE}}],
        "flow": {"profile": "linux"},
        "flows": [{"name": "other", "variant": other, "start": "2 s", "profile": "linux"}] if other else [],
        "compare": {"variants": ["cubic"], "seeds": 0},
    }
    return parse_scenario({**data, **more}, "s.toml", VARIANTS)


@pytest.mark.parametrize(("purpose", "recorded"), [("self_check", True), ("what_if", False)])
def test_only_a_self_check_has_the_packets_of_other_flows(purpose: Any, recorded: bool) -> None:
    traces = {FILE: replace(lost((3,), 100), others=OTHERS)}
    config = engine_config(_scenario(), Job("cubic", "none", purpose, "replayed", 1, recorded=True), traces)
    assert [flow["name"] for flow in config["flows"]] == (["flow"] if recorded else ["flow", "other"])
    assert [stream["packet_bytes"] for stream in config["datagrams"]] == ([1500] if recorded else [])


def test_packets_of_others_are_those_of_the_run_without_its_own_records() -> None:
    packets = [(100, 0, 0), (103, 1, 1500), (102, 2, 400), (90, 3, 1500), (120, 4, 1500)]
    rows = [{"kind": "interval", "t_ns": 100, "record": None, "size_bytes": None}]
    rows += [{"kind": "packet", "t_ns": at, "record": record, "size_bytes": size} for at, record, size in packets]
    own = pa.chunked_array([pa.array([0], pa.uint64())])
    others = recorded_others(Trace(pa.Table.from_pylist(rows)), own, 20)
    assert others is not None
    assert (others.at_ns.to_pylist(), others.bytes.to_pylist()) == ([2, 3], [400, 1500])
    assert recorded_others(Trace(pa.Table.from_pylist(rows[:2])), own, 20) is None


def test_datagrams_of_the_scenario_stay_next_to_the_packets_of_other_flows() -> None:
    scenario = _scenario(datagrams=[{"name": "u", "packet": "200 B", "rate": "64 kbit/s"}])
    traces = {FILE: replace(lost((3,), 100), others=OTHERS)}
    config = engine_config(scenario, Job("cubic", "none", "self_check", "replayed", 1, recorded=True), traces)
    assert [stream["name"] for stream in config["datagrams"]] == ["u", "recorded"]


@pytest.mark.parametrize(("of_capture", "replayed"), [(["other"], True), (["other", "third"], False), ([], False)])
def test_packets_of_the_capture_replace_the_flows_of_the_capture_only(of_capture: list[str], replayed: bool) -> None:
    packets = [{"kind": "packet", "t_ns": 5, "record": record, "size_bytes": 1500} for record in (0, 1)]
    begin = {"kind": "interval", "t_ns": 0, "record": None, "size_bytes": None}
    read = {FILE: Trace(pa.Table.from_pylist([begin, *packets]))}
    traces = {FILE: lost((), 2)}
    captured = CapturedFlow(pa.table({"record": pa.array([0], pa.uint64())}), pa.table({}), pa.table({}), "a2b")
    scenario = _scenario(captured={"input": "x", "sha256": "0" * 64, "flow_id": 1, "others": of_capture})
    found = _with_others(scenario, read, traces, captured)[FILE].others
    assert (found is not None) == replayed


def test_the_channel_passes_where_flows_that_react_share_it_differently(tmp_path: Path) -> None:
    job = Job("cubic", "none", "what_if", "replayed", 1, recorded=True)
    flown = run_jobs(_scenario("bbr"), {1: job}, {FILE: lost((), 20_000)})
    segments = flown["segments"]
    segments = segments.set_column(
        segments.schema.get_field_index("record"), "record", pa.array(range(segments.num_rows), pa.uint64())
    )
    _write_trace(segments, tmp_path / FILE)

    def of_flow(name: str) -> pa.Table:
        table = segments if name == "segments" else flown[name]
        return table.filter(pc.equal(table["flow_id"], 1))

    captured = CapturedFlow(of_flow("segments"), of_flow("events"), of_flow("instruments"), "a2b")
    # The capture does not name the congestion control of the other flow, which is taken for another one.
    origin = {"input": "x", "sha256": "0" * 64, "flow_id": 1, "variant": "cubic", "transfer": "19.93 s"}
    scenario = _scenario("newreno", captured={**origin, "others": ["other"]})
    done: list[tuple[int, int]] = []
    execution = Execution(on_progress=lambda *count: done.append(count))
    result = replay_scenario(scenario, tmp_path, captured, execution)
    # The check, its best match once more with its series, with the other flow as TCP, and the comparison.
    assert done[-1] == (4, 4)
    found = {row["metric"]: row for row in result.tables["findings"].to_pylist() if row["section"] == "self_check"}
    assert found["goodput_difference"]["verdict"] == "pass"
    assert found["goodput_difference_others_as_tcp"]["verdict"] == "fail"
    runs = [run for run in result.tables["runs"].to_pylist() if run["purpose"] == "self_check"]
    assert [(run["role"], run["variant"]) for run in runs] == [("under_test", "cubic"), ("cross", "udp")]


def _write_trace(segments: pa.Table, path: Path) -> None:
    data = segments.filter(
        pc.and_(pc.equal(segments["direction"].cast("string"), "a2b"), pc.greater(segments["payload_bytes"], 0))
    )
    base = {"hop": "bottleneck", "direction": "a2b", "lost": False, "cause": "none", "known": True}
    rows: list[dict[str, Any]] = [
        {**base, "kind": "interval", "t_ns": 0, "end_ns": 10**12, "rate_bps": 2e6, "delay_ns": 30_000_000}
    ]
    rows += [
        {
            **base,
            "kind": "packet",
            "t_ns": row["t_ns"],
            "size_bytes": row["ip_bytes"],
            "position": i,
            "record": row["record"],
        }
        for i, row in enumerate(data.sort_by("t_ns").to_pylist())
    ]
    write_trace(Trace(conform("channel", table_from_rows("channel", rows))), path)


def test_next_to_recorded_packets_the_shares_of_the_link_are_not_blamed() -> None:
    best = Candidate("cubic", -0.2, 900, 600, 0, None)
    assert "share the link differently" in suspects_of(_scenario(), best, Evidence(0.01))
    assert "share the link differently" not in suspects_of(_scenario(), best, Evidence(shared_difference=-0.3))
    # With all flows replayed as TCP it is right, so the channel is.
    assert "do not react" in suspects_of(_scenario(), best, Evidence(shared_difference=0.01))
